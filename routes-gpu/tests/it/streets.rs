//! Real streets, with the distances of a separate program.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, Graph, durations_ms, lengths_mm};
use routes_gpu::Tuning;

use crate::random::queries;
use crate::{FORMS, Query, check, expected, is_soak, searcher};

/// The data that lies beside the project, or beside a folder around it; none in a bare clone.
fn shared(name: &str) -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    around.map(|folder| folder.join("shared/data").join(name)).find(|folder| folder.exists())
}

/// All pairs have the reference's distance.
fn check_distances(name: &str) {
    let Some(folder) = shared(name) else {
        eprintln!("{name} is not beside the project: nothing compared");
        return;
    };
    let network = streets::load(&folder).expect("the data is sound");
    let nodes: HashMap<i64, u32> =
        (0..).take(network.nodes_count()).map(|node| (network.node_id(node), node)).collect();
    let mut table = csv::Reader::from_path(folder.join("od_shortest.csv")).expect("the reference");
    let (queries, shortest_mm): (Vec<Query>, Vec<_>) = table
        .deserialize()
        .map(|row| {
            let (from, to, shortest_mm): (i64, i64, i64) = row.expect("three numbers");
            ((0, [nodes[&from], nodes[&to]]), Cost::try_from(shortest_mm).ok())
        })
        .unzip();
    assert_eq!(queries.len(), 500);
    let (graph, costs) = (Graph::of(&network), lengths_mm(&network));
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let mut searcher = searcher();
    searcher.load(&graphs, Tuning::default()).expect("memory");
    FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &shortest_mm, *form));
}

#[test]
fn routes_in_liechtenstein_are_those_of_the_reference() {
    check_distances("streets-liechtenstein");
}

#[test]
fn routes_in_coquimbo_are_those_of_the_reference() {
    check_distances("streets-coquimbo");
}

/// Streets become slow and quick again, in the small country that every clone has.
#[test]
fn streets_become_slow_and_quick_again() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loadgen/data/liechtenstein/highways.osm.pbf");
    let network = streets::load(&path).expect("the copy in the project is sound");
    let (graph, quick) = (Graph::of(&network), durations_ms(&network));
    let mut searcher = searcher();
    let mut random = StdRng::seed_from_u64(30);
    let mut costs = quick.clone();
    searcher.load(&[Costed { graph: &graph, costs: &costs }], Tuning::default()).expect("memory");
    for _ in 0..if is_soak() { 500 } else { 5 } {
        let graphs = [Costed { graph: &graph, costs: &costs }];
        let queries = queries(&mut random, &graphs, 50);
        let expected = expected(&graphs, &queries);
        FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &expected, *form));
        costs = quick.iter().map(|cost| cost * [1, 1, 1, 4][random.random_range(0..4)]).collect();
        searcher.set_costs(0, &costs).expect("a copy");
    }
}
