//! The request for a WebSocket, held against RFC 6455, 4.2.1.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::http::header::SEC_WEBSOCKET_KEY;
use axum::http::request::Parts;

use crate::model::error::Refusal;

/// A request that is in order.
pub(crate) struct Handshake(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Handshake {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.map_err(refusal)?;
        if !has_one_key(&parts.headers) {
            let detail = "Sec-WebSocket-Key must be 16 bytes in base 64, once";
            return Err(Refusal::BadRequest(detail.to_owned()));
        }
        Ok(Self(upgrade))
    }
}

fn refusal(rejection: WebSocketUpgradeRejection) -> Refusal {
    if matches!(rejection, WebSocketUpgradeRejection::InvalidWebSocketVersionHeader(_)) {
        Refusal::WebSocketVersion
    } else {
        Refusal::BadRequest(rejection.body_text())
    }
}

/// Checks that there is one key of 16 bytes in base 64, which axum does not look at.
fn has_one_key(headers: &HeaderMap) -> bool {
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return false };
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.as_bytes().strip_suffix(b"==").is_some_and(|digits| digits.len() == 22 && digits.iter().all(digit))
}
