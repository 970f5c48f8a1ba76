//! Numbers without gaps for the ids that callers give out, so that arrays on a device may be indexed by them.

use matcher::compiled::NONE;
use matcher::compiled::slab::Slab;

/// Ids by number and numbers by id. A number is kept for good: callers use their ids again.
#[derive(Debug)]
pub(crate) struct Numbering {
    numbers: Slab<Number>,
    ids: Vec<u32>,
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
        Self { numbers: Slab::new(), ids: Vec::new() }
    }

    /// The number of an id that has been entered.
    pub(crate) fn number(&self, id: u32) -> Option<u32> {
        self.numbers.get(id).map(|number| number.0).filter(|number| *number != NONE)
    }

    /// The number of an id, the next one if it is new.
    pub(crate) fn enter(&mut self, id: u32) -> u32 {
        if let Some(number) = self.number(id) {
            return number;
        }
        // There are fewer than 2^32 ids.
        let number = u32::try_from(self.ids.len()).unwrap_or(NONE);
        self.numbers.grow_to(id);
        self.numbers[id] = Number(number);
        self.ids.push(id);
        number
    }

    /// The id of a number.
    pub(crate) fn id(&self, number: u32) -> u32 {
        self.ids[number as usize]
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of the host's memory.
    pub(crate) fn bytes(&self) -> usize {
        self.numbers.bytes() + self.ids.capacity() * size_of::<u32>()
    }
}
