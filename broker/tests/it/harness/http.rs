//! Plain HTTP, and the shape of an error.

use std::net::SocketAddr;

use serde_json::Value;

use super::{Pair, within};

/// Makes calls to one broker.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    base: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The call, for messages.
    pub(crate) call: String,
    /// The status code.
    pub(crate) status: u16,
    /// The content type, empty where there is none.
    pub(crate) content_type: String,
    /// The headers.
    pub(crate) headers: reqwest::header::HeaderMap,
    /// The body, whole.
    pub(crate) body: Vec<u8>,
}

impl Http {
    /// Calls to the broker at an address, over connections that are kept.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::keeping(address, usize::MAX)
    }

    /// Calls that take a connection each.
    pub(crate) fn without_keeping(address: SocketAddr) -> Self {
        Self::keeping(address, 0)
    }

    /// Calls over TLS to a broker with this certificate, over connections that are kept.
    pub(crate) fn trusting(address: SocketAddr, pair: &Pair) -> Self {
        let tls = pair.client(rustls::DEFAULT_VERSIONS);
        let client = builder().use_preconfigured_tls(tls).build().expect("a client");
        Self { client, base: format!("https://{address}") }
    }

    fn keeping(address: SocketAddr, connections_count: usize) -> Self {
        let client = builder().pool_max_idle_per_host(connections_count);
        Self { client: client.build().expect("a client without TLS"), base: format!("http://{address}") }
    }

    /// Any call.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        self.send_with(method, path, content_type, &[], body).await
    }

    /// The same with headers.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let (call, request) = self.request(method, path, content_type, body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        within(&call, answer(&call, request)).await.unwrap_or_else(|fault| panic!("{call}: {fault:?}"))
    }

    /// Any call to a broker that may go away; `None` where it did and there is no answer.
    pub(crate) async fn attempt(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Option<Answer> {
        let (call, request) = self.request(method, path, content_type, body);
        within(&call, answer(&call, request)).await.ok()
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> (String, reqwest::RequestBuilder) {
        let call = format!("{method} {path}");
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.client.request(method, format!("{}{path}", self.base)).body(body);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        (call, request)
    }

    /// `POST` of a text with a token.
    pub(crate) async fn post_as(
        &self,
        token: &str,
        path: &str,
        content_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let (call, request) = self.request("POST", path, Some(content_type), body);
        let answered = within(&call, answer(&call, request.bearer_auth(token))).await;
        answered.unwrap_or_else(|fault| panic!("{call}: {fault:?}"))
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, "").await
    }

    /// `PUT` of a JSON document.
    pub(crate) async fn put(&self, path: &str, document: &Value) -> Answer {
        self.send("PUT", path, Some("application/json"), document.to_string()).await
    }

    /// `POST` of a text.
    pub(crate) async fn post(
        &self,
        path: &str,
        content_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        self.send("POST", path, Some(content_type), body).await
    }

    /// `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, "").await
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none())
}

async fn answer(call: &str, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let body = response.bytes().await?.to_vec();
    Ok(Answer { call: call.to_owned(), status, content_type, headers, body })
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => {
                // So that a shell's prompt does not stick to it. Files of the pages are as they are.
                let is_answer =
                    ["application/json", "application/problem+json"].contains(&&*self.content_type);
                assert!(
                    !is_answer || self.body.ends_with(b"}\n") || self.body.ends_with(b"]\n"),
                    "{}: no line end",
                    self.call
                );
                value
            }
            Err(fault) => panic!("{}: {} {fault}: {}", self.call, self.status, self.text()),
        }
    }

    /// Demands a status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {}", self.call, self.text());
        self
    }

    /// Demands a problem document with this status, and returns it.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.call, self.text());
        let media_type = self.content_type.split(';').next().unwrap_or_default().trim();
        assert_eq!(media_type, "application/problem+json", "{}: {}", self.call, self.text());
        let problem = with_problem_shape(&self.call, self.json());
        assert_eq!(problem["status"], status, "{}: {problem}", self.call);
        problem
    }
}

/// Checks that a value is an RFC 9457 problem that says something, and returns it.
#[track_caller]
pub(crate) fn with_problem_shape(call: &str, problem: Value) -> Value {
    for member in ["type", "title", "detail"] {
        let text = problem[member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{call}: no `{member}` in {problem}");
    }
    let status = problem["status"].as_u64().unwrap_or_default();
    assert!((400..600).contains(&status), "{call}: status {status} in {problem}");
    for error in problem["errors"].as_array().into_iter().flatten() {
        let pointer = error["pointer"].as_str();
        assert!(pointer.is_some_and(|p| p.is_empty() || p.starts_with(['/', '#'])), "{call}: {problem}");
        assert!(error["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{call}: {problem}");
    }
    problem
}
