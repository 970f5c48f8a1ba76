//! The request for a WebSocket, checked against RFC 6455, 4.2.1, and its answer.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::auth::SUBPROTOCOL;
use crate::model::error::ApiError;

/// A request that is in order.
pub(crate) struct Handshake {
    /// The answer, which makes the connection a WebSocket.
    pub(crate) accepted: Response,
    /// The connection, once it is answered.
    pub(crate) upgraded: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Handshake {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // Axum looks at the request. It would keep the connection to itself.
        let upgraded = parts.extensions.get::<OnUpgrade>().cloned();
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.map_err(refusal)?;
        let upgrade = upgrade.protocols([SUBPROTOCOL]);
        let (Some(key), Some(upgraded)) = (only_key(&parts.headers), upgraded) else {
            let detail = "Sec-WebSocket-Key must be 16 bytes in base 64, once";
            return Err(ApiError::BadRequest(detail.to_owned()));
        };
        let accept = HeaderValue::try_from(derive_accept_key(key)).expect("base 64 is ASCII");
        let headers = [
            (CONNECTION, HeaderValue::from_static("upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_ACCEPT, accept),
        ];
        let mut accepted = (StatusCode::SWITCHING_PROTOCOLS, headers).into_response();
        if let Some(protocol) = upgrade.selected_protocol() {
            accepted.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol.clone());
        }
        Ok(Self { accepted, upgraded })
    }
}

fn refusal(rejection: WebSocketUpgradeRejection) -> ApiError {
    if matches!(rejection, WebSocketUpgradeRejection::InvalidWebSocketVersionHeader(_)) {
        ApiError::WebSocketVersion
    } else {
        ApiError::BadRequest(rejection.body_text())
    }
}

/// The key, where there is one of 16 bytes in base 64, which axum does not look at.
fn only_key(headers: &HeaderMap) -> Option<&[u8]> {
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return None };
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_key = key
        .as_bytes()
        .strip_suffix(b"==")
        .is_some_and(|digits| digits.len() == 22 && digits.iter().all(digit));
    is_key.then_some(key.as_bytes())
}
