//! Event streams (server-sent events).

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, Stream, StreamExt as _};

use super::attachment::Attachment;
use super::path::{ClientPath, Permitted};
use super::{App, encode};
use crate::limits::QuotaPermit;
use crate::metrics::Raised;
use crate::model::delivery::Entry;
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::outbox::Outbox;
use crate::sessions::{Attached, Resume};
use crate::telemetry::Writing;

/// Bytes of events that are handed to the connection at once.
const PART_BYTES: usize = 65_536;

/// Streams what a client gets.
#[utoipa::path(
    get, path = "/v1/clients/{client}/events", tag = "delivery",
    params(
        ("client" = String, Path, description = "The client"),
        ("Last-Event-ID" = Option<String>, Header, description = "`<epoch>:<offset>` of the last event that came; what was missed since is told by a `gap`"),
    ),
    responses(
        (status = 200, description = "`event: event` or `gap`, `id: <epoch>:<offset>`, frames as `data`", body = String, content_type = "text/event-stream"),
        (status = "4XX", description = "Not begun", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    refuse_resume(query.as_deref().unwrap_or_default())?;
    let resume = resume(&headers)?;
    let share = app.reading.acquire(principal.behalf().tenant_name(), 1)?;
    let outbox = app.outbox(&client);
    // Whoever asks may be gone before the answer is there, and this with it.
    let mut attachment = Attachment::new(&app, &client, outbox.connection);
    let attached = attachment.attach(&outbox, resume, principal.confinement.clone()).await?;
    let counted = Raised::new(&app.metrics, |metrics| &metrics.event_streams);
    let hello = hello(&client, &attached);
    let keep_alive = Duration::from_millis(app.config.connection.ping_interval_ms);
    let expires = principal.expires;
    let reader = Reader {
        app,
        client,
        outbox,
        _attachment: attachment,
        epoch: attached.epoch,
        keep_alive,
        expires,
        has_ended: false,
        _quota: share,
        _counted: counted,
    };
    let hello = stream::once(async { Ok::<_, std::convert::Infallible>(Bytes::from(hello)) });
    let body = Body::from_stream(hello.chain(reader.into_stream().map(Ok)));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Some proxies hold a response back until it is complete, which this one never is.
        (axum::http::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, body).into_response())
}

/// The first lines: comments with the state of the session, and, for who mistyped a name, why nothing comes.
fn hello(client: &str, attached: &Attached) -> String {
    let mut hello = format!(": nearcast {}:{}\n", attached.epoch, attached.offset);
    if !attached.has_subscriptions {
        // No client's name has a line end.
        let client = tenant::outside(client);
        hello.push_str(&format!(": {client} has no subscriptions: nothing comes until there is one\n"));
    }
    hello.push('\n');
    hello
}

/// Reads `Last-Event-ID`, which browsers send by themselves when they reconnect.
pub(super) fn resume(headers: &HeaderMap) -> Result<Resume, ApiError> {
    let mut told = headers.get_all("last-event-id").iter();
    let Some(value) = told.next() else { return Ok(Resume::Fresh) };
    let after = value.to_str().ok().and_then(epoch_and_offset);
    match (after, told.next()) {
        (None, None) if value.is_empty() => Ok(Resume::Fresh),
        (Some((epoch, offset)), None) => Ok(Resume::After { epoch, offset }),
        _ => Err(ApiError::BadRequest("Last-Event-ID must be <epoch>:<offset>, once".to_owned())),
    }
}

/// Refuses the parameter of WebSockets: who thought that it counts would miss what came meanwhile, and not be told.
fn refuse_resume(query: &str) -> Result<(), ApiError> {
    if form_urlencoded::parse(query.as_bytes()).all(|(name, _)| name != "resume") {
        return Ok(());
    }
    Err(ApiError::BadRequest(
        "resume is for WebSockets: an event stream goes on after Last-Event-ID, a header".to_owned(),
    ))
}

/// Reads `<epoch>:<offset>`, how far somebody has come. The epoch may be anybody's, but is visible ASCII as ours are, which
/// what was not UTF-8 before it was decoded is not; the offset is digits, without a sign.
pub(crate) fn epoch_and_offset(text: &str) -> Option<(String, u64)> {
    let (epoch, offset) = text.rsplit_once(':')?;
    let is_right = !epoch.is_empty()
        && epoch.bytes().all(|byte| byte.is_ascii_graphic())
        && offset.bytes().all(|byte| byte.is_ascii_digit());
    Some((epoch.to_owned(), offset.parse().ok()?)).filter(|_| is_right)
}

/// One event stream.
struct Reader {
    app: Arc<App>,
    client: Arc<str>,
    outbox: Arc<Outbox>,
    /// Ends with the stream.
    _attachment: Attachment,
    epoch: Arc<str>,
    keep_alive: Duration,
    /// When the token's time is over, if it has one.
    expires: Option<Instant>,
    /// Whether that was told.
    has_ended: bool,
    /// The stream's share of the connections that its tenant may have.
    _quota: QuotaPermit,
    _counted: Raised,
}

impl Reader {
    fn into_stream(self) -> impl Stream<Item = Bytes> {
        stream::unfold(self, |mut reader| async move {
            let part = reader.part().await?;
            Some((part, reader))
        })
    }

    /// Returns the next bytes of the stream: the entries that wait, or a comment that shows everybody between that the stream
    /// lives. `None` at the end.
    async fn part(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let mut batch = Vec::new();
        let left = self.expires.map(|expires| expires.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Some(self.farewell());
        }
        let pause = left.map_or(self.keep_alive, |left| left.min(self.keep_alive));
        match tokio::time::timeout(pause, self.outbox.next_batch(&mut batch, PART_BYTES)).await {
            Err(_) if left == Some(pause) => Some(self.farewell()),
            Err(_) => Some(Bytes::from_static(b": still here\n\n")),
            Ok(Some(close)) => {
                self.has_ended = true;
                close.retry_ms.map(|retry_ms| format!("retry: {retry_ms}\n\n").into())
            }
            Ok(None) => Some(self.encode(&batch)),
        }
    }

    /// Says why the stream ends before its time.
    fn farewell(&mut self) -> Bytes {
        self.has_ended = true;
        self.app.metrics.problems.add(1);
        let problem = serde_json::to_string(&ApiError::TokenExpired.problem()).unwrap_or_default();
        format!("event: problem\ndata: {problem}\n\n").into()
    }

    fn encode(&self, batch: &[Entry]) -> Bytes {
        let oldest = match batch.first() {
            Some(Entry::Delivery(delivery)) => delivery.fresh_since(),
            Some(Entry::Answer(_) | Entry::Gap(_)) | None => None,
        };
        self.app.admission.has_its_turn(self.outbox.waited_for_turn(), oldest);
        let writing = Writing::of(self.app.telemetry.as_ref(), batch);
        let bytes_max = batch.iter().map(|entry| encode::server_sent_bytes_max(&self.epoch, entry)).sum();
        let mut bytes = Vec::with_capacity(bytes_max);
        for entry in batch {
            encode::push_server_sent(&mut bytes, &self.epoch, entry);
        }
        writing.done(|| self.app.shards.index_of(&self.client), "event-stream");
        let metrics = &self.app.metrics;
        metrics.frames_sent.add(batch.len() as u64);
        if let Some(received) = oldest {
            metrics.publish_to_write.record(Instant::now().duration_since(received));
        }
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &[u8]) -> Result<Resume, ApiError> {
        resume(&HeaderMap::from_iter([(
            axum::http::HeaderName::from_static("last-event-id"),
            HeaderValue::from_bytes(value).unwrap(),
        )]))
    }

    #[test]
    fn a_stream_of_a_client_without_subscriptions_says_so() {
        let mut attached = Attached { epoch: "a1".into(), offset: 7, number: 0, has_subscriptions: true };
        assert_eq!(hello("anne", &attached), ": nearcast a1:7\n\n");
        attached.has_subscriptions = false;
        let told = ": nearcast a1:7\n: anne has no subscriptions: nothing comes until there is one\n\n";
        assert_eq!(hello("anne", &attached), told);
    }

    #[test]
    fn the_last_event_id_is_epoch_and_offset() {
        assert_eq!(read(b""), Ok(Resume::Fresh));
        assert_eq!(read(b"a1:17"), Ok(Resume::After { epoch: "a1".to_owned(), offset: 17 }));
        for value in ["17", "a1:", "a1:x", "a1:-1", "a1:+1", ":1", "a 1:1", "\u{e9}:1"] {
            assert!(matches!(read(value.as_bytes()), Err(ApiError::BadRequest(_))), "{value}");
        }
        assert!(matches!(read(b"\xff:1"), Err(ApiError::BadRequest(_))));
        let name = axum::http::HeaderName::from_static("last-event-id");
        for values in [["a1:17", "a1:17"], ["", "a1:17"], ["a1:17", ""]] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(name.clone(), HeaderValue::from_static(value));
            }
            assert!(matches!(resume(&headers), Err(ApiError::BadRequest(_))), "{values:?}");
        }
    }
}
