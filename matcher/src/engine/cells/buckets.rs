//! Buckets of filters by cell and cluster, in a hash table.

use super::arena::{Arena, LINE_BYTES};
use super::records::Records;
use super::runs::{Lane, Owner, Runs, Slot, Spot};
use super::store::{Pile, Store};
use crate::event::process_key;

/// Parts that grow on their own. A part of a table of ten million buckets has ten thousand, which are copied in well
/// under a millisecond.
const PARTS_COUNT: usize = 1024;
const BUCKET_BYTES: usize = size_of::<Bucket>();
const BUCKETS_MIN: usize = LINE_BYTES / BUCKET_BYTES;
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

/// The filters of a cluster in a cell.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct Bucket {
    cell: u64,
    cluster: u32,
    pile: Pile,
    unused: [u32; 3],
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
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn runs(&self) -> &Runs {
        self.store.runs()
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
        let Self { table, store } = self;
        table.change(cell, cluster, |pile| store.push(pile, lane, records))?
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
        let Self { table, store } = self;
        if !slot.crowded {
            store.runs_mut().set_spot(slot, spot);
            return Ok(*slot);
        }
        table.change(cell, cluster, |pile| store.shift(pile, slot, spot, records))?
    }

    /// Takes the filter in a slot out of its bucket.
    pub(super) fn remove(&mut self, records: &mut Records, cell: u64, cluster: u32, slot: &Slot) {
        let Self { table, store } = self;
        let xyz = store.runs().spot(slot).xyz;
        let removed = table.change(cell, cluster, |pile| store.remove(pile, slot, xyz, records));
        debug_assert!(removed.is_ok(), "the bucket is there");
    }

    pub(super) fn bytes(&self) -> usize {
        self.table.arena.footprint() + size_of_val(&*self.table.parts) + self.store.bytes()
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
    fn change<T>(&mut self, cell: u64, cluster: u32, change: impl FnOnce(&mut Pile) -> T) -> Result<T, Full> {
        let key = self.key;
        let hash = key.hash(cell, cluster);
        let part = part_of(hash);
        let buckets = self.buckets(part);
        let index = match find(buckets, start(hash, buckets.len().wrapping_sub(1)), cell, cluster) {
            Some(index) => index,
            None => self.add(part, hash, cell, cluster).ok_or(Full)?,
        };
        let pile = &mut self.buckets_mut(part)[index].pile;
        let result = change(pile);
        if pile.is_empty() {
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
    const FREE: Self = Self { cell: FREE, cluster: 0, pile: Pile::EMPTY, unused: [0; 3] };
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
