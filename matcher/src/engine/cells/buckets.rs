//! Buckets of filters by cell and cluster, in a hash table.

use super::arena::{Arena, LINE_BYTES};
use super::records::Records;
use super::rolls::{LANES_MAX, Roll, Rolls};
use super::runs::{Lane, Owner, Runs, Slot, Spot};
use super::store::{Pile, Store};
use crate::compiled::NONE;
use crate::event::process_key;

/// Parts that grow on their own. A part of a table of ten million buckets has ten thousand, which are copied in well
/// under a millisecond.
const PARTS_COUNT: usize = 1024;
const BUCKET_BYTES: usize = size_of::<Bucket>();
const BUCKETS_MIN: usize = LINE_BYTES / BUCKET_BYTES;
/// Stands for a cluster's number in the buckets of bundles; it is that of none.
const BUNDLES: u32 = NONE;
/// Bundles of a cell up to which those that come stay whole. An event looks at the places of all whole bundles of a cell,
/// and into each that is near, whatever it asks for; into a cluster it looks only if it has to.
const WHOLE_MAX: usize = LANES_MAX;
/// Bundles of a cell from which on those that come also make others loose, so that none stays whole in a crowd.
const CROWDED_LEN: usize = WHOLE_MAX * 5 / 4;
/// The cell of a free place.
const FREE: u64 = u64::MAX;

/// The 32-bit numbers are used up, or the memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// All buckets, and what their filters lie in.
#[derive(Debug)]
pub(super) struct Buckets {
    table: Table,
    store: Store,
    rolls: Rolls,
}

/// Buckets by cell and cluster.
#[derive(Debug)]
struct Table {
    parts: Box<[Part]>,
    arena: Arena,
    key: Key,
}

/// Key that hashes depend on, drawn at random for each process: nobody outside can choose places and conditions that
/// collide.
#[derive(Clone, Copy, Debug)]
struct Key(u64);

/// A power of two of buckets, or none; probed linearly.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    first_line: u32,
    buckets: u32,
    used: u32,
}

/// The filters of a cluster in a cell, or its bundles.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct Bucket {
    cell: u64,
    cluster: u32,
    pile: Pile,
    /// Whole bundles.
    roll: Roll,
    /// How many bundles are loose.
    loose: u32,
}

/// Where a search in the table starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    part: u32,
    start: u32,
}

impl Buckets {
    /// None yet; places in cells are up to `places_max`.
    pub(super) fn new(places_max: [u8; 3]) -> Self {
        let parts = vec![Part::default(); PARTS_COUNT].into_boxed_slice();
        Self {
            table: Table { parts, arena: Arena::new(), key: Key(process_key()) },
            store: Store::new(places_max),
            rolls: Rolls::new(),
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn runs(&self) -> &Runs {
        self.store.runs()
    }

    pub(super) fn rolls(&self) -> &Rolls {
        &self.rolls
    }

    /// Where the search for a bucket starts, and a word from there, read to bring it near.
    #[inline]
    pub(super) fn locate(&self, cell: u64, cluster: u32) -> (Place, u32) {
        let hash = self.table.key.hash(cell, cluster);
        let part = part_of(hash);
        let buckets = self.table.buckets(part);
        let start = start(hash, buckets.len().wrapping_sub(1));
        #[expect(clippy::cast_possible_truncation, reason = "parts are few and have less than 2^32 buckets")]
        let place = Place { part: part as u32, start: start as u32 };
        (place, buckets.get(start).map_or(0, |bucket| bucket.pile.head()))
    }

    /// The filters of a bucket, where there are any.
    #[inline]
    pub(super) fn find(&self, place: Place, cell: u64, cluster: u32) -> Option<&Pile> {
        let buckets = self.table.buckets(place.part as usize);
        let bucket = find(buckets, place.start as usize, cell, cluster)?;
        Some(&buckets[bucket].pile)
    }

    /// Owner of the lane that the next one at a place of a bucket lies behind. By reading it, the place where that one
    /// goes comes near, too.
    #[inline]
    pub(super) fn last_owner(&self, cell: u64, cluster: u32, xyz: [u8; 3]) -> Option<Owner> {
        let (place, _) = self.locate(cell, cluster);
        self.store.last_owner(self.find(place, cell, cluster)?, xyz)
    }

    /// Adds a filter to a bucket; answers the slot it got.
    pub(super) fn push(
        &mut self,
        records: &mut Records,
        cell: u64,
        cluster: u32,
        lane: &Lane,
    ) -> Result<Slot, Full> {
        let Self { table, store, .. } = self;
        table.change(cell, cluster, |bucket| store.push(&mut bucket.pile, lane, records))?
    }

    /// Gives the filter in a slot another spot in its cell; answers the slot it has then.
    pub(super) fn shift(
        &mut self,
        records: &mut Records,
        cell: u64,
        cluster: u32,
        slot: &Slot,
        spot: Spot,
    ) -> Result<Slot, Full> {
        let Self { table, store, .. } = self;
        if !slot.crowded {
            store.runs_mut().set_spot(slot, spot);
            return Ok(*slot);
        }
        table.change(cell, cluster, |bucket| store.shift(&bucket.pile, slot, spot, records))?
    }

    /// Takes the filter in a slot out of its bucket.
    pub(super) fn remove(&mut self, records: &mut Records, cell: u64, cluster: u32, slot: &Slot) {
        let Self { table, store, .. } = self;
        let xyz = store.runs().spot(slot).xyz;
        let remove = |bucket: &mut Bucket| store.remove(&mut bucket.pile, slot, xyz, records);
        let removed = table.change(cell, cluster, remove);
        debug_assert!(removed.is_ok(), "the bucket is there");
    }

    /// Where the search for the bundles of a cell starts, and a word from there, read to bring it near.
    #[inline]
    pub(super) fn locate_bundles(&self, cell: u64) -> (Place, u32) {
        self.locate(cell, BUNDLES)
    }

    /// The whole bundles of a cell; none or some.
    #[inline]
    pub(super) fn find_roll(&self, place: Place, cell: u64) -> Option<&Roll> {
        let buckets = self.table.buckets(place.part as usize);
        let roll = &buckets[find(buckets, place.start as usize, cell, BUNDLES)?].roll;
        (!roll.is_empty()).then_some(roll)
    }

    /// The whole bundles of a cell, searched from the beginning.
    #[inline]
    pub(super) fn roll(&self, cell: u64) -> Option<&Roll> {
        self.find_roll(self.locate_bundles(cell).0, cell)
    }

    /// Counts a bundle into a cell; answers its lane there, or `None` where it is to be loose.
    pub(super) fn enter_bundle(&mut self, cell: u64, spot: Spot, bundle: u32) -> Result<Option<u16>, Full> {
        let Self { table, rolls, .. } = self;
        table.change(cell, BUNDLES, |bucket| {
            if bucket.is_crowded() {
                bucket.loose += 1;
                return Ok(None);
            }
            rolls.push(&mut bucket.roll, spot, bundle).map(Some).ok_or(Full)
        })?
    }

    /// Takes a whole bundle out of a cell; answers the number of the bundle that has its lane now, if one has.
    pub(super) fn leave_whole(&mut self, cell: u64, lane: u16) -> Option<u32> {
        let Self { table, rolls, .. } = self;
        table.change(cell, BUNDLES, |bucket| rolls.remove(&mut bucket.roll, lane)).ok()?
    }

    /// Takes a loose bundle out of a cell.
    pub(super) fn leave_loose(&mut self, cell: u64) {
        let left = self.table.change(cell, BUNDLES, |bucket| bucket.loose -= 1);
        debug_assert!(left.is_ok(), "the bucket is there");
    }

    /// Gives a whole bundle another spot in its cell.
    pub(super) fn shift_whole(&mut self, cell: u64, lane: u16, spot: Spot) {
        let roll = self.roll(cell).copied();
        debug_assert!(roll.is_some(), "the bucket is there");
        if let Some(roll) = roll {
            self.rolls.set_spot(&roll, lane, spot);
        }
    }

    /// Tells a cell that the bundle in a lane has another number.
    pub(super) fn renumber(&mut self, cell: u64, lane: u16, bundle: u32) {
        let roll = self.roll(cell).copied();
        debug_assert!(roll.is_some(), "the bucket is there");
        if let Some(roll) = roll {
            let (spot, _) = self.rolls.get(&roll, lane);
            self.rolls.set(&roll, lane, spot, bundle);
        }
    }

    /// Whether a bundle that came into a cell would be loose.
    pub(super) fn is_crowded(&self, cell: u64) -> bool {
        let (place, _) = self.locate_bundles(cell);
        let buckets = self.table.buckets(place.part as usize);
        find(buckets, place.start as usize, cell, BUNDLES).is_some_and(|bucket| buckets[bucket].is_crowded())
    }

    /// Takes one of the whole bundles out of a crowded cell and counts it among the loose ones there; `None` where there is
    /// none, or the cell is not crowded.
    pub(super) fn loosen(&mut self, cell: u64) -> Option<(Spot, u32)> {
        let Self { table, rolls, .. } = self;
        let loosen = |bucket: &mut Bucket| {
            if bucket.bundles_count() < CROWDED_LEN {
                return None;
            }
            let last = rolls.last(&bucket.roll)?;
            let lane = u16::try_from(bucket.roll.len() - 1).ok()?;
            rolls.remove(&mut bucket.roll, lane);
            bucket.loose += 1;
            Some(last)
        };
        table.change(cell, BUNDLES, loosen).ok()?
    }

    pub(super) fn bytes(&self) -> usize {
        self.table.arena.footprint()
            + size_of_val(&*self.table.parts)
            + self.store.bytes()
            + self.rolls.bytes()
    }
}

impl Table {
    #[inline]
    fn buckets(&self, part: usize) -> &[Bucket] {
        let part = &self.parts[part];
        if part.buckets == 0 {
            return &[];
        }
        bytemuck::cast_slice(self.arena.bytes(part.first_line, part.buckets as usize * BUCKET_BYTES))
    }

    fn buckets_mut(&mut self, part: usize) -> &mut [Bucket] {
        let part = &self.parts[part];
        if part.buckets == 0 {
            return &mut [];
        }
        bytemuck::cast_slice_mut(self.arena.bytes_mut(part.first_line, part.buckets as usize * BUCKET_BYTES))
    }

    /// Changes a bucket. It is made if it has to be, and goes with its last filter.
    fn change<T>(
        &mut self,
        cell: u64,
        cluster: u32,
        change: impl FnOnce(&mut Bucket) -> T,
    ) -> Result<T, Full> {
        let key = self.key;
        let hash = key.hash(cell, cluster);
        let part = part_of(hash);
        let buckets = self.buckets(part);
        let index = match find(buckets, start(hash, buckets.len().wrapping_sub(1)), cell, cluster) {
            Some(index) => index,
            None => self.add(part, hash, cell, cluster).ok_or(Full)?,
        };
        let bucket = &mut self.buckets_mut(part)[index];
        let result = change(bucket);
        if bucket.is_empty() {
            remove(self.buckets_mut(part), index, key);
            self.parts[part].used -= 1;
        }
        Ok(result)
    }

    fn add(&mut self, part: usize, hash: u64, cell: u64, cluster: u32) -> Option<usize> {
        let Part { buckets, used, .. } = self.parts[part];
        // A quarter or more stays free, so that searches end soon. All parts are equally full; were their limits the same,
        // all would be copied at about the same time.
        let limit = buckets as usize * (PARTS_COUNT * 2 + part) / (PARTS_COUNT * 4);
        if used as usize + 1 > limit {
            self.grow(part)?;
        }
        let buckets = self.buckets_mut(part);
        let index = free_index(buckets, hash);
        buckets[index] = Bucket { cell, cluster, ..Bucket::FREE };
        self.parts[part].used += 1;
        Some(index)
    }

    /// Doubles a part.
    fn grow(&mut self, part: usize) -> Option<()> {
        let old = self.parts[part];
        let held = self.buckets_mut(part).to_vec();
        let buckets = (held.len() * 2).max(BUCKETS_MIN);
        let lines = |buckets: usize| buckets * BUCKET_BYTES / LINE_BYTES;
        let first_line = self.arena.allocate(lines(buckets))?;
        self.parts[part] = Part { first_line, buckets: u32::try_from(buckets).ok()?, used: old.used };
        let key = self.key;
        let doubled = self.buckets_mut(part);
        doubled.fill(Bucket::FREE);
        for bucket in held.iter().filter(|bucket| bucket.cell != FREE) {
            doubled[free_index(doubled, key.hash(bucket.cell, bucket.cluster))] = *bucket;
        }
        if old.buckets > 0 {
            self.arena.release(old.first_line, lines(held.len()));
        }
        Some(())
    }
}

impl Bucket {
    const FREE: Self = Self { cell: FREE, cluster: 0, pile: Pile::EMPTY, roll: Roll::EMPTY, loose: 0 };

    fn bundles_count(&self) -> usize {
        self.roll.len() + self.loose as usize
    }

    /// Whether bundles that come are loose.
    fn is_crowded(&self) -> bool {
        self.bundles_count() >= WHOLE_MAX
    }

    fn is_empty(&self) -> bool {
        self.pile.is_empty() && self.roll.is_empty() && self.loose == 0
    }
}

#[inline]
fn find(buckets: &[Bucket], start: usize, cell: u64, cluster: u32) -> Option<usize> {
    let last = buckets.len().checked_sub(1)?;
    let mut index = start & last;
    loop {
        let bucket = &buckets[index];
        if bucket.cell == cell && bucket.cluster == cluster {
            return Some(index);
        }
        if bucket.cell == FREE {
            return None;
        }
        index = (index + 1) & last;
    }
}

fn free_index(buckets: &[Bucket], hash: u64) -> usize {
    let last = buckets.len() - 1;
    let mut index = start(hash, last);
    while buckets[index].cell != FREE {
        index = (index + 1) & last;
    }
    index
}

/// Frees a bucket and moves those behind it that a search would no longer reach.
fn remove(buckets: &mut [Bucket], mut gap: usize, key: Key) {
    let last = buckets.len() - 1;
    let mut index = gap;
    loop {
        index = (index + 1) & last;
        let bucket = buckets[index];
        if bucket.cell == FREE {
            break;
        }
        let wanted = start(key.hash(bucket.cell, bucket.cluster), last);
        if index.wrapping_sub(wanted) & last >= index.wrapping_sub(gap) & last {
            buckets[gap] = bucket;
            gap = index;
        }
    }
    buckets[gap] = Bucket::FREE;
}

/// Where the search for a bucket starts.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the low bits are kept")]
fn start(hash: u64, last: usize) -> usize {
    hash as usize & last
}

#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> 48) as usize % PARTS_COUNT
}

impl Key {
    #[inline]
    fn hash(self, cell: u64, cluster: u32) -> u64 {
        let key = cell ^ self.0 ^ u64::from(cluster).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(key) * 0xd6e8_feb8_6659_fd93;
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
        let folded = (product >> 64) as u64 ^ product as u64;
        folded
    }
}
