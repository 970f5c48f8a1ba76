//! The node nearest to a place.

use matcher::geo::{Position, World};
use rstar::RTree;
use rstar::primitives::GeomWithData;
use streets::Network;

use crate::graph::number;

/// A node, where it is in space: on the unit sphere, or in the plane.
type Node = GeomWithData<[f64; 3], u32>;

/// Nodes of a network by place.
#[derive(Debug)]
pub struct Nearest {
    world: World,
    nodes: RTree<Node>,
}

impl Nearest {
    /// Puts the nodes in order.
    ///
    /// Cost: O(n log n).
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let world = network.world();
        let node = |node: u32| Node::new(in_space(world, network.node_at(node)), node);
        let nodes = (0..number(network.nodes_count())).map(node).collect();
        Self { world, nodes: RTree::bulk_load(nodes) }
    }

    /// The nearest node, and how many metres away it is.
    ///
    /// Cost: about the logarithm of the nodes.
    #[must_use]
    pub fn to(&self, network: &Network, place: &Position) -> Option<(u32, f64)> {
        let node = self.nodes.nearest_neighbor(in_space(self.world, [place.x(), place.y()]))?.data;
        let at = self.world.position(&network.node_at(node)).ok()?;
        Some((node, self.world.distance_m(place, &at)))
    }
}

/// On a sphere the nearest by a straight line is the nearest along the ground.
fn in_space(world: World, [x, y]: [f64; 2]) -> [f64; 3] {
    if world == World::Planar {
        return [x, y, 0.0];
    }
    let (longitude, latitude) = (x.to_radians(), y.to_radians());
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}
