//! Names of attributes that occur in the installed filters, with all that is known of each in one place.

use bloomfilter::Bloom;

use super::NONE;
use crate::event::Symbol;

/// Names by number, each with what an engine keeps of it. There are thousands of them at most, so they need not grow
/// in parts.
#[derive(Debug, Default)]
pub struct Names<P> {
    /// At least twice as many as there are names, a power of two. A name stands where its hash says, or in the next free place. All
    /// that is asked of each attribute of each event is in one place: hashbrown takes half as long again.
    slots: Vec<Slot>,
    held: Vec<Name<P>>,
    free: Vec<u32>,
}

/// A place for a name, with what is asked for most.
#[derive(Clone, Debug)]
struct Slot {
    symbol: Symbol,
    /// [`NONE`] while the place is free.
    number: u32,
    mask: u32,
}

impl Slot {
    fn free() -> Self {
        Self { symbol: Symbol::new(""), number: NONE, mask: 0 }
    }
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
        let mask = name_mask(symbol.as_str());
        let name = Name { symbol: symbol.clone(), uses: 1, mask, payload: P::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.held[number as usize] = name;
                number
            }
            None => {
                let number = u32::try_from(self.held.len()).ok().filter(|number| *number != NONE)?;
                self.held.push(name);
                number
            }
        };
        if 2 * (self.held.len() - self.free.len()) > self.slots.len() {
            let free = vec![Slot::free(); SLOTS_MIN.max(2 * self.slots.len())];
            let before = std::mem::replace(&mut self.slots, free);
            before.into_iter().filter(|slot| slot.number != NONE).for_each(|slot| self.put(slot));
        }
        self.put(Slot { symbol: symbol.clone(), number, mask });
        Some(number)
    }
}

impl<P> Names<P> {
    /// The number of a name that some filter uses.
    #[inline]
    #[must_use]
    pub fn find(&self, symbol: &Symbol) -> Option<u32> {
        self.find_with_mask(symbol).map(|(number, _)| number)
    }

    /// The number and the mask of a name that some filter uses.
    #[inline]
    #[must_use]
    pub fn find_with_mask(&self, symbol: &Symbol) -> Option<(u32, u32)> {
        let mut at = self.home(symbol);
        loop {
            let slot = self.slots.get(at).filter(|slot| slot.number != NONE)?;
            if slot.symbol == *symbol {
                return Some((slot.number, slot.mask));
            }
            at = self.after(at);
        }
    }

    /// Where a name stands if that place was free.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits say where")]
    fn home(&self, symbol: &Symbol) -> usize {
        symbol.hash() as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// Puts a name that is not there into the next free place.
    fn put(&mut self, slot: Slot) {
        let mut at = self.home(&slot.symbol);
        while self.slots[at].number != NONE {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    /// Frees the place of a number. Names behind it that stood aside for it move up, so that they are found.
    fn take_out(&mut self, number: u32) {
        let mut hole = self.home(&self.held[number as usize].symbol);
        while self.slots[hole].number != number {
            hole = self.after(hole);
        }
        let mut at = self.after(hole);
        while self.slots[at].number != NONE {
            let last = self.slots.len() - 1;
            let from_home = at.wrapping_sub(self.home(&self.slots[at].symbol)) & last;
            if from_home >= at.wrapping_sub(hole) & last {
                self.slots.swap(hole, at);
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole] = Slot::free();
    }

    /// One use less; without any, the name is forgotten and its number is free.
    pub fn release(&mut self, number: u32) {
        let name = &mut self.held[number as usize];
        name.uses -= 1;
        if name.uses > 0 {
            return;
        }
        self.take_out(number);
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
        self.slots.capacity() * size_of::<Slot>() + self.held.capacity() * size_of::<Name<P>>()
    }
}

/// Places for names at first.
const SLOTS_MIN: usize = 16;

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
        assert_eq!(names.find(&Symbol::new("")), None);
    }

    #[test]
    fn names_that_come_and_go_in_any_order_are_found_as_in_a_map() {
        let symbols: Vec<Symbol> = (0..300).map(|index| Symbol::new(format!("name{index}"))).collect();
        let mut names = Names::<()>::new();
        let mut held = std::collections::HashMap::new();
        let mut state = 1_u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Fewer at first, so that some go while the table is small.
            let index = (state >> 33) as usize % if step < 2_000 { 20 } else { symbols.len() };
            match held.remove(&index) {
                Some(number) => names.release(number),
                None => {
                    held.insert(index, names.acquire(&symbols[index]).unwrap());
                }
            }
            for index in [index, (index + 1) % 300, (state >> 50) as usize % 300] {
                assert_eq!(
                    names.find(&symbols[index]),
                    held.get(&index).copied(),
                    "step {step}, name {index}"
                );
            }
        }
        for (index, symbol) in symbols.iter().enumerate() {
            let found = names.find_with_mask(symbol);
            assert_eq!(found, held.get(&index).map(|number| (*number, name_mask(symbol.as_str()))));
        }
    }
}
