//! Routes against Dijkstra's algorithm, and against reference distances.

mod generator;
mod papstar;
mod random;
mod reference;

use std::path::{Path, PathBuf};

use routes::{
    AStar, Cost, Graph, Hierarchy, LEVELS, Landmarks, Level, LevelMemory, Memory, Metric, Route, dijkstra,
};

/// Everything that finds routes, for one graph and its costs.
struct Engines {
    graph: Graph,
    costs: Vec<Cost>,
    hierarchy: Hierarchy,
    metric: Metric,
    memory: Memory,
    landmarks: Landmarks,
    a_star: AStar,
    levels: Vec<Level>,
    level_memory: LevelMemory,
}

impl Engines {
    fn new(graph: Graph, places: &[[f64; 2]], costs: Vec<Cost>) -> Self {
        let hierarchy = Hierarchy::new(&graph, places);
        let metric = hierarchy.customise(&costs);
        let landmarks = Landmarks::new(&graph, &costs, 4);
        let levels = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
        let (memory, a_star, level_memory) = Default::default();
        Self { graph, costs, hierarchy, metric, memory, landmarks, a_star, levels, level_memory }
    }

    /// Has arcs cost something else, no less than at the beginning.
    fn customise(&mut self, costs: Vec<Cost>) {
        self.costs = costs;
        self.hierarchy.customise_again(&self.costs, &mut self.metric);
        self.levels =
            (1..LEVELS).map(|level| Level::new(&self.hierarchy, &self.graph, &self.metric, level)).collect();
    }

    /// Holds the answers of all engines against each other. Returns the cost.
    fn check(&mut self, from: u32, to: u32) -> Option<Cost> {
        let expected = dijkstra(&self.graph, &self.costs, from, to);
        let cost = expected.as_ref().map(|route| route.cost);
        self.check_route(expected, from, to, "Dijkstra");
        let route = self.hierarchy.route(&self.metric, from, to, &mut self.memory);
        assert_eq!(route.as_ref().map(|route| route.cost), cost, "hierarchy, {from} to {to}");
        self.check_route(route, from, to, "hierarchy");
        assert_eq!(self.hierarchy.cost(&self.metric, from, to, &mut self.memory), cost);
        let route = self.a_star.route(&self.graph, &self.costs, &self.landmarks, from, to);
        assert_eq!(route.as_ref().map(|route| route.cost), cost, "landmarks, {from} to {to}");
        self.check_route(route, from, to, "landmarks");
        for level in 0..self.levels.len() {
            let made_of = (&self.hierarchy, &self.metric);
            let streets = (&self.graph, &*self.costs);
            let route = self.levels[level].route(made_of, streets, [from, to], &mut self.level_memory);
            let found = route.as_ref().map(|route| route.cost);
            assert!(found.is_none_or(|found| cost.is_some_and(|cost| cost <= found)), "level {}", level + 1);
            self.check_route(route, from, to, "a level");
        }
        cost
    }

    /// A route is a way from its beginning to its end that costs what it says.
    #[track_caller]
    fn check_route(&self, route: Option<Route>, from: u32, to: u32, engine: &str) {
        let Some(route) = route else { return };
        let end = route.arcs.iter().fold(from, |at, arc| {
            assert_eq!(self.graph.tail(*arc), at, "{engine}, {from} to {to}: {route:?}");
            self.graph.head(*arc)
        });
        assert_eq!(end, to, "{engine}");
        assert_eq!(
            route.arcs.iter().map(|arc| self.costs[*arc as usize]).sum::<Cost>(),
            route.cost,
            "{engine}"
        );
    }
}

/// Whether `NEARCAST_SOAK=1` asks for more.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}

/// The data that lies beside the project, or beside a folder around it; none in a bare clone.
fn shared(name: &str) -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    around.map(|folder| folder.join("shared/data").join(name)).find(|folder| folder.exists())
}
