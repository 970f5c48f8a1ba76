//! The folder of instances.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use groups::network::{Domains, Network, xcsp};

/// The folder of the instances; `None`, said aloud, in a clone that has none beside it.
pub(crate) fn folder() -> Option<PathBuf> {
    // A program that was carried to another machine is run in a folder of its own.
    let here = std::env::current_dir().expect("a folder");
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().chain(here.ancestors());
    let folder = around.map(|folder| folder.join("shared/data/csp-binary")).find(|folder| folder.exists());
    if folder.is_none() {
        eprintln!("NOT TESTED: no shared/data/csp-binary beside the project or a folder around it");
    }
    folder
}

/// The text of a packed file.
fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    GzDecoder::new(file).read_to_string(&mut text).expect("packed text");
    text
}

/// An instance by its name.
pub(crate) fn instance(folder: &Path, name: &str) -> Network {
    let text = unpacked(&folder.join(format!("{name}.gz")));
    xcsp::read(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// All instances by name, each with the fields of its row.
pub(crate) fn instances(folder: &Path) -> Vec<(Vec<String>, Network)> {
    let rows = std::fs::read_to_string(folder.join("expected_ac.csv")).expect("a table");
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::to_owned).collect();
        let network = instance(folder, &fields[0]);
        (fields, network)
    };
    rows.lines().skip(1).map(row).collect()
}

/// An instance after an assignment.
pub(crate) struct Assigned {
    /// The line that describes it.
    pub(crate) line: String,
    pub(crate) start: Domains,
    /// How many values are removed; `None` if the instance is not consistent then.
    pub(crate) removed: Option<usize>,
}

/// All assignments of each instance, by its name.
pub(crate) fn assignments(
    folder: &Path,
    networks: &BTreeMap<String, Network>,
) -> BTreeMap<String, Vec<Assigned>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in unpacked(&folder.join("expected_ac_after_assignment.csv.gz")).lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let [file, name, value, ac, removed] = fields[..] else { panic!("{line}") };
        let network = &networks[file];
        let variable = network.variable(name).expect("a variable");
        let place = network.place(variable, value.parse().expect("a number")).expect("a value");
        let mut start = Domains::new(network);
        start.assign(network, variable, place);
        let removed = (ac == "consistent").then(|| removed.parse().expect("a count"));
        all.entry(file.to_owned()).or_default().push(Assigned { line: line.to_owned(), start, removed });
    }
    all
}
