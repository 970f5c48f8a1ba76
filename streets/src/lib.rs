//! Street networks, read from OpenStreetMap (PBF or XML) or from tables, as directed graphs in flat arrays.
//!
//! [`load`] reads all streets. [`load_connected`] cuts them to the largest strongly connected part, so that a vehicle can drive on from
//! everywhere. [`Network::grid`], [`Network::ring`] and [`Network::country`] make networks up; a [`Country`] is
//! made up node by node, as large as a state's.
#![forbid(unsafe_code)]

mod country;
mod draft;
mod made;
mod network;
mod osm;
mod outside;
mod pbf;
mod table;
mod xml;

use std::path::{Path, PathBuf};

use draft::Draft;

pub use country::{Country, CountryArc};
pub use network::{Census, Class, NONE, Network, displaced};

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum StreetsError {
    /// A file cannot be opened or read.
    #[error("{path}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A path is none of the forms that are read.
    #[error(
        "{path}: neither .osm.pbf, .osm, .osm.gz nor a folder with nodes.csv and edges.csv (or .csv.gz)",
        path = path.display()
    )]
    Form {
        /// Which.
        path: PathBuf,
    },
    /// What a file holds is not what its form asks for, so that nothing behind it can be trusted.
    #[error("{path}, {place}: {problem}", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// Where in it: a line, a byte, an element.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no street that one could drive on and come back.
    #[error("{path}: no streets to drive on{}", first_problem.as_ref().map(|p| format!("; first problem: {p}")).unwrap_or_default(), path = path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
        /// The first record that was left out, where one was.
        first_problem: Option<String>,
    },
    /// More nodes, arcs or points than 32-bit indexes tell apart.
    #[error("a network of more than {max} {what}")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// The most.
        max: usize,
    },
}

/// Reads a street network.
///
/// - `.osm.pbf`, `.osm`, `.osm.gz`: the ways of the classes that cars use ([`Class`]), split where they meet; oneway, speed limits
///   (km/h, mph, knots, `walk`; where none is posted, by class), lanes, signals. Who may use a street (`access`), what weighs or
///   turns, is not looked at.
/// - A folder: `nodes.csv` (`node`, `lat`, `lon`) and `edges.csv` (`from`, `to`, `length_mm`, `oneway`, `highway`, `maxspeed`, `name`,
///   `shape` as `lat,lon lat,lon ...`), either as `.csv.gz`, too.
///
/// A single record that makes no sense (a number that is none, a node that is not there) is left out and counted in [`Census`].
///
/// # Errors
/// [`StreetsError`], which says the file, the place in it, and what is wrong.
pub fn load(path: &Path) -> Result<Network, StreetsError> {
    let draft = read(path)?;
    let first_problem = draft.census.first_problem.clone();
    draft.into_network(false)?.ok_or(StreetsError::Empty { path: path.to_owned(), first_problem })
}

/// As [`load`], cut to the largest strongly connected part.
///
/// # Errors
/// As [`load`].
pub fn load_connected(path: &Path) -> Result<Network, StreetsError> {
    let draft = read(path)?;
    let first_problem = draft.census.first_problem.clone();
    draft.into_network(true)?.ok_or(StreetsError::Empty { path: path.to_owned(), first_problem })
}

fn read(path: &Path) -> Result<Draft, StreetsError> {
    if let Err(source) = std::fs::metadata(path) {
        return Err(StreetsError::Io { path: path.to_owned(), source });
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    if path.is_dir() {
        table::read(path)
    } else if name.ends_with(".pbf") {
        osm::draft(path, pbf::read)
    } else if name.ends_with(".osm") || name.ends_with(".osm.gz") {
        osm::draft(path, xml::read)
    } else {
        Err(StreetsError::Form { path: path.to_owned() })
    }
}
