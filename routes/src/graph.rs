//! A directed graph in flat arrays, and the routes through it.

use matcher::geo::World;
use streets::Network;

/// The cost of an arc or a route, in whole millimetres or milliseconds, so that sums are exact.
pub type Cost = u64;

/// The cost of an arc that cannot be used, and of a route that does not exist.
pub const UNREACHABLE: Cost = Cost::MAX;

/// No node or arc.
pub(crate) const NONE: u32 = u32::MAX;

/// A directed graph. Arcs are numbered in the order of the nodes that they leave.
#[derive(Clone, Debug)]
pub struct Graph {
    tails: Vec<u32>,
    heads: Vec<u32>,
    /// Where the arcs of each node begin, and an end.
    out_first: Vec<u32>,
    /// The arcs that reach each node, one node after another.
    into: Vec<u32>,
    into_first: Vec<u32>,
}

/// A way from one node to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The sum of its arcs' costs.
    pub cost: Cost,
    /// Its arcs, in order; none where it ends at the node at which it begins.
    pub arcs: Vec<u32>,
}

impl Graph {
    /// The graph of a street network, with its numbers of nodes and arcs.
    #[must_use]
    pub fn of(network: &Network) -> Self {
        let arcs = 0..number(network.arcs_count());
        Self::new(network.nodes_count(), arcs.map(|arc| [network.from(arc), network.to(arc)]))
    }

    /// A graph of arcs from a node to a node.
    ///
    /// # Panics
    /// Where arcs are not in ascending order of the nodes that they leave, or an end is no node.
    #[must_use]
    pub fn of_arcs(nodes: usize, arcs: &[[u32; 2]]) -> Self {
        assert!(arcs.is_sorted_by_key(|[tail, _]| *tail), "arcs are in the order of their tails");
        Self::new(nodes, arcs.iter().copied())
    }

    pub(crate) fn new(nodes: usize, arcs: impl Iterator<Item = [u32; 2]>) -> Self {
        let (tails, heads): (Vec<u32>, Vec<u32>) = arcs.map(|[tail, head]| (tail, head)).unzip();
        let out_first = offsets(nodes, &tails);
        let into_first = offsets(nodes, &heads);
        let mut next = into_first.clone();
        let mut into = vec![0; heads.len()];
        for (arc, head) in (0..).zip(&heads) {
            let place = &mut next[*head as usize];
            into[*place as usize] = arc;
            *place += 1;
        }
        Self { tails, heads, out_first, into, into_first }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes_count(&self) -> usize {
        self.out_first.len() - 1
    }

    /// How many arcs there are.
    #[must_use]
    pub fn arcs_count(&self) -> usize {
        self.heads.len()
    }

    /// The node that an arc leaves.
    #[must_use]
    pub fn tail(&self, arc: u32) -> u32 {
        self.tails[arc as usize]
    }

    /// The node that an arc reaches.
    #[must_use]
    pub fn head(&self, arc: u32) -> u32 {
        self.heads[arc as usize]
    }

    /// The arcs that leave a node.
    #[must_use]
    pub fn out(&self, node: u32) -> std::ops::Range<u32> {
        self.out_first[node as usize]..self.out_first[node as usize + 1]
    }

    /// The arcs that reach a node.
    #[must_use]
    pub fn into(&self, node: u32) -> &[u32] {
        &self.into[self.into_first[node as usize] as usize..self.into_first[node as usize + 1] as usize]
    }

    /// The other end of each arc of a node, and the arc: of those that leave it, or of those that reach it.
    pub(crate) fn beside(&self, node: u32, side: Side) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (out, into) = match side {
            Side::Out => (self.out(node), &[][..]),
            Side::In => (0..0, self.into(node)),
        };
        out.map(|arc| (self.head(arc), arc)).chain(into.iter().map(|arc| (self.tail(*arc), *arc)))
    }
}

/// A direction in which arcs are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// As one drives.
    Out,
    /// Backwards.
    In,
}

fn offsets(nodes: usize, ends: &[u32]) -> Vec<u32> {
    let mut first = vec![0; nodes + 1];
    for end in ends {
        first[*end as usize + 1] += 1;
    }
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    first
}

/// A count of nodes or arcs, which a network has bounded.
pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a network numbers its nodes and arcs by u32")
}

/// Where the nodes are, in degrees of latitude or the units of a plane, alike along both axes about the middle of the network.
///
/// Cost: the nodes.
#[must_use]
pub fn places(network: &Network) -> Vec<[f64; 2]> {
    let nodes = 0..number(network.nodes_count());
    let places: Vec<_> = nodes.map(|node| network.node_at(node)).collect();
    if network.world() == World::Planar {
        return places;
    }
    let (south, north) = places.iter().fold((90.0_f64, -90.0_f64), |(south, north), [_, latitude]| {
        (south.min(*latitude), north.max(*latitude))
    });
    let narrow = f64::midpoint(south, north).to_radians().cos();
    places.into_iter().map(|[longitude, latitude]| [longitude * narrow, latitude]).collect()
}

/// The cost of each arc by its length, in whole millimetres, at least 1.
///
/// Cost: the arcs.
#[must_use]
pub fn lengths_mm(network: &Network) -> Vec<Cost> {
    (0..number(network.arcs_count())).map(|arc| length_mm(network, arc)).collect()
}

/// The cost of each arc by the time that it takes at the speed limit, in whole milliseconds, at least 1.
///
/// Cost: the arcs.
#[must_use]
pub fn durations_ms(network: &Network) -> Vec<Cost> {
    (0..number(network.arcs_count())).map(|arc| time_ms(network, arc, network.limit_ms(arc))).collect()
}

/// The cost of an arc by its length, in whole millimetres, at least 1.
#[must_use]
pub fn length_mm(network: &Network, arc: u32) -> Cost {
    whole(network.length_m(arc) * 1000.0)
}

/// The cost of an arc by the time that it takes at a speed, in whole milliseconds, at least 1: a circle has to cost something.
#[must_use]
pub fn time_ms(network: &Network, arc: u32, speed_ms: f32) -> Cost {
    whole(network.length_m(arc) / f64::from(speed_ms.max(0.1)) * 1000.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no arc is negative, or as long as 2^64 mm"
)]
fn whole(number: f64) -> Cost {
    (number.round() as Cost).max(1)
}
