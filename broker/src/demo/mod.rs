//! `nearcast demo`: real vehicles against a real broker, with every delivery checked.
//!
//! The broker runs in the same process, but all that the demo knows of it goes through sockets: each taxi has a
//! WebSocket of its own, over which it subscribes, says where it is, and gets what is near. A publisher sends the
//! reports as events. Meanwhile the oracle (`scan`) sees the same moves and events and says who should have got what.
//!
//! Order is what makes that possible. The reports that are due go in waves: their taxis move, and once the broker has
//! answered all of that, the reports are published, and only once that is answered comes the next wave. So each event
//! meets the positions that the oracle saw before it, and no others. A report that a busy broker refuses goes with the wave
//! that comes a second later.
//!
//! A report's time is when it is due, so that taxis that are replayed thirty times faster than life drive thirty times as fast. A check of the
//! broker's (`check`) compares reports by these times, with a limit that is as many times higher.

mod check;
mod display;
mod fleet;
mod oracle;
mod replay;
pub(crate) mod roads;
mod socket;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use matcher::event::Event;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, DEMO_ROADS};
use display::{Progress, Summary};
use fleet::{Role, WORLD};
use oracle::{FACTS_MAX, Fact, Figures, Oracle};
use replay::{Due, Recording, Report};
use socket::{Answer, Client, Outcome, PAUSE};

/// Where the broker listens, unless somebody else does.
const LISTEN: &str = "127.0.0.1:7070";

/// Reports of one wave, at most. A replay that keeps up has waves of one or two.
const WAVE_MAX: usize = 64;

/// How long an answer, the last deliveries, and then the goodbyes of the broker may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the pages say of all that they show: the day of the recording.
const NOTICE: &str = "Replay of 26 October 2007";

/// Choices of the phone page.
const INTERESTS: &str = "Slow traffic: speed_kmh < 10 AND status = 'hired'\nFast taxis: speed_kmh >= 80\nFree taxis: status = 'free'";

/// What the demo can be told.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArguments {
    /// How long to replay, such as 20s or 2m; over and over until ctrl-C when absent.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// How many times faster than it happened.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = parse_speed)]
    pub speed: f64,
    /// Loopback address and port to listen on; 127.0.0.1:7070 when absent, or another port where that is taken.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

/// A time on the command line, such as `20s`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let time: jiff::SignedDuration =
        text.parse().map_err(|_| "a time is a number and a unit, such as 20s or 2m")?;
    Duration::try_from(time).map_err(|_| "a time is not negative".to_owned())
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if speed > 0.0 && f64::is_finite(speed) => Ok(speed),
        Ok(_) | Err(_) => Err("a speed is a number above 0".to_owned()),
    }
}

/// Runs the demo until its time is up or somebody stops it. The exit code says whether every delivery was right.
///
/// # Errors
/// When the broker cannot be started or gives an answer that no client would accept.
pub async fn run(arguments: DemoArguments) -> anyhow::Result<ExitCode> {
    let listener = listen(arguments.listen.as_deref()).await?;
    let summary = perform(listener, Config::default(), &arguments).await?;
    println!("{summary}");
    Ok(if summary.figures.exact() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a broker with these settings, replays against it, and checks what came.
async fn perform(
    listener: TcpListener,
    mut config: Config,
    arguments: &DemoArguments,
) -> anyhow::Result<Summary> {
    let recording = Recording::embedded()?;
    let broker = listener.local_addr()?;
    config.server.listen = broker.to_string();
    config.console.base_map = DEMO_ROADS.to_owned();
    config.console.object = "taxi_id".to_owned();
    config.console.interests = INTERESTS.to_owned();
    config.console.notice = NOTICE.to_owned();
    let shutdown = CancellationToken::new();
    let mut server = tokio::spawn(crate::run(listener, config, shutdown.clone()));

    let (facts, inbox) = mpsc::channel(FACTS_MAX);
    let cast = Cast::of(&recording);
    let oracle = Oracle::new(&cast.roles, cast.operator_idx)?;
    let oracle = tokio::task::spawn_blocking(move || oracle.watch(inbox));
    println!("nearcast listens on {broker}; {} clients connect", cast.roles.len());
    let (mut sockets, progress) = (JoinSet::new(), Progress::default());
    let replayed = tokio::select! {
        replayed = async {
            let speakers = cast.connect(broker, &facts, &progress, &mut sockets).await?;
            check::put(broker, arguments.speed).await.context("the check")?;
            display::links(broker, arguments.speed);
            let stage =
                Stage { broker, recording: &recording, speakers, facts, progress: progress.clone(), begun_at: Timestamp::now(), next_number: 1 };
            stage.replay(arguments, &mut sockets).await
        } => replayed,
        ended = &mut server => anyhow::bail!("the broker stopped: {ended:?}"),
    };
    // The broker says goodbye once all is written, so nothing that it might still send is missed. It does so after a fault,
    // too: somebody else may have asked it something.
    shutdown.cancel();
    let stopped = server.await?;
    let elapsed = replayed?;
    stopped.context("the broker")?;
    let figures =
        tokio::time::timeout(PATIENCE, farewell(sockets, oracle)).await.context("the goodbyes")??;
    Ok(Summary { figures, elapsed, speed: arguments.speed, progress })
}

/// The address that is asked for; else the usual port, or another one if that is taken.
async fn listen(asked: Option<&str>) -> anyhow::Result<TcpListener> {
    if let Some(asked) = asked {
        let listener = TcpListener::bind(asked).await.with_context(|| format!("cannot listen on {asked}"))?;
        let is_loopback = listener.local_addr()?.ip().is_loopback();
        anyhow::ensure!(
            is_loopback,
            "the demo asks nobody for a token, and listens on loopback alone: {asked} is not"
        );
        return Ok(listener);
    }
    match TcpListener::bind(LISTEN).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            println!("{LISTEN} is taken, another port has to do");
            Ok(TcpListener::bind("127.0.0.1:0").await?)
        }
        listener => listener.with_context(|| format!("listening on {LISTEN}")),
    }
}

/// Waits for ctrl-C or SIGTERM.
async fn stop() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// Waits until every expected delivery has come, as long as there is hope.
async fn settle(facts: &mpsc::Sender<Fact>) {
    let (settled, all_came) = oneshot::channel();
    if facts.send(Fact::Ended { settled }).await.is_ok() {
        // What has not come by then is counted as missing.
        let _ = tokio::time::timeout(PATIENCE, all_came).await;
    }
}

/// Waits for the sockets to be closed and the check to end.
async fn farewell(
    mut sockets: JoinSet<anyhow::Result<()>>,
    oracle: tokio::task::JoinHandle<anyhow::Result<Figures>>,
) -> anyhow::Result<Figures> {
    while let Some(ended) = sockets.join_next().await {
        ended??;
    }
    oracle.await?
}

/// Everybody who takes part. A role's index is its client's number: taxis come first, as in the recording.
struct Cast {
    roles: Vec<Arc<Role>>,
    operator_idx: u32,
}

impl Cast {
    fn of(recording: &Recording) -> Self {
        let taxis = recording.taxis.iter().map(|number| fleet::taxi(*number));
        let others = [fleet::operator(), fleet::publisher()].into_iter().chain(fleet::places());
        let roles: Vec<_> = taxis.chain(others).map(Arc::new).collect();
        let operator_idx = u32::try_from(recording.taxis.len()).expect("a recording has a few hundred taxis");
        Self { roles, operator_idx }
    }

    /// Connects everybody. All who only listen are left to their tasks; the taxis and, after the operator, the
    /// publisher are kept to speak.
    async fn connect(
        &self,
        broker: SocketAddr,
        facts: &mpsc::Sender<Fact>,
        progress: &Progress,
        tasks: &mut JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<Speakers> {
        let mut clients = Vec::with_capacity(self.roles.len());
        for (client_idx, role) in (0_u32..).zip(&self.roles) {
            let role = Arc::clone(role);
            clients.push(Client::connect(broker, role, client_idx, facts.clone(), progress, tasks).await?);
        }
        let publisher = clients.swap_remove(self.operator_idx as usize + 1);
        clients.truncate(self.operator_idx as usize);
        Ok(Speakers { taxis: clients, publisher })
    }
}

/// The clients that say something.
struct Speakers {
    taxis: Vec<Client>,
    publisher: Client,
}

/// The tools of the replay.
struct Stage<'a> {
    broker: SocketAddr,
    recording: &'a Recording,
    speakers: Speakers,
    facts: mpsc::Sender<Fact>,
    progress: Progress,
    /// When the replay begins.
    begun_at: Timestamp,
    /// Number of the next event. One that is refused is sent again under another number: numbers come in their order.
    next_number: u64,
}

impl Stage<'_> {
    /// Replays, and waits for what is to come of it; says how long it replayed.
    async fn replay(
        mut self,
        arguments: &DemoArguments,
        sockets: &mut JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<Duration> {
        let done = CancellationToken::new();
        let display = tokio::spawn(display::show(self.facts.clone(), self.progress.clone(), done.clone()));
        let started = Instant::now();
        let played = tokio::select! {
            played = self.play(arguments.speed, started, arguments.duration) => played,
            Some(broken) = sockets.join_next() => Err(anyhow::anyhow!("a client was cut off: {broken:?}")),
        };
        let elapsed = started.elapsed();
        done.cancel();
        display.await?;
        played?;
        settle(&self.facts).await;
        check::settle(self.broker, &self.facts).await.context("the check")?;
        Ok(elapsed)
    }

    /// Replays, round after round, until the time is up or somebody stops it. It ends between two waves, so
    /// that the oracle knows of all that was sent.
    async fn play(&mut self, speed: f64, started: Instant, duration: Option<Duration>) -> anyhow::Result<()> {
        let recording = self.recording;
        let end = duration.unwrap_or(Duration::MAX);
        let mut stopped = std::pin::pin!(stop());
        let mut reports = recording.rounds(speed).peekable();
        let mut wave = Vec::with_capacity(WAVE_MAX);
        while let Some(&Due { after, .. }) = reports.peek() {
            // What was refused is in the wave still.
            let next = if wave.is_empty() { after } else { started.elapsed() + PAUSE };
            let wait = next.min(end).saturating_sub(started.elapsed());
            tokio::select! {
                biased;
                stopped = &mut stopped => return stopped,
                () = tokio::time::sleep(wait) => {}
            }
            let elapsed = started.elapsed();
            if elapsed >= end {
                break;
            }
            self.progress.set_behind(elapsed.saturating_sub(after));
            while wave.len() < WAVE_MAX
                && let Some(due) = reports.next_if(|due| due.after <= elapsed)
            {
                wave.push(due);
            }
            wave = self.surge(&wave).await?;
        }
        Ok(())
    }

    /// Moves the taxis, then publishes what they reported. Returns the reports of which the broker has refused either.
    async fn surge<'r>(&mut self, wave: &[Due<'r>]) -> anyhow::Result<Vec<Due<'r>>> {
        let mut moves = Vec::with_capacity(wave.len());
        for Due { report: Report { taxi_idx, lon, lat, .. }, .. } in wave {
            let coordinates = vec![*lon, *lat];
            let frame = |reference| {
                let (track, accuracy_m, time) = (Vec::new(), None, None);
                wire::ClientFrame::Move { reference, coordinates, track, accuracy_m, time }
            };
            moves.push(self.speakers.taxis[*taxi_idx].ask(frame).await?);
        }
        let (mut moved, mut refused) = (Vec::with_capacity(wave.len()), Vec::new());
        for (answer, due) in moves.into_iter().zip(wave) {
            if !self.is_done(answer).await? {
                refused.push(*due);
                continue;
            }
            let Report { taxi_idx, lon, lat, .. } = *due.report;
            let (client_idx, position) = (u32::try_from(taxi_idx)?, WORLD.position(&[lon, lat])?);
            self.tell(Fact::Moved { client_idx, position }).await?;
            moved.push(*due);
        }
        let mut published = Vec::with_capacity(moved.len());
        for due in &moved {
            published.push(self.publish(due).await?);
        }
        for ((answer, fact), due) in published.into_iter().zip(moved) {
            if self.is_done(answer).await? {
                self.tell(fact).await?;
            } else {
                refused.push(due);
            }
        }
        Ok(refused)
    }

    /// Waits for an answer. A request that was refused for now is counted.
    async fn is_done(&self, answer: Answer) -> anyhow::Result<bool> {
        let outcome = answer.wait().await?;
        if let Outcome::Busy(title) = &outcome {
            self.progress.refused(title);
        }
        Ok(matches!(outcome, Outcome::Done))
    }

    /// Publishes what a taxi reported; the fact is one once the broker has answered.
    async fn publish(&mut self, due: &Due<'_>) -> anyhow::Result<(Answer, Fact)> {
        let number = self.next_number;
        self.next_number += 1;
        let Report { taxi_idx, lon, lat, speed_kmh, .. } = *due.report;
        let status = due.report.status();
        let position = WORLD.position(&[lon, lat])?;
        let taxi_id = self.recording.taxis[taxi_idx];
        let mut properties = serde_json::Map::new();
        properties.insert("taxi_id".to_owned(), json!(taxi_id));
        properties.insert("speed_kmh".to_owned(), json!(speed_kmh));
        properties.insert("status".to_owned(), json!(status));
        let mut feature = wire::Feature::at([lon, lat], properties);
        feature.id = Some(socket::id_of(number).into());
        feature.time = Some(self.begun_at.checked_add(due.after)?.to_string());
        let sent_at = Instant::now();
        let publish = |reference| wire::ClientFrame::Publish {
            reference,
            traceparent: None,
            tracestate: None,
            event: Box::new(feature),
        };
        let answer = self.speakers.publisher.ask(publish).await?;
        let event = Event::at(position)
            .with("taxi_id", f64::from(taxi_id))
            .with("speed_kmh", f64::from(speed_kmh))
            .with("status", status);
        Ok((answer, Fact::Published { number, event: Box::new(event), sent_at }))
    }

    async fn tell(&self, fact: Fact) -> anyhow::Result<()> {
        self.facts.send(fact).await.ok().context("the check is over")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broker refuses most of the events, and some moves, at first.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_a_busy_broker_refuses_is_sent_again_and_every_delivery_is_right() {
        crate::open_files::raise().unwrap();
        let mut config = Config::default();
        config.limits.events_per_second = 20;
        config.limits.moves_per_second = 1;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let arguments = DemoArguments { duration: Some(Duration::from_secs(4)), speed: 300.0, listen: None };
        let summary = perform(listener, config, &arguments).await.unwrap();
        assert!(summary.figures.exact(), "{summary}");
        // More than come at once in the first second.
        assert!(summary.figures.events > 20, "{summary}");
        let said = summary.to_string();
        assert!(said.contains("was busy (too many ") && said.contains("were sent again"), "{said}");
    }

    #[test]
    fn times_and_speeds_are_read_or_refused() {
        assert_eq!(parse_time("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        assert!(parse_time("20").is_err());
        assert!(parse_time("-5s").is_err());
        assert_eq!(parse_speed("0.5"), Ok(0.5));
        assert!(["0", "-1", "inf", "NaN", "fast"].iter().all(|text| parse_speed(text).is_err()));
    }
}
