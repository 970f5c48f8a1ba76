//! Live events that come and go, and what that changes for the subscriptions.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::deadlines::Due;
use super::events::Announced;
use super::standing::{LOOK_NS, Occasion};
use super::tracker::{Tracker, watch_mut};
use super::{Announcement, Cause, Change, Effect, Moment};
use crate::event::Event;
use crate::subscription::SubscriptionId;
use crate::violated;

/// Looks that are much for one client when an event is published: most of its subscriptions need one, or some.
const MUCH: u64 = 256;

impl<P: Clone> Tracker<P> {
    /// Notes what was done for a subscription since `before`.
    fn note_work(&mut self, id: SubscriptionId, before: u64) {
        let work = self.work_count() - before;
        if work > 0 {
            self.worked.push((id, work));
        }
    }

    /// Time that the last event that was published took for the subscriptions of clients for which it took much, in
    /// nanoseconds, about, a subscription perhaps more than once; and the time altogether.
    ///
    /// Cost: linear in the subscriptions that were looked at.
    #[must_use]
    pub fn demanding(&self) -> (Vec<(SubscriptionId, u64)>, u64) {
        let mut of_clients = HashMap::<_, u64, RandomState>::default();
        let worked =
            || self.worked.iter().filter_map(|(id, work)| Some((self.watch(*id)?.client, *id, *work)));
        worked().for_each(|(client, _, work)| *of_clients.entry(client).or_default() += work);
        let demanding = worked().filter(|(client, ..)| of_clients[client] >= MUCH);
        (demanding.map(|(_, id, work)| (id, work * LOOK_NS)).collect(), self.published_work * LOOK_NS)
    }

    /// Takes a live event in. `row` are the subscriptions that it satisfies, ascending, as an engine answers that has
    /// the same subscriptions and positions.
    pub fn publish(
        &mut self,
        new: Announcement<P>,
        row: &[SubscriptionId],
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let begun = self.work_count();
        self.worked.clear();
        self.take_in(new, row, now, effects);
        self.published_work = self.work_count() - begun;
    }

    fn take_in(
        &mut self,
        new: Announcement<P>,
        row: &[SubscriptionId],
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let (sequence, expires, payload) = (new.sequence, new.expires, new.payload.clone());
        let event = Arc::clone(&new.event);
        let Announced::Live(number, outdated) = self.scene.events.announce(new) else {
            self.publish_late(row, &event, sequence, &payload, effects);
            return;
        };
        self.announced.note(number);
        self.scene.deadlines.push(expires, Due::Expired { event: number, sequence });
        if let Some(outdated) = &outdated {
            self.scene.release(&outdated.payload);
        }
        let outdated = outdated.map(|outdated| (number, outdated));
        let mut occasion = Occasion { now, cause: Cause::Published, outdated, effects };
        let mut counting = Vec::new();
        for id in self.known_before(number) {
            let before = self.work_count();
            let Some(watch) = watch_mut(&mut self.watches, id) else {
                violated!("a subscription that knows an event is installed");
                continue;
            };
            let fix = self.clients[watch.client.0 as usize].fix;
            // What was true of the one before.
            watch.known.set_hint(number, None);
            if watch.counts_nearest() {
                counting.push(id);
            }
            if !watch.is_for_transitions() {
                // A newer event is another event.
                watch.forget(&mut self.scene, id, number);
            } else if !watch.counts_nearest() {
                // An engine knows no areas that wait for a better fix.
                let is_certain =
                    row.binary_search(&id).is_ok() && !watch.holds_some(&self.scene.settings, fix.as_ref());
                let standing = watch.known.get(number);
                if !is_certain && !watch.is_inside(&self.scene, fix.as_ref(), &event, standing) {
                    watch.leave(&mut self.scene, &mut occasion, id, number);
                }
            }
            self.note_work(id, before);
        }
        for id in row {
            let before = self.work_count();
            let Some(watch) = watch_mut(&mut self.watches, *id) else { continue };
            let fix = self.clients[watch.client.0 as usize].fix;
            if watch.counts_nearest() {
                if watch.is_concerned(&self.scene, fix.as_ref(), &event, sequence) {
                    counting.push(*id);
                }
                self.note_work(*id, before);
                continue;
            }
            let is_certain = !watch.holds_some(&self.scene.settings, fix.as_ref());
            if !watch.known.contains(number)
                && (is_certain || watch.is_inside(&self.scene, fix.as_ref(), &event, None))
            {
                watch.meet(&mut self.scene, &mut occasion, *id, number, false);
            }
            self.note_work(*id, before);
        }
        counting.sort_unstable();
        counting.dedup();
        for id in counting {
            let before = self.work_count();
            self.recount(id, number, &mut occasion);
            self.note_work(id, before);
        }
        self.clear_up();
    }

    /// An event that a newer one of its object overtook: it was published, but it is not live.
    fn publish_late(
        &self,
        row: &[SubscriptionId],
        event: &Event,
        sequence: u64,
        payload: &P,
        effects: &mut Vec<Effect<P>>,
    ) {
        let takers = row.iter().filter(|id| self.takes_passing(**id, event));
        effects.extend(takers.map(|id| Effect {
            subscription: *id,
            change: Change::Reached,
            cause: Cause::Published,
            sequence,
            payload: payload.clone(),
        }));
    }

    /// The subscriptions that know a live event, in a stable order.
    fn known_before(&self, number: u32) -> Vec<SubscriptionId> {
        let mut ids: Vec<_> =
            self.scene.events.get(number).into_iter().flat_map(|live| live.known_to.iter()).collect();
        ids.sort_unstable();
        ids
    }

    /// Ends all live events of an id; says whether there was one.
    pub fn revoke(&mut self, id: &str, now: Moment, effects: &mut Vec<Effect<P>>) -> bool {
        let numbers = self.scene.events.of_id(id);
        for number in &numbers {
            self.end(*number, now, Cause::Revoked, effects);
        }
        !numbers.is_empty()
    }

    /// Ends the live event of an object; says whether there was one.
    pub fn revoke_object(&mut self, object: &str, now: Moment, effects: &mut Vec<Effect<P>>) -> bool {
        let number = self.scene.events.of_object(object);
        if let Some(number) = number {
            self.end(number, now, Cause::Revoked, effects);
        }
        number.is_some()
    }

    /// Lets a live event end at `expires`, where it would have ended later.
    pub fn expire_object(&mut self, object: &str, sequence: u64, expires: Moment) {
        let Some(event) = self.scene.events.of_object(object) else { return };
        let Some(live) = self.scene.events.get_mut(event) else {
            return violated!("an object's number is held");
        };
        if live.sequence == sequence && expires < live.expires {
            live.expires = expires;
            self.scene.deadlines.push(expires, Due::Expired { event, sequence });
        }
    }

    pub(super) fn end(&mut self, number: u32, now: Moment, cause: Cause, effects: &mut Vec<Effect<P>>) {
        let knowing = self.known_before(number);
        let Some(live) = self.scene.events.remove(number) else {
            return violated!("an event that ends is held");
        };
        self.scene.release(&live.payload);
        let mut occasion = Occasion { now, cause, outdated: None, effects };
        let mut counting = Vec::new();
        for id in knowing {
            let Some(watch) = watch_mut(&mut self.watches, id) else {
                violated!("a subscription that knows an event is installed");
                continue;
            };
            watch.part(&mut self.scene, &mut occasion, id, number, (live.sequence, &live.payload));
            if watch.is_recorded {
                self.scene.noted.push((id, Arc::clone(&live.object)));
            }
            if watch.counts_nearest() {
                counting.push(id);
            }
        }
        for id in counting {
            self.recount(id, number, &mut occasion);
        }
        self.clear_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use crate::invariant::{counted, violations};
    use crate::live::Settings;

    #[test]
    fn an_event_that_is_not_held_ends_without_an_effect_and_is_counted() {
        let settings = Settings { members_max: 1, members_per_client: 1, holds_inaccurate: false };
        let mut tracker = Tracker::<()>::new(World::Geodetic, settings);
        let mut effects = Vec::new();
        let before = violations();
        counted(|| tracker.end(7, Moment::default(), Cause::Revoked, &mut effects));
        assert!(effects.is_empty() && violations() > before);
    }
}
