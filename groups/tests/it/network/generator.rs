//! Random networks.

use groups::network::{Domains, Network, Table};
use rand::Rng;
use rand::rngs::SmallRng;

use super::oracle::Described;

/// A network, with several constraints over the same variables, in both orders and of one with itself.
pub(crate) fn described(random: &mut SmallRng, size_max: usize, variables_max: usize) -> Described {
    let variables_count = random.random_range(1..=variables_max);
    let sizes: Vec<_> = (0..variables_count).map(|_| random.random_range(1..=size_max)).collect();
    let looseness = random.random_range(0.2..1.0);
    let count = random.random_range(0..=2 * variables_count);
    let table = |random: &mut SmallRng, sizes: [usize; 2], looseness: f64| {
        let row = |random: &mut SmallRng| (0..sizes[1]).map(|_| random.random_bool(looseness)).collect();
        (0..sizes[0]).map(|_| row(random)).collect::<Vec<Vec<bool>>>()
    };
    let mut constraints = Vec::new();
    for _ in 0..count {
        let scope = [0; 2].map(|_| random.random_range(0..variables_count));
        let own = if scope[0] == scope[1] { 0.9 } else { looseness };
        constraints.push((scope, table(random, scope.map(|variable| sizes[variable]), own)));
    }
    let mut unary = Vec::new();
    if random.random_bool(0.2) {
        let variable = random.random_range(0..variables_count);
        unary.push((variable, (0..sizes[variable]).map(|_| random.random_bool(0.8)).collect()));
    }
    Described { sizes, constraints, unary }
}

/// The network, each table as its supports or as its conflicts.
pub(crate) fn network(random: &mut SmallRng, described: &Described) -> Network {
    described.build(|| if random.random_bool(0.5) { Table::Supports } else { Table::Conflicts })
}

/// Some values gone, on some runs.
pub(crate) fn start(random: &mut SmallRng, network: &Network) -> Domains {
    let mut start = Domains::new(network);
    for _ in 0..random.random_range(0..3) {
        let variable = random.random_range(0..network.variables_count());
        let place = random.random_range(0..network.values(variable).len());
        if random.random_bool(0.5) {
            start.assign(network, variable, place);
        } else {
            start.remove(network, variable, place);
        }
    }
    start
}
