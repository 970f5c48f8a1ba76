//! Real streets, with the distances of a separate program.

use std::collections::HashMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Graph, durations_ms, lengths_mm, places};
use streets::Network;

use super::{Engines, is_soak, shared};

/// All pairs have the reference's distance by every engine.
fn check_distances(name: &str) {
    let Some(folder) = shared(name) else {
        eprintln!("{name} is not beside the project: nothing compared");
        return;
    };
    let network = streets::load(&folder).expect("the data is sound");
    assert_eq!(network.census().skipped, 0);
    let nodes: HashMap<i64, u32> =
        (0..).take(network.nodes_count()).map(|node| (network.node_id(node), node)).collect();
    let mut engines = Engines::new(Graph::of(&network), &places(&network), lengths_mm(&network));
    let mut table = csv::Reader::from_path(folder.join("od_shortest.csv")).expect("the reference");
    let mut compared = 0;
    for row in table.deserialize() {
        let (from, to, shortest_mm): (i64, i64, i64) = row.expect("three numbers");
        assert_eq!(
            engines.check(nodes[&from], nodes[&to]),
            Cost::try_from(shortest_mm).ok(),
            "{from} to {to}"
        );
        compared += 1;
    }
    assert_eq!(compared, 500);
}

#[test]
fn routes_in_liechtenstein_are_those_of_the_reference() {
    check_distances("streets-liechtenstein");
}

#[test]
fn routes_in_coquimbo_are_those_of_the_reference() {
    check_distances("streets-coquimbo");
}

/// The small country that every clone has.
fn liechtenstein() -> Network {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loadgen/data/liechtenstein/highways.osm.pbf");
    streets::load(&path).expect("the copy in the project is sound")
}

#[test]
fn streets_become_slow_and_quick_again() {
    let network = liechtenstein();
    let quick = durations_ms(&network);
    let mut engines = Engines::new(Graph::of(&network), &places(&network), quick.clone());
    let mut random = StdRng::seed_from_u64(30);
    let nodes = 0..u32::try_from(network.nodes_count()).expect("few");
    for _ in 0..if is_soak() { 2_000 } else { 20 } {
        let slow = quick.iter().map(|cost| cost * [1, 1, 1, 4][random.random_range(0..4)]).collect();
        engines.customise(slow);
        for _ in 0..50 {
            engines.check(random.random_range(nodes.clone()), random.random_range(nodes.clone()));
        }
    }
    engines.customise(quick);
    for _ in 0..50 {
        engines.check(random.random_range(nodes.clone()), random.random_range(nodes.clone()));
    }
}
