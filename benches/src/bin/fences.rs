//! False enters and exits of real, noisy tracks, plain and with dwell and hysteresis. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;

use benches::engines::report::{Report, digits, thousands};
use benches::fences::race::{Fences, Way, compare};
use benches::fences::tracks::{cleaned, recorded};

/// The first is the plain one, which the others are compared with.
const WAYS: [Way; 10] = [
    Way { dwell_s: 0, hysteresis_m: 0.0 },
    Way { dwell_s: 0, hysteresis_m: 25.0 },
    Way { dwell_s: 0, hysteresis_m: 50.0 },
    Way { dwell_s: 0, hysteresis_m: 100.0 },
    Way { dwell_s: 15, hysteresis_m: 0.0 },
    Way { dwell_s: 30, hysteresis_m: 0.0 },
    Way { dwell_s: 60, hysteresis_m: 0.0 },
    Way { dwell_s: 15, hysteresis_m: 50.0 },
    Way { dwell_s: 30, hysteresis_m: 50.0 },
    Way { dwell_s: 60, hysteresis_m: 100.0 },
];

/// Sends twenty minutes of real taxis through fences and counts what should not have been told. No clock is involved:
/// the same figures on every run and machine.
#[derive(Debug, Parser)]
struct Args {
    /// Fences of each size.
    #[arg(long, default_value_t = 500)]
    fences: usize,
    /// Radii in metres.
    #[arg(long, value_delimiter = ',', default_values_t = [100.0, 300.0, 1_000.0])]
    radii: Vec<f64>,
    /// Where the fences are.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// A tenth of the fences.
    #[arg(long)]
    quick: bool,
    /// Writes the report to a file, too.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let reports = recorded()?;
    let tracks = cleaned(&reports);
    let end = reports.last().context("an empty recording")?.at + Duration::from_secs(1);
    let fences_count = if args.quick { args.fences.div_ceil(10) } else { args.fences };
    let mut report = Report::default();
    report.paragraph(&format!(
        "{} reports, {} after cleaning; {fences_count} fences of each size, seed {}.",
        thousands(reports.len() as u64),
        thousands(tracks.len() as u64),
        args.seed
    ));
    for radius_m in &args.radii {
        let fences = Fences::draw(&reports, fences_count, *radius_m, args.seed)?;
        let real = fences.visits(&tracks, end);
        let told = fences.told(&reports, &WAYS, end)?;
        let plain = compare(&told[0], &real).false_pairs();
        let rows: Vec<_> =
            WAYS.iter().zip(&told).map(|(way, told)| row(way, &compare(told, &real), plain)).collect();
        report.paragraph(&format!("Radius {radius_m} m:"));
        report.table(&HEADING, &rows);
    }
    if let Some(path) = &args.out {
        std::fs::write(path, report.text()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

const HEADING: [&str; 8] = [
    "dwell_s, hysteresis_m",
    "enters told",
    "false pairs",
    "of the plain ones",
    "not there",
    "not left",
    "visits missed",
    "median delay s",
];

fn row(way: &Way, comparison: &benches::fences::visits::Comparison, plain: usize) -> Vec<String> {
    let percent =
        |part: usize, whole: usize| format!("{} %", digits(100.0 * part as f64 / whole.max(1) as f64));
    vec![
        format!("{}, {}", way.dwell_s, way.hysteresis_m),
        thousands(comparison.enters as u64),
        thousands(comparison.false_pairs() as u64),
        percent(comparison.false_pairs(), plain),
        thousands(comparison.false_visits as u64),
        thousands(comparison.false_breaks as u64),
        format!(
            "{} of {} ({})",
            thousands(comparison.missed as u64),
            thousands(comparison.visits as u64),
            percent(comparison.missed, comparison.visits)
        ),
        digits(comparison.median_delay().as_secs_f64()),
    ]
}
