//! Where the bundles of a cell lie: rolls of places.
//!
//! A bundle of filters (see `bundles`) has one place in its cell. A line of a roll has the places of eight, as a structure
//! of arrays: x, y, z and the reach, a byte each in units of the cell, then the numbers of the bundles. A move writes two
//! lines. A bundle knows its lane in the roll, so that a roll that grows or shrinks is copied as it is.

use wide::u8x16;

use super::arena::{Arena, LINE_BYTES};
use super::runs::{Local, Side, Spot, reached};

/// Bundles of a line.
const LINE_LANES: usize = 8;
#[expect(clippy::cast_possible_truncation, reason = "eight")]
const LANES_PER_LINE: u32 = LINE_LANES as u32;
/// Where the numbers of a line begin.
const NUMBERS: usize = 4 * LINE_LANES;
/// The most lanes of a roll.
pub(super) const LANES_MAX: usize = LINE_LANES << CLASS_MAX;
/// The class of the longest rolls; a roll of class n has 2^n lines.
const CLASS_MAX: u16 = 4;

/// The bundles of a cell, the first `len` lanes of its lines.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Roll {
    first_line: u32,
    len: u16,
    class: u16,
}

/// A bundle that an event may be in reach of.
#[derive(Clone, Copy, Debug)]
pub(super) struct NearBundle {
    pub(super) number: u32,
    /// Number of the event in its group.
    pub(super) event: u32,
    /// Whether the event is in reach for certain, not just perhaps.
    pub(super) in_reach: bool,
}

/// All rolls.
#[derive(Debug)]
pub(super) struct Rolls {
    arena: Arena,
}

impl Roll {
    pub(super) const EMPTY: Self = Self { first_line: 0, len: 0, class: 0 };

    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn lines(&self) -> usize {
        1 << self.class
    }
}

impl Rolls {
    pub(super) fn new() -> Self {
        Self { arena: Arena::new() }
    }

    /// Adds a bundle; answers its lane, or `None` when memory is used up. There are less than [`LANES_MAX`].
    pub(super) fn push(&mut self, roll: &mut Roll, spot: Spot, number: u32) -> Option<u16> {
        if roll.is_empty() {
            *roll = Roll { first_line: self.arena.allocate(1)?, len: 0, class: 0 };
        } else if roll.len() == roll.lines() * LINE_LANES {
            self.resize(roll, roll.class + 1)?;
        }
        let lane = roll.len;
        roll.len += 1;
        self.set(roll, lane, spot, number);
        Some(lane)
    }

    /// Takes the bundle of a lane out. The last one fills the gap: its number, unless the last one itself has gone.
    pub(super) fn remove(&mut self, roll: &mut Roll, lane: u16) -> Option<u32> {
        let last = roll.len - 1;
        let (spot, number) = self.get(roll, last);
        if lane != last {
            self.set(roll, lane, spot, number);
        }
        roll.len = last;
        if roll.is_empty() {
            self.arena.release(roll.first_line, roll.lines());
            *roll = Roll::EMPTY;
        } else if roll.class > 0 && roll.len() <= roll.lines() * LINE_LANES / 4 {
            // Without memory for a shorter one, it stays as long as it is.
            let _ = self.resize(roll, roll.class - 1);
        }
        (lane != last).then_some(number)
    }

    fn resize(&mut self, roll: &mut Roll, class: u16) -> Option<()> {
        let old = *roll;
        let bytes = old.len().div_ceil(LINE_LANES) * LINE_BYTES;
        let held = self.arena.bytes(old.first_line, bytes).to_vec();
        let resized = Roll { first_line: self.arena.allocate(1 << class)?, class, ..old };
        self.arena.bytes_mut(resized.first_line, bytes).copy_from_slice(&held);
        self.arena.release(old.first_line, old.lines());
        *roll = resized;
        Some(())
    }

    /// The place and the number of the last bundle, where there is one.
    pub(super) fn last(&self, roll: &Roll) -> Option<(Spot, u32)> {
        Some(self.get(roll, roll.len.checked_sub(1)?))
    }

    /// Reads a byte of a lane and so brings it near.
    #[inline]
    pub(super) fn touch_lane(&self, roll: &Roll, lane: u16) -> u8 {
        self.line(roll, lane)[0]
    }

    /// Reads a byte of each line and so brings them near.
    #[inline]
    pub(super) fn touch(&self, roll: &Roll) -> u8 {
        let bytes = self.arena.bytes(roll.first_line, roll.len().div_ceil(LINE_LANES) * LINE_BYTES);
        bytes.iter().step_by(LINE_BYTES).fold(0, |touched, byte| touched ^ byte)
    }

    pub(super) fn get(&self, roll: &Roll, lane: u16) -> (Spot, u32) {
        let (line, lane) = (self.line(roll, lane), usize::from(lane) % LINE_LANES);
        let [x, y, z, reach] = [0, 1, 2, 3].map(|array| line[array * LINE_LANES + lane]);
        (Spot { xyz: [x, y, z], reach }, number(line, lane))
    }

    /// Puts a bundle into a lane.
    pub(super) fn set(&mut self, roll: &Roll, lane: u16, spot: Spot, number: u32) {
        self.set_spot(roll, lane, spot);
        let start = NUMBERS + usize::from(lane) % LINE_LANES * size_of::<u32>();
        let line = roll.first_line + u32::from(lane) / LANES_PER_LINE;
        self.arena.bytes_mut(line, LINE_BYTES)[start..][..size_of::<u32>()]
            .copy_from_slice(&number.to_ne_bytes());
    }

    /// Gives a bundle another place in its cell.
    pub(super) fn set_spot(&mut self, roll: &Roll, lane: u16, spot: Spot) {
        let Spot { xyz: [x, y, z], reach } = spot;
        let line = roll.first_line + u32::from(lane) / LANES_PER_LINE;
        let line = self.arena.bytes_mut(line, LINE_BYTES);
        for (array, byte) in [x, y, z, reach].into_iter().enumerate() {
            line[array * LINE_LANES + usize::from(lane) % LINE_LANES] = byte;
        }
    }

    #[inline]
    fn line(&self, roll: &Roll, lane: u16) -> &[u8] {
        self.arena.bytes(roll.first_line + u32::from(lane) / LANES_PER_LINE, LINE_BYTES)
    }

    /// Appends the bundles that an event may be in reach of; see `Runs::append_candidates`.
    #[inline]
    pub(super) fn append_near(&self, roll: &Roll, local: &Local, event: u32, near: &mut Vec<NearBundle>) {
        let bytes = self.arena.bytes(roll.first_line, roll.lines() * LINE_BYTES);
        let sides = local.map(Side::of);
        let mut left = roll.len();
        for line in bytes.as_chunks::<LINE_BYTES>().0 {
            let array = |number: usize| {
                let mut array = [0; 16];
                array.copy_from_slice(&line[number * LINE_LANES..][..16]);
                u8x16::new(array)
            };
            let [x, y, z, reach] = [0, 1, 2, 3].map(array);
            let beyond = sides[0].distances(x).max(sides[1].distances(y)).max(sides[2].distances(z));
            // Lanes past the end are whatever lies behind; they do not count.
            let mut hits = beyond.min(reach).simd_eq(beyond).to_bitmask() & ((1 << left.min(LINE_LANES)) - 1);
            while hits != 0 {
                let lane = hits.trailing_zeros() as usize;
                hits &= hits - 1;
                let (kept, in_reach) =
                    reached([0, 1, 2, 3].map(|array| line[array * LINE_LANES + lane]), local);
                near.push(NearBundle { number: number(line, lane), event, in_reach });
                // As there, taking it back is faster than a branch.
                near.truncate(near.len() - usize::from(!kept));
            }
            if left <= LINE_LANES {
                return;
            }
            left -= LINE_LANES;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.arena.footprint()
    }
}

/// The number in a lane of a line.
#[inline]
fn number(line: &[u8], lane: usize) -> u32 {
    let mut number = [0; size_of::<u32>()];
    number.copy_from_slice(&line[NUMBERS + lane * size_of::<u32>()..][..size_of::<u32>()]);
    u32::from_ne_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_come_and_go_and_the_last_one_fills_the_gap() {
        let mut rolls = Rolls::new();
        let mut roll = Roll::EMPTY;
        let mut held: Vec<(Spot, u32)> = Vec::new();
        for (lane, x) in (0..).zip(0..u8::MAX).take(LANES_MAX) {
            let spot = Spot { xyz: [x, 1, 2], reach: 3 };
            assert_eq!(rolls.push(&mut roll, spot, x.into()), Some(lane));
            held.push((spot, x.into()));
        }
        while !held.is_empty() {
            let index = held.len() * 7 / 11;
            let lane = u16::try_from(index).unwrap();
            assert_eq!(rolls.get(&roll, lane), held.swap_remove(index));
            assert_eq!(rolls.remove(&mut roll, lane), held.get(index).map(|filler| filler.1));
            assert_eq!(rolls.last(&roll), held.last().copied());
            let lanes: Vec<_> = (0..roll.len).map(|lane| rolls.get(&roll, lane)).collect();
            assert_eq!(lanes, held);
        }
        assert!(roll.is_empty());
    }
}
