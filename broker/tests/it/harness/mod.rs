//! What the tests know of a broker: a program to start, sockets to talk to it, and patience with a deadline.

mod collector;
mod door;
mod http;
#[cfg(feature = "gpu")]
mod inside;
mod link;
mod program;
mod raw;
mod secured;
mod sse;
mod tls;
mod witness;
mod ws;

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use collector::{Collector, Taken, attribute, hex};
pub(crate) use door::Door;
pub(crate) use http::{Answer, Http, with_problem_shape};
#[cfg(feature = "gpu")]
pub(crate) use inside::Inside;
pub(crate) use link::{Link, State};
pub(crate) use program::{Program, Serve, command, dry_run, run_to_end};
pub(crate) use raw::Raw;
pub(crate) use secured::{Secured, certified, listener};
pub(crate) use sse::Sse;
pub(crate) use tls::{Pair, connect};
pub(crate) use witness::Witness;
pub(crate) use ws::{Received, Ws};

/// How long anything may take before a test gives up. Generous: machines are shared, and nothing here is a measurement.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Awaits what must happen, and fails naming it when it does not.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

/// Asks again and again until the probe finds what it looks for.
pub(crate) async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether the long versions of the tests were asked for.
pub(crate) fn soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value != "0" && !value.is_empty())
}

/// An event at a place.
pub(crate) fn feature(id: &str, coordinates: [f64; 2], properties: Value) -> Value {
    json!({
        "type": "Feature",
        "id": id,
        "geometry": {"type": "Point", "coordinates": coordinates},
        "properties": properties,
    })
}

/// Features in one of the forms that `POST /v1/events` takes, with its content type.
pub(crate) fn encode(form: Form, features: &[Value]) -> (&'static str, String) {
    match form {
        Form::Feature => {
            assert_eq!(features.len(), 1, "a single Feature is one event");
            ("application/geo+json", features[0].to_string())
        }
        Form::Collection => {
            ("application/geo+json", json!({"type": "FeatureCollection", "features": features}).to_string())
        }
        Form::Lines => {
            ("application/x-ndjson", features.iter().map(|feature| format!("{feature}\n")).collect())
        }
        Form::Sequence => (
            "application/geo+json-seq",
            features.iter().map(|feature| format!("\u{1e}{feature}\n")).collect(),
        ),
    }
}

/// The bodies that `POST /v1/events` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One GeoJSON Feature.
    Feature,
    /// A FeatureCollection.
    Collection,
    /// `application/x-ndjson`.
    Lines,
    /// `application/geo+json-seq`, RFC 8142.
    Sequence,
}
