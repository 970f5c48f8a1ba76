//! Graphs that no street planner would make: islands, one-way streets, loops, parallel arcs.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Graph};

/// A graph with a place for each node, and what its arcs cost.
pub(crate) struct Random {
    pub(crate) graph: Graph,
    pub(crate) places: Vec<[f64; 2]>,
    pub(crate) costs: Vec<Cost>,
}

pub(crate) fn random(seed: u64) -> Random {
    let mut random = StdRng::seed_from_u64(seed);
    let nodes = random.random_range(1..80_u32);
    let places = (0..nodes).map(|_| [(); 2].map(|()| random.random_range(-1.0..1.0))).collect();
    let mut arcs: Vec<[u32; 2]> = (0..random.random_range(0..4 * nodes))
        .map(|_| {
            let [tail, head] = [(); 2].map(|()| random.random_range(0..nodes));
            // Most streets lead to somewhere near.
            if random.random_bool(0.8) { [tail, (tail + head % 4) % nodes] } else { [tail, head] }
        })
        .collect();
    arcs.sort_unstable();
    let most = [1, 3, 1_000, 1_000_000_000_000][random.random_range(0..4)];
    let costs = arcs.iter().map(|_| random.random_range(1..=most)).collect();
    Random { graph: Graph::of_arcs(nodes as usize, &arcs), places, costs }
}
