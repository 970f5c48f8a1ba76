//! Records of the kernels of checks. `include/checks.cuh` has the same, field by field, and says what they mean.

use bytemuck::{Pod, Zeroable};

/// Most nodes of a c-unit.
pub const NODES: usize = 64;
/// Most instructions of the leaves of a c-unit.
pub const CODE: usize = 256;
/// Most variables around a c-unit.
pub const DEPTH: usize = 16;
/// Most values, and most truths, that a leaf has on its stacks.
pub const STACK: usize = 8;
/// No node, no event.
pub const ABSENT: u32 = u32::MAX;

/// Kinds of nodes.
pub const LEAF: u32 = 0;
/// `forall`.
pub const FORALL: u32 = 1;
/// `exists`.
pub const EXISTS: u32 = 2;
/// `and`.
pub const AND: u32 = 3;
/// `or`.
pub const OR: u32 = 4;
/// `implies`.
pub const IMPLIES: u32 = 5;
/// `not`.
pub const NOT: u32 = 6;

/// Pushes what an event has in a column: the depth of the variable, and the column.
pub const PUSH_CELL: u32 = 0;
/// Pushes a number.
pub const PUSH_NUMBER: u32 = 1;
/// Pushes the number of a text.
pub const PUSH_TEXT: u32 = 2;
/// Pushes a truth value as a value.
pub const PUSH_BOOL: u32 = 3;
/// Pushes a value of which nothing is known but that it is there and no number.
pub const PUSH_ARRAY: u32 = 4;
/// Pushes the distance of two variables' events.
pub const PUSH_DISTANCE: u32 = 5;
/// Pushes the seconds between them.
pub const PUSH_ELAPSED: u32 = 6;
/// Pushes the speed from one to the other.
pub const PUSH_SPEED: u32 = 7;
/// Minus the top.
pub const NEGATE: u32 = 8;
/// The top without its sign.
pub const ABSOLUTE: u32 = 9;
/// The first of `+ - * / % div ^`.
pub const ARITHMETIC: u32 = 10;
/// Pushes no value.
pub const PUSH_NOTHING: u32 = 18;
/// The first of `= <> < <= > >=`.
pub const COMPARE: u32 = 20;
/// Whether a value is between two.
pub const BETWEEN: u32 = 26;
/// The truths in a column: the depth of the variable, and the column.
pub const TRUTH_CELL: u32 = 27;
/// Truths that stand in the text.
pub const TRUTH_CONSTANT: u32 = 28;
/// Whether two variables are the very same event.
pub const SAME: u32 = 29;
/// Negation.
pub const TRUTH_NOT: u32 = 30;
/// Conjunction of two.
pub const TRUTH_AND: u32 = 31;
/// Disjunction of two.
pub const TRUTH_OR: u32 = 32;

/// Bits of truths that something may have.
pub const MAY_HOLD: u32 = 1;
/// It may be false.
pub const MAY_FAIL: u32 = 2;
/// It may be unknown.
pub const MAY_BE_UNKNOWN: u32 = 4;
/// Nothing is known.
pub const MAY_BE_ANY: u32 = 7;

/// Kinds of values: none.
pub const NOTHING: u32 = 0;
/// A number.
pub const NUMBER: u32 = 1;
/// A text, by its number.
pub const TEXT: u32 = 2;
/// A truth value.
pub const BOOL: u32 = 3;
/// Anything that is no number.
pub const ARRAY: u32 = 4;

/// Words that an evaluation counts in.
pub const HEAD: usize = 6;
/// Leaves in doubt.
pub const HEAD_DOUBTS: usize = 0;
/// Links in the store.
pub const HEAD_LINKS: usize = 1;
/// 1 where something did not fit.
pub const HEAD_OVERFLOW: usize = 2;
/// Truth of the whole formula.
pub const HEAD_ROOT: usize = 3;
/// The first of its links.
pub const HEAD_BEGIN: usize = 4;
/// How many those are.
pub const HEAD_LENGTH: usize = 5;

/// A node of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Node {
    /// What it is.
    pub kind: u32,
    /// Its first child in the unit; of a leaf the first of its instructions, of a quantifier its set.
    pub first: u32,
    /// The next of its parent's children.
    pub next: u32,
    /// Variable of a quantifier.
    pub variable: u32,
    /// Instructions of a leaf, events that a quantifier goes through.
    pub count: u32,
    /// Where the first copy of a quantifier's unit is, from this copy's root.
    pub origin: u32,
    /// How far those are apart.
    pub stride: u32,
}

/// An instruction of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Code {
    /// What to do.
    pub op: u32,
    /// With what: depths of variables, truths.
    pub a: u16,
    /// A depth or a column.
    pub b: u16,
    /// A number.
    pub number: f64,
}

/// A c-unit.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Unit {
    /// Its nodes, children after their parents.
    pub nodes: [Node; NODES],
    /// Code of its leaves.
    pub code: [Code; CODE],
    /// Sets of the variables around it.
    pub set: [u32; DEPTH],
    /// Events in these.
    pub count: [u32; DEPTH],
    /// What a branch adds to the place of a copy's root.
    pub stride: [u32; DEPTH],
    /// How many variables are around it.
    pub depth: u32,
    /// How many nodes it has.
    pub nodes_count: u32,
    /// Where the root of its first copy is.
    pub origin: u32,
    /// How many copies there are.
    pub copies: u32,
    /// Truth of the root for which the quantifier above looks at its links.
    pub blamed: u32,
    /// The first node that a launch is about.
    pub begin: u32,
    /// The end of those.
    pub end: u32,
    /// Its place among the units.
    pub number: u32,
}

/// How all launches of an evaluation see the device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Layout {
    /// Cells of an event.
    pub columns: u32,
    /// Slots of a set.
    pub capacity: u32,
    /// Words of a link.
    pub variables: u32,
    /// 1 on the globe.
    pub geodetic: u32,
    /// Threads that work at one copy together: 1, or a warp.
    pub together: u32,
    /// 1 where truths of children are kept in registers.
    pub buffering: u32,
    /// 1 where doubts were decided.
    pub decided: u32,
    /// Most doubts that an evaluation reports.
    pub doubts_max: u32,
    /// Most links of a node.
    pub links_max: u32,
    /// Links that the store has room for.
    pub room: u32,
}

/// Where and when an event is.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Event {
    /// Its place in space.
    pub point: [f64; 3],
    /// Degrees of longitude, or metres.
    pub x: f64,
    /// Degrees of latitude, or metres.
    pub y: f64,
    /// Milliseconds; the least number where differences may not fit.
    pub time: i64,
}

/// What a part of a leaf over one variable is for an event.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    /// A number, or that of a text.
    pub value: f64,
    /// The kind of the value, or truths.
    pub kind: u32,
    /// Zero.
    pub unused: u32,
}

/// A set has another event in one of its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Change {
    /// The set.
    pub set: u32,
    /// The place.
    pub at: u32,
    /// The event.
    pub slot: u32,
}

/// A leaf that the device cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Doubt {
    /// The c-unit.
    pub unit: u32,
    /// The node in it.
    pub node: u32,
    /// The copy.
    pub copy: u32,
}

/// What the host decided of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Decision {
    /// Place of the leaf in the runtime tree.
    pub at: u32,
    /// 1 where it holds.
    pub truth: u32,
}

/// Links of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Index {
    /// The first.
    pub begin: u32,
    /// How many.
    pub length: u32,
}

const _: () = assert!(size_of::<Node>() == 28);
const _: () = assert!(size_of::<Code>() == 16);
const _: () = assert!(size_of::<Unit>() == NODES * 28 + CODE * 16 + 3 * 4 * DEPTH + 32);
const _: () = assert!(size_of::<Layout>() == 40);
const _: () = assert!(size_of::<Event>() == 48);
const _: () = assert!(size_of::<Cell>() == 16);
const _: () = assert!(size_of::<Change>() == 12);
const _: () = assert!(size_of::<Doubt>() == 12);
const _: () = assert!(size_of::<Decision>() == 8);
const _: () = assert!(size_of::<Index>() == 8);
