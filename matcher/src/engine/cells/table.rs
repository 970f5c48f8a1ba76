//! Hash tables that grow a part at a time.

use hashbrown::HashTable;

/// Parts. A part of a table of ten million numbers has forty thousand, which are rehashed in well under a
/// millisecond.
const PARTS_COUNT: usize = 256;

/// Which part a hash belongs to, by bits from the middle: hashbrown itself uses both ends.
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS_COUNT
}

/// Numbers found by the hash of what they stand for; the caller compares.
#[derive(Debug)]
pub(super) struct NumberTable {
    parts: Box<[HashTable<u32>]>,
}

impl NumberTable {
    pub(super) fn new() -> Self {
        Self { parts: std::iter::repeat_with(HashTable::new).take(PARTS_COUNT).collect() }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.parts[part(hash)].find(hash, is_it).copied()
    }

    pub(super) fn insert(&mut self, hash: u64, number: u32, rehash: impl Fn(&u32) -> u64) {
        self.parts[part(hash)].insert_unique(hash, number, rehash);
    }

    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(entry) = self.parts[part(hash)].find_entry(hash, |held| *held == number) {
            entry.remove();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(HashTable::allocation_size).sum::<usize>() + size_of_val(&*self.parts)
    }
}

/// Numbers of cells by their key.
#[derive(Debug)]
pub(super) struct CellTable {
    parts: Box<[HashTable<(u64, u32)>]>,
}

impl CellTable {
    pub(super) fn new() -> Self {
        Self { parts: std::iter::repeat_with(HashTable::new).take(PARTS_COUNT).collect() }
    }

    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let hash = spread(key);
        self.parts[part(hash)].find(hash, |(held, _)| *held == key).map(|(_, cell)| *cell)
    }

    pub(super) fn insert(&mut self, key: u64, cell: u32) {
        let hash = spread(key);
        self.parts[part(hash)].insert_unique(hash, (key, cell), |(key, _)| spread(*key));
    }

    pub(super) fn remove(&mut self, key: u64) {
        let hash = spread(key);
        if let Ok(entry) = self.parts[part(hash)].find_entry(hash, |(held, _)| *held == key) {
            entry.remove();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(HashTable::allocation_size).sum::<usize>() + size_of_val(&*self.parts)
    }
}

/// A hash of all bits of a key: the halves of its product with an odd constant, folded.
#[inline]
fn spread(key: u64) -> u64 {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}
