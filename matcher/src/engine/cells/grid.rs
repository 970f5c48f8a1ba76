//! The hierarchy of grids: which filters may hold a point.
//!
//! Space is cut into cubes. A filter lies in one cube, the one that holds its centre, of the level whose side is
//! at least twice its reach; so an event finds every filter that may hold it in the few cubes around it, and a
//! move takes a filter out of one cube and puts it into another. The plane is the slice z = 0, the globe the unit
//! sphere, which has no seams. Inside a cube filters lie in buckets by *access key* (see `access`): an event
//! looks only into those whose key it has.

use wide::i32x4;

use super::lines::{
    LANES, Lane, Lines, Probe, RUN_CLASS_MAX, Spot, Survivor, UNBOUNDED, UNITS, padded_reach,
};
use super::paged::Slab;
use super::records::{Header, NONE, Records};
use super::table::CellTable;
use crate::geo::World;

/// A cell of up to so many filters is one bucket: reading all its lines costs no more than finding the right ones.
const MIXED_MAX: u32 = 32;
/// `UNITS` as they are subtracted.
const UNITS_WHOLE: i32 = 16_384;
/// Most levels that a world has, the one for unbounded areas included.
const LEVELS_MAX: usize = 32;

/// Where filters are, by number, and how to find those near a point.
#[derive(Debug)]
pub(super) struct Grid {
    scale: Scale,
    levels: [Level; LEVELS_MAX],
    /// The levels that have filters, as bits.
    occupied: u64,
    cells: Slab<Cell>,
    cell_numbers: CellTable,
    lines: Lines,
    full_runs: Slab<FullRun>,
}

/// How a world is cut into cubes.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Added to coordinates so that they are positive.
    shift: [f64; 3],
    /// Level 0 has cubes of side 2 to this power.
    side_exponent_min: i32,
    /// Bits of a cube's number on one axis at level 0.
    cube_bits: u32,
    /// Bounded levels; the number of the one for unbounded areas.
    unbounded: u8,
    /// More than all roundings of coordinates, cells and chords together.
    slack: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    filters: u64,
    /// No filter of the level reaches further; forgotten when the level is empty.
    reach_max: f64,
}

/// Level and cube in one word: six bits and 58 for the cube's numbers, two or three.
type CellKey = u64;

#[derive(Debug, Default)]
struct Cell {
    key: CellKey,
    filters: u32,
    /// All filters, while the cell is not split.
    mixed: Bucket,
    /// Buckets by access key, once it is: a hash table whose groups are cache lines.
    split: Box<[BucketGroup]>,
    /// Keys in the table, those of empty buckets included.
    split_keys: u32,
}

/// Four buckets as a structure of arrays, so that their keys are compared at once.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct BucketGroup {
    access: [u32; 4],
    line: [u32; 4],
    len: [u32; 4],
    class_chain: [u32; 4],
}

impl Default for BucketGroup {
    fn default() -> Self {
        Self { access: [NONE; 4], line: [NONE; 4], len: [0; 4], class_chain: [CHAIN_NONE; 4] }
    }
}

impl BucketGroup {
    #[inline]
    fn bucket(&self, lane: usize) -> Bucket {
        Bucket {
            access: self.access[lane],
            line: self.line[lane],
            len: self.len[lane],
            class_chain: self.class_chain[lane],
        }
    }

    fn set_bucket(&mut self, lane: usize, bucket: &Bucket) {
        self.access[lane] = bucket.access;
        self.line[lane] = bucket.line;
        self.len[lane] = bucket.len;
        self.class_chain[lane] = bucket.class_chain;
    }

    /// The lane of a key.
    #[inline]
    fn lane(&self, access: u32) -> Option<usize> {
        let same = i32x4::new(self.access.map(u32::cast_signed)).simd_eq(i32x4::splat(access.cast_signed()));
        let same = same.to_bitmask();
        (same != 0).then_some(same.trailing_zeros() as usize)
    }
}

/// Filters of one access key in one cell.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    access: u32,
    /// First line of the run that grows and shrinks.
    line: u32,
    /// Filters in that run.
    len: u32,
    /// Its class in the high four bits; below, the number of the first full run behind it.
    class_chain: u32,
}

const CHAIN_NONE: u32 = (1 << 28) - 1;

impl Default for Bucket {
    fn default() -> Self {
        Self::new(NONE)
    }
}

impl Bucket {
    fn new(access: u32) -> Self {
        Self { access, line: NONE, len: 0, class_chain: CHAIN_NONE }
    }

    fn class(&self) -> u8 {
        (self.class_chain >> 28) as u8
    }

    fn chain(&self) -> u32 {
        self.class_chain & CHAIN_NONE
    }

    fn capacity(&self) -> u32 {
        if self.line == NONE { 0 } else { LANES << self.class() }
    }

    fn set_run(&mut self, line: u32, class: u8, chain: u32) {
        self.line = line;
        self.class_chain = u32::from(class) << 28 | chain;
    }
}

/// A run of the largest class without a free lane, behind the growing one.
#[derive(Clone, Copy, Debug, Default)]
struct FullRun {
    line: u32,
    next: u32,
}

/// How far a filter reaches, in the terms of its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    level: u8,
    /// In units of the level, with what rounding may hide.
    reach_units: i16,
    reach: f64,
}

impl Extent {
    /// Whether the grid knows where the area ends.
    pub(super) fn is_bounded(&self) -> bool {
        self.reach_units < UNBOUNDED
    }
}

/// A cell as the filters of one move see it: they mostly go to the same one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    key: CellKey,
    cell: u32,
}

impl Landing {
    pub(super) const NOWHERE: Self = Self { key: u64::MAX, cell: NONE };
}

/// Lines to be pre-tested with one of the probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    line: u32,
    len: u32,
    probe: usize,
}

/// The 32-bit numbers of lines or cells are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GridFull;

impl Grid {
    pub(super) fn new(world: World) -> Self {
        let scale = match world {
            // Cubes of 49 m to four times the sphere's radius.
            World::Geodetic => Scale {
                shift: [1.0 + 1e-9; 3],
                side_exponent_min: -17,
                cube_bits: 19,
                unbounded: 20,
                slack: 1e-12,
            },
            // Squares of 4 m to 4 million km.
            World::Planar => Scale {
                shift: [1_073_741_824.0, 1_073_741_824.0, 0.0],
                side_exponent_min: 2,
                cube_bits: 29,
                unbounded: 31,
                slack: 1e-5,
            },
        };
        Self {
            scale,
            levels: [Level::default(); LEVELS_MAX],
            occupied: 0,
            cells: Slab::new(),
            cell_numbers: CellTable::new(),
            lines: Lines::default(),
            full_runs: Slab::new(),
        }
    }

    /// The extent of an area that reaches so far, in the units of points; infinite for one without a bound.
    pub(super) fn extent(&self, reach: f64) -> Extent {
        let bounded = (0..self.scale.unbounded).find(|level| self.scale.side(*level) >= 2.0 * reach);
        match bounded {
            Some(level) => {
                let reach_units = padded_reach(reach / self.scale.side(level) * UNITS);
                Extent { level, reach_units, reach }
            }
            None => Extent { level: self.scale.unbounded, reach_units: UNBOUNDED, reach: 0.0 },
        }
    }

    /// Puts a filter where its centre is, or moves it there.
    pub(super) fn put(
        &mut self,
        records: &mut Records,
        record: u32,
        extent: &Extent,
        centre: &[f64; 3],
        landing: &mut Landing,
    ) -> Result<(), GridFull> {
        let (key, xyz) = self.scale.place(extent.level, centre);
        let spot = Spot { xyz, reach: extent.reach_units };
        if landing.key != key {
            *landing = Landing { key, cell: self.cell_of(key)? };
        }
        let held = records.header(record);
        if held.cell == landing.cell {
            self.lines.set_spot(held.slot, &spot);
            return Ok(());
        }
        let lane = Lane { entry: record, mask: held.mask, spot };
        let slot = self.push(records, landing.cell, held.access, lane)?;
        if held.cell != NONE {
            self.leave(records, &held);
        }
        records.set_place(record, landing.cell, slot);
        let level = &mut self.levels[extent.level as usize];
        level.filters += 1;
        level.reach_max = level.reach_max.max(extent.reach);
        self.occupied |= 1 << extent.level;
        Ok(())
    }

    /// Takes a filter out; it may be nowhere.
    pub(super) fn take(&mut self, records: &mut Records, record: u32) {
        let held = records.header(record);
        if held.cell != NONE {
            self.leave(records, &held);
            records.set_place(record, NONE, 0);
        }
    }

    /// Finds the cells in which filters may hold `point`: appends each with a probe for it.
    pub(super) fn find(&self, point: &[f64; 3], mask: u32, cells: &mut Vec<u32>, probes: &mut Vec<Probe>) {
        let mut occupied = self.occupied;
        while occupied != 0 {
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            let level = occupied.trailing_zeros() as u8;
            occupied &= occupied - 1;
            let mut visit = |key: CellKey, local: [i16; 3]| {
                if let Some(cell) = self.cell_numbers.find(key) {
                    cells.push(cell);
                    probes.push(Probe { local, mask });
                }
            };
            if level == self.scale.unbounded {
                visit(self.scale.key(level, [0; 3]), [0; 3]);
                continue;
            }
            let per_side = self.scale.per_side(level);
            let reach = (self.levels[level as usize].reach_max + self.scale.slack) * per_side;
            let at: [f64; 3] = std::array::from_fn(|axis| (point[axis] + self.scale.shift[axis]) * per_side);
            let low = at.map(|value| cube(value - reach));
            let high = at.map(|value| cube(value + reach));
            for x in low[0]..=high[0] {
                let beyond_x = beyond(at[0], x);
                for y in low[1]..=high[1] {
                    let beyond_y = beyond(at[1], y);
                    for z in low[2]..=high[2] {
                        let beyond_z = beyond(at[2], z);
                        if beyond_x * beyond_x + beyond_y * beyond_y + beyond_z * beyond_z <= reach * reach {
                            visit(
                                self.scale.key(level, [x, y, z]),
                                [local(at[0], x), local(at[1], y), local(at[2], z)],
                            );
                        }
                    }
                }
            }
        }
    }

    /// Reads where `pre_test` will look.
    #[inline]
    pub(super) fn touch_lines(&self, run: &Run) -> u32 {
        self.lines.touch(run.line, run.len)
    }

    /// Appends the runs of a cell in which filters under these access keys lie.
    pub(super) fn collect(&self, cell: u32, accesses: &[u32], probe: usize, runs: &mut Vec<Run>) {
        let cell = &self.cells[cell];
        if cell.split.is_empty() {
            self.collect_bucket(&cell.mixed, probe, runs);
        } else if cell.split_keys as usize <= accesses.len() {
            // Fewer buckets than keys: reading all is cheaper, the masks tell which are meant.
            for (group, lane) in cell.split.iter().flat_map(|group| (0..4).map(move |lane| (group, lane))) {
                self.collect_bucket(&group.bucket(lane), probe, runs);
            }
        } else {
            for access in accesses {
                if let Some((group, lane)) = find_bucket(&cell.split, *access) {
                    self.collect_bucket(&cell.split[group].bucket(lane), probe, runs);
                }
            }
        }
    }

    /// Pre-tests the runs; the survivors of each probe follow each other.
    pub(super) fn pre_test(&self, run: &Run, probes: &[Probe], survivors: &mut Vec<Survivor>) {
        self.lines.pre_test(run.line, run.len, &probes[run.probe], survivors);
    }

    pub(super) fn bytes(&self) -> usize {
        let split: usize = (0..self.cells.len()).map(|cell| size_of_val(&*self.cells[cell].split)).sum();
        self.cells.bytes() + split + self.cell_numbers.bytes() + self.lines.bytes() + self.full_runs.bytes()
    }

    #[inline]
    fn collect_bucket(&self, bucket: &Bucket, probe: usize, runs: &mut Vec<Run>) {
        if bucket.line == NONE {
            return;
        }
        runs.push(Run { line: bucket.line, len: bucket.len, probe });
        let mut chain = bucket.chain();
        while chain != CHAIN_NONE {
            let full = self.full_runs[chain];
            runs.push(Run { line: full.line, len: LANES << RUN_CLASS_MAX, probe });
            chain = full.next;
        }
    }

    /// The cell of a key, new if it has to be.
    fn cell_of(&mut self, key: CellKey) -> Result<u32, GridFull> {
        if let Some(cell) = self.cell_numbers.find(key) {
            return Ok(cell);
        }
        let cell = self.cells.insert(Cell { key, ..Cell::default() }).ok_or(GridFull)?;
        self.cell_numbers.insert(key, cell);
        Ok(cell)
    }

    /// Adds a filter to a cell; answers the slot it got.
    fn push(
        &mut self,
        records: &mut Records,
        cell_number: u32,
        access: u32,
        lane: Lane,
    ) -> Result<u32, GridFull> {
        let cell = &mut self.cells[cell_number];
        if cell.split.is_empty() && cell.filters >= MIXED_MAX {
            self.split(records, cell_number)?;
        }
        let cell = &mut self.cells[cell_number];
        let slot = cell.with_bucket(access, |bucket| {
            push_lane(bucket, lane, &mut self.lines, &mut self.full_runs, records)
        })?;
        cell.filters += 1;
        Ok(slot)
    }

    /// Deals the filters of a cell over buckets by access key.
    fn split(&mut self, records: &mut Records, cell_number: u32) -> Result<(), GridFull> {
        let cell = &mut self.cells[cell_number];
        let mixed = std::mem::take(&mut cell.mixed);
        cell.split = vec![BucketGroup::default(); 4].into_boxed_slice();
        for slot in mixed.line * LANES..mixed.line * LANES + mixed.len {
            let lane = self.lines.lane(slot);
            let access = records.header(lane.entry).access;
            let new = cell.with_bucket(access, |bucket| {
                push_lane(bucket, lane, &mut self.lines, &mut self.full_runs, records)
            })?;
            records.set_slot(lane.entry, new);
        }
        self.lines.release(mixed.line, mixed.class());
        Ok(())
    }

    /// Takes a filter out of its cell; the cell goes with its last one.
    fn leave(&mut self, records: &mut Records, held: &Header) {
        let cell = &mut self.cells[held.cell];
        let level_number = cell.key & 0x3f;
        let level = &mut self.levels[level_number as usize];
        level.filters -= 1;
        if level.filters == 0 {
            level.reach_max = 0.0;
            self.occupied &= !(1 << level_number);
        }
        cell.filters -= 1;
        cell.with_bucket(held.access, |bucket| {
            remove_lane(bucket, held.slot, &mut self.lines, &mut self.full_runs, records);
        });
        if cell.filters == 0 {
            self.cell_numbers.remove(cell.key);
            self.cells.remove(held.cell);
        }
    }
}

impl Scale {
    fn side(&self, level: u8) -> f64 {
        2.0_f64.powi(self.side_exponent_min + i32::from(level))
    }

    fn per_side(&self, level: u8) -> f64 {
        // The exponent is written straight into the float: a power of two, exactly.
        let exponent = 1023 - (i64::from(self.side_exponent_min) + i64::from(level));
        f64::from_bits((exponent.unsigned_abs()) << 52)
    }

    #[inline]
    fn key(&self, level: u8, [x, y, z]: [u32; 3]) -> CellKey {
        let cube = u64::from(x) | u64::from(y) << self.cube_bits | u64::from(z) << (2 * self.cube_bits);
        u64::from(level) | cube << 6
    }

    /// The cube of a point and where in it the point is, rounded down to whole units.
    fn place(&self, level: u8, point: &[f64; 3]) -> (CellKey, [i16; 3]) {
        if level == self.unbounded {
            return (self.key(level, [0; 3]), [0; 3]);
        }
        let per_side = self.per_side(level);
        let at: [f64; 3] = std::array::from_fn(|axis| (point[axis] + self.shift[axis]) * per_side);
        let [x, y, z] = at.map(cube);
        (self.key(level, [x, y, z]), [local(at[0], x), local(at[1], y), local(at[2], z)])
    }
}

/// The number of the cube that holds a shifted and scaled coordinate.
#[inline]
fn cube(value: f64) -> u32 {
    // Shifted coordinates are positive and below 2^31, and the conversion rounds down and saturates.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, below 2^31")]
    let cube = value as u32;
    cube
}

/// How far a coordinate lies outside of a cube, in sides.
#[inline]
fn beyond(value: f64, cube: u32) -> f64 {
    (f64::from(cube) - value).max(value - f64::from(cube) - 1.0).max(0.0)
}

/// A coordinate seen from a cube's corner, in units, rounded down.
#[inline]
fn local(value: f64, cube: u32) -> i16 {
    // Conversion rounds towards zero; a side more makes all of them positive first.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "between half a side before the cube and one behind it"
    )]
    let units = (((value - f64::from(cube) + 1.0) * UNITS) as i32 - UNITS_WHOLE) as i16;
    units
}

/// In which group a key is looked for first. Four keys of consecutive numbers share a group: names that came in
/// together are mostly asked for together.
#[inline]
fn first_group(access: u32, groups_count: usize) -> usize {
    let hash = u64::from(access >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    hash as usize & (groups_count - 1)
}

#[inline]
fn find_bucket(split: &[BucketGroup], access: u32) -> Option<(usize, usize)> {
    let mut group = first_group(access, split.len());
    loop {
        if let Some(lane) = split[group].lane(access) {
            return Some((group, lane));
        }
        // Lanes fill from the left, and keys never leave: a free lane ends the search.
        if split[group].access[3] == NONE {
            return None;
        }
        group = (group + 1) & (split.len() - 1);
    }
}

impl Cell {
    /// Changes the bucket of a key, which is new if it has to be; or the only bucket, while there is but one.
    fn with_bucket<T>(&mut self, access: u32, change: impl FnOnce(&mut Bucket) -> T) -> T {
        if self.split.is_empty() {
            return change(&mut self.mixed);
        }
        let (group, lane) = match find_bucket(&self.split, access) {
            Some(found) => found,
            None => self.add_bucket(access),
        };
        let mut bucket = self.split[group].bucket(lane);
        let result = change(&mut bucket);
        self.split[group].set_bucket(lane, &bucket);
        result
    }

    fn add_bucket(&mut self, access: u32) -> (usize, usize) {
        // A quarter stays free, so that there is always a group with a free lane.
        if (self.split_keys as usize + 1) * 4 > self.split.len() * 4 * 3 {
            self.rebuild_split();
        }
        self.split_keys += 1;
        place_bucket(&mut self.split, Bucket::new(access))
    }

    /// Doubles the table, or only drops the empty buckets when these are many.
    fn rebuild_split(&mut self) {
        let kept: Vec<Bucket> = self
            .split
            .iter()
            .flat_map(|group| (0..4).map(|lane| group.bucket(lane)))
            .filter(|bucket| bucket.line != NONE)
            .collect();
        let groups = (kept.len() * 2).div_ceil(4).next_power_of_two().max(4);
        self.split = vec![BucketGroup::default(); groups].into_boxed_slice();
        self.split_keys = 0;
        for bucket in kept {
            self.split_keys += 1;
            place_bucket(&mut self.split, bucket);
        }
    }
}

fn place_bucket(split: &mut [BucketGroup], bucket: Bucket) -> (usize, usize) {
    let mut group = first_group(bucket.access, split.len());
    loop {
        if let Some(lane) = split[group].lane(NONE) {
            split[group].set_bucket(lane, &bucket);
            return (group, lane);
        }
        group = (group + 1) & (split.len() - 1);
    }
}

fn push_lane(
    bucket: &mut Bucket,
    lane: Lane,
    lines: &mut Lines,
    full_runs: &mut Slab<FullRun>,
    records: &mut Records,
) -> Result<u32, GridFull> {
    if bucket.line == NONE {
        bucket.set_run(lines.allocate(0).ok_or(GridFull)?, 0, bucket.chain());
    } else if bucket.len == bucket.capacity() {
        if bucket.class() < RUN_CLASS_MAX {
            resize_run(bucket, bucket.class() + 1, lines, records)?;
        } else {
            let line = lines.allocate(0).ok_or(GridFull)?;
            let full = full_runs.insert(FullRun { line: bucket.line, next: bucket.chain() });
            let full = full.filter(|full| *full < CHAIN_NONE).ok_or(GridFull)?;
            bucket.set_run(line, 0, full);
            bucket.len = 0;
        }
    }
    let slot = bucket.line * LANES + bucket.len;
    lines.set_lane(slot, &lane);
    bucket.len += 1;
    Ok(slot)
}

/// The last lane fills the gap, so runs have none.
fn remove_lane(
    bucket: &mut Bucket,
    slot: u32,
    lines: &mut Lines,
    full_runs: &mut Slab<FullRun>,
    records: &mut Records,
) {
    let last = bucket.line * LANES + bucket.len - 1;
    if slot != last {
        let lane = lines.lane(last);
        lines.set_lane(slot, &lane);
        records.set_slot(lane.entry, slot);
    }
    bucket.len -= 1;
    if bucket.len == 0 {
        lines.release(bucket.line, bucket.class());
        if bucket.chain() == CHAIN_NONE {
            bucket.set_run(NONE, 0, CHAIN_NONE);
        } else {
            let full = full_runs.remove(bucket.chain());
            bucket.set_run(full.line, RUN_CLASS_MAX, full.next);
            bucket.len = LANES << RUN_CLASS_MAX;
        }
    } else if bucket.len <= bucket.capacity() / 8 && bucket.class() > 0 {
        // Out of numbers for a smaller run, the larger one does as well.
        let _ = resize_run(bucket, bucket.class() - 2.min(bucket.class()), lines, records);
    }
}

/// Moves a bucket's growing run into one of another class.
fn resize_run(
    bucket: &mut Bucket,
    class: u8,
    lines: &mut Lines,
    records: &mut Records,
) -> Result<(), GridFull> {
    let line = lines.allocate(class).ok_or(GridFull)?;
    for index in 0..bucket.len {
        let lane = lines.lane(bucket.line * LANES + index);
        lines.set_lane(line * LANES + index, &lane);
        records.set_slot(lane.entry, line * LANES + index);
    }
    lines.release(bucket.line, bucket.class());
    bucket.set_run(line, class, bucket.chain());
    Ok(())
}
