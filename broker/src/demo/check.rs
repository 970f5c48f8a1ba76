//! The check of the demo: taxis do not fly. The recording has its faults, so that some do.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Method, Request};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::PATIENCE;
use super::oracle::Fact;

/// Name of the check.
pub(super) const NAME: &str = "jump";

/// Twenty minutes have 40 pairs of reports that would take more, of 32 taxis: enough to see some, and few enough to look at each. At
/// 55 m/s there are 81, some of them the noise of receivers among high buildings.
const MAX_M_PER_S: f64 = 100.0;
/// How far apart in the recording two reports may be to be compared, in seconds.
const WITHIN_S: f64 = 60.0;

/// The limit of a replay that is `speed` times faster than life, in metres per second, and the seconds of its window.
pub(super) fn limits(speed: f64) -> (f64, f64) {
    let speed = speed.clamp(0.1, 1e6);
    (MAX_M_PER_S * speed, WITHIN_S / speed)
}

/// How often the check is asked whether it has done all.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The preset `speed`, with a condition: what visitors publish is not compared.
fn document(speed: f64) -> Value {
    let (max_m_per_s, for_s) = limits(speed);
    let together = "a.taxi_id = b.taxi_id AND ELAPSED(a, b) > 0";
    let slow = format!("SPEED(a, b) <= {max_m_per_s}");
    let pair = json!({"forall": "b", "in": "recent", "that": {"implies": [together, slow]}});
    json!({
        "contexts": {"recent": {"where": "taxi_id > 0 AND speed_kmh >= 0 AND status IN ('free', 'hired')", "for_s": for_s}},
        "formula": {"forall": "a", "in": "recent", "that": pair},
        "clock": "event",
    })
}

/// Puts the check in force.
pub(super) async fn put(broker: SocketAddr, speed: f64) -> anyhow::Result<()> {
    ask(broker, Method::PUT, Some(document(speed))).await.map(|_| ())
}

/// Whether an event is one that the check has published.
pub(super) fn tells(event: &wire::Feature) -> bool {
    let by = event.foreign.get("derived").and_then(|derived| derived.get("by"));
    by.and_then(Value::as_str).and_then(|by| by.strip_prefix("checks/")) == Some(NAME)
}

/// Waits until the check has done what came to it, and the operator has all that it found, as long as there is hope.
pub(super) async fn settle(broker: SocketAddr, facts: &mpsc::Sender<Fact>) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Shown {
        activity: wire::SituationActivity,
    }
    let came = async {
        loop {
            let Shown { activity } = serde_json::from_value(ask(broker, Method::GET, None).await?)?;
            let (answer, figures) = oneshot::channel();
            facts.send(Fact::Asked { answer }).await.ok().context("nobody counts any more")?;
            if activity.queued == 0 && figures.await?.violations >= activity.published {
                return Ok(());
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    // What has not come by then is not counted.
    tokio::time::timeout(PATIENCE, came).await.unwrap_or(Ok(()))
}

/// Asks the broker about the check.
async fn ask(broker: SocketAddr, method: Method, body: Option<Value>) -> anyhow::Result<Value> {
    let exchange = async {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(TcpStream::connect(broker).await?)).await?;
        let request = Request::builder()
            .method(method)
            .uri(format!("/v1/checks/{NAME}"))
            .header(HOST, broker.to_string())
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(body.map(|body| body.to_string()).unwrap_or_default()))?;
        let answer = async move {
            let (parts, body) = sender.send_request(request).await?.into_parts();
            let bytes = axum::body::to_bytes(Body::new(body), ANSWER_BYTES_MAX).await?;
            anyhow::Ok((parts.status, bytes))
        };
        // The connection ends with the sender.
        let (answer, _) = tokio::join!(answer, connection);
        answer
    };
    let (status, bytes) = tokio::time::timeout(PATIENCE, exchange).await.context("no answer")??;
    if !status.is_success() {
        bail!("{status}: {}", String::from_utf8_lossy(&bytes));
    }
    Ok(serde_json::from_slice(&bytes)?)
}
