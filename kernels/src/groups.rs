//! Records of the kernels of networks. `include/groups.cuh` has the same, field by field.

use bytemuck::{Pod, Zeroable};

/// Lengths that a warp sums up at a time.
pub const CHUNK: u32 = 1_024;
/// 1 where a variable has no node left.
pub const NE_EMPTY: usize = 0;
/// The nodes that each of the loops that are started together deleted.
pub const NE_DELETED: usize = 1;
/// Most loops that are started together.
pub const NE_LOOPS: usize = 32;
/// Words of all these.
pub const NE_HEAD: usize = NE_DELETED + NE_LOOPS;
/// No loop: what is before the first one, or is not bound to one.
pub const NE_NO_LOOP: u32 = u32::MAX;
/// The last round that removed something, or the loops: the lower half of a start's first word.
pub const START_ROUND: usize = 0;
/// Not 0 where a variable has no value left: the upper half.
pub const START_EMPTY: usize = 1;
/// Not 0 once all is told.
pub const TOLD_FLAG: usize = 0;
/// How it went, as the first word of a start.
pub const TOLD_HEAD: usize = 1;
/// What is left.
pub const TOLD_WORDS: usize = 2;

/// A word of values of a variable x that lose their supports at a variable y. Tasks are sorted by y.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Task {
    /// The variable that loses values.
    pub x: u32,
    /// The word, among those of a start.
    pub word: u32,
    /// The variable that lost values.
    pub y: u32,
    /// The first word of y, among those of a start.
    pub at: u32,
    /// The word of the row of y's first value that has bits for the values of `word`.
    pub unions: u32,
    /// From one row to the next.
    pub union_stride: u32,
    /// The row of the first value of `word`: bits for the values of y.
    pub tests: u32,
    /// Words of such a row, and of y.
    pub row_words: u32,
    /// The fewest supports that a value of x has among all values of y.
    pub least: u32,
}

const _: () = assert!(size_of::<Task>() == 36);
