//! What clients that mean harm cost the others: polite subscribers and a polite publisher at a steady rate, far below what the broker
//! can do, in rounds of phases without harm, with harm to another broker beside it, and with harm to this one.
//!
//! The broker is a process of its own. The polite share a thread of this process for reading and have one for publishing; those that mean harm
//! have one more. All share the machine: where it has few cores, what harm costs is what its own work takes from the broker, too.
//! Every event's set of receivers is compared with what looking at every pair of event and subscriber says; a difference ends the bench with an
//! error, and so does a broker that grows beyond its bound.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use benches::fanout::load::{Load, events_in};
use benches::fanout::process::{self, Broker};
use benches::fanout::scenario::Scenario;
use benches::fanout::subscribers::{self, Kept};
use benches::hostile::harm::Kind;
use benches::hostile::measure::{self, Figures, Plan};
use clap::Parser;
use serde_json::json;

/// Data and order of events are the same in every run.
const SEED: u64 = 20_121_207;
/// Deliveries of an event, on average, before circles hang over the edge.
const FAN_OUT: f64 = 10.1;

/// What clients that mean harm cost the others.
#[derive(Debug, Parser)]
struct Arguments {
    /// Polite subscribers, each with a WebSocket.
    #[arg(long, default_value_t = 500)]
    subscribers: usize,
    /// Events per second.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Rounds of three phases: without harm, with harm to a broker beside it, with harm to the broker.
    #[arg(long, default_value_t = 24)]
    rounds: usize,
    /// Seconds of a phase.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Which kinds of harm; all of them when absent.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// The broker's program; the one beside this program when absent.
    #[arg(long)]
    broker: Option<PathBuf>,
    /// A flag for the broker, such as --broker-flag=--shards=1; may be repeated.
    #[arg(long, allow_hyphen_values = true)]
    broker_flag: Vec<String>,
    /// Where the figures go as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Small and short, to see that it works.
    #[arg(long)]
    quick: bool,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.subscribers = arguments.subscribers.min(100);
        arguments.rate = arguments.rate.min(200.0);
        arguments.rounds = arguments.rounds.min(2);
        arguments.seconds = arguments.seconds.min(0.3);
    }
    // One thread reads all polite sockets.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let kinds = if arguments.only.is_empty() { Kind::ALL.to_vec() } else { arguments.only.clone() };
    let clients = kinds.iter().map(|kind| kind.clients(arguments.quick)).max().unwrap_or(0);
    let files_max = process::open_files_max()?;
    ensure!(
        files_max >= (clients + arguments.subscribers + 200) as u64,
        "{clients} connections need more than the {files_max} open files that this process may have: see `ulimit -n`"
    );
    let program = match &arguments.broker {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    let cores = std::thread::available_parallelism()?;
    println!(
        "{} polite subscribers, {} events a second, {} rounds of three times {} s; {cores} cores\n",
        arguments.subscribers, arguments.rate, arguments.rounds, arguments.seconds
    );
    println!("{}\n|{}", Figures::HEADING, " --- |".repeat(11));
    let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
    let mut documents = Vec::new();
    for kind in kinds {
        // Each has a broker of its own, so that none inherits what another left.
        let broker = Broker::start(&program, &arguments.broker_flag)?;
        let bystander = Broker::start(&program, &arguments.broker_flag)?;
        let mut sockets = subscribers::connect(broker.address, arguments.subscribers).await?;
        subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, Kept::No).await?;
        let mut load = Load::new(broker, Arc::clone(&scenario), sockets, Kept::No)?;
        let plan = Plan {
            rounds: arguments.rounds,
            events: events_in(arguments.seconds, arguments.rate),
            rate: arguments.rate,
            clients: kind.clients(arguments.quick),
        };
        let figures =
            measure::measure(&mut load, &bystander, kind, plan).await.with_context(|| kind.name())?;
        println!("{}", figures.told());
        documents.push(figures.document());
    }
    if let Some(path) = arguments.json {
        let document = json!({"cores": cores, "subscribers": arguments.subscribers, "kinds": documents});
        std::fs::write(path, format!("{document:#}\n"))?;
    }
    Ok(())
}
