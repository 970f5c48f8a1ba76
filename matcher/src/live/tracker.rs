//! The tracker: subscriptions, clients and live events, and what each step changes between them.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::along::Passage;
use super::deadlines::{Deadlines, Due};
use super::events::Events;
use super::known::{Known, Members};
use super::nearest::Ranking;
use super::search::{Alike, Range, Scratch, by_condition};
use super::standing::{Occasion, Recalled, Scene, Standing};
use super::survey::{self, Findings};
use super::{Cause, Effect, Fix, Interest, Moment, Nearest, Partition, Settings};
use crate::area::Area;
use crate::event::Event;
use crate::geo::World;
use crate::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use crate::violated;

/// Keeps what each subscription has had of the live events, or has inside, and says what changes.
///
/// One thread owns it; calls take effect in their order. Before a call that is given a time, [`advance`](Self::advance)
/// to that time: what was due before happens before.
pub struct Tracker<P> {
    pub(super) scene: Scene<P>,
    pub(super) watches: Vec<Option<Box<Watch>>>,
    pub(super) clients: Vec<Client>,
    /// How many live events all subscriptions know.
    members: Arc<AtomicUsize>,
    pub(super) scratch: Scratch,
    pub(super) announced: survey::Announced,
    /// Findings ahead of the next change, by subscription.
    pub(super) surveyed: HashMap<SubscriptionId, Findings, foldhash::fast::RandomState>,
    pub(super) passage: Option<Passage>,
    /// Work that the last publishing of an event took, in looks: for subscriptions, and altogether.
    pub(super) worked: Vec<(SubscriptionId, u64)>,
    pub(super) published_work: u64,
}

/// A subscription as a tracker holds it.
#[derive(Debug)]
pub struct Watch {
    pub(super) client: ClientId,
    /// Where its client is placed.
    pub(super) partition: Partition,
    pub(super) filters: Box<[Filter]>,
    /// Filters that do not count the nearest, by their conditions. Empty where there is only one filter, which does not
    /// count.
    pub(super) by_condition: Box<Alike>,
    /// Limit of each filter; empty where no filter counts the nearest.
    pub(super) nearest: Box<[Nearest]>,
    /// Ranking of each filter, of use where it counts the nearest; empty where no filter does.
    pub(super) rankings: Box<[Ranking]>,
    pub(super) interest: Interest,
    pub(super) known: Known,
    /// Whether some filter's area follows the client, or its condition depends on where that is.
    pub(super) follows: bool,
    /// Whether there may be something inside that it does not know, for want of room.
    pub(super) has_overflowed: bool,
    /// Whether changes of what it knows are noted.
    pub(super) is_recorded: bool,
    /// Whether it knows what was recorded of it, and has not been brought up to date since.
    pub(super) is_restored: bool,
}

/// A client as far as its position and its subscriptions go.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) partition: Partition,
    pub(super) fix: Option<Fix>,
    pub(super) subscriptions: Vec<SubscriptionId>,
    /// How many live events these know.
    members: Option<Arc<Members>>,
}

impl Watch {
    /// A subscription that knows nothing yet. It takes part in nothing before it is installed.
    #[must_use]
    pub fn new(subscription: Subscription, nearest: Vec<Nearest>, interest: Interest) -> Self {
        let counts = nearest.iter().any(Option::is_some);
        let follows = subscription
            .filters
            .iter()
            .any(|filter| matches!(filter.area, Area::Following(_)) || filter.condition.reads_client());
        let nearest = if counts { nearest } else { Vec::new() };
        let is_plain = |index| nearest.get(index).copied().flatten().is_none();
        let by_condition = match &subscription.filters[..] {
            [_] if !counts => Box::default(),
            filters => by_condition(filters, is_plain),
        };
        Self {
            client: subscription.client,
            partition: Partition::default(),
            filters: subscription.filters.into(),
            by_condition,
            rankings: vec![Ranking::default(); nearest.len()].into(),
            nearest: nearest.into(),
            interest,
            known: Known::default(),
            follows,
            has_overflowed: false,
            is_recorded: false,
            is_restored: false,
        }
    }

    /// Puts the subscription into the partition that its client is [placed](Tracker::place) in. A subscription that is
    /// installed is where its client is.
    #[must_use]
    pub fn within(mut self, partition: Partition) -> Self {
        self.partition = partition;
        self
    }

    /// Whether it has one filter, which does not count the nearest.
    pub(super) fn has_one_plain(&self) -> bool {
        self.filters.len() == 1 && self.nearest.is_empty()
    }

    /// Its filters.
    #[must_use]
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Its interest: events, or transitions.
    #[must_use]
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// How many of the nearest a filter counts.
    #[must_use]
    pub fn nearest(&self, filter: usize) -> Nearest {
        self.nearest.get(filter).copied().flatten()
    }
}

impl<P: Clone> Tracker<P> {
    /// Nothing is live, nobody subscribes.
    #[must_use]
    pub fn new(world: World, settings: Settings) -> Self {
        let scene = Scene {
            world,
            settings,
            events: Events::new(world),
            deadlines: Deadlines::default(),
            noted: Vec::new(),
            released: None,
            overtaken: HashMap::default(),
            recalled: Recalled::new(),
            work_count: Cell::new(0),
        };
        Self {
            scene,
            watches: Vec::new(),
            clients: Vec::new(),
            members: Arc::default(),
            scratch: Scratch::default(),
            announced: survey::Announced::default(),
            surveyed: HashMap::default(),
            passage: None,
            worked: Vec::new(),
            published_work: 0,
        }
    }

    pub(super) fn scene(&self) -> &Scene<P> {
        &self.scene
    }

    /// A subscription.
    #[must_use]
    pub fn watch(&self, id: SubscriptionId) -> Option<&Watch> {
        self.watches.get(id.0 as usize)?.as_deref()
    }

    /// Where a client says that it is.
    #[must_use]
    pub fn fix(&self, client: ClientId) -> Option<&Fix> {
        self.clients.get(client.0 as usize)?.fix.as_ref()
    }

    /// How many events are live.
    #[must_use]
    pub fn live_count(&self) -> usize {
        self.scene.events.len()
    }

    /// How many of these there are in one part of the world.
    #[must_use]
    pub fn live_count_in(&self, partition: Partition) -> usize {
        self.scene.events.places(partition).map_or(0, |places| places.points().len())
    }

    /// How much it has done so far, in looks at places and at conditions. One that takes long counts for as many as would
    /// take as long. The same calls come to the same count, on whatever machine.
    #[must_use]
    pub fn work_count(&self) -> u64 {
        self.scene.work_count.get()
    }

    /// The live events of an id: with their sequence numbers, payloads and ends.
    pub fn live(&self, id: &str) -> impl Iterator<Item = (u64, &P, Moment)> {
        let numbers = self.scene.events.of_id(id).into_iter();
        numbers
            .filter_map(|number| self.scene.events.get(number))
            .map(|live| (live.sequence, &live.payload, live.expires))
    }

    /// The payload of an object's live event.
    #[must_use]
    pub fn live_of(&self, object: &str) -> Option<&P> {
        let number = self.scene.events.of_object(object)?;
        self.scene.events.get(number).map(|live| &live.payload)
    }

    /// How many live events a subscription holds.
    #[must_use]
    pub fn known_count(&self, id: SubscriptionId) -> usize {
        self.watch(id).map_or(0, |watch| watch.known.len())
    }

    /// How many live events the subscriptions of a client hold, each for itself.
    #[must_use]
    pub fn members_of(&self, client: ClientId) -> usize {
        let client = self.clients.get(client.0 as usize);
        client.and_then(|client| client.members.as_ref()).map_or(0, |members| members.count())
    }

    /// How many live events the subscriptions of all clients hold, each for itself.
    #[must_use]
    pub fn members_count(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// Whether the object of a live event is inside of a subscription to transitions, or the event has come to a
    /// subscription to events.
    #[must_use]
    pub fn is_inside(&self, id: SubscriptionId, sequence: u64) -> bool {
        self.watch(id).is_some_and(|watch| {
            watch.known.iter().any(|(number, standing)| {
                standing == Standing::Inside
                    && self.scene.events.get(number).is_some_and(|live| live.sequence == sequence)
            })
        })
    }

    /// Whether an event that is not live, and that satisfies the filters of a subscription, is for it.
    #[must_use]
    pub fn takes_passing(&self, id: SubscriptionId, event: &Event) -> bool {
        let Some(watch) = self.watch(id) else { return false };
        match watch.interest {
            Interest::Transitions(_) => false,
            Interest::Events if watch.counts_nearest() => {
                watch.is_inside(&self.scene, self.fix(watch.client), event, None)
            }
            Interest::Events => true,
        }
    }

    /// When [`advance`](Self::advance) may have something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        self.scene.deadlines.next()
    }

    /// Lets the next thing happen that is due by `now`; says whether there was one. To be called until there is none.
    /// Objects that enter in one instant, having stayed for long enough, are one thing.
    pub fn advance(&mut self, now: Moment, effects: &mut Vec<Effect<P>>) -> bool {
        let Some((at, due)) = self.scene.deadlines.pop(now) else { return false };
        match due {
            Due::Dwelt { .. } => {
                let mut next = Some(due);
                while let Some(Due::Dwelt { subscription, event }) = next {
                    if let Some(watch) = watch_mut(&mut self.watches, subscription) {
                        watch.enter(&mut self.scene, effects, subscription, event, at);
                    }
                    next = self.scene.deadlines.pop_dwelt(at);
                }
            }
            Due::Expired { event, sequence } => {
                if self.scene.events.get(event).is_some_and(|live| live.sequence == sequence) {
                    self.end(event, at, Cause::Expired, effects);
                }
            }
        }
        true
    }

    /// Makes or replaces a subscription. One that was of the same kind keeps what it knows; what fits the new filters no
    /// more leaves. Whether its standings are recorded, see [`record_standings`](Self::record_standings), stays as it
    /// is; those of a new one are not.
    pub fn install(
        &mut self,
        id: SubscriptionId,
        subscription: Subscription,
        nearest: Vec<Nearest>,
        interest: Interest,
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let watch = Watch::new(subscription, nearest, interest);
        self.install_watch(id, watch, Occasion { now, cause: Cause::Changed, outdated: None, effects });
    }

    /// Gives a subscription other filters in place of its own, as many as it has, for a reason. All else of it stays as it is.
    pub fn replace_filters(
        &mut self,
        id: SubscriptionId,
        filters: Vec<Filter>,
        cause: Cause,
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let Some(held) = self.watch(id) else {
            return violated!("a subscription whose filters change is installed");
        };
        let nearest = if held.nearest.is_empty() { vec![None; filters.len()] } else { held.nearest.to_vec() };
        let watch = Watch::new(Subscription { client: held.client, filters }, nearest, held.interest);
        self.install_watch(id, watch, Occasion { now, cause, outdated: None, effects });
    }

    fn install_watch(&mut self, id: SubscriptionId, mut watch: Watch, mut occasion: Occasion<'_, P>) {
        let interest = watch.interest;
        let mut is_new = true;
        let mut dwell_before = None;
        if let Some(previous) = self.watch(id) {
            is_new = std::mem::discriminant(&previous.interest) != std::mem::discriminant(&interest);
            watch.is_recorded = previous.is_recorded;
            if is_new {
                if watch.is_recorded {
                    self.note_all(id);
                }
                self.remove(id);
            } else if let Some(previous) = self.watches[id.0 as usize].take() {
                dwell_before = previous.transitions().map(|how| how.dwell);
                self.client(previous.client).subscriptions.retain(|other| *other != id);
                watch.known = previous.known;
                watch.known.forget_hints();
            }
        }
        self.enlist(id, &mut watch);
        if self.scene.events.places(watch.partition).is_some() {
            let silently = match &watch.interest {
                Interest::Transitions(transitions) => is_new && !transitions.initial,
                Interest::Events => false,
            };
            self.catch_up(&mut watch, id, silently, dwell_before, &mut occasion);
        }
        self.surveyed.clear();
        self.put(id, watch);
    }

    /// Counts a subscription among those of its client.
    pub(super) fn enlist(&mut self, id: SubscriptionId, watch: &mut Watch) {
        let all = Arc::clone(&self.members);
        let client = self.client(watch.client);
        client.subscriptions.push(id);
        watch.partition = client.partition;
        watch.known.count_for(client.members.get_or_insert_with(|| Members::among(&all)));
    }

    /// Says whether a client's subscriptions hold as many live objects as the [`Settings`] allow, or any number, for one that has bounds of
    /// its own. Without it the settings count.
    pub fn bound_members(&mut self, client: ClientId, is_bounded: bool) {
        let all = Arc::clone(&self.members);
        self.client(client).members.get_or_insert_with(|| Members::among(&all)).bound(is_bounded);
    }

    /// Lets a subscription take part, one that its client knows of.
    pub(super) fn put(&mut self, id: SubscriptionId, watch: Watch) {
        if self.watches.len() <= id.0 as usize {
            self.watches.resize_with(id.0 as usize + 1, || None);
        }
        self.watches[id.0 as usize] = Some(Box::new(watch));
        self.clear_up();
    }

    /// Brings a subscription that is new or changed up to date with everything that is live; `silently` where what it
    /// comes to know is not told, and was there before. For one that is changed: how long objects had to stay before.
    pub(super) fn catch_up(
        &mut self,
        watch: &mut Watch,
        id: SubscriptionId,
        silently: bool,
        dwell_before: Option<Duration>,
        occasion: &mut Occasion<'_, P>,
    ) {
        let fix = self.clients[watch.client.0 as usize].fix;
        let fix = fix.as_ref();
        let scene = &mut self.scene;
        let findings = self.surveyed.remove(&id).or_else(|| self.surveyed.remove(&survey::NEW));
        let findings = findings.as_ref();
        let nearest = watch.count_nearest(scene, fix, None, findings);
        if watch.is_for_transitions() {
            watch.review(scene, occasion, id, fix, &nearest, findings);
        }
        if let Some(before) = dwell_before {
            watch.change_dwell(scene, occasion, id, before);
        }
        let scratch = &mut self.scratch;
        scratch.found.clear();
        watch.find_surveyed(scene, &Range::Inside(fix), findings, scratch);
        let found = &mut scratch.found;
        found.extend(nearest);
        if watch.is_restored {
            watch.is_restored = false;
            // Who found no room was told of it then.
            watch.leave_out(scene, found, |_, _| false);
        }
        watch.meet_all(scene, occasion, id, found, silently);
    }

    /// Ends a subscription; nobody is told of it, and its standings are not noted: what was recorded of it goes as a
    /// whole. Says whether there was one.
    pub fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some(watch) = self.watches.get_mut(id.0 as usize).and_then(Option::take) else { return false };
        self.client(watch.client).subscriptions.retain(|other| *other != id);
        for number in watch.known.numbers() {
            match self.scene.events.get_mut(number) {
                Some(live) => live.known_to.remove(id),
                None => violated!("an event that a subscription knows is held"),
            }
        }
        true
    }

    /// Says where a client can meet live events. To be called before it has subscriptions; without it that is where a
    /// default [`Partition`] says.
    pub fn place(&mut self, client: ClientId, partition: Partition) {
        self.client(client).partition = partition;
    }

    /// Tells where a client is now, or that nothing is known of it any more.
    ///
    /// Cost: what comes near and what is inside of areas that follow the client, the live events whose own area it enters or
    /// leaves, and what is in the areas of filters whose conditions depend on where it is; neither all live events nor all
    /// subscriptions.
    pub fn move_client(
        &mut self,
        client: ClientId,
        fix: Option<Fix>,
        now: Moment,
        effects: &mut Vec<Effect<P>>,
    ) {
        let held = self.client(client);
        let partition = held.partition;
        let before = std::mem::replace(&mut held.fix, fix);
        let subscriptions = std::mem::take(&mut held.subscriptions);
        if let (Some(places), false) = (self.scene.events.places(partition), subscriptions.is_empty()) {
            let have_reaches = places.have_reaches();
            let [mut entered, mut left] = [Vec::new(), Vec::new()];
            if let (Some(before), Some(after), true) = (&before, &fix, have_reaches) {
                [entered, left] = self.scene.events.crossed(partition, &before.position, &after.position);
            }
            let way = Way {
                before: before.as_ref(),
                after: fix.as_ref(),
                entered: &entered,
                left: &left,
                may_leave_any: have_reaches && before.is_none(),
            };
            for id in &subscriptions {
                let Some(watch) = watch_mut(&mut self.watches, *id) else {
                    violated!("a client's subscription is installed");
                    continue;
                };
                let occasion = Occasion { now, cause: Cause::Moved, outdated: None, effects };
                let findings = self.surveyed.remove(id);
                watch.follow(&mut self.scene, occasion, *id, &way, findings.as_ref(), &mut self.scratch);
            }
            self.clear_up();
        }
        self.surveyed.clear();
        self.passage = None;
        self.clients[client.0 as usize].subscriptions = subscriptions;
    }

    pub(super) fn client(&mut self, id: ClientId) -> &mut Client {
        if self.clients.len() <= id.0 as usize {
            self.clients.resize_with(id.0 as usize + 1, Client::default);
        }
        &mut self.clients[id.0 as usize]
    }

    /// Takes deadlines out that are of no use any more, where they are many.
    pub(super) fn clear_up(&mut self) {
        let (events, watches) = (&self.scene.events, &self.watches);
        self.scene.deadlines.clear_up(|at, due| match due {
            Due::Expired { event, sequence } => {
                events.get(event).is_some_and(|live| live.sequence == sequence)
            }
            Due::Dwelt { subscription, event } => {
                let watch = watches.get(subscription.0 as usize).and_then(Option::as_deref);
                let standing = watch.and_then(|watch| watch.known.get(event));
                matches!(standing, Some(Standing::Waiting { until, .. }) if until == at)
            }
        });
    }
}

/// A client's move.
pub(super) struct Way<'a> {
    pub(super) before: Option<&'a Fix>,
    pub(super) after: Option<&'a Fix>,
    /// The live events whose own area holds the new place and not the old one.
    pub(super) entered: &'a [u32],
    /// The other way round.
    pub(super) left: &'a [u32],
    /// Whether any that have an area of their own may be left, for want of an old place.
    pub(super) may_leave_any: bool,
}

pub(super) fn watch_mut(watches: &mut [Option<Box<Watch>>], id: SubscriptionId) -> Option<&mut Watch> {
    watches.get_mut(id.0 as usize)?.as_deref_mut()
}
