//! Coarser graphs of the same streets, for answers that have to come soon.
//!
//! Level 0 is the graph. A level keeps a quarter of the nodes of the one before, those that part the most streets (see [`Hierarchy`]); the others are
//! contracted, so that an arc of a level stands for the cheapest way between its ends through nodes that the level does not keep. A route at a level goes from its beginning to
//! the nearest kept node, through the level, and from the last kept node to its end. It can be driven, and is never cheaper than that of
//! level 0. The levels of the paper's Fig. 6 (meshes of 1,024, 256, 64 and 16 nodes) are a quarter each as well.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, section V.

use crate::dijkstra::Search;
use crate::graph::{Cost, Graph, NONE, Route, Side, UNREACHABLE};
use crate::hierarchy::{Hierarchy, Metric};

/// Levels, level 0 included.
pub const LEVELS: usize = 4;

/// What a route of each level is worth (section V).
pub const SCORES: [u32; LEVELS] = [6, 4, 2, 1];

/// The graph of a level above 0, for one metric.
#[derive(Clone, Debug)]
pub struct Level {
    /// The level's node of each rank; [`NONE`] for those that it does not keep.
    nodes: Vec<u32>,
    ranks: Vec<u32>,
    graph: Graph,
    costs: Vec<Cost>,
    /// The hierarchy's edge of each arc, and whether the arc goes up.
    edges: Vec<(u32, bool)>,
}

/// Memory of searches at a level, used again.
#[derive(Debug, Default)]
pub struct LevelMemory {
    ahead: Search,
    behind: Search,
    between: Search,
}

/// A route at a level, without the part that leads through the level.
#[derive(Clone, Debug)]
pub enum Approach {
    /// There is no such part: its end is nearer than a kept node.
    Whole(Route),
    /// There is.
    Between(Between),
}

/// The parts of a route before a level and behind it.
#[derive(Clone, Debug)]
pub struct Between {
    /// Nodes of the level between which a route is to be found.
    pub ends: [u32; 2],
    before: Route,
    behind: Route,
}

impl Level {
    /// The graph of a level from 1 on.
    ///
    /// Cost: the edges of the hierarchy between the nodes that it keeps.
    #[must_use]
    pub fn new(hierarchy: &Hierarchy, graph: &Graph, metric: &Metric, level: usize) -> Self {
        let kept = (graph.nodes_count() >> (2 * level.min(LEVELS - 1))).max(1).min(graph.nodes_count());
        let ranks = hierarchy.most_important(kept).to_vec();
        let mut nodes = vec![NONE; graph.nodes_count()];
        for (node, rank) in (0..).zip(&ranks) {
            nodes[*rank as usize] = node;
        }
        let mut arcs = Vec::new();
        for (lower, rank) in (0..).zip(&ranks) {
            for edge in hierarchy.edges(*rank) {
                let upper = nodes[hierarchy.upper(edge) as usize];
                for (is_up, ends) in [(true, [lower, upper]), (false, [upper, lower])] {
                    let cost = metric.cost(edge, is_up);
                    if cost != UNREACHABLE {
                        arcs.push((ends, cost, (edge, is_up)));
                    }
                }
            }
        }
        arcs.sort_unstable_by_key(|(ends, ..)| *ends);
        Self {
            nodes,
            ranks,
            graph: Graph::new(kept, arcs.iter().map(|(ends, ..)| *ends)),
            costs: arcs.iter().map(|(_, cost, _)| *cost).collect(),
            edges: arcs.iter().map(|(.., edge)| *edge).collect(),
        }
    }

    /// Its nodes and arcs.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What its arcs cost.
    #[must_use]
    pub fn costs(&self) -> &[Cost] {
        &self.costs
    }

    /// A route at this level. Where none of its kept nodes lead from the beginning to the end there is none, though level 0 may have one.
    ///
    /// Shape: the graph, its costs, and the hierarchy and metric that the level was made of.
    /// Cost: the nodes around both ends up to the first that is kept, and Dijkstra's algorithm on the level.
    #[must_use]
    pub fn route(
        &self,
        (hierarchy, metric): (&Hierarchy, &Metric),
        (graph, costs): (&Graph, &[Cost]),
        [from, to]: [u32; 2],
        memory: &mut LevelMemory,
    ) -> Option<Route> {
        let approach = match self.approach((hierarchy, graph, costs), [from, to], memory)? {
            Approach::Whole(route) => return Some(route),
            Approach::Between(approach) => approach,
        };
        let between = &mut memory.between;
        let [begin, end] = approach.ends;
        between.begin(&self.graph, begin, 0);
        let cost = loop {
            let (cost, node) = between.settle()?;
            if node == end {
                break cost;
            }
            between.relax(&self.graph, &self.costs, node, Side::Out);
        };
        let across = Route { cost, arcs: between.arcs(&self.graph, end, Side::Out) };
        Some(self.complete((hierarchy, metric), approach, &across))
    }

    /// The parts of a route outside the level, from its beginning to the nearest kept node and from the last one to its end. A search through
    /// [`Level::graph`] leads from the one to the other, and [`Level::complete`] puts all together. `None` where there is no route at this level.
    ///
    /// Shape: the hierarchy that the level was made of, the graph and its costs.
    /// Cost: the nodes around both ends up to the first that is kept.
    #[must_use]
    pub fn approach(
        &self,
        (hierarchy, graph, costs): (&Hierarchy, &Graph, &[Cost]),
        [from, to]: [u32; 2],
        memory: &mut LevelMemory,
    ) -> Option<Approach> {
        let LevelMemory { ahead, behind, .. } = memory;
        let entry = self.first_kept(hierarchy, (graph, costs), [from, to], ahead, Side::Out)?;
        if entry == to {
            let cost = ahead.costs[to as usize];
            return Some(Approach::Whole(Route { cost, arcs: ahead.arcs(graph, to, Side::Out) }));
        }
        let exit = self.first_kept(hierarchy, (graph, costs), [to, NONE], behind, Side::In)?;
        Some(Approach::Between(Between {
            ends: [entry, exit].map(|node| self.nodes[hierarchy.rank(node) as usize]),
            before: Route { cost: ahead.costs[entry as usize], arcs: ahead.arcs(graph, entry, Side::Out) },
            behind: Route {
                cost: behind.costs[exit as usize],
                arcs: behind.back(graph, exit, Side::In).collect(),
            },
        }))
    }

    /// The whole of a route, with the one `across` the level between [`Between::ends`].
    ///
    /// Cost: the arcs of the route.
    #[must_use]
    pub fn complete(
        &self,
        (hierarchy, metric): (&Hierarchy, &Metric),
        approach: Between,
        across: &Route,
    ) -> Route {
        let Between { before: Route { cost, mut arcs }, behind, .. } = approach;
        for arc in &across.arcs {
            let (edge, is_up) = self.edges[*arc as usize];
            let lower = if is_up { self.graph.tail(*arc) } else { self.graph.head(*arc) };
            let lower = self.ranks[lower as usize];
            hierarchy.unpack(metric, lower, edge, is_up, &mut arcs);
        }
        arcs.extend(behind.arcs);
        Route { cost: cost + across.cost + behind.cost, arcs }
    }

    /// The nearest node that is kept, or the other end where that is nearer.
    fn first_kept(
        &self,
        hierarchy: &Hierarchy,
        (graph, costs): (&Graph, &[Cost]),
        [from, to]: [u32; 2],
        search: &mut Search,
        side: Side,
    ) -> Option<u32> {
        search.begin(graph, from, 0);
        while let Some((_, node)) = search.settle() {
            if node == to || self.nodes[hierarchy.rank(node) as usize] != NONE {
                return Some(node);
            }
            search.relax(graph, costs, node, side);
        }
        None
    }
}
