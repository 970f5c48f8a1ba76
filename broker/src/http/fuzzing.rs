//! Doors for fuzzing: frames of a WebSocket, and what says where a reader was.

use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;

use axum::http::{HeaderMap, HeaderValue};
use matcher::geo::World;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::commands::WsSession;
use super::replies::Replies;
use super::{App, encode, sse, ws};
use crate::admission::flow_of_connection;
use crate::auth::{Authenticator, Principal, Renewable};
use crate::config::{Config, EngineName};
use crate::engines::{CheckEngines, Engines};
use crate::fuzzing::check_refusal;
use crate::ingest::feature::FeatureReader;
use crate::metrics::Metrics;
use crate::model::delivery::Entry;
use crate::sessions::{Restored, Resume, Sessions, Shared};
use crate::shard::{Command, Shards};
use crate::shutdown::Ending;

/// Where a reader was, as `Last-Event-ID` and as `?resume=`.
pub fn resume(data: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(data) {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", value);
        match sse::resume(&headers) {
            Ok(Resume::After { epoch, offset }) => {
                let text = format!("{epoch}:{offset}");
                let read = sse::epoch_and_offset(&text);
                assert_eq!(read, Some((epoch.clone(), offset)), "{text}");
                let query: String =
                    form_urlencoded::Serializer::new(String::new()).append_pair("resume", &text).finish();
                assert_eq!(ws::resume(&query), Ok(Resume::ReadyAfter { epoch, offset }), "{query}");
            }
            Ok(other) => assert!(data.is_empty() && other == Resume::Fresh),
            Err(refusal) => check_refusal("", &refusal),
        }
    }
    if let Ok(query) = std::str::from_utf8(data) {
        match ws::resume(query) {
            Ok(Resume::ReadyAfter { epoch, offset }) => {
                assert_eq!(sse::epoch_and_offset(&format!("{epoch}:{offset}")), Some((epoch, offset)));
            }
            Ok(other) => assert_eq!(other, Resume::Ready),
            Err(refusal) => check_refusal("", &refusal),
        }
    }
}

pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));
static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
    let mut config = Config::default();
    config.server.shards = 1;
    config.server.engine = EngineName::Cells;
    config.limits.live_events = 8;
    config.limits.subscriptions_per_client = 4;
    config.limits.members_per_subscription = 4;
    config.outbox.frames = 8;
    config.connection.ping_interval_ms = 100;
    config.into()
});
/// The library never gives back what was counted where nobody asks for it any more.
static METRICS: LazyLock<Arc<Metrics>> = LazyLock::new(|| Metrics::new(1).into());

/// A broker without a store, in which nothing has happened, and its engine's thread.
pub(crate) fn start(ending: &Ending) -> (Arc<App>, Vec<JoinHandle<Sessions>>) {
    start_with(Engines::find(&CONFIG).expect("an engine on the CPU"), ending)
}

/// Starts the broker of [`start`] with these engines.
pub(crate) fn start_with(engines: Engines, ending: &Ending) -> (Arc<App>, Vec<JoinHandle<Sessions>>) {
    let shared = Shared { metrics: Arc::clone(&METRICS), ..Shared::new(&CONFIG, 1) };
    let started = Shards::start(&CONFIG, engines, &shared, None, Restored::default());
    let (shards, threads) = started.expect("a thread");
    let features = FeatureReader::new(World::Geodetic, &CONFIG.limits, 7);
    let authenticator = Arc::new(Authenticator::open(&CONFIG).expect("nobody needs a token"));
    (
        App::new(
            Arc::clone(&CONFIG),
            features,
            shards,
            shared,
            authenticator,
            (CheckEngines::default(), None, None, None, None),
            ending,
        ),
        threads,
    )
}

/// A connection's frames, a line each, to a broker of its own: each is answered as the protocol says, and what is delivered is in order.
pub fn frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    RUNTIME.block_on(converse(text));
}

async fn converse(text: &str) {
    let (app, threads) = start(&Ending::default());
    let (outbox, client) = (app.outbox("car"), Arc::from("car"));
    let attach = |client, reply| {
        let outbox = Arc::clone(&outbox);
        Command::Attach { client, outbox, resume: Resume::Ready, confinement: None, reply }
    };
    let attached = app.shards.ask(&client, attach).await.expect("there is a shard");
    let place = app.shards.place_of(&client, &attached.expect("there is room for a reader")).into();
    let publisher = app.admission.publisher(&Principal::of_everything(), &flow_of_connection(&CONFIG));
    let principal = Renewable::new(Arc::new(Principal::of_everything()));
    let asker = WsSession {
        app: Arc::clone(&app),
        client,
        place,
        outbox,
        principal,
        publisher,
        runs_inline: false.into(),
    };
    let mut answers = Replies::new(&app, &asker.outbox);
    let mut expected = Vec::new();
    for frame in text.split('\n') {
        let in_order = asker.frame(frame, &mut answers).await;
        asker.see_to_the_rest();
        let read = serde_json::from_str::<Value>(frame).ok();
        let member =
            |name: &str| read.as_ref().and_then(|frame| frame.get(name)).filter(|value| !value.is_null());
        let is_silent = in_order
            && match member("op").and_then(Value::as_str) {
                Some("move") => member("ref").is_none(),
                op => op == Some("ack"),
            };
        if !is_silent {
            expected.push(in_order);
        }
        // By `overflow: disconnect`; nothing that waited counts then, and nothing is read.
        if asker.outbox.is_closing() {
            break;
        }
    }
    asker.publish_taken(&mut answers).await;
    answers.all().await;
    app.shards.stop().await;
    threads.into_iter().for_each(|thread| drop(thread.join().expect("the shard's thread does not panic")));
    METRICS.upkeep();
    if !asker.outbox.is_closing() {
        check_written(&asker, &expected).await;
    }
}

/// Checks the entries that wait: `ready`, each answer in its order, and deliveries whose offsets have no holes but those that
/// a gap tells.
async fn check_written(asker: &WsSession, expected: &[bool]) {
    let mut batch = Vec::new();
    asker.outbox.next_batch(&mut batch, usize::MAX).await;
    let mut expected = expected.iter();
    let mut offset = 0;
    let mut deliveries = 0;
    for (index, entry) in batch.into_iter().enumerate() {
        let is_answer = matches!(entry, Entry::Answer(_));
        let mut payload = Vec::new();
        encode::push_payload(&mut payload, &entry);
        assert_eq!(payload.len(), encode::payload_bytes(&entry));
        let frame: Value = serde_json::from_slice(&payload).expect("frames are JSON");
        let number = |name: &str| frame[name].as_u64().expect("a number");
        match frame["op"].as_str().expect("frames say what they are") {
            "ready" => assert_eq!(index, 0),
            "event" => {
                // An alarm before its turn has the offset that the connection has come to.
                offset += u64::from(frame["ahead"].is_null());
                deliveries += 1;
                assert_eq!(number("offset"), offset, "{frame}");
                assert!(frame["event"].is_object() && !frame["subscriptions"][0].is_null(), "{frame}");
            }
            "gap" => {
                assert_eq!(number("from"), offset + 1, "{frame}");
                assert_eq!(number("count"), number("to") - offset, "{frame}");
                offset = number("to");
            }
            op => {
                let in_order = expected.next().expect("no more answers than requests");
                assert!(is_answer && matches!(op, "ok" | "pong" | "problem"), "{frame}");
                assert_eq!(op != "problem", *in_order, "{frame}");
            }
        }
    }
    assert!(deliveries <= asker.app.config.outbox.frames);
    assert_eq!(expected.next(), None, "an answer is missing");
}
