//! A customisable contraction hierarchy: exact routes in microseconds, and new costs for all arcs in milliseconds.
//!
//! Nodes are contracted in an order that does not depend on costs ([nested dissection](crate::dissection)). That gives each node *upward* neighbours,
//! which are contracted later, and an *elimination tree*, in which the parent of a node is the first of them. Every cheapest route
//! goes up and down again, so that a search follows the tree from both ends and needs no queue.
//!
//! Source: Dibbelt, Strasser and Wagner, "Customizable contraction hierarchies", ACM Journal of Experimental Algorithmics 21 (2016).

use crate::dissection;
use crate::graph::{Cost, Graph, NONE, Route, UNREACHABLE, number};

/// An arc of the hierarchy that stands for two others has the node between them here, and this bit.
const THROUGH: u32 = 1 << 31;

/// The hierarchy of a graph, whatever its arcs cost. Nodes are called by their ranks: their places in the order.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    ranks: Vec<u32>,
    /// The ranks of the nodes, the most important last.
    importance: Vec<u32>,
    /// The upward neighbours of each rank, ascending, one rank after another; the first is the parent. An *edge* is a place here.
    up: Vec<u32>,
    up_first: Vec<u32>,
    /// The edge of each arc of the graph, and whether the arc goes up; [`NONE`] for an arc from a node to itself.
    edges: Vec<(u32, bool)>,
}

/// A direction of the hierarchy's edges: what they cost, and what each stands for.
#[derive(Clone, Debug)]
struct Way {
    costs: Vec<Cost>,
    /// An arc of the graph, or the rank that the way goes through with [`THROUGH`].
    stands_for: Vec<u32>,
}

/// What the hierarchy's edges cost.
#[derive(Clone, Debug)]
pub struct Metric {
    up: Way,
    down: Way,
}

/// Memory of searches, used again.
#[derive(Debug, Default)]
pub struct Memory {
    ahead: Side,
    behind: Side,
}

/// What a search has reached from one end.
#[derive(Debug, Default)]
struct Side {
    costs: Vec<Cost>,
    /// The edge by which a rank is reached, and the rank below it.
    by: Vec<(u32, u32)>,
}

impl Hierarchy {
    /// Makes it.
    ///
    /// Shape: where each node is, in units that are alike along both axes.
    /// Cost: that of the dissection, some tenths of a second for a city; afterwards about ten times the arcs.
    #[must_use]
    pub fn new(graph: &Graph, places: &[[f64; 2]]) -> Self {
        let order = dissection::order(graph, places);
        let mut ranks = vec![0; graph.nodes_count()];
        for (rank, node) in (0..).zip(&order.contracted) {
            ranks[*node as usize] = rank;
        }
        let mut above: Vec<Vec<u32>> = vec![Vec::new(); ranks.len()];
        let ends = |arc: u32| [graph.tail(arc), graph.head(arc)].map(|node| ranks[node as usize]);
        let arcs = 0..number(graph.arcs_count());
        for [tail, head] in arcs.clone().map(ends).filter(|[tail, head]| tail != head) {
            above[tail.min(head) as usize].push(tail.max(head));
        }
        let (mut up, mut up_first) = (Vec::new(), vec![0]);
        for rank in 0..ranks.len() {
            let mut own = std::mem::take(&mut above[rank]);
            own.sort_unstable();
            own.dedup();
            // Neighbours of a contracted node become neighbours; through the parent that reaches all of them.
            if let Some((parent, others)) = own.split_first() {
                above[*parent as usize].extend(others);
            }
            up.append(&mut own);
            up_first.push(number(up.len()));
        }
        let importance = order.importance.iter().map(|node| ranks[*node as usize]).collect();
        let mut hierarchy = Self { ranks, importance, up, up_first, edges: Vec::new() };
        let edge = |arc: u32| {
            let [tail, head] = [graph.tail(arc), graph.head(arc)].map(|node| hierarchy.ranks[node as usize]);
            let edge = hierarchy.edge(tail.min(head), tail.max(head)).unwrap_or(NONE);
            (edge, tail < head)
        };
        hierarchy.edges = arcs.map(edge).collect();
        hierarchy
    }

    /// Edges of the hierarchy: those of the graph, and those that stand for others.
    #[must_use]
    pub fn edges_count(&self) -> usize {
        self.up.len()
    }

    /// A node's place in the order.
    pub(crate) fn rank(&self, node: u32) -> u32 {
        self.ranks[node as usize]
    }

    /// The ranks of the `count` most important nodes, and of all that the hierarchy has above them.
    pub(crate) fn most_important(&self, count: usize) -> &[u32] {
        &self.importance[self.importance.len() - count..]
    }

    /// The edges of a rank.
    pub(crate) fn edges(&self, rank: u32) -> std::ops::Range<u32> {
        self.up_first[rank as usize]..self.up_first[rank as usize + 1]
    }

    /// The upper end of an edge.
    pub(crate) fn upper(&self, edge: u32) -> u32 {
        self.up[edge as usize]
    }

    fn parent(&self, rank: u32) -> u32 {
        let edges = self.edges(rank);
        if edges.is_empty() { NONE } else { self.upper(edges.start) }
    }

    /// The edge between two ranks.
    fn edge(&self, lower: u32, upper: u32) -> Option<u32> {
        let edges = self.edges(lower);
        let place = self.up[edges.start as usize..edges.end as usize].binary_search(&upper).ok()?;
        Some(edges.start + number(place))
    }

    /// Finds what the edges cost.
    ///
    /// Shape: a cost for each arc of the graph; [`UNREACHABLE`] for one that cannot be used.
    /// Cost: the triangles of the hierarchy, some milliseconds for a city.
    #[must_use]
    pub fn customise(&self, costs: &[Cost]) -> Metric {
        let way = || Way { costs: vec![UNREACHABLE; self.up.len()], stands_for: vec![NONE; self.up.len()] };
        let mut metric = Metric { up: way(), down: way() };
        self.customise_again(costs, &mut metric);
        metric
    }

    /// As [`customise`](Self::customise), in the memory of another metric of this hierarchy.
    pub fn customise_again(&self, costs: &[Cost], metric: &mut Metric) {
        let Metric { up, down } = metric;
        up.costs.fill(UNREACHABLE);
        down.costs.fill(UNREACHABLE);
        for (arc, (edge, is_up)) in (0..).zip(&self.edges) {
            if *edge != NONE {
                let way = if *is_up { &mut *up } else { &mut *down };
                way.lower(*edge, costs[arc as usize], arc);
            }
        }
        for rank in 0..number(self.ranks.len()) {
            let edges = self.edges(rank);
            for first in edges.clone() {
                let mut across = self.edges(self.upper(first));
                let (up_first, down_first) = (up.costs[first as usize], down.costs[first as usize]);
                for second in first + 1..edges.end {
                    // Both lists ascend, and the upper end of the first has all of the others as neighbours.
                    let edge = across.find(|edge| self.upper(*edge) == self.upper(second));
                    let edge = edge.expect("the neighbours of a contracted node are neighbours");
                    let (up_second, down_second) = (up.costs[second as usize], down.costs[second as usize]);
                    up.lower(edge, down_first.saturating_add(up_second), rank | THROUGH);
                    down.lower(edge, down_second.saturating_add(up_first), rank | THROUGH);
                }
            }
        }
    }

    /// The cheapest route; `None` where there is none.
    ///
    /// Cost: the ancestors of both ends with their edges, some hundred for a city.
    #[must_use]
    pub fn route(&self, metric: &Metric, from: u32, to: u32, memory: &mut Memory) -> Option<Route> {
        let (meeting, cost) = self.meet(metric, from, to, memory)?;
        let mut arcs = Vec::new();
        let mut climbed = Vec::new();
        let mut at = meeting;
        while at != self.rank(from) {
            let (edge, below) = memory.ahead.by[at as usize];
            climbed.push((edge, below));
            at = below;
        }
        for (edge, below) in climbed.into_iter().rev() {
            self.unpack(metric, below, edge, true, &mut arcs);
        }
        at = meeting;
        while at != self.rank(to) {
            let (edge, below) = memory.behind.by[at as usize];
            self.unpack(metric, below, edge, false, &mut arcs);
            at = below;
        }
        Some(Route { cost, arcs })
    }

    /// What the cheapest route costs; `None` where there is none.
    ///
    /// Cost: as [`route`](Self::route), without the arcs.
    #[must_use]
    pub fn cost(&self, metric: &Metric, from: u32, to: u32, memory: &mut Memory) -> Option<Cost> {
        self.meet(metric, from, to, memory).map(|(_, cost)| cost)
    }

    /// The rank at which the cheapest route turns down, and what the route costs.
    fn meet(&self, metric: &Metric, from: u32, to: u32, memory: &mut Memory) -> Option<(u32, Cost)> {
        let (source, target) = (self.rank(from), self.rank(to));
        let Memory { ahead, behind } = memory;
        for (side, rank) in [(&mut *ahead, source), (&mut *behind, target)] {
            side.costs.resize(self.ranks.len(), UNREACHABLE);
            side.by.resize(self.ranks.len(), (NONE, NONE));
            side.costs[rank as usize] = 0;
        }
        let (mut one, mut other) = (source, target);
        while one != other {
            if one < other {
                self.climb(&metric.up, one, ahead);
                one = self.parent(one);
            } else {
                self.climb(&metric.down, other, behind);
                other = self.parent(other);
            }
        }
        let (mut best, mut meeting) = (UNREACHABLE, NONE);
        while one != NONE {
            let at = one as usize;
            let cost = ahead.costs[at].saturating_add(behind.costs[at]);
            if cost < best {
                (best, meeting) = (cost, one);
            }
            if ahead.costs[at] < best {
                self.climb(&metric.up, one, ahead);
            }
            if behind.costs[at] < best {
                self.climb(&metric.down, one, behind);
            }
            one = self.parent(one);
        }
        for (side, rank) in [(ahead, source), (behind, target)] {
            let mut at = rank;
            while at != NONE {
                side.costs[at as usize] = UNREACHABLE;
                at = self.parent(at);
            }
        }
        (meeting != NONE).then_some((meeting, best))
    }

    /// Follows the edges of a rank.
    fn climb(&self, way: &Way, rank: u32, side: &mut Side) {
        let so_far = side.costs[rank as usize];
        if so_far == UNREACHABLE {
            return;
        }
        for edge in self.edges(rank) {
            let upper = self.upper(edge) as usize;
            let cost = so_far.saturating_add(way.costs[edge as usize]);
            if cost < side.costs[upper] {
                side.costs[upper] = cost;
                side.by[upper] = (edge, rank);
            }
        }
    }

    /// Appends the arcs that an edge stands for, from its lower end up or from its upper end down.
    pub(crate) fn unpack(&self, metric: &Metric, lower: u32, edge: u32, is_up: bool, arcs: &mut Vec<u32>) {
        let mut stack = vec![(lower, edge, is_up)];
        while let Some((lower, edge, is_up)) = stack.pop() {
            let way = if is_up { &metric.up } else { &metric.down };
            let stands_for = way.stands_for[edge as usize];
            if stands_for & THROUGH == 0 {
                arcs.push(stands_for);
                continue;
            }
            let middle = stands_for & !THROUGH;
            let upper = self.upper(edge);
            let beside = |end: u32| self.edge(middle, end).expect("both ends are neighbours of the middle");
            // First down to the middle, then up from it. The last pushed comes first.
            let (begin, end) = if is_up { (lower, upper) } else { (upper, lower) };
            stack.push((middle, beside(end), true));
            stack.push((middle, beside(begin), false));
        }
    }
}

impl Metric {
    /// What an edge costs, from its lower end up or from its upper end down.
    pub(crate) fn cost(&self, edge: u32, is_up: bool) -> Cost {
        let way = if is_up { &self.up } else { &self.down };
        way.costs[edge as usize]
    }
}

impl Way {
    fn lower(&mut self, edge: u32, cost: Cost, stands_for: u32) {
        let known = &mut self.costs[edge as usize];
        if cost < *known {
            *known = cost;
            self.stands_for[edge as usize] = stands_for;
        }
    }
}
