//! Buckets of filters by cell and access key: a hash table whose groups are cache lines.
//!
//! Four consecutive access keys of a cell share a group. Names that came in together have consecutive keys and are
//! mostly asked for together, so an event reads a line or two for each cell.

use super::lines::{LANES, Lane, Lines, RUN_CLASS_MAX};
use super::paged::Slab;
use super::records::{NONE, Records};

/// Parts that grow on their own. A part of a table of ten million groups has ten thousand, which are copied in well
/// under a millisecond.
const PARTS_COUNT: usize = 1024;
const GROUPS_MIN: usize = 4;
/// The key of a free group.
const FREE: u64 = u64::MAX;
const CHAIN_NONE: u32 = (1 << 28) - 1;

/// Lines to be pre-tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) line: u32,
    pub(super) len: u32,
}

/// The 32-bit numbers of lines are used up, or the memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// All buckets, and the lines that their filters lie in.
#[derive(Debug)]
pub(super) struct Buckets {
    parts: Box<[Part]>,
    lines: Lines,
    full_runs: Slab<FullRun>,
}

#[derive(Debug, Default)]
struct Part {
    /// A power of two of them, or none; probed linearly.
    groups: Vec<Group>,
    used: usize,
}

/// The buckets of four access keys of a cell, as a structure of arrays.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Group {
    cell: u64,
    /// The keys without their two low bits, which are the lane.
    accesses: u32,
    line: [u32; 4],
    len: [u32; 4],
    class_chain: [u32; 4],
}

impl Default for Group {
    fn default() -> Self {
        Self { cell: FREE, accesses: 0, line: [NONE; 4], len: [0; 4], class_chain: [CHAIN_NONE; 4] }
    }
}

/// Filters of one access key in one cell.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// First line of the run that grows and shrinks; `NONE` when the bucket is empty.
    line: u32,
    /// Filters in that run.
    len: u32,
    /// Its class in the high four bits; below, the number of the first full run behind it.
    class_chain: u32,
}

/// A run of the largest class without a free lane, behind the growing one.
#[derive(Clone, Copy, Debug, Default)]
struct FullRun {
    line: u32,
    next: u32,
}

impl Buckets {
    pub(super) fn new() -> Self {
        Self {
            parts: std::iter::repeat_with(Part::default).take(PARTS_COUNT).collect(),
            lines: Lines::default(),
            full_runs: Slab::new(),
        }
    }

    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(super) fn lines_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }

    /// Passes on the runs of a cell that lie under four access keys, of those whose lanes are set.
    #[inline]
    pub(super) fn visit(&self, cell: u64, accesses: u32, lanes: u32, mut visit: impl FnMut(Run)) {
        let hash = hash(cell, accesses);
        let part = &self.parts[part_of(hash)];
        let Some(group) = part.find(hash, cell, accesses) else { return };
        let group = &part.groups[group];
        let mut lanes = lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize & 3;
            lanes &= lanes - 1;
            if group.line[lane] == NONE {
                continue;
            }
            visit(Run { line: group.line[lane], len: group.len[lane] });
            let mut chain = group.class_chain[lane] & CHAIN_NONE;
            while chain != CHAIN_NONE {
                let full = self.full_runs[chain];
                visit(Run { line: full.line, len: LANES << RUN_CLASS_MAX });
                chain = full.next;
            }
        }
    }

    /// Reads where a change of this bucket will look first and so brings it near.
    #[inline]
    pub(super) fn touch(&self, cell: u64, access: u32) -> u32 {
        let hash = hash(cell, access >> 2);
        let groups = &self.parts[part_of(hash)].groups;
        groups.len().checked_sub(1).map_or(0, |last| groups[start(hash, last)].accesses)
    }

    /// Adds a filter to a bucket; answers the slot it got.
    pub(super) fn push(
        &mut self,
        records: &mut Records,
        cell: u64,
        access: u32,
        lane: &Lane,
    ) -> Result<u32, Full> {
        let Self { parts, lines, full_runs } = self;
        let hash = hash(cell, access >> 2);
        parts[part_of(hash)].change(hash, cell, access, |bucket| {
            bucket.make_room(lines, full_runs, records)?;
            let slot = bucket.line * LANES + bucket.len;
            lines.set_lane(slot, lane);
            bucket.len += 1;
            Ok(slot)
        })
    }

    /// Takes the filter in a slot out of its bucket. The last one fills the gap, so runs have none.
    pub(super) fn remove(&mut self, records: &mut Records, cell: u64, access: u32, slot: u32) {
        let Self { parts, lines, full_runs } = self;
        let hash = hash(cell, access >> 2);
        parts[part_of(hash)].change(hash, cell, access, |bucket| {
            let last = bucket.line * LANES + bucket.len - 1;
            if slot != last {
                let lane = lines.lane(last);
                lines.set_lane(slot, &lane);
                records.set_slot(lane.entry, slot);
            }
            bucket.len -= 1;
            bucket.give_room(lines, full_runs, records);
        });
    }

    pub(super) fn bytes(&self) -> usize {
        let groups: usize = self.parts.iter().map(|part| part.groups.capacity()).sum();
        groups * size_of::<Group>() + size_of_val(&*self.parts) + self.lines.bytes() + self.full_runs.bytes()
    }
}

impl Part {
    #[inline]
    fn find(&self, hash: u64, cell: u64, accesses: u32) -> Option<usize> {
        let last = self.groups.len().checked_sub(1)?;
        let mut index = start(hash, last);
        loop {
            let group = &self.groups[index];
            if group.cell == cell && group.accesses == accesses {
                return Some(index);
            }
            if group.cell == FREE {
                return None;
            }
            index = (index + 1) & last;
        }
    }

    /// Changes a bucket. Its group is made if it has to be, and goes with its last filter.
    fn change<T>(&mut self, hash: u64, cell: u64, access: u32, change: impl FnOnce(&mut Bucket) -> T) -> T {
        let index = match self.find(hash, cell, access >> 2) {
            Some(index) => index,
            None => self.add(hash, cell, access >> 2),
        };
        let group = &mut self.groups[index];
        let lane = access as usize & 3;
        let mut bucket =
            Bucket { line: group.line[lane], len: group.len[lane], class_chain: group.class_chain[lane] };
        let result = change(&mut bucket);
        (group.line[lane], group.len[lane], group.class_chain[lane]) =
            (bucket.line, bucket.len, bucket.class_chain);
        if group.line == [NONE; 4] {
            self.remove(index);
        }
        result
    }

    fn add(&mut self, hash: u64, cell: u64, accesses: u32) -> usize {
        // A quarter stays free, so that searches end soon.
        if (self.used + 1) * 4 > self.groups.len() * 3 {
            let doubled = vec![Group::default(); (self.groups.len() * 2).max(GROUPS_MIN)];
            for group in std::mem::replace(&mut self.groups, doubled) {
                if group.cell != FREE {
                    let index = self.free_index(self::hash(group.cell, group.accesses));
                    self.groups[index] = group;
                }
            }
        }
        let index = self.free_index(hash);
        self.groups[index] = Group { cell, accesses, ..Group::default() };
        self.used += 1;
        index
    }

    fn free_index(&self, hash: u64) -> usize {
        let last = self.groups.len() - 1;
        let mut index = start(hash, last);
        while self.groups[index].cell != FREE {
            index = (index + 1) & last;
        }
        index
    }

    /// Frees a group and moves those behind it that a search would no longer reach.
    fn remove(&mut self, mut gap: usize) {
        let last = self.groups.len() - 1;
        let mut index = gap;
        loop {
            index = (index + 1) & last;
            let group = self.groups[index];
            if group.cell == FREE {
                break;
            }
            let wanted = start(hash(group.cell, group.accesses), last);
            if index.wrapping_sub(wanted) & last >= index.wrapping_sub(gap) & last {
                self.groups[gap] = group;
                gap = index;
            }
        }
        self.groups[gap] = Group::default();
        self.used -= 1;
    }
}

impl Bucket {
    fn class(&self) -> u8 {
        (self.class_chain >> 28) as u8
    }

    fn chain(&self) -> u32 {
        self.class_chain & CHAIN_NONE
    }

    fn capacity(&self) -> u32 {
        LANES << self.class()
    }

    fn set_run(&mut self, line: u32, class: u8, chain: u32) {
        self.line = line;
        self.class_chain = u32::from(class) << 28 | chain;
    }

    /// Makes sure that the growing run has a free lane.
    fn make_room(
        &mut self,
        lines: &mut Lines,
        full_runs: &mut Slab<FullRun>,
        records: &mut Records,
    ) -> Result<(), Full> {
        if self.line == NONE {
            self.set_run(lines.allocate(0).ok_or(Full)?, 0, CHAIN_NONE);
        } else if self.len == self.capacity() {
            if self.class() < RUN_CLASS_MAX {
                return self.resize(self.class() + 1, lines, records);
            }
            let line = lines.allocate(0).ok_or(Full)?;
            let full = full_runs.insert(FullRun { line: self.line, next: self.chain() });
            self.set_run(line, 0, full.filter(|full| *full < CHAIN_NONE).ok_or(Full)?);
            self.len = 0;
        }
        Ok(())
    }

    /// Gives back a run that is empty, or all but.
    fn give_room(&mut self, lines: &mut Lines, full_runs: &mut Slab<FullRun>, records: &mut Records) {
        if self.len == 0 {
            lines.release(self.line, self.class());
            if self.chain() == CHAIN_NONE {
                self.set_run(NONE, 0, CHAIN_NONE);
            } else {
                let full = full_runs.remove(self.chain());
                self.set_run(full.line, RUN_CLASS_MAX, full.next);
                self.len = LANES << RUN_CLASS_MAX;
            }
        } else if self.len <= self.capacity() / 8 && self.class() > 0 {
            // Without memory for a smaller run the larger one does as well.
            let _ = self.resize(self.class().saturating_sub(2), lines, records);
        }
    }

    /// Moves the growing run into one of another class.
    fn resize(&mut self, class: u8, lines: &mut Lines, records: &mut Records) -> Result<(), Full> {
        let line = lines.allocate(class).ok_or(Full)?;
        for index in 0..self.len {
            let lane = lines.lane(self.line * LANES + index);
            lines.set_lane(line * LANES + index, &lane);
            records.set_slot(lane.entry, line * LANES + index);
        }
        lines.release(self.line, self.class());
        self.set_run(line, class, self.chain());
        Ok(())
    }
}

/// Where the search for a group starts.
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
fn hash(cell: u64, accesses: u32) -> u64 {
    let key = cell ^ u64::from(accesses).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(key) * 0xd6e8_feb8_6659_fd93;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}
