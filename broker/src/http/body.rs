//! Request bodies, read as they come.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::App;
use crate::config;
use crate::model::error::ApiError;

/// How a body is cut into elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON document.
    Json,
    /// A JSON document a line.
    Lines,
    /// JSON documents that each begin with a record separator (RFC 8142).
    Sequence,
}

/// The media types of one document, and those of all formats, as problems name them. Each has other names, too.
const JSON: &str = "application/json or application/geo+json is";
const ALL: &str =
    "application/json, application/geo+json, application/x-ndjson and application/geo+json-seq are";

impl Format {
    /// Reads the format from the headers; without `Content-Type` it is JSON.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let foreign = |found: &[u8], understood| ApiError::MediaType {
            found: String::from_utf8_lossy(found).into_owned(),
            understood,
        };
        if let Some(encoding) = headers.get(CONTENT_ENCODING)
            && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
        {
            let found = [b"content-encoding ", encoding.as_bytes()].concat();
            return Err(foreign(&found, "send the body as it is, without content-encoding"));
        }
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(Self::Json) };
        let media_type = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        match media_type.trim_ascii().to_ascii_lowercase().as_slice() {
            b"application/json" | b"application/geo+json" | b"text/json" => Ok(Self::Json),
            b"application/x-ndjson"
            | b"application/ndjson"
            | b"application/jsonl"
            | b"application/x-jsonlines" => Ok(Self::Lines),
            b"application/geo+json-seq" | b"application/json-seq" => Ok(Self::Sequence),
            _ => Err(foreign(value.as_bytes(), ALL)),
        }
    }

    /// Checks that the headers announce one JSON document, where a sequence makes no sense.
    pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
        match Self::of(headers)? {
            Self::Json => Ok(()),
            Self::Lines | Self::Sequence => {
                Err(ApiError::MediaType { found: "a sequence of documents".to_owned(), understood: JSON })
            }
        }
    }
}

/// How many bytes something may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Name of the bounded thing, in words.
    pub(crate) what: &'static str,
    pub(crate) bytes: u64,
    pub(crate) setting: &'static str,
}

impl Bound {
    /// The bound of one position, with its track.
    pub(crate) fn of_position(app: &App) -> Self {
        let (position, track) = (app.config.limits.position_bytes, app.config.limits.track_bytes);
        if track > position {
            Self { what: "a position with its track", bytes: track as u64, setting: "limits.track_bytes" }
        } else {
            Self { what: "a position", bytes: position as u64, setting: "limits.position_bytes" }
        }
    }

    /// The bound of one subscription.
    pub(crate) fn of_subscription(app: &App) -> Self {
        let bytes = app.config.limits.subscription_bytes as u64;
        Self { what: "a subscription", bytes, setting: "limits.subscription_bytes" }
    }

    /// The bound of the document of a check, a rule set or a group definition.
    pub(crate) fn of_situation(app: &App) -> Self {
        Self { what: "a document", ..Self::of_subscription(app) }
    }

    /// The bound of a push subscription.
    pub(crate) fn of_push(app: &App) -> Self {
        let bytes = app.config.limits.push_subscription_bytes as u64;
        Self { what: "a push subscription", bytes, setting: "limits.push_subscription_bytes" }
    }

    /// The bound of a question: a subscription, an event, and what stands around them.
    pub(crate) fn of_question(app: &App) -> Self {
        let limits = &app.config.limits;
        let around = limits.client_name_bytes + limits.position_bytes;
        let bytes = (limits.subscription_bytes + limits.event_bytes + around) as u64;
        Self { what: "a question", bytes, setting: "limits.subscription_bytes and limits.event_bytes" }
    }

    /// Refuses a text that is longer.
    pub(crate) fn check(self, text: &str) -> Result<(), ApiError> {
        if text.len() as u64 > self.bytes { Err(self.passed()) } else { Ok(()) }
    }

    /// The refusal when more comes.
    pub(crate) fn passed(self) -> ApiError {
        ApiError::TooLarge { what: self.what, limit: self.bytes, setting: self.setting }
    }
}

/// The parts of a body as they come, bounded in size and in the pauses between them.
pub(crate) struct Parts {
    stream: BodyDataStream,
    /// The length that the request announced.
    announced: Option<u64>,
    left: u64,
    bound: Bound,
    pause: Duration,
    pace: Pace,
    stopping: CancellationToken,
}

/// How fast that has to come of which nothing can be done before its end, and which is held until then.
struct Pace {
    since: Instant,
    bytes: u64,
    /// Time that the body may take besides the time for its bytes.
    besides: Duration,
    /// 0: any.
    bytes_per_second: u64,
}

impl Pace {
    fn new(settings: &config::Connection) -> Self {
        Self {
            since: Instant::now(),
            bytes: 0,
            besides: Duration::from_millis(settings.body_timeout_ms),
            bytes_per_second: settings.body_bytes_per_second,
        }
    }

    /// How long the next bytes may take at most.
    fn left(&self) -> Duration {
        self.left_after(self.since.elapsed())
    }

    fn left_after(&self, elapsed: Duration) -> Duration {
        match self.bytes.checked_div(self.bytes_per_second) {
            None => Duration::MAX,
            Some(seconds) => (self.besides + Duration::from_secs(seconds)).saturating_sub(elapsed),
        }
    }

    fn begin_anew(&mut self) {
        (self.since, self.bytes) = (Instant::now(), 0);
    }
}

impl Parts {
    /// A body of a batch.
    pub(crate) fn of_batch(app: &App, headers: &HeaderMap, body: Body) -> Result<Self, ApiError> {
        let bytes = app.config.limits.body_bytes;
        Self::new(app, headers, body, Bound { what: "a body", bytes, setting: "limits.body_bytes" })
    }

    pub(crate) fn new(app: &App, headers: &HeaderMap, body: Body, bound: Bound) -> Result<Self, ApiError> {
        let settings = &app.config.connection;
        let (pause, pace) = (Duration::from_millis(settings.body_timeout_ms), Pace::new(settings));
        let (stream, stopping) = (body.into_data_stream(), app.stopping.clone());
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > bound.bytes) {
            return Err(bound.passed());
        }
        Ok(Self { stream, announced, left: bound.bytes, bound, pause, pace, stopping })
    }

    /// The next part; `None` at the end. A stop does not wait for the rest: the sender learns how far it came.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let coming = tokio::time::timeout(self.pause.min(self.pace.left()), self.stream.next());
        let Some(come) = self.stopping.run_until_cancelled(coming).await else {
            return Err(ApiError::Stopping);
        };
        match come {
            Err(_) if self.pace.left().is_zero() => Err(ApiError::BelowRate),
            Err(_) => Err(ApiError::TooSlow),
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) => Err(ApiError::Interrupted),
            Ok(Some(Ok(part))) => match self.left.checked_sub(part.len() as u64) {
                Some(left) => {
                    self.left = left;
                    self.pace.bytes += part.len() as u64;
                    Ok(Some(part))
                }
                None => Err(self.bound.passed()),
            },
        }
    }

    /// An element of a batch was complete: the next may take its own time.
    pub(crate) fn begin_anew(&mut self) {
        self.pace.begin_anew();
    }

    /// Reads on until more than `enough` bytes are there or the body ends; says whether it has ended. A body that
    /// came in one part is not copied.
    pub(crate) async fn gather(&mut self, enough: usize) -> Result<(Bytes, bool), ApiError> {
        let mut first = Bytes::new();
        // What came in several parts. It grows in place: a body of very many small parts must not cost their square.
        let mut gathered = Vec::new();
        let mut has_ended = false;
        while !has_ended && first.len().max(gathered.len()) <= enough {
            match self.next().await? {
                None => has_ended = true,
                Some(part) if first.len().max(gathered.len()) == 0 => first = part,
                Some(part) => {
                    if gathered.is_empty() {
                        // Its room is taken up only as it fills, and what it grew out of would be held for a while.
                        let announced = self.announced.and_then(|length| usize::try_from(length).ok());
                        gathered.reserve_exact(announced.unwrap_or(0).min(enough));
                        gathered.extend_from_slice(&std::mem::take(&mut first));
                    }
                    gathered.extend_from_slice(&part);
                }
            }
        }
        Ok((if gathered.is_empty() { first } else { gathered.into() }, has_ended))
    }
}

/// Reads a body that is one small document.
pub(crate) async fn document(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    bound: Bound,
) -> Result<Bytes, ApiError> {
    Format::require_json(headers)?;
    let mut parts = Parts::new(app, headers, body, bound)?;
    let (bytes, _) = parts.gather(usize::try_from(bound.bytes).unwrap_or(usize::MAX)).await?;
    Ok(bytes)
}

/// Some editors begin a file with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns the bytes without a byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// The text of some bytes, without a byte order mark.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, ApiError> {
    let bytes = without_mark(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
            Err(ApiError::Malformed { detail: "not UTF-8".to_owned(), line, column })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_is_held_until_its_end_has_a_least_rate() {
        let settings = config::Connection {
            body_timeout_ms: 30_000,
            body_bytes_per_second: 1_024,
            ..Config::default().connection
        };
        let mut pace = Pace::new(&settings);
        let left = |pace: &Pace, after| pace.left_after(Duration::from_secs(after)).as_secs();
        assert_eq!(left(&pace, 10), 20);
        // A byte now and then prolongs nothing.
        pace.bytes += 500;
        assert_eq!((left(&pace, 29), left(&pace, 31)), (1, 0));
        pace.bytes = 600 * 1_024;
        assert_eq!((left(&pace, 29), left(&pace, 631)), (601, 0));
        pace.begin_anew();
        assert_eq!((pace.bytes, left(&pace, 10)), (0, 20));
        let any = Pace::new(&config::Connection { body_bytes_per_second: 0, ..settings });
        assert_eq!(any.left_after(Duration::from_secs(1_000_000)), Duration::MAX);
    }

    /// With nothing left of its time a document that still comes is given up, and a batch goes on by beginning anew.
    #[tokio::test]
    async fn a_document_that_trickles_is_given_up() {
        let settings = Config::default().connection;
        let parts = |since: Instant| {
            let bytes = futures_util::stream::once(async { Ok::<_, std::convert::Infallible>("{}") });
            let body = Body::from_stream(bytes.chain(futures_util::stream::pending()));
            let bound = Bound { what: "a body", bytes: 600_000, setting: "limits.body_bytes" };
            let pause = Duration::from_secs(1_000_000);
            let pace = Pace { since, ..Pace::new(&settings) };
            let stopping = CancellationToken::new();
            Parts {
                stream: body.into_data_stream(),
                announced: None,
                left: bound.bytes,
                bound,
                pause,
                pace,
                stopping,
            }
        };
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(31)) else { return };
        assert_eq!(parts(long_ago).gather(600_000).await.unwrap_err(), ApiError::BelowRate);
        let mut batch = parts(long_ago);
        batch.begin_anew();
        assert_eq!(batch.next().await.unwrap().unwrap(), "{}");
        assert!(batch.pace.left() > Duration::from_secs(20));
    }
}
