//! The claim `nearcast`: clients that are confined to events of a content, or in zones.

mod exact;
mod rules;
mod world;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::Request;

use super::tokens::{ISSUER, claims};
use crate::harness::{Door, within};
use world::Holder;

/// A token of somebody.
fn token(holder: &Holder, scope: &str) -> String {
    confined(holder.name, holder.tenant, scope, &holder.claim)
}

/// A token of a client of a tenant, confined by a claim, or not where that is `null`.
pub(super) fn confined(client: &str, tenant: &str, scope: &str, claim: &Value) -> String {
    let mut claims = claims(Some(client), scope);
    claims["tenant"] = json!(tenant);
    if !claim.is_null() {
        claims["nearcast"] = claim.clone();
    }
    ISSUER.sign(&claims)
}

/// A request for a WebSocket with a token.
pub(super) fn ask_for(door: &Door, client: &str, token: &str, query: &str) -> Request<()> {
    let url = format!("ws://{}/v1/clients/{client}/ws{query}", door.address());
    let mut request = url.into_client_request().expect("a request");
    let header = format!("Bearer {token}").into_bytes().try_into().expect("a header");
    request.headers_mut().insert("authorization", header);
    request
}

/// Calls with a token.
pub(super) struct Caller<'a> {
    pub(super) door: &'a Door,
    pub(super) token: String,
}

impl Caller<'_> {
    /// The status and the document of an answer, `null` where it is none. The body of what lasts is not waited for.
    pub(super) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request =
            http.request(method, format!("http://{}{path}", self.door.address())).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let answer = within(path, request.send()).await.expect("an answer");
        let status = answer.status().as_u16();
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return (status, Value::Null);
        }
        let text = within(path, answer.text()).await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}
