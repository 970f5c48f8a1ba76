//! A dry run of arc consistency: `nearcast groups solve` over an instance of XCSP3.

use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use flate2::read::MultiGzDecoder;
use groups::network::{Algorithm, Domains, Found, Network, Outcome, search, xcsp};
use serde_json::{Map, Value, json};

/// Most values that a search tries: twenty minutes where there are some hundred constraints.
const SEARCH_NODES_MAX: u64 = 100_000_000;

/// Arguments of `nearcast groups solve`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast groups solve qwh-10-57-0_X2.xml.gz --search
  nearcast groups solve composed-25-01-02-0.xml --algorithm ac4 --assign 'x[0]=3' --assign 'x[1]=7'")]
pub struct SolveArguments {
    /// An instance of XCSP3 with constraints in extension over one or two variables, packed if its name ends in `.gz`
    #[arg(value_name = "INSTANCE")]
    pub instance: PathBuf,
    /// The algorithm that makes it arc consistent
    #[arg(long, value_enum, default_value_t = AlgorithmArgument::Ac3bit)]
    pub algorithm: AlgorithmArgument,
    /// A variable with the one value that it may have; may be given again
    #[arg(long, value_name = "VAR=VALUE")]
    pub assign: Vec<String>,
    /// Look for a solution as well
    #[arg(long)]
    pub search: bool,
}

/// An algorithm that makes networks arc consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmArgument {
    /// Counters and lists of supports
    Ac4,
    /// Supports as bits, with residues
    Ac3bit,
    /// Nodes and edges, counted anew in each loop; on a CUDA device where there is one
    Ac4gpu,
    /// Nodes and edges, counted once; on a CUDA device where there is one
    #[value(name = "ac4gpu+")]
    Ac4gpuPlus,
}

impl From<AlgorithmArgument> for Algorithm {
    fn from(argument: AlgorithmArgument) -> Self {
        match argument {
            AlgorithmArgument::Ac4 => Self::Ac4,
            AlgorithmArgument::Ac3bit => Self::Ac3Bit,
            AlgorithmArgument::Ac4gpu => Self::Ac4Gpu,
            AlgorithmArgument::Ac4gpuPlus => Self::Ac4GpuPlus,
        }
    }
}

/// Makes an instance arc consistent, and prints the result as one JSON document.
///
/// # Errors
/// A file that cannot be read or is too large, a fault of the instance with its line, an assignment of an unknown variable or value, and
/// a search that ends without an answer.
pub fn solve(arguments: &SolveArguments) -> anyhow::Result<()> {
    let SolveArguments { instance: path, algorithm, assign, search: is_searched } = arguments;
    let text = read(path)?;
    let network = xcsp::read(&text).map_err(|fault| anyhow::anyhow!("{}: {fault}", path.display()))?;
    let mut start = Domains::new(&network);
    for assignment in assign {
        let (variable, place) =
            find(&network, assignment).with_context(|| format!("--assign {assignment}"))?;
        start.assign(&network, variable, place);
    }
    let algorithm = Algorithm::from(*algorithm);
    let device = Device::find(algorithm);
    let began = Instant::now();
    let outcome = device.and_then(|mut device| device.enforce(&network, &start));
    let outcome = outcome.unwrap_or_else(|| algorithm.enforce(&network, &start));
    let solution = match &outcome.domains {
        Some(left) if *is_searched => match search(&network, left, SEARCH_NODES_MAX) {
            Found::Solution(places) => named(&network, &places),
            Found::Nothing => Value::Null,
            Found::Stopped => bail!("the search was stopped after {SEARCH_NODES_MAX} values"),
        },
        _ => Value::Null,
    };
    let seconds = began.elapsed().as_secs_f64();
    let mut document = Map::new();
    document.insert("consistent".to_owned(), json!(outcome.domains.is_some()));
    let left = outcome.domains.as_ref();
    document.insert("removed".to_owned(), json!(left.map(|left| left.removed(&network))));
    document.insert("closure".to_owned(), json!(left.map(|left| left.closure(&network))));
    document.insert("seconds".to_owned(), json!(seconds));
    document.insert("loops".to_owned(), json!(outcome.loops));
    if *is_searched {
        document.insert("solution".to_owned(), solution);
    }
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// A device, and the algorithm that it is for.
#[cfg(feature = "gpu")]
struct Device(groups_gpu::Letter, groups_gpu::Method);

#[cfg(feature = "gpu")]
impl Device {
    /// The first one, for the algorithms that are for devices; says so where there is none.
    fn find(algorithm: Algorithm) -> Option<Self> {
        let method = match algorithm {
            Algorithm::Ac4 | Algorithm::Ac3Bit => return None,
            Algorithm::Ac4Gpu => groups_gpu::Method::Ac4Gpu,
            Algorithm::Ac4GpuPlus => groups_gpu::Method::Ac4GpuPlus,
        };
        let first = || -> Result<_, groups_gpu::Error> {
            let devices = device::Device::all()?;
            groups_gpu::Letter::new(&groups_gpu::Kernels::load(&devices[0])?)
        };
        known(first()).map(|letter| Self(letter, method))
    }

    fn enforce(&mut self, network: &Network, start: &Domains) -> Option<Outcome> {
        known(self.0.enforce(network, start, self.1))
    }
}

/// What a device answered; says so where it did not.
#[cfg(feature = "gpu")]
fn known<T>(answer: Result<T, groups_gpu::Error>) -> Option<T> {
    answer.map_err(|reason| eprintln!("gpu: {reason}; the processor runs the algorithm")).ok()
}

#[cfg(not(feature = "gpu"))]
enum Device {}

#[cfg(not(feature = "gpu"))]
impl Device {
    fn find(_: Algorithm) -> Option<Self> {
        None
    }

    fn enforce(&mut self, _: &Network, _: &Domains) -> Option<Outcome> {
        match *self {}
    }
}

/// Reads a file, and unpacks it if its name ends in `.gz`, as far as an instance may be long.
fn read(path: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("{} cannot be read", path.display());
    let file = File::open(path).with_context(unreadable)?;
    let is_packed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let source: Box<dyn Read> = if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut bytes = Vec::new();
    source.take(xcsp::DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    if bytes.len() > xcsp::DOCUMENT_BYTES_MAX {
        bail!("{} has more than {} bytes", path.display(), xcsp::DOCUMENT_BYTES_MAX);
    }
    String::from_utf8(bytes).with_context(unreadable)
}

/// The variable of an assignment, and the place of its value.
fn find(network: &Network, assignment: &str) -> anyhow::Result<(usize, usize)> {
    let (name, value) = assignment.rsplit_once('=').context("an assignment is VAR=VALUE")?;
    let variable = network.variable(name).with_context(|| format!("there is no variable {name}"))?;
    let value = value.parse().with_context(|| format!("{value:?} is no whole number"))?;
    let place = network.place(variable, value);
    Ok((variable, place.with_context(|| format!("{value} is not in the domain of {name}"))?))
}

fn named(network: &Network, places: &[usize]) -> Value {
    let value = |(variable, place): (usize, &usize)| {
        (network.name(variable).to_owned(), json!(network.values(variable)[*place]))
    };
    Value::Object(places.iter().enumerate().map(value).collect())
}
