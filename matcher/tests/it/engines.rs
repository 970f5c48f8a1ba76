//! Every engine against the conformance suite and, in random worlds, against the oracle.

use matcher::engine::Engine;
use matcher::engine::scan::Scan;
use matcher::fixtures::conformance;
use matcher::geo::World;

fn scan(world: World) -> Box<dyn Engine> {
    Box::new(Scan::new(world))
}

#[test]
fn scan_passes_the_conformance_suite() {
    conformance::check(&scan);
}
