//! Crowds: where a bucket has so many filters that an event should look at the near ones only.
//!
//! The cube of a crowd is halved on each axis, and each part has a pile of its own: a run, or a crowd again. An event tests
//! the parts: most are out of its reach, and of some it is in reach of every filter for certain, so that nobody has to look at
//! their places.

use std::ops::{Index, IndexMut};

use super::arena::{Arena, LINE_BYTES};
use super::runs::{CERTAIN_SPARE, EVENT_SCALE, Local, MIDDLE, Spot, UNBOUNDED};
use super::store::Pile;

/// How often a cell is halved: the smallest parts are 8 units wide, as wide as the ring in which reach is in doubt.
pub(super) const DEPTH_MAX: u8 = 5;
const PARTS: usize = 8;
const LINES: usize = size_of::<Crowd>() / LINE_BYTES;

/// The filters of a bucket, or of a part of one, by the part that they are in.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Crowd {
    pub(super) parts: [Pile; PARTS],
    /// The least and the largest reach that each part has had since it was empty.
    reaches: [[u8; 2]; PARTS],
    /// Filters.
    pub(super) len: u32,
    /// The first place of its cube.
    corner: [u8; 3],
    /// How often the cell was halved before.
    depth: u8,
    unused: [u32; 10],
}

/// All crowds, known by the number of their first line.
#[derive(Debug)]
pub(super) struct Crowds {
    arena: Arena,
    /// The largest place on each axis.
    places_max: [u8; 3],
}

impl Crowd {
    pub(super) const PARTS: usize = PARTS;

    /// Without filters: of the cube that a place is in when the cell has been halved so often.
    pub(super) fn new(place: [u8; 3], depth: u8) -> Self {
        Self {
            parts: [Pile::EMPTY_PART; PARTS],
            reaches: [[u8::MAX, 0]; PARTS],
            len: 0,
            corner: place.map(|place| place & !(u8::MAX >> depth)),
            depth,
            unused: [0; 10],
        }
    }

    /// The part that a place is in.
    #[inline]
    pub(super) fn part_of(&self, xyz: [u8; 3]) -> usize {
        let [x, y, z] = xyz.map(|place| usize::from(place >> (7 - self.depth) & 1));
        x | y << 1 | z << 2
    }

    pub(super) fn set_part(&mut self, part: usize, pile: Pile) {
        self.parts[part] = pile;
        if pile.is_empty() {
            self.reaches[part] = [u8::MAX, 0];
        }
    }

    /// Counts a filter in.
    pub(super) fn enter(&mut self, spot: Spot) {
        self.len += 1;
        let [min, max] = &mut self.reaches[self.part_of(spot.xyz)];
        (*min, *max) = ((*min).min(spot.reach), (*max).max(spot.reach));
    }
}

impl Crowds {
    pub(super) fn new(places_max: [u8; 3]) -> Self {
        Self { arena: Arena::new(), places_max }
    }

    /// A new crowd with whatever was there; `None` when numbers or memory are used up.
    pub(super) fn allocate(&mut self) -> Option<u32> {
        self.arena.allocate(LINES)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.arena.release(number, LINES);
    }

    /// Reads a word of each of a crowd's lines and so brings them near.
    #[inline]
    pub(super) fn touch(&self, number: u32) -> u8 {
        let bytes = self.arena.bytes(number, size_of::<Crowd>());
        bytes[0] ^ bytes[LINE_BYTES]
    }

    /// Passes on the parts that may have a filter whose place and reach pass the test of `Runs::append_candidates`, and
    /// whether all that a part can have would be in reach for certain.
    #[inline]
    pub(super) fn visit_near(&self, number: u32, local: &Local, mut visit: impl FnMut(&Pile, bool)) {
        let crowd = &self[number];
        let half = 128 >> crowd.depth;
        // The squares of how far the event is on each axis from the nearest and the farthest middle of a unit of each half.
        let axes: [[[i32; 2]; 2]; 3] = std::array::from_fn(|axis| {
            [0, 1].map(|part| {
                let first = i32::from(crowd.corner[axis]) + part * half;
                let last = (first + half - 1).min(self.places_max[axis].into());
                let [first, last] =
                    [first, last].map(|place| place * EVENT_SCALE + MIDDLE - i32::from(local[axis]));
                [first.max(-last).max(0).pow(2), first.pow(2).max(last.pow(2))]
            })
        });
        for (part, (pile, [min, max])) in crowd.parts.iter().zip(crowd.reaches).enumerate() {
            let [x, y, z] = [axes[0][part & 1], axes[1][part >> 1 & 1], axes[2][part >> 2]];
            let [near, far] = [0, 1].map(|end| x[end] + y[end] + z[end]);
            let [certain, reach] = [min, max].map(|reach| i32::from(reach) * EVENT_SCALE);
            if !pile.is_empty() && (near <= reach.pow(2) || max == UNBOUNDED) {
                visit(pile, far < (certain - CERTAIN_SPARE).max(0).pow(2));
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.arena.footprint()
    }
}

impl Index<u32> for Crowds {
    type Output = Crowd;

    #[inline]
    fn index(&self, number: u32) -> &Crowd {
        bytemuck::from_bytes(self.arena.bytes(number, size_of::<Crowd>()))
    }
}

impl IndexMut<u32> for Crowds {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Crowd {
        bytemuck::from_bytes_mut(self.arena.bytes_mut(number, size_of::<Crowd>()))
    }
}
