//! The hierarchy of grids: which filters may hold a point.
//!
//! Space is cut into cubes. A filter lies in one cube, the one that holds its centre, of the level whose side is
//! at least twice its reach; so an event finds every filter that may hold it in the few cubes around it, and a
//! move takes a filter out of one cube and puts it into another. The plane is the slice z = 0, the globe the unit
//! sphere, which has no seams. Inside a cube filters lie in buckets by *cluster* (see `clusters`): an event looks only
//! into those that its names and values lead to.

use std::hint::black_box;

use super::buckets::{Buckets, Full};
use super::bundles::Standing;
use super::records::Records;
use super::runs::{EVENT_UNITS, Lane, Local, Slot, Spot, UNBOUNDED, UNITS, padded_reach};
use crate::geo::World;

/// Least ratio of a cell's side to the reach of its filters. A larger ratio makes filters lie in fewer, fuller cells.
const SIDE_REACHES: f64 = 2.0;
/// Most levels that a world has, the one for unbounded areas included.
const LEVELS_MAX: usize = 32;

/// The level of a cell's key.
const LEVEL_BITS: u64 = 63;

/// Where filters are, by number, and how to find those near a point.
#[derive(Debug)]
pub(super) struct Grid {
    scale: Scale,
    levels: [Level; LEVELS_MAX],
    /// The levels that have filters, as bits.
    occupied: u64,
    buckets: Buckets,
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
    /// Filters that lie in the runs of their clusters.
    filters: u64,
    /// Bundles that lie in their cells' rolls.
    bundles: u64,
    /// No filter of the level reaches further; forgotten when the level is empty.
    reach_max: f64,
}

/// Level and cube in one word: six bits and 58 for the cube's numbers, two or three.
pub(super) type CellKey = u64;

/// How far a filter reaches, in the terms of its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    level: u8,
    /// In units of the level, with what rounding may hide.
    reach_units: u8,
    reach: f64,
}

impl Extent {
    /// Whether the grid knows where the area ends.
    pub(super) fn is_bounded(&self) -> bool {
        self.reach_units < UNBOUNDED
    }
}

/// A filter, as the grid sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridFilter<'a> {
    pub(super) record: u32,
    pub(super) cluster: u32,
    pub(super) extent: &'a Extent,
}

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
        let places_max = match world {
            World::Geodetic => [u8::MAX; 3],
            World::Planar => [u8::MAX, u8::MAX, 0],
        };
        let buckets = Buckets::new(places_max);
        Self { scale, levels: [Level::default(); LEVELS_MAX], occupied: 0, buckets }
    }

    /// The extent of an area that reaches so far, in the units of points; infinite for one without a bound.
    pub(super) fn extent(&self, reach: f64) -> Extent {
        let bounded = (0..self.scale.unbounded).find(|level| self.scale.side(*level) >= SIDE_REACHES * reach);
        match bounded {
            Some(level) => {
                let reach_units = padded_reach(reach / self.scale.side(level) * UNITS);
                Extent { level, reach_units, reach }
            }
            None => Extent { level: self.scale.unbounded, reach_units: UNBOUNDED, reach: 0.0 },
        }
    }

    /// Puts a filter where its centre is, or moves it there from the centre where it was put before. `lane` is its lane
    /// when it is put for the first time.
    pub(super) fn put(
        &mut self,
        records: &mut Records,
        filter: &GridFilter<'_>,
        from: Option<&[f64; 3]>,
        to: &[f64; 3],
        lane: Option<Lane>,
    ) -> Result<(), Full> {
        let GridFilter { record, cluster, extent } = *filter;
        let (cell, xyz) = self.scale.place(extent.level, to);
        let spot = Spot { xyz, reach: extent.reach_units };
        if let Some(lane) = lane {
            return self.put_lane(records, cell, cluster, extent, &Lane { spot, ..lane });
        }
        let Some((slot, from)) = records.slot(record).zip(from) else { return Ok(()) };
        let left = self.scale.place(extent.level, from).0;
        if left == cell {
            let shifted = self.buckets.shift(records, cell, cluster, &slot, spot)?;
            if shifted != slot {
                records.set_slot(record, Some(&shifted));
            }
            return Ok(());
        }
        let lane = Lane { spot, ..self.buckets.runs().lane(&slot) };
        let landed = self.buckets.push(records, cell, cluster, &lane)?;
        self.buckets.remove(records, left, cluster, &slot);
        records.set_slot(record, Some(&landed));
        Ok(())
    }

    /// Puts a filter of an extent into its cluster in a cell.
    pub(super) fn put_lane(
        &mut self,
        records: &mut Records,
        cell: CellKey,
        cluster: u32,
        extent: &Extent,
        lane: &Lane,
    ) -> Result<(), Full> {
        let slot = self.buckets.push(records, cell, cluster, lane)?;
        self.change(extent, |level| level.filters += 1);
        records.set_slot(lane.owner.record, Some(&slot));
        Ok(())
    }

    /// Reads where `put` will look first and so brings it near.
    #[inline]
    pub(super) fn touch_buckets(
        &self,
        slot: Option<&Slot>,
        filter: &GridFilter<'_>,
        from: Option<&[f64; 3]>,
        to: &[f64; 3],
    ) -> u32 {
        let GridFilter { cluster, extent, .. } = *filter;
        let cell = |point| self.scale.place(extent.level, point).0;
        let (landing, left) = (cell(to), from.map(cell));
        let runs = self.buckets.runs();
        let stays = left == Some(landing) && slot.is_none_or(|slot| !slot.crowded);
        let held = slot.map_or(0, |slot| u32::from(runs.touch_slot(slot, !stays)));
        if stays {
            return held;
        }
        let touch = |cell| self.buckets.locate(cell, cluster).1;
        held ^ touch(landing) ^ left.map_or(0, touch)
    }

    /// Reads where `put` will look next, when a filter goes from one cell to another; answers the record whose lane fills
    /// the gap.
    #[inline]
    pub(super) fn touch_runs(&self, filter: &GridFilter<'_>, from: &[f64; 3], to: &[f64; 3]) -> Option<u32> {
        let GridFilter { cluster, extent, .. } = *filter;
        let [(from, from_xyz), (to, to_xyz)] = [from, to].map(|point| self.scale.place(extent.level, point));
        if from == to {
            return None;
        }
        black_box(self.buckets.last_owner(to, cluster, to_xyz));
        self.buckets.last_owner(from, cluster, from_xyz).map(|owner| owner.record)
    }

    /// Takes a filter out of where it was put; it may be nowhere.
    pub(super) fn take(&mut self, records: &mut Records, filter: &GridFilter<'_>, from: &[f64; 3]) {
        let GridFilter { record, cluster, extent } = *filter;
        if let Some(slot) = records.slot(record) {
            let (cell, _) = self.scale.place(extent.level, from);
            self.buckets.remove(records, cell, cluster, &slot);
            self.change(extent, |level| level.filters -= 1);
            records.set_slot(record, None);
        }
    }

    /// The cell of an area whose centre is at a point, and its spot there.
    #[inline]
    pub(super) fn place(&self, extent: &Extent, point: &[f64; 3]) -> (CellKey, Spot) {
        let (cell, xyz) = self.scale.place(extent.level, point);
        (cell, Spot { xyz, reach: extent.reach_units })
    }

    /// Puts a bundle into a cell; answers how it stands there.
    pub(super) fn enter_bundle(
        &mut self,
        cell: CellKey,
        spot: Spot,
        extent: &Extent,
        bundle: u32,
    ) -> Result<Standing, Full> {
        Ok(match self.buckets.enter_bundle(cell, spot, bundle)? {
            Some(lane) => {
                self.change(extent, |level| level.bundles += 1);
                Standing::Whole(lane)
            }
            None => Standing::Loose,
        })
    }

    /// Takes a bundle out of a cell. The filters of a loose one are left where they are.
    pub(super) fn leave_bundle(
        &mut self,
        records: &mut Records,
        cell: CellKey,
        extent: &Extent,
        standing: Standing,
    ) {
        match standing {
            Standing::Nowhere => {}
            Standing::Whole(lane) => {
                self.change(extent, |level| level.bundles -= 1);
                if let Some(filler) = self.buckets.leave_whole(cell, lane) {
                    records.bundle_mut(filler).set_standing(standing);
                }
            }
            Standing::Loose => self.buckets.leave_loose(cell),
        }
    }

    /// Gives a whole bundle another spot in its cell.
    pub(super) fn shift_whole(&mut self, cell: CellKey, lane: u16, spot: Spot) {
        self.buckets.shift_whole(cell, lane, spot);
    }

    /// Tells a cell that the bundle in a lane has another number.
    pub(super) fn renumber(&mut self, cell: CellKey, lane: u16, bundle: u32) {
        self.buckets.renumber(cell, lane, bundle);
    }

    /// Whether a bundle that came into a cell would be loose.
    pub(super) fn is_crowded(&self, cell: CellKey) -> bool {
        self.buckets.is_crowded(cell)
    }

    /// Reads where a move of a bundle from cell to cell will look and so brings it near; answers the number of the bundle
    /// that fills the gap.
    #[inline]
    pub(super) fn touch_whole(&self, left: CellKey, landing: CellKey, standing: Standing) -> Option<u32> {
        let Standing::Whole(lane) = standing else { return None };
        let rolls = self.buckets.rolls();
        let roll = self.buckets.roll(left)?;
        let touched = rolls.touch_lane(roll, lane);
        if left == landing {
            black_box(touched);
            return None;
        }
        let landing = self.buckets.roll(landing).and_then(|roll| rolls.last(roll));
        black_box((touched, landing.map(|(spot, _)| spot)));
        rolls.last(roll).map(|(_, number)| number)
    }

    /// Makes a whole bundle of a crowded cell loose, in name only; answers its number and its spot.
    pub(super) fn loosen(&mut self, cell: CellKey, extent: &Extent) -> Option<(Spot, u32)> {
        let loosened = self.buckets.loosen(cell)?;
        self.change(extent, |level| level.bundles -= 1);
        Some(loosened)
    }

    /// Counts in a level, whose filters and bundles reach up to an extent.
    fn change(&mut self, extent: &Extent, change: impl FnOnce(&mut Level)) {
        let level = &mut self.levels[extent.level as usize];
        change(level);
        if level.filters + level.bundles == 0 {
            level.reach_max = 0.0;
            self.occupied &= !(1 << extent.level);
        } else {
            level.reach_max = level.reach_max.max(extent.reach);
            self.occupied |= 1 << extent.level;
        }
    }

    /// Whether filters of a cell's level lie in the runs of their clusters, and whether bundles lie in rolls.
    #[inline]
    pub(super) fn holds(&self, cell: CellKey) -> (bool, bool) {
        let level = &self.levels[(cell & LEVEL_BITS) as usize % LEVELS_MAX];
        (level.filters > 0, level.bundles > 0)
    }

    /// Appends the cells in which filters may hold `point`, each with where the point is, seen from it.
    #[inline]
    pub(super) fn find(&self, point: &[f64; 3], cells: &mut Vec<(CellKey, Local)>) {
        let mut occupied = self.occupied;
        while occupied != 0 {
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            let level = occupied.trailing_zeros() as u8;
            occupied &= occupied - 1;
            if level == self.scale.unbounded {
                cells.push((self.scale.key(level, [0; 3]), [0; 3]));
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
                            let local = [local(at[0], x), local(at[1], y), local(at[2], z)];
                            cells.push((self.scale.key(level, [x, y, z]), local));
                        }
                    }
                }
            }
        }
    }

    /// The buckets of all cells.
    #[inline]
    pub(super) fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// How many filters and how many whole bundles have a place.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        let sum = |count: fn(&Level) -> u64| self.levels.iter().map(count).sum();
        (sum(|level| level.filters), sum(|level| level.bundles))
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes()
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
    fn place(&self, level: u8, point: &[f64; 3]) -> (CellKey, [u8; 3]) {
        if level == self.unbounded {
            return (self.key(level, [0; 3]), [0; 3]);
        }
        let per_side = self.per_side(level);
        let at: [f64; 3] = std::array::from_fn(|axis| (point[axis] + self.shift[axis]) * per_side);
        let [x, y, z] = at.map(cube);
        (self.key(level, [x, y, z]), [inner(at[0], x), inner(at[1], y), inner(at[2], z)])
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

/// A coordinate seen from the corner of the cube that it is in, in units, rounded down.
#[inline]
fn inner(value: f64, cube: u32) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
    let units = ((value - f64::from(cube)) * UNITS) as u8;
    units
}

/// A coordinate seen from a cube's corner, in units of events, rounded down.
#[inline]
fn local(value: f64, cube: u32) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "at most a side before the cube or behind it")]
    let units = ((value - f64::from(cube)) * EVENT_UNITS).floor() as i16;
    units
}
