//! Random graphs, and costs that change.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, UNREACHABLE};

use crate::generator::{Random, random};
use crate::{FORMS, Query, TUNINGS, check, expected, is_soak, searcher};

/// As many as `NEARCAST_ROUTES_RUNS` says: a sanitizer takes a hundred times as long for each.
pub(crate) fn asked_runs() -> Option<u64> {
    std::env::var("NEARCAST_ROUTES_RUNS").ok().and_then(|runs| runs.parse().ok())
}

fn runs() -> u64 {
    asked_runs().unwrap_or(if is_soak() { 20_000 } else { 300 })
}

fn costed(made: &[Random]) -> Vec<Costed<'_>> {
    made.iter().map(|made| Costed { graph: &made.graph, costs: &made.costs }).collect()
}

/// Pairs of any nodes, some of which are the same.
pub(crate) fn queries(random: &mut StdRng, graphs: &[Costed<'_>], most: usize) -> Vec<Query> {
    (0..random.random_range(1..=most))
        .map(|_| {
            let on = random.random_range(0..graphs.len());
            let nodes = u32::try_from(graphs[on].graph.nodes_count()).expect("few");
            (on, [(); 2].map(|()| random.random_range(0..nodes)))
        })
        .collect()
}

#[test]
fn routes_on_many_graphs_are_the_cheapest_whatever_their_arcs_cost() {
    let mut searcher = searcher();
    let (mut unreachable, mut found) = (0_u64, 0_u64);
    for seed in 0..runs() {
        let mut made: Vec<_> = (0..3).map(|nth| random(3 * seed + nth)).collect();
        let mut random = StdRng::seed_from_u64(seed);
        // Some arcs cost nothing, and in some graphs all.
        made[0].costs.iter_mut().for_each(|cost| *cost = (*cost - 1) / 2);
        let tuning = TUNINGS[random.random_range(0..TUNINGS.len())];
        searcher.load(&costed(&made), tuning).expect("memory");
        for change in 0..4 {
            let graphs = costed(&made);
            let queries = queries(&mut random, &graphs, 40);
            let expected = expected(&graphs, &queries);
            let found_now = expected.iter().flatten().count() as u64;
            (unreachable, found) = (unreachable + expected.len() as u64 - found_now, found + found_now);
            FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &expected, *form));
            // At first they only become slow, and some are closed. Then they become quick, too, so that no bound holds.
            for (on, made) in made.iter_mut().enumerate() {
                for cost in &mut made.costs {
                    *cost = match (random.random_range(0..10), change) {
                        (0, _) => UNREACHABLE,
                        (1..4, _) => cost.saturating_mul(4),
                        (4..7, 1..) => random.random_range(0..1_000),
                        _ => *cost,
                    };
                }
                searcher.set_costs(on, &made.costs).expect("a copy");
            }
        }
    }
    println!("{} pairs of nodes, {found} of them with a route", unreachable + found);
    assert!(unreachable > 3 * runs() && found > 3 * runs(), "{unreachable} and {found}");
}

/// Where sums are more than can be counted there is no route, and a landmark that is not reached tells nothing.
#[test]
fn sums_that_cannot_be_counted_are_no_routes() {
    let mut searcher = searcher();
    let mut unreachable = 0_u64;
    for seed in 0..runs().div_ceil(3) {
        let mut made = vec![random(seed)];
        let mut random = StdRng::seed_from_u64(seed);
        let most: Cost = UNREACHABLE / random.random_range(1..8);
        made[0].costs.iter_mut().for_each(|cost| *cost = random.random_range(most / 4..=most));
        let graphs = costed(&made);
        let queries = queries(&mut random, &graphs, 40);
        let expected = expected(&graphs, &queries);
        unreachable += expected.iter().filter(|cost| cost.is_none()).count() as u64;
        for tuning in TUNINGS {
            searcher.load(&graphs, tuning).expect("memory");
            FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &expected, *form));
        }
    }
    assert!(3 * unreachable > runs(), "{unreachable}");
}

#[test]
fn nothing_is_asked_and_nothing_is_there() {
    let mut searcher = searcher();
    searcher.load(&[], TUNINGS[4]).expect("nothing");
    let made = [random(1)];
    for form in FORMS {
        assert_eq!(searcher.routes(&[], form), Ok(Vec::new()));
    }
    searcher.load(&costed(&made), TUNINGS[4]).expect("memory");
    for form in FORMS {
        assert_eq!(searcher.costs(&[], form), Ok(Vec::new()));
    }
}
