//! A dry run of routes: `nearcast routes find` through streets of a file.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use routes::{
    Cost, Graph, Hierarchy, LEVELS, Level, LevelMemory, Memory, Metric, Profile, Route, SCORES, Scheduler,
    durations_ms, lengths_mm, places,
};
use serde_json::{Value, json};
use streets::Network;

/// Most pairs of a file.
const PAIRS_MAX: usize = 10_000_000;

/// Routes of each level that a profile is made of.
const PROFILED: usize = 16;

/// Arguments of `nearcast routes find`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast routes find --streets liechtenstein.osm.pbf --pairs pairs.csv
  nearcast routes find --streets coquimbo --pairs pairs.csv --by duration --level 2
  nearcast routes find --streets coquimbo --pairs pairs.csv --contract-ms 20 --scheduler online")]
pub struct FindArguments {
    /// Streets: .osm.pbf, .osm, .osm.gz, or a folder with nodes.csv and edges.csv (or .csv.gz)
    #[arg(long, value_name = "STREETS")]
    pub streets: PathBuf,
    /// A table with the columns `from` and `to`: numbers of nodes, which are OpenStreetMap's where the streets are
    #[arg(long, value_name = "FILE")]
    pub pairs: PathBuf,
    /// The level of the routes, 0 to 3: 0 is exact; with offline and online the finest
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..LEVELS as i64))]
    pub level: u8,
    /// What of a route is to be least
    #[arg(long, value_enum, default_value_t = ByArgument::Length)]
    pub by: ByArgument,
    /// Milliseconds that there are for all routes
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub contract_ms: Option<u32>,
    /// How levels are chosen, so that all routes are found in that time [default: online]
    #[arg(long, value_enum, requires = "contract_ms")]
    pub scheduler: Option<SchedulerArgument>,
}

/// What is to be least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArgument {
    /// Metres
    Length,
    /// Seconds at the speed limits
    Duration,
}

/// How levels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchedulerArgument {
    /// Always the same one
    Static,
    /// Batches, planned anew after each
    Offline,
    /// Planned anew as soon as something takes longer than planned
    Online,
}

/// Finds the routes of a table of pairs, and prints a JSON document for each and one for all.
///
/// # Errors
/// Streets or pairs that cannot be read, with the place in the file, and a pair of an unknown node.
pub fn find(arguments: &FindArguments) -> anyhow::Result<()> {
    let FindArguments { streets, pairs, level, by, contract_ms, scheduler } = arguments;
    let network = streets::load(streets)?;
    if let Some(problem) = &network.census().first_problem {
        let skipped = network.census().skipped;
        eprintln!(
            "warning: {skipped} records of the streets make no sense and are left out, the first: {problem}"
        );
    }
    let pairs = read(pairs, &network)?;
    let mut finder = Finder::new(&network, *by);
    let finest = usize::from(*level);
    let scheduler = match scheduler {
        _ if contract_ms.is_none() => Scheduler::Static(finest),
        Some(SchedulerArgument::Static) => Scheduler::Static(finest),
        Some(SchedulerArgument::Offline) => Scheduler::Offline,
        Some(SchedulerArgument::Online) | None => Scheduler::Online,
    };
    let profile = if contract_ms.is_some() { finder.profile(&pairs) } else { Profile([0; LEVELS]) };
    let mut found = vec![None; pairs.len()];
    let contract = contract_ms.map(|ms| Duration::from_millis(u64::from(ms)));
    let began = Instant::now();
    let asked = scheduler.run(
        &profile,
        finest,
        pairs.len(),
        contract.map(nanoseconds),
        || nanoseconds(began.elapsed()),
        |number, level| found[number] = finder.route([pairs[number].from, pairs[number].to], level),
    );
    let took = began.elapsed();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut score = 0;
    for ((pair, found), asked) in pairs.iter().zip(&found).zip(&asked) {
        let (level, length_mm) = match (found, asked) {
            (Some((level, route)), _) => {
                score += SCORES[*level];
                (json!(level), json!(finder.length_mm(route)))
            }
            (None, Some(_)) => (json!(0), Value::Null),
            (None, None) => (Value::Null, Value::Null),
        };
        // Members in the order of the columns.
        writeln!(
            out,
            "{{\"from\":{},\"to\":{},\"level\":{level},\"length_mm\":{length_mm}}}",
            network.node_id(pair.from),
            network.node_id(pair.to)
        )?;
    }
    let summary = json!({
        "score": score,
        "seconds": took.as_secs_f64(),
        "deadline_met": contract.map(|contract| took <= contract),
        "pairs": pairs.len(),
        "answered": asked.iter().flatten().count(),
    });
    writeln!(out, "{summary}")?;
    out.flush()?;
    Ok(())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A route that is asked for.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: u32,
    to: u32,
}

/// Reads a table of pairs.
fn read(path: &Path, network: &Network) -> anyhow::Result<Vec<Pair>> {
    let unreadable = || format!("{} cannot be read", path.display());
    let mut table = csv::Reader::from_path(path).with_context(unreadable)?;
    let heading = table.headers().with_context(unreadable)?.clone();
    let column = |name: &str| {
        let place = heading.iter().position(|column| column.trim() == name);
        place.with_context(|| format!("{}, line 1: there is no column {name}", path.display()))
    };
    let columns = [column("from")?, column("to")?];
    let nodes: HashMap<i64, u32> =
        (0..).take(network.nodes_count()).map(|node| (network.node_id(node), node)).collect();
    let mut pairs = Vec::new();
    for row in table.records() {
        let row = row.with_context(unreadable)?;
        let node = |column: usize| {
            let text = row.get(column).unwrap_or_default().trim();
            let place = || {
                let line = row.position().map_or(0, csv::Position::line);
                format!("{}, line {line}: {}: ", path.display(), &heading[column])
            };
            let id: i64 = text.parse().with_context(|| format!("{}{text:?} is no whole number", place()))?;
            nodes.get(&id).copied().with_context(|| format!("{}there is no node {id}", place()))
        };
        pairs.push(Pair { from: node(columns[0])?, to: node(columns[1])? });
        if pairs.len() > PAIRS_MAX {
            bail!("{} has more than {PAIRS_MAX} pairs", path.display());
        }
    }
    Ok(pairs)
}

/// Finds routes at any level.
struct Finder {
    graph: Graph,
    lengths_mm: Vec<Cost>,
    costs: Vec<Cost>,
    hierarchy: Hierarchy,
    metric: Metric,
    levels: Vec<Level>,
    memory: Memory,
    level_memory: LevelMemory,
}

impl Finder {
    fn new(network: &Network, by: ByArgument) -> Self {
        let (graph, lengths_mm) = (Graph::of(network), lengths_mm(network));
        let costs = if by == ByArgument::Duration { durations_ms(network) } else { lengths_mm.clone() };
        let hierarchy = Hierarchy::new(&graph, &places(network));
        let metric = hierarchy.customise(&costs);
        let levels = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
        let (memory, level_memory) = Default::default();
        Self { graph, lengths_mm, costs, hierarchy, metric, levels, memory, level_memory }
    }

    /// A route of a level, and the level that it is of: 0 where the level asked for has none.
    fn route(&mut self, ends: [u32; 2], level: usize) -> Option<(usize, Route)> {
        let made_of = (&self.hierarchy, &self.metric);
        let streets = (&self.graph, &*self.costs);
        let coarse = level.checked_sub(1).map(|place| &self.levels[place]);
        if let Some(route) =
            coarse.and_then(|level| level.route(made_of, streets, ends, &mut self.level_memory))
        {
            return Some((level, route));
        }
        let [from, to] = ends;
        self.hierarchy.route(&self.metric, from, to, &mut self.memory).map(|route| (0, route))
    }

    /// How long a route of each level takes: the mean of some.
    fn profile(&mut self, pairs: &[Pair]) -> Profile {
        let sample: Vec<_> = pairs.iter().step_by((pairs.len() / PROFILED).max(1)).collect();
        let mut profile = [0; LEVELS];
        for (level, mean_ns) in profile.iter_mut().enumerate() {
            let began = Instant::now();
            for pair in &sample {
                std::hint::black_box(self.route([pair.from, pair.to], level));
            }
            *mean_ns = nanoseconds(began.elapsed()) / (sample.len().max(1) as u64);
        }
        Profile(profile)
    }

    fn length_mm(&self, route: &Route) -> Cost {
        route.arcs.iter().map(|arc| self.lengths_mm[*arc as usize]).sum()
    }
}
