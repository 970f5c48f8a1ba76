//! Changes of a tracker's knowledge, for programs that keep it where it outlasts the tracker.

use std::sync::Arc;

use super::standing::Standing;
use super::tracker::{Tracker, watch_mut};
use crate::subscription::SubscriptionId;
use crate::violated;

/// How an object's live event stands to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingNow {
    /// The sequence number of the live event. A member whose object gets a newer event that is inside as well stays what
    /// it is, which is no change of its standing: the number recorded of a member may be that of an earlier event.
    pub sequence: u64,
    /// How it stands.
    pub standing: Standing,
}

impl<P: Clone> Tracker<P> {
    /// Says whether the standings of a subscription are recorded: whether [`drain_standings`](Self::drain_standings)
    /// tells how they change. It is kept when the subscription is replaced.
    ///
    /// Where it is turned on, all that the subscription knows counts as changed, so that it makes no difference whether
    /// this is called before or after anything happens; where it is turned off, all of it as gone.
    ///
    /// Cost: what the subscription knows, where something is turned; afterwards a push for each change. Subscriptions
    /// that are not recorded cost nothing.
    pub fn record_standings(&mut self, id: SubscriptionId, is_recorded: bool) {
        let Some(watch) = watch_mut(&mut self.watches, id) else { return };
        if watch.is_recorded != is_recorded {
            watch.is_recorded = is_recorded;
            self.note_all(id);
        }
    }

    /// Whether a subscription that is recorded knows the live event of an object.
    ///
    /// Cost: a look at each subscription that knows it, up to the first that is recorded.
    #[must_use]
    pub fn is_recorded(&self, object: &str) -> bool {
        let number = self.scene.events.of_object(object);
        let live = number.and_then(|number| self.scene.events.get(number));
        let is_recorded = |id: SubscriptionId| self.watch(id).is_some_and(|watch| watch.is_recorded);
        live.is_some_and(|live| live.known_to.iter().any(is_recorded))
    }

    /// Collects from now on the live events that are replaced or end, for [`drain_released`](Self::drain_released).
    pub fn collect_released(&mut self) {
        self.scene.released.get_or_insert_default();
    }

    /// Calls `released` with the payload of each live event that was replaced or has ended since the last time, where
    /// these are collected. A program that records standings keeps these events until the standings are recorded: until
    /// then one of them may be the last by which an object was inside.
    pub fn drain_released(&mut self, released: impl FnMut(P)) {
        self.scene.released.iter_mut().flat_map(|all| all.drain(..)).for_each(released);
    }

    /// Notes all that a subscription knows.
    pub(super) fn note_all(&mut self, id: SubscriptionId) {
        let Some(watch) = watch_mut(&mut self.watches, id) else {
            return violated!("a subscription whose standings are noted is installed");
        };
        let (events, noted) = (&self.scene.events, &mut self.scene.noted);
        let objects = watch.known.numbers().filter_map(|number| events.get(number)).map(|live| &live.object);
        noted.extend(objects.map(|object| (id, Arc::clone(object))));
    }

    /// Calls `changed` with every standing that has changed since the last time, as it is now: each once, those of one
    /// subscription together and its objects in the order of their names; `None` where the subscription does not know
    /// the object any more. A table to which all of them are applied, and from which removed subscriptions are taken,
    /// has in it just what the recorded subscriptions know.
    ///
    /// To be called after each step, or each few: what is noted grows with every change until then.
    pub fn drain_standings(
        &mut self,
        mut changed: impl FnMut(SubscriptionId, &Arc<str>, Option<StandingNow>),
    ) {
        let mut noted = std::mem::take(&mut self.scene.noted);
        noted.sort_unstable();
        noted.dedup();
        for (id, object) in noted.drain(..) {
            if self.watch(id).is_some() {
                changed(id, &object, self.recorded_standing(id, &object));
            }
        }
        self.scene.noted = noted;
    }

    fn recorded_standing(&self, id: SubscriptionId, object: &str) -> Option<StandingNow> {
        let watch = self.watch(id).filter(|watch| watch.is_recorded)?;
        let number = self.scene.events.of_object(object)?;
        let standing = watch.known.get(number)?;
        self.scene.events.get(number).map(|live| StandingNow { sequence: live.sequence, standing })
    }
}
