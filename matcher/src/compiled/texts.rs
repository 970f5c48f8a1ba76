//! Texts that occur in the installed filters, each held once and counted.

use super::slab::Slab;
use super::table::NumberTable;
use crate::event::Symbol;

/// Texts by number, with how often each is used.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: NumberTable,
    held: Slab<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    symbol: Symbol,
    uses: u32,
}

impl Texts {
    /// No texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of a text that some filter uses.
    #[inline]
    #[must_use]
    pub fn find(&self, symbol: &Symbol) -> Option<u32> {
        self.numbers.find(symbol.hash(), |number| {
            self.held[*number].as_ref().is_some_and(|held| held.symbol == *symbol)
        })
    }

    /// The text's number, new if it has to be, with one more use.
    pub fn acquire(&mut self, symbol: &Symbol) -> Option<u32> {
        if let Some(number) = self.find(symbol) {
            self.held_mut(number).uses += 1;
            return Some(number);
        }
        let number = self.held.insert(Some(Held { symbol: symbol.clone(), uses: 1 }))?;
        let held = &self.held;
        self.numbers.insert(symbol.hash(), number, |other| {
            held[*other].as_ref().map_or(0, |other| other.symbol.hash())
        });
        Some(number)
    }

    /// One use less; without any, the text is forgotten and its number is free.
    pub fn release(&mut self, number: u32) {
        let held = self.held_mut(number);
        held.uses -= 1;
        if held.uses == 0 {
            let hash = held.symbol.hash();
            self.numbers.remove(hash, number);
            self.held.remove(number);
        }
    }

    /// The text of a number.
    ///
    /// # Panics
    /// When nobody uses it.
    #[must_use]
    pub fn symbol(&self, number: u32) -> &Symbol {
        &self.held[number].as_ref().expect("a number stands for a symbol while it is used").symbol
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.numbers.bytes() + self.held.bytes()
    }

    fn held_mut(&mut self, number: u32) -> &mut Held {
        self.held[number].as_mut().expect("a number stands for a symbol while it is used")
    }
}
