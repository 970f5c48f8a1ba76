//! Names of attributes that occur in the installed filters, with all that is known of each in one place.

use bloomfilter::Bloom;
use hashbrown::HashTable;

use crate::event::Symbol;

/// Names by number, each with what an engine keeps of it. There are thousands of them at most, so they need not grow
/// in parts.
#[derive(Debug, Default)]
pub struct Names<P> {
    /// The hash of each name and its number.
    numbers: HashTable<(u64, u32)>,
    held: Vec<Name<P>>,
    free: Vec<u32>,
}

/// A name, with what is known of it.
#[derive(Clone, Debug)]
pub struct Name<P> {
    symbol: Symbol,
    /// Number of constraints in which it occurs.
    pub uses: u32,
    /// Bits of the name in the masks.
    pub mask: u32,
    /// The engine's own knowledge of the name.
    pub payload: P,
}

impl<P: Default> Names<P> {
    /// No names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The name's number, new if it has to be, with one more use; `None` when numbers are used up.
    pub fn acquire(&mut self, symbol: &Symbol) -> Option<u32> {
        if let Some(number) = self.find(symbol) {
            self.held[number as usize].uses += 1;
            return Some(number);
        }
        let name =
            Name { symbol: symbol.clone(), uses: 1, mask: name_mask(symbol.as_str()), payload: P::default() };
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
}

impl<P> Names<P> {
    /// The number of a name that some filter uses.
    #[inline]
    #[must_use]
    pub fn find(&self, symbol: &Symbol) -> Option<u32> {
        let hash = symbol.hash();
        let is_it =
            |(held, number): &(u64, u32)| *held == hash && self.held[*number as usize].symbol == *symbol;
        self.numbers.find(hash, is_it).map(|(_, number)| *number)
    }

    /// One use less; without any, the name is forgotten and its number is free.
    pub fn release(&mut self, number: u32) {
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

    /// The name with this number.
    ///
    /// # Panics
    /// When the number was never given out.
    #[inline]
    #[must_use]
    pub fn name(&self, number: u32) -> &Name<P> {
        &self.held[number as usize]
    }

    /// The same, to change what the engine keeps.
    ///
    /// # Panics
    /// When the number was never given out.
    pub fn name_mut(&mut self, number: u32) -> &mut Name<P> {
        &mut self.held[number as usize]
    }

    /// One past the largest number given out.
    #[must_use]
    pub fn end(&self) -> usize {
        self.held.len()
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.numbers.allocation_size() + self.held.capacity() * size_of::<Name<P>>()
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
        let mut names = Names::<()>::new();
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
