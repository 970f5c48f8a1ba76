//! Dijkstra's algorithm, which defines the right answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Cost, Graph, NONE, Route, Side, UNREACHABLE};

/// What a search has found so far. Its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) costs: Vec<Cost>,
    /// The arc by which each node is reached.
    by: Vec<u32>,
    pub(crate) queue: BinaryHeap<Reverse<(Cost, u32)>>,
    touched: Vec<u32>,
}

impl Search {
    /// Begins at a node, with the cost of what lies ahead.
    pub(crate) fn begin(&mut self, graph: &Graph, at: u32, bound: Cost) {
        for node in self.touched.drain(..) {
            self.costs[node as usize] = UNREACHABLE;
        }
        self.costs.resize(graph.nodes_count(), UNREACHABLE);
        self.by.resize(graph.nodes_count(), NONE);
        self.queue.clear();
        self.reach(at, 0, NONE, bound);
    }

    /// Notes a way to a node where none as cheap is known; `bound` is the cost with what lies ahead.
    pub(crate) fn reach(&mut self, node: u32, cost: Cost, by: u32, bound: Cost) -> bool {
        let known = &mut self.costs[node as usize];
        if cost >= *known {
            return false;
        }
        if *known == UNREACHABLE {
            self.touched.push(node);
        }
        *known = cost;
        self.by[node as usize] = by;
        self.queue.push(Reverse((bound, node)));
        true
    }

    /// The next node that is final; what costs nothing ahead is ordered by its cost alone.
    pub(crate) fn settle(&mut self) -> Option<(Cost, u32)> {
        while let Some(Reverse((cost, node))) = self.queue.pop() {
            if cost == self.costs[node as usize] {
                return Some((cost, node));
            }
        }
        None
    }

    /// Follows the arcs of a final node.
    pub(crate) fn relax(&mut self, graph: &Graph, costs: &[Cost], node: u32, side: Side) {
        let so_far = self.costs[node as usize];
        for (other, arc) in graph.beside(node, side) {
            let cost = so_far.saturating_add(costs[arc as usize]);
            self.reach(other, cost, arc, cost);
        }
    }

    /// The arcs between the node of the beginning and another, in the order in which the search took them backwards.
    pub(crate) fn back(&self, graph: &Graph, node: u32, side: Side) -> impl Iterator<Item = u32> {
        let mut at = node;
        std::iter::from_fn(move || {
            let arc = self.by[at as usize];
            (arc != NONE).then(|| {
                at = if side == Side::Out { graph.tail(arc) } else { graph.head(arc) };
                arc
            })
        })
    }

    /// The arcs to a node, as one drives: from the beginning to it, or from it to the beginning of a search backwards.
    pub(crate) fn arcs(&self, graph: &Graph, node: u32, side: Side) -> Vec<u32> {
        let mut arcs: Vec<_> = self.back(graph, node, side).collect();
        if side == Side::Out {
            arcs.reverse();
        }
        arcs
    }
}

/// The cheapest route; `None` where there is none.
///
/// Shape: a cost for each arc.
/// Cost: O((nodes + arcs) log nodes).
/// Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959).
#[must_use]
pub fn dijkstra(graph: &Graph, costs: &[Cost], from: u32, to: u32) -> Option<Route> {
    let mut search = Search::default();
    search.begin(graph, from, 0);
    while let Some((cost, node)) = search.settle() {
        if node == to {
            return Some(Route { cost, arcs: search.arcs(graph, to, Side::Out) });
        }
        search.relax(graph, costs, node, Side::Out);
    }
    None
}

/// What the cheapest routes from a node, or to it, cost; [`UNREACHABLE`] where there is none.
pub(crate) fn costs_of_all(graph: &Graph, costs: &[Cost], node: u32, side: Side) -> Vec<Cost> {
    let mut search = Search::default();
    search.begin(graph, node, 0);
    while let Some((_, node)) = search.settle() {
        search.relax(graph, costs, node, side);
    }
    search.costs
}
