//! The folder of instances.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use groups::network::{Network, xcsp};

/// The folder of the instances; `None`, said aloud, in a clone that has none beside it.
pub(crate) fn folder() -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folder = around.map(|folder| folder.join("shared/data/csp-binary")).find(|folder| folder.exists());
    if folder.is_none() {
        eprintln!("NOT TESTED: no shared/data/csp-binary beside the project or a folder around it");
    }
    folder
}

/// The text of a packed file.
pub(crate) fn unpacked(path: &Path) -> String {
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
