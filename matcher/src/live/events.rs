//! The live events: by object, by id, by place and by reach.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;

use super::known::KnownTo;
use super::places::Places;
use super::{Announcement, Moment, Partition};
use crate::area::Track;
use crate::event::Event;
use crate::geo::{Position, Radius, World};
use crate::violated;

/// A live event.
#[derive(Debug)]
pub(super) struct Live<P> {
    pub(super) object: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) sequence: u64,
    pub(super) expires: Moment,
    pub(super) event: Arc<Event>,
    pub(super) payload: P,
    pub(super) partition: Partition,
    /// The subscriptions that know it.
    pub(super) known_to: KnownTo,
}

/// An event that a newer one has replaced.
#[derive(Debug)]
pub(super) struct Outdated<P> {
    pub(super) sequence: u64,
    pub(super) payload: P,
}

/// Outcome of an announcement.
pub(super) enum Announced<P> {
    /// It is live under this number, in the place of another or of none.
    Live(u32, Option<Outdated<P>>),
    /// A newer one of its object was there before.
    Late,
}

/// The live events by small numbers, which are reused.
pub(super) struct Events<P> {
    world: World,
    held: Vec<Option<Live<P>>>,
    free: Vec<u32>,
    by_object: HashTable<u32>,
    by_id: HashTable<u32>,
    hash: foldhash::fast::RandomState,
    /// Places of live events, for each partition in which something is live.
    places: HashMap<Partition, Places, foldhash::fast::RandomState>,
}

impl<P> Events<P> {
    pub(super) fn new(world: World) -> Self {
        Self {
            world,
            held: Vec::new(),
            free: Vec::new(),
            by_object: HashTable::new(),
            by_id: HashTable::new(),
            hash: foldhash::fast::RandomState::default(),
            places: HashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }

    /// All numbers are below.
    pub(super) fn numbers_end(&self) -> usize {
        self.held.len()
    }

    /// Where the events of a partition are, if any are live.
    pub(super) fn places(&self, partition: Partition) -> Option<&Places> {
        self.places.get(&partition)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Live<P>> {
        self.held.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Live<P>> {
        self.held.get_mut(number as usize)?.as_mut()
    }

    /// The numbers of all events of an id.
    pub(super) fn of_id(&self, id: &str) -> Vec<u32> {
        let hash = self.hash.hash_one(id);
        let is_it = |number: &u32| self.get(*number).is_some_and(|live| *live.id == *id);
        self.by_id.iter_hash(hash).copied().filter(is_it).collect()
    }

    /// The number of an object's event.
    pub(super) fn of_object(&self, object: &str) -> Option<u32> {
        let hash = self.hash.hash_one(object);
        let is_it = |number: &u32| self.get(*number).is_some_and(|live| *live.object == *object);
        self.by_object.find(hash, is_it).copied()
    }

    /// Takes an event in, in the place of an older one of its object.
    pub(super) fn announce(&mut self, new: Announcement<P>) -> Announced<P> {
        let hash = self.hash.hash_one(&*new.object);
        let is_it = |number: &u32| {
            self.held[*number as usize].as_ref().is_some_and(|live| *live.object == *new.object)
        };
        let Some(&number) = self.by_object.find(hash, is_it) else {
            return Announced::Live(self.insert(hash, new), None);
        };
        if self.get(number).is_some_and(|live| live.sequence > new.sequence) {
            return Announced::Late;
        }
        self.take_out_of_places(number);
        self.take_out_of_ids(number);
        let Announcement { object: _, id, sequence, expires, partition, event, payload } = new;
        let Some(live) = &mut self.held[number as usize] else {
            violated!("an object's number is held");
            return Announced::Late;
        };
        let outdated = Outdated {
            sequence: std::mem::replace(&mut live.sequence, sequence),
            payload: std::mem::replace(&mut live.payload, payload),
        };
        (live.id, live.expires, live.partition, live.event) = (id, expires, partition, event);
        self.put_in_ids(number);
        self.put_in_places(number);
        Announced::Live(number, Some(outdated))
    }

    fn insert(&mut self, object_hash: u64, new: Announcement<P>) -> u32 {
        let Announcement { object, id, sequence, expires, partition, event, payload } = new;
        let known_to = KnownTo::default();
        let live = Live { object, id, sequence, expires, event, payload, partition, known_to };
        let number = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            u32::try_from(self.held.len() - 1).expect("memory ends before four billion live events")
        });
        self.held[number as usize] = Some(live);
        let (held, hash) = (&self.held, &self.hash);
        self.by_object.insert_unique(object_hash, number, |other| {
            held[*other as usize].as_ref().map_or(0, |live| hash.hash_one(&*live.object))
        });
        self.put_in_ids(number);
        self.put_in_places(number);
        number
    }

    /// Takes an event out.
    pub(super) fn remove(&mut self, number: u32) -> Option<Live<P>> {
        self.take_out_of_places(number);
        self.take_out_of_ids(number);
        let live = self.held.get_mut(number as usize)?.take()?;
        let hash = self.hash.hash_one(&*live.object);
        match self.by_object.find_entry(hash, |other| *other == number) {
            Ok(entry) => {
                entry.remove();
            }
            Err(_) => violated!("an event that is held is found by its object"),
        }
        self.free.push(number);
        Some(live)
    }

    fn put_in_ids(&mut self, number: u32) {
        let Some(live) = &self.held[number as usize] else { return violated!("an event with an id is held") };
        let (held, hash) = (&self.held, &self.hash);
        self.by_id.insert_unique(hash.hash_one(&*live.id), number, |other| {
            held[*other as usize].as_ref().map_or(0, |live| hash.hash_one(&*live.id))
        });
    }

    fn take_out_of_ids(&mut self, number: u32) {
        let Some(Some(live)) = self.held.get(number as usize) else { return };
        let hash = self.hash.hash_one(&*live.id);
        match self.by_id.find_entry(hash, |other| *other == number) {
            Ok(entry) => {
                entry.remove();
            }
            Err(_) => violated!("an event that is held is found by its id"),
        }
    }

    fn put_in_places(&mut self, number: u32) {
        let Some(live) = &self.held[number as usize] else {
            return violated!("an event with a place is held");
        };
        let (position, reach) = (&live.event.position, live.event.reach.as_ref());
        self.places.entry(live.partition).or_default().insert(self.world, number, position, reach);
    }

    fn take_out_of_places(&mut self, number: u32) {
        let Some(Some(live)) = self.held.get(number as usize) else { return };
        let Some(places) = self.places.get_mut(&live.partition) else {
            return violated!("an event that is held is among the places of its partition");
        };
        places.remove(self.world, number, &live.event.position, live.event.reach.as_ref());
        if places.is_empty() {
            self.places.remove(&live.partition);
        }
    }

    /// Appends the numbers of a partition's events within a radius of a track.
    pub(super) fn along(&self, partition: Partition, track: &Track, radius: &Radius, found: &mut Vec<u32>) {
        let Some(places) = self.places(partition) else { return };
        places.along(track, radius, |part, number| {
            let live = self.get(number);
            if live.is_some_and(|live| track.comes_within(part, radius, &live.event.position)) {
                found.push(number);
            }
        });
    }

    /// The events of a partition whose own area holds one of two places and not the other: those that hold the second,
    /// and those that hold the first, each in the order of their numbers.
    pub(super) fn crossed(&self, partition: Partition, before: &Position, after: &Position) -> [Vec<u32>; 2] {
        let [mut entered, mut left] = [Vec::new(), Vec::new()];
        let Some(places) = self.places(partition) else { return [entered, left] };
        places.crossed(self.world, before, after, |number| {
            let Some(event) = self.get(number).map(|live| &live.event) else {
                return violated!("an event with a place is held");
            };
            let Some(reach) = event.reach else { return violated!("an event among the reaches has one") };
            let holds = |place| reach.holds(self.world, &event.position, place);
            match (holds(before), holds(after)) {
                (false, true) => entered.push(number),
                (true, false) => left.push(number),
                (true, true) | (false, false) => {}
            }
        });
        entered.sort_unstable();
        left.sort_unstable();
        [entered, left]
    }
}
