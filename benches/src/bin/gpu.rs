//! The GPU engines against the CPU's and the paper's figures. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use device::Device;
use matcher::event::Event;
use matcher::fixtures::workload::Config;

use benches::engines::process;
use benches::engines::report::{Report, thousands};
use benches::gpu::field::Field;
use benches::gpu::figures::{Figure, Figures};
use benches::gpu::{sections, tick};

/// Events of the largest batches: two of 65,536, so that consecutive ones are measured.
const EVENTS: u64 = 131_072;
/// Batch sizes.
const SIZES: [usize; 9] = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536];
/// The parts of a run.
const SECTIONS: [&str; 6] = ["lone", "batches", "moves", "memory", "steps", "tick"];
/// Events that brute force checks at each size.
const CHECKED: usize = 50;

/// Measures the GPU engines, checks every answer and prints Markdown tables.
#[derive(Debug, Parser)]
struct Args {
    /// What to run, comma-separated: lone, batches, moves, memory, steps, tick. Everything when absent.
    #[arg(long, value_delimiter = ',')]
    section: Vec<String>,
    /// Subscriptions of ten filters at which to stop and measure, ascending.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,50000,100000,250000,500000,1000000")]
    sizes: Vec<u32>,
    /// Rounds in which all take a turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// At most 25,000 subscriptions and fewer rounds.
    #[arg(long)]
    quick: bool,
    /// Leaves out the scenario where every constraint holds.
    #[arg(long)]
    default_only: bool,
    /// Writes the report to a file, too.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Writes every figure to a file, as comma-separated values.
    #[arg(long)]
    csv: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let mut args = Args::parse();
    for section in &args.section {
        anyhow::ensure!(
            SECTIONS.contains(&section.as_str()),
            "no section {section}, there are: {}",
            SECTIONS.join(", ")
        );
    }
    if args.quick {
        args.sizes = vec![1_000, 25_000];
        args.rounds = args.rounds.min(2);
    }
    let devices = match Device::all() {
        Ok(devices) => devices,
        Err(error) => {
            println!("No GPU is measured: {error}.");
            return Ok(());
        }
    };
    let mut report = Report::default();
    let names: Vec<&str> = devices.iter().map(Device::name).collect();
    report.paragraph(&format!(
        "{}; {}; build profile {}. Median (least to largest) of {} rounds in which all take a turn; the steps of single events.",
        names.join(", "),
        process::machine(),
        process::profile(),
        args.rounds,
    ));
    let mut figures = Figures::default();
    let mut checks = Vec::new();
    let largest = args.sizes.last().copied().context("a size")?;
    let default = Config { subscriptions: largest, ..Config::default() };
    if args.section != ["tick"] {
        measure(&args, Field::new("default", default.clone(), &devices)?, &mut figures, &mut checks)?;
    }
    if !args.default_only && args.runs("steps") {
        // Every event has all names, and every constraint accepts every value (the paper's Fig. 6 b).
        let all_hold = Config { names: 5, topics: 1, attributes: 5..=5, selectivity: 1.0, ..default };
        let only_steps = Args { section: vec!["steps".to_owned()], ..args_of(&args) };
        measure(
            &only_steps,
            Field::new("all constraints hold", all_hold, &devices)?,
            &mut figures,
            &mut checks,
        )?;
    }
    if args.runs("tick") {
        for clients in &args.sizes {
            checks.push(tick::tick(&devices, *clients, args.rounds, &mut figures)?);
        }
    }
    tables(&figures, &mut report);
    report.paragraph(&checks.join("  \n"));
    for (path, text) in [(&args.out, report.text().to_owned()), (&args.csv, figures.csv())] {
        if let Some(path) = path {
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

fn args_of(args: &Args) -> Args {
    Args { section: args.section.clone(), sizes: args.sizes.clone(), out: None, csv: None, ..*args }
}

impl Args {
    fn runs(&self, section: &str) -> bool {
        self.section.is_empty() || self.section.iter().any(|asked| asked == section)
    }
}

fn measure(
    args: &Args,
    mut field: Field,
    figures: &mut Figures,
    checks: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mut events: Vec<Event> = Vec::new();
    for subscriptions in &args.sizes {
        field.grow(*subscriptions)?;
        eprintln!("{} filters installed", thousands(field.filters()));
        if events.is_empty() {
            let workload = field.workload()?;
            events = (0..EVENTS).map(|index| workload.event(index)).collect();
        }
        checks.push(field.check(&events, CHECKED)?);
        if args.runs("lone") {
            sections::lone(&mut field, &events, args.rounds, figures)?;
        }
        if args.runs("batches") {
            sections::batches(&mut field, &events, &SIZES, args.rounds, figures)?;
        }
        if args.runs("steps") {
            sections::steps(&mut field, &events, figures)?;
        }
        if args.runs("memory") {
            sections::memory(&mut field, figures);
        }
        if args.runs("moves") {
            sections::moves(&mut field, args.rounds, figures)?;
            checks.push(format!("after moves: {}", field.check(&events, CHECKED)?));
        }
    }
    Ok(())
}

/// A table for each section: engines and what was varied across, sizes down.
fn tables(figures: &Figures, report: &mut Report) {
    for section in SECTIONS {
        let mut columns: Vec<(&str, &str, &str, &str)> = Vec::new();
        let mut sizes: Vec<u64> = Vec::new();
        let column = |figure: &Figure| -> (String, String, String) {
            (figure.scenario.clone(), figure.engine.clone(), figure.what.clone())
        };
        for figure in figures.of(section) {
            let key = (figure.scenario.as_str(), figure.engine.as_str(), figure.what.as_str(), figure.unit);
            if !columns.contains(&key) {
                columns.push(key);
            }
            if !sizes.contains(&figure.filters) {
                sizes.push(figure.filters);
            }
        }
        if columns.is_empty() {
            continue;
        }
        let headings: Vec<String> = std::iter::once(format!("{section}: filters"))
            .chain(sizes.iter().map(|size| thousands(*size)))
            .collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = columns
            .iter()
            .map(|(scenario, engine, what, unit)| {
                let cell = |size: &u64| {
                    let key = ((*scenario).to_owned(), (*engine).to_owned(), (*what).to_owned());
                    let of_size =
                        figures.of(section).filter(|figure| figure.filters == *size && figure.unit == *unit);
                    let mut found = of_size.filter(|figure| column(figure) == key);
                    found.next().map_or_else(String::new, Figure::text)
                };
                let label = format!("{scenario}, `{engine}`, {what}, {unit}");
                std::iter::once(label).chain(sizes.iter().map(cell)).collect()
            })
            .collect();
        report.table(&headings, &rows);
    }
}
