//! The cost of arc consistency by each algorithm. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use benches::csp::{Scale, measure, searches};
use clap::Parser;

/// Makes instances of the Lecoutre series arc consistent by each algorithm in turns, from the start and after each assignment of one
/// variable, compares the values that are left with the expected ones, and prints Markdown tables.
#[derive(Debug, Parser)]
struct Args {
    /// Two rounds, for a look.
    #[arg(long)]
    quick: bool,
    /// Rounds, in each of which all algorithms take turns.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Folder of the instances.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/data/csp-binary")]
    data: PathBuf,
    /// Instead, search each instance once, trying at most this number of values.
    #[arg(long, value_name = "VALUES")]
    search: Option<u64>,
    /// Where to write all figures.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(values_max) = args.search {
        return searches(&args.data, values_max);
    }
    let rounds = if args.quick { 2 } else { args.rounds };
    measure(&Scale { rounds, data: args.data }, args.csv.as_deref())
}
