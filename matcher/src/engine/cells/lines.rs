//! Where the filters of a cell lie: lines of four, in runs.
//!
//! A line is one cache line with all that the pre-test needs of four filters, as a structure of arrays. A run
//! is a power of two of lines side by side.

use wide::{f32x4, i32x4, u32x4};

use super::pages::{PAGE_BYTES, Pages};

/// Filters a line.
pub(super) const LANES: u32 = 4;
/// The longest run is `LANES << RUN_CLASS_MAX` filters; moving one takes some ten microseconds.
pub(super) const RUN_CLASS_MAX: u8 = 10;
const LINE_BYTES: usize = 64;
const LINES_PER_PAGE: usize = PAGE_BYTES / LINE_BYTES;

/// Four filters: who they are, the masks of their names, where in the cell they are (x in the low half and y in the
/// high one), and z and the reach likewise, in 65,536ths of the cell's side.
type Line = [[u32; 4]; 4];

/// One filter as it lies in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) entry: u32,
    pub(super) mask: u32,
    pub(super) spot: Spot,
}

/// Where in its cell a filter is and how far it reaches, in 65,536ths of the cell's side; see `grid`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spot {
    pub(super) xyz: [u16; 3],
    pub(super) reach: u16,
}

/// What the pre-test compares lines with: where the event is, seen from the cell's corner in the cell's units, less
/// the half unit that rounding down took from the filters; and the names that it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) local: [f32; 3],
    pub(super) mask: u32,
}

/// A filter that passed the pre-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Survivor {
    pub(super) entry: u32,
    /// The event is inside of the circle for certain, not just perhaps.
    pub(super) inside: bool,
}

/// All lines, and the free runs among them.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pages: Pages,
    /// Lines given out at least once.
    fresh: usize,
    /// Free runs by class.
    free: [Vec<u32>; RUN_CLASS_MAX as usize + 1],
}

impl Lines {
    /// A run of `1 << class` lines: the number of its first; `None` when numbers or memory are used up.
    pub(super) fn allocate(&mut self, class: u8) -> Option<u32> {
        if let Some(line) = self.free[class as usize].pop() {
            return Some(line);
        }
        let lines = 1_usize << class;
        if self.fresh + lines > self.pages.count() * LINES_PER_PAGE {
            self.retire_rest();
            // A slot is four times a line's number and has to fit 32 bits.
            if (self.pages.count() + 1) * LINES_PER_PAGE > (u32::MAX / LANES) as usize {
                return None;
            }
            self.pages.add()?;
        }
        let line = u32::try_from(self.fresh).ok()?;
        self.fresh += lines;
        Some(line)
    }

    pub(super) fn release(&mut self, line: u32, class: u8) {
        self.free[class as usize].push(line);
    }

    /// What is left of the last page becomes free runs.
    fn retire_rest(&mut self) {
        let end = self.pages.count() * LINES_PER_PAGE;
        while self.fresh < end {
            let class = (end - self.fresh).ilog2().min(u32::from(RUN_CLASS_MAX));
            if let Ok(line) = u32::try_from(self.fresh) {
                self.free[class as usize].push(line);
            }
            self.fresh += 1 << class;
        }
    }

    #[inline]
    fn run(&self, first: u32, lines_count: usize) -> &[Line] {
        bytemuck::cast_slice(self.pages.bytes(first as usize * LINE_BYTES, lines_count * LINE_BYTES))
    }

    #[inline]
    fn line_mut(&mut self, line: u32) -> &mut Line {
        bytemuck::from_bytes_mut(self.pages.bytes_mut(line as usize * LINE_BYTES, LINE_BYTES))
    }

    /// Reads a word of each of a run's first lines and so brings them near; the processor guesses the others.
    #[inline]
    pub(super) fn touch(&self, first: u32, len: u32) -> u32 {
        let run = self.run(first, len.div_ceil(LANES).min(8) as usize);
        run.iter().fold(0, |sum, line| sum ^ line[0][0])
    }

    pub(super) fn lane(&self, slot: u32) -> Lane {
        let [entry, mask, xy, z_reach] =
            self.run(slot / LANES, 1)[0].map(|word| word[(slot % LANES) as usize]);
        Lane { entry, mask, spot: Spot { xyz: [low(xy), high(xy), low(z_reach)], reach: high(z_reach) } }
    }

    #[inline]
    pub(super) fn set_lane(&mut self, slot: u32, lane: &Lane) {
        let (line, at) = (self.line_mut(slot / LANES), (slot % LANES) as usize);
        line[0][at] = lane.entry;
        line[1][at] = lane.mask;
        line[2][at] = pack(lane.spot.xyz[0], lane.spot.xyz[1]);
        line[3][at] = pack(lane.spot.xyz[2], lane.spot.reach);
    }

    #[inline]
    pub(super) fn set_spot(&mut self, slot: u32, spot: &Spot) {
        let (line, at) = (self.line_mut(slot / LANES), (slot % LANES) as usize);
        line[2][at] = pack(spot.xyz[0], spot.xyz[1]);
        line[3][at] = pack(spot.xyz[2], spot.reach);
    }

    /// Appends to `survivors` those of the run's first `len` filters that the event may satisfy: each of
    /// their names may be among the event's, and the event may be within reach.
    ///
    /// A filter's place was rounded down to whole units, so with the probe's half unit it is off by at most
    /// `sqrt(3) / 2` units, and single precision adds less than 0.02. `grid` added one unit to each reach, so
    /// nobody within reach is missed; whoever passes with four units to spare is inside for certain.
    #[inline]
    pub(super) fn pre_test(&self, first: u32, len: u32, probe: &Probe, survivors: &mut Vec<Survivor>) {
        let lines = self.run(first, len.div_ceil(LANES) as usize);
        let [x, y, z] = probe.local.map(f32x4::splat);
        let absent = u32x4::splat(!probe.mask);
        let mut left = len;
        for [entries, masks, xy, z_reach] in lines {
            let xy = i32x4::new(xy.map(u32::cast_signed));
            let z_reach = i32x4::new(z_reach.map(u32::cast_signed));
            let half = i32x4::splat(0xffff);
            let dx = f32x4::from_i32x4(xy & half) - x;
            let dy = f32x4::from_i32x4((xy >> 16) & half) - y;
            let dz = f32x4::from_i32x4(z_reach & half) - z;
            let reach = f32x4::from_i32x4((z_reach >> 16) & half);
            let square = dx * dx + dy * dy + dz * dz;
            let surely = (reach - f32x4::splat(4.0)).max(f32x4::splat(-1.0));
            let near = square.simd_le(reach * reach).to_bitmask();
            let named = i32x4::new((u32x4::new(*masks) & absent).to_array().map(u32::cast_signed));
            let named = named.simd_eq(i32x4::splat(0)).to_bitmask();
            let valid = if left >= LANES { 0b1111 } else { (1 << left) - 1 };
            let mut hits = near & named & valid;
            if hits != 0 {
                // A reach below four units has no certain inside: nothing is less than its minus zero.
                let certain = square.simd_lt(surely * surely.max(f32x4::splat(0.0))).to_bitmask();
                while hits != 0 {
                    let lane = hits.trailing_zeros();
                    survivors
                        .push(Survivor { entry: entries[lane as usize], inside: certain >> lane & 1 == 1 });
                    hits &= hits - 1;
                }
            }
            left = left.saturating_sub(LANES);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let free: usize = self.free.iter().map(|runs| runs.capacity() * size_of::<u32>()).sum();
        self.fresh * LINE_BYTES + free
    }
}

fn low(word: u32) -> u16 {
    (word & 0xffff) as u16
}

fn high(word: u32) -> u16 {
    (word >> 16) as u16
}

fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_with(spots: &[(u32, u32, Spot)]) -> (Lines, u32) {
        let mut lines = Lines::default();
        let first = lines.allocate(2).unwrap();
        for (index, (entry, mask, spot)) in (0..).zip(spots) {
            lines.set_lane(first * LANES + index, &Lane { entry: *entry, mask: *mask, spot: *spot });
        }
        (lines, first)
    }

    #[test]
    fn the_pre_test_looks_at_names_place_and_length() {
        let spot = |x, y, reach| Spot { xyz: [x, y, 0], reach };
        let (lines, first) = lines_with(&[
            (1, 0b001, spot(100, 100, 50)),
            (2, 0b100, spot(100, 100, 50)),
            (3, 0b011, spot(100, 160, 50)),
            (4, 0b011, spot(100, 148, 50)),
            (5, 0b010, spot(65_535, 65_535, 65_535)),
            (6, 0b000, spot(100, 100, 50)),
        ]);
        let mut survivors = Vec::new();
        let probe = Probe { local: [100.0, 100.0, 0.0], mask: 0b011 };
        lines.pre_test(first, 5, &probe, &mut survivors);
        assert_eq!(survivors, [Survivor { entry: 1, inside: true }, Survivor { entry: 4, inside: false }],);
        assert_eq!(lines.lane(first * LANES + 3).spot, spot(100, 148, 50));
    }

    #[test]
    fn runs_come_back() {
        let mut lines = Lines::default();
        let first = lines.allocate(RUN_CLASS_MAX).unwrap();
        lines.release(first, RUN_CLASS_MAX);
        assert_eq!(lines.allocate(RUN_CLASS_MAX), Some(first));
        for _ in 0..100 {
            lines.allocate(RUN_CLASS_MAX).unwrap();
        }
        assert!(lines.allocate(0).is_some());
    }
}
