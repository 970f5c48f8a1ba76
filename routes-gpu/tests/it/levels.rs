//! Routes at the levels of real streets, and of graphs with islands.

use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;
use routes::{Cost, Costed, Graph, Hierarchy, LEVELS, Level, LevelMemory, dijkstra, lengths_mm, places};
use routes_gpu::{Searcher, Tuning};
use streets::Network;

use crate::generator::random;
use crate::random::{asked_runs, queries};
use crate::{FORMS, check_route, searcher};

/// Holds routes at all levels against the processor's. How many of them have no route at their level.
fn check_levels(searcher: &mut Searcher, (graph, costs): (&Graph, &[Cost]), places: &[[f64; 2]]) -> usize {
    let hierarchy = Hierarchy::new(graph, places);
    let metric = hierarchy.customise(costs);
    let levels: Vec<_> = (1..LEVELS).map(|level| Level::new(&hierarchy, graph, &metric, level)).collect();
    let mut graphs = vec![Costed { graph, costs }];
    graphs.extend(levels.iter().map(|level| Costed { graph: level.graph(), costs: level.costs() }));
    searcher.load(&graphs, Tuning::default()).expect("memory");
    let ends = queries(&mut StdRng::seed_from_u64(9), &graphs[..1], 60);
    let many = if asked_runs().is_none() { 60 } else { 8 };
    let ends: Vec<_> = ends.into_iter().map(|(_, ends)| ends).take(many).collect();
    let mut memory = LevelMemory::default();
    let mut without = 0;
    for (number, level) in (1..).zip(&levels) {
        let expected: Vec<_> = ends
            .iter()
            .map(|ends| {
                let route = level.route((&hierarchy, &metric), (graph, costs), *ends, &mut memory);
                without += usize::from(route.is_none());
                let exact = || dijkstra(graph, costs, ends[0], ends[1]).map(|route| (0, route.cost));
                route.map(|route| (number, route.cost)).or_else(exact)
            })
            .collect();
        for form in FORMS {
            let found = searcher
                .level_routes((number, level), (&hierarchy, &metric), &ends, form)
                .expect("a device that works");
            for ((found, expected), ends) in found.into_iter().zip(&expected).zip(&ends) {
                assert_eq!(found.as_ref().map(|(level, route)| (*level, route.cost)), *expected, "{ends:?}");
                if let Some((_, route)) = found {
                    check_route(graphs[0], *ends, &route);
                }
            }
        }
    }
    without
}

#[test]
fn routes_at_levels_of_a_country_are_those_of_the_processor() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loadgen/data/liechtenstein/highways.osm.pbf");
    let network = streets::load(&path).expect("the copy in the project is sound");
    check_levels(&mut searcher(), (&Graph::of(&network), &lengths_mm(&network)), &places(&network));
}

#[test]
fn routes_at_levels_are_those_of_the_processor() {
    let mut searcher = searcher();
    // Many routes cost the same.
    let side = if asked_runs().is_none() { 20 } else { 8 };
    let network = Network::grid(side, side, 100.0);
    check_levels(&mut searcher, (&Graph::of(&network), &lengths_mm(&network)), &places(&network));
    let mut without = 0;
    let graphs = asked_runs().unwrap_or(100).min(100);
    for seed in 0..graphs {
        let made = random(seed);
        without += check_levels(&mut searcher, (&made.graph, &made.costs), &made.places);
    }
    assert!(without > 100 || graphs < 100, "{without}");
}
