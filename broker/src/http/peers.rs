//! The brokers of the other partitions of the cluster, which are asked on behalf of a caller.
//!
//! They get the caller's own token, and let in what they would let in from the caller. A call that is marked as one of a broker's is about
//! the partition of the broker that gets it, and goes no further.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use reqwest::RequestBuilder;
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use wire::Problem;

use super::App;
use super::routes::location;
use crate::config::Cluster;
use crate::https_client;
use crate::ledger::Seen;
use crate::model::error::ApiError;
use crate::model::problems;

/// Marks the call of a broker.
const FORWARDED: HeaderName = HeaderName::from_static("nearcast-forwarded");
/// Time for a connection, and for a whole exchange.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Asks them.
pub(crate) struct Peers {
    client: reqwest::Client,
    seen: Arc<Seen>,
}

/// The other partitions, for the caller of a request; `None` where the request is about this one alone.
pub(crate) struct Others(Option<Forward>);

/// Calls with the token of a caller.
#[derive(Clone)]
pub(crate) struct Forward {
    peers: Arc<Peers>,
    token: Option<HeaderValue>,
}

/// A request that can be passed on as long as nobody has begun to read its body.
pub(super) struct Passed {
    forward: Forward,
    method: Method,
    headers: HeaderMap,
    body: Arc<Mutex<Option<Body>>>,
}

/// What a broker answers.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Peers {
    /// Reads the certificates that they may be signed by. Blocks.
    ///
    /// # Errors
    /// A file of certificates that cannot be read or has none.
    pub(crate) fn new(config: &Cluster, seen: Arc<Seen>) -> anyhow::Result<Arc<Self>> {
        let tls = https_client::config_besides(&config.ca, "cluster.ca")?;
        let client = reqwest::Client::builder()
            .use_preconfigured_tls(tls)
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(EXCHANGE_TIMEOUT)
            .build()
            .context("the client for other brokers of the cluster")?;
        Ok(Arc::new(Self { client, seen }))
    }
}

impl Others {
    /// How they are asked, where they are.
    pub(crate) fn forward(self) -> Option<Forward> {
        self.0
    }

    /// The answers of all of them to a GET, read as JSON; none where the request is about this partition alone. Where one has answered 404, that
    /// is left out.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where a partition has no active broker, or that one does not answer: part of an answer would look like all of it.
    /// What one of them refuses to the caller.
    pub(crate) async fn get<T: DeserializeOwned>(&self, uri: &Uri) -> Result<Vec<T>, ApiError> {
        let Some(forward) = &self.0 else { return Ok(Vec::new()) };
        let urls = forward.peers.seen.homes().others()?;
        let asked = urls.iter().map(|url| forward.send(Method::GET, location(url, uri), None));
        let mut answers = Vec::new();
        for (answer, url) in futures_util::future::join_all(asked).await.into_iter().zip(&urls) {
            let Answer { status, body, .. } = answer?;
            if status == StatusCode::OK {
                answers.push(serde_json::from_slice(&body).map_err(|_| unreadable(url))?);
            } else if status != StatusCode::NOT_FOUND {
                return Err(refused(url, status, &body));
            }
        }
        Ok(answers)
    }
}

impl Forward {
    /// Calls for the sender of these headers; `None` without other brokers, and where the call is one of a broker.
    fn of(app: &App, headers: &HeaderMap) -> Option<Self> {
        let peers = app.peers.as_ref().filter(|_| !headers.contains_key(FORWARDED))?;
        Some(Self { peers: Arc::clone(peers), token: headers.get(AUTHORIZATION).cloned() })
    }

    /// Posts a sequence of JSON texts.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where the broker does not answer.
    pub(crate) async fn post_sequence(
        &self,
        url: &str,
        path: &str,
        texts: String,
    ) -> Result<Answer, ApiError> {
        self.send(Method::POST, [url.trim_end_matches('/'), path].concat(), Some(texts)).await
    }

    async fn send(&self, method: Method, url: String, sequence: Option<String>) -> Result<Answer, ApiError> {
        let mut request = self.request(method, &url);
        if let Some(sequence) = sequence {
            request = request.header(CONTENT_TYPE, "application/json-seq").body(sequence);
        }
        exchange(&url, request).await
    }

    fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let request = self.peers.client.request(method, url).header(FORWARDED, "1");
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        }
    }
}

async fn exchange(url: &str, request: RequestBuilder) -> Result<Answer, ApiError> {
    let silent = |error: reqwest::Error| {
        tracing::debug!(%error, "another broker of the cluster does not answer");
        ApiError::NotStored(format!("the broker of another partition does not answer: {url}"))
    };
    let mut answer = request.send().await.map_err(silent)?;
    let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(silent)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(unreadable(url));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, headers, body: body.into() })
}

impl Passed {
    /// Keeps what passing a request on takes; `None` where a broker has passed it on already.
    pub(super) fn of(app: &App, request: &mut Request) -> Option<Self> {
        let forward = Forward::of(app, request.headers())?;
        let headers = of_names(request.headers(), &[CONTENT_TYPE, ACCEPT]);
        let body = Arc::new(Mutex::new(Some(std::mem::take(request.body_mut()))));
        let read = Arc::clone(&body);
        let taken = futures_util::stream::once(async move {
            let body = read.lock().unwrap_or_else(PoisonError::into_inner).take();
            body.unwrap_or_default().into_data_stream()
        });
        *request.body_mut() = Body::from_stream(taken.flatten());
        Some(Self { forward, method: request.method().clone(), headers, body })
    }

    /// The answer of the broker at an address; `None` where the body has been read here.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where that broker does not answer.
    pub(super) async fn on(self, url: &str) -> Option<Result<Response, ApiError>> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let mut request = self.forward.request(self.method, url).headers(self.headers);
        if !body.is_end_stream() {
            request = request.body(reqwest::Body::wrap_stream(body.into_data_stream()));
        }
        let answer = exchange(url, request).await;
        Some(answer.map(|Answer { status, headers, body }| {
            let told = of_names(&headers, &[CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, LOCATION]);
            (status, told, body).into_response()
        }))
    }
}

fn of_names(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    names.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

impl FromRequestParts<Arc<App>> for Others {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self(Forward::of(app, &parts.headers)))
    }
}

pub(super) fn unreadable(url: &str) -> ApiError {
    ApiError::NotStored(format!("the answer of the broker at {url} cannot be read"))
}

/// What another broker has refused to the caller is refused here alike, in its words. All else is about that broker, as if it did not answer.
fn refused(url: &str, status: StatusCode, body: &[u8]) -> ApiError {
    let problem = serde_json::from_slice::<Problem>(body).ok();
    let code = problem.as_ref().map_or("", |problem| problem.code()).to_owned();
    let detail = problem.and_then(|problem| problem.detail).unwrap_or_else(|| status.to_string());
    let detail = format!("the broker at {url} refused its part: {detail}");
    if code == problems::TOKEN_EXPIRED.code {
        ApiError::TokenExpired
    } else if code == problems::UNAUTHENTICATED.code {
        ApiError::Unauthenticated { detail, has_token: true }
    } else if code == problems::FORBIDDEN.code {
        ApiError::Forbidden { detail, scope: None }
    } else if code == problems::BAD_REQUEST.code {
        ApiError::BadRequest(detail)
    } else if code == problems::OVERLOADED.code {
        ApiError::Overloaded
    } else {
        ApiError::NotStored(detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_is_refused_elsewhere_is_refused_here_alike() {
        let told = |refusal: &ApiError| {
            let body = serde_json::to_vec(&refusal.problem()).unwrap();
            let status = StatusCode::from_u16(refusal.problem().status).unwrap();
            refused("http://b", status, &body)
        };
        let detail = || "why".to_owned();
        for refusal in [
            ApiError::TokenExpired,
            ApiError::Unauthenticated { detail: detail(), has_token: true },
            ApiError::Forbidden { detail: detail(), scope: None },
            ApiError::BadRequest(detail()),
            ApiError::Overloaded,
        ] {
            assert_eq!(told(&refusal).code(), refusal.code());
        }
        for refusal in [ApiError::Stopping, ApiError::Internal("it broke"), ApiError::Storage] {
            assert_eq!(told(&refusal).code(), problems::STORAGE.code, "{refusal:?}");
        }
        let page = refused("http://b", StatusCode::BAD_GATEWAY, b"<html>");
        assert_eq!(
            page,
            ApiError::NotStored("the broker at http://b refused its part: 502 Bad Gateway".to_owned())
        );
    }
}
