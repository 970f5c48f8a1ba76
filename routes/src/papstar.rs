//! PAP*: many searches at once, as flat loops over arrays. One pass of a loop is one thread of a kernel.
//!
//! Each query has a stretch of the arrays, one element a node of its graph: what the best known way to the node costs, what the ways cost that this round
//! found (the *updating* costs), and whether the node is on the frontier. A round has four kernels: nodes on the
//! frontier relax their arcs; costs that became less are taken over, and their nodes are the next frontier; the least cost on it is found in each
//! block, and of these the least for each query. A query ends when no node on the frontier costs less than its end. Queries may be on one
//! graph or on several; the rounds go on until all have ended, and stop between any two kernels and go on later.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, section III. Where the paper says nothing:
//!
//! - The mask of settled nodes is left out: a node whose cost becomes less after it was relaxed is on the frontier again, so that the answer is exact.
//! - Nodes that cost as much as the end, or more, are not relaxed.
//! - The arc by which a node is reached is found at the end, from the costs, so that it agrees with them however threads meet.

use std::collections::HashSet;

use crate::graph::{Cost, Graph, Route, Side, UNREACHABLE, number};

/// Threads of a block, of which one minimum is found.
const BLOCK: usize = 64;

/// A graph with the costs of its arcs.
#[derive(Clone, Copy, Debug)]
pub struct Costed<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// A cost for each arc.
    pub costs: &'a [Cost],
}

/// The kernels, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Nodes on the frontier relax their arcs.
    Relax,
    /// Costs that became less are taken over.
    Update,
    /// The least cost on the frontier, in each block.
    BlockMinimum,
    /// The least of the blocks, for each query.
    Minimum,
}

/// A kernel that was not the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// The one that was.
    pub next: Kernel,
}

/// A route that is looked for.
#[derive(Clone, Copy, Debug)]
struct Query {
    /// The place of its graph.
    on: usize,
    from: u32,
    to: u32,
    /// Its first element of the arrays.
    first: usize,
    is_over: bool,
}

/// Searches on their way.
#[derive(Clone, Debug)]
pub struct PapStar<'a> {
    graphs: Vec<Costed<'a>>,
    queries: Vec<Query>,
    costs: Vec<Cost>,
    updating: Vec<Cost>,
    is_on_frontier: Vec<bool>,
    minima: Vec<Cost>,
    next: Kernel,
    rounds: u64,
}

impl<'a> PapStar<'a> {
    /// Begins searches: the place of a graph, and the ends of the route.
    ///
    /// # Panics
    /// Where there is no such graph or node.
    #[must_use]
    pub fn new(graphs: &[Costed<'a>], queries: &[(usize, [u32; 2])]) -> Self {
        let mut search = Self {
            graphs: graphs.to_vec(),
            queries: Vec::with_capacity(queries.len()),
            costs: Vec::new(),
            updating: Vec::new(),
            is_on_frontier: Vec::new(),
            minima: Vec::new(),
            next: Kernel::Relax,
            rounds: 0,
        };
        for &(on, [from, to]) in queries {
            let nodes = graphs[on].graph.nodes_count();
            assert!((from as usize) < nodes && (to as usize) < nodes, "the ends are nodes of the graph");
            let first = search.costs.len();
            // Whole blocks, so that none has nodes of two queries.
            let end = (first + nodes).next_multiple_of(BLOCK);
            search.costs.resize(end, UNREACHABLE);
            search.is_on_frontier.resize(end, false);
            search.costs[first + from as usize] = 0;
            search.is_on_frontier[first + from as usize] = true;
            search.queries.push(Query { on, from, to, first, is_over: from == to });
        }
        search.updating.clone_from(&search.costs);
        search.minima.resize(search.costs.len() / BLOCK, UNREACHABLE);
        search
    }

    /// Rounds so far.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Whether all queries have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.queries.iter().all(|query| query.is_over)
    }

    /// Runs at most `rounds_max` rounds, and none after all queries have ended. Another call goes on from there.
    ///
    /// Cost: a round looks at all elements, and at the arcs of the frontier.
    pub fn run(&mut self, rounds_max: u64) {
        let end = self.rounds.saturating_add(rounds_max);
        while !(self.next == Kernel::Relax && (self.is_over() || self.rounds >= end)) {
            let kernel = self.next;
            self.launch(kernel).expect("it is the next one");
        }
    }

    /// Runs one kernel over all queries.
    ///
    /// # Errors
    /// [`OutOfOrder`], for the result of another sequence means nothing.
    pub fn launch(&mut self, kernel: Kernel) -> Result<(), OutOfOrder> {
        if kernel != self.next {
            return Err(OutOfOrder { next: self.next });
        }
        self.next = match kernel {
            Kernel::Relax => {
                self.each_query(Self::relax);
                Kernel::Update
            }
            Kernel::Update => {
                self.each_query(Self::update);
                Kernel::BlockMinimum
            }
            Kernel::BlockMinimum => {
                (0..self.minima.len()).for_each(|block| self.block_minimum(block));
                Kernel::Minimum
            }
            Kernel::Minimum => {
                (0..self.queries.len()).for_each(|query| self.minimum(query));
                self.rounds += 1;
                Kernel::Relax
            }
        };
        Ok(())
    }

    /// What is known of a query: its route once it has ended, `None` where there is none; before that the best one so far, which may
    /// cost more than it has to. Only between rounds.
    ///
    /// # Errors
    /// [`OutOfOrder`] within a round.
    pub fn route(&self, query: usize) -> Result<Option<Route>, OutOfOrder> {
        if self.next != Kernel::Relax {
            return Err(OutOfOrder { next: self.next });
        }
        let Query { on, from, to, first, .. } = self.queries[query];
        Ok(trace(self.graphs[on], &self.costs[first..], [from, to]))
    }

    fn each_query(&mut self, thread: impl Fn(&mut Self, Query, u32)) {
        for query in self.queries.clone() {
            let nodes = if query.is_over { 0 } else { self.graphs[query.on].graph.nodes_count() };
            (0..number(nodes)).for_each(|node| thread(self, query, node));
        }
    }

    /// The thread of a node.
    fn relax(&mut self, query: Query, node: u32) {
        let at = query.first + node as usize;
        if !std::mem::take(&mut self.is_on_frontier[at])
            || self.costs[at] >= self.costs[query.first + query.to as usize]
        {
            return;
        }
        let Costed { graph, costs } = self.graphs[query.on];
        for (head, arc) in graph.beside(node, Side::Out) {
            let cost = self.costs[at].saturating_add(costs[arc as usize]);
            let updating = &mut self.updating[query.first + head as usize];
            *updating = (*updating).min(cost);
        }
    }

    /// The thread of a node.
    fn update(&mut self, query: Query, node: u32) {
        let at = query.first + node as usize;
        if self.updating[at] < self.costs[at] {
            self.costs[at] = self.updating[at];
            self.is_on_frontier[at] = true;
        }
    }

    /// The threads of a block.
    fn block_minimum(&mut self, block: usize) {
        let nodes = block * BLOCK..(block + 1) * BLOCK;
        let frontier = nodes.filter(|at| self.is_on_frontier[*at]).map(|at| self.costs[at]);
        self.minima[block] = frontier.min().unwrap_or(UNREACHABLE);
    }

    /// The thread of a query.
    fn minimum(&mut self, query: usize) {
        let Query { on, to, first, .. } = self.queries[query];
        let blocks = first / BLOCK..(first + self.graphs[on].graph.nodes_count()).div_ceil(BLOCK);
        let least = self.minima[blocks].iter().copied().min().unwrap_or(UNREACHABLE);
        self.queries[query].is_over |= least >= self.costs[first + to as usize];
    }
}

/// A route by what the best known ways to the nodes cost, as a search like this leaves them; `None` where no way to the end is known.
///
/// Shape: a cost for each node, or more; 0 for the node at which the route begins.
/// Cost: the arcs that reach the nodes of the route, and those of nodes that cost as much where arcs cost nothing.
#[must_use]
pub fn trace(Costed { graph, costs }: Costed<'_>, known: &[Cost], [from, to]: [u32; 2]) -> Option<Route> {
    let known = |node: u32| known[node as usize];
    if known(to) == UNREACHABLE {
        return None;
    }
    let mut arcs = Vec::new();
    let mut at = to;
    // Nodes that cost as much as the one at which the search is, each with the place of the one that it leads to, and the arc.
    let (mut alike, mut seen) = (Vec::new(), HashSet::new());
    while at != from {
        alike.clear();
        seen.clear();
        alike.push((at, 0, 0));
        let mut next = 0;
        at = 'found: loop {
            let (node, ..) = *alike.get(next)?;
            for (tail, arc) in graph.beside(node, Side::In) {
                // A node may have become cheaper after it was relaxed.
                if known(tail).saturating_add(costs[arc as usize]) > known(node) {
                    continue;
                }
                if known(tail) < known(node) || tail == from {
                    let first = arcs.len();
                    arcs.push(arc);
                    let mut place = next;
                    while place > 0 {
                        let (_, before, by) = alike[place];
                        arcs.push(by);
                        place = before;
                    }
                    // They lead from the new node to the old one, and the route is made backwards.
                    arcs[first..].reverse();
                    break 'found tail;
                }
                if seen.insert(tail) {
                    alike.push((tail, next, arc));
                }
            }
            next += 1;
        };
    }
    arcs.reverse();
    let cost = arcs.iter().map(|arc| costs[*arc as usize]).sum();
    Some(Route { cost, arcs })
}
