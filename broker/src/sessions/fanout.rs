//! Events to deliveries: each client gets an event once, with all of its subscriptions that the event satisfies.

use std::sync::Arc;

use matcher::engine::MatchError;
use matcher::event::Event;
use matcher::live::Cause;
use matcher::subscription::{ClientId, SubscriptionId};
use matcher::violated;

use super::audit::{Dispatched, EntryId};
use super::findings::Dealt;
use super::listing::MEMBER_BYTES;
use super::slots::Slots;
use super::{Held, Sessions};
use crate::ingest::Confinement;
use crate::model::clock;
use crate::model::delivery::{Delivery, OverflowName, SubscriptionIds, Transition};
use crate::model::event::{Body, Published};

/// Up to this many pending writers, the shard runs some of them inline, which delays its next step.
const WRITERS_MAX: usize = 32;

/// Writers that the shard runs inline, or half of the pending ones if that is more. The tasks of the others are woken first, and write
/// at the same time.
const WRITERS_HERE: usize = 4;

/// The content of a delivery of an event.
pub(super) struct Trigger<'a> {
    pub(super) cause: Cause,
    pub(super) transition: Option<Transition>,
    pub(super) body: &'a Arc<Body>,
    /// Where it is kept to whom the event goes, if anywhere.
    pub(super) entry: Option<EntryId>,
}

impl Sessions {
    /// Matches events; [`deliver`](Self::deliver) then deals them out one by one.
    pub(crate) fn match_batch(&mut self, events: &[&Event]) -> Result<(), MatchError> {
        self.rows.clear();
        let began = clock::now();
        self.engine.match_batch(events, &mut self.rows)?;
        self.matched(events.len(), clock::now().saturating_duration_since(began));
        self.evaluations.note(events, self.now);
        self.metrics.matches.add(self.rows.pairs_count() as u64);
        Ok(())
    }

    /// How many subscriptions the `index`-th event of the batch satisfies.
    pub(crate) fn matches_count(&self, index: usize) -> usize {
        self.rows.row(index).len()
    }

    /// Deals the `index`-th event of the batch out: once to each client, with all subscriptions that it satisfies.
    pub(crate) fn deliver(&mut self, index: usize, published: &Arc<Published>) {
        self.go_on_to(published);
        if self.has_had_finding(published) {
            return;
        }
        // What a stream brings, every shard has from there, once.
        let origin = published.origin.as_ref().filter(|_| published.place.is_none());
        let dealt = origin.map_or(Dealt::Nowhere, |origin| self.dealt(origin));
        if dealt == Dealt::Here {
            return;
        }
        if let Some(origin) = origin {
            self.record_origin(origin);
        }
        match &published.live {
            Some(live) if dealt == Dealt::Nowhere => return self.announce(index, published, live),
            // What was live at the start has come to all.
            Some(live) if self.is_live(live) => return,
            // Its life is over. Here it has not been delivered yet.
            Some(_) | None => {}
        }
        let row = self.rows.row(index);
        if row.is_empty() {
            return;
        }
        let mut pairs = std::mem::take(&mut self.pairs);
        let pair = |id: &SubscriptionId| {
            let held = self.subscriptions.get(id.0)?;
            // Another event of the batch may have had it suspended.
            let is_in_force = !held.activity.is_suspended();
            (is_in_force && (held.takes_all || self.takes_passing(id.0, published)))
                .then_some((held.client, id.0))
        };
        pairs.extend(row.iter().filter_map(pair));
        pairs.sort_unstable();
        let body = &published.body;
        let entry = if pairs.is_empty() {
            None
        } else {
            let clients = pairs.chunk_by(|a, b| a.0 == b.0).count();
            self.log.begin_passing(body, self.moment(body.received), clients)
        };
        let occurrence = Trigger { cause: Cause::Published, transition: None, body, entry };
        for group in pairs.chunk_by(|a, b| a.0 == b.0) {
            self.deliver_to(group[0].0, group, &occurrence);
        }
        pairs.clear();
        self.pairs = pairs;
    }

    pub(super) fn deliver_to(&mut self, client_id: u32, group: &[(u32, u32)], occurrence: &Trigger<'_>) {
        let Some(client) = self.clients.get_mut(client_id) else {
            return violated!("a subscription's client is there");
        };
        client.offset += 1;
        self.deliveries_count += 1;
        let is_read = !client.readers.is_empty();
        let has_place = client.positioned_ms.is_some() && self.rounding.is_some();
        let mut is_kept = false;
        for (_, number) in group {
            if let Some(held) = self.subscriptions.get_mut(*number) {
                held.activity.matched(is_read, self.now);
                is_kept |= held.durable;
            }
        }
        is_kept &= client.durable.is_some();
        self.unread_count += u64::from(!is_read && !is_kept);
        if !is_read && occurrence.entry.is_none() && client.durable.is_none() && !client.is_held(&self.ledger)
        {
            client.released = client.offset;
            return;
        }
        let Some((subscriptions, overflow)) = client.lists.of(&self.subscriptions, group) else {
            return violated!("a subscription that matches is there");
        };
        if let Some(entry) = occurrence.entry {
            let fix = if has_place { self.tracker.fix(ClientId(client_id)) } else { None };
            let dealt = Dispatched {
                recipient: Arc::clone(client.recipient()),
                subscriptions: subscriptions.clone(),
                offset: client.offset,
                cause: occurrence.cause,
                transition: occurrence.transition,
                is_read,
                place: fix.map(|fix| [fix.position.x(), fix.position.y()]),
            };
            self.log.note(entry, dealt);
        }
        let delivery = Delivery {
            offset: client.offset,
            subscriptions,
            cause: occurrence.cause,
            transition: occurrence.transition,
            body: Arc::clone(occurrence.body.seen_by(client.confinement.as_deref().map(Confinement::text))),
            overflow,
            is_late: false,
            is_ahead: false,
        };
        if client.durable.is_some() {
            return self.deliver_durable(client_id, delivery, is_kept);
        }
        let (offset, is_alarm, is_held) =
            (client.offset, delivery.body.is_alarm, client.is_held(&self.ledger));
        if !is_read && !is_held {
            client.released = offset;
            return;
        }
        let log = client.log(self.outbox_bounds, &self.budget, &self.kept_total, &self.metrics);
        let appended = log.lock().append(delivery, None, &mut Vec::new());
        self.cut_off(client_id, &appended.cut);
        self.release_or_wait(client_id, offset, is_alarm, is_held);
    }

    /// Sets whether the shard is busy. A busy shard runs no writers inline.
    pub(crate) fn press(&mut self, is_pressed: bool) {
        self.is_pressed = is_pressed;
    }

    /// Ends a batch: counts its deliveries, and wakes or runs the writers that have something to write.
    pub(crate) fn wake_readers(&mut self) {
        self.members_held.cover(self.tracker.members_count() as u64 * MEMBER_BYTES);
        self.metrics.deliveries.add(std::mem::take(&mut self.deliveries_count));
        self.metrics.unread.add(std::mem::take(&mut self.unread_count));
        let count = self.sleepers.len();
        let here =
            if self.is_pressed || count > WRITERS_MAX { 0 } else { count.min(WRITERS_HERE.max(count / 2)) };
        for sleeper in self.sleepers.drain(here..) {
            sleeper.wake();
        }
        for sleeper in self.sleepers.drain(..) {
            sleeper.write();
        }
    }
}

/// The lists of names that a client's deliveries share: those that were made last. To be cleared when a subscription is made, replaced or
/// ended.
#[derive(Default)]
pub(super) struct NameLists(Vec<NameList>);

/// The names of several subscriptions, by their numbers, and their strictest overflow policy.
struct NameList {
    numbers: Box<[u32]>,
    names: SubscriptionIds,
    overflow: Option<OverflowName>,
}

/// Enough for events that alternate between a few sets of subscriptions.
const LISTS_MAX: usize = 4;

impl NameLists {
    /// The names of the subscriptions, and their strictest wish for the bound of an outbox.
    fn of(
        &mut self,
        subscriptions: &Slots<Held>,
        group: &[(u32, u32)],
    ) -> Option<(SubscriptionIds, Option<OverflowName>)> {
        if let [one] = group {
            let held = subscriptions.get(one.1)?;
            return Some((SubscriptionIds::One(Arc::clone(&held.name)), held.overflow));
        }
        let numbers = || group.iter().map(|(_, number)| number);
        let known = self.0.iter().position(|list| list.numbers.iter().eq(numbers()));
        let index = known.unwrap_or_else(|| {
            let (names, overflow) = names(subscriptions, group);
            if self.0.len() >= LISTS_MAX {
                self.0.pop();
            }
            self.0.insert(0, NameList { numbers: numbers().copied().collect(), names, overflow });
            0
        });
        self.0.get(index).map(|list| (list.names.clone(), list.overflow))
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}

/// The names of several subscriptions, and their strictest wish for the bound of an outbox.
fn names(subscriptions: &Slots<Held>, group: &[(u32, u32)]) -> (SubscriptionIds, Option<OverflowName>) {
    let held = group.iter().filter_map(|(_, number)| subscriptions.get(*number));
    let mut overflow = None;
    let names = held.map(|held| {
        // The strictest wish of them counts.
        overflow = overflow.max(held.overflow);
        Arc::clone(&held.name)
    });
    let names = SubscriptionIds::Many(names.collect());
    (names, overflow)
}
