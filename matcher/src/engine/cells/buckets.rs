//! Buckets of filters by cell and cluster, in a hash table.

use super::arena::{Arena, LINE_BYTES};
use super::records::Records;
use super::runs::{CLASS_MAX, Lane, Owner, Run, Runs, Slot, capacity};
use crate::compiled::NONE;
use crate::compiled::slab::Slab;

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

/// All buckets, and the runs that their filters lie in.
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
}

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
    /// The first line of the run, or the number of the long bucket.
    head: u32,
    /// Lanes in use; without any, the bucket has no run.
    len: u16,
    /// The class of the run; [`Bucket::LONG`] of a long bucket.
    class: u16,
    unused: [u32; 3],
}

/// Where a search in the table starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    part: u32,
    start: u32,
}

/// What buckets are made of.
#[derive(Debug)]
struct Store {
    runs: Runs,
    long: Slab<Long>,
}

/// A bucket of more lanes than a run has.
#[derive(Clone, Debug, Default)]
struct Long {
    /// Runs of the longest class, full but for the last.
    runs: Vec<u32>,
    last_len: u16,
}

impl Buckets {
    pub(super) fn new() -> Self {
        let parts = vec![Part::default(); PARTS_COUNT].into_boxed_slice();
        Self {
            table: Table { parts, arena: Arena::new() },
            store: Store { runs: Runs::new(), long: Slab::new() },
        }
    }

    pub(super) fn runs(&self) -> &Runs {
        &self.store.runs
    }

    pub(super) fn runs_mut(&mut self) -> &mut Runs {
        &mut self.store.runs
    }

    /// Where the search for a bucket starts, and a word from there, read to bring it near.
    #[inline]
    pub(super) fn locate(&self, cell: u64, cluster: u32) -> (Place, u32) {
        let hash = hash(cell, cluster);
        let part = part_of(hash);
        let buckets = self.table.buckets(part);
        let start = start(hash, buckets.len().wrapping_sub(1));
        #[expect(clippy::cast_possible_truncation, reason = "parts are few and have less than 2^32 buckets")]
        let place = Place { part: part as u32, start: start as u32 };
        (place, buckets.get(start).map_or(0, |bucket| bucket.head))
    }

    /// Passes on the runs of a bucket.
    #[inline]
    pub(super) fn visit(&self, place: Place, cell: u64, cluster: u32, mut visit: impl FnMut(Run)) {
        let buckets = self.table.buckets(place.part as usize);
        let Some(bucket) = find(buckets, place.start as usize, cell, cluster) else { return };
        let bucket = &buckets[bucket];
        if bucket.is_long() {
            self.store.long[bucket.head].visit(visit);
        } else {
            visit(bucket.run());
        }
    }

    /// Whose the last lane of a bucket is; by reading it, where the next one goes comes near, too.
    #[inline]
    pub(super) fn last_owner(&self, cell: u64, cluster: u32) -> Option<Owner> {
        let (place, _) = self.locate(cell, cluster);
        let buckets = self.table.buckets(place.part as usize);
        let bucket = &buckets[find(buckets, place.start as usize, cell, cluster)?];
        Some(self.store.runs.owner(&self.store.last_slot(bucket)))
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
        table.change(cell, cluster, |bucket| {
            let slot = store.add_slot(bucket, records)?;
            store.runs.set_lane(&slot, lane);
            Ok(slot)
        })?
    }

    /// Takes the filter in a slot out of its bucket. The last one fills the gap, so runs have none.
    pub(super) fn remove(&mut self, records: &mut Records, cell: u64, cluster: u32, slot: &Slot) {
        let Self { table, store } = self;
        let removed = table.change(cell, cluster, |bucket| {
            let last = store.last_slot(bucket);
            if last != *slot {
                let lane = store.runs.lane(&last);
                store.set(slot, &lane, records);
            }
            store.drop_slot(bucket, records);
        });
        debug_assert!(removed.is_ok(), "the bucket is there");
    }

    pub(super) fn bytes(&self) -> usize {
        let Store { runs, long } = &self.store;
        self.table.arena.footprint() + size_of_val(&*self.table.parts) + runs.bytes() + long.bytes()
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
        let hash = hash(cell, cluster);
        let part = part_of(hash);
        let buckets = self.buckets(part);
        let index = match find(buckets, start(hash, buckets.len().wrapping_sub(1)), cell, cluster) {
            Some(index) => index,
            None => self.add(part, hash, cell, cluster).ok_or(Full)?,
        };
        let bucket = &mut self.buckets_mut(part)[index];
        let result = change(bucket);
        if bucket.len == 0 {
            remove(self.buckets_mut(part), index);
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
        let doubled = self.buckets_mut(part);
        doubled.fill(Bucket::FREE);
        for bucket in held.iter().filter(|bucket| bucket.cell != FREE) {
            doubled[free_index(doubled, hash(bucket.cell, bucket.cluster))] = *bucket;
        }
        if old.buckets > 0 {
            self.arena.release(old.first_line, lines(held.len()));
        }
        Some(())
    }
}

impl Bucket {
    const LONG: u16 = u16::MAX;
    const FREE: Self = Self { cell: FREE, cluster: 0, head: NONE, len: 0, class: 0, unused: [0; 3] };

    fn is_long(&self) -> bool {
        self.class == Self::LONG
    }

    /// The run of a bucket that is not long.
    fn run(&self) -> Run {
        #[expect(clippy::cast_possible_truncation, reason = "classes are few")]
        let class = self.class as u8;
        Run { first_line: self.head, class, len: self.len }
    }

    fn set_run(&mut self, run: &Run) {
        (self.head, self.class, self.len) = (run.first_line, run.class.into(), run.len);
    }
}

impl Long {
    fn visit(&self, mut visit: impl FnMut(Run)) {
        if let [full @ .., last] = &*self.runs {
            for run in full {
                visit(Run { first_line: *run, class: CLASS_MAX, len: capacity(CLASS_MAX) });
            }
            visit(Run { first_line: *last, class: CLASS_MAX, len: self.last_len });
        }
    }

    fn last_slot(&self) -> Slot {
        let first_line = self.runs.last().copied().unwrap_or(NONE);
        Slot { first_line, class: CLASS_MAX, lane: self.last_len - 1 }
    }
}

impl Store {
    /// One more lane at the end of a bucket.
    fn add_slot(&mut self, bucket: &mut Bucket, records: &mut Records) -> Result<Slot, Full> {
        if bucket.is_long() {
            return self.add_long_slot(bucket.head);
        }
        if bucket.len == 0 {
            bucket.set_run(&Run { first_line: self.runs.allocate(0).ok_or(Full)?, class: 0, len: 1 });
            return Ok(bucket.run().slot(0));
        }
        let mut run = bucket.run();
        if run.len == capacity(CLASS_MAX) {
            let long = Long { runs: vec![run.first_line], last_len: run.len };
            let number = self.long.insert(long).ok_or(Full)?;
            (bucket.head, bucket.class) = (number, Bucket::LONG);
            return self.add_long_slot(number);
        }
        if run.len == capacity(run.class) {
            let class = run.class + 1;
            let longer = Run { first_line: self.runs.allocate(class).ok_or(Full)?, class, ..run };
            self.copy(&run, &longer, records);
            self.runs.release(run.first_line, run.class);
            run = longer;
        }
        run.len += 1;
        bucket.set_run(&run);
        Ok(run.slot(run.len - 1))
    }

    fn add_long_slot(&mut self, number: u32) -> Result<Slot, Full> {
        if self.long[number].last_len == capacity(CLASS_MAX) {
            let run = self.runs.allocate(CLASS_MAX).ok_or(Full)?;
            self.long[number].runs.push(run);
            self.long[number].last_len = 0;
        }
        let long = &mut self.long[number];
        long.last_len += 1;
        Ok(long.last_slot())
    }

    /// The slot of a bucket's last filter.
    fn last_slot(&self, bucket: &Bucket) -> Slot {
        if bucket.is_long() {
            return self.long[bucket.head].last_slot();
        }
        bucket.run().slot(bucket.len - 1)
    }

    /// One lane less at the end of a bucket; runs that are all but empty are given back.
    fn drop_slot(&mut self, bucket: &mut Bucket, records: &mut Records) {
        if bucket.is_long() {
            return self.drop_long_slot(bucket);
        }
        let mut run = bucket.run();
        run.len -= 1;
        if run.len == 0 {
            self.runs.release(run.first_line, run.class);
        } else if run.len <= capacity(run.class) / 3 {
            run = self.shorten(&run, records);
        }
        bucket.set_run(&run);
    }

    fn drop_long_slot(&mut self, bucket: &mut Bucket) {
        let number = bucket.head;
        let long = &mut self.long[number];
        long.last_len -= 1;
        if long.last_len == 0 {
            let run = long.runs.pop().unwrap_or(NONE);
            long.last_len = capacity(CLASS_MAX);
            self.runs.release(run, CLASS_MAX);
        }
        let long = &self.long[number];
        // A quarter below the length that makes a bucket long, so that it does not change with every move.
        if let [only] = *long.runs
            && long.last_len <= capacity(CLASS_MAX) / 4 * 3
        {
            bucket.set_run(&Run { first_line: only, class: CLASS_MAX, len: long.last_len });
            self.long.remove(number);
        }
    }

    /// Moves the lanes of a run that uses a third of them into one of half the length.
    fn shorten(&mut self, run: &Run, records: &mut Records) -> Run {
        let class = run.class.saturating_sub(2);
        if let Some(first_line) = self.runs.allocate(class) {
            let shorter = Run { first_line, class, ..*run };
            self.copy(run, &shorter, records);
            self.runs.release(run.first_line, run.class);
            return shorter;
        }
        // Without memory, half of the old run does; the other half is lost.
        let lanes: Vec<Lane> = (0..run.len).map(|lane| self.runs.lane(&run.slot(lane))).collect();
        let shorter = Run { class, ..*run };
        for (index, lane) in (0..).zip(&lanes) {
            self.set(&shorter.slot(index), lane, records);
        }
        shorter
    }

    /// Moves the lanes of a run into another, which does not overlap it.
    fn copy(&mut self, from: &Run, to: &Run, records: &mut Records) {
        for lane in 0..from.len {
            let held = self.runs.lane(&from.slot(lane));
            self.set(&to.slot(lane), &held, records);
        }
    }

    fn set(&mut self, slot: &Slot, lane: &Lane, records: &mut Records) {
        self.runs.set_lane(slot, lane);
        records.set_slot(lane.owner.record, Some(slot));
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
fn remove(buckets: &mut [Bucket], mut gap: usize) {
    let last = buckets.len() - 1;
    let mut index = gap;
    loop {
        index = (index + 1) & last;
        let bucket = buckets[index];
        if bucket.cell == FREE {
            break;
        }
        let wanted = start(hash(bucket.cell, bucket.cluster), last);
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

#[inline]
fn hash(cell: u64, cluster: u32) -> u64 {
    let key = cell ^ u64::from(cluster).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(key) * 0xd6e8_feb8_6659_fd93;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}
