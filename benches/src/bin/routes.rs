//! What a route costs by each engine. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Parser;
use fast_paths::{FastGraph, InputGraph, PathCalculator};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{
    AStar, Cost, Graph, Hierarchy, LEVELS, Landmarks, Level, LevelMemory, Memory, Metric, dijkstra,
    durations_ms, places,
};

use benches::engines::process::{machine, profile};
use benches::engines::report::{digits, thousands};

/// Finds routes through streets whose costs change, holds the answers against Dijkstra's algorithm, and prints Markdown tables.
#[derive(Debug, Parser)]
struct Args {
    /// Two rounds of few routes, for a look.
    #[arg(long)]
    quick: bool,
    /// Rounds, in each of which all engines take turns.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Routes of a round; of the slow engines a tenth.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(10..))]
    pairs: u32,
    /// Streets.
    #[arg(long, value_name = "STREETS", default_value = "../shared/data/streets-coquimbo")]
    data: PathBuf,
    /// Seed of the pairs and of the streets that are slow.
    #[arg(long, default_value_t = 2011)]
    seed: u64,
}

/// The rows of the table.
const ROWS: [&str; 12] = [
    "the order of the nodes and the hierarchy, ms",
    "customisation for new costs, ms",
    "levels 1 to 3 of them, ms",
    "landmarks, ms",
    "fast_paths: preparation for new costs, ms",
    "Dijkstra, us",
    "bidirectional A*, 8 landmarks, us",
    "level 1, us",
    "level 2, us",
    "level 3, us",
    "hierarchy, us",
    "fast_paths, us",
];

struct Engines {
    graph: Graph,
    hierarchy: Hierarchy,
    metric: Metric,
    memory: Memory,
    a_star: AStar,
    level_memory: LevelMemory,
}

/// Runs something for each pair; microseconds a pair, and the costs that it found.
fn each(pairs: &[[u32; 2]], mut route: impl FnMut([u32; 2]) -> Option<Cost>) -> (f64, Vec<Option<Cost>>) {
    let began = Instant::now();
    let found: Vec<_> = pairs.iter().map(|pair| route(*pair)).collect();
    #[expect(clippy::cast_precision_loss, reason = "pairs are few")]
    let us = began.elapsed().as_secs_f64() * 1e6 / pairs.len() as f64;
    (us, found)
}

/// Runs something once; milliseconds.
fn once<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let made = run();
    (began.elapsed().as_secs_f64() * 1e3, made)
}

/// A round: new costs, and routes by everything. Also how much dearer the routes of each level are.
fn round(
    engines: &mut Engines,
    costs: &[Cost],
    quick: &[Cost],
    pairs: &[[u32; 2]],
) -> anyhow::Result<([f64; 11], [f64; LEVELS - 1])> {
    let Engines { graph, hierarchy, metric, memory, a_star, level_memory } = engines;
    let few = &pairs[..pairs.len() / 10];
    let (customised_ms, ()) = once(|| hierarchy.customise_again(costs, metric));
    let (levels_ms, levels) =
        once(|| (1..LEVELS).map(|level| Level::new(hierarchy, graph, metric, level)).collect::<Vec<_>>());
    // The bounds are from before streets became slow, as in a broker.
    let (landmarks_ms, landmarks) = once(|| Landmarks::new(graph, quick, 8));
    let mut input = InputGraph::new();
    for (arc, cost) in (0..).zip(costs) {
        input.add_edge(graph.tail(arc) as usize, graph.head(arc) as usize, usize::try_from(*cost)?);
    }
    input.freeze();
    let (prepared_ms, fast): (f64, FastGraph) = once(|| fast_paths::prepare(&input));
    let mut calculator: PathCalculator = fast_paths::create_calculator(&fast);
    let (dijkstra_us, expected_few) =
        each(few, |[from, to]| dijkstra(graph, costs, from, to).map(|route| route.cost));
    let (a_star_us, by_a_star) =
        each(few, |[from, to]| a_star.route(graph, costs, &landmarks, from, to).map(|route| route.cost));
    ensure!(by_a_star == expected_few, "A* is wrong");
    let (hierarchy_us, found) =
        each(pairs, |[from, to]| hierarchy.route(metric, from, to, memory).map(|route| route.cost));
    ensure!(found[..few.len()] == expected_few, "the hierarchy is wrong");
    let (fast_us, by_fast) = each(pairs, |[from, to]| {
        let path = calculator.calc_path(&fast, from as usize, to as usize)?;
        Some(path.get_weight() as Cost)
    });
    ensure!(by_fast == found, "fast_paths finds other costs");
    let (mut levels_us, mut dearer) = ([0.0; LEVELS - 1], [0.0; LEVELS - 1]);
    for (place, level) in levels.iter().enumerate() {
        let route = |pair| {
            let route = level.route((hierarchy, metric), (graph, costs), pair, level_memory);
            route.map(|route| route.cost)
        };
        let (us, by_level) = each(few, route);
        levels_us[place] = us;
        let both = by_level.iter().zip(&expected_few).filter_map(|(level, exact)| level.zip(*exact));
        let (level, exact) = both.fold((0, 0), |(level, exact), (a, b)| (level + a, exact + b));
        #[expect(clippy::cast_precision_loss, reason = "sums of milliseconds are far below 2^52")]
        let ratio = level as f64 / exact as f64;
        dearer[place] = ratio;
    }
    let [one, two, three] = levels_us;
    let figures = [
        customised_ms,
        levels_ms,
        landmarks_ms,
        prepared_ms,
        dijkstra_us,
        a_star_us,
        one,
        two,
        three,
        hierarchy_us,
        fast_us,
    ];
    Ok((figures, dearer))
}

/// The median of the rounds, and their spread.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let [least, median, most] = [0, values.len() / 2, values.len() - 1].map(|place| digits(values[place]));
    format!("{median} ({least} to {most})")
}

fn main() -> anyhow::Result<()> {
    let mut args = Args::parse();
    if args.quick {
        (args.rounds, args.pairs) = (2, 500);
    }
    let network = streets::load(&args.data).with_context(|| args.data.display().to_string())?;
    let graph = Graph::of(&network);
    let (quick, places) = (durations_ms(&network), places(&network));
    let (order_ms, hierarchy) = once(|| Hierarchy::new(&graph, &places));
    println!("{}; one thread; build profile {}; {} rounds\n", machine(), profile(), args.rounds);
    println!(
        "{} nodes, {} arcs; {} edges of the hierarchy\n",
        thousands(graph.nodes_count() as u64),
        thousands(graph.arcs_count() as u64),
        thousands(hierarchy.edges_count() as u64)
    );
    let metric = hierarchy.customise(&quick);
    let (memory, a_star, level_memory) = Default::default();
    let mut engines = Engines { graph, hierarchy, metric, memory, a_star, level_memory };
    let mut random = StdRng::seed_from_u64(args.seed);
    let nodes = u32::try_from(engines.graph.nodes_count())?;
    let (mut figures, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        // One street in a hundred is slow.
        let costs: Vec<Cost> =
            quick.iter().map(|cost| if random.random_bool(0.01) { cost * 4 } else { *cost }).collect();
        let pairs: Vec<_> =
            (0..args.pairs).map(|_| [(); 2].map(|()| random.random_range(0..nodes))).collect();
        let (round, dearer) = round(&mut engines, &costs, &quick, &pairs)?;
        figures.push(round);
        ratios.push(dearer);
    }
    println!("| what | |\n| --- | ---: |\n| {} | {} |", ROWS[0], digits(order_ms));
    for (place, row) in ROWS[1..].iter().enumerate() {
        println!("| {row} | {} |", spread(figures.iter().map(|round| round[place]).collect()));
    }
    for place in 0..LEVELS - 1 {
        let dearer = spread(ratios.iter().map(|round| round[place]).collect());
        println!("| routes of level {} take as much time as the best, times | {dearer} |", place + 1);
    }
    Ok(())
}
