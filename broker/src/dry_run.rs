//! Dry runs of situations: `nearcast checks replay` over recorded events, `nearcast rules run`, `nearcast groups solve` and `nearcast routes find`.

pub mod groups;
pub mod routes;
pub mod rules;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use checks::{Arrival, Bounds, Check, Checker, Kind};
use clap::{Args, ValueEnum};
use matcher::geo::World;
use serde_json::{Map, Value, json};
use wire::Fault;

use crate::config::{Config, WorldName};
use crate::ingest::check;
use crate::ingest::feature::FeatureReader;
use crate::ingest::json::Members;
use crate::ingest::subscription::SubscriptionReader;
use crate::model::error::ApiError;

/// Arguments of `nearcast checks replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast checks replay taxis.ndjson --checks checks.json
  nearcast checks replay taxis.ndjson --checks checks.json --engine sequential --links links.ndjson")]
pub struct ReplayArguments {
    /// Events, a GeoJSON Feature a line, in the order in which they are to arrive; each arrives at its `time`
    #[arg(value_name = "EVENTS")]
    pub events: PathBuf,
    /// A JSON object of checks by name
    #[arg(long, value_name = "FILE")]
    pub checks: PathBuf,
    /// The engine that evaluates them
    #[arg(long, value_enum, default_value_t = EngineArgument::Incremental)]
    pub engine: EngineArgument,
    /// The engine `gpu` takes events one by one, and this is what a launch of it is about; without it, a thousand events at once
    #[arg(long, value_enum)]
    pub granularity: Option<GranularityArgument>,
    /// Where to write what made the checks fail, a line each
    #[arg(long, value_name = "FILE")]
    pub links: Option<PathBuf>,
    /// The world that coordinates are of
    #[arg(long, value_enum, default_value_t = WorldName::Geodetic)]
    pub world: WorldName,
}

/// An engine for checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArgument {
    /// Everything anew for each event, on one thread: the oracle
    Sequential,
    /// Everything anew for each event, on all processors
    Concurrent,
    /// What an event touches
    Incremental,
    /// On a CUDA device, a thousand events at once; without one, `incremental`
    Gpu,
}

/// What a launch of a kernel is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArgument {
    /// A part of the formula between two quantifiers
    Unit,
    /// A node of the formula
    Node,
}

/// Makes the engine of each check.
enum Engines {
    Cpu(Kind),
    #[cfg(feature = "gpu")]
    Gpu(Box<checks_gpu::Kernels>, checks_gpu::Settings),
}

impl Engines {
    fn new(engine: EngineArgument, granularity: Option<GranularityArgument>) -> Self {
        match engine {
            EngineArgument::Sequential => Self::Cpu(Kind::Sequential),
            EngineArgument::Concurrent => {
                let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
                Self::Cpu(Kind::Concurrent(threads))
            }
            EngineArgument::Incremental => Self::Cpu(Kind::Incremental),
            EngineArgument::Gpu => Self::gpu(granularity).unwrap_or_else(|reason| {
                eprintln!("gpu: {reason}; the processor evaluates, with the engine `incremental`");
                Self::Cpu(Kind::Incremental)
            }),
        }
    }

    #[cfg(feature = "gpu")]
    fn gpu(granularity: Option<GranularityArgument>) -> Result<Self, String> {
        let devices = device::Device::all().map_err(|error| error.to_string())?;
        let kernels = checks_gpu::Kernels::load(&devices[0]).map_err(|error| error.to_string())?;
        let batches = granularity.is_none();
        let granularity = match granularity {
            None | Some(GranularityArgument::Unit) => checks_gpu::Granularity::Unit,
            Some(GranularityArgument::Node) => checks_gpu::Granularity::Node,
        };
        Ok(Self::Gpu(Box::new(kernels), checks_gpu::Settings { granularity, batches, ..Default::default() }))
    }

    #[cfg(not(feature = "gpu"))]
    fn gpu(_: Option<GranularityArgument>) -> Result<Self, String> {
        Err("this program was built without devices".to_owned())
    }

    fn checker<P>(&self, check: &Arc<Check>) -> Checker<P> {
        let bounds = Bounds::default();
        match self {
            Self::Cpu(kind) => Checker::new(check.clone(), *kind, bounds),
            #[cfg(feature = "gpu")]
            Self::Gpu(kernels, settings) => {
                let engine = checks_gpu::Gpu::new(check.clone(), bounds, kernels, *settings);
                Checker::with_engine(check.clone(), Box::new(engine))
            }
        }
    }
}

/// Holds recorded events against checks, and prints what each would have told as one JSON document.
///
/// # Errors
/// Files that cannot be read, and events or checks with faults, with the line or the pointer.
pub fn replay(arguments: &ReplayArguments) -> anyhow::Result<()> {
    let ReplayArguments { events, checks, engine, granularity, links, world } = arguments;
    let config = Config::default();
    let world = World::from(*world);
    let checks = read_checks(&config, world, checks)?;
    let events = read_events(&config, world, events)?;
    let mut written = match links {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Some(BufWriter::new(file))
        }
        None => None,
    };
    let engines = Engines::new(*engine, *granularity);
    let mut report = Map::new();
    for (name, check) in checks {
        let began = Instant::now();
        let mut checker = engines.checker(&check);
        let run = checks::replay_with(&mut checker, events.iter().cloned());
        let mut run = run.with_context(|| format!("check {name}"))?;
        let seconds = began.elapsed().as_secs_f64();
        if let Some(remark) = checker.engine().remark() {
            eprintln!("check {name}: {remark}");
        }
        let variables: Vec<_> = check.variables().collect();
        if let Some(file) = &mut written {
            // All engines find the same, each in an order of its own.
            run.links.sort_unstable();
            for link in &run.links {
                let bindings: BTreeMap<_, _> =
                    link.iter().map(|(variable, id)| (variables[*variable], &**id)).collect();
                writeln!(file, "{}", json!({"check": name, "bindings": bindings}))?;
            }
        }
        let figures = json!({
            "violations": run.violations(),
            "events_in_violation": run.events_in_violation,
            "evaluations": run.evaluations,
            "seconds": seconds,
        });
        report.insert(name, figures);
    }
    if let Some(mut file) = written {
        file.flush()?;
    }
    match writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&Value::Object(report))?) {
        // As for any other program in a pipe, a reader that has enough is no fault.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn read_checks(config: &Config, world: World, path: &Path) -> anyhow::Result<Vec<(String, Arc<Check>)>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let documents = Members::parse(&text).map_err(|refusal| {
        refused(&format!("{}, a JSON object of checks by name", path.display()), &refusal)
    })?;
    let documents: BTreeMap<_, _> = documents.rest().collect();
    let reader = SubscriptionReader::new(world, config.limits.clone(), config.outbox.overflow);
    let mut checks = Vec::new();
    for (name, document) in documents {
        let read = check::read(&reader, document).and_then(|read| {
            Check::new(world, &read.document)
                .map_err(|error| ApiError::invalid(error.pointer, error.fault.to_string()))
        });
        let check =
            read.map_err(|refusal| refused(&format!("{}: check {name}", path.display()), &refusal))?;
        checks.push((name.to_owned(), Arc::new(check)));
    }
    Ok(checks)
}

fn read_events(config: &Config, world: World, path: &Path) -> anyhow::Result<Vec<(Arc<str>, Arrival)>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let features = FeatureReader::new(world, &config.limits, 0);
    let mut events = Vec::new();
    let mut untimed = Vec::new();
    for (line, text) in BufReader::new(file).lines().enumerate() {
        let place = || format!("{} line {}", path.display(), line + 1);
        let text = text.with_context(|| format!("cannot read {}", place()))?;
        if text.trim().is_empty() {
            continue;
        }
        let observed = features.observe(&text).map_err(|refusal| {
            if let ApiError::Malformed { detail, column, .. } = refusal {
                // Its line would be that of the record alone.
                return anyhow::anyhow!("{}: {detail} at column {column}", place());
            }
            refused(&place(), &refusal)
        })?;
        if !observed.has_time {
            untimed.push(line + 1);
        }
        // One without an id is named by its line.
        let id = if observed.id.is_empty() { format!("{}", line + 1).into() } else { observed.id };
        let time_ms = observed.time_ms;
        events.push((id, Arrival { event: observed.event, time_ms: Some(time_ms), arrival_ms: time_ms }));
    }
    if let Some(first) = untimed.first() {
        eprintln!(
            "{}: events without `time` arrive now, and older ones leave the sets: {} of them, the first on line {first}",
            path.display(),
            untimed.len()
        );
    }
    Ok(events)
}

fn refused(place: &str, refusal: &ApiError) -> anyhow::Error {
    let problem = refusal.problem();
    let fault = |Fault { pointer, detail }: &Fault| {
        if pointer.is_empty() { detail.clone() } else { format!("{pointer}: {detail}") }
    };
    let faults: Vec<_> = problem.errors.iter().map(fault).collect();
    let detail = if faults.is_empty() { problem.detail.unwrap_or(problem.title) } else { faults.join("; ") };
    anyhow::anyhow!("{place}: {detail}")
}
