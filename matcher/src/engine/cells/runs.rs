//! Where the filters of a cell lie: runs of lanes, all of one cluster.
//!
//! A run is some cache lines long. First comes what most filters fail at, twelve lanes a line, as a structure of arrays:
//! x, y, z and the reach, a byte each in units of the cell, and the names that they require, as bits. Then comes the
//! rest for each lane side by side: its fence and whose it is. So a move writes two lines.

use std::hint::black_box;

use bytemuck::cast;
use wide::{u8x16, u16x16};

use super::arena::{Arena, LINE_BYTES};
use super::clusters::{COLUMNS, ClusterProbe};

/// Lanes whose bytes fill a line, and which are tested together.
const BLOCK_LANES: usize = LINE_BYTES / BYTE_ARRAYS;
/// Arrays of a byte a lane.
const BYTE_ARRAYS: usize = 5;
/// Bytes of a fence with its owner.
pub(super) const FENCE_BYTES: usize = 32;
/// Fences of a block.
#[expect(clippy::cast_possible_truncation, reason = "a dozen")]
const BLOCK_FENCES: u32 = BLOCK_LANES as u32;
const TOUCHED_LINES: usize = 8;

/// Units of a cell's side, in which filters are placed.
pub(super) const UNITS: f64 = 256.0;
/// Events are placed eight times as finely.
pub(super) const EVENT_UNITS: f64 = 8.0 * UNITS;
pub(super) const EVENT_SCALE: i32 = 8;
/// The middle of a filter's unit.
pub(super) const MIDDLE: i32 = 4;
/// The reach of what is everywhere.
pub(super) const UNBOUNDED: u8 = u8::MAX;
const UNBOUNDED_SCALED: i32 = UNBOUNDED as i32 * EVENT_SCALE;
/// Units added to the reach: `sqrt(3) * 5 / 8`, and more than one.
const REACH_PADDING: f64 = 1.1;
/// Distance from a filter that may be reached to one that is reached for certain, in the units of events: the padding
/// and a whole unit that went into the reach, and the padding once more.
pub(super) const CERTAIN_SPARE: i32 = 26;

/// Set beside the record of a filter whose fence and circle do not say all.
const INCOMPLETE: u32 = 1 << 31;

/// Lengths of runs in lines, by class.
const LINES: [u16; CLASS_MAX as usize + 1] =
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
/// The class of the longest runs, of nearly nine hundred lanes: moving one takes some ten microseconds.
pub(super) const CLASS_MAX: u8 = 17;

const LAYOUTS: [Layout; CLASS_MAX as usize + 1] = {
    let mut layouts = [Layout { capacity: 0, fences: 0 }; CLASS_MAX as usize + 1];
    let mut class = 0;
    while class < layouts.len() {
        layouts[class] = Layout::of(LINES[class] as usize * LINE_BYTES);
        class += 1;
    }
    layouts
};

/// How many lanes a run has, and where its arrays begin.
#[derive(Clone, Copy)]
struct Layout {
    capacity: u16,
    /// In bytes; so that no fence lies on two cache lines, a multiple of their length.
    fences: u16,
}

/// Lanes side by side, the first `len` of them in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first_line: u32,
    pub(super) class: u8,
    /// Whether it is a part of a crowd.
    pub(super) crowded: bool,
    pub(super) len: u16,
}

/// A lane of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) first_line: u32,
    pub(super) class: u8,
    /// Whether its run is a part of a crowd.
    pub(super) crowded: bool,
    pub(super) lane: u16,
}

/// Where in its cell a filter is, rounded down to units, and how far it reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) xyz: [u8; 3],
    pub(super) reach: u8,
}

/// Owner of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Below 2^31.
    pub(super) record: u32,
    pub(super) subscription: u32,
    /// Whether the tests, where they are certain, say all there is to the filter.
    pub(super) complete: bool,
}

/// One filter as it lies in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) spot: Spot,
    /// The columns of the names that it requires.
    pub(super) required: u8,
    pub(super) owner: Owner,
    pub(super) fence: [u16; 2 * COLUMNS],
}

/// Where an event is, in its units from a cell's corner, rounded down.
pub(super) type Local = [i16; 3];

/// A lane that the event has the names for and may be in reach of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Where its fence is, in units of fences.
    pub(super) fence: u32,
    /// Number of the probe that the fence is to be compared with.
    pub(super) probe: u32,
    /// Whether the event is in reach for certain, not just perhaps.
    pub(super) in_reach: bool,
}

/// A filter that passed the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) owner: Owner,
    /// The event is inside of the circle for certain, not just perhaps.
    pub(super) in_reach: bool,
    /// Its values are inside of the fence for certain.
    pub(super) in_fence: bool,
}

/// All runs.
#[derive(Debug)]
pub(super) struct Runs {
    arena: Arena,
}

impl Layout {
    /// The layout of a run of `bytes` bytes, with as many lanes as these hold.
    #[expect(clippy::cast_possible_truncation, reason = "the longest run has 32 KiB")]
    const fn of(bytes: usize) -> Self {
        let mut lanes = bytes / FENCE_BYTES;
        while Self::fences(lanes) + lanes * FENCE_BYTES > bytes {
            lanes -= 1;
        }
        Self { capacity: lanes as u16, fences: Self::fences(lanes) as u16 }
    }

    const fn fences(lanes: usize) -> usize {
        if lanes < BLOCK_LANES {
            (lanes * BYTE_ARRAYS).next_multiple_of(FENCE_BYTES)
        } else {
            lanes.div_ceil(BLOCK_LANES) * LINE_BYTES
        }
    }

    /// Lanes of a block. A run that is shorter than a block has its arrays closer together.
    #[inline]
    fn block_lanes(&self) -> usize {
        usize::from(self.capacity).min(BLOCK_LANES)
    }

    /// Where the bytes of a lane are.
    #[inline]
    fn bytes(&self, lane: usize) -> [usize; BYTE_ARRAYS] {
        let (block, first) = (lane / BLOCK_LANES, lane % BLOCK_LANES);
        std::array::from_fn(|array| block * LINE_BYTES + array * self.block_lanes() + first)
    }

    fn fence(&self, lane: usize) -> usize {
        usize::from(self.fences) + lane * FENCE_BYTES
    }
}

/// The most lanes of a run.
#[inline]
pub(super) fn capacity(class: u8) -> u16 {
    LAYOUTS[usize::from(class)].capacity
}

/// The class of the shortest runs that have room for `len` lanes, or that of the longest runs.
pub(super) fn class_for(len: u16) -> u8 {
    (0..CLASS_MAX).find(|class| capacity(*class) >= len).unwrap_or(CLASS_MAX)
}

fn lines(class: u8) -> usize {
    usize::from(LINES[usize::from(class)])
}

impl Run {
    pub(super) fn slot(&self, lane: u16) -> Slot {
        Slot { first_line: self.first_line, class: self.class, crowded: self.crowded, lane }
    }
}

impl Runs {
    pub(super) fn new() -> Self {
        Self { arena: Arena::new() }
    }

    /// The first line of a new run; `None` when numbers or memory are used up.
    pub(super) fn allocate(&mut self, class: u8) -> Option<u32> {
        let first_line = self.arena.allocate(lines(class))?;
        // Two fences a line have to be counted, too.
        if first_line > u32::MAX / 4 {
            self.release(first_line, class);
            return None;
        }
        Some(first_line)
    }

    pub(super) fn release(&mut self, first_line: u32, class: u8) {
        self.arena.release(first_line, lines(class));
    }

    /// Reads a word of each of a run's first cache lines and so brings them near; the processor guesses those that follow.
    #[inline]
    pub(super) fn touch(&self, run: &Run) -> u8 {
        let fences = usize::from(LAYOUTS[usize::from(run.class)].fences);
        let bytes = self.arena.bytes(run.first_line, fences.min(TOUCHED_LINES * LINE_BYTES));
        bytes.iter().step_by(LINE_BYTES).fold(0, |touched, byte| touched ^ byte)
    }

    /// Does the same with the first lines of its fences.
    #[inline]
    pub(super) fn touch_fences(&self, run: &Run) -> u8 {
        let layout = &LAYOUTS[usize::from(run.class)];
        let bytes = self.arena.bytes(run.first_line, layout.fence(run.len.into()));
        let fences = bytes[usize::from(layout.fences)..].iter().step_by(LINE_BYTES);
        fences.fold(0, |touched, byte| touched ^ byte)
    }

    /// Reads where a lane's place is, and where its fence is if that is asked for, and so brings it near.
    #[inline]
    pub(super) fn touch_slot(&self, slot: &Slot, with_fence: bool) -> u8 {
        let (layout, lane) = (&LAYOUTS[usize::from(slot.class)], usize::from(slot.lane));
        let fence = layout.fence(lane);
        let bytes = self.arena.bytes(slot.first_line, fence + 1);
        bytes[layout.bytes(lane)[0]] ^ if with_fence { bytes[fence] } else { 0 }
    }

    /// Owner of a lane. The lane's first bytes are read, too, and so come near.
    #[inline]
    pub(super) fn owner(&self, slot: &Slot) -> Owner {
        let (layout, lane) = (&LAYOUTS[usize::from(slot.class)], usize::from(slot.lane));
        let bytes = self.arena.bytes(slot.first_line, layout.fence(lane + 1));
        black_box(bytes[layout.bytes(lane)[0]]);
        owner(cast(array::<FENCE_BYTES>(bytes, layout.fence(lane))))
    }

    pub(super) fn lane(&self, slot: &Slot) -> Lane {
        let (layout, lane) = (&LAYOUTS[usize::from(slot.class)], usize::from(slot.lane));
        let bytes = self.arena.bytes(slot.first_line, layout.fence(lane + 1));
        let [x, y, z, reach, required] = layout.bytes(lane).map(|at| bytes[at]);
        lane_of(Spot { xyz: [x, y, z], reach }, required, &array(bytes, layout.fence(lane)))
    }

    pub(super) fn spot(&self, slot: &Slot) -> Spot {
        let layout = &LAYOUTS[usize::from(slot.class)];
        let bytes = self.arena.bytes(slot.first_line, usize::from(layout.fences));
        let [x, y, z, reach, _] = layout.bytes(slot.lane.into()).map(|at| bytes[at]);
        Spot { xyz: [x, y, z], reach }
    }

    pub(super) fn set_lane(&mut self, slot: &Slot, held: &Lane) {
        let (layout, lane) = (&LAYOUTS[usize::from(slot.class)], usize::from(slot.lane));
        let bytes = self.arena.bytes_mut(slot.first_line, layout.fence(lane + 1));
        let Spot { xyz: [x, y, z], reach } = held.spot;
        for (at, byte) in layout.bytes(lane).into_iter().zip([x, y, z, reach, held.required]) {
            bytes[at] = byte;
        }
        bytes[layout.fence(lane)..][..FENCE_BYTES].copy_from_slice(&fence_bytes(held));
    }

    pub(super) fn set_spot(&mut self, slot: &Slot, spot: Spot) {
        let (layout, lane) = (&LAYOUTS[usize::from(slot.class)], usize::from(slot.lane));
        let bytes = self.arena.bytes_mut(slot.first_line, usize::from(layout.fences));
        let Spot { xyz: [x, y, z], reach } = spot;
        for (at, byte) in layout.bytes(lane).into_iter().zip([x, y, z, reach]) {
            bytes[at] = byte;
        }
    }

    /// Appends those lanes of a run whose names the event has and that it may be in reach of. `absent` is which columns
    /// the event has no value for, `probe` the number of what fences are to be compared with.
    ///
    /// A box of bytes sorts out most lanes, their distance the others. A filter is within half a unit of the middle of
    /// its unit, an event an eighth at most from where it was rounded down to: their difference is off by less than five
    /// eighths on each axis, and that of whole units by less than one. [`padded_reach`] took account of that, so
    /// nobody within reach is missed.
    #[inline]
    pub(super) fn append_candidates(
        &self,
        run: &Run,
        local: &Local,
        absent: u8,
        probe: u32,
        candidates: &mut Vec<Candidate>,
    ) {
        let layout = &LAYOUTS[usize::from(run.class)];
        let bytes = self.arena.bytes(run.first_line, lines(run.class) * LINE_BYTES);
        let step = layout.block_lanes();
        let sides = local.map(Side::of);
        let absent = u8x16::splat(absent);
        #[expect(clippy::cast_possible_truncation, reason = "a run has few fences")]
        let mut fence = run.first_line * 2 + (usize::from(layout.fences) / FENCE_BYTES) as u32;
        let mut left = usize::from(run.len);
        for block in bytes.as_chunks::<LINE_BYTES>().0 {
            let array = |number| u8x16::new(array(block, number * step));
            let [x, y, z, reach, required] = [0, 1, 2, 3, 4].map(array);
            let beyond = sides[0].distances(x).max(sides[1].distances(y)).max(sides[2].distances(z));
            let near = beyond.min(reach).simd_eq(beyond) & (required & absent).simd_eq(u8x16::splat(0));
            // Lanes past the end are whatever lies behind; they do not count.
            let mut hits = near.to_bitmask() & ((1 << left.min(step)) - 1);
            while hits != 0 {
                let lane = hits.trailing_zeros();
                hits &= hits - 1;
                let byte = |array: usize| block[(array * step + lane as usize) % LINE_BYTES];
                let (kept, in_reach) = reached([0, 1, 2, 3].map(byte), local);
                candidates.push(Candidate { fence: fence + lane, probe, in_reach });
                // Whether it is one after all cannot be foreseen: taking it back is faster than a branch.
                candidates.truncate(candidates.len() - usize::from(!kept));
            }
            if left <= step {
                return;
            }
            left -= step;
            fence += BLOCK_FENCES;
        }
    }

    /// Appends those lanes of a run whose names the event has, when it is in reach of all of them for certain.
    #[inline]
    pub(super) fn append_named(&self, run: &Run, absent: u8, probe: u32, candidates: &mut Vec<Candidate>) {
        let layout = &LAYOUTS[usize::from(run.class)];
        let bytes = self.arena.bytes(run.first_line, lines(run.class) * LINE_BYTES);
        let step = layout.block_lanes();
        let absent = u8x16::splat(absent);
        #[expect(clippy::cast_possible_truncation, reason = "a run has few fences")]
        let mut fence = run.first_line * 2 + (usize::from(layout.fences) / FENCE_BYTES) as u32;
        let mut left = usize::from(run.len);
        for block in bytes.as_chunks::<LINE_BYTES>().0 {
            let required = u8x16::new(array(block, (BYTE_ARRAYS - 1) * step));
            let named = (required & absent).simd_eq(u8x16::splat(0));
            let mut hits = named.to_bitmask() & ((1 << left.min(step)) - 1);
            while hits != 0 {
                candidates.push(Candidate { fence: fence + hits.trailing_zeros(), probe, in_reach: true });
                hits &= hits - 1;
            }
            if left <= step {
                return;
            }
            left -= step;
            fence += BLOCK_FENCES;
        }
    }

    /// Tests the fences of a whole run, when the event has all names of the cluster, which has no masks, and is in reach of
    /// all lanes for certain.
    #[inline]
    pub(super) fn test_all(&self, run: &Run, probe: &ClusterProbe, mut visit: impl FnMut(Hit)) {
        let layout = &LAYOUTS[usize::from(run.class)];
        let bytes = self.arena.bytes(run.first_line, layout.fence(run.len.into()));
        for fence in bytes[usize::from(layout.fences)..].as_chunks::<FENCE_BYTES>().0 {
            if let Some(in_fence) = inside(fence, probe) {
                visit(Hit { owner: owner(cast(*fence)), in_reach: true, in_fence });
            }
        }
    }

    /// Reads a word of a candidate's fence and so brings it near.
    #[inline]
    pub(super) fn touch_fence(&self, candidate: &Candidate) -> u8 {
        self.fence(candidate)[0]
    }

    /// Whether the event may be inside of a candidate's fence; `mask` is that of its names.
    #[inline]
    pub(super) fn test(&self, candidate: &Candidate, probe: &ClusterProbe, mask: u32) -> Option<Hit> {
        test(&array(self.fence(candidate), 0), candidate.in_reach, probe, mask)
    }

    #[inline]
    fn fence(&self, candidate: &Candidate) -> &[u8] {
        let (line, half) = (candidate.fence / 2, candidate.fence as usize % 2);
        &self.arena.bytes(line, LINE_BYTES)[half * FENCE_BYTES..][..FENCE_BYTES]
    }

    pub(super) fn bytes(&self) -> usize {
        self.arena.footprint()
    }
}

/// Whether an event may be inside of a fence, and what is left to be decided then; `mask` is that of the event's names.
#[inline]
pub(super) fn test(
    fence: &[u8; FENCE_BYTES],
    in_reach: bool,
    probe: &ClusterProbe,
    mask: u32,
) -> Option<Hit> {
    let owner = owner(cast(*fence));
    if probe.masked {
        let required = u32::from_ne_bytes(array(fence, 0));
        return (required & !mask == 0).then_some(Hit { owner, in_reach, in_fence: false });
    }
    Some(Hit { owner, in_reach, in_fence: inside(fence, probe)? })
}

/// Whether a filter of this x, y, z and reach may reach an event, and whether it does for certain; see
/// [`Runs::append_candidates`].
#[inline]
pub(super) fn reached([x, y, z, reach]: [u8; 4], local: &Local) -> (bool, bool) {
    let square = |at: u8, event: i16| (i32::from(at) * EVENT_SCALE + MIDDLE - i32::from(event)).pow(2);
    let square = square(x, local[0]) + square(y, local[1]) + square(z, local[2]);
    let reach = i32::from(reach) * EVENT_SCALE;
    let kept = square <= reach.pow(2) || reach == UNBOUNDED_SCALED;
    (kept, square < (reach - CERTAIN_SPARE).max(0).pow(2))
}

/// A lane without its place and required names, as 32 bytes: the fence, then whose it is.
pub(super) fn fence_bytes(lane: &Lane) -> [u8; FENCE_BYTES] {
    let Owner { record, subscription, complete } = lane.owner;
    let record = record | if complete { 0 } else { INCOMPLETE };
    let mut bytes = [0; FENCE_BYTES];
    let (fence, owner) = bytes.split_at_mut(2 * 2 * COLUMNS);
    fence.copy_from_slice(bytemuck::cast_slice(&lane.fence));
    owner.copy_from_slice(bytemuck::cast_slice(&[record, subscription]));
    bytes
}

/// The lane of which these are the parts.
pub(super) fn lane_of(spot: Spot, required: u8, fence: &[u8; FENCE_BYTES]) -> Lane {
    let words: [u16; FENCE_BYTES / 2] = cast(*fence);
    let mut ends = [0; 2 * COLUMNS];
    ends.copy_from_slice(&words[..2 * COLUMNS]);
    Lane { spot, required, owner: owner(cast(*fence)), fence: ends }
}

/// Where an event is on one axis, in whole units: a place in the cell, and how far beyond it.
pub(super) struct Side {
    place: u8x16,
    beyond: u8x16,
}

impl Side {
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub(super) fn of(local: i16) -> Self {
        let units = local.div_euclid(EVENT_SCALE as i16);
        let place = units.clamp(0, 255);
        let beyond = units.abs_diff(place).min(255);
        Self { place: u8x16::splat(place as u8), beyond: u8x16::splat(beyond as u8) }
    }

    /// How far places are from it, up to 255.
    #[inline]
    pub(super) fn distances(&self, places: u8x16) -> u8x16 {
        let apart = places.saturating_sub(self.place) | self.place.saturating_sub(places);
        apart.saturating_add(self.beyond)
    }
}

/// Whether an event is inside of a fence for certain; `None` when it is not inside.
#[inline]
fn inside(fence: &[u8; FENCE_BYTES], probe: &ClusterProbe) -> Option<bool> {
    let fence: u16x16 = cast(*fence);
    let zero = u16x16::splat(0);
    if !fence.saturating_sub(probe.codes).simd_eq(zero).all() {
        return None;
    }
    Some(!probe.codes.saturating_sub(fence).simd_eq(zero).any())
}

/// Owner of the filter that a fence belongs to.
#[inline]
fn owner(fence: [u32; FENCE_BYTES / 4]) -> Owner {
    let [.., record, subscription] = fence;
    Owner { record: record & !INCOMPLETE, subscription, complete: record & INCOMPLETE == 0 }
}

#[inline]
fn array<const LEN: usize>(run: &[u8], offset: usize) -> [u8; LEN] {
    let mut array = [0; LEN];
    array.copy_from_slice(&run[offset..offset + LEN]);
    array
}

/// The reach in units with what rounding may hide; see [`Runs::append_candidates`].
pub(super) fn padded_reach(units: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a side")]
    let padded = (units + REACH_PADDING).ceil() as u8;
    padded
}

#[cfg(test)]
mod tests;
