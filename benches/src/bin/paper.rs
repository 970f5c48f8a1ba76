//! The paper's tables and figures on the machine at hand. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Parser;
use device::Device;

use benches::chr;
use benches::csp;
use benches::engines::process;
use benches::gain;
use benches::gain::measure::Scale;
use benches::paper::plan::{Plan, Section, Who};
use benches::paper::progress::Progress;
use benches::paper::report::{Provenance, report};
use benches::paper::{absences, plots, run};

/// Measures the paper's tables and figures, checks every answer and writes a report with plots.
#[derive(Debug, Parser)]
struct Args {
    /// Who takes part, comma-separated; all that this machine can run when absent.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<Who>,
    /// Which tables and figures, comma-separated; all when absent.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Section>,
    /// Up to 50,000 subscriptions: less than two minutes on two cores.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// A thousand to a million subscriptions, which is what happens anyway.
    #[arg(long)]
    full: bool,
    /// Subscriptions at which the figures have points, comma-separated; 1,000 to 50,000 in a quick run, else to a million.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    sizes: Vec<u32>,
    /// Turns of each contender; 3 in a quick run, else 5.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Seed of the workload.
    #[arg(long, default_value_t = 2012)]
    seed: u64,
    /// With `--only checks`: shows these figures, which were measured elsewhere, and measures nothing.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// The folder that the report, the figures and the plots are written to.
    #[arg(long, default_value = "target/paper")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.only.contains(&Section::Checks) {
        anyhow::ensure!(args.only.len() == 1, "`checks` are measured on their own");
        let scale = Scale {
            contexts: if args.full { 5_000 } else { 1_000 },
            rounds: [3, args.rounds.unwrap_or(if args.full { 7 } else { 3 }).into()],
        };
        let from =
            format!("{}; build profile {}; commit {}", process::machine(), process::profile(), commit());
        return match &args.figures {
            Some(path) => {
                gain::show(&gain::read(path)?, &args.out, &format!("Figures of {}", path.display()))
            }
            None => gain::run(&args.out, scale, &from),
        };
    }
    if args.only.contains(&Section::Rules) {
        anyhow::ensure!(args.only.len() == 1, "`rules` are measured on their own");
        let scale = chr::Scale {
            is_quick: args.quick,
            rounds: args.rounds.unwrap_or(3),
            data: "../shared/data/chr".into(),
        };
        return chr::measure(&scale, Some(&args.out));
    }
    if args.only.contains(&Section::Groups) {
        anyhow::ensure!(args.only.len() == 1, "`groups` are measured on their own");
        let rounds = args.rounds.unwrap_or(if args.quick { 2 } else { 7 });
        std::fs::create_dir_all(&args.out)?;
        let scale = csp::Scale { rounds, data: "../shared/data/csp-binary".into() };
        return csp::measure(&scale, Some(&args.out.join("groups.csv")));
    }
    let plan = args.plan();
    let wants_device = plan.has(Who::Clcb) || plan.has(Who::Gpu);
    let found = if wants_device { Device::all().map_err(|error| error.to_string()) } else { Ok(Vec::new()) };
    let (devices, reason) = match found {
        Ok(devices) => (devices, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    // Before minutes are spent on what could not be written.
    std::fs::create_dir_all(&args.out).with_context(|| format!("making {}", args.out.display()))?;
    let mut progress = Progress::new();
    let figures = run(&plan, &devices, &mut progress)?;
    progress.finish();
    let from = Provenance {
        machine: format!("{}; build profile {}", process::machine(), process::profile()),
        devices: devices.iter().map(|device| device.name().to_owned()).collect(),
        commit: commit(),
        command: command(),
        absent: absences(&plan, &devices, reason.as_deref()),
        seconds: progress.elapsed().as_secs_f64(),
    };
    let drawn = plots::write_all(&plan, &figures, &args.out)?;
    for (name, text) in
        [("figures.csv", figures.csv()?), ("report.md", report(&plan, &figures, &from, &drawn))]
    {
        let path = args.out.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    println!("{:.0} s; the report is {}", from.seconds, args.out.join("report.md").display());
    Ok(())
}

impl Args {
    fn plan(&self) -> Plan {
        let mut plan = if self.quick { Plan::quick() } else { Plan::full() };
        plan.seed = self.seed;
        if let Some(rounds) = self.rounds {
            plan.rounds = rounds.into();
        }
        if !self.sizes.is_empty() {
            plan.sizes.clone_from(&self.sizes);
            plan.sizes.sort_unstable();
            plan.sizes.dedup();
        }
        if !self.engines.is_empty() {
            plan.engines.clone_from(&self.engines);
        }
        if !self.only.is_empty() {
            plan.sections.clone_from(&self.only);
        }
        plan
    }
}

/// The commit of the working copy, where there is one.
fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    if text.trim().is_empty() { "unknown".to_owned() } else { text.trim().to_owned() }
}

/// How to do this again.
fn command() -> String {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let line = format!("cargo run --release -p benches --bin paper -- {}", args.join(" "));
    line.trim_end_matches(" -- ").to_owned()
}
