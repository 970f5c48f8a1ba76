//! Rules beside SWI-Prolog's, tiny.

use std::path::Path;

use benches::chr::{Scale, measure};

#[test]
fn programs_end_with_the_stores_that_they_have_to_and_are_reported() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/chr");
    let folder = tempfile::tempdir().unwrap();
    measure(&Scale { is_quick: true, rounds: 1, data }, Some(folder.path())).unwrap();
    let report = std::fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(report.contains("\n| bench_bool | 50 |") && report.contains("\n| 50000 |"), "{report}");
    assert!(folder.path().join("growth.svg").is_file());
}
