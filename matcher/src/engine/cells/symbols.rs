//! Names and texts that occur in the installed filters, each held once and counted.

use bloomfilter::Bloom;

use super::paged::Slab;
use super::table::NumberTable;
use crate::event::Symbol;

/// Symbols by number, with how often each is used.
#[derive(Debug)]
pub(super) struct Symbols {
    numbers: NumberTable,
    held: Slab<Option<Held>>,
    mask_of: fn(&str) -> u32,
}

#[derive(Debug)]
struct Held {
    symbol: Symbol,
    uses: u32,
    mask: u32,
}

impl Symbols {
    /// Names have masks.
    pub(super) fn of_names() -> Self {
        Self { numbers: NumberTable::new(), held: Slab::new(), mask_of: name_mask }
    }

    /// Texts have none.
    pub(super) fn of_texts() -> Self {
        Self { numbers: NumberTable::new(), held: Slab::new(), mask_of: |_| 0 }
    }

    #[inline]
    pub(super) fn find(&self, symbol: &Symbol) -> Option<u32> {
        self.numbers.find(symbol.hash(), |number| {
            self.held[*number].as_ref().is_some_and(|held| held.symbol == *symbol)
        })
    }

    /// The symbol's number, new if it has to be, with one more use.
    pub(super) fn acquire(&mut self, symbol: &Symbol) -> Option<u32> {
        if let Some(number) = self.find(symbol) {
            self.held_mut(number).uses += 1;
            return Some(number);
        }
        let number = self.held.insert(Some(Held {
            symbol: symbol.clone(),
            uses: 1,
            mask: (self.mask_of)(symbol.as_str()),
        }))?;
        let held = &self.held;
        self.numbers.insert(symbol.hash(), number, |other| {
            held[*other].as_ref().map_or(0, |other| other.symbol.hash())
        });
        Some(number)
    }

    /// One use less; without any, the symbol is forgotten and its number is free.
    pub(super) fn release(&mut self, number: u32) {
        let held = self.held_mut(number);
        held.uses -= 1;
        if held.uses == 0 {
            let hash = held.symbol.hash();
            self.numbers.remove(hash, number);
            self.held.remove(number);
        }
    }

    pub(super) fn symbol(&self, number: u32) -> &Symbol {
        &self.held[number].as_ref().expect("a number stands for a symbol while it is used").symbol
    }

    /// In how many constraints the symbol occurs.
    pub(super) fn uses(&self, number: u32) -> u32 {
        self.held[number].as_ref().map_or(0, |held| held.uses)
    }

    /// The name's mask.
    #[inline]
    pub(super) fn mask(&self, number: u32) -> u32 {
        self.held[number].as_ref().map_or(0, |held| held.mask)
    }

    /// One past the largest number given out.
    pub(super) fn numbers_end(&self) -> u32 {
        self.held.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.numbers.bytes() + self.held.bytes()
    }

    fn held_mut(&mut self, number: u32) -> &mut Held {
        self.held[number].as_mut().expect("a number stands for a symbol while it is used")
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
    let bytes = bloom.as_slice();
    // The bits come last, after the crate's own header.
    bytes.last_chunk::<4>().map_or(u32::MAX, |bits| u32::from_le_bytes(*bits))
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
    fn a_symbol_is_forgotten_with_its_last_use() {
        let mut symbols = Symbols::of_names();
        let symbol = Symbol::new("speed");
        let number = symbols.acquire(&symbol).unwrap();
        assert_eq!(symbols.acquire(&symbol), Some(number));
        symbols.release(number);
        assert_eq!(symbols.find(&symbol), Some(number));
        symbols.release(number);
        assert_eq!(symbols.find(&symbol), None);
    }
}
