//! Arc consistency on a device and on one core of its machine: `groups FOLDER [--csv FILE]` prints tables of times, and `groups FOLDER
//! --conformance [RUNS]` holds every answer against the processor's. FOLDER is that of the instances, `shared/data/csp-binary`. With `--host`
//! the processor is the device, to try the program.
//!
//! A time is a mean over a few milliseconds; of seven of them the tables have the median and, in percent of it, half the way from the
//! least to the most. Memory on the device is there from a run before.

mod conformance;
#[path = "../../tests/it/engines.rs"]
mod engines;
#[path = "../../../groups/tests/it/network/folder.rs"]
#[expect(dead_code, reason = "the folder is given")]
mod folder;
#[path = "../../../groups/tests/it/network/generator.rs"]
mod generator;
mod measure;
#[path = "../../../groups/tests/it/network/oracle.rs"]
#[expect(dead_code, reason = "solutions are for the processor's tests")]
mod oracle;
mod tables;
mod worlds;

use std::path::PathBuf;
use std::process::ExitCode;

use device::Device;
use groups_gpu::Kernels;

/// What is asked for.
struct Arguments {
    folder: PathBuf,
    csv: Option<PathBuf>,
    /// How many random networks.
    conformance: Option<u64>,
    is_host: bool,
}

fn arguments() -> Option<Arguments> {
    let mut asked = Arguments { folder: PathBuf::new(), csv: None, conformance: None, is_host: false };
    let mut given = std::env::args().skip(1).peekable();
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--host" => asked.is_host = true,
            "--csv" => asked.csv = Some(given.next()?.into()),
            "--conformance" => {
                let runs = given.peek().and_then(|text| text.parse().ok());
                if runs.is_some() {
                    given.next();
                }
                asked.conformance = Some(runs.unwrap_or(100_000));
            }
            folder => asked.folder = folder.into(),
        }
    }
    asked.folder.is_dir().then_some(asked)
}

fn main() -> ExitCode {
    let Some(Arguments { folder, csv, conformance, is_host }) = arguments() else {
        eprintln!("groups FOLDER [--csv FILE | --conformance [RUNS]] [--host]");
        return ExitCode::FAILURE;
    };
    let found = if is_host { Ok(vec![Device::host(1 << 33)]) } else { Device::all() };
    let kernels = match found.and_then(|devices| Kernels::load(&devices[0])) {
        Ok(kernels) => kernels,
        Err(error) => {
            eprintln!("no device: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(runs) = conformance {
        return conformance::run(&kernels, &folder, runs);
    }
    tables::print(&kernels, &folder, csv.as_deref());
    ExitCode::SUCCESS
}
