//! Every engine on random graphs.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, UNREACHABLE};

use super::generator::{Random, random};
use super::{Engines, is_soak};

/// Graphs that are looked at.
fn graphs() -> u64 {
    if is_soak() { 20_000 } else { 400 }
}

#[test]
fn every_engine_finds_the_cheapest_route() {
    let mut unreachable = 0;
    for seed in 0..graphs() {
        let Random { graph, places, costs } = random(seed);
        let nodes = u32::try_from(graph.nodes_count()).expect("few");
        let mut random = StdRng::seed_from_u64(seed);
        let mut engines = Engines::new(graph, &places, costs.clone());
        for _ in 0..3 {
            for _ in 0..20 {
                let [from, to] = [(); 2].map(|()| random.random_range(0..nodes));
                unreachable += usize::from(engines.check(from, to).is_none());
            }
            // Some become slow, and some are closed.
            let change = |cost: &Cost| match random.random_range(0..10) {
                0 => UNREACHABLE,
                1..4 => cost * 4,
                _ => *cost,
            };
            let changed = costs.iter().map(change).collect();
            engines.customise(changed);
        }
    }
    assert!(unreachable > 0);
}
