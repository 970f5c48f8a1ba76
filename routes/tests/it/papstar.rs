//! PAP* against Dijkstra's algorithm.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, Graph, Hierarchy, Kernel, LEVELS, Level, PapStar, dijkstra, lengths_mm, places};
use streets::Network;

use super::Engines;
use super::generator::{Random, random};

/// All queries at once have the routes of each alone.
fn check(graphs: &[Costed<'_>], queries: &[(usize, [u32; 2])], rounds_at_once: u64) {
    let mut search = PapStar::new(graphs, queries);
    while !search.is_over() {
        search.run(rounds_at_once);
        // What is known between rounds is a way that can be driven, if not the best.
        for (number, (on, [from, to])) in queries.iter().enumerate() {
            let best = dijkstra(graphs[*on].graph, graphs[*on].costs, *from, *to).map(|route| route.cost);
            let so_far = search.route(number).expect("between rounds").map(|route| route.cost);
            assert!(so_far.is_none_or(|cost| best.is_some_and(|best| best <= cost)));
        }
    }
    for (number, (on, [from, to])) in queries.iter().enumerate() {
        let Costed { graph, costs } = graphs[*on];
        let expected = dijkstra(graph, costs, *from, *to).map(|route| route.cost);
        let route = search.route(number).expect("between rounds");
        assert_eq!(route.as_ref().map(|route| route.cost), expected, "{from} to {to}");
        let Some(route) = route else { continue };
        let end = route.arcs.iter().fold(*from, |at, arc| {
            assert_eq!(graph.tail(*arc), at);
            graph.head(*arc)
        });
        assert_eq!(end, *to);
    }
}

#[test]
fn many_queries_on_many_graphs_have_the_routes_of_each_alone() {
    for seed in 0..200 {
        let mut made: Vec<Random> = (0..3).map(|nth| random(3 * seed + nth)).collect();
        // Some arcs cost nothing, and in some graphs all.
        made[0].costs.iter_mut().for_each(|cost| *cost = (*cost - 1) / 2);
        let graphs: Vec<_> =
            made.iter().map(|made| Costed { graph: &made.graph, costs: &made.costs }).collect();
        let mut random = StdRng::seed_from_u64(seed);
        let queries: Vec<_> = (0..random.random_range(1..20))
            .map(|_| {
                let on = random.random_range(0..graphs.len());
                let nodes = u32::try_from(graphs[on].graph.nodes_count()).expect("few");
                (on, [(); 2].map(|()| random.random_range(0..nodes)))
            })
            .collect();
        check(&graphs, &queries, [1, 3, u64::MAX][random.random_range(0..3)]);
    }
}

/// The paper's meshes: 1,024 nodes and three coarser levels, from corner to corner.
#[test]
fn a_mesh_and_its_levels() {
    let network = Network::grid(32, 32, 100.0);
    let graph = Graph::of(&network);
    let mut random = StdRng::seed_from_u64(2011);
    let costs: Vec<Cost> = lengths_mm(&network).iter().map(|_| random.random_range(1..=100)).collect();
    let hierarchy = Hierarchy::new(&graph, &places(&network));
    let metric = hierarchy.customise(&costs);
    let levels: Vec<_> = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
    let sizes: Vec<_> = levels.iter().map(|level| level.graph().nodes_count()).collect();
    assert_eq!(sizes, [256, 64, 16]);
    let mut graphs = vec![Costed { graph: &graph, costs: &costs }];
    graphs.extend(levels.iter().map(|level| Costed { graph: level.graph(), costs: level.costs() }));
    let corners = |on: usize| (on, [0, u32::try_from(graphs[on].graph.nodes_count()).expect("few") - 1]);
    check(&graphs, &(0..LEVELS).map(corners).collect::<Vec<_>>(), u64::MAX);
    Engines::new(graph.clone(), &places(&network), costs.clone()).check(0, 1_023);
}

#[test]
fn kernels_run_in_their_order() {
    let made = random(1);
    let mut search = PapStar::new(&[Costed { graph: &made.graph, costs: &made.costs }], &[(0, [0, 0])]);
    for kernel in [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum] {
        for other in [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum] {
            if other != kernel {
                assert_eq!(search.launch(other).expect_err("out of order").next, kernel);
            }
        }
        assert_eq!(search.route(0).is_err(), kernel != Kernel::Relax);
        search.launch(kernel).expect("the next one");
    }
    assert_eq!(search.route(0).expect("between rounds").expect("it is there").cost, 0);
}
