//! Bidirectional A* with landmarks.
//!
//! Source: Goldberg and Harrelson, "Computing the shortest path: A* search meets graph theory", SODA 2005; the potentials of the two
//! directions are made consistent by their mean, as Ikeda et al. have it ("A fast algorithm for finding better routes by AI search techniques",
//! VNIS 1994).

use crate::dijkstra::{Search, costs_of_all};
use crate::graph::{Cost, Graph, Route, Side, UNREACHABLE, number};

/// Costs to and from some nodes far out, from which bounds on all other costs follow.
///
/// They hold as long as no arc costs less than when they were made, so that streets may become slow.
#[derive(Clone, Debug)]
pub struct Landmarks {
    /// For each landmark what the routes from it to each node cost, and those from each node to it.
    from: Vec<Vec<Cost>>,
    to: Vec<Vec<Cost>>,
}

/// Memory of searches with landmarks, used again.
#[derive(Debug, Default)]
pub struct AStar {
    forward: Search,
    backward: Search,
}

impl Landmarks {
    /// Finds landmarks: one after another the node that is farthest from those before.
    ///
    /// Cost: two searches over the whole graph for each.
    #[must_use]
    pub fn new(graph: &Graph, costs: &[Cost], count: usize) -> Self {
        let mut landmarks = Self { from: Vec::new(), to: Vec::new() };
        if graph.nodes_count() == 0 {
            return landmarks;
        }
        let mut nearest = costs_of_all(graph, costs, 0, Side::Out);
        for _ in 0..count.min(graph.nodes_count()) {
            let far = |node: &u32| Some(nearest[*node as usize]).filter(|cost| *cost != UNREACHABLE);
            let Some(node) = (0..number(graph.nodes_count())).max_by_key(far) else { break };
            let from = costs_of_all(graph, costs, node, Side::Out);
            let to = costs_of_all(graph, costs, node, Side::In);
            for (nearest, from) in nearest.iter_mut().zip(&from) {
                *nearest = (*nearest).min(*from);
            }
            landmarks.from.push(from);
            landmarks.to.push(to);
        }
        landmarks
    }

    /// For each landmark what the routes from it to each node cost, and those from each node to it.
    pub fn costs(&self) -> impl Iterator<Item = [&[Cost]; 2]> {
        self.from.iter().zip(&self.to).map(|(from, to)| [&**from, &**to])
    }

    /// No more than the cheapest route costs, by the triangle inequality.
    fn bound(&self, from: u32, to: u32) -> Cost {
        let (from, to) = (from as usize, to as usize);
        let mut bound = 0;
        for (away, back) in self.from.iter().zip(&self.to) {
            if away[to] != UNREACHABLE && away[from] != UNREACHABLE {
                bound = bound.max(away[to].saturating_sub(away[from]));
            }
            if back[from] != UNREACHABLE && back[to] != UNREACHABLE {
                bound = bound.max(back[from].saturating_sub(back[to]));
            }
        }
        bound
    }
}

impl AStar {
    /// The cheapest route; `None` where there is none.
    ///
    /// Shape: a cost for each arc, none below those that the landmarks were made with.
    /// Cost: as Dijkstra's algorithm on the nodes that lie between the ends, as far as the bounds show.
    #[must_use]
    pub fn route(
        &mut self,
        graph: &Graph,
        costs: &[Cost],
        landmarks: &Landmarks,
        from: u32,
        to: u32,
    ) -> Option<Route> {
        if from == to {
            return Some(Route::default());
        }
        // Twice the cost and the difference of two bounds, which is never below zero: no bound is above the cost.
        let key = |cost: Cost, node: u32, side: Side| {
            let (ahead, behind) = match side {
                Side::Out => (landmarks.bound(node, to), landmarks.bound(from, node)),
                Side::In => (landmarks.bound(from, node), landmarks.bound(node, to)),
            };
            (2 * cost + ahead).saturating_sub(behind)
        };
        let Self { forward, backward } = self;
        forward.begin(graph, from, key(0, from, Side::Out));
        backward.begin(graph, to, key(0, to, Side::In));
        let (mut best, mut meeting) = (UNREACHABLE, from);
        let first = |search: &Search| search.queue.peek().map(|entry| entry.0.0);
        while let (Some(ahead), Some(behind)) = (first(forward), first(backward)) {
            // The two keys of a node at which the searches meet add up to twice what the route costs.
            if best != UNREACHABLE && ahead.saturating_add(behind) >= 2 * best {
                break;
            }
            let (side, search, other) = if ahead <= behind {
                (Side::Out, &mut *forward, &*backward)
            } else {
                (Side::In, &mut *backward, &*forward)
            };
            let Some(entry) = search.queue.pop() else { break };
            let (bound, node) = entry.0;
            let so_far = search.costs[node as usize];
            if bound > key(so_far, node, side) {
                continue;
            }
            for (next, arc) in graph.beside(node, side) {
                let cost = so_far.saturating_add(costs[arc as usize]);
                if cost == UNREACHABLE || !search.reach(next, cost, arc, key(cost, next, side)) {
                    continue;
                }
                let rest = other.costs.get(next as usize).copied().unwrap_or(UNREACHABLE);
                let whole = cost.saturating_add(rest);
                if whole < best {
                    (best, meeting) = (whole, next);
                }
            }
        }
        (best != UNREACHABLE).then(|| {
            let mut arcs = forward.arcs(graph, meeting, Side::Out);
            arcs.extend(backward.back(graph, meeting, Side::In));
            Route { cost: best, arcs }
        })
    }
}
