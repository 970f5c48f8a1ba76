//! The scene that subscriptions are looked at in: live events, their deadlines, and what a recovery knows of them.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::super::deadlines::Deadlines;
use super::super::events::{Events, Outdated};
use super::super::{Cause, Effect, Moment, Settings};
use crate::condition::reading::Reading;
use crate::evaluation;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::{Filter, SubscriptionId};

/// Nanoseconds that a look at a live event takes. The event is seldom at hand: 100 to 400 ns among 50,000.
pub(in crate::live) const LOOK_NS: u64 = 128;

/// All but subscriptions and clients.
pub(in crate::live) struct Scene<P> {
    pub(in crate::live) world: World,
    pub(in crate::live) settings: Settings,
    pub(in crate::live) events: Events<P>,
    pub(in crate::live) deadlines: Deadlines,
    /// Objects whose standing in a recorded subscription has changed, each with the subscription, in any order, some
    /// more than once.
    pub(in crate::live) noted: Vec<(SubscriptionId, Arc<str>)>,
    /// Live events that were replaced or ended, where these are collected.
    pub(in crate::live) released: Option<Vec<P>>,
    /// During a recovery: events of live objects that are older than the live ones, by object.
    pub(in crate::live) overtaken: HashMap<Arc<str>, Vec<Overtaken<P>>, foldhash::fast::RandomState>,
    pub(in crate::live) recalled: Recalled<P>,
    /// Work done so far, in looks, see [`Tracker::work_count`](crate::live::Tracker::work_count).
    pub(in crate::live) work_count: Cell<u64>,
}

/// An event that was live before a newer one of its object took its place.
pub(in crate::live) struct Overtaken<P> {
    pub(in crate::live) sequence: u64,
    pub(in crate::live) event: Arc<Event>,
    pub(in crate::live) payload: P,
}

/// After a recovery, until the subscription is brought up to date: the last event by which an object was inside, where the
/// live event is one that the subscription does not hold for. `None` where no such event was found.
pub(in crate::live) type Recalled<P> = BTreeMap<(SubscriptionId, u32), Option<Outdated<P>>>;

impl<P: Clone> Scene<P> {
    /// A live event is replaced, or has ended.
    pub(in crate::live) fn release(&mut self, payload: &P) {
        if let Some(released) = &mut self.released {
            released.push(payload.clone());
        }
    }

    /// Takes out the event by which an object was inside of a subscription, which is released like one that has ended: until the
    /// exit is on disk another recovery needs it.
    pub(in crate::live) fn forget_recalled(
        &mut self,
        place: (SubscriptionId, u32),
    ) -> Option<Option<Outdated<P>>> {
        let recalled = if self.recalled.is_empty() { None } else { self.recalled.remove(&place) };
        if let Some(Some(last)) = &recalled {
            self.release(&last.payload);
        }
        recalled
    }
}

impl<P> Scene<P> {
    /// Counts looks at live events.
    pub(in crate::live) fn work(&self, looks_count: u64) {
        self.work_count.set(self.work_count.get() + looks_count);
    }

    /// Whether the condition of a filter is true of an event, for a client that is there.
    pub(in crate::live) fn condition_holds(
        &self,
        filter: &Filter,
        client: Option<&Position>,
        event: &Event,
    ) -> bool {
        let mut reading = Reading::of_client(client);
        let holds = evaluation::condition_holds_by(filter, event, &mut reading);
        self.work(1 + reading.ns() / LOOK_NS);
        holds
    }
}

/// Occasion of changes: when they happen, why, and the effects that they have.
pub(in crate::live) struct Occasion<'a, P> {
    pub(in crate::live) now: Moment,
    pub(in crate::live) cause: Cause,
    /// The event that has just been replaced, for what leaves with it.
    pub(in crate::live) outdated: Option<(u32, Outdated<P>)>,
    pub(in crate::live) effects: &'a mut Vec<Effect<P>>,
}
