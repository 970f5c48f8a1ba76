//! The sets, as the device and the host both have them.

use checks::{Sets, Slot};
use kernels::checks::{ABSENT, Change};

use crate::compile::u32_of;

/// The sets as the device has them: in any order, without holes.
pub(crate) struct Members {
    pub(crate) of_set: Vec<Vec<Slot>>,
    /// Where a set has the event of a slot.
    places: Vec<Vec<u32>>,
    /// Room that each set has on the device.
    pub(crate) capacity: usize,
}

impl Members {
    pub(crate) fn new(sets: usize) -> Self {
        Self { of_set: vec![Vec::new(); sets], places: vec![Vec::new(); sets], capacity: 0 }
    }

    /// Takes over what changed, and tells it as the device needs it; whether it was all. Otherwise the sets held something before, and the
    /// device has to be sent all of them.
    pub(crate) fn follow(&mut self, sets: &Sets, changes: &mut Vec<Change>) -> bool {
        for removal in &sets.changes().removed {
            let (set, slot) = (removal.set, removal.slot);
            // One that came and left between two evaluations was never here.
            let at = self.places[set].get(slot as usize).copied().unwrap_or(ABSENT);
            if at == ABSENT {
                continue;
            }
            self.places[set][slot as usize] = ABSENT;
            self.of_set[set].swap_remove(at as usize);
            if let Some(&moved) = self.of_set[set].get(at as usize) {
                self.put(set, at, moved, changes);
            }
        }
        let Some(slot) = sets.changes().added else { return self.is_all(sets) };
        for set in (0..self.of_set.len()).filter(|set| sets.holds(*set, slot)) {
            let at = u32_of(self.of_set[set].len());
            self.of_set[set].push(slot);
            self.put(set, at, slot, changes);
        }
        self.is_all(sets)
    }

    fn is_all(&mut self, sets: &Sets) -> bool {
        let is_all = (0..self.of_set.len()).all(|set| self.of_set[set].len() == sets.count(set));
        if !is_all {
            let count = self.of_set.len();
            let capacity = self.capacity;
            *self = Self { capacity, ..Self::new(count) };
            for set in 0..count {
                for slot in sets.members(set, 0..sets.count(set)) {
                    let at = u32_of(self.of_set[set].len());
                    self.of_set[set].push(slot);
                    self.put(set, at, slot, &mut Vec::new());
                }
            }
        }
        is_all
    }

    fn put(&mut self, set: usize, at: u32, slot: Slot, changes: &mut Vec<Change>) {
        let places = &mut self.places[set];
        if places.len() <= slot as usize {
            places.resize(slot as usize + 1, ABSENT);
        }
        places[slot as usize] = at;
        if at as usize >= self.capacity {
            self.capacity = (2 * self.capacity).max(64);
        }
        changes.push(Change { set: u32_of(set), at, slot });
    }

    pub(crate) fn counts(&self) -> Vec<usize> {
        self.of_set.iter().map(Vec::len).collect()
    }

    /// Slots that there may be.
    pub(crate) fn slots(&self) -> usize {
        self.places.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> usize {
        let words = self.of_set.iter().chain(&self.places).map(Vec::capacity);
        words.sum::<usize>() * size_of::<u32>()
    }
}
