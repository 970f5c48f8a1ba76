//! An engine against an R*-tree and a counting matcher, on the paper's workload. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use matcher::event::Event;
use matcher::fixtures::workload::{Config, Workload};

use benches::baseline::counting::Location;
use benches::baseline::rtree::{Circles, NODE_SIZE};
use benches::engines::contender::{Baselines, ENGINES, OneByOne, TreeOnly, counting_name, engine, fill};
use benches::engines::moves::{Travel, Travellers, counting_moves, rtree_move_ns};
use benches::engines::oracle::{Oracle, Tally, check};
use benches::engines::process;
use benches::engines::race::{Entrant, Events, Timing, batches, race};
use benches::engines::report::{Report, digits, thousands};
use benches::engines::scenario::{self, Scenario};
use benches::workload_args::WorkloadArgs;

/// Events sent one by one in each pass, as in the paper.
const EVENTS: usize = 1_000;
/// Events of a batch.
const BATCH: usize = 1_024;
/// The baselines that take part when nobody is named.
const BASELINES: [&str; 3] = ["rtree", "rtree-content", "counting"];
/// The baselines that take part when they are named: they solve the same as one of those, slower, or less.
const ON_REQUEST: [(&str, Location); 3] = [
    ("counting-content", Location::Ignored),
    ("counting-box", Location::Intervals),
    ("counting-halves", Location::Comparisons),
];

/// Races an engine against the baselines, checks every answer and prints Markdown tables.
#[derive(Debug, Parser)]
struct Args {
    /// The engine under test.
    #[arg(long, default_value = ENGINES[ENGINES.len() - 1], value_parser = ENGINES)]
    engine: String,
    /// What to run, comma-separated: default, cover-0.001, cover-0.1, cover-1, subs-100k, subs-1m,
    /// zipf-filters, zipf-both, zipf-names, own-centres, worlds, batches, moves, memory. Everything when absent.
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<String>,
    /// Who takes part, comma-separated: the engine's name, rtree, rtree-content, counting; these when absent. On request
    /// also counting-content (no location), counting-box (location as two intervals), counting-halves (as four
    /// comparisons) and atree (no location; where the program has it).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A tenth of the size and fewer rounds.
    #[arg(long)]
    quick: bool,
    /// Rounds in which all take a turn.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Times R*-trees of several node sizes on the default workload and does nothing else.
    #[arg(long)]
    tune: bool,
    /// Writes the report to a file, too.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Fills an engine with so many subscriptions in this fresh process and prints what that takes.
    #[arg(long, hide = true)]
    fill_only: Option<u32>,
    #[command(flatten)]
    workload: WorkloadArgs,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let config = args.workload.config()?;
    if let Some(subscriptions) = args.fill_only {
        return fill_only(&args, Config { subscriptions, ..config });
    }
    if args.tune {
        return tune(&args, &config);
    }
    let sections = ["worlds", "batches", "moves", "memory"];
    let known: Vec<&str> =
        scenario::matching(&config).iter().map(|scenario| scenario.key).chain(sections).collect();
    for key in &args.scenario {
        anyhow::ensure!(known.contains(&key.as_str()), "no scenario {key}, there are: {}", known.join(", "));
    }
    let on_request = ON_REQUEST.iter().map(|(name, _)| *name).chain(["atree"]);
    let known: Vec<&str> = std::iter::once(args.engine.as_str()).chain(BASELINES).chain(on_request).collect();
    for name in &args.only {
        anyhow::ensure!(
            known.contains(&name.as_str()),
            "nobody is called {name}, there are: {}",
            known.join(", ")
        );
    }
    let mut report = Report::default();
    report.paragraph(&format!(
        "Engine `{}`, {}, one thread; build profile {}. {EVENTS} events a pass, median (least to largest) of {} \
         interleaved rounds, mean us an event.",
        args.engine,
        process::machine(),
        process::profile(),
        args.rounds(),
    ));
    matching(&args, &config, &mut report)?;
    if args.runs("worlds") {
        worlds(&args, &config, &mut report)?;
    }
    if args.runs("batches") {
        in_batches(&args, &config, &mut report)?;
    }
    if args.runs("moves") {
        moves(&args, &config, &mut report)?;
    }
    if args.runs("memory") {
        memory(&args, &mut report)?;
    }
    if let Some(path) = &args.out {
        std::fs::write(path, report.text()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

impl Args {
    fn runs(&self, key: &str) -> bool {
        self.scenario.is_empty() || self.scenario.iter().any(|asked| asked == key)
    }

    fn takes_part(&self, name: &str) -> bool {
        if self.only.is_empty() {
            name == self.engine || BASELINES.contains(&name)
        } else {
            self.only.iter().any(|asked| asked == name)
        }
    }

    /// The counting matchers that were asked for, besides the usual one.
    fn on_request(&self) -> impl Iterator<Item = Location> {
        ON_REQUEST.into_iter().filter(|(name, _)| self.takes_part(name)).map(|(_, location)| location)
    }

    fn rounds(&self) -> usize {
        if self.quick { self.rounds.min(3) } else { self.rounds.max(1) }
    }

    fn divisor(&self) -> u32 {
        if self.quick { 10 } else { 1 }
    }

    /// The engine under test, filled.
    fn filled(&self, workload: &Workload) -> anyhow::Result<OneByOne> {
        let mut engine = engine(&self.engine, workload.world()).context("no such engine")?;
        fill(engine.as_mut(), workload)?;
        Ok(OneByOne::new(engine))
    }
}

/// The table of matching times.
fn matching(args: &Args, config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut checks = Vec::new();
    for scenario in scenario::matching(config) {
        if !args.runs(scenario.key) {
            continue;
        }
        let scenario = scenario.scaled(args.divisor());
        let (timings, checked) = matching_times(args, &scenario)?;
        let engine_us = timings.iter().find(|timing| timing.label == args.engine).map(Timing::median_us);
        for timing in &timings {
            rows.push(timing_row(scenario.title, timing, engine_us));
        }
        checks.push(checked);
        eprintln!("{} done", scenario.key);
    }
    if !rows.is_empty() {
        report.table(&TIMING_HEADING, &rows);
        report.paragraph(&checks.join("  \n"));
    }
    Ok(())
}

const TIMING_HEADING: [&str; 6] =
    ["scenario", "what", "mean us", "spread", "p50 / p99 / max us", "times the engine"];

fn timing_row(title: &str, timing: &Timing, engine_us: Option<f64>) -> Vec<String> {
    let at = |quantile| digits(timing.events_ns.value_at_quantile(quantile) as f64 / 1e3);
    let (least, largest) = (timing.means_us[0], timing.means_us[timing.means_us.len() - 1]);
    vec![
        title.to_owned(),
        timing.label.clone(),
        digits(timing.median_us()),
        format!("{} to {}", digits(least), digits(largest)),
        format!("{} / {} / {}", at(0.5), at(0.99), at(1.0)),
        engine_us.map_or_else(String::new, |us| digits(timing.median_us() / us)),
    ]
}

fn matching_times(args: &Args, scenario: &Scenario) -> anyhow::Result<(Vec<Timing>, String)> {
    let workload = Workload::new(scenario.config.clone())?;
    let events = Events::new(&workload, EVENTS)?;
    let on_request = args.takes_part("atree") || args.on_request().next().is_some();
    let baselines = on_request || BASELINES.iter().any(|name| args.takes_part(name));
    let baselines = baselines.then(|| Baselines::new(&workload)).transpose()?;
    let mut left_out = String::new();
    let mut entrants = Vec::new();
    if args.takes_part(&args.engine) {
        entrants.push(Entrant::new(&args.engine, args.filled(&workload)?, &events));
    }
    if let Some(baselines) = &baselines {
        if args.takes_part("rtree") {
            entrants.push(Entrant::new("rtree", baselines.rtree(), &events));
        }
        if args.takes_part("rtree-content") {
            entrants.push(Entrant::new("rtree + content", baselines.rtree_and_content(), &events));
        }
        if args.takes_part("counting") {
            entrants.push(Entrant::new("counting", baselines.counting()?, &events));
        }
        for location in args.on_request() {
            let contender = baselines.counting_with(location)?;
            entrants.push(Entrant::new(counting_name(location), contender, &events));
        }
        if args.takes_part("atree") {
            match baselines.atree() {
                Ok(contender) => entrants.push(Entrant::new("a-tree", contender, &events)),
                Err(error) => left_out = format!("  \na-tree is left out: {error}"),
            }
        }
    }
    let checked = check(&Oracle::new(&workload), &mut entrants, scenario.checked_events)
        .with_context(|| format!("scenario {}", scenario.key))?;
    let timings = race(&mut entrants, args.rounds())?;
    Ok((timings, format!("{}: {}{left_out}", scenario.title, checked.describe(&workload))))
}

/// The engine alone on other worlds and radii.
fn worlds(args: &Args, config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let scenarios: Vec<Scenario> =
        scenario::worlds(config).into_iter().map(|scenario| scenario.scaled(args.divisor())).collect();
    let mut drawn = Vec::new();
    for scenario in &scenarios {
        let workload = Workload::new(scenario.config.clone())?;
        drawn.push((Events::new(&workload, EVENTS)?, workload));
    }
    let mut entrants = Vec::new();
    let mut checks = Vec::new();
    for (scenario, (events, workload)) in scenarios.iter().zip(&drawn) {
        let mut entrant = [Entrant::new(scenario.title, args.filled(workload)?, events)];
        let checked = check(&Oracle::new(workload), &mut entrant, scenario.checked_events)
            .with_context(|| format!("scenario {}", scenario.key))?;
        checks.push(format!("{}: {}", scenario.title, checked.describe(workload)));
        entrants.extend(entrant);
    }
    let timings = race(&mut entrants, args.rounds())?;
    let planar_us = timings[0].median_us();
    let rows: Vec<_> = timings.iter().map(|timing| timing_row("worlds", timing, Some(planar_us))).collect();
    let mut heading = TIMING_HEADING;
    heading[5] = "times planar";
    report.table(&heading, &rows);
    report.paragraph(&checks.join("  \n"));
    Ok(())
}

/// Throughput in batches, whose answers are those of events one by one.
fn in_batches(args: &Args, config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let subscriptions = (config.subscriptions / args.divisor()).max(1);
    let workload = Workload::new(Config { subscriptions, ..config.clone() })?;
    let mut engine = args.filled(&workload)?;
    let events: Vec<Event> = (0..64 * BATCH as u64).map(|index| workload.event(index)).collect();
    let first: Vec<&Event> = events[..BATCH].iter().collect();
    let together: Vec<Tally> =
        engine.find_batch(&first).iter().map(|row| Tally::of(row.iter().map(|id| id.0))).collect();
    for (index, event) in first.into_iter().enumerate() {
        let alone = Tally::of(engine.find_batch(&[event]).row(0).iter().map(|id| id.0));
        anyhow::ensure!(
            alone == together[index],
            "event {index} finds {alone:?} alone, {:?} in a batch",
            together[index]
        );
    }
    let rates = batches(&mut engine, &events, BATCH, args.rounds());
    report.paragraph(&format!(
        "In batches of {BATCH}, default scenario: {} M events/s on one core ({} to {}), {} ns an event.",
        digits(rates[rates.len() / 2] / 1e6),
        digits(rates[0] / 1e6),
        digits(rates[rates.len() - 1] / 1e6),
        digits(1e9 / rates[rates.len() / 2]),
    ));
    Ok(())
}

/// What moves cost at several sizes, with the answers checked afterwards.
fn moves(args: &Args, config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let (sizes, count, tree_moves): (&[u32], u64, u64) = if args.quick {
        (&[10_000, 100_000], 100_000, 2_000)
    } else {
        (&[10_000, 100_000, 250_000, 1_000_000], 1_000_000, 20_000)
    };
    let mut rows = Vec::new();
    for subscriptions in sizes {
        let workload = Workload::new(Config { subscriptions: *subscriptions, ..config.clone() })?;
        let mut engine = args.filled(&workload)?;
        let mut travellers = Travellers::new(&workload);
        for (what, travel) in [("anywhere", Travel::Jump), ("10 m", Travel::Step(10.0))] {
            let timing = travellers.travel(engine.engine(), travel, count)?;
            let at = |quantile| digits(timing.moves_ns.value_at_quantile(quantile) as f64 / 1e3);
            let per_filter = timing.mean_ns / f64::from(workload.config().filters_per_subscription);
            rows.push(vec![
                thousands(workload.filters_count() as u64),
                what.to_owned(),
                digits(per_filter / 1e3),
                digits(timing.mean_ns / 1e3),
                at(0.99),
                digits(timing.moves_ns.max() as f64 / 1e3),
                digits(timing.longest_own.as_secs_f64() * 1e6),
            ]);
        }
        check_after_moves(&workload, engine, &travellers)
            .with_context(|| format!("after moves of {subscriptions} clients"))?;
        eprintln!("moves of {subscriptions} clients done");
    }
    report.table(
        &[
            "filters",
            "move",
            "us a filter",
            "us a client of 10",
            "p99 of a client",
            "longest",
            "longest less waiting for a core",
        ],
        &rows,
    );
    let tree_size = sizes[sizes.len() - 2];
    let workload = Workload::new(Config { subscriptions: tree_size, ..config.clone() })?;
    report.paragraph(&format!(
        "{} moves each, timed one by one, and as many for the mean. The R*-tree takes {} us a filter at {} filters.",
        thousands(count),
        digits(rtree_move_ns(&workload, tree_moves)? / 1e3),
        thousands(workload.filters_count() as u64),
    ));
    moves_of_counting(args, config, sizes, report)
}

/// What the counting matchers take to move one filter, those that were asked for and know where it is.
fn moves_of_counting(args: &Args, config: &Config, sizes: &[u32], report: &mut Report) -> anyhow::Result<()> {
    let count = if args.quick { 200 } else { 2_000 };
    let mut rows = Vec::new();
    for location in args.on_request().filter(|location| *location != Location::Ignored) {
        for subscriptions in sizes {
            let workload = Workload::new(Config { subscriptions: *subscriptions, ..config.clone() })?;
            for (what, travel) in [("anywhere", Travel::Jump), ("10 m", Travel::Step(10.0))] {
                let timing = counting_moves(&workload, location, travel, (count, 1))?;
                rows.push(vec![
                    counting_name(location).to_owned(),
                    thousands(workload.filters_count() as u64),
                    what.to_owned(),
                    digits(timing.relocate_ns / 1e3),
                    digits(timing.rebuild_ns / 1e6),
                ]);
            }
        }
    }
    if !rows.is_empty() {
        let heading =
            ["what", "filters", "move", "us a filter, remove and insert", "ms, everything built anew"];
        report.table(&heading, &rows);
    }
    Ok(())
}

/// The answers to 100 events, now that all clients are elsewhere.
fn check_after_moves(
    workload: &Workload,
    engine: OneByOne,
    travellers: &Travellers<'_>,
) -> anyhow::Result<()> {
    let mut oracle = Oracle::new(workload);
    for (client, position) in travellers.positions() {
        oracle.move_client(client, position);
    }
    let events = Events::new(workload, 100)?;
    check(&oracle, &mut [Entrant::new("the engine", engine, &events)], 100)?;
    Ok(())
}

/// What the filters take, measured in a fresh process for each size.
fn memory(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for subscriptions in [100_000, 250_000] {
        let subscriptions = subscriptions / args.divisor();
        let output = std::process::Command::new(std::env::current_exe()?)
            // With the same workload; what else this program was told means nothing to it.
            .args(std::env::args_os().skip(1))
            .args(["--fill-only", &subscriptions.to_string()])
            .output()?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        rows.push(text.split_whitespace().map(str::to_owned).collect());
    }
    report.table(&["filters", "entries", "bytes a filter, footprint", "bytes a filter, process"], &rows);
    Ok(())
}

fn fill_only(args: &Args, config: Config) -> anyhow::Result<()> {
    let workload = Workload::new(config)?;
    let before = process::resident_bytes();
    let mut engine = args.filled(&workload)?;
    let grown = before.zip(process::resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    let footprint = engine.engine().footprint();
    let each = |bytes: usize| digits(bytes as f64 / workload.filters_count() as f64);
    println!(
        "{} {} {} {}",
        thousands(workload.filters_count() as u64),
        thousands(footprint.filters as u64),
        each(footprint.bytes),
        grown.map_or_else(|| "unknown".to_owned(), each),
    );
    Ok(())
}

/// Which node size the R*-tree is fastest with.
fn tune(args: &Args, config: &Config) -> anyhow::Result<()> {
    let subscriptions = (config.subscriptions / args.divisor()).max(1);
    let workload = Workload::new(Config { subscriptions, ..config.clone() })?;
    let circles = benches::baseline::circles(&workload)?;
    let events = Events::new(&workload, EVENTS)?;
    let trees = (
        Circles::<6>::new(&circles),
        Circles::<12>::new(&circles),
        Circles::<16>::new(&circles),
        Circles::<24>::new(&circles),
        Circles::<32>::new(&circles),
        Circles::<64>::new(&circles),
    );
    let mut entrants = [
        Entrant::new("6", TreeOnly::new(&trees.0), &events),
        Entrant::new("12", TreeOnly::new(&trees.1), &events),
        Entrant::new("16", TreeOnly::new(&trees.2), &events),
        Entrant::new("24", TreeOnly::new(&trees.3), &events),
        Entrant::new("32", TreeOnly::new(&trees.4), &events),
        Entrant::new("64", TreeOnly::new(&trees.5), &events),
    ];
    let timings = race(&mut entrants, args.rounds())?;
    let in_use = timings.iter().find(|timing| timing.label == NODE_SIZE.to_string()).map(Timing::median_us);
    let rows: Vec<_> = timings.iter().map(|timing| timing_row("node size", timing, in_use)).collect();
    let mut heading = TIMING_HEADING;
    heading[5] = "times the size in use";
    Report::default().table(&heading, &rows);
    Ok(())
}
