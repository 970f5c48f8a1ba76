//! Records of the kernels of routes. `src/kernel_routes.cu` has the same, field by field.

use bytemuck::{Pod, Zeroable};

/// Nodes of a block, which has one minimum.
pub const BLOCK: u32 = 128;

/// A route that is looked for.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Query {
    /// Nodes of its graph.
    pub nodes: u32,
    /// Where the graph begins in the vertex array.
    pub first_node: u32,
    /// The node at which the route begins, as a number of the graph.
    pub from: u32,
    /// The node at which it ends.
    pub to: u32,
    /// The first of its blocks.
    pub first_block: u32,
    /// How many blocks it has.
    pub blocks: u32,
    /// Landmarks of the graph that may be relied on.
    pub landmarks: u32,
    /// 0
    pub unused: u32,
    /// Where the costs from and to the landmarks begin: for each node a pair for each landmark.
    pub landmarks_at: u64,
    /// A node is relaxed while its key is at most so much above the least one.
    pub slack: u64,
}

/// The state of a search after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct State {
    /// The least key on the frontier.
    pub least: u64,
    /// The cost of the best known route.
    pub best: u64,
    /// Not 0 where that is the best there is.
    pub is_over: u32,
    /// Rounds so far.
    pub rounds: u32,
}

const _: () = assert!(size_of::<Query>() == 48 && size_of::<State>() == 24);
