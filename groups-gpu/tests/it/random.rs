//! Random networks, and some that are not.

use device::Device;
use groups::network::{Domains, Table};
use groups_gpu::{Kernels, Method, Pace};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::engines::Engines;
use crate::generator::{described, network, start};
use crate::oracle::Described;
use crate::{HOST_BYTES, is_soak, kernels};

/// As many as `NEARCAST_GROUPS_RUNS` says: a sanitizer takes a hundred times as long for each.
pub(crate) fn asked_runs() -> Option<u64> {
    std::env::var("NEARCAST_GROUPS_RUNS").ok().and_then(|runs| runs.parse().ok())
}

fn runs() -> u64 {
    asked_runs().unwrap_or(if is_soak() { 100_000 } else { 2_000 })
}

/// Whether values were removed and some of each variable are left.
fn check(engines: &mut Engines, seed: u64, size_max: usize, variables_max: usize) -> bool {
    let random = &mut SmallRng::seed_from_u64(seed);
    let described = described(random, size_max, variables_max);
    let network = network(random, &described);
    let start = start(random, &network);
    engines.load(&network);
    let left = engines.check(&network, &start).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    left.is_some_and(|left| left != start)
}

#[test]
fn random_networks_are_left_as_on_the_processor() {
    let mut engines = Engines::new(&kernels());
    let pruned = (0..runs()).filter(|seed| check(&mut engines, *seed, 6, 8)).count();
    println!("{} networks, {pruned} of them pruned and consistent", runs());
    assert!(10 * pruned as u64 > runs(), "{pruned} networks were pruned and are consistent");
}

#[test]
fn domains_of_several_words_are_treated_alike() {
    let mut engines = Engines::new(&kernels());
    let count = runs().div_ceil(50);
    let pruned = (0..count).filter(|seed| check(&mut engines, *seed, 200, 4)).count();
    assert!(pruned as u64 >= count.min(40) / 13, "{pruned} networks were pruned and are consistent");
}

/// Each round removes one value, so that there are more rounds than are started at first.
#[test]
fn a_long_chain_ends() {
    let less = (0..30).map(|a| (0..30).map(|b| a < b).collect()).collect::<Vec<Vec<bool>>>();
    let cycle = Described {
        sizes: vec![30; 2],
        constraints: vec![([0, 1], less.clone()), ([1, 0], less.clone())],
        unary: Vec::new(),
    };
    let chain = Described {
        sizes: vec![30; 30],
        constraints: (0..29).map(|x| ([x, x + 1], less.clone())).collect(),
        unary: Vec::new(),
    };
    let mut engines = Engines::new(&kernels());
    for (described, left) in [(cycle, None), (chain, Some(870))] {
        let network = described.build(|| Table::Supports);
        let all = Domains::new(&network);
        engines.load(&network);
        let found = engines.check(&network, &all).expect("as on the processor");
        assert_eq!(found.map(|found| found.removed(&network)), left);
    }
}

#[test]
fn empty_networks_and_domains_are_ones() {
    let nothing = Described::default().build(|| Table::Supports);
    let none = Described { sizes: vec![2, 0], ..Described::default() }.build(|| Table::Supports);
    let mut engines = Engines::new(&kernels());
    for network in [nothing, none] {
        let all = Domains::new(&network);
        engines.load(&network);
        engines.check(&network, &all).expect("as on the processor");
        assert_eq!(engines.bits.enforce_all(&network, &[]), Ok(Vec::new()));
    }
}

/// The paper's Fig. 3: a value loses its last support in two constraints in one loop, and is one value less.
#[test]
fn a_value_that_loses_two_supports_at_once_is_deleted_once() {
    let same = vec![vec![true, false], vec![false, true]];
    let none_of_first = vec![vec![false], vec![true]];
    let described = Described {
        sizes: vec![1, 2, 2, 2, 1],
        constraints: vec![
            ([1, 0], none_of_first.clone()),
            ([3, 4], none_of_first),
            ([1, 2], same.clone()),
            ([2, 3], same),
        ],
        unary: Vec::new(),
    };
    let network = described.build(|| Table::Supports);
    let all = Domains::new(&network);
    let mut engines = Engines::new(&kernels());
    engines.load(&network);
    engines.check(&network, &all).expect("as on the processor");
    for pace in [Pace::Host, Pace::Device] {
        engines.letter.build(&all).expect("a model");
        let loops = engines.letter.run(Method::Ac4GpuPlus, pace).expect("a run");
        assert_eq!((loops.is_consistent, loops.deleted), (true, vec![2, 1, 0]));
    }
}

/// Blocks and warps of a host are other ones than those of a device: scans of several chunks, and lanes of one.
#[test]
fn more_constraints_than_a_chunk_are_scanned() {
    let same = vec![vec![true, false], vec![false, true]];
    let described = Described {
        sizes: vec![2; 1_500],
        constraints: (0..1_499).map(|x| ([x, x + 1], same.clone())).collect(),
        unary: vec![(700, vec![true, false])],
    };
    let network = described.build(|| Table::Conflicts);
    let all = Domains::new(&network);
    let host = Kernels::load(&Device::host(HOST_BYTES)).expect("the host takes them");
    for kernels in [kernels(), host] {
        let mut engines = Engines::new(&kernels);
        engines.load(&network);
        let left = engines.check(&network, &all).expect("as on the processor");
        assert_eq!(left.expect("one solution is left").removed(&network), 1_500);
    }
}
