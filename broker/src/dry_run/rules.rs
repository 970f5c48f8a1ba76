//! A dry run of rules: `nearcast rules run`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use matcher::geo::World;
use rules::{Bounds, Fault, Goal, Setting, Wrong};
use serde_json::{Map, Value, json};

use crate::ingest::rules::distance;

/// Arguments of `nearcast rules run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast rules run gcd.chr --goal 'gcd(9), gcd(6)'
  nearcast rules run leq.chr --goal 'leq(A,B), leq(B,A)' --bindings --steps 1000")]
pub struct RunArguments {
    /// A program of Constraint Handling Rules
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
    /// The constraints to begin with, with commas between
    #[arg(long, value_name = "GOAL")]
    pub goal: String,
    /// The engine that applies the rules
    #[arg(long, value_enum, default_value_t = EngineArgument::Cpu)]
    pub engine: EngineArgument,
    /// Print the values of the goal's variables, as is done anyhow
    #[arg(long)]
    pub bindings: bool,
    /// Most rules applied and predicates called
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
}

/// An engine for rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArgument {
    /// One constraint after another, in the refined semantics
    Cpu,
}

/// Runs a goal, and prints what is left as one JSON document.
///
/// # Errors
/// All faults of the program with their lines, and an error of the run.
pub fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let RunArguments { program: path, goal, engine: EngineArgument::Cpu, bindings: _, steps } = arguments;
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let goal = Goal::new(&text, goal).map_err(|wrong| match wrong {
        Wrong::Program(faults) => anyhow::anyhow!("{}", lines(&path.display().to_string(), &faults)),
        Wrong::Goal(faults) => anyhow::anyhow!("{}", lines("goal", &faults)),
    })?;
    let bounds = Bounds { steps: steps.unwrap_or(u64::MAX), ..Bounds::default() };
    let setting = Setting { bounds, distance: distance(World::Geodetic), ..Setting::default() };
    let began = Instant::now();
    let answer = rules::run(&goal, setting)?;
    let seconds = began.elapsed().as_secs_f64();
    let outcome = if answer.is_success { "success" } else { "fail" };
    let mut document = Map::new();
    document.insert("outcome".to_owned(), json!(outcome));
    document.insert("store".to_owned(), json!(answer.store));
    let values = answer.bindings.into_iter().map(|(name, value)| (name, Value::String(value)));
    document.insert("bindings".to_owned(), Value::Object(values.collect()));
    document.insert("seconds".to_owned(), json!(seconds));
    document.insert("applications".to_owned(), json!(answer.applications));
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &document)?;
    writeln!(out)?;
    Ok(())
}

fn lines(of: &str, faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{of}: {fault}")).collect::<Vec<_>>().join("\n")
}
