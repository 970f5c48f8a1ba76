//! The live events: by object, by id, by place and by reach.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;

use super::{Announcement, Moment, Points};
use crate::area::{Area, Ball, Track};
use crate::condition::Condition;
use crate::engine::cells::Cells;
use crate::engine::{Engine, MatchRows};
use crate::event::Event;
use crate::geo::{Position, Radius, World};
use crate::subscription::{ClientId, Filter, Subscription, SubscriptionId};

/// A live event.
#[derive(Debug)]
pub(super) struct Live<P> {
    pub(super) object: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) sequence: u64,
    pub(super) expires: Moment,
    pub(super) event: Arc<Event>,
    pub(super) payload: P,
    /// The subscriptions that know it.
    pub(super) known_to: HashSet<SubscriptionId, foldhash::fast::RandomState>,
}

/// What an event was before a newer one took its place.
#[derive(Debug)]
pub(super) struct Outdated<P> {
    pub(super) sequence: u64,
    pub(super) payload: P,
}

/// What came of an announcement.
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
    points: Points,
    /// Those with an area of their own, as circles that a client's position falls into.
    reaches: Option<Box<Cells>>,
    reaches_count: usize,
    rows: MatchRows,
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
            points: Points::new(),
            reaches: None,
            reaches_count: 0,
            rows: MatchRows::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
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
        let Announcement { object: _, id, sequence, expires, event, payload } = new;
        let Some(live) = &mut self.held[number as usize] else { return Announced::Late };
        let outdated = Outdated {
            sequence: std::mem::replace(&mut live.sequence, sequence),
            payload: std::mem::replace(&mut live.payload, payload),
        };
        (live.id, live.expires, live.event) = (id, expires, event);
        self.put_in_ids(number);
        self.put_in_places(number);
        Announced::Live(number, Some(outdated))
    }

    fn insert(&mut self, object_hash: u64, new: Announcement<P>) -> u32 {
        let Announcement { object, id, sequence, expires, event, payload } = new;
        let live = Live { object, id, sequence, expires, event, payload, known_to: HashSet::default() };
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
        if let Ok(entry) = self.by_object.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        self.free.push(number);
        Some(live)
    }

    fn put_in_ids(&mut self, number: u32) {
        let Some(live) = &self.held[number as usize] else { return };
        let (held, hash) = (&self.held, &self.hash);
        self.by_id.insert_unique(hash.hash_one(&*live.id), number, |other| {
            held[*other as usize].as_ref().map_or(0, |live| hash.hash_one(&*live.id))
        });
    }

    fn take_out_of_ids(&mut self, number: u32) {
        let Some(Some(live)) = self.held.get(number as usize) else { return };
        let hash = self.hash.hash_one(&*live.id);
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
    }

    fn put_in_places(&mut self, number: u32) {
        let Some(live) = &self.held[number as usize] else { return };
        let position = &live.event.position;
        self.points.insert(number, *position.point());
        if let Some(reach) = live.event.reach {
            let area = Area::Circle { centre: *position, radius: reach };
            let filters = vec![Filter { area, condition: Condition::always() }];
            let subscription = Subscription { client: ClientId(0), filters };
            let reaches = self.reaches.get_or_insert_with(|| Box::new(Cells::new(self.world)));
            // The engine is full at four billion filters, which memory does not hold.
            let _ = reaches.install(SubscriptionId(number), &subscription);
            self.reaches_count += 1;
        }
    }

    fn take_out_of_places(&mut self, number: u32) {
        let Some(Some(live)) = self.held.get(number as usize) else { return };
        self.points.remove(number, live.event.position.point());
        if let (Some(_), Some(reaches)) = (live.event.reach, &mut self.reaches) {
            reaches.remove(SubscriptionId(number));
            self.reaches_count -= 1;
        }
    }

    /// Appends the numbers of the events in a ball.
    pub(super) fn within(&self, ball: &Ball, found: &mut Vec<u32>) {
        self.points.within(ball, |number| found.push(number));
    }

    /// Appends the numbers of the events within a radius of a track.
    pub(super) fn along(&self, track: &Track, radius: &Radius, found: &mut Vec<u32>) {
        let narrow = |part: &_, ball: &Ball| track.narrowed(part, ball, radius);
        self.points.narrowing(&track.whole(), &narrow, &mut |part, number| {
            let live = self.get(number);
            if live.is_some_and(|live| track.comes_within(part, radius, &live.event.position)) {
                found.push(number);
            }
        });
    }

    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// Whether any event has an area of its own.
    pub(super) fn have_reaches(&self) -> bool {
        self.reaches_count > 0
    }

    /// Appends the numbers of the events whose own area holds a position.
    pub(super) fn reaching(&mut self, position: &Position, found: &mut Vec<u32>) {
        let Some(reaches) = &mut self.reaches else { return };
        self.rows.clear();
        let here = Event::at(*position);
        // Engines on the CPU do not fail.
        if reaches.match_batch(&[&here], &mut self.rows).is_ok() {
            found.extend(self.rows.row(0).iter().map(|id| id.0));
        }
    }
}
