//! Refuses PTX that does not belong to its source; with the feature `host`, compiles the sources as plain C++.

#[cfg(feature = "host")]
mod host;
mod stale;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Cargo runs build scripts in the package's folder and looks into folders for what changed.
    for watched in ["build", "include", "nvcc", "ptx", "src"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let sources = match files("src", "cu") {
        Ok(sources) => sources,
        Err(error) => return refuse(&[format!("kernels/src cannot be listed: {error}")]),
    };
    let faults = match stale::faults(&sources) {
        Ok(faults) => faults,
        Err(error) => return refuse(&[format!("the kernels cannot be read: {error}")]),
    };
    if !faults.is_empty() {
        return refuse(&faults);
    }
    #[cfg(feature = "host")]
    if let Err(error) = host::compile(&sources) {
        return refuse(&[error]);
    }
    ExitCode::SUCCESS
}

/// The folder's files with that extension, sorted by name.
fn files(folder: &str, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in Path::new(folder).read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn refuse(faults: &[String]) -> ExitCode {
    for fault in faults {
        println!("cargo::error={fault}");
    }
    ExitCode::FAILURE
}
