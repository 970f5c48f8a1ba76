//! Shortest paths from everywhere to one node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use streets::{NONE, Network};

use crate::Cost;

/// The quickest ways from everywhere to one node.
///
/// Costs are whole numbers (milliseconds, millimetres), so that sums are exact and the same everywhere.
#[derive(Clone, Debug)]
pub struct Tree {
    destination: u32,
    next: Vec<u32>,
    cost: Vec<Cost>,
}

impl Tree {
    /// Finds them.
    ///
    /// - Shape: `cost` gives what each arc costs; it is asked once for each.
    /// - Cost: O((nodes + arcs) log nodes).
    /// - Source: E. W. Dijkstra, A note on two problems in connexion with graphs, Numerische Mathematik 1, 1959, from the
    ///   destination backwards; of two ways as good the one over the arc of the lower number.
    #[must_use]
    pub fn to(network: &Network, destination: u32, cost: impl Fn(u32) -> Cost) -> Self {
        let mut tree = Self {
            destination,
            next: vec![NONE; network.nodes_count()],
            cost: vec![Cost::MAX; network.nodes_count()],
        };
        tree.cost[destination as usize] = 0;
        let mut reached = BinaryHeap::from([Reverse((0, destination))]);
        while let Some(Reverse((so_far, node))) = reached.pop() {
            if so_far > tree.cost[node as usize] {
                continue;
            }
            for &arc in network.arcs_to(node) {
                let from = network.from(arc) as usize;
                let whole = so_far.saturating_add(cost(arc));
                if whole < tree.cost[from] {
                    tree.cost[from] = whole;
                    tree.next[from] = arc;
                    reached.push(Reverse((whole, network.from(arc))));
                } else if whole == tree.cost[from] && from != destination as usize {
                    tree.next[from] = tree.next[from].min(arc);
                }
            }
        }
        tree
    }

    /// Where the ways lead.
    #[must_use]
    pub fn destination(&self) -> u32 {
        self.destination
    }

    /// The arc to take at a node; none at the destination.
    #[must_use]
    pub fn next(&self, node: u32) -> Option<u32> {
        Some(self.next[node as usize]).filter(|arc| *arc != NONE)
    }

    /// What the way from a node costs; none where there is no way.
    #[must_use]
    pub fn cost(&self, node: u32) -> Option<Cost> {
        Some(self.cost[node as usize]).filter(|cost| *cost != Cost::MAX)
    }
}
