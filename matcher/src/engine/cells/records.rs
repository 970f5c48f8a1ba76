//! Records of filters, side by side: where each filter lies, what it belongs to, and its constraints.
//!
//! A record is a header of 32 bytes and the words of the constraints; the number of an entry is where its record is.
//! A filter that passed the pre-test costs one place in memory to decide.

use super::arena::LINE_BYTES;
use super::clusters::Membership;
use super::pages::{PAGE_BYTES, Pages};
use super::runs::Slot;
use crate::compiled::NONE;

/// Records start at multiples of this.
const BLOCK_BYTES: usize = 32;
const BLOCKS_PER_LINE: usize = LINE_BYTES / BLOCK_BYTES;
const BLOCKS_PER_PAGE: usize = PAGE_BYTES / BLOCK_BYTES;
/// Words of 32 constraints of at most three words.
const CONSTRAINT_WORDS_MAX: usize = 32 * 3;
const BLOCKS_MAX: usize = 1 + CONSTRAINT_WORDS_MAX / 4;

/// Numbers of records are below this: their owners in the runs keep a bit for themselves.
const RECORDS_END: usize = 1 << 31;

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Where it lies in the grid's runs; `None` while it is nowhere.
    pub(super) slot: Option<Slot>,
    pub(super) membership: Membership,
    /// Mask of the names that the filter requires.
    pub(super) mask: u32,
    pub(super) subscription: u32,
    pub(super) shape: u32,
    /// Words of the constraints.
    pub(super) words: u32,
    /// The bundle that its filter belongs to, or `NONE`.
    pub(super) bundle: u32,
}

/// All records.
#[derive(Debug)]
pub(super) struct Records {
    pages: Pages,
    /// Blocks given out at least once.
    fresh: usize,
    /// Free places by length in blocks.
    free: Vec<Vec<u32>>,
    used: usize,
}

impl Records {
    pub(super) fn new() -> Self {
        Self { pages: Pages::default(), fresh: 0, free: vec![Vec::new(); BLOCKS_MAX + 1], used: 0 }
    }

    /// A new record; `None` when numbers or memory are used up. The header's `words` is set here.
    pub(super) fn insert(&mut self, mut header: Header, constraints: &[u64]) -> Option<u32> {
        header.words = u32::try_from(constraints.len()).ok()?;
        let record = self.allocate(blocks(constraints.len()))?;
        self.set_header(record, header);
        let words = self.pages.bytes_mut((record as usize + 1) * BLOCK_BYTES, size_of_val(constraints));
        words.copy_from_slice(bytemuck::cast_slice(constraints));
        self.used += 1;
        Some(record)
    }

    pub(super) fn remove(&mut self, record: u32) {
        let words = self.header(record).words;
        self.free[blocks(words as usize)].push(record);
        self.used -= 1;
    }

    /// Records in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) fn header(&self, record: u32) -> Header {
        let [first_line, cluster, mask, subscription, shape, lane, words_required, bundle] =
            *self.fields(record);
        let (words, required) = (words_required >> 8, (words_required & 0xff) as u8);
        let membership = Membership { cluster, required };
        Header { slot: slot(first_line, lane), membership, mask, subscription, shape, words, bundle }
    }

    /// Where the record's filter lies; `None` while it is nowhere.
    #[inline]
    pub(super) fn slot(&self, record: u32) -> Option<Slot> {
        let fields = self.fields(record);
        slot(fields[0], fields[5])
    }

    /// Reads one word of the record and so brings it near.
    #[inline]
    pub(super) fn touch(&self, record: u32) -> u32 {
        self.fields(record)[0]
    }

    #[inline]
    pub(super) fn constraints(&self, record: u32, header: &Header) -> &[u64] {
        let bytes = header.words as usize * size_of::<u64>();
        bytemuck::cast_slice(self.pages.bytes((record as usize + 1) * BLOCK_BYTES, bytes))
    }

    #[inline]
    pub(super) fn set_slot(&mut self, record: u32, slot: Option<&Slot>) {
        let fields = self.fields_mut(record);
        (fields[0], fields[5]) = slot_fields(slot);
    }

    fn set_header(&mut self, record: u32, header: Header) {
        let Header { slot, membership, mask, subscription, shape, words, bundle } = header;
        let Membership { cluster, required } = membership;
        let (first_line, lane) = slot_fields(slot.as_ref());
        let words_required = words << 8 | u32::from(required);
        *self.fields_mut(record) =
            [first_line, cluster, mask, subscription, shape, lane, words_required, bundle];
    }

    pub(super) fn set_bundle(&mut self, record: u32, bundle: u32) {
        self.fields_mut(record)[7] = bundle;
    }

    /// The contents of so many lines from a block on.
    #[inline]
    pub(super) fn lines(&self, block: u32, lines: usize) -> &[u8] {
        self.pages.bytes(block as usize * BLOCK_BYTES, lines * LINE_BYTES)
    }

    #[inline]
    pub(super) fn lines_mut(&mut self, block: u32, lines: usize) -> &mut [u8] {
        self.pages.bytes_mut(block as usize * BLOCK_BYTES, lines * LINE_BYTES)
    }

    /// What a block holds.
    #[inline]
    pub(super) fn block(&self, block: u32) -> &[u8; BLOCK_BYTES] {
        bytemuck::from_bytes(self.pages.bytes(block as usize * BLOCK_BYTES, BLOCK_BYTES))
    }

    /// The first block of so many lines with whatever was in them, for what is not a record.
    pub(super) fn allocate_lines(&mut self, lines: usize) -> Option<u32> {
        let blocks = lines * BLOCKS_PER_LINE;
        if self.free[blocks].is_empty() && !self.fresh.is_multiple_of(BLOCKS_PER_LINE) {
            // What is read together is to be in one line.
            let hole = self.allocate_fresh(1)?;
            self.free[1].push(hole);
        }
        self.allocate(blocks)
    }

    pub(super) fn release_lines(&mut self, block: u32, lines: usize) {
        self.free[lines * BLOCKS_PER_LINE].push(block);
    }

    fn fields(&self, record: u32) -> &[u32; 8] {
        bytemuck::from_bytes(self.pages.bytes(record as usize * BLOCK_BYTES, BLOCK_BYTES))
    }

    fn fields_mut(&mut self, record: u32) -> &mut [u32; 8] {
        bytemuck::from_bytes_mut(self.pages.bytes_mut(record as usize * BLOCK_BYTES, BLOCK_BYTES))
    }

    fn allocate(&mut self, blocks: usize) -> Option<u32> {
        match self.free[blocks].pop() {
            Some(record) => Some(record),
            None => self.allocate_fresh(blocks),
        }
    }

    fn allocate_fresh(&mut self, blocks: usize) -> Option<u32> {
        if self.fresh + blocks > self.pages.count() * BLOCKS_PER_PAGE {
            self.retire_rest();
            if (self.pages.count() + 1) * BLOCKS_PER_PAGE > RECORDS_END {
                return None;
            }
            self.pages.add()?;
        }
        let record = u32::try_from(self.fresh).ok()?;
        self.pages.reserve((self.fresh + blocks) * BLOCK_BYTES)?;
        self.fresh += blocks;
        if self.fresh % BLOCKS_PER_PAGE > BLOCKS_PER_PAGE / 4 {
            self.pages.prepare();
        }
        Some(record)
    }

    /// Turns the rest of the last page into a free place.
    fn retire_rest(&mut self) {
        let end = self.pages.count() * BLOCKS_PER_PAGE;
        if let Ok(rest) = u32::try_from(self.fresh)
            && end > self.fresh
        {
            self.free[end - self.fresh].push(rest);
        }
        self.fresh = end;
    }

    pub(super) fn bytes(&self) -> usize {
        let free: usize = self.free.iter().map(|places| places.capacity() * size_of::<u32>()).sum();
        self.fresh * BLOCK_BYTES + free
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "its parts")]
fn slot(first_line: u32, lane: u32) -> Option<Slot> {
    (first_line != NONE).then_some(Slot {
        first_line,
        class: (lane >> 16) as u8,
        crowded: lane >> 24 != 0,
        lane: lane as u16,
    })
}

#[inline]
fn slot_fields(slot: Option<&Slot>) -> (u32, u32) {
    slot.map_or((NONE, 0), |slot| {
        let lane = u32::from(slot.crowded) << 24 | u32::from(slot.class) << 16 | u32::from(slot.lane);
        (slot.first_line, lane)
    })
}

fn blocks(words: usize) -> usize {
    1 + words.div_ceil(BLOCK_BYTES / size_of::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(shape: u32) -> Header {
        Header {
            slot: None,
            membership: Membership { cluster: 1, required: 255 },
            mask: 2,
            subscription: 3,
            shape,
            words: 0,
            bundle: NONE,
        }
    }

    #[test]
    fn records_keep_what_they_are_given_and_places_come_back() {
        let mut records = Records::new();
        let long = records.insert(header(7), &[9; CONSTRAINT_WORDS_MAX]).unwrap();
        let short = records.insert(header(8), &[]).unwrap();
        let slot = Slot { first_line: 6, class: 9, crowded: true, lane: 63 };
        records.set_slot(long, Some(&slot));
        let held = records.header(long);
        assert_eq!((held.slot, held.shape, held.words), (Some(slot), 7, 96));
        assert_eq!(records.constraints(long, &held), [9; CONSTRAINT_WORDS_MAX]);
        assert!(records.constraints(short, &records.header(short)).is_empty());
        records.remove(long);
        assert_eq!(records.insert(header(1), &[1; 95]), Some(long));
        assert_eq!(records.used(), 2);
    }

    #[test]
    fn records_do_not_straddle_pages() {
        let mut records = Records::new();
        let per_page = BLOCKS_PER_PAGE / BLOCKS_MAX;
        for _ in 0..per_page {
            records.insert(header(0), &[1; CONSTRAINT_WORDS_MAX]).unwrap();
        }
        let next = records.insert(header(0), &[2; CONSTRAINT_WORDS_MAX]).unwrap();
        assert_eq!(next as usize, BLOCKS_PER_PAGE);
        assert_eq!(records.constraints(next, &records.header(next)), [2; CONSTRAINT_WORDS_MAX]);
    }
}
