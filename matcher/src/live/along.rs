//! What a client passed on its way between two fixes.

use super::standing::Occasion;
use super::tracker::{Tracker, Watch, watch_mut};
use super::{Cause, Effect, Interest, Moment};
use crate::area::{Area, Track};
use crate::evaluation::condition_holds;
use crate::geo::{Position, Radius};
use crate::subscription::{ClientId, Filter, SubscriptionId};

/// A filter whose area followed the client along.
struct Trail<'a> {
    id: SubscriptionId,
    watch: &'a Watch,
    filter: &'a Filter,
    radius: Radius,
}

impl<P: Clone> Tracker<P> {
    /// Tells subscriptions to events what came into the areas that follow their client while it went along a line from
    /// position to position, great circles or, in the plane, straight. It does not move the client, nor does the line
    /// begin where the client is: to be called before [`move_client`](Self::move_client) to its last position.
    ///
    /// A live event is reached by a filter, other than one that counts the nearest, when its condition holds, some
    /// place of the line is within the area's radius of the event and, where the event has an area of its own, within
    /// that. It is told as [`Reached`](super::Change::Reached) because of [`Moved`](Cause::Moved), if the subscription
    /// has not had it, and known from then on; in the order of sequence numbers for each subscription. Neighbours on
    /// opposite sides of the globe, which no single great circle joins, count with nothing between them. Nothing is
    /// near a line of no position.
    ///
    /// Transitions are for the places where a client says that it is, and not told of.
    ///
    /// Cost: for each radius that the client's filters have, what is near the line, each time the logarithm of the
    /// line's length.
    pub fn reach_along(
        &mut self,
        client: ClientId,
        track: &[Position],
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let reached = self.reached_along(client, track);
        let mut found = std::mem::take(&mut self.scratch.found);
        for of_one in reached.chunk_by(|a, b| a.0 == b.0) {
            let id = of_one[0].0;
            let Some(watch) = watch_mut(&mut self.watches, id) else { continue };
            let mut occasion = Occasion { now, cause: Cause::Moved, outdated: None, effects };
            found.clear();
            found.extend(of_one.iter().map(|(_, number)| *number));
            watch.meet_all(&mut self.scene, &mut occasion, id, &mut found, false);
        }
        self.scratch.found = found;
    }

    /// What is new to whom, by subscription.
    fn reached_along(&self, client: ClientId, track: &[Position]) -> Vec<(SubscriptionId, u32)> {
        let mut reached = Vec::new();
        let mut trails = self.trails(client);
        let partition =
            self.clients.get(client.0 as usize).map(|client| client.partition).unwrap_or_default();
        if trails.is_empty() || self.scene.events.places(partition).is_none() {
            return reached;
        }
        let Some(track) = Track::new(self.scene.world, track) else { return reached };
        trails.sort_by(|a, b| a.radius.metres().total_cmp(&b.radius.metres()));
        let mut near = Vec::new();
        for alike in trails.chunk_by(|a, b| a.radius == b.radius) {
            near.clear();
            self.scene.events.along(partition, &track, &alike[0].radius, &mut near);
            for trail in alike {
                let is_new = |number: &&u32| self.is_new_along(trail, &track, **number);
                reached.extend(near.iter().filter(is_new).map(|number| (trail.id, *number)));
            }
        }
        reached.sort_unstable();
        reached
    }

    fn trails(&self, client: ClientId) -> Vec<Trail<'_>> {
        let subscriptions = self.clients.get(client.0 as usize).map(|client| &client.subscriptions);
        let watches = subscriptions
            .into_iter()
            .flatten()
            .filter_map(|id| Some((*id, self.watch(*id)?)))
            .filter(|(_, watch)| *watch.interest() == Interest::Events);
        let trails = watches.flat_map(|(id, watch)| {
            watch.plain_filters().filter_map(move |filter| match filter.area {
                Area::Following(radius) => Some(Trail { id, watch, filter, radius }),
                Area::Everywhere | Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => None,
            })
        });
        trails.collect()
    }

    /// Whether an event within the radius of the track has not been had and is for it otherwise.
    fn is_new_along(&self, trail: &Trail<'_>, track: &Track, number: u32) -> bool {
        let Some(live) = self.scene.events.get(number) else { return false };
        let event = &live.event;
        !trail.watch.known.contains(number)
            && condition_holds(trail.filter, event)
            && event.reach.is_none_or(|reach| track.comes_within(&track.whole(), &reach, &event.position))
    }
}
