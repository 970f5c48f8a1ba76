//! The brokers of the other partitions of the cluster, which are asked on behalf of a caller.
//!
//! They get the caller's own token, and let in what they would let in from the caller. A call that is marked as one of a broker's is about
//! the partition of the broker that gets it, and goes no further.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};
use wire::Problem;

use super::App;
use super::body::{self, Bound};
use super::routes::location;
use crate::config::Cluster;
use crate::https_client;
use crate::ledger::Seen;
use crate::model::error::ApiError;
use crate::model::problems;

/// Marks the call of a broker.
const FORWARDED: HeaderName = HeaderName::from_static("nearcast-forwarded");
/// Time for a connection, and for a whole exchange once the caller's body is here.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two complaints that a broker does not answer.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Asks them.
pub(crate) struct Peers {
    /// It leaves addresses as they are: one that is read and written anew may be about another client.
    client: Client<HttpsConnector<HttpConnector>, Body>,
    seen: Arc<Seen>,
    complained: Mutex<Option<Instant>>,
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
    /// The headers that describe the body.
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
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new());
        let client = client.build(connector.wrap_connector(tcp));
        Ok(Arc::new(Self { client, seen, complained: Mutex::new(None) }))
    }

    /// Logs why one of them does not answer, now and then.
    fn complain(&self, url: &str, reason: &anyhow::Error) {
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if complained.is_none_or(|at| at.elapsed() > COMPLAINT_PAUSE) {
            *complained = Some(Instant::now());
            tracing::warn!("the broker at {url} does not answer: {reason:#}");
        }
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
        let kind = sequence.is_some().then_some(HeaderValue::from_static("application/json-seq"));
        self.exchange(method, &url, kind, sequence.map_or_else(Body::empty, Body::from)).await
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        content_type: Option<HeaderValue>,
        body: Body,
    ) -> Result<Answer, ApiError> {
        let asked = async {
            let mut request = Request::builder().method(method).uri(url).header(FORWARDED, "1");
            let told = [(AUTHORIZATION, self.token.clone()), (CONTENT_TYPE, content_type)];
            for (name, value) in told {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let answer = self.peers.client.request(request.body(body)?).await?;
            let (head, body) = answer.into_parts();
            let (mut parts, mut read) = (Body::new(body).into_data_stream(), Vec::new());
            while let Some(part) = parts.next().await.transpose()? {
                anyhow::ensure!(
                    read.len() + part.len() <= ANSWER_BYTES_MAX,
                    "its answer has more than {ANSWER_BYTES_MAX} bytes"
                );
                read.extend_from_slice(&part);
            }
            anyhow::Ok(Answer { status: head.status, headers: head.headers, body: read.into() })
        };
        let answer = timeout(EXCHANGE_TIMEOUT, asked).await;
        answer.unwrap_or_else(|_| Err(anyhow::anyhow!("not within {EXCHANGE_TIMEOUT:?}"))).map_err(|reason| {
            let broker = url.split('/').take(3).collect::<Vec<_>>().join("/");
            self.peers.complain(&broker, &reason);
            ApiError::NotStored(format!("the broker of another partition does not answer: {broker}"))
        })
    }
}

impl Passed {
    /// Keeps what passing a request on takes; `None` where a broker has passed it on already.
    pub(super) fn of(app: &App, request: &mut Request) -> Option<Self> {
        let forward = Forward::of(app, request.headers())?;
        let headers = of_names(request.headers(), &[CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LENGTH]);
        let body = Arc::new(Mutex::new(Some(std::mem::take(request.body_mut()))));
        let read = Arc::clone(&body);
        let taken = futures_util::stream::once(async move {
            let body = read.lock().unwrap_or_else(PoisonError::into_inner).take();
            body.unwrap_or_default().into_data_stream()
        });
        *request.body_mut() = Body::from_stream(taken.flatten());
        Some(Self { forward, method: request.method().clone(), headers, body })
    }

    /// The answer of the broker at an address; `None` where a handler has read the body. A document is read first, with the refusals and at the pace
    /// of this broker.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where that broker does not answer. What [`body::document`] refuses.
    pub(super) async fn on(self, app: &App, url: &str, bound: Bound) -> Option<Result<Response, ApiError>> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(self.answer(app, url, bound, body).await)
    }

    async fn answer(self, app: &App, url: &str, bound: Bound, body: Body) -> Result<Response, ApiError> {
        let Self { forward, method, headers, .. } = self;
        let body = if method == Method::PUT {
            body::document(app, &headers, body, bound).await?.into()
        } else {
            Body::empty()
        };
        let is_head = method == Method::HEAD;
        let content_type = headers.get(CONTENT_TYPE).cloned();
        let Answer { status, headers, body } = forward.exchange(method, url, content_type, body).await?;
        let mut told = of_names(&headers, &[CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, LOCATION]);
        if is_head && let Some(length) = headers.get(CONTENT_LENGTH) {
            told.insert(CONTENT_LENGTH, length.clone());
        }
        Ok((status, told, Body::from(body)).into_response())
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
