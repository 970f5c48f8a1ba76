//! Events that a client passed on its way between two fixes.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use super::standing::Occasion;
use super::tracker::{Tracker, Watch, watch_mut};
use super::{Cause, Effect, Interest, Moment, Partition};
use crate::area::{Area, Track};
use crate::evaluation::condition_holds;
use crate::geo::{Position, Radius};
use crate::subscription::{ClientId, Filter, SubscriptionId};

/// A filter whose area followed the client along.
struct Trail<'a> {
    id: SubscriptionId,
    watch: &'a Watch,
    index: u32,
    filter: &'a Filter,
    radius: Radius,
}

/// Findings ahead of a move along its track, see [`Survey`](super::Survey).
#[derive(Debug)]
pub(super) struct Passage {
    track: Track,
    /// The filters that are going to follow, by radius.
    trails: Vec<(SubscriptionId, u32)>,
    /// The one at hand.
    next: usize,
    /// Events near the track by a radius, and how many of them have been tested for the filter at hand.
    near: Option<(Radius, Vec<u32>)>,
    tested: usize,
    reached: Vec<(SubscriptionId, u32)>,
    /// Events that have come since.
    pub(super) fresh: HashSet<u32, RandomState>,
}

impl<'a> Trail<'a> {
    fn all_of(id: SubscriptionId, watch: &'a Watch) -> impl Iterator<Item = Self> {
        watch.plain().iter().filter_map(move |(_, index)| Self::of(id, watch, *index))
    }

    fn of(id: SubscriptionId, watch: &'a Watch, index: u32) -> Option<Self> {
        let filter = watch.filters().get(index as usize)?;
        match filter.area {
            Area::Following(radius) => Some(Self { id, watch, index, filter, radius }),
            Area::Everywhere | Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => None,
        }
    }
}

impl<P: Clone> Tracker<P> {
    /// Tells subscriptions to events what came into the areas that follow their client while it went along a line from
    /// position to position, great circles or, in the plane, straight. It does not move the client, nor does the line
    /// begin where the client is: to be called before [`move_client`](Self::move_client) to its last position.
    ///
    /// A live event is reached by a filter, other than one that counts the nearest, when its condition holds for the client at
    /// the end of the line, some
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
        let reached = match self.passage.take() {
            Some(passage) => self.reached_on(client, passage),
            None => self.reached_along(client, track),
        };
        let mut found = std::mem::take(&mut self.scratch.found);
        for of_one in reached.chunk_by(|a, b| a.0 == b.0) {
            let id = of_one[0].0;
            let Some(watch) = watch_mut(&mut self.watches, id).filter(|watch| watch.client == client) else {
                continue;
            };
            let mut occasion = Occasion { now, cause: Cause::Moved, outdated: None, effects };
            found.clear();
            found.extend(of_one.iter().map(|(_, number)| *number));
            watch.meet_all(&mut self.scene, &mut occasion, id, &mut found, false);
        }
        self.scratch.found = found;
    }

    /// Events along the track that are new to a subscription, each with that subscription, by subscription.
    fn reached_along(&self, client: ClientId, track: &[Position]) -> Vec<(SubscriptionId, u32)> {
        let mut reached = Vec::new();
        let trails = self.trails(client);
        let partition = self.partition_of(client);
        if trails.is_empty() || self.scene.events.places(partition).is_none() {
            return reached;
        }
        let Some(track) = Track::new(self.scene.world, track) else { return reached };
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

    /// Begins to look for that ahead of the move.
    pub(super) fn passage(&self, client: ClientId, track: &[Position]) -> Option<Passage> {
        let track = Track::new(self.scene.world, track)?;
        let trails = self.trails(client).iter().map(|trail| (trail.id, trail.index)).collect();
        let (next, near, tested, reached, fresh) = (0, None, 0, Vec::new(), HashSet::default());
        Some(Passage { track, trails, next, near, tested, reached, fresh })
    }

    /// Goes on with it; says whether nothing is left to do.
    pub(super) fn go_along(
        &self,
        client: ClientId,
        passage: &mut Passage,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let Passage { track, trails, next, near, tested, reached, .. } = passage;
        while let Some((id, index)) = trails.get(*next).copied() {
            if let Some(trail) = self.watch(id).and_then(|watch| Trail::of(id, watch, index)) {
                if near.as_ref().is_none_or(|(radius, _)| *radius != trail.radius) {
                    let mut found = Vec::new();
                    self.scene.events.along(self.partition_of(client), track, &trail.radius, &mut found);
                    *near = Some((trail.radius, found));
                }
                let near = near.as_ref().map_or(&[][..], |(_, found)| found);
                while let Some(number) = near.get(*tested).copied() {
                    *tested += 1;
                    if self.is_new_along(&trail, track, number) {
                        reached.push((id, number));
                    }
                    if !goes_on() {
                        return false;
                    }
                }
            }
            (*next, *tested) = (*next + 1, 0);
        }
        true
    }

    /// Events that were found ahead, as far as that is still true, and those that have come since, each with its
    /// subscription.
    fn reached_on(&self, client: ClientId, passage: Passage) -> Vec<(SubscriptionId, u32)> {
        let Passage { track, mut reached, fresh, .. } = passage;
        reached.retain(|(_, number)| !fresh.contains(number) && self.scene.events.get(*number).is_some());
        for trail in self.trails(client) {
            let is_near = |number: &u32| {
                let place = self.scene.events.get(*number).map(|live| &live.event.position);
                place.is_some_and(|place| track.comes_within(&track.whole(), &trail.radius, place))
            };
            let new = fresh.iter().copied().filter(is_near);
            let new = new.filter(|number| self.is_new_along(&trail, &track, *number));
            reached.extend(new.map(|number| (trail.id, number)));
        }
        reached.sort_unstable();
        reached
    }

    fn partition_of(&self, client: ClientId) -> Partition {
        self.clients.get(client.0 as usize).map(|client| client.partition).unwrap_or_default()
    }

    /// By radius.
    fn trails(&self, client: ClientId) -> Vec<Trail<'_>> {
        let subscriptions = self.clients.get(client.0 as usize).map(|client| &client.subscriptions);
        let watches = subscriptions
            .into_iter()
            .flatten()
            .filter_map(|id| Some((*id, self.watch(*id)?)))
            .filter(|(_, watch)| *watch.interest() == Interest::Events);
        let mut trails: Vec<_> = watches.flat_map(|(id, watch)| Trail::all_of(id, watch)).collect();
        trails.sort_by(|a, b| a.radius.metres().total_cmp(&b.radius.metres()));
        trails
    }

    /// Whether an event within the radius of the track has not been had and is for it otherwise.
    fn is_new_along(&self, trail: &Trail<'_>, track: &Track, number: u32) -> bool {
        let Some(live) = self.scene.events.get(number) else { return false };
        let event = &live.event;
        !trail.watch.known.contains(number)
            && condition_holds(trail.filter, track.end(), event)
            && event.reach.is_none_or(|reach| track.comes_within(&track.whole(), &reach, &event.position))
    }
}
