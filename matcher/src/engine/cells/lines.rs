//! Where the filters of a cell lie: lines of four, in runs.
//!
//! A line is one cache line with all that the pre-test needs of four filters, as a structure of arrays. A run
//! is a power of two of lines side by side.

use wide::{i16x8, i32x4};

use super::pages::{PAGE_BYTES, Pages};

/// Filters a line.
pub(super) const LANES: u32 = 4;
/// The longest run is `LANES << RUN_CLASS_MAX` filters; moving one takes some ten microseconds.
pub(super) const RUN_CLASS_MAX: u8 = 10;
const LINE_BYTES: usize = 64;
const LINES_PER_PAGE: usize = PAGE_BYTES / LINE_BYTES;

/// Four filters: who they are, the masks of their names, where in the cell they are (x in the low half and y in the
/// high one), and z and the reach likewise, in units of the cell.
type Line = [[u32; 4]; 4];

/// One filter as it lies in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) entry: u32,
    pub(super) mask: u32,
    pub(super) spot: Spot,
}

/// Units of a cell's side. With so many, an event up to half a side outside of the cell is less than 24,600 units from
/// any filter in it on each axis: differences fit 16 bits and the sum of their squares fits 31.
pub(super) const UNITS: f64 = 16_384.0;

/// The reach of what is everywhere.
pub(super) const UNBOUNDED: i16 = i16::MAX;

/// Where in its cell a filter is, rounded down to units, and how far it reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spot {
    pub(super) xyz: [i16; 3],
    pub(super) reach: i16,
}

/// What the pre-test compares lines with: where the event is, in units from the cell's corner, rounded down; and the
/// names that it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) local: [i16; 3],
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

    /// Reads a word of a run's first and last line and so brings them near; the processor guesses the others.
    #[inline]
    pub(super) fn touch(&self, first: u32, len: u32) -> u32 {
        self.run(first, 1)[0][0][0] ^ self.run(first + (len - 1) / LANES, 1)[0][0][0]
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
    /// Both places were rounded down to whole units, so their difference is off by less than one unit on each axis and
    /// their distance by less than `sqrt(3)`. [`padded_reach`] added 1.75 units to the reach and rounded it up, so
    /// nobody within reach is missed; whoever passes with five units to spare is inside for certain.
    #[inline]
    pub(super) fn pre_test(&self, first: u32, len: u32, probe: &Probe, survivors: &mut Vec<Survivor>) {
        let [x, y, z] = probe.local;
        let event_xy = i16x8::new([x, y, x, y, x, y, x, y]);
        let event_z = i16x8::new([z, 0, z, 0, z, 0, z, 0]);
        let z_only = i16x8::new([-1, 0, -1, 0, -1, 0, -1, 0]);
        let reach_only = i16x8::new([0, -1, 0, -1, 0, -1, 0, -1]);
        let absent = i32x4::splat((!probe.mask).cast_signed());
        let spare = i16x8::new([0, CERTAIN_SPARE, 0, CERTAIN_SPARE, 0, CERTAIN_SPARE, 0, CERTAIN_SPARE]);
        let mut test = |[entries, masks, xy, z_reach]: &Line, valid: u32| {
            let z_reach: i16x8 = bytemuck::cast(*z_reach);
            let difference = bytemuck::cast::<_, i16x8>(*xy) - event_xy;
            let beside = (z_reach - event_z) & z_only;
            let square = difference.dot(difference) + beside.dot(beside);
            let reach = z_reach & reach_only;
            let far = square.simd_gt(reach.dot(reach));
            let named = (bytemuck::cast::<_, i32x4>(*masks) & absent).simd_eq(i32x4::splat(0));
            let mut hits = named.to_bitmask() & !far.to_bitmask() & valid;
            if hits == 0 {
                return;
            }
            // Without the spare a reach may be below zero, and its square says nothing.
            let surely = reach - spare;
            let certain = surely.dot(surely).simd_gt(square)
                & bytemuck::cast::<_, i32x4>(surely).simd_gt(i32x4::splat(0));
            let certain = certain.to_bitmask();
            while hits != 0 {
                let lane = hits.trailing_zeros();
                survivors
                    .push(Survivor { entry: entries[lane as usize & 3], inside: certain >> lane & 1 == 1 });
                hits &= hits - 1;
            }
        };
        let lines = self.run(first, len.div_ceil(LANES) as usize);
        let (whole, rest) = lines.split_at(lines.len().min((len / LANES) as usize));
        for line in whole {
            test(line, 0b1111);
        }
        for line in rest {
            test(line, (1 << (len % LANES)) - 1);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let free: usize = self.free.iter().map(|runs| runs.capacity() * size_of::<u32>()).sum();
        self.fresh * LINE_BYTES + free
    }
}

/// Units that separate a filter that may be reached from one that is for certain.
const CERTAIN_SPARE: i16 = 5;

/// The reach in units with what rounding may hide; see [`Lines::pre_test`]. At most half a side is asked for.
pub(super) fn padded_reach(units: f64) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 8,194")]
    let padded = (units + 1.75).ceil() as i16;
    padded
}

fn low(word: u32) -> i16 {
    bytemuck::cast::<u32, [i16; 2]>(word)[0]
}

fn high(word: u32) -> i16 {
    bytemuck::cast::<u32, [i16; 2]>(word)[1]
}

fn pack(low: i16, high: i16) -> u32 {
    bytemuck::cast([low, high])
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
            (5, 0b010, spot(16_383, 16_383, 16_000)),
            (6, 0b000, spot(100, 100, 50)),
        ]);
        let mut survivors = Vec::new();
        let probe = Probe { local: [100, 100, 0], mask: 0b011 };
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
