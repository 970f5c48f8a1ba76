//! What rules cost, beside SWI-Prolog's CHR. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use benches::chr::{Scale, measure};
use clap::Parser;

/// Runs programs by the engine and by SWI-Prolog in turns, compares the stores that they end with, and prints Markdown tables: these, what
/// origins cost, and how the time of a fact grows with the store.
#[derive(Debug, Parser)]
struct Args {
    /// A twentieth of the size, for a look.
    #[arg(long)]
    quick: bool,
    /// Runs of each program.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Folder of the programs.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/data/chr")]
    data: PathBuf,
    /// Folder for the tables and a plot.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let Args { quick: is_quick, rounds, data, out } = Args::parse();
    measure(&Scale { is_quick, rounds, data }, out.as_deref())
}
