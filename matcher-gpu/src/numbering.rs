//! Numbers without gaps for the ids that callers give out, so that arrays on a device may be indexed by them.

use matcher::compiled::NONE;
use matcher::compiled::slab::Slab;

/// Ids by number and numbers by id.
#[derive(Debug)]
pub(crate) struct Numbering {
    numbers: Slab<Number>,
    ids: Vec<u32>,
    /// Numbers that were given back.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Number(u32);

impl Default for Number {
    fn default() -> Self {
        Self(NONE)
    }
}

impl Numbering {
    pub(crate) fn new() -> Self {
        Self { numbers: Slab::new(), ids: Vec::new(), free: Vec::new() }
    }

    /// The number of an id that has been entered.
    pub(crate) fn number(&self, id: u32) -> Option<u32> {
        self.numbers.get(id).map(|number| number.0).filter(|number| *number != NONE)
    }

    /// The number of an id; where that is new a free one, or else the next.
    pub(crate) fn enter(&mut self, id: u32) -> u32 {
        if let Some(number) = self.number(id) {
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.ids.push(id);
            // There are fewer than 2^32 ids.
            u32::try_from(self.ids.len() - 1).unwrap_or(NONE)
        });
        self.numbers.grow_to(id);
        self.numbers[id] = Number(number);
        self.ids[number as usize] = id;
        number
    }

    /// Gives the number of an id back, and tells which it was.
    pub(crate) fn leave(&mut self, id: u32) -> Option<u32> {
        let number = self.number(id)?;
        self.numbers[id] = Number(NONE);
        self.free.push(number);
        Some(number)
    }

    /// The id of a number.
    pub(crate) fn id(&self, number: u32) -> u32 {
        self.ids[number as usize]
    }

    /// One past the largest number that was ever in use.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of the host's memory.
    pub(crate) fn bytes(&self) -> usize {
        self.numbers.bytes() + (self.ids.capacity() + self.free.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_gaps_and_are_used_again() {
        let mut numbering = Numbering::new();
        assert_eq!([900, 7, 900, 1].map(|id| numbering.enter(id)), [0, 1, 0, 2]);
        assert_eq!((numbering.leave(7), numbering.leave(7), numbering.number(7)), (Some(1), None, None));
        assert_eq!((numbering.enter(8), numbering.id(1), numbering.len()), (1, 8, 3));
        assert_eq!((numbering.enter(7), numbering.id(3), numbering.len()), (3, 7, 4));
    }
}
