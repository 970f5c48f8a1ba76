//! Records of the kernels of traffic. `src/kernel_traffic.cu` has the same, field by field, with their meanings.

use bytemuck::{Pod, Zeroable};

/// No arc, vehicle or trip.
pub const NONE: u32 = u32::MAX;
/// Arcs of a trip's whole route.
pub const ROUTE: u32 = 2048;
/// Arcs of the way ahead.
pub const AHEAD: u32 = 64;
/// Nodes that a search for the way ahead knows at most.
pub const KNOWN: u32 = 1024;
/// Words of its table.
pub const TABLE: u32 = 2048;
/// How far ahead the way is looked for, in millimetres.
pub const AHEAD_MM: u32 = 1_000_000;
/// Nodes of a route among which a vehicle looks for where it is.
pub const WINDOW: u32 = 64;
/// A bit of [`Arc::limits`]: groups take turns at the arc's end.
pub const CROSSES: u32 = 1 << 24;
/// A bit of [`Junction::kind`]: they do so by the clock.
pub const SIGNALS: u32 = 1 << 8;
/// The most that an arc weighs, in milliseconds.
pub const WEIGHT: u32 = 1 << 21;
/// A bit of [`Plan::flags`]: the vehicle that was ahead is still in the same lane.
pub const FOLLOWS: u32 = 1;
/// The vehicle passes the end of its arc.
pub const ENTERS: u32 = 2;
/// Somebody is in the lane that it will enter.
pub const BEHIND: u32 = 4;
/// There is hardly room in that lane.
pub const FULL: u32 = 8;
/// A state of a trip: it needs a route.
pub const WAITS: u32 = 0;
/// It is under way.
pub const DRIVES: u32 = 1;

/// An arc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Arc {
    /// The node that it reaches.
    pub to: u32,
    /// The node that it leaves.
    pub from: u32,
    /// Its length as vehicles count it.
    pub length_mm: u32,
    /// The speed limit in mm/s (16 bits), lanes less one (2), the group (3 from 18), and [`CROSSES`].
    pub limits: u32,
}

/// A junction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Junction {
    /// Ranks of its groups, four bits each.
    pub ranks: u32,
    /// How many groups it has, and [`SIGNALS`].
    pub kind: u16,
    /// The group that may go.
    pub open: u16,
    /// The step in which that came to be.
    pub since: u32,
    /// The step from which on it may go; of signals how many steps their clock is ahead.
    pub ready: u32,
}

/// A vehicle as others see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Car {
    /// The arc that it is on.
    pub arc: u32,
    /// How far its front is from the arc's beginning.
    pub along_mm: u32,
    /// The vehicle that was ahead of it in its lane; not any more once that is in another one.
    pub ahead: u32,
    /// In mm/s.
    pub speed: u16,
    /// The lane of the arc, from 0.
    pub lane: u8,
    /// The desired speed in 200ths of the limit.
    pub factor: u8,
}

/// The part of a vehicle's state that others do not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Way {
    /// The arc that it takes next.
    pub next: u32,
    /// How many arcs it has entered.
    pub hop: u32,
    /// For how many steps it has stood.
    pub waited: u16,
    /// How often it has taken another next arc.
    pub changes: u16,
}

/// Where a vehicle will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Plan {
    /// Along its arc, or along the next one.
    pub along_mm: u32,
    /// In mm/s.
    pub speed: u16,
    /// The lane of the next arc.
    pub lane: u8,
    /// [`FOLLOWS`], [`ENTERS`], [`BEHIND`], [`FULL`].
    pub flags: u8,
}

/// A vehicle's trip to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Trip {
    /// The vehicle.
    pub vehicle: u32,
    /// The node at the end of the arc that it is on, when that was last looked at.
    pub head: u32,
    /// [`WAITS`] or [`DRIVES`].
    pub state: u32,
    /// Arcs of its route.
    pub length: u32,
    /// How many of them it has passed.
    pub base: u32,
    /// The hop at which the way ahead begins.
    pub from_hop: u32,
    /// Arcs of the way ahead.
    pub ahead: u32,
    /// Not 0 where the way ahead ends at the destination.
    pub is_last: u32,
    /// Routes that it was given.
    pub asked: u32,
    /// Destinations that it has reached.
    pub arrivals: u32,
    /// How often no way ahead was found.
    pub lost: u32,
}

/// The parameters of a launch that are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Run {
    /// Where all chance comes from.
    pub seed: u64,
    /// The number of the step, from 0.
    pub step: u32,
    /// How many nodes there are.
    pub nodes: u32,
    /// How many arcs.
    pub arcs: u32,
    /// How many vehicles.
    pub vehicles: u32,
    /// How many of them have trips.
    pub trips: u32,
    /// These are the vehicles with numbers 0, `stride`, 2 `stride` and so on.
    pub stride: u32,
}

const _: () = assert!(size_of::<Arc>() == 16 && size_of::<Junction>() == 16 && size_of::<Car>() == 16);
const _: () = assert!(size_of::<Way>() == 12 && size_of::<Plan>() == 8 && size_of::<Trip>() == 44);
const _: () = assert!(size_of::<Run>() == 32);
