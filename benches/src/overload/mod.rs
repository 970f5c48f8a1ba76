//! More than a broker can do, offered by publishers that wait for nothing, with alarms among it: what is taken and what is
//! refused, and how long what is taken takes.

mod outcome;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use futures_util::stream::SplitStream;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::fanout::scenario::Scenario;
use crate::fanout::socket::{self, Socket};
use crate::fanout::subscribers::event_id;
use outcome::Outcomes;
pub use outcome::{Figures, Latency};

/// What is offered.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Events per second, alarms included, of all publishers together.
    pub rate: f64,
    /// For how long.
    pub seconds: f64,
    /// Connections that publish ordinary events; alarms have another one.
    pub publishers: usize,
    /// Every so manyth event is an alarm.
    pub alarm_every: u64,
}

/// How long deliveries may come after the last answer.
const LINGER: Duration = Duration::from_secs(2);
/// How long answers may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Offers events to a broker whose subscribers are all on these sockets, and checks that each accepted event came to whom it
/// concerns, and no refused one to anybody.
///
/// # Errors
/// When an event is missing or should not have come, an answer is neither `ok` nor 429, or a connection breaks.
pub async fn measure(
    broker: SocketAddr,
    scenario: &Arc<Scenario>,
    sockets: &mut Vec<Socket>,
    offer: Offer,
) -> anyhow::Result<Figures> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some millions")]
    let count = (offer.rate * offer.seconds) as u64;
    let outcomes = Arc::new(Outcomes::new(count, offer.alarm_every)?);
    let (over, is_over) = watch::channel(());
    let mut readers = JoinSet::new();
    for (subscriber, socket) in sockets.drain(..).enumerate() {
        readers.spawn(read(socket, subscriber, Arc::clone(&outcomes), is_over.clone()));
    }
    let mut publishing = JoinSet::new();
    let start = Instant::now() + Duration::from_millis(100);
    for publisher in 0..=offer.publishers {
        let (scenario, outcomes) = (Arc::clone(scenario), Arc::clone(&outcomes));
        let socket = socket::open(broker, &format!("publisher-{publisher}")).await?;
        let (sink, stream) = socket.split();
        // The last one publishes the alarms.
        let is_own = move |number: u64| match number.is_multiple_of(offer.alarm_every) {
            true => publisher == offer.publishers,
            false => number % offer.publishers as u64 == publisher as u64,
        };
        let own_count = (0..count).filter(|number| is_own(*number)).count();
        publishing.spawn(answers(stream, own_count, Arc::clone(&outcomes)));
        publishing.spawn_blocking(move || {
            tokio::runtime::Handle::current().block_on(async move {
                let mut sink = sink;
                for number in (0..count).filter(|number| is_own(*number)) {
                    let due = start + Duration::from_secs_f64(number as f64 / offer.rate);
                    let early = due.saturating_duration_since(Instant::now());
                    if !early.is_zero() {
                        sink.flush().await?;
                        // The runtime's timers only know whole milliseconds.
                        std::thread::sleep(early);
                    }
                    outcomes.sent(number, due);
                    let frame = frame(&scenario, number, number.is_multiple_of(offer.alarm_every));
                    sink.feed(Message::text(frame)).await?;
                }
                sink.flush().await?;
                anyhow::Ok(())
            })
        });
    }
    let published = async {
        while let Some(ended) = publishing.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE + Duration::from_secs_f64(offer.seconds), published).await??;
    let seconds = start.elapsed().as_secs_f64();
    outcomes.wait_for_all(scenario, PATIENCE).await;
    tokio::time::sleep(LINGER.min(Duration::from_secs_f64(offer.seconds))).await;
    drop(over);
    let mut back: Vec<(usize, Socket)> = Vec::new();
    while let Some(reader) = tokio::time::timeout(PATIENCE, readers.join_next()).await? {
        back.push(reader??);
    }
    back.sort_unstable_by_key(|(subscriber, _)| *subscriber);
    sockets.extend(back.into_iter().map(|(_, socket)| socket));
    outcomes.check(scenario)?;
    Ok(outcomes.figures(offer, seconds))
}

fn frame(scenario: &Scenario, number: u64, is_alarm: bool) -> String {
    let mut event = String::new();
    scenario.write_event(number, &mut event);
    if is_alarm {
        event = event.replacen('{', r#"{"priority":"alarm","#, 1);
    }
    format!(r#"{{"op":"publish","ref":{number},"event":{event}}}"#)
}

/// Reads what comes to a subscriber until it is over, and gives its socket back.
async fn read(
    mut socket: Socket,
    subscriber: usize,
    outcomes: Arc<Outcomes>,
    mut is_over: watch::Receiver<()>,
) -> anyhow::Result<(usize, Socket)> {
    loop {
        let message = tokio::select! {
            message = socket.next() => message,
            _ = is_over.changed() => return Ok((subscriber, socket)),
        };
        let Some(message) = message else { bail!("subscriber {subscriber} was cut off") };
        let Message::Text(text) = message? else { continue };
        match event_id(&text) {
            Some(number) => outcomes.delivered(number, subscriber),
            None => bail!("subscriber {subscriber} was told {text}"),
        }
    }
}

/// Takes the answers of a publisher.
async fn answers(
    mut stream: SplitStream<Socket>,
    count: usize,
    outcomes: Arc<Outcomes>,
) -> anyhow::Result<()> {
    for _ in 0..count {
        let text = loop {
            match stream.next().await {
                Some(Ok(Message::Text(text))) => break text,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("the broker closed a publisher's connection"),
            }
        };
        let number = |rest: &str| rest[..rest.find([',', '}']).unwrap_or(0)].parse::<u64>();
        if let Some(rest) = text.strip_prefix(r#"{"op":"ok","ref":"#) {
            outcomes.accepted(number(rest)?);
        } else {
            let refused = text.strip_prefix(r#"{"op":"problem","ref":"#);
            ensure!(text.contains(r#""status":429"#), "an event was answered {text}");
            outcomes.refused(number(refused.unwrap_or_default())?);
        }
    }
    Ok(())
}
