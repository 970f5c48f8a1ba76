//! Ordinary clients: subscribers, each with a WebSocket, a publisher at a steady rate, and clients and objects that move now and then.
//!
//! Nothing that the broker does ends what is measured: what it refuses, loses or delivers to the wrong ones is counted.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::SinkExt as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use tokio_tungstenite::tungstenite::Message;

use super::attack::{Door, Tenant, live_event, place};
use crate::fanout::scenario::Scenario;
use crate::fanout::socket::{self, Socket};
use crate::fanout::subscribers::{self, Kept};
use crate::fanout::tally::Tally;

/// Handshakes under way at once.
const HANDSHAKES_MAX: usize = 64;
/// How long a broker that does nothing is waited for, from the last event on.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long to wait for what should not come.
const LINGER: Duration = Duration::from_millis(200);
/// Between two moves of the mover, and two updates of the objects: 20 a second each.
const PACE: Duration = Duration::from_millis(50);
/// Objects that are updated in turn.
const OBJECTS_COUNT: usize = 20;
/// The tenant of ordinary clients.
const TENANT: Tenant = Tenant::Same;

/// Ordinary clients of one broker.
pub struct Ordinary {
    door: Door,
    scenario: Arc<Scenario>,
    tally: Arc<Tally>,
    next_event: u64,
    _tasks: JoinSet<anyhow::Result<()>>,
    _readers: JoinSet<anyhow::Result<()>>,
}

/// What became of the events of a phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// From when each was due to each of its deliveries. One that did not come, of an event that was not refused, counts for as long as it
    /// was waited for.
    pub latency_us: Histogram<u64>,
    /// Events that were due.
    pub events: u64,
    /// Events that the broker refused.
    pub refused: u64,
    /// Events that were not sent, or not answered: the connection did not take them, or was gone.
    pub unanswered: u64,
    /// Deliveries that did not come, of events that were accepted.
    pub lost: u64,
    /// Events that came to others than they should, or that came although they had been refused.
    pub wrong: u64,
}

impl Ordinary {
    /// Connects them all, and subscribes.
    ///
    /// # Errors
    /// When the broker refuses, which it has no reason for yet.
    pub async fn begin(door: Door, scenario: Arc<Scenario>) -> anyhow::Result<Self> {
        let open_one = |number| open(&door, format!("subscriber-{number}"));
        let mut sockets: Vec<Socket> = stream::iter(0..scenario.subscribers.len())
            .map(open_one)
            .buffered(HANDSHAKES_MAX)
            .try_collect()
            .await?;
        subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, Kept::No).await?;
        let tally = Arc::new(Tally::new()?);
        let readers = subscribers::listen(sockets, &tally, Kept::No);
        let mut tasks = JoinSet::new();
        tasks.spawn(go_around(open(&door, "mover".to_owned()).await?));
        tasks.spawn(move_objects(open(&door, "objects".to_owned()).await?));
        Ok(Self { door, scenario, tally, next_event: 0, _tasks: tasks, _readers: readers })
    }

    /// Publishes live events that others have brought before.
    ///
    /// # Errors
    /// When the broker does not take them.
    pub async fn publish_live(door: &Door, tenant: Tenant, count: usize) -> anyhow::Result<()> {
        const AT_ONCE: usize = 500;
        let authorization = door.authorization(tenant, "city");
        let properties = json!({"type": "live", "t": "a".repeat(256)});
        for first in (0..count).step_by(AT_ONCE) {
            let numbers = first..count.min(first + AT_ONCE);
            let lines = numbers.map(|number| format!("{}\n", live_event("city", number, &properties)));
            let body = lines.collect::<String>();
            let status = door.call(authorization.as_deref(), "POST", "/v1/events", body).await;
            anyhow::ensure!(status == Some(202), "live events were answered {status:?}");
        }
        Ok(())
    }

    /// Publishes so many events at this rate, and waits for what becomes of them, for [`PATIENCE`] at most.
    ///
    /// # Errors
    /// When there is no thread to publish from.
    pub async fn phase(&mut self, rate: f64, count: u64) -> anyhow::Result<Phase> {
        let events: Range<u64> = self.next_event..self.next_event + count;
        self.next_event = events.end;
        self.tally.begin(&events);
        let seconds = Duration::from_secs_f64(count as f64 / rate);
        let give_up = Instant::now() + seconds + PATIENCE;
        let (door, scenario, tally) =
            (self.door.clone(), Arc::clone(&self.scenario), Arc::clone(&self.tally));
        let (runtime, numbers) = (tokio::runtime::Handle::current(), events.clone());
        let publishing = move || {
            runtime.block_on(publish(&door, rate, &scenario, numbers, &tally, give_up)).unwrap_or_default()
        };
        let answers = tokio::task::spawn_blocking(publishing).await?;
        let due =
            answers.accepted.iter().map(|number| u64::from(self.scenario.expected(*number).count)).sum();
        while self.tally.deliveries() < due && Instant::now() < give_up {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(LINGER).await;
        Ok(self.verdict(&events, &answers))
    }

    fn verdict(&self, events: &Range<u64>, answers: &Answers) -> Phase {
        let mut phase = Phase {
            latency_us: self.tally.latency_us(),
            events: events.end - events.start,
            refused: answers.refused.len() as u64,
            unanswered: 0,
            lost: 0,
            wrong: 0,
        };
        for number in events.clone() {
            let verdict = self.tally.event(&self.scenario, number);
            let late_us = u64::try_from(verdict.waited.as_micros()).unwrap_or(u64::MAX);
            if !answers.refused.contains(&number) {
                (0..verdict.missing).for_each(|_| phase.latency_us.saturating_record(late_us));
            }
            if answers.accepted.contains(&number) {
                phase.lost += verdict.missing;
                phase.wrong += u64::from(verdict.is_wrong && verdict.missing == 0);
            } else if answers.refused.contains(&number) {
                phase.wrong += u64::from(verdict.came > 0);
            } else {
                phase.unanswered += 1;
            }
        }
        phase
    }
}

impl Phase {
    /// Events that are not where they should be, for whatever reason.
    #[must_use]
    pub fn harmed(&self) -> u64 {
        self.refused + self.unanswered + self.lost + self.wrong
    }
}

async fn open(door: &Door, client: String) -> anyhow::Result<Socket> {
    let stream = TcpStream::connect(door.address).await?;
    let authorization = door.authorization(TENANT, &client);
    socket::open_as(stream, door.address, &client, authorization.as_deref()).await
}

/// What the broker answered.
#[derive(Default)]
struct Answers {
    accepted: HashSet<u64>,
    refused: HashSet<u64>,
}

/// Publishes whatever the broker does, as long as its connection takes it. The thread itself sleeps, because the runtime's timers only know
/// whole milliseconds.
async fn publish(
    door: &Door,
    rate: f64,
    scenario: &Scenario,
    events: Range<u64>,
    tally: &Tally,
    give_up: Instant,
) -> anyhow::Result<Answers> {
    let deadline = tokio::time::Instant::from_std(give_up);
    let socket = timeout_at(deadline, open(door, "publisher".to_owned())).await??;
    let (mut sink, mut stream) = socket.split();
    let count = usize::try_from(events.end - events.start)?;
    let answers = tokio::spawn(async move {
        let mut answers = Answers::default();
        while answers.accepted.len() + answers.refused.len() < count {
            let Ok(Some(Ok(message))) = timeout_at(deadline, stream.next()).await else { break };
            if let Message::Text(text) = message {
                answers.note(&text);
            }
        }
        answers
    });
    let start = Instant::now();
    let due = |number| start + Duration::from_secs_f64((number - events.start) as f64 / rate);
    // All of them, for those that are not taken are late as well.
    events.clone().for_each(|number| tally.sent(number, due(number)));
    for number in events.clone() {
        let early = due(number).saturating_duration_since(Instant::now());
        let mut taken = true;
        if !early.is_zero() {
            taken = matches!(timeout_at(deadline, sink.flush()).await, Ok(Ok(())));
            std::thread::sleep(early);
        }
        taken = taken && matches!(timeout_at(deadline, sink.feed(frame(scenario, number))).await, Ok(Ok(())));
        if !taken {
            break;
        }
    }
    let _ = timeout_at(deadline, sink.flush()).await;
    Ok(answers.await?)
}

impl Answers {
    fn note(&mut self, text: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return };
        let Some(number) = frame["ref"].as_u64() else { return };
        match frame["op"].as_str() {
            Some("ok") => self.accepted.insert(number),
            Some("problem") => self.refused.insert(number),
            _ => false,
        };
    }
}

fn frame(scenario: &Scenario, number: u64) -> Message {
    let mut frame = format!(r#"{{"op":"publish","ref":{number},"event":"#);
    scenario.write_event(number, &mut frame);
    frame.push('}');
    Message::text(frame)
}

/// A client that is here and there, and wants what moves near to it.
async fn go_around(mut socket: Socket) -> anyhow::Result<()> {
    let filters = json!([{"area": {"radius_m": 1_000}, "where": "type = 'object'"}]);
    let wish =
        json!({"op": "subscribe", "ref": 1, "id": "objects", "filters": filters, "on": ["enter", "exit"]});
    socket.send(Message::text(wish.to_string())).await?;
    let (sink, stream) = socket.split();
    let frames =
        (0..).map(|number: usize| json!({"op": "move", "ref": number, "coordinates": place(number * 31)}));
    at_a_pace(sink, stream, frames).await
}

/// Objects that are here and there.
async fn move_objects(socket: Socket) -> anyhow::Result<()> {
    let (sink, stream) = socket.split();
    let frames = (0..).map(|number: usize| {
        let event = json!({
            "type": "Feature", "key": format!("object-{}", number % OBJECTS_COUNT), "properties": {"type": "object"},
            "geometry": {"type": "Point", "coordinates": place(number * 17)},
        });
        json!({"op": "publish", "ref": number, "event": event})
    });
    at_a_pace(sink, stream, frames).await
}

/// Sends frames one after the other, and reads what comes without looking at it.
async fn at_a_pace(
    mut sink: impl futures_util::Sink<Message, Error = tokio_tungstenite::tungstenite::Error> + Unpin,
    mut stream: impl futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
    frames: impl Iterator<Item = Value>,
) -> anyhow::Result<()> {
    let sending = async {
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for frame in frames {
            pace.tick().await;
            sink.send(Message::text(frame.to_string())).await?;
        }
        anyhow::Ok(())
    };
    let reading = async {
        loop {
            stream.next().await.context("the connection closed")??;
        }
    };
    tokio::select! {
        ended = sending => ended,
        ended = reading => ended,
    }
}
