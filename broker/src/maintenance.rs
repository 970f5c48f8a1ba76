//! Work on a data directory without serving from it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::{push, store};

/// Arguments of `nearcast backup`.
#[derive(Clone, Debug, Args)]
pub struct BackupArguments {
    /// The data directory, of a broker that runs or of one that does not
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// A new directory for the copy, as the broker sees it
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
}

/// Copies a data directory into a new one, through the broker that has it if one does.
///
/// # Errors
/// A directory that cannot be read or is damaged, and a target that is there or cannot be written.
pub fn backup(arguments: &BackupArguments) -> anyhow::Result<()> {
    let BackupArguments { data, to } = arguments;
    let made = store::back_up(data, to)?;
    println!("{} is a copy of {}: {made}", to.display(), data.display());
    Ok(())
}

/// Writes a data directory anew without what was replaced or removed, through the broker that has it if one does.
///
/// # Errors
/// A directory that cannot be read or is damaged, and a disk without room for a second file.
pub fn wipe(data: &Path) -> anyhow::Result<()> {
    let written = store::wipe(data)?;
    println!("{} has nothing of what was replaced or removed any more: {written}", data.display());
    Ok(())
}

/// Says what is in a data directory and what is wrong with it: success if nothing is, 1 if something is damaged, 2 if it
/// cannot be read.
#[must_use]
pub fn verify(data: &Path) -> ExitCode {
    match store::check(data) {
        Ok(report) => {
            println!("{report}");
            if let Err(error) = push::verify_key(data) {
                println!("{error:#}");
                return ExitCode::from(1);
            }
            if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("nearcast: {error}");
            ExitCode::from(2)
        }
    }
}
