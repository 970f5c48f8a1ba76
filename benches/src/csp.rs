//! The cost of arc consistency by each algorithm, over instances of the Lecoutre series.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use groups::network::ne::Model;
use groups::network::{Ac4Lists, Algorithm, Domains, Found, Network, Outcome, search, xcsp};

use crate::engines::process::{machine, profile};
use crate::engines::report::digits;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Rounds, in each of which all algorithms take turns.
    pub rounds: u16,
    /// Folder of the instances.
    pub data: PathBuf,
}

/// The names of the figures from the start, in the order of the columns.
const TIMED: [&str; 7] = ["read", "ac4", "ac4 with its lists made", "ac3bit", "build", "ac4gpu", "ac4gpu+"];

/// The names of the figures after assignments.
const ASSIGNED: [&str; 2] = ["ac4 with its lists made", "ac3bit"];

/// How long a figure is measured for at least.
const MEASURED_FOR: Duration = Duration::from_millis(4);

/// An instance, with the expected results.
struct Instance {
    name: String,
    text: String,
    network: Network,
    removed: usize,
    closure: String,
    /// Each assignment with how many values it removes; none where a variable has none left.
    assigned: Vec<(Domains, Option<usize>)>,
}

/// A figure of an instance: microseconds in each round.
struct Figure {
    section: &'static str,
    instance: String,
    timed: &'static str,
    us: Vec<f64>,
}

fn unpacked(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("{} is not there", path.display()))?;
    GzDecoder::new(file).read_to_string(&mut text)?;
    Ok(text)
}

fn instances(folder: &Path) -> anyhow::Result<Vec<Instance>> {
    let mut instances = Vec::new();
    let mut places = BTreeMap::new();
    for row in csv::Reader::from_path(folder.join("expected_ac.csv"))?.into_records() {
        let row = row?;
        let text = unpacked(&folder.join(format!("{}.gz", &row[0])))?;
        let network = xcsp::read(&text).with_context(|| row[0].to_owned())?;
        places.insert(row[0].to_owned(), instances.len());
        instances.push(Instance {
            name: row[0].trim_end_matches(".xml").trim_end_matches("_X2").to_owned(),
            text,
            network,
            removed: row[9].parse()?,
            closure: row[10].to_owned(),
            assigned: Vec::new(),
        });
    }
    let rows = unpacked(&folder.join("expected_ac_after_assignment.csv.gz"))?;
    for row in csv::Reader::from_reader(rows.as_bytes()).into_records() {
        let row = row?;
        let Instance { network, assigned, .. } = &mut instances[places[&row[0]]];
        let variable = network.variable(&row[1]).context("a variable")?;
        let mut domains = Domains::new(network);
        domains.assign(network, variable, network.place(variable, row[2].parse()?).context("a value")?);
        let removed = if &row[3] == "consistent" { Some(row[4].parse()?) } else { None };
        assigned.push((domains, removed));
    }
    Ok(instances)
}

/// The mean time of a run in microseconds. Preparing it and dropping its result are not timed.
fn mean_us<P, T>(mut prepare: impl FnMut() -> P, mut run: impl FnMut(P) -> T) -> f64 {
    let (mut total, mut count) = (Duration::ZERO, 0_u32);
    while total < MEASURED_FOR {
        let prepared = prepare();
        let began = Instant::now();
        let made = std::hint::black_box(run(prepared));
        total += began.elapsed();
        drop(made);
        count += 1;
    }
    total.as_secs_f64() * 1e6 / f64::from(count)
}

/// One round from the start.
fn from_the_start(instance: &Instance) -> anyhow::Result<[f64; 7]> {
    let Instance { name, text, network, removed, closure, .. } = instance;
    let all = Domains::new(network);
    for algorithm in Algorithm::ALL {
        let left =
            algorithm.enforce(network, &all).domains.with_context(|| format!("{name} is consistent"))?;
        let found = (left.removed(network), left.closure(network));
        ensure!(found == (*removed, closure.clone()), "{name}, {algorithm:?}: {found:?}");
    }
    let lists = Ac4Lists::new(network);
    let model = || Model::build(network, &all);
    Ok([
        mean_us(|| (), |()| xcsp::read(text)),
        mean_us(|| (), |()| Algorithm::Ac4.enforce(network, &all)),
        mean_us(|| (), |()| lists.enforce(network, &all)),
        mean_us(|| (), |()| Algorithm::Ac3Bit.enforce(network, &all)),
        mean_us(|| (), |()| model()),
        mean_us(model, Model::ac4gpu),
        mean_us(model, Model::ac4gpu_plus),
    ])
}

/// One round over all assignments: microseconds of one.
fn after_assignments(
    instance: &Instance,
    enforce: impl Fn(&Network, &Domains) -> Outcome,
) -> anyhow::Result<f64> {
    let Instance { name, network, assigned, .. } = instance;
    let mut left = Vec::with_capacity(assigned.len());
    let began = Instant::now();
    for (start, _) in assigned {
        left.push(enforce(network, start).domains);
    }
    let seconds = began.elapsed().as_secs_f64();
    for (left, (_, expected)) in left.iter().zip(assigned) {
        let removed = left.as_ref().map(|left| left.removed(network));
        ensure!(removed == *expected, "{name}: {removed:?} and not {expected:?}");
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
    Ok(seconds * 1e6 / assigned.len() as f64)
}

fn sorted(us: &[f64]) -> Vec<f64> {
    let mut us = us.to_vec();
    us.sort_by(f64::total_cmp);
    us
}

fn median(us: &[f64]) -> f64 {
    sorted(us)[us.len() / 2]
}

/// Median and spread.
fn cell(us: &[f64]) -> String {
    let us = sorted(us);
    format!("{} ({} to {})", digits(us[us.len() / 2]), digits(us[0]), digits(us[us.len() - 1]))
}

/// Searches each instance once, trying at most `values_max` values, and prints a table.
///
/// # Errors
/// When an instance cannot be read, or a solution is none.
pub fn searches(data: &Path, values_max: u64) -> anyhow::Result<()> {
    let instances = instances(data)?;
    println!("{}; one thread; build profile {}; one run\n", machine(), profile());
    println!("| instance | found | ms |");
    println!("| --- | --- | ---: |");
    for Instance { name, network, .. } in &instances {
        // After a search of a minute the memory of the next instance is cold.
        std::hint::black_box(search(network, &Domains::new(network), 1_000));
        let began = Instant::now();
        let found = match search(network, &Domains::new(network), values_max) {
            Found::Solution(places) => {
                let mut solution = Domains::new(network);
                for (variable, place) in places.into_iter().enumerate() {
                    solution.assign(network, variable, place);
                }
                let left = Algorithm::Ac4.enforce(network, &solution).domains;
                ensure!(left == Some(solution), "{name}: no solution");
                "a solution"
            }
            Found::Nothing => "none",
            Found::Stopped => "stopped",
        };
        println!("| {name} | {found} | {} |", digits(began.elapsed().as_secs_f64() * 1e3));
    }
    Ok(())
}

/// Makes instances arc consistent by each algorithm in turns, from the start and after each assignment of one variable, compares the values
/// that are left with the expected ones, and prints tables. All figures go to a file of comma-separated values, if one is named.
///
/// # Errors
/// When an instance cannot be read, an answer is wrong, or the file cannot be written.
pub fn measure(scale: &Scale, csv: Option<&Path>) -> anyhow::Result<()> {
    let Scale { rounds, data } = scale;
    println!("{}; one thread; build profile {}; {rounds} rounds\n", machine(), profile());
    println!("Microseconds, median (least to most).\n");
    let mut figures = Vec::new();
    let instances = instances(data)?;
    println!("| instance | {} | ac4 / ac3bit | with its lists made |", TIMED.join(" | "));
    println!("| --- |{}", " ---: |".repeat(TIMED.len() + 2));
    for instance in &instances {
        let mut us = [const { Vec::new() }; 7];
        for _ in 0..*rounds {
            for (us, figure) in us.iter_mut().zip(from_the_start(instance)?) {
                us.push(figure);
            }
        }
        let ratio = |idx: usize| digits(median(&us[idx]) / median(&us[3]));
        let cells: Vec<_> = us.iter().map(|us| cell(us)).collect();
        println!("| {} | {} | {} | {} |", instance.name, cells.join(" | "), ratio(1), ratio(2));
        for (timed, us) in TIMED.into_iter().zip(us) {
            figures.push(Figure { section: "start", instance: instance.name.clone(), timed, us });
        }
    }
    println!("\nEach assignment of one variable, mean of an instance's.\n");
    println!("| instance | assignments | {} | ac4 / ac3bit |", ASSIGNED.join(" | "));
    println!("| --- | ---: | ---: | ---: | ---: |");
    for instance in instances.iter().filter(|instance| !instance.assigned.is_empty()) {
        let lists = Ac4Lists::new(&instance.network);
        let mut us = [const { Vec::new() }; 2];
        for _ in 0..*rounds {
            let by_ac4 = |network: &Network, start: &Domains| lists.enforce(network, start);
            us[0].push(after_assignments(instance, by_ac4)?);
            let by_bits = |network: &Network, start: &Domains| Algorithm::Ac3Bit.enforce(network, start);
            us[1].push(after_assignments(instance, by_bits)?);
        }
        println!(
            "| {} | {} | {} | {} | {} |",
            instance.name,
            instance.assigned.len(),
            cell(&us[0]),
            cell(&us[1]),
            digits(median(&us[0]) / median(&us[1]))
        );
        for (timed, us) in ASSIGNED.into_iter().zip(us) {
            figures.push(Figure { section: "assigned", instance: instance.name.clone(), timed, us });
        }
    }
    if let Some(path) = csv {
        let mut file = csv::Writer::from_path(path)?;
        file.serialize(["section", "instance", "timed", "round", "us"])?;
        for Figure { section, instance, timed, us } in &figures {
            for (round, us) in us.iter().enumerate() {
                file.serialize((section, instance, timed, round, format!("{us:.3}")))?;
            }
        }
        file.flush()?;
    }
    Ok(())
}
