//! Searches stop after any round, tell what they know, and go on from there.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, Graph, lengths_mm};
use streets::Network;

use crate::random::queries;
use crate::{FORMS, TUNINGS, check_route, expected, searcher};

#[test]
fn a_search_that_is_interrupted_ends_as_one_that_is_not() {
    let network = Network::grid(24, 24, 100.0);
    let graph = Graph::of(&network);
    let mut random = StdRng::seed_from_u64(6);
    let costs: Vec<Cost> =
        lengths_mm(&network).iter().map(|_| random.random_range(0..=100_u64.pow(2))).collect();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let queries = queries(&mut random, &graphs, 30);
    let expected = expected(&graphs, &queries);
    let mut searcher = searcher();
    for tuning in TUNINGS {
        searcher.load(&graphs, tuning).expect("memory");
        searcher.begin(&queries).expect("memory");
        assert_eq!(searcher.run(FORMS[0], u32::MAX), Ok(true));
        let through = searcher.rounds().expect("after a round");
        for rounds_max in [1, 7] {
            searcher.begin(&queries).expect("memory");
            let mut before = vec![Cost::MAX; queries.len()];
            let mut rounds = 0;
            loop {
                // Now in one form and now in the other.
                let is_over =
                    searcher.run(FORMS[random.random_range(0..2)], rounds_max).expect("a device that works");
                rounds += rounds_max;
                for (number, (on, ends)) in queries.iter().enumerate() {
                    let Some(route) = searcher.route(number).expect("between rounds") else { continue };
                    check_route(graphs[*on], *ends, &route);
                    // What is known becomes better, and never better than the best.
                    assert!(route.cost <= before[number] && expected[number] <= Some(route.cost));
                    before[number] = route.cost;
                }
                if is_over {
                    break;
                }
                assert!(rounds < through, "{rounds} rounds and more, and {through} without a stop");
            }
            assert_eq!(searcher.rounds(), Ok(through), "{tuning:?}");
            for (number, expected) in expected.iter().enumerate() {
                let route = searcher.route(number).expect("between rounds");
                assert_eq!(route.map(|route| route.cost), *expected);
            }
        }
    }
}
