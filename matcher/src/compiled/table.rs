//! A hash table of 32-bit numbers that grows a part at a time.

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
pub struct NumberTable {
    parts: Box<[HashTable<u32>]>,
}

impl Default for NumberTable {
    fn default() -> Self {
        Self { parts: std::iter::repeat_with(HashTable::new).take(PARTS_COUNT).collect() }
    }
}

impl NumberTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number with this hash that is the one looked for.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.parts[part(hash)].find(hash, is_it).copied()
    }

    /// Adds a number; `rehash` gives the hash of any that is held.
    pub fn insert(&mut self, hash: u64, number: u32, rehash: impl Fn(&u32) -> u64) {
        self.parts[part(hash)].insert_unique(hash, number, rehash);
    }

    /// Takes a number out.
    pub fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(entry) = self.parts[part(hash)].find_entry(hash, |held| *held == number) {
            entry.remove();
        }
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(HashTable::allocation_size).sum::<usize>() + size_of_val(&*self.parts)
    }
}
