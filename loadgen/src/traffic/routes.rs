//! Which way vehicles go.

use rayon::prelude::*;

use super::chance;
use super::settings;
use routes::{Tree, time_ms};
use streets::{NONE, Network};

/// Destinations that many share.
#[derive(Debug, Default)]
pub(super) struct Goals {
    trees: Vec<Tree>,
    /// How many vehicles are on the way to each.
    bound: Vec<u32>,
    /// Nobody sets out for these any more.
    is_closing: Vec<bool>,
    renewals: u64,
    seed: u64,
}

impl Goals {
    pub(super) fn of(network: &Network, routes: settings::Routes, seed: u64) -> Self {
        let settings::Routes::Goals { count, .. } = routes else { return Self::default() };
        let trees = (0..u64::from(count)).into_par_iter().map(|nth| {
            Tree::to(network, some_node(network, seed, nth), |arc| {
                time_ms(network, arc, network.limit_ms(arc))
            })
        });
        let trees = trees.collect::<Vec<_>>();
        let count = trees.len();
        Self { trees, bound: vec![0; count], is_closing: vec![false; count], renewals: 0, seed }
    }

    /// Picks a destination for a vehicle that is at its `hop`.
    pub(super) fn pick(&mut self, car: u32, hop: u32) -> u16 {
        let count = self.trees.len() as u64;
        if count == 0 {
            return 0;
        }
        let begin = chance::mixed(self.seed ^ 1, u64::from(car), u64::from(hop)) % count;
        let mut all = (0..count).map(|step| (begin + step) % count);
        let goal = all.find(|goal| !self.is_closing[usize::try_from(*goal).unwrap_or(0)]).unwrap_or(begin);
        let goal = u16::try_from(goal).unwrap_or(0);
        self.bound[usize::from(goal)] += 1;
        goal
    }

    /// A vehicle is no longer on its way to a destination.
    pub(super) fn leave(&mut self, goal: u16) {
        if let Some(bound) = self.bound.get_mut(usize::from(goal)) {
            *bound = bound.saturating_sub(1);
        }
    }

    /// Whether one who reaches a node has arrived.
    #[inline]
    pub(super) fn is_reached(&self, goal: u16, node: u32) -> bool {
        self.trees.get(usize::from(goal)).is_some_and(|tree| tree.destination() == node)
    }

    /// Finds the ways to one of the destinations again, at the speeds of the moment; or, if nobody is on the way there and others
    /// were told not to set out, to another.
    pub(super) fn renew(&mut self, network: &Network, speed_ms: impl Fn(u32) -> f32) {
        if self.trees.is_empty() {
            return;
        }
        let nth = usize::try_from(self.renewals % self.trees.len() as u64).unwrap_or(0);
        self.renewals += 1;
        let mut destination = self.trees[nth].destination();
        if self.is_closing[nth] && self.bound[nth] == 0 {
            destination = some_node(network, self.seed, self.renewals << 16);
            self.is_closing[nth] = false;
        } else if self.is_closing.iter().filter(|is_closing| **is_closing).count() * 2 < self.trees.len() {
            self.is_closing[nth] = true;
        }
        self.trees[nth] = Tree::to(network, destination, |arc| time_ms(network, arc, speed_ms(arc)));
    }

    /// The arc that a vehicle takes at the end of another. It is the same whenever it is asked for, until ways are found again.
    #[inline]
    pub(super) fn next(&self, network: &Network, car: u32, goal: u16, arc: u32, hop: u32) -> u32 {
        let tree = self.trees.get(usize::from(goal));
        tree.and_then(|tree| tree.next(network.to(arc)))
            .unwrap_or_else(|| walk(network, self.seed, car, arc, hop))
    }
}

fn some_node(network: &Network, seed: u64, nth: u64) -> u32 {
    let nodes_count = network.nodes_count() as u64;
    u32::try_from(chance::mixed(seed, u64::MAX, nth) % nodes_count).unwrap_or(0)
}

/// At the end of an arc by chance, rather onto wide and quick streets; back only where there is no other way.
#[inline]
fn walk(network: &Network, seed: u64, car: u32, arc: u32, hop: u32) -> u32 {
    let out = network.arcs_from(network.to(arc));
    let back = network.reverse(arc).unwrap_or(NONE);
    let weight = |arc: u32| network.limit_ms(arc) * f32::from(network.lanes(arc));
    let ways = out.filter(|next| *next != back);
    let all = ways.clone().map(weight).sum::<f32>();
    let mut left = all * chance::unit(chance::mixed(seed, u64::from(car), u64::from(hop)));
    let mut chosen = if back == NONE { network.arcs_from(network.to(arc)).start } else { back };
    for next in ways {
        chosen = next;
        left -= weight(next);
        if left < 0.0 {
            break;
        }
    }
    chosen
}
