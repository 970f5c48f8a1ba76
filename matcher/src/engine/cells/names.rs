//! Names of attributes that occur in the installed filters, with all that is known of each in one place.

use bloomfilter::Bloom;
use hashbrown::HashTable;

use crate::event::Symbol;

/// Names by number. There are thousands of them at most, so they need not grow in parts.
#[derive(Debug)]
pub(super) struct Names {
    /// The hash of each name and its number.
    numbers: HashTable<(u64, u32)>,
    held: Vec<Name>,
    free: Vec<u32>,
}

/// What is known of a name.
#[derive(Clone, Debug)]
pub(super) struct Name {
    symbol: Symbol,
    /// In how many constraints it occurs.
    pub(super) uses: u32,
    /// Its bits in the masks.
    pub(super) mask: u32,
    /// The clusters that have it among their names, those of values aside.
    pub(super) clusters: Vec<u32>,
    /// How many clusters are of one of its values.
    pub(super) value_clusters: u32,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { numbers: HashTable::new(), held: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn find(&self, symbol: &Symbol) -> Option<u32> {
        let hash = symbol.hash();
        let is_it = |(held, number): &(u64, u32)| {
            *held == hash && self.held[*number as usize].symbol.as_str() == symbol.as_str()
        };
        self.numbers.find(hash, is_it).map(|(_, number)| *number)
    }

    /// The name's number, new if it has to be, with one more use.
    pub(super) fn acquire(&mut self, symbol: &Symbol) -> Option<u32> {
        if let Some(number) = self.find(symbol) {
            self.held[number as usize].uses += 1;
            return Some(number);
        }
        let name = Name {
            symbol: symbol.clone(),
            uses: 1,
            mask: name_mask(symbol.as_str()),
            clusters: Vec::new(),
            value_clusters: 0,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.held[number as usize] = name;
                number
            }
            None => {
                self.held.push(name);
                u32::try_from(self.held.len() - 1).ok()?
            }
        };
        self.numbers.insert_unique(symbol.hash(), (symbol.hash(), number), |(hash, _)| *hash);
        Some(number)
    }

    /// One use less; without any, the name is forgotten and its number is free.
    pub(super) fn release(&mut self, number: u32) {
        let name = &mut self.held[number as usize];
        name.uses -= 1;
        if name.uses > 0 {
            return;
        }
        if let Ok(entry) = self.numbers.find_entry(name.symbol.hash(), |(_, held)| *held == number) {
            entry.remove();
        }
        self.free.push(number);
    }

    #[inline]
    pub(super) fn name(&self, number: u32) -> &Name {
        &self.held[number as usize]
    }

    pub(super) fn name_mut(&mut self, number: u32) -> &mut Name {
        &mut self.held[number as usize]
    }

    /// One past the largest number given out.
    pub(super) fn end(&self) -> usize {
        self.held.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.numbers.allocation_size() + self.held.capacity() * size_of::<Name>()
    }
}

/// The 32-bit mask of a name: a Bloom filter of four bytes laid out for six names (CLCB, section 4.3, where 32
/// bits keep false positives near 10 % for that many). Masks of several names are or-ed.
fn name_mask(name: &str) -> u32 {
    /// Fixed, so that masks are the same in every process and on every device.
    const SEED: [u8; 32] = *b"nearcast name masks, version 1..";
    let mut bloom: Bloom<str> =
        Bloom::new_with_seed(4, 6, &SEED).expect("four bytes for six names are valid sizes");
    bloom.set(name);
    // The bits come last, after the crate's own header.
    bloom.as_slice().last_chunk::<4>().map_or(u32::MAX, |bits| u32::from_le_bytes(*bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_few_bits_and_differ() {
        let masks: Vec<u32> = (0..100).map(|index| name_mask(&format!("name{index}"))).collect();
        assert!(masks.iter().all(|mask| (1..=6).contains(&mask.count_ones())), "{masks:x?}");
        let distinct: std::collections::BTreeSet<_> = masks.iter().collect();
        // The crate's double hashing modulo 32 has about a thousand outcomes, so a few of a hundred coincide.
        assert!(distinct.len() > 85, "{}", distinct.len());
    }

    #[test]
    fn a_name_is_forgotten_with_its_last_use() {
        let mut names = Names::new();
        let symbol = Symbol::new("speed");
        let number = names.acquire(&symbol).unwrap();
        assert_eq!(names.acquire(&symbol), Some(number));
        names.release(number);
        assert_eq!(names.find(&symbol), Some(number));
        names.release(number);
        assert_eq!(names.find(&symbol), None);
        assert_eq!(names.acquire(&Symbol::new("status")), Some(number));
    }
}
