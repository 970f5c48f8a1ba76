//! One publisher connection, on a thread of its own, in three manners.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite::Message;

use super::scenario::Scenario;
use super::socket::{self, await_frame};
use super::tally::Tally;

/// How events are published.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Over a WebSocket, each with a `ref`, up to `window` of them unanswered.
    Pipelined {
        /// At least 2.
        window: usize,
    },
    /// Over HTTP, as newline-delimited JSON, one request after the other.
    Batches {
        /// Events of a request.
        size: usize,
    },
    /// Over a WebSocket at a fixed rate, whatever the broker does. Latency counts from when an event should
    /// have been sent.
    OpenLoop {
        /// Events per second.
        rate: f64,
    },
}

/// Publishes the events and returns when the broker has taken them all. Blocks its thread, which is to be one of
/// its own inside of a tokio runtime.
///
/// # Errors
/// When the broker refuses one or closes the connection.
pub fn publish(
    broker: SocketAddr,
    manner: Manner,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Handle::current();
    match manner {
        Manner::Pipelined { window } => runtime.block_on(pipelined(broker, window, scenario, events, tally)),
        Manner::Batches { size } => runtime.block_on(batches(broker, size, scenario, events, tally)),
        Manner::OpenLoop { rate } => runtime.block_on(open_loop(broker, rate, scenario, events, tally)),
    }
}

fn frame(scenario: &Scenario, number: u64) -> Message {
    let mut frame = format!(r#"{{"op":"publish","ref":{number},"event":"#);
    scenario.write_event(number, &mut frame);
    frame.push('}');
    Message::text(frame)
}

/// Sends half a window, then reads the answers of the half before: between half a window and a whole one is
/// always under way, and each half takes few system calls.
async fn pipelined(
    broker: SocketAddr,
    window: usize,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let mut socket = socket::open(broker, "publisher").await?;
    let half = (window / 2).max(1);
    let mut unanswered = 0;
    let mut number = events.start;
    while number < events.end || unanswered > 0 {
        let end = events.end.min(number + half as u64);
        for number in number..end {
            tally.sent(number, Instant::now());
            socket.feed(frame(scenario, number)).await?;
        }
        socket.flush().await?;
        for _ in 0..unanswered {
            await_frame(&mut socket, "ok").await?;
        }
        unanswered = end - number;
        number = end;
    }
    Ok(())
}

/// Waits for nothing but the clock. The thread itself sleeps, because the runtime's timers only know whole
/// milliseconds; the answers are read by another task meanwhile.
async fn open_loop(
    broker: SocketAddr,
    rate: f64,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let (mut sink, mut stream) = socket::open(broker, "publisher").await?.split();
    let count = events.end - events.start;
    let answers = tokio::spawn(async move {
        for _ in 0..count {
            await_frame(&mut stream, "ok").await?;
        }
        anyhow::Ok(())
    });
    let start = Instant::now();
    for number in events.clone() {
        let due = start + Duration::from_secs_f64((number - events.start) as f64 / rate);
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            sink.flush().await?;
            std::thread::sleep(early);
        }
        tally.sent(number, due);
        sink.feed(frame(scenario, number)).await?;
    }
    sink.flush().await?;
    answers.await?
}

async fn batches(
    broker: SocketAddr,
    size: usize,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().tcp_nodelay(true).pool_max_idle_per_host(1).build()?;
    let url = format!("http://{broker}/v1/events");
    let mut number = events.start;
    while number < events.end {
        let end = events.end.min(number + size as u64);
        let mut body = String::new();
        for number in number..end {
            scenario.write_event(number, &mut body);
            body.push('\n');
        }
        let now = Instant::now();
        (number..end).for_each(|number| tally.sent(number, now));
        let request = client.post(&url).header("content-type", "application/x-ndjson").body(body);
        let answer: serde_json::Value = request.send().await?.json().await?;
        let accepted =
            answer["accepted"].as_u64().with_context(|| format!("the broker answered {answer}"))?;
        ensure!(accepted == end - number, "the broker took {accepted} of {}: {answer}", end - number);
        number = end;
    }
    Ok(())
}
