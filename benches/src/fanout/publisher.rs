//! One publisher connection, on a thread of its own, in three manners.

use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::scenario::Scenario;
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

/// Publishes the events and returns when the broker has taken them all.
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
    match manner {
        Manner::Pipelined { window } => pipelined(&mut connect(broker)?, window, scenario, events, tally),
        Manner::Batches { size } => batches(broker, size, scenario, events, tally),
        Manner::OpenLoop { rate } => open_loop(&mut connect(broker)?, rate, scenario, events, tally),
    }
}

fn connect(broker: SocketAddr) -> anyhow::Result<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(broker)?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{broker}/v1/clients/publisher/ws");
    let (mut socket, _) = tungstenite::client(url, stream).map_err(|error| anyhow::anyhow!("{error}"))?;
    await_frame(&mut socket, r#"{"op":"ready""#)?;
    Ok(socket)
}

fn await_frame(socket: &mut WebSocket<TcpStream>, start: &str) -> anyhow::Result<()> {
    loop {
        match socket.read()? {
            Message::Text(text) if text.starts_with(start) => return Ok(()),
            Message::Text(text) => bail!("expected {start}, was told {text}"),
            Message::Close(_) => bail!("the broker closed the publisher's connection"),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

/// Sends half a window, then reads the answers of the half before: between half a window and a whole one is
/// always under way, and each half takes few system calls.
fn pipelined(
    socket: &mut WebSocket<TcpStream>,
    window: usize,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let half = (window / 2).max(1);
    let mut open = 0;
    let mut number = events.start;
    while number < events.end || open > 0 {
        let end = events.end.min(number + half as u64);
        let sent = end - number;
        for number in number..end {
            let mut frame = format!(r#"{{"op":"publish","ref":{number},"event":"#);
            scenario.write_event(number, &mut frame);
            frame.push('}');
            tally.sent(number, Instant::now());
            socket.write(Message::text(frame))?;
        }
        socket.flush()?;
        number = end;
        for _ in 0..open {
            await_frame(socket, r#"{"op":"ok""#)?;
        }
        open = sent;
    }
    Ok(())
}

/// Frames without a `ref` are not answered, so this never waits for the broker; a `ping` at the end shows that
/// it has come so far.
fn open_loop(
    socket: &mut WebSocket<TcpStream>,
    rate: f64,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let start = Instant::now();
    for number in events.clone() {
        let due = start + Duration::from_secs_f64((number - events.start) as f64 / rate);
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            socket.flush()?;
            std::thread::sleep(early);
        }
        let mut frame = String::from(r#"{"op":"publish","event":"#);
        scenario.write_event(number, &mut frame);
        frame.push('}');
        tally.sent(number, due);
        socket.write(Message::text(frame))?;
    }
    socket.send(Message::text(r#"{"op":"ping"}"#))?;
    await_frame(socket, r#"{"op":"pong""#)
}

fn batches(
    broker: SocketAddr,
    size: usize,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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
        let answer: serde_json::Value = runtime.block_on(async { request.send().await?.json().await })?;
        let accepted =
            answer["accepted"].as_u64().with_context(|| format!("the broker answered {answer}"))?;
        ensure!(accepted == end - number, "the broker took {accepted} of {}: {answer}", end - number);
        number = end;
    }
    Ok(())
}
