//! The one place where refusals become responses.

use axum::http::StatusCode;
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE,
};
use axum::response::{IntoResponse, Response};
use wire::Problem;

use crate::model::error::ApiError;

/// The media type of problems.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        respond(&self, &self.problem())
    }
}

/// Where a request is answered that this response refuses.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere(pub(crate) String);

/// A response that tells a refusal by this problem, which may hold more than the refusal's own.
pub(crate) fn respond(refusal: &ApiError, problem: &Problem) -> Response {
    if let ApiError::Internal(detail) = refusal {
        tracing::error!(detail, "a request failed by the broker's own fault");
    }
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_string(problem).unwrap_or_default();
    let mut response = with_line_end(status, PROBLEM_JSON, body);
    if let Some(seconds) = refusal.retry_after_s() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(challenge) = refusal.challenge().and_then(|text| HeaderValue::try_from(text).ok()) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let ApiError::Elsewhere { url } = refusal {
        response.extensions_mut().insert(Elsewhere(url.clone()));
    }
    if matches!(refusal, ApiError::WebSocketVersion) {
        // RFC 6455, 4.4, and RFC 9110, 15.5.22.
        let told = [(SEC_WEBSOCKET_VERSION, "13"), (UPGRADE, "websocket"), (CONNECTION, "upgrade")];
        response.headers_mut().extend(told.map(|(name, value)| (name, HeaderValue::from_static(value))));
    }
    response
}

/// JSON that is a text already.
pub(crate) fn json(status: StatusCode, text: impl Into<String>) -> Response {
    with_line_end(status, HeaderValue::from_static("application/json"), text.into())
}

/// Every JSON answer comes through here. It ends with a line end, so that the prompt of a shell does not stick to it.
pub(crate) fn with_line_end(status: StatusCode, kind: HeaderValue, mut text: String) -> Response {
    text.push('\n');
    (status, [(CONTENT_TYPE, kind)], text).into_response()
}
