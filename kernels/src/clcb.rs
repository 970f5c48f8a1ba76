//! Records of Loc, Cont and Zip. `include/clcb.cuh` has the same, field by field.

use bytemuck::{Pod, Zeroable};

/// Slots that a task has at most.
pub const PAGE: usize = 1024;
/// Words from SubsCount to the first of Subs.
pub const SUBS: usize = 4;
/// Filters that a thread of Loc looks at together in the fast form.
pub const TOGETHER: u32 = 8;
/// Subscriptions that a thread of Zip looks at together in the fast form.
pub const ZIPPED: u32 = 16;
/// No filter, in a slot that is free.
pub const NO_FILTER: u32 = u32::MAX;

/// InputPos and InputBF (paper, Fig. 2(b)), with what the launches need to know.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Input {
    /// Where the event is, in units of points; planar ones have no third coordinate.
    pub position: [f32; 3],
    /// Bound on the amount by which the rounding of positions may increase a squared distance.
    pub slack_sq: f32,
    /// InputBF.
    pub mask: u32,
    /// Where the byte of this run lies in a counter: 0, 8, 16 or 24.
    pub shift: u32,
    /// Filters that Loc looks at.
    pub filters_count: u32,
    /// Subscriptions that Zip looks at.
    pub subscriptions_count: u32,
    /// Tasks of Cont.
    pub tasks_count: u32,
    /// Which run it is; never 0.
    pub run: u32,
    /// Zero.
    pub unused: [u32; 2],
}

/// Attrs: an attribute's value against one run of the constraints on its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Task {
    /// The first slot.
    pub start: u32,
    /// Slots, [`PAGE`] at most.
    pub count: u32,
    /// The value's code.
    pub code: u32,
    /// 1 where any value at all counts.
    pub anything: u32,
}

/// A constraint in the group of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Constraint {
    /// The filter that it belongs to, or [`NO_FILTER`].
    pub filter: u32,
    /// The least code in the lower half, the largest in the upper.
    pub interval: u32,
}

/// A constraint on its way into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ConstraintUpdate {
    /// Where it goes.
    pub slot: u32,
    /// The constraint that goes there.
    pub constraint: Constraint,
}

/// A filter on its way into the arrays.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct FilterUpdate {
    /// Number of the filter.
    pub filter: u32,
    /// BF.
    pub mask: u32,
    /// The subscription that it belongs to.
    pub owner: u32,
    /// The value of its counter when its area and all of its constraints hold.
    pub needed: u32,
    /// SqDist.
    pub sq_dist: f32,
    /// FPos; not a number while it is nowhere.
    pub position: [f32; 3],
}

/// A location update.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Move {
    /// Number of the filter.
    pub filter: u32,
    /// FPos.
    pub position: [f32; 3],
}

const _: () = assert!(size_of::<Input>() == 48);
const _: () = assert!(size_of::<Task>() == 16);
const _: () = assert!(size_of::<Constraint>() == 8);
const _: () = assert!(size_of::<ConstraintUpdate>() == 12);
const _: () = assert!(size_of::<FilterUpdate>() == 32);
const _: () = assert!(size_of::<Move>() == 16);
