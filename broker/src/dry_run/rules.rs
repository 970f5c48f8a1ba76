//! A dry run of rules: `nearcast rules run`, and what they are on a device: `nearcast rules translate`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use matcher::geo::World;
use rules::{Answer, Bounds, Fault, Goal, Setting, Wrong};
use serde_json::{Map, Value, json};

use crate::ingest::rules::distance;

/// Arguments of `nearcast rules run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast rules run gcd.chr --goal 'gcd(9), gcd(6)'
  nearcast rules run leq.chr --goal 'leq(A,B), leq(B,A)' --bindings --steps 1000
  nearcast rules run primes.chr --goal 'candidate(1000)' --engine gpu")]
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
    /// Most rules applied and predicates called. With it, constraints that are looked at have a bound as well: a thousand times as many, and a million at least
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
}

/// Looks for each step and for all at least: without a bound, a term that has another one twice could be walked through without an end
/// within few steps.
const LOOKS_PER_STEP: u64 = 1_000;
const LOOKS_MIN: u64 = 1_000_000;

/// An engine for rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArgument {
    /// One constraint after another, in the refined semantics
    Cpu,
    /// Many at once, on a CUDA device, for programs over numbers and atoms whose answer does not depend on the order of rules; without one, `cpu`
    Gpu,
}

/// Arguments of `nearcast rules translate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast rules translate gcd.chr > gcd.cu")]
pub struct TranslateArguments {
    /// A program of Constraint Handling Rules
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
}

/// Runs a goal, and prints what is left as one JSON document.
///
/// # Errors
/// All faults of the program with their lines, and an error of the run.
pub fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let RunArguments { program: path, goal: goal_text, engine, bindings: _, steps } = arguments;
    let text = read(path)?;
    let goal = Goal::new(&text, goal_text).map_err(|wrong| match wrong {
        Wrong::Program(faults) => anyhow::anyhow!("{}", lines(&path.display().to_string(), &faults)),
        Wrong::Goal(faults) => anyhow::anyhow!("{}", lines("goal", &faults)),
    })?;
    let bounds = steps.map_or_else(Bounds::default, |steps| Bounds {
        steps,
        looks: steps.saturating_mul(LOOKS_PER_STEP).max(LOOKS_MIN),
        ..Bounds::default()
    });
    let setting = Setting { bounds, distance: distance(World::Geodetic), ..Setting::default() };
    let device = match engine {
        EngineArgument::Cpu => None,
        EngineArgument::Gpu => {
            Device::check(&text, goal_text).with_context(|| path.display().to_string())?;
            Device::find()
        }
    };
    let began = Instant::now();
    let answer = match &device {
        Some(device) => device.run(&text, goal_text, &setting)?,
        None => None,
    };
    let answer = match answer {
        Some(answer) => answer,
        None => rules::run(&goal, setting)?,
    };
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

/// Prints the CUDA C that a program becomes.
///
/// # Errors
/// All faults of the program, or the first rule that has no such form.
#[cfg(feature = "gpu")]
pub fn translate(arguments: &TranslateArguments) -> anyhow::Result<()> {
    let TranslateArguments { program: path } = arguments;
    let source = rules_gpu::translate(&read(path)?);
    let source = source.map_err(|refusal| anyhow::anyhow!("{}: {refusal}", path.display()))?;
    std::io::stdout().lock().write_all(source.as_bytes())?;
    Ok(())
}

/// Prints nothing.
///
/// # Errors
/// Always: this program was built without devices.
#[cfg(not(feature = "gpu"))]
pub fn translate(_: &TranslateArguments) -> anyhow::Result<()> {
    anyhow::bail!("this program was built without devices")
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// A device that applies rules.
#[cfg(feature = "gpu")]
struct Device(rules_gpu::Kernels);

#[cfg(not(feature = "gpu"))]
enum Device {}

impl Device {
    /// The first one; says so where there is none.
    fn find() -> Option<Self> {
        let found = Self::first();
        found.map_err(|reason| eprintln!("gpu: {reason}; the processor applies the rules")).ok()
    }

    /// Refuses what devices do not take, whether there is one or not.
    #[cfg(feature = "gpu")]
    fn check(program: &str, goal: &str) -> anyhow::Result<()> {
        rules_gpu::Program::new(program)?.goal(goal)?;
        Ok(())
    }

    #[cfg(not(feature = "gpu"))]
    fn check(_: &str, _: &str) -> anyhow::Result<()> {
        Ok(())
    }

    #[cfg(feature = "gpu")]
    fn first() -> Result<Self, String> {
        let devices = device::Device::all().map_err(|error| error.to_string())?;
        rules_gpu::Kernels::load(&devices[0]).map(Self).map_err(|error| error.to_string())
    }

    #[cfg(not(feature = "gpu"))]
    fn first() -> Result<Self, String> {
        Err("this program was built without devices".to_owned())
    }

    /// The answer; none, said on the error output, where only the processor can decide.
    #[cfg(feature = "gpu")]
    fn run(&self, program: &str, goal: &str, setting: &Setting) -> anyhow::Result<Option<Answer>> {
        match rules_gpu::run(program, goal, &self.0, setting) {
            Err(error @ rules_gpu::Error::TooNear { .. }) => {
                eprintln!("gpu: {error}; the processor applies the rules");
                Ok(None)
            }
            answer => Ok(Some(answer?)),
        }
    }

    #[cfg(not(feature = "gpu"))]
    fn run(&self, _: &str, _: &str, _: &Setting) -> anyhow::Result<Option<Answer>> {
        match *self {}
    }
}

fn lines(of: &str, faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{of}: {fault}")).collect::<Vec<_>>().join("\n")
}
