//! Shortest paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::network::{NONE, Network};

/// The quickest ways from everywhere to one node.
///
/// Costs are whole numbers (milliseconds, millimetres), so that sums are exact and the same everywhere.
#[derive(Clone, Debug)]
pub struct Tree {
    destination: u32,
    next: Vec<u32>,
    cost: Vec<u64>,
}

impl Tree {
    /// Finds them.
    ///
    /// - Shape: `cost` gives what each arc costs; it is asked once for each.
    /// - Cost: O((nodes + arcs) log nodes).
    /// - Source: E. W. Dijkstra, A note on two problems in connexion with graphs, Numerische Mathematik 1, 1959, from the
    ///   destination backwards; of two ways as good the one over the arc of the lower number.
    #[must_use]
    pub fn to(network: &Network, destination: u32, cost: impl Fn(u32) -> u64) -> Self {
        let mut tree = Self {
            destination,
            next: vec![NONE; network.nodes_count()],
            cost: vec![u64::MAX; network.nodes_count()],
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
    pub fn cost(&self, node: u32) -> Option<u64> {
        Some(self.cost[node as usize]).filter(|cost| *cost != u64::MAX)
    }
}

/// The cost of an arc by its length, in whole millimetres, at least 1.
#[must_use]
pub fn length_mm(network: &Network, arc: u32) -> u64 {
    whole(network.length_m(arc) * 1000.0)
}

/// The cost of an arc by the time that it takes at a speed, in whole milliseconds, at least 1: a circle has to cost something.
#[must_use]
pub fn time_ms(network: &Network, arc: u32, speed_ms: f32) -> u64 {
    whole(network.length_m(arc) / f64::from(speed_ms.max(0.1)) * 1000.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no arc is negative, or as long as 2^64 mm"
)]
fn whole(number: f64) -> u64 {
    (number.round() as u64).max(1)
}
