//! The context sets: which recent events each holds, and what came and went.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use matcher::event::Event;
use matcher::predicate::Subject;

use crate::check::Check;
use crate::formula::Clock;

/// How far an event's own time may be ahead of its arrival: one from 2099 would empty the sets.
pub const AHEAD_MS_MAX: i64 = 60_000;

/// Place of an event in the store of a check; given out again after the event has left all sets.
pub type Slot = u32;

/// An event as it comes to a check.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The event.
    pub event: Arc<Event>,
    /// Its own time, in milliseconds since any epoch; without one, its arrival counts.
    pub time_ms: Option<i64>,
    /// When it arrived, since the same epoch.
    pub arrival_ms: i64,
}

/// An event that some set holds.
#[derive(Clone, Debug)]
pub struct Held {
    /// The event.
    pub event: Arc<Event>,
    /// How many events came into the sets of the check before it.
    pub number: u64,
    /// Its time: its own, or its arrival.
    pub time_ms: i64,
    /// Its time on the clock of the check.
    at_ms: i64,
    /// Sets that hold it, a bit each.
    sets: u64,
}

impl Held {
    /// The event as it came: with the numbers that it was taken in by.
    #[must_use]
    pub fn arrival(&self) -> Arrival {
        Arrival { event: self.event.clone(), time_ms: Some(self.time_ms), arrival_ms: self.at_ms }
    }

    /// Whether some set still holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.sets != 0
    }
}

/// An event left a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removal {
    /// The last millisecond at which the set held it.
    pub due_ms: i64,
    /// Number of the event.
    pub number: u64,
    /// Which set it left.
    pub set: usize,
    /// Place of the event, which stays its own until the sets settle.
    pub slot: Slot,
}

/// What happened since the evaluation before: removals in the order in which they were due, then the addition.
#[derive(Debug, Default)]
pub struct Changes {
    /// Events that left sets.
    pub removed: Vec<Removal>,
    /// The event that came.
    pub added: Option<Slot>,
}

/// One of several changes that are evaluated at once: an event came, and before it others left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What left before it came: places in the member `removed` of [`Changes`].
    pub removed: Range<usize>,
    /// The event that came.
    pub added: Slot,
    /// For [`Sets::rewind`]: the first of these that left with it, and the time and the latest event before.
    own: usize,
    before: (Option<i64>, Option<Slot>),
}

/// The sets of one check.
#[derive(Debug, Default)]
pub struct Sets {
    held: Vec<Option<Held>>,
    free: Vec<Slot>,
    /// Time and slot of each event of a set, the oldest first.
    queues: Vec<VecDeque<(i64, Slot)>>,
    now_ms: Option<i64>,
    numbers: u64,
    latest: Option<Slot>,
    changes: Changes,
    /// Bytes of the events that are held.
    events_bytes: usize,
    /// Events that were refused since their time is too far ahead.
    pub(crate) ahead: u64,
}

impl Sets {
    /// Sets that hold nothing.
    #[must_use]
    pub fn new(check: &Check) -> Self {
        Self { queues: vec![VecDeque::new(); check.sets.len()], ..Self::default() }
    }

    /// Takes an event into the sets that admit it, after those that are too old by then have left; whether any did. [`Sets::changes`] has
    /// what came and went until [`Sets::settle`].
    pub fn admit(&mut self, check: &Check, arrival: &Arrival) -> bool {
        let time_ms = arrival.time_ms.unwrap_or(arrival.arrival_ms);
        let takes = |set: &usize| check.sets[*set].takes(check.world, &arrival.event);
        let taking: u64 = (0..check.sets.len()).filter(takes).map(|set| 1 << set).sum();
        if taking == 0 {
            return false;
        }
        let at_ms = match check.clock {
            Clock::Arrival => arrival.arrival_ms,
            Clock::Event if time_ms > arrival.arrival_ms.saturating_add(AHEAD_MS_MAX) => {
                self.ahead += 1;
                return false;
            }
            Clock::Event => time_ms,
        };
        let now_ms = self.now_ms.map_or(at_ms, |now_ms| now_ms.max(at_ms));
        let is_recent = |set: &usize| at_ms.saturating_add(check.sets[*set].for_ms) >= now_ms;
        let sets: u64 = (0..check.sets.len())
            .filter(|set| taking >> set & 1 == 1 && is_recent(set))
            .map(|set| 1 << set)
            .sum();
        if sets == 0 {
            return false;
        }
        self.now_ms = Some(now_ms);
        self.expire(check, now_ms);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            Slot::try_from(self.held.len() - 1).expect("four thousand million events do not fit into memory")
        });
        self.events_bytes += arrival.event.bytes();
        self.held[slot as usize] =
            Some(Held { event: arrival.event.clone(), number: self.numbers, time_ms, at_ms, sets });
        self.numbers += 1;
        for (set, queue) in self.queues.iter_mut().enumerate() {
            if sets >> set & 1 == 1 {
                // Mostly the newest; of equals the last to arrive is the newest.
                let place = if queue.back().is_none_or(|&(last_ms, _)| last_ms <= at_ms) {
                    queue.len()
                } else {
                    queue.partition_point(|&(other_ms, _)| other_ms <= at_ms)
                };
                queue.insert(place, (at_ms, slot));
            }
        }
        self.latest = Some(slot);
        self.changes.added = Some(slot);
        true
    }

    /// Takes an event in as [`Sets::admit`] does, as one of several changes between two calls of [`Sets::settle`].
    pub fn admit_more(&mut self, check: &Check, arrival: &Arrival) -> Option<Step> {
        let before = (self.now_ms, self.latest);
        let own = self.changes.removed.len();
        let from = self.changes.added.map_or(0, |_| own);
        if !self.admit(check, arrival) {
            return None;
        }
        let added = self.changes.added.expect("the event was added");
        Some(Step { removed: from..self.changes.removed.len(), added, own, before })
    }

    /// Takes back all steps since [`Sets::settle`]: what came is gone, and what left with it is there again.
    pub(crate) fn rewind(&mut self, steps: &[Step]) {
        for step in steps.iter().rev() {
            let held = self.held[step.added as usize].take().expect("it is there until it is settled");
            self.events_bytes -= held.event.bytes();
            for queue in &mut self.queues {
                if let Some(place) = queue.iter().rposition(|&(_, slot)| slot == step.added) {
                    queue.remove(place);
                }
            }
            self.free.push(step.added);
            self.numbers -= 1;
            (self.now_ms, self.latest) = step.before;
            for Removal { set, slot, .. } in self.changes.removed.drain(step.own..).rev() {
                let held = self.held[slot as usize].as_mut().expect("it is there until it is settled");
                held.sets |= 1 << set;
                self.queues[set].push_front((held.at_ms, slot));
            }
        }
        self.changes.added = None;
    }

    /// Lets events leave whose time is over before a moment.
    pub fn expire(&mut self, check: &Check, now_ms: i64) {
        let before = self.changes.removed.len();
        for (set, queue) in self.queues.iter_mut().enumerate() {
            let for_ms = check.sets[set].for_ms;
            while let Some(&(at_ms, slot)) = queue.front() {
                let due_ms = at_ms.saturating_add(for_ms);
                if due_ms >= now_ms {
                    break;
                }
                queue.pop_front();
                let held = self.held[slot as usize].as_mut().expect("queues hold what is there");
                held.sets &= !(1 << set);
                self.changes.removed.push(Removal { due_ms, number: held.number, set, slot });
            }
        }
        self.changes.removed[before..].sort_unstable();
    }

    /// Takes the event that came last out of all sets again.
    pub fn retract(&mut self) {
        if let Some(slot) = self.latest.take() {
            self.remove(slot);
        }
    }

    /// Takes the event of a slot out of all sets again.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let held = self.held[slot as usize].as_mut().expect("it is there until it is settled");
        for (set, queue) in self.queues.iter_mut().enumerate() {
            if held.sets >> set & 1 == 1 {
                let place = queue.iter().rposition(|&(_, other)| other == slot);
                queue.remove(place.expect("a set holds what it took"));
                let due_ms = held.at_ms;
                self.changes.removed.push(Removal { due_ms, number: held.number, set, slot });
            }
        }
        held.sets = 0;
    }

    /// What came and went since [`Sets::settle`].
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Forgets what came and went, and the events that no set holds any more.
    pub fn settle(&mut self) {
        self.settle_by(|_| {});
    }

    /// Does what [`Sets::settle`] does, and calls `freed` with each slot that is free from then on.
    pub(crate) fn settle_by(&mut self, mut freed: impl FnMut(Slot)) {
        for Removal { slot, .. } in self.changes.removed.drain(..) {
            let held = &mut self.held[slot as usize];
            // An event that left several sets stands here several times.
            if let Some(gone) = held.take_if(|held| held.sets == 0) {
                self.events_bytes -= gone.event.bytes();
                self.free.push(slot);
                self.latest = self.latest.filter(|latest| *latest != slot);
                freed(slot);
            }
        }
        self.changes.added = None;
    }

    /// How many events a set holds.
    #[must_use]
    pub fn count(&self, set: usize) -> usize {
        self.queues[set].len()
    }

    /// Numbers of the events in a set, the oldest first.
    pub fn numbers(&self, set: usize) -> impl DoubleEndedIterator<Item = u64> {
        self.members(set, 0..self.count(set)).map(|slot| self.get(slot).number)
    }

    /// How many events are held.
    #[must_use]
    pub fn events_count(&self) -> usize {
        self.held.len() - self.free.len()
    }

    /// The memory that the sets take, events included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let queues = self.queues.iter().map(|queue| queue.capacity() * size_of::<(i64, Slot)>());
        self.events_bytes + self.held.capacity() * size_of::<Option<Held>>() + queues.sum::<usize>()
    }

    /// Slots of a range of a set, the oldest first.
    ///
    /// # Panics
    /// When the set holds fewer.
    pub fn members(&self, set: usize, range: Range<usize>) -> impl DoubleEndedIterator<Item = Slot> {
        self.queues[set].range(range).map(|&(_, slot)| slot)
    }

    pub(crate) fn find(&self, slot: Slot) -> Option<&Held> {
        self.held.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get(&self, slot: Slot) -> &Held {
        self.held[slot as usize].as_ref().expect("a slot is given back after the evaluation that removed it")
    }

    /// The event as leaves see it.
    ///
    /// # Panics
    /// When there is none of that slot.
    #[must_use]
    pub fn subject(&self, slot: Slot) -> Subject<'_> {
        let held = self.get(slot);
        Subject { event: &held.event, time_ms: held.time_ms, identity: held.number }
    }

    /// Whether a set holds the event of a slot now.
    ///
    /// # Panics
    /// When there is none of that slot.
    #[must_use]
    pub fn holds(&self, set: usize, slot: Slot) -> bool {
        self.get(slot).sets >> set & 1 == 1
    }
}

impl Changes {
    /// Removals as engines look at them.
    pub(crate) fn removed(&self) -> impl Iterator<Item = (Slot, usize)> {
        self.removed.iter().map(|removal| (removal.slot, removal.set))
    }
}
