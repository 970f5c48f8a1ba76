//! Searches stop after any round, tell what they know, and go on from there.

use std::cell::Cell;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Batch, Cost, Costed, Graph, LEVELS, Profile, Sample, Scheduler, lengths_mm};
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
                let is_over = searcher
                    .run(FORMS[random.random_range(0..FORMS.len())], rounds_max)
                    .expect("a device that works");
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

/// The part of the routes of a contract that is in time where each look at the clock takes so long, and when it ends; each is the cheapest.
fn in_time(step_ns: u64, contract_ns: u64) -> (f64, u64) {
    let network = Network::grid(20, 20, 100.0);
    let graph = Graph::of(&network);
    let mut random = StdRng::seed_from_u64(8);
    let costs: Vec<Cost> = lengths_mm(&network).iter().map(|_| random.random_range(1..=100)).collect();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let queries = queries(&mut random, &graphs, 200);
    let expected = expected(&graphs, &queries);
    let mut searcher = searcher();
    searcher.load(&graphs, TUNINGS[4]).expect("memory");
    let whole =
        searcher.batch_routes(&queries, &mut Batch::whole(0, 2, 0), || 0).expect("a device that works");
    let costs = |routes: &[Option<Option<routes::Route>>]| {
        let cost = |route: &Option<routes::Route>| route.as_ref().map(|route| route.cost);
        routes.iter().map(|route| route.as_ref().map(cost)).collect::<Vec<_>>()
    };
    assert_eq!(costs(&whole), expected.iter().copied().map(Some).collect::<Vec<_>>());
    let rounds = searcher.rounds().expect("after a round");
    let mut profile = Profile::default();
    for level in 0..LEVELS {
        let (count, ns) = (queries.len(), 10_000 * (1 + level as u64));
        profile.note(level, Sample { count, blocks: 2, ns, most_ns: ns, rounds });
    }
    let clock = Cell::new(0);
    let now_ns = || {
        clock.set(clock.get() + step_ns);
        clock.get()
    };
    let sizes = (queries.len(), 0, queries.len());
    let levels = Scheduler::Online.run(&profile, sizes, Some(contract_ns), now_ns, |numbers, batch| {
        let asked: Vec<_> = numbers.iter().map(|number| queries[*number]).collect();
        let known = searcher.batch(&asked, batch, now_ns).expect("a device that works");
        for (number, known) in numbers.iter().zip(&known) {
            assert!(!known.is_over || known.cost == expected[*number], "{number}");
        }
        known.iter().map(|known| known.is_over).collect()
    });
    (levels.iter().flatten().count() as f64 / levels.len() as f64, clock.get())
}

#[test]
fn a_batch_of_a_contract_is_cut_where_its_time_is_over() {
    assert_eq!(in_time(100, 12_000).0, 1.0, "about as long as planned");
    for step_ns in [1_200, 2_500] {
        let (found, ended_ns) = in_time(step_ns, 12_000);
        // The last slice, whether to go on, what was learned, and the next plan: each looks at the clock.
        assert!(
            found < 1.0 && ended_ns <= 12_000 + 5 * step_ns,
            "{found} after {ended_ns} in steps of {step_ns}"
        );
    }
    assert!(in_time(1_200, 12_000).0 > 0.0, "what is over by then has been found");
}
