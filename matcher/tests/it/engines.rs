//! Every engine against the conformance suite and, in random worlds, against the oracle.

use matcher::engine::Engine;
use matcher::engine::cells::Cells;
use matcher::engine::scan::Scan;
use matcher::fixtures::{conformance, random};
use matcher::geo::World;

/// Event x filter pairs that an ordinary run compares.
const PAIRS: u64 = 10_000_000;
/// The same with `NEARCAST_SOAK=1`.
const SOAK_PAIRS: u64 = 1_000_000_000;
/// Where the seeds of a soak begin, beyond those of ordinary runs.
const SOAK_SEED: u64 = 1_000_000;

fn scan(world: World) -> Box<dyn Engine> {
    Box::new(Scan::new(world))
}

fn cells(world: World) -> Box<dyn Engine> {
    Box::new(Cells::new(world))
}

#[test]
fn scan_passes_the_conformance_suite() {
    conformance::check(&scan);
}

#[test]
fn cells_passes_the_conformance_suite() {
    conformance::check(&cells);
}

#[test]
fn cells_answers_what_scan_answers_in_random_worlds() {
    let soak = std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1");
    let (first_seed, pairs) = if soak { (SOAK_SEED, SOAK_PAIRS) } else { (0, PAIRS) };
    let tally = random::run_pairs(&cells, first_seed, pairs).unwrap_or_else(|failure| panic!("{failure}"));
    println!("compared {tally:?}, 0 mismatches");
    assert!(tally.pairs >= pairs, "{tally:?}");
    // Worlds in which hardly anything matches or changes would prove little.
    assert!(tally.matches >= pairs / 100, "{tally:?}");
    assert!(tally.changes + tally.moves >= pairs / 1_000, "{tally:?}");
}
