//! What clients that mean harm cost the others: ordinary subscribers and an ordinary publisher at a steady rate, far below what the broker
//! can do, in rounds of phases without harm, with harm to another broker beside it, and with harm to this one.
//!
//! The broker is a process of its own, and each phase has a fresh one. The ordinary clients share a thread of this process for reading and have
//! one for publishing; those that mean harm have one more. All share the machine: where it has few cores, what harm costs is what its own work
//! takes from the broker, too.
//! Every event's set of receivers is compared with what looking at every pair of event and subscriber says. What is lost or refused, and a
//! broker that grows beyond its bound or ends, are results, and not the end of the bench.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use benches::fanout::load::events_in;
use benches::fanout::process::{self, Broker};
use benches::fanout::scenario::Scenario;
use benches::hostile::attack::Attack;
use benches::hostile::measure::{self, Memory, Plan, Running};
use benches::hostile::report::Report;
use benches::hostile::tokens::Tokens;
use clap::Parser;
use serde_json::json;

/// Data and order of events are the same in every run.
const SEED: u64 = 20_121_207;
/// Deliveries of an event, on average, before circles hang over the edge.
const FAN_OUT: f64 = 10.1;

/// What clients that mean harm cost the others.
#[derive(Debug, Parser)]
struct Arguments {
    /// Ordinary subscribers, each with a WebSocket.
    #[arg(long, default_value_t = 500)]
    subscribers: usize,
    /// Events per second.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Rounds of three phases: without harm, with harm to a broker beside it, with harm to the broker.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of a phase.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Which kinds of harm; all of them when absent.
    #[arg(long, value_parser = Attack::named, value_delimiter = ',')]
    only: Vec<&'static Attack>,
    /// Nobody has to say who they are. Otherwise all have tokens.
    #[arg(long)]
    without_tokens: bool,
    /// Bytes of address space that a broker may take; one that wants more ends. Needs `prlimit`. 0: any number.
    #[arg(long, default_value_t = 5 << 30)]
    memory_bytes: u64,
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
    // One thread reads all ordinary sockets.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(arguments))
}

/// A broker that is a process.
struct Process(Broker);

impl Running for Process {
    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn memory(&self) -> Option<Memory> {
        let (now_bytes, most_bytes) = (self.0.resident_bytes().ok()?, self.0.most_resident_bytes().ok()?);
        Some(Memory { now_bytes, most_bytes })
    }

    fn ended(&mut self) -> Option<String> {
        self.0.ended().ok().flatten().map(|status| status.to_string())
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let attacks = if arguments.only.is_empty() { Attack::all().collect() } else { arguments.only.clone() };
    let clients = attacks.iter().map(|attack| attack.clients.get(arguments.quick)).max().unwrap_or(0);
    let files_max = process::open_files_max()?;
    ensure!(
        files_max >= (clients + arguments.subscribers + 200) as u64,
        "{clients} connections need more than the {files_max} open files that this process may have: see `ulimit -n`"
    );
    let program = match &arguments.broker {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    let tokens = if arguments.without_tokens { None } else { Some(Arc::new(Tokens::new()?)) };
    let mut flags = arguments.broker_flag.clone();
    flags.extend(tokens.iter().flat_map(|tokens| tokens.flags()));
    let start = || {
        let broker = Broker::start_within(&program, &flags, arguments.memory_bytes)?;
        Ok(Box::new(Process(broker)) as Box<dyn Running>)
    };
    let cores = std::thread::available_parallelism()?;
    println!(
        "{} ordinary subscribers, {} events a second, {} rounds of three times {} s; {cores} cores\n",
        arguments.subscribers, arguments.rate, arguments.rounds, arguments.seconds
    );
    println!("{}\n|{}", Report::HEADING, " --- |".repeat(Report::COLUMNS));
    let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
    let plan = Plan {
        rounds: arguments.rounds,
        events: events_in(arguments.seconds, arguments.rate),
        rate: arguments.rate,
        quick: arguments.quick,
    };
    let mut documents = Vec::new();
    for attack in attacks {
        let seen = measure::measure(&start, tokens.as_ref(), &scenario, attack, plan).await;
        let report = Report::new(attack, plan, seen.with_context(|| attack.name)?);
        println!("{}", report.told());
        documents.push(report.document());
        if let Some(path) = &arguments.json {
            let document = json!({"cores": cores, "subscribers": arguments.subscribers, "kinds": documents});
            std::fs::write(path, format!("{document:#}\n"))?;
        }
    }
    Ok(())
}
