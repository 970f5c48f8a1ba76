//! Random networks: every algorithm against the plain fixpoint, search against all assignments.

use groups::network::ne::Model;
use groups::network::{Algorithm, Domains, Found, Table, search, singleton};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::generator::{described, network, start};
use super::oracle::{Described, is_solution};

const RUNS: u64 = 3_000;
const SOAK_RUNS: u64 = 100_000;

fn runs() -> u64 {
    if crate::is_soak() { SOAK_RUNS } else { RUNS }
}

fn check(seed: u64, size_max: usize, variables_max: usize) -> bool {
    let random = &mut SmallRng::seed_from_u64(seed);
    let described = described(random, size_max, variables_max);
    let network = network(random, &described);
    let start = start(random, &network);
    let expected = described.closure(&network, &start);
    let mut loops = Vec::new();
    for algorithm in Algorithm::ALL {
        let outcome = algorithm.enforce(&network, &start);
        assert_eq!(outcome.domains, expected, "seed {seed} {algorithm:?} {described:?}");
        if let Some(left) = &outcome.domains {
            assert_eq!(
                algorithm.enforce(&network, left).domains,
                expected,
                "seed {seed} {algorithm:?}, again"
            );
        }
        loops.push(outcome.loops);
    }
    if expected.is_some() {
        assert_eq!([loops[0]; 2], [loops[2], loops[3]], "seed {seed}");
    }
    expected.is_some_and(|left| left != start)
}

#[test]
fn every_algorithm_leaves_what_the_plain_fixpoint_leaves() {
    let pruned = (0..runs()).filter(|seed| check(*seed, 6, 8)).count();
    assert!(pruned > 300, "{pruned} networks were pruned and are consistent");
}

#[test]
fn domains_of_several_words_are_treated_alike() {
    let pruned = (0..runs() / 50).filter(|seed| check(*seed, 200, 4)).count();
    assert!(pruned > 5, "{pruned} networks were pruned and are consistent");
}

#[test]
fn a_search_finds_a_solution_where_there_is_one() {
    let (mut solved, mut unsolved) = (0, 0);
    for seed in 0..runs() {
        let random = &mut SmallRng::seed_from_u64(seed);
        let described = described(random, 4, 6);
        let network = network(random, &described);
        let start = start(random, &network);
        let solutions = described.solutions(&network, &start);
        match search(&network, &start, u64::MAX) {
            Found::Solution(places) => {
                assert!(solutions.contains(&places) && is_solution(&network, &places), "seed {seed}");
                solved += 1;
            }
            Found::Nothing => {
                assert!(solutions.is_empty(), "seed {seed}");
                unsolved += 1;
            }
            Found::Stopped => panic!("seed {seed}"),
        }
        // Singleton consistency takes no value of a solution, and leaves no value with which arc consistency fails.
        let left = singleton(&network, &start, Algorithm::ALL[usize::try_from(seed % 4).expect("small")]);
        match left.domains {
            Some(left) => assert_eq!(described.solutions(&network, &left), solutions, "seed {seed}"),
            None => assert!(solutions.is_empty(), "seed {seed}"),
        }
    }
    assert!(solved.min(unsolved) > 100, "{solved} solved, {unsolved} unsolved");
}

#[test]
fn a_search_is_stopped_after_the_nodes_it_may_try() {
    let apart = (0..8).map(|a| (0..8).map(|b| a != b).collect()).collect::<Vec<Vec<bool>>>();
    // Nine pigeons in eight holes.
    let pairs = (0..9).flat_map(|x| (0..x).map(move |y| [x, y]));
    let described = Described {
        sizes: vec![8; 9],
        constraints: pairs.map(|scope| (scope, apart.clone())).collect(),
        unary: Vec::new(),
    };
    let network = described.build(|| Table::Supports);
    let all = Domains::new(&network);
    assert_eq!(search(&network, &all, 50), Found::Stopped);
    assert_eq!(search(&network, &all, u64::MAX), Found::Nothing);
}

#[test]
fn empty_networks_and_domains_are_ones() {
    let nothing = Described::default().build(|| Table::Supports);
    let none = Described { sizes: vec![2, 0], ..Described::default() }.build(|| Table::Supports);
    for algorithm in Algorithm::ALL {
        let outcome = algorithm.enforce(&nothing, &Domains::new(&nothing));
        assert_eq!((outcome.domains, outcome.loops), (Some(Domains::new(&nothing)), 1));
        assert_eq!(algorithm.enforce(&none, &Domains::new(&none)).domains, None);
    }
    assert_eq!(search(&nothing, &Domains::new(&nothing), 0), Found::Solution(Vec::new()));
}

/// The edges of a value of the first variable are as many as the second has values, and each counter finds its own.
#[test]
fn the_model_of_unequal_domains_has_each_edge_once() {
    let allowed = vec![vec![true, false, true], vec![false, false, true]];
    let described = Described { sizes: vec![2, 3], constraints: vec![([0, 1], allowed)], unary: Vec::new() };
    let network = described.build(|| Table::Supports);
    let Model { nodes, edges, slots, .. } = Model::build(&network, &Domains::new(&network));
    assert_eq!((nodes.x, nodes.v, nodes.e), (vec![0, 0, 1, 1, 1], vec![0, 1, 0, 1, 2], vec![1; 5]));
    assert_eq!(edges.node0, [0, 0, 0, 1, 1, 1]);
    assert_eq!(edges.node1, [2, 3, 4, 2, 3, 4]);
    assert_eq!(edges.s, [1, 0, 1, 0, 0, 1]);
    assert_eq!((slots.node, slots.edge), (vec![0, 1, 2, 3, 4], vec![0, 3, 0, 1, 2]));
    assert_eq!((slots.stride, slots.count), (vec![1, 1, 3, 3, 3], vec![3, 3, 2, 2, 2]));
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
    for algorithm in Algorithm::ALL {
        let outcome = algorithm.enforce(&network, &Domains::new(&network));
        assert_eq!(outcome.domains.expect("consistent").removed(&network), 3, "{algorithm:?}");
        assert!(outcome.loops == 3 || algorithm == Algorithm::Ac3Bit, "{algorithm:?}: {}", outcome.loops);
    }
}
