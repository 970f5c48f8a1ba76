//! Records of the kernels of checks that take batches and join. `src/kernel_checks_joined.cu` has the same, field by field, and says what they
//! mean.

use bytemuck::{Pod, Zeroable};

use crate::checks::{CODE, Code, DEPTH, Layout as Leaves};

/// Most leaves of a node.
pub const JOINED_LEAVES: usize = 64;
/// Most steps of its three programs together.
pub const JOINED_STEPS: usize = 256;
/// Most words that a program has on its stack.
pub const JOINED_STACK: usize = 16;
/// Most keys of an event in an index.
pub const JOINED_KEYS: usize = 4;
/// Most keys that are looked up for an event.
pub const JOINED_LOOKUPS: usize = 32;
/// Changes of a chunk.
pub const JOINED_CHUNK: usize = 63;

/// Pushes all states.
pub const STEP_TRUE: u8 = 0;
/// Pushes no states.
pub const STEP_FALSE: u8 = 1;
/// Pushes all states where a leaf is as it is to be.
pub const STEP_LEAF: u8 = 2;
/// Pushes the states in which some event satisfies a node, or none.
pub const STEP_SOME: u8 = 3;
/// The states that two have.
pub const STEP_AND: u8 = 4;
/// The states that one of two has.
pub const STEP_OR: u8 = 5;

/// Leaves in doubt.
pub const JOINED_DOUBTS: usize = 0;
/// Links that came or went.
pub const JOINED_TOLD: usize = 1;
/// Entries of the first node; those of the others follow.
pub const JOINED_ENTRIES: usize = 2;

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Step {
    /// What it does.
    pub op: u8,
    /// A leaf or a node.
    pub a: u8,
    /// Whose: 0 is the entry's own, 1 that of the one around it.
    pub level: u8,
    /// 0 for what is to be false.
    pub holds: u8,
}

/// A node, and one of the ways to its events.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Node {
    /// Code of its leaves.
    pub code: [Code; CODE],
    /// Its programs.
    pub steps: [Step; JOINED_STEPS],
    /// First instruction of each leaf.
    pub leaf_begin: [u16; JOINED_LEAVES],
    /// How many those are.
    pub leaf_count: [u16; JOINED_LEAVES],
    /// Leaves without which there is no entry.
    pub needed: u64,
    /// Leaves that are to be true.
    pub wanted: u64,
    /// Nodes around it, the nearest first and the root last.
    pub around: [u8; DEPTH + 2],
    /// Depths of their variables.
    pub depths: [u8; DEPTH + 2],
    /// Its own variable and theirs.
    pub variables: [u8; DEPTH + 2],
    /// Nodes whose entries are around one of its own.
    pub inner: [u8; DEPTH],
    /// Zero.
    pub padding: [u8; 2],
    /// How many nodes are around it.
    pub around_count: u32,
    /// How many nodes are around one of its entries.
    pub inner_count: u32,
    /// Its number; the root's is the highest.
    pub number: u32,
    /// Depth of its variable.
    pub depth: u32,
    /// How many leaves it has.
    pub leaves: u32,
    /// End of the program that says where it is true.
    pub value_end: u32,
    /// End of the one that says where it has links inside.
    pub linked_end: u32,
    /// End of the one that says where links around go through it.
    pub through_end: u32,
    /// The first member of its set.
    pub members_begin: u32,
    /// How many there are.
    pub members_count: u32,
    /// The index that it looks up in.
    pub index: u32,
    /// The first word of the look-up in a row of keys.
    pub lookup: u32,
    /// Depth of the event that looks up.
    pub from: u32,
    /// Zero.
    pub unused: u32,
}

/// How all launches of a batch see the device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Layout {
    /// What leaves and links need: columns, variables, the world, the most doubts.
    pub leaves: Leaves,
    /// Words of an event's row of keys.
    pub keys: u32,
    /// Entries that each node has room for.
    pub room: u32,
    /// Words of an entry.
    pub chunks: u32,
    /// Links that there is room for.
    pub told_max: u32,
    /// Buckets of each index, a power of two.
    pub buckets: u32,
    /// Items that each index has room for.
    pub items: u32,
}

/// An event in a set, in the states from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Member {
    /// The event.
    pub slot: u32,
    /// The first state.
    pub from: u32,
    /// The end of those.
    pub to: u32,
}

/// An assignment that may make a node's matrix true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The entry around it.
    pub parent: u32,
    /// The event.
    pub slot: u32,
    /// The first state in which all of its events are there.
    pub from: u32,
    /// The end of those.
    pub to: u32,
    /// Leaves that are true.
    pub leaves: u64,
}

/// An event in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Item {
    /// The key.
    pub key: u64,
    /// The member.
    pub member: u32,
    /// Zero.
    pub unused: u32,
}

/// A leaf of an entry that the device cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Doubt {
    /// The node.
    pub node: u32,
    /// The entry.
    pub entry: u32,
    /// The leaf.
    pub leaf: u32,
    /// Events by depth.
    pub slots: [u32; DEPTH],
}

/// A leaf that the host found to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Decision {
    /// The entry, among those of all nodes.
    pub at: u32,
    /// The leaf.
    pub leaf: u32,
}

const _: () = assert!(size_of::<Step>() == 4);
const _: () = assert!(size_of::<Node>() == CODE * 16 + 4 * JOINED_STEPS + 4 * JOINED_LEAVES + 16 + 72 + 56);
const _: () = assert!(size_of::<Layout>() == 64);
const _: () = assert!(size_of::<Member>() == 12);
const _: () = assert!(size_of::<Entry>() == 24);
const _: () = assert!(size_of::<Item>() == 16);
const _: () = assert!(size_of::<Doubt>() == 12 + 4 * DEPTH);
const _: () = assert!(size_of::<Decision>() == 8);
