//! A dry run of routes: `nearcast routes find` through streets of a file.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
#[cfg(feature = "gpu")]
use routes::Costed;
use routes::{
    BATCH, Batch, Cost, Graph, Hierarchy, LEVELS, Level, LevelMemory, Memory, Metric, Profile, Route, SCORES,
    Sample, Scheduler, durations_ms, lengths_mm, one_by_one, places,
};
use serde_json::{Value, json};
use streets::Network;

/// Most pairs of a file.
const PAIRS_MAX: usize = 10_000_000;

/// Routes of each level that a profile is made of, where they are found one after another.
const PROFILED: usize = 16;

/// Routes that a device finds at once where there is a contract.
#[cfg(feature = "gpu")]
const BATCH_OF_DEVICE: usize = 1_024;

/// Arguments of `nearcast routes find`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast routes find --streets liechtenstein.osm.pbf --pairs pairs.csv
  nearcast routes find --streets coquimbo --pairs pairs.csv --by duration --level 2
  nearcast routes find --streets coquimbo --pairs pairs.csv --engine gpu
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
    /// The engine that finds them
    #[arg(long, value_enum, default_value_t = EngineArgument::Cpu)]
    pub engine: EngineArgument,
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

/// An engine for routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArgument {
    /// A hierarchy, on the processor
    Cpu,
    /// PAP*, on a CUDA device where there is one; all pairs at once, or 1,024 where there is a contract
    Gpu,
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
    let FindArguments { streets, pairs, level, engine, by, contract_ms, scheduler } = arguments;
    let network = streets::load(streets)?;
    if let Some(problem) = &network.census().first_problem {
        let skipped = network.census().skipped;
        eprintln!(
            "warning: {skipped} records of the streets make no sense and are left out, the first: {problem}"
        );
    }
    let pairs = read(pairs, &network)?;
    let mut finder = Finder::new(&network, *by);
    if *engine == EngineArgument::Gpu {
        finder.device = Device::find(&finder);
    }
    let finest = usize::from(*level);
    let scheduler = match scheduler {
        _ if contract_ms.is_none() => Scheduler::Static(finest),
        Some(SchedulerArgument::Static) => Scheduler::Static(finest),
        Some(SchedulerArgument::Offline) => Scheduler::Offline,
        Some(SchedulerArgument::Online) | None => Scheduler::Online,
    };
    let profile = if contract_ms.is_some() { finder.profile(&pairs) } else { Profile::default() };
    let mut found = vec![None; pairs.len()];
    let contract = contract_ms.map(|ms| Duration::from_millis(u64::from(ms)));
    let began = Instant::now();
    let now_ns = || nanoseconds(began.elapsed());
    let batch = if contract.is_some() { finder.batch() } else { usize::MAX };
    let asked = scheduler.run(
        &profile,
        (batch, finest, pairs.len()),
        contract.map(nanoseconds),
        now_ns,
        |numbers, batch| {
            if finder.device.is_some() {
                let ends: Vec<_> = numbers.iter().map(|number| pairs[*number].ends()).collect();
                let routes = finder.batch_routes(&ends, batch, now_ns);
                for (number, route) in numbers.iter().zip(&routes) {
                    if let Some(route) = route {
                        found[*number].clone_from(route);
                    }
                }
                return routes.iter().map(Option::is_some).collect();
            }
            let find = |number: usize, level| found[number] = finder.route(pairs[number].ends(), level);
            one_by_one(find)(numbers, batch)
        },
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

impl Pair {
    fn ends(&self) -> [u32; 2] {
        [self.from, self.to]
    }
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
    /// Where there is one, it is asked first.
    device: Option<Device>,
}

impl Finder {
    fn new(network: &Network, by: ByArgument) -> Self {
        let (graph, lengths_mm) = (Graph::of(network), lengths_mm(network));
        let costs = if by == ByArgument::Duration { durations_ms(network) } else { lengths_mm.clone() };
        let hierarchy = Hierarchy::new(&graph, &places(network));
        let metric = hierarchy.customise(&costs);
        let levels = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
        let (memory, level_memory) = Default::default();
        let device = None;
        Self { graph, lengths_mm, costs, hierarchy, metric, levels, memory, level_memory, device }
    }

    /// Routes of a batch, as [`Finder::route`] finds each; `None` for those for which a device had no time.
    fn batch_routes(
        &mut self,
        ends: &[[u32; 2]],
        batch: &mut Batch<'_>,
        now_ns: impl Fn() -> u64,
    ) -> Vec<Option<Option<(usize, Route)>>> {
        // Once it has failed it is lost, or too small.
        if let Some(mut device) = self.device.take()
            && let Some(routes) = device.batch_routes(self, ends, batch, now_ns)
        {
            self.device = Some(device);
            return routes;
        }
        ends.iter().map(|ends| Some(self.route(*ends, batch.level))).collect()
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

    /// Routes that are found before levels are chosen anew.
    fn batch(&self) -> usize {
        #[cfg(feature = "gpu")]
        if self.device.is_some() {
            return BATCH_OF_DEVICE;
        }
        BATCH
    }

    /// How long routes of each level take, and on a device what a batch takes besides, by some of them.
    fn profile(&mut self, pairs: &[Pair]) -> Profile {
        let many = if self.device.is_some() { self.batch() } else { PROFILED };
        let sample: Vec<_> = pairs.iter().step_by((pairs.len() / many).max(1)).map(Pair::ends).collect();
        let few = &sample[..sample.len().min(PROFILED)];
        let (sizes, blocks): (&[_], &[_]) =
            if self.device.is_some() { (&[few, &sample], &[1, 2, 4, 8]) } else { (&[few], &[1]) };
        let mut profile = Profile::default();
        for level in 0..LEVELS {
            for ends in sizes {
                // Of the first run the rounds are known.
                let mut rounds = 0;
                for blocks in blocks.first().into_iter().chain(blocks) {
                    let began = Instant::now();
                    let mut batch = Batch::whole(level, *blocks, rounds);
                    std::hint::black_box(
                        self.batch_routes(ends, &mut batch, || nanoseconds(began.elapsed())),
                    );
                    let ns = nanoseconds(began.elapsed());
                    let is_first = rounds == 0;
                    rounds = self.device.as_mut().map_or(0, Device::rounds);
                    if !is_first || rounds == 0 {
                        profile.note(
                            level,
                            Sample { count: ends.len(), blocks: *blocks, ns, most_ns: ns, rounds },
                        );
                    }
                }
            }
        }
        profile
    }

    fn length_mm(&self, route: &Route) -> Cost {
        route.arcs.iter().map(|arc| self.lengths_mm[*arc as usize]).sum()
    }
}

/// A device with the graphs of all levels.
#[cfg(feature = "gpu")]
struct Device(routes_gpu::Searcher);

#[cfg(feature = "gpu")]
impl Device {
    /// The first one; says so where there is none.
    fn find(finder: &Finder) -> Option<Self> {
        let devices = device::Device::all().map_err(routes_gpu::Error::from);
        known(devices.and_then(|devices| Self::on(&devices[0], finder)))
    }

    fn on(device: &device::Device, finder: &Finder) -> Result<Self, routes_gpu::Error> {
        let mut searcher = routes_gpu::Searcher::new(&routes_gpu::Kernels::load(device)?)?;
        let levels = finder.levels.iter().map(|level| (level.graph(), level.costs()));
        let graphs: Vec<_> = std::iter::once((&finder.graph, &*finder.costs))
            .chain(levels)
            .map(|(graph, costs)| Costed { graph, costs })
            .collect();
        searcher.load(&graphs, routes_gpu::Tuning::default())?;
        Ok(Self(searcher))
    }

    fn batch_routes(
        &mut self,
        finder: &Finder,
        ends: &[[u32; 2]],
        batch: &mut Batch<'_>,
        now_ns: impl Fn() -> u64,
    ) -> Option<Vec<Option<Option<routes_gpu::LevelRoute>>>> {
        known(match batch.level.checked_sub(1) {
            Some(place) => {
                let made_of = (&finder.hierarchy, &finder.metric);
                self.0.level_batch((batch.level, &finder.levels[place]), made_of, ends, batch, now_ns)
            }
            None => {
                let queries: Vec<_> = ends.iter().map(|ends| (0, *ends)).collect();
                let exact = |route: Option<Route>| route.map(|route| (0, route));
                let routes = self.0.batch_routes(&queries, batch, now_ns);
                routes.map(|routes| routes.into_iter().map(|route| route.map(exact)).collect())
            }
        })
    }

    /// Rounds of the last search.
    fn rounds(&mut self) -> u32 {
        self.0.rounds().unwrap_or_default()
    }
}

/// What a device answered; says so where it did not.
#[cfg(feature = "gpu")]
fn known<T>(answer: Result<T, routes_gpu::Error>) -> Option<T> {
    answer.map_err(|reason| eprintln!("gpu: {reason}; the processor finds the routes")).ok()
}

#[cfg(not(feature = "gpu"))]
enum Device {}

#[cfg(not(feature = "gpu"))]
impl Device {
    fn find(_: &Finder) -> Option<Self> {
        eprintln!("gpu: this program was built without devices; the processor finds the routes");
        None
    }

    fn batch_routes(
        &mut self,
        _: &Finder,
        _: &[[u32; 2]],
        _: &mut Batch<'_>,
        _: impl Fn() -> u64,
    ) -> Option<Vec<Option<Option<(usize, Route)>>>> {
        match *self {}
    }

    fn rounds(&mut self) -> u32 {
        match *self {}
    }
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use device::Fault;

    use super::*;

    #[test]
    fn a_device_finds_what_the_processor_finds_and_gives_way_when_it_fails() {
        let network = Network::grid(20, 20, 100.0);
        let ends: Vec<_> = (0..100).map(|number| [number * 37 % 400, number * 91 % 400]).collect();
        let costs = |finder: &mut Finder, level| {
            let batch = &mut Batch::whole(level, 8, 0);
            let routes = finder.batch_routes(&ends, batch, || 0).into_iter();
            let cost = |route: Option<(usize, Route)>| route.map(|(level, route)| (level, route.cost));
            routes.map(|route| cost(route.expect("in time"))).collect::<Vec<_>>()
        };
        let mut finder = Finder::new(&network, ByArgument::Length);
        let expected: Vec<_> = (0..LEVELS).map(|level| costs(&mut finder, level)).collect();
        let host = device::Device::host(1 << 28);
        finder.device = Some(Device::on(&host, &finder).expect("memory"));
        for (level, expected) in expected.iter().enumerate() {
            assert_eq!(costs(&mut finder, level), *expected);
        }
        assert!(finder.device.is_some(), "it did not fail");
        host.inject(Fault::DeviceLost, 3);
        assert_eq!(costs(&mut finder, 0), expected[0]);
        assert!(finder.device.is_none(), "it failed");
        assert_eq!(costs(&mut finder, 1), expected[1]);
    }
}
