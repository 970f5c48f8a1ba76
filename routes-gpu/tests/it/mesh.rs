//! The paper's meshes: 1,024 nodes and three coarser levels down to 16.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, Graph, Hierarchy, LEVELS, Level, lengths_mm, places};
use streets::Network;

use crate::{FORMS, Query, TUNINGS, check, expected, searcher};

#[test]
fn corner_to_corner_and_everywhere_else() {
    let network = Network::grid(32, 32, 100.0);
    let graph = Graph::of(&network);
    let mut random = StdRng::seed_from_u64(2011);
    // As in the paper, meshes differ in what their arcs cost.
    let meshes: Vec<Vec<Cost>> =
        (0..4).map(|_| lengths_mm(&network).iter().map(|_| random.random_range(1..=100)).collect()).collect();
    let hierarchy = Hierarchy::new(&graph, &places(&network));
    let metric = hierarchy.customise(&meshes[0]);
    let levels: Vec<_> = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
    let mut graphs: Vec<_> = meshes.iter().map(|costs| Costed { graph: &graph, costs }).collect();
    graphs.extend(levels.iter().map(|level| Costed { graph: level.graph(), costs: level.costs() }));
    let nodes: Vec<_> = graphs.iter().map(|on| u32::try_from(on.graph.nodes_count()).expect("few")).collect();
    assert_eq!(nodes, [1_024, 1_024, 1_024, 1_024, 256, 64, 16]);
    let mut queries: Vec<Query> = (0..).zip(&nodes).map(|(on, nodes)| (on, [0, nodes - 1])).collect();
    queries.extend((0..400).map(|_| {
        let on = random.random_range(0..nodes.len());
        (on, [(); 2].map(|()| random.random_range(0..nodes[on])))
    }));
    let expected = expected(&graphs, &queries);
    assert!(expected.iter().all(Option::is_some));
    let mut searcher = searcher();
    for tuning in TUNINGS {
        searcher.load(&graphs, tuning).expect("memory");
        FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &expected, *form));
    }
}
