//! The whole broker on the machine's cores: one publisher connection, thousands of subscribers with a socket
//! each, about ten deliveries an event. How many events a second, how late, at what cost in processor and memory?
//!
//! The broker is a process of its own, driven from outside, and the load comes from this one: they share the
//! machine, so what is printed is what both together reach. Every event's set of receivers is compared with
//! what looking at every pair of event and subscriber says; a difference ends the bench with an error.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use benches::fanout::load::{Load, Phase, events_in, median, spread};
use benches::fanout::process::{self, Broker};
use benches::fanout::publisher::Manner;
use benches::fanout::scenario::Scenario;
use benches::fanout::subscribers::{self, Kept};
use clap::Parser;

/// Data and order of events are the same in every run.
const SEED: u64 = 20_121_203;
/// Deliveries of an event, on average, before circles hang over the edge.
const FAN_OUT: f64 = 10.1;

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
    /// Events per second of the phases that measure latency, comma-separated. A broker that has time to write each
    /// delivery at once saves nothing by writing several together, so it is full long before the rate that
    /// the pipelined phase reaches.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000.0, 2_000.0, 4_000.0, 8_000.0])]
    rates: Vec<f64>,
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
    let broker = Broker::start(&program, &arguments.broker_flag)?;
    eprintln!("broker {} is process {}", broker.address, broker.pid());

    let bare_bytes = settled_bytes(&broker).await?;
    let mut sockets = subscribers::connect(broker.address, arguments.subscribers).await?;
    let idle_bytes = settled_bytes(&broker).await?;
    subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, Kept::No).await?;
    let subscribed_bytes = settled_bytes(&broker).await?;
    let mut bench = Load::new(broker, scenario, sockets, Kept::No)?;
    let pipelined = Manner::Pipelined { window: arguments.window };
    let batches = Manner::Batches { size: arguments.batch };
    let pipelined = bench.saturate(pipelined, arguments.seconds, arguments.runs).await?;
    let batches = bench.saturate(batches, arguments.seconds, arguments.runs).await?;
    let deliveries_per_event = pipelined[0].deliveries as f64 / pipelined[0].events as f64;
    let mut rows = vec![
        (format!("WebSocket, {} under way", arguments.window), pipelined),
        (format!("HTTP, {} a request", arguments.batch), batches),
    ];
    for rate in arguments.rates {
        let mut open_loop = Vec::new();
        for _ in 0..arguments.runs {
            let events = events_in(arguments.seconds, rate);
            open_loop.push(bench.phase(Manner::OpenLoop { rate }, events).await?);
        }
        rows.push((format!("WebSocket, {rate} a second whatever comes"), open_loop));
    }
    let loaded_bytes = settled_bytes(bench.broker()).await?;

    let count = arguments.subscribers as f64;
    let each = |after: u64, before: u64| (after as f64 - before as f64) / count;
    let heading = format!(
        "{} subscribers, a socket each; {:.0} m around each; {:.1} deliveries an event; {} cores; runs: {}",
        arguments.subscribers,
        bench.scenario().radius_m,
        deliveries_per_event,
        std::thread::available_parallelism()?,
        arguments.runs,
    );
    println!("{heading}\n");
    print_phases(&rows);
    println!("\n| resident memory of the broker | MB | bytes for each of the sockets |\n| --- | --- | --- |");
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!("| started | {:.1} | |", megabytes(bare_bytes));
    println!("| idle WebSockets open | {:.1} | {:.0} |", megabytes(idle_bytes), each(idle_bytes, bare_bytes));
    let text = "each with a position and a subscription";
    println!("| {text} | {:.1} | {:.0} |", megabytes(subscribed_bytes), each(subscribed_bytes, bare_bytes));
    println!("| after the load | {:.1} | {:.0} |", megabytes(loaded_bytes), each(loaded_bytes, bare_bytes));
    Ok(())
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
