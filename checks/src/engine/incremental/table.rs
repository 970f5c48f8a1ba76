//! Intermediate results of a node: assignments that make its matrix true.
//!
//! What was removed stays until the evaluation has ended, so that the links before it can be told from those after it.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use crate::sets::Slot;

/// Hashes slots, which are given out in turn and not by anybody outside.
pub(super) type SlotHash = FixedState;

/// Assignments of one node. An assignment is a slot for each of its variables, the node's own last; those with equal slots but the last
/// are a group, whose count says whether the node is true for them.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Slots in an assignment.
    width: usize,
    /// Slots of all results, one after the other.
    slots: Vec<Slot>,
    /// Places of each result in the lists of its events.
    places: Vec<u32>,
    results: Vec<Held>,
    free: Vec<u32>,
    by_slots: HashTable<u32>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    by_key: HashTable<u32>,
    /// Results of each event, as result and position in it.
    by_event: HashMap<Slot, Vec<(u32, u32)>, SlotHash>,
    touched: Vec<u32>,
    touched_groups: Vec<u32>,
}

/// One assignment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    group: u32,
    /// Its place in the group.
    place: u32,
    /// Whether it was there at the evaluation before.
    pub(super) was: bool,
    /// Whether it is there.
    pub(super) is: bool,
    /// Whether its links are others than at the evaluation before, though it was there and is.
    pub(super) is_dirty: bool,
    is_touched: bool,
}

/// Assignments that differ in the node's own variable alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// One of them, for the slots that they share.
    key: Box<[Slot]>,
    pub(super) results: Vec<u32>,
    count: u32,
    was: bool,
    is_touched: bool,
    /// Results that came, went or are dirty.
    pub(super) touched: Vec<u32>,
}

impl Group {
    /// Whether it made the node true at the evaluation before.
    pub(super) fn was(&self) -> bool {
        self.was
    }

    /// Whether it makes the node true.
    pub(super) fn is(&self) -> bool {
        self.count > 0
    }

    /// The slots of its variables.
    pub(super) fn key(&self) -> &[Slot] {
        &self.key
    }
}

fn hash(slots: &[Slot]) -> u64 {
    SlotHash::default().hash_one(slots)
}

impl Table {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// How many results there are, removed ones included.
    pub(super) fn len(&self) -> usize {
        self.results.len() - self.free.len()
    }

    pub(super) fn slots(&self, result: u32) -> &[Slot] {
        &self.slots[result as usize * self.width..][..self.width]
    }

    pub(super) fn result(&self, result: u32) -> Held {
        self.results[result as usize]
    }

    pub(super) fn group(&self, key: &[Slot]) -> Option<&Group> {
        let found = self.by_key.find(hash(key), |&group| *self.groups[group as usize].key == *key)?;
        Some(&self.groups[*found as usize])
    }

    /// The result with these slots.
    pub(super) fn find(&self, slots: &[Slot]) -> Option<u32> {
        self.by_slots.find(hash(slots), |&result| self.slots(result) == slots).copied()
    }

    /// The groups in which something changed.
    pub(super) fn touched_groups(&self) -> impl Iterator<Item = &Group> {
        self.touched_groups.iter().map(|&group| &self.groups[group as usize])
    }

    /// Whether an event has results, and which, with the position of the event in each.
    pub(super) fn of_event(&self, slot: Slot) -> &[(u32, u32)] {
        self.by_event.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// Adds a result, if it is not there.
    pub(super) fn add(&mut self, slots: &[Slot]) {
        let result = self.find(slots).unwrap_or_else(|| self.insert(slots));
        let held = &mut self.results[result as usize];
        if !held.is {
            held.is = true;
            self.groups[held.group as usize].count += 1;
            self.touch(result);
        }
    }

    /// Takes a result away.
    pub(super) fn remove(&mut self, result: u32) {
        let held = &mut self.results[result as usize];
        if held.is {
            held.is = false;
            self.groups[held.group as usize].count -= 1;
            self.touch(result);
        }
    }

    /// Notes that the links of a result changed.
    pub(super) fn mark(&mut self, result: u32) {
        self.results[result as usize].is_dirty = true;
        self.touch(result);
    }

    fn touch(&mut self, result: u32) {
        let held = &mut self.results[result as usize];
        if held.is_touched {
            return;
        }
        held.is_touched = true;
        self.touched.push(result);
        let group = &mut self.groups[held.group as usize];
        group.touched.push(result);
        if !group.is_touched {
            group.is_touched = true;
            self.touched_groups.push(held.group);
        }
    }

    fn insert(&mut self, slots: &[Slot]) -> u32 {
        let index = |length: usize| u32::try_from(length).expect("results are bounded");
        let key = &slots[..self.width - 1];
        let key_hash = hash(key);
        let known = self.by_key.find(key_hash, |&group| *self.groups[group as usize].key == *key).copied();
        let group = known.unwrap_or_else(|| {
            let group = self.free_groups.pop().unwrap_or_else(|| {
                self.groups.push(Group::default());
                index(self.groups.len() - 1)
            });
            self.groups[group as usize].key = key.into();
            let groups = &self.groups;
            self.by_key.insert_unique(key_hash, group, |&other| hash(&groups[other as usize].key));
            group
        });
        let result = self.free.pop().unwrap_or_else(|| {
            self.results.push(Held::default());
            self.slots.resize(self.slots.len() + self.width, 0);
            self.places.resize(self.places.len() + self.width, 0);
            index(self.results.len() - 1)
        });
        let results = &mut self.groups[group as usize].results;
        let place = index(results.len());
        results.push(result);
        self.results[result as usize] = Held { group, place, ..Held::default() };
        let first = result as usize * self.width;
        for (position, &slot) in slots.iter().enumerate() {
            let list = self.by_event.entry(slot).or_default();
            self.slots[first + position] = slot;
            self.places[first + position] = index(list.len());
            list.push((result, index(position)));
        }
        let (all, width) = (&self.slots, self.width);
        self.by_slots
            .insert_unique(hash(slots), result, |&other| hash(&all[other as usize * width..][..width]));
        result
    }

    /// Ends an evaluation: what was removed is forgotten, and what is there was there.
    pub(super) fn settle(&mut self) {
        for result in std::mem::take(&mut self.touched) {
            let held = &mut self.results[result as usize];
            *held = Held { was: held.is, is_dirty: false, is_touched: false, ..*held };
            if !held.is {
                self.erase(result);
            }
        }
        for idx in std::mem::take(&mut self.touched_groups) {
            let group = &mut self.groups[idx as usize];
            group.was = group.count > 0;
            group.is_touched = false;
            group.touched.clear();
            if group.results.is_empty() {
                let group = std::mem::take(group);
                let found = self.by_key.find_entry(hash(&group.key), |&other| other == idx);
                found.expect("every group is there").remove();
                self.free_groups.push(idx);
            }
        }
    }

    fn erase(&mut self, result: u32) {
        let Held { group, place, .. } = self.results[result as usize];
        let results = &mut self.groups[group as usize].results;
        results.swap_remove(place as usize);
        if let Some(&moved) = results.get(place as usize) {
            self.results[moved as usize].place = place;
        }
        let first = result as usize * self.width;
        let found = self.by_slots.find_entry(hash(self.slots(result)), |&other| other == result);
        found.expect("every result is there").remove();
        for position in first..first + self.width {
            let slot = self.slots[position];
            let list = self.by_event.get_mut(&slot).expect("an event with a result has a list");
            list.swap_remove(self.places[position] as usize);
            if let Some(&(moved, at)) = list.get(self.places[position] as usize) {
                self.places[moved as usize * self.width + at as usize] = self.places[position];
            }
            if list.is_empty() {
                self.by_event.remove(&slot);
            }
        }
        self.free.push(result);
    }

    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.by_event.values().map(|list| list.capacity() * size_of::<(u32, u32)>()).sum();
        let groups: usize = self
            .groups
            .iter()
            .map(|group| size_of::<Group>() + size_of_val(&*group.key) + 4 * group.results.capacity())
            .sum();
        let results = self.results.capacity() * size_of::<Held>() + 4 * self.free.capacity();
        let slots = 4 * (self.slots.capacity() + self.places.capacity());
        let tables = 5 * (self.by_slots.capacity() + self.by_key.capacity());
        results
            + slots
            + groups
            + tables
            + lists
            + self.by_event.capacity() * size_of::<(Slot, Vec<(u32, u32)>)>()
    }
}
