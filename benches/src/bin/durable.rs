//! What durability costs, how long a start takes that has a million matches to bring back, and what readers that never read
//! do to the others.
//!
//! Three brokers take turns in one run, each a process of its own that shares the machine with the load: in memory, with a
//! data directory for subscriptions that are not durable, and with one for durable subscriptions. Every event's set of
//! receivers is compared with what looking at every pair says; a difference ends the bench with an error.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::ensure;
use benches::durable::recovery;
use benches::durable::stalled;
use benches::fanout::load::{Load, Phase, events_in, spread};
use benches::fanout::process::{self, Broker};
use benches::fanout::publisher::Manner;
use benches::fanout::scenario::Scenario;
use benches::fanout::subscribers::{self, Kept};
use clap::Parser;

/// Data and order of events are the same in every run.
const SEED: u64 = 20_121_206;
/// Deliveries of an event, on average, before circles hang over the edge.
const FAN_OUT: f64 = 10.1;
/// Deliveries that a durable subscriber takes before it acknowledges them.
const ACK_EVERY: u64 = 100;

/// What durability costs.
#[derive(Debug, Parser)]
struct Arguments {
    /// Subscribers, each with a WebSocket.
    #[arg(long, default_value_t = 2_000)]
    subscribers: usize,
    /// Seconds that a measured phase takes, about.
    #[arg(long, default_value_t = 5.0)]
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
    /// Events per second of the phases that measure latency.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Pairs of phases without and with sockets that never read.
    #[arg(long, default_value_t = 24)]
    pairs: usize,
    /// Seconds of such a pair in which events are published.
    #[arg(long, default_value_t = 2.0)]
    pair_seconds: f64,
    /// Matches that are kept when the broker is killed, to be there again after its start.
    #[arg(long, default_value_t = 1_000_000)]
    kept: u64,
    /// The broker's program; the one beside this program when absent.
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Where data directories are made: on the disk that is to be measured.
    #[arg(long, default_value = ".")]
    data: PathBuf,
    /// What is measured; all of it when absent.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Small and short, to see that it works.
    #[arg(long)]
    quick: bool,
}

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Events a second, as many as go.
    Rate,
    /// Latency at a given rate.
    Latency,
    /// What readers that never read do to the others.
    Stalled,
    /// A start with a million matches to bring back.
    Recovery,
}

/// A broker that takes its turn.
struct Contender {
    name: &'static str,
    load: Load,
    /// Removed with it.
    _data: Option<tempfile::TempDir>,
}

impl Arguments {
    fn asks_for(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.subscribers = arguments.subscribers.min(200);
        arguments.seconds = arguments.seconds.min(0.5);
        arguments.runs = 1;
        arguments.pairs = arguments.pairs.min(2);
        arguments.kept = arguments.kept.min(10_000);
    }
    // One thread reads all sockets. The publisher has another one; the rest of the machine is the broker's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let sockets_count = arguments.subscribers as u64 * 3;
    let files_max = process::open_files_max()?;
    ensure!(
        files_max >= sockets_count + 100,
        "{sockets_count} sockets need more than the {files_max} open files that this process may have: see `ulimit -n`"
    );
    let program = match &arguments.broker {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    if arguments.asks_for(Part::Rate) || arguments.asks_for(Part::Latency) {
        cost(&arguments, &program).await?;
    }
    if arguments.asks_for(Part::Stalled) {
        stalled_readers(&arguments, &program).await?;
    }
    if arguments.asks_for(Part::Recovery) {
        let figures = recovery::measure(&program, &arguments.data, arguments.kept).await?;
        println!("\n## Recovery\n\n{figures}");
    }
    Ok(())
}

/// Brokers in memory and on disk under the same load, in turns.
async fn cost(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
    let durable = Kept::UntilAcknowledged { every: ACK_EVERY };
    let mut contenders = Vec::new();
    for (name, on_disk, kept) in [
        ("in memory", false, Kept::No),
        ("data directory, subscriptions not durable", true, Kept::No),
        ("data directory, durable subscriptions", true, durable),
    ] {
        let (broker, data) = start(program, on_disk.then_some(&arguments.data), &[])?;
        let mut sockets = subscribers::connect(broker.address, arguments.subscribers).await?;
        subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, kept).await?;
        let load = Load::new(broker, Arc::clone(&scenario), sockets, kept)?;
        contenders.push(Contender { name, load, _data: data });
    }
    println!(
        "{} subscribers, a socket each; {:.1} deliveries an event; {} cores; runs: {}; every broker in turn\n",
        arguments.subscribers,
        scenario.deliveries(0..4_096) as f64 / 4_096.0,
        std::thread::available_parallelism()?,
        arguments.runs,
    );
    println!("## Cost\n");
    println!("| published over | broker | events/s | of in memory | p50 ms | p99 ms | broker, us an event |");
    println!("|{}", " --- |".repeat(7));
    let manners = [
        (
            format!("WebSocket, {} under way", arguments.window),
            Manner::Pipelined { window: arguments.window },
        ),
        (format!("HTTP, {} a request", arguments.batch), Manner::Batches { size: arguments.batch }),
        (
            format!("WebSocket, {} a second whatever comes", arguments.rate),
            Manner::OpenLoop { rate: arguments.rate },
        ),
    ];
    for (manner_name, manner) in manners {
        let is_paced = matches!(manner, Manner::OpenLoop { .. });
        if !arguments.asks_for(if is_paced { Part::Latency } else { Part::Rate }) {
            continue;
        }
        let phases = take_turns(&mut contenders, manner, arguments).await?;
        let in_memory = &phases[0];
        for (contender, phases) in contenders.iter().zip(&phases) {
            let ratios = phases
                .iter()
                .zip(in_memory)
                .map(|(phase, in_memory)| format!("{:.2}", phase.events_per_s() / in_memory.events_per_s()));
            let columns = [
                spread(phases, 0, Phase::events_per_s),
                ratios.collect::<Vec<_>>().join(", "),
                spread(phases, 2, |phase| phase.p50_ms),
                spread(phases, 2, |phase| phase.p99_ms),
                spread(phases, 1, |phase| 1e6 * phase.broker.total_s() / phase.events as f64),
            ];
            println!("| {manner_name} | {} | {} |", contender.name, columns.join(" | "));
        }
    }
    Ok(())
}

/// Measures everybody once, then once more, and so on, so that what disturbs the machine disturbs all.
async fn take_turns(
    contenders: &mut [Contender],
    manner: Manner,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Vec<Phase>>> {
    let mut phases = contenders.iter().map(|_| Vec::new()).collect::<Vec<_>>();
    for _ in 0..arguments.runs {
        for (contender, phases) in contenders.iter_mut().zip(&mut phases) {
            let phase = match manner {
                Manner::OpenLoop { rate } => {
                    contender.load.phase(manner, events_in(arguments.seconds, rate)).await?
                }
                Manner::Pipelined { .. } | Manner::Batches { .. } => {
                    let mut measured = contender.load.saturate(manner, arguments.seconds, 1).await?;
                    measured.remove(0)
                }
            };
            phases.push(phase);
        }
    }
    Ok(phases)
}

/// The others' latencies without and with sockets that never read, in memory and durable.
async fn stalled_readers(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    println!("\n## Stalled readers");
    let settings = tempfile::NamedTempFile::new()?;
    std::fs::write(settings.path(), format!("[outbox]\nbytes = {}\n", stalled::OUTBOX_BYTES))?;
    let settings = ["--config".to_owned(), settings.path().display().to_string()];
    for (name, kept) in [("in memory", Kept::No), ("durable", Kept::UntilAcknowledged { every: ACK_EVERY })] {
        let durable = kept != Kept::No;
        let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
        let (broker, _data) = start(program, durable.then_some(&arguments.data), &settings)?;
        let mut sockets = subscribers::connect(broker.address, arguments.subscribers).await?;
        subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, kept).await?;
        let mut load = Load::new(broker, scenario, sockets, kept)?;
        let plan = stalled::Plan {
            pairs: arguments.pairs,
            events: events_in(arguments.pair_seconds / 2.0, arguments.rate),
            rate: arguments.rate,
            stalled: arguments.subscribers / 9,
            durable,
        };
        let figures = stalled::measure(&mut load, plan).await?;
        println!("\nSubscriptions {name}, {} pairs of {} events:\n", plan.pairs, 2 * plan.events);
        println!("{}", figures.told());
    }
    Ok(())
}

/// A broker with some flags, with a data directory below a folder or in memory.
fn start(
    program: &Path,
    data: Option<&PathBuf>,
    flags: &[String],
) -> anyhow::Result<(Broker, Option<tempfile::TempDir>)> {
    let data = data.map(tempfile::TempDir::new_in).transpose()?;
    let of_data = data.iter().flat_map(|data| ["--data".to_owned(), data.path().display().to_string()]);
    let flags = flags.iter().cloned().chain(of_data).collect::<Vec<_>>();
    Ok((Broker::start(program, &flags)?, data))
}
