//! The whole broker on the machine's cores: one publisher connection, thousands of subscribers with a socket
//! each, about ten deliveries an event. How many events a second, how late, at what cost in processor and memory?
//!
//! The broker is a process of its own, driven from outside, and the load comes from this one: they share the
//! machine, so what is printed is what both together reach. Every event's set of receivers is compared with
//! what looking at every pair of event and subscriber says; a difference ends the bench with an error.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use benches::fanout::process::{self, Broker, Cpu};
use benches::fanout::publisher::{self, Manner};
use benches::fanout::scenario::Scenario;
use benches::fanout::subscribers;
use benches::fanout::tally::{EVENTS_MAX, Tally, Verdict};
use clap::Parser;

/// Data and order of events are the same in every run.
const SEED: u64 = 20_121_203;
/// Deliveries of an event, on average, before circles hang over the edge.
const FAN_OUT: f64 = 10.1;
/// Events of a short phase that finds out how many a measured one takes.
const PROBE_EVENTS: u64 = 4_000;
/// How long the last deliveries may take to come without any progress.
const STALL: Duration = Duration::from_secs(10);
/// How long to wait for what should not come.
const LINGER: Duration = Duration::from_millis(300);

/// The whole broker under load, from outside.
#[derive(Debug, Parser)]
struct Arguments {
    /// Subscribers, each with a WebSocket.
    #[arg(long, default_value_t = 10_000)]
    subscribers: usize,
    /// Seconds that a measured phase takes, about.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// How often each phase is measured.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Events under way on the publisher's WebSocket.
    #[arg(long, default_value_t = 1_024)]
    window: usize,
    /// Events of an HTTP request.
    #[arg(long, default_value_t = 1_000)]
    batch: usize,
    /// Events per second of the phase that measures latency; half of what the pipelined phase reached when absent.
    #[arg(long)]
    rate: Option<f64>,
    /// The broker's program; the one beside this program when absent.
    #[arg(long)]
    broker: Option<PathBuf>,
    /// A flag for the broker, such as --broker-flag=--shards=1; may be repeated.
    #[arg(long, allow_hyphen_values = true)]
    broker_flag: Vec<String>,
    /// Small and short, to see that it works.
    #[arg(long)]
    quick: bool,
}

/// What a phase took.
#[derive(Clone, Debug)]
struct Phase {
    events: u64,
    deliveries: u64,
    /// From the first publish to the last delivery.
    seconds: f64,
    broker: Cpu,
    load: Cpu,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

/// What all phases share.
struct Bench {
    broker: Broker,
    scenario: Arc<Scenario>,
    tally: Arc<Tally>,
    next_event: u64,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.subscribers = arguments.subscribers.min(500);
        arguments.seconds = arguments.seconds.min(1.0);
        arguments.runs = 1;
    }
    // One thread reads all sockets. The publisher has another one; the rest of the machine is the broker's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let files_max = process::open_files_max()?;
    ensure!(
        files_max >= arguments.subscribers as u64 + 100,
        "{} sockets need more than the {files_max} open files that this process may have: see `ulimit -n`",
        arguments.subscribers
    );
    let program = match arguments.broker {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
    let tally = Arc::new(Tally::new()?);
    let broker = Broker::start(&program, &arguments.broker_flag)?;
    eprintln!("broker {} is process {}", broker.address, broker.pid());

    let bare_bytes = settled_bytes(&broker).await?;
    let mut sockets = subscribers::connect(broker.address, arguments.subscribers).await?;
    let idle_bytes = settled_bytes(&broker).await?;
    subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m).await?;
    let subscribed_bytes = settled_bytes(&broker).await?;
    let _readers = subscribers::listen(sockets, &tally);

    let mut bench = Bench { broker, scenario, tally, next_event: 0 };
    let pipelined = Manner::Pipelined { window: arguments.window };
    let batches = Manner::Batches { size: arguments.batch };
    let pipelined = bench.saturate(pipelined, arguments.seconds, arguments.runs).await?;
    let batches = bench.saturate(batches, arguments.seconds, arguments.runs).await?;
    let rate = arguments.rate.unwrap_or_else(|| (median(&pipelined, Phase::events_per_s) / 2.0).round());
    let mut open_loop = Vec::new();
    for _ in 0..arguments.runs {
        let events = events_in(arguments.seconds, rate);
        open_loop.push(bench.phase(Manner::OpenLoop { rate }, events).await?);
    }
    let loaded_bytes = settled_bytes(&bench.broker).await?;

    let count = arguments.subscribers as f64;
    let each = |after: u64, before: u64| (after as f64 - before as f64) / count;
    let heading = format!(
        "{} subscribers, a socket each; {:.0} m around each; {:.2} deliveries an event; {} cores; runs: {}",
        arguments.subscribers,
        bench.scenario.radius_m,
        pipelined[0].deliveries as f64 / pipelined[0].events as f64,
        std::thread::available_parallelism()?,
        arguments.runs,
    );
    println!("{heading}\n");
    print_phases(&[
        (format!("WebSocket, {} under way", arguments.window), pipelined),
        (format!("HTTP, {} a request", arguments.batch), batches),
        (format!("WebSocket, {rate:.0} a second whatever comes"), open_loop),
    ]);
    println!("\n| resident memory of the broker | MB | bytes for each of the sockets |\n| --- | --- | --- |");
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!("| started | {:.1} | |", megabytes(bare_bytes));
    println!("| idle WebSockets open | {:.1} | {:.0} |", megabytes(idle_bytes), each(idle_bytes, bare_bytes));
    let text = "each with a position and a subscription";
    println!("| {text} | {:.1} | {:.0} |", megabytes(subscribed_bytes), each(subscribed_bytes, bare_bytes));
    println!("| after the load | {:.1} | {:.0} |", megabytes(loaded_bytes), each(loaded_bytes, bare_bytes));
    Ok(())
}

/// How many events that time takes, as many as one phase can count.
fn events_in(seconds: f64, per_s: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float that is clamped to some millions fits")]
    let events = (seconds * per_s).round().clamp(1.0, EVENTS_MAX as f64) as u64;
    events
}

/// Resident memory, once it stands still.
async fn settled_bytes(broker: &Broker) -> anyhow::Result<u64> {
    let mut last = broker.resident_bytes()?;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = broker.resident_bytes()?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last)
}

impl Bench {
    /// As many events as go in about that time, after a probe that also warms everything up.
    async fn saturate(&mut self, manner: Manner, seconds: f64, runs: usize) -> anyhow::Result<Vec<Phase>> {
        let mut probe = self.phase(manner, PROBE_EVENTS).await?;
        probe = self.phase(manner, events_in(seconds / 5.0, probe.events_per_s())).await?;
        let mut phases = Vec::new();
        for _ in 0..runs {
            phases.push(self.phase(manner, events_in(seconds, probe.events_per_s())).await?);
        }
        Ok(phases)
    }

    /// Publishes events, waits for their deliveries, and checks them.
    async fn phase(&mut self, manner: Manner, events: u64) -> anyhow::Result<Phase> {
        let events: Range<u64> = self.next_event..self.next_event + events;
        self.next_event = events.end;
        self.tally.begin(&events);
        let (broker_before, load_before) = (self.broker.cpu()?, process::own_cpu()?);
        let started = Instant::now();
        let address = self.broker.address;
        let (scenario, tally, numbers) =
            (Arc::clone(&self.scenario), Arc::clone(&self.tally), events.clone());
        tokio::task::spawn_blocking(move || publisher::publish(address, manner, &scenario, numbers, &tally))
            .await?
            .with_context(|| format!("publishing {manner:?}"))?;
        let expected = self.scenario.deliveries(events.clone());
        let came = self.wait_for(expected).await;
        let seconds = self.tally.last().saturating_duration_since(started).as_secs_f64();
        let (broker, load) =
            (self.broker.cpu()?.since(broker_before), process::own_cpu()?.since(load_before));
        tokio::time::sleep(LINGER).await;
        let verdict = self.tally.verdict(&self.scenario, events.clone());
        ensure!(
            came && verdict == Verdict::default(),
            "{manner:?}: {} deliveries of {expected}: {verdict:?}",
            self.tally.deliveries()
        );
        let latency_us = self.tally.latency_us();
        let ms = |quantile| latency_us.value_at_quantile(quantile) as f64 / 1_000.0;
        let phase = Phase {
            events: events.end - events.start,
            deliveries: expected,
            seconds,
            broker,
            load,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: latency_us.max() as f64 / 1_000.0,
        };
        eprintln!("{manner:?}: {:.0} events/s, {phase:?}", phase.events_per_s());
        Ok(phase)
    }

    /// Whether all deliveries came; gives up when none does for a while.
    async fn wait_for(&self, expected: u64) -> bool {
        let mut progress = (self.tally.deliveries(), Instant::now());
        while progress.0 < expected && progress.1.elapsed() < STALL {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let deliveries = self.tally.deliveries();
            if deliveries != progress.0 {
                progress = (deliveries, Instant::now());
            }
        }
        progress.0 >= expected
    }
}

impl Phase {
    fn events_per_s(&self) -> f64 {
        self.events as f64 / self.seconds
    }

    fn deliveries_per_s(&self) -> f64 {
        self.deliveries as f64 / self.seconds
    }
}

fn print_phases(rows: &[(String, Vec<Phase>)]) {
    println!(
        "| published over | events/s | deliveries/s | p50 ms | p99 ms | p99.9 ms | max ms | broker, cores (user + system) | load, cores | broker, us an event |"
    );
    println!("|{}", " --- |".repeat(10));
    for (name, phases) in rows {
        let columns = [
            spread(phases, 0, Phase::events_per_s),
            spread(phases, 0, Phase::deliveries_per_s),
            spread(phases, 2, |phase| phase.p50_ms),
            spread(phases, 2, |phase| phase.p99_ms),
            spread(phases, 2, |phase| phase.p999_ms),
            spread(phases, 1, |phase| phase.max_ms),
            format!(
                "{:.2} ({:.2} + {:.2})",
                median(phases, |phase| phase.broker.total_s() / phase.seconds),
                median(phases, |phase| phase.broker.user_s / phase.seconds),
                median(phases, |phase| phase.broker.system_s / phase.seconds),
            ),
            spread(phases, 2, |phase| phase.load.total_s() / phase.seconds),
            spread(phases, 1, |phase| 1e6 * phase.broker.total_s() / phase.events as f64),
        ];
        println!("| {name} | {} |", columns.join(" | "));
    }
}

/// The median, and the least and the largest where there are several.
fn spread(phases: &[Phase], digits: usize, of: impl Fn(&Phase) -> f64 + Copy) -> String {
    let figures = || phases.iter().map(of);
    let median = median(phases, of);
    if phases.len() < 2 {
        return format!("{median:.digits$}");
    }
    let (least, most) = (figures().fold(f64::INFINITY, f64::min), figures().fold(0.0, f64::max));
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

fn median(phases: &[Phase], of: impl Fn(&Phase) -> f64) -> f64 {
    let mut figures: Vec<f64> = phases.iter().map(of).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
