//! `nearcast-load`: what a broker carries, on this machine, under a load that one can say in a file.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use loadgen::run::{self, Stage, Target};
use loadgen::scenario::Scenario;

/// City-scale load for nearcast.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a scenario and says what came of it.
    Run(RunArguments),
}

/// A scenario, what of it is to be otherwise, and against what.
#[derive(Clone, Debug, Args)]
struct RunArguments {
    /// A built-in scenario, or a file.
    scenario: String,
    /// Sets a value of it: --set events.rate=2000. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A broker that runs already, as HOST:PORT. Without it one is started for the run, and ended with it.
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<String>,
    /// The program that is started; the one beside this program when absent, or the one on the path.
    #[arg(long, conflicts_with = "target")]
    program: Option<PathBuf>,
    /// A token with the scopes of all that is done.
    #[arg(long, env = "NEARCAST_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Writes everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match carry_out(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nearcast-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => {
            let scenario = Scenario::load(&arguments.scenario, &arguments.set)?;
            let plan = scenario.plan()?;
            let target = match arguments.target {
                Some(address) => Target::Running(address),
                None => Target::Started(arguments.program.unwrap_or_else(run::program::beside)),
            };
            let mut stage = Stage::set(&scenario, &*plan, &target, arguments.token.as_deref(), |setup| {
                eprintln!("{setup:?}");
            })?;
            let begun = jiff::Timestamp::now();
            let phase = stage.phase(&scenario, &*plan)?;
            let record = run::record(&scenario, &*plan, &stage, &phase, begun)?;
            println!("{:#?}\n{:#?}", record.totals, record.check);
            for latency in &record.latencies {
                println!("{} n {} p50 {} p99 {} p999 {} max {}", latency.name, latency.count, latency.p50_us, latency.p99_us, latency.p999_us, latency.max_us);
            }
            if let Some(path) = arguments.json {
                std::fs::write(path, record.to_json()?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
