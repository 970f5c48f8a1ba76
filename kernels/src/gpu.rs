//! Records of the batched engine's kernels. `include/gpu.cuh` has the same, field by field.

use bytemuck::{Pod, Zeroable};

/// Levels of the grid; the last is for areas without a bound.
pub const LEVELS: usize = 32;
/// Counts that a warp adds up in one go when it sorts.
pub const CHUNK: usize = 1024;
/// Attributes of an event up to which they are in any order; those of an event with more ascend by name. One is a word for the
/// name's number and [`NAME_ARRAY`], and one for the value's code.
pub const UNSORTED: usize = 8;
/// No entry, the end of a list.
pub const NONE: u32 = u32::MAX;

/// Bit of an entry's kind: its circle is all of its area.
pub const KIND_CIRCLE: u32 = 1 << 8;
/// Bit of an entry's kind: the entry is there.
pub const KIND_LIVE: u32 = 1 << 9;
/// Bit of an event's flags: no answer is certain for the event.
pub const EVENT_DOUBT: u32 = 1 << 31;
/// Bit of a constraint's name: the constraint may hold without the attribute.
pub const NAME_OPTIONAL: u32 = 1 << 31;
/// Bit of a constraint's name: codes strictly inside the interval decide.
pub const NAME_COMPLETE: u32 = 1 << 30;
/// Bit of an attribute's name: any of several values counts.
pub const NAME_ARRAY: u32 = 1 << 31;
/// Entries are below this: slots of the base keep two bits for themselves.
pub const ENTRIES_END: u32 = 1 << 30;
/// Bit of an answer, whose lower half is the event's number in its batch and whose upper half a subscription: that is an entry
/// instead, which the host has to decide.
pub const ANSWER_DOUBT: u32 = 1 << 31;

/// A circle.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Place {
    /// Its centre in units of points; not a number while it is nowhere.
    pub centre: [f32; 3],
    /// Its reach in the same units, infinite without a bound.
    pub reach: f32,
}

/// An event.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Event {
    /// Where, in units of points.
    pub position: [f32; 3],
    /// Bound on the amount by which the rounding of positions may increase a distance.
    pub slack: f32,
    /// The mask of its names.
    pub mask: u32,
    /// How many attributes it has, and [`EVENT_DOUBT`].
    pub flags: u32,
    /// The first of its attributes.
    pub attributes: u32,
    /// Zero.
    pub unused: u32,
}

/// A constraint: accepts codes from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Constraint {
    /// The name's number, [`NAME_OPTIONAL`] and [`NAME_COMPLETE`].
    pub name: u32,
    /// The least code.
    pub low: u32,
    /// The largest.
    pub high: u32,
}

/// A constraint on its way to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ConstraintUpdate {
    /// Where it goes.
    pub at: u32,
    /// The constraint that goes there.
    pub constraint: Constraint,
}

/// An entry on its way into the table.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EntryUpdate {
    /// Its circle.
    pub place: Place,
    /// Number of the entry.
    pub entry: u32,
    /// The mask of the names that it requires.
    pub mask: u32,
    /// The subscription that it belongs to.
    pub subscription: u32,
    /// The first of its constraints.
    pub constraints: u32,
    /// How many those are, [`KIND_CIRCLE`] and [`KIND_LIVE`].
    pub kind: u32,
    /// The next entry that follows the same client.
    pub next: u32,
    /// Where it goes in the log.
    pub log_at: u32,
    /// 0 where only `next` is new.
    pub changed: u32,
}

/// Where the list of a client's entries begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HeadUpdate {
    /// The client.
    pub client: u32,
    /// The first entry that follows it.
    pub head: u32,
}

/// A client's move.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Move {
    /// The client.
    pub client: u32,
    /// Where the first of its entries goes in the log; the others follow.
    pub log_at: u32,
    /// Where it is now; not a number when nowhere.
    pub position: [f32; 3],
}

/// How space is cut into cells.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Levels {
    /// No area of a level reaches further than its cells are wide.
    pub side: [f32; LEVELS],
    /// One over each.
    pub inverse: [f32; LEVELS],
    /// Bounded levels, ascending by side.
    pub count: u32,
    /// 2 in the plane, 3 on the globe.
    pub dimensions: u32,
}

const _: () = assert!(size_of::<Place>() == 16);
const _: () = assert!(size_of::<Event>() == 32);
const _: () = assert!(size_of::<Constraint>() == 12);
const _: () = assert!(size_of::<ConstraintUpdate>() == 16);
const _: () = assert!(size_of::<EntryUpdate>() == 48);
const _: () = assert!(size_of::<HeadUpdate>() == 8);
const _: () = assert!(size_of::<Move>() == 20);
const _: () = assert!(size_of::<Levels>() == 264);
