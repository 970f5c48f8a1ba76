//! The whole of it in one type: an engine and a tracker that are told the same.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::area::{Area, Corridor, CorridorError, Polygon, PolygonError};
use crate::condition::{Condition, ConditionError};
use crate::engine::cells::Cells;
use crate::engine::{Engine, InstallError, MatchError, MatchRows};
use crate::event::{Event, Value};
use crate::geo::{PositionError, Radius, RadiusError, World};
use crate::live::{Announcement, Effect, Fix, Interest, Moment, Nearest, Partition, Settings, Tracker};
use crate::subscription::{ClientId, Filter, Subscription, SubscriptionId};

/// Clients that move, their subscriptions, and the events that come to them.
///
/// Places are plain numbers, `[longitude, latitude]` in degrees or `[x, y]` in metres, and are checked against the one [`World`] that it
/// was made for, so that two worlds cannot meet. It gives out the ids of clients and subscriptions; an id may be given out again after
/// what it stood for was removed.
///
/// `P` is what you want back with each live event: your own id, or an [`Arc`] of the whole document.
///
/// ```
/// use nearcast_matcher::{EventBuilder, FilterBuilder, Matcher, World};
///
/// # fn main() -> Result<(), nearcast_matcher::Error> {
/// let mut matcher: Matcher<()> = Matcher::new(World::Geodetic);
/// let ann = matcher.add_client();
/// let near_me = matcher.subscribe(ann, [FilterBuilder::around(500.0).when("severity >= 2")])?;
/// matcher.set_position(ann, Some([9.19, 45.46]))?;
///
/// let accident = EventBuilder::at([9.193, 45.461]).with("severity", 3.0);
/// assert_eq!(matcher.publish(&accident)?, [(ann, near_me)]);
///
/// matcher.set_position(ann, Some([9.3, 45.5]))?;
/// assert_eq!(matcher.publish(&accident)?, []);
/// # Ok(())
/// # }
/// ```
pub struct Matcher<P> {
    world: World,
    engine: Box<dyn Engine>,
    tracker: Tracker<P>,
    /// Subscriptions of each client, by its id; `None` where an id is free.
    clients: Vec<Option<Vec<SubscriptionId>>>,
    free_clients: Vec<ClientId>,
    /// Client of each subscription, by the subscription's id; `None` where an id is free.
    subscriptions: Vec<Option<ClientId>>,
    free_subscriptions: Vec<SubscriptionId>,
    now: Moment,
    sequence: u64,
    rows: MatchRows,
    effects: Vec<Effect<P>>,
}

/// Error of a call. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such client.
    #[error("there is no client {}", .0.0)]
    UnknownClient(ClientId),
    /// There is no such subscription.
    #[error("there is no subscription {}", .0.0)]
    UnknownSubscription(SubscriptionId),
    /// Numbers that are no place of this world.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// A number that is no radius.
    #[error(transparent)]
    Radius(#[from] RadiusError),
    /// Rings that make no polygon.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
    /// A line that makes no corridor.
    #[error(transparent)]
    Corridor(#[from] CorridorError),
    /// A text that is no condition.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// No more filters can be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The engine failed. Engines on the CPU never do.
    #[error(transparent)]
    Match(#[from] MatchError),
}

/// A filter that is being written: where, what, and how many of the nearest. It is checked when it is used.
#[derive(Clone, Debug)]
pub struct FilterBuilder {
    place: Place,
    condition: Option<String>,
    nearest: Nearest,
}

#[derive(Clone, Debug)]
enum Place {
    Everywhere,
    Around(f64),
    Circle([f64; 2], f64),
    Polygon(Vec<Vec<Vec<[f64; 2]>>>),
    Corridor(Vec<[f64; 2]>, f64),
}

/// An event that is being written: where, and what it says. It is checked when it is used.
#[derive(Clone, Debug)]
pub struct EventBuilder {
    place: [f64; 2],
    reach_m: Option<f64>,
    attributes: Vec<(String, Value)>,
}

/// The bounds of a [`Matcher`]'s memory for live events; see [`Settings`].
const SETTINGS: Settings =
    Settings { members_max: 10_000, members_per_client: 100_000, holds_inaccurate: true };

impl FilterBuilder {
    fn new(place: Place) -> Self {
        Self { place, condition: None, nearest: None }
    }

    /// Events wherever they are.
    #[must_use]
    pub fn everywhere() -> Self {
        Self::new(Place::Everywhere)
    }

    /// Events at most `radius_m` metres from where the client is, wherever it goes; none while it has no position.
    #[must_use]
    pub fn around(radius_m: f64) -> Self {
        Self::new(Place::Around(radius_m))
    }

    /// Events at most `radius_m` metres from a place.
    #[must_use]
    pub fn circle(centre: [f64; 2], radius_m: f64) -> Self {
        Self::new(Place::Circle(centre, radius_m))
    }

    /// Events within polygons: each is rings of places, the first its outer one and the others holes.
    #[must_use]
    pub fn polygons(polygons: Vec<Vec<Vec<[f64; 2]>>>) -> Self {
        Self::new(Place::Polygon(polygons))
    }

    /// Events at most `radius_m` metres from a line.
    #[must_use]
    pub fn corridor(line: Vec<[f64; 2]>, radius_m: f64) -> Self {
        Self::new(Place::Corridor(line, radius_m))
    }

    /// Only events whose attributes make a condition true, in CQL2 text: `severity >= 2 AND road LIKE 'A%'`.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// Only the `k` nearest of the live objects.
    #[must_use]
    pub fn nearest(mut self, k: NonZeroU32) -> Self {
        self.nearest = Some(k);
        self
    }

    fn build(self, world: World) -> Result<(Filter, Nearest), Error> {
        let at = |place: &[f64; 2]| world.position(place);
        let area = match self.place {
            Place::Everywhere => Area::Everywhere,
            Place::Around(radius_m) => Area::Following(Radius::new(world, radius_m)?),
            Place::Circle(centre, radius_m) => {
                Area::Circle { centre: at(&centre)?, radius: Radius::new(world, radius_m)? }
            }
            Place::Polygon(polygons) => {
                let ring = |ring: &Vec<[f64; 2]>| ring.iter().map(at).collect::<Result<Vec<_>, _>>();
                let rings = |rings: &Vec<_>| rings.iter().map(ring).collect::<Result<Vec<_>, _>>();
                let polygons = polygons.iter().map(rings).collect::<Result<Vec<_>, _>>()?;
                Area::Polygon(Box::new(Polygon::new(world, &polygons)?))
            }
            Place::Corridor(line, radius_m) => {
                let line = line.iter().map(at).collect::<Result<Vec<_>, _>>()?;
                Area::Corridor(Box::new(Corridor::new(world, &line, Radius::new(world, radius_m)?)?))
            }
        };
        let condition = self
            .condition
            .map_or_else(|| Ok(Condition::always()), |text| Condition::parse_in(world, &text))?;
        Ok((Filter { area, condition }, self.nearest))
    }
}

impl EventBuilder {
    /// An event at a place.
    #[must_use]
    pub fn at(place: [f64; 2]) -> Self {
        Self { place, reach_m: None, attributes: Vec::new() }
    }

    /// Adds an attribute: a number, a text, a truth value, or an array of these. It replaces an earlier one of its
    /// name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let name = name.into();
        self.attributes.retain(|(other, _)| *other != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// Keeps the event from clients that are further away than `reach_m` metres.
    #[must_use]
    pub fn reaching(mut self, reach_m: f64) -> Self {
        self.reach_m = Some(reach_m);
        self
    }

    fn build(&self, world: World) -> Result<Event, Error> {
        let mut event = Event::at(world.position(&self.place)?);
        event.reach = self.reach_m.map(|reach_m| Radius::new(world, reach_m)).transpose()?;
        Ok(self.attributes.iter().fold(event, |event, (name, value)| event.with(name, value.clone())))
    }
}

impl<P: Clone> Matcher<P> {
    /// An empty one, with the engine for CPUs.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self::with_engine(world, Box::new(Cells::new(world)))
    }

    /// An empty one with another engine, which has to be of the same world and empty.
    #[must_use]
    pub fn with_engine(world: World, engine: Box<dyn Engine>) -> Self {
        Self {
            world,
            engine,
            tracker: Tracker::new(world, SETTINGS),
            clients: Vec::new(),
            free_clients: Vec::new(),
            subscriptions: Vec::new(),
            free_subscriptions: Vec::new(),
            now: Moment::ZERO,
            sequence: 0,
            rows: MatchRows::new(),
            effects: Vec::new(),
        }
    }

    /// A client without a position and without subscriptions.
    pub fn add_client(&mut self) -> ClientId {
        let id = self.free_clients.pop().unwrap_or_else(|| ClientId(number(self.clients.len())));
        *slot(&mut self.clients, id.0) = Some(Vec::new());
        // A client that had the id before may have been somewhere.
        self.tracker.place(id, Partition::default());
        id
    }

    /// Removes a client and its subscriptions. Nobody is told of what it leaves.
    ///
    /// # Errors
    /// [`Error::UnknownClient`].
    pub fn remove_client(&mut self, client: ClientId) -> Result<(), Error> {
        let held = self.clients.get_mut(client.0 as usize).and_then(Option::take);
        for id in held.ok_or(Error::UnknownClient(client))? {
            self.end(id);
        }
        self.move_to(client, None);
        self.free_clients.push(client);
        Ok(())
    }

    /// Subscribes a client to events that satisfy one of some filters. What is live and inside already comes as an [`Effect`].
    ///
    /// # Errors
    /// [`Error::UnknownClient`], and what is wrong with a filter.
    pub fn subscribe(
        &mut self,
        client: ClientId,
        filters: impl IntoIterator<Item = FilterBuilder>,
    ) -> Result<SubscriptionId, Error> {
        self.subscribe_to(client, filters, Interest::Events)
    }

    /// Subscribes a client with some filters and an interest: in events that satisfy one of the filters, or in live
    /// objects that come inside and leave.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_to(
        &mut self,
        client: ClientId,
        filters: impl IntoIterator<Item = FilterBuilder>,
        interest: Interest,
    ) -> Result<SubscriptionId, Error> {
        if self.clients.get(client.0 as usize).is_none_or(Option::is_none) {
            return Err(Error::UnknownClient(client));
        }
        let built = filters.into_iter().map(|filter| filter.build(self.world));
        let (filters, nearest) = built.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let subscription = Subscription { client, filters };
        let free = self.free_subscriptions.last().copied();
        let id = free.unwrap_or_else(|| SubscriptionId(number(self.subscriptions.len())));
        self.engine.install(id, &subscription)?;
        self.free_subscriptions.pop();
        self.tracker.install(id, subscription, nearest, interest, self.now, &mut self.effects);
        *slot(&mut self.subscriptions, id.0) = Some(client);
        self.clients[client.0 as usize].as_mut().expect("it was just looked at").push(id);
        Ok(id)
    }

    /// Ends a subscription. Nobody is told of what leaves it.
    ///
    /// # Errors
    /// [`Error::UnknownSubscription`].
    pub fn unsubscribe(&mut self, id: SubscriptionId) -> Result<(), Error> {
        let client = self.subscriptions.get(id.0 as usize).copied().flatten();
        let client = client.ok_or(Error::UnknownSubscription(id))?;
        if let Some(Some(held)) = self.clients.get_mut(client.0 as usize) {
            held.retain(|other| *other != id);
        }
        self.end(id);
        Ok(())
    }

    fn end(&mut self, id: SubscriptionId) {
        self.engine.remove(id);
        self.tracker.remove(id);
        self.subscriptions[id.0 as usize] = None;
        self.free_subscriptions.push(id);
    }

    /// Tells where a client is now, or that nobody knows. The live events that it comes by and leaves behind follow as
    /// effects.
    ///
    /// Cost: constant for each filter that follows the client, and what live events it meets.
    ///
    /// # Errors
    /// [`Error::UnknownClient`], [`Error::Position`].
    pub fn set_position(&mut self, client: ClientId, place: Option<[f64; 2]>) -> Result<(), Error> {
        if self.clients.get(client.0 as usize).is_none_or(Option::is_none) {
            return Err(Error::UnknownClient(client));
        }
        let position = place.map(|place| self.world.position(&place)).transpose()?;
        self.move_to(client, position.map(|position| Fix { position, accuracy_m: 0.0 }));
        Ok(())
    }

    fn move_to(&mut self, client: ClientId, fix: Option<Fix>) {
        self.engine.move_client(client, fix.map(|fix| fix.position));
        self.tracker.move_client(client, fix, self.now, &mut self.effects);
    }

    /// Matches an event that is over as soon as it is told. Returns each client with the subscription that the event
    /// satisfies, by subscription.
    ///
    /// # Errors
    /// [`Error::Position`], [`Error::Radius`], [`Error::Match`].
    pub fn publish(&mut self, event: &EventBuilder) -> Result<Vec<(ClientId, SubscriptionId)>, Error> {
        let event = event.build(self.world)?;
        self.find(&event)?;
        let takes = |id: &&SubscriptionId| self.tracker.takes_passing(**id, &event);
        let client = |id: &SubscriptionId| Some((self.subscriptions[id.0 as usize]?, *id));
        Ok(self.rows.row(0).iter().filter(takes).filter_map(client).collect())
    }

    /// Publishes an event that stays, until `lives_for` is over, a newer event of the same object replaces it, or it is
    /// [ended](Self::end_object). Subscribers get it as an effect now, or when they come by.
    ///
    /// # Errors
    /// [`Error::Position`], [`Error::Radius`], [`Error::Match`].
    pub fn publish_live(
        &mut self,
        object: impl Into<Arc<str>>,
        event: &EventBuilder,
        lives_for: Duration,
        payload: P,
    ) -> Result<(), Error> {
        let event = event.build(self.world)?;
        self.find(&event)?;
        let object = object.into();
        self.sequence += 1;
        let announcement = Announcement {
            id: Arc::clone(&object),
            object,
            sequence: self.sequence,
            expires: self.now.saturating_add(lives_for),
            partition: Partition::default(),
            event: Arc::new(event),
            payload,
        };
        self.tracker.publish(announcement, self.rows.row(0), self.now, &mut self.effects);
        Ok(())
    }

    fn find(&mut self, event: &Event) -> Result<(), Error> {
        self.rows.clear();
        Ok(self.engine.match_batch(&[event], &mut self.rows)?)
    }

    /// Ends the live event of an object; says whether there was one.
    pub fn end_object(&mut self, object: &str) -> bool {
        self.tracker.revoke_object(object, self.now, &mut self.effects)
    }

    /// Tells what time it is, from a moment of your choice on: what was due until then happens, lives that end and objects that have
    /// stayed inside for long enough. It never goes back.
    pub fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while self.tracker.advance(self.now, &mut self.effects) {}
    }

    /// When [`advance`](Self::advance) may have something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        self.tracker.next_deadline()
    }

    /// Takes the effects of live events since the last call of this, in their order. It is to be called after each
    /// call, or after some: effects are kept until then.
    pub fn effects(&mut self) -> impl Iterator<Item = Effect<P>> {
        self.effects.drain(..)
    }

    /// The client that a subscription belongs to; `None` where there is no such subscription.
    #[must_use]
    pub fn client_of(&self, id: SubscriptionId) -> Option<ClientId> {
        self.subscriptions.get(id.0 as usize).copied().flatten()
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("memory ends before 2^32 of them")
}

/// The place of a number, which is one of those that there are or the next.
fn slot<T>(slots: &mut Vec<Option<T>>, number: u32) -> &mut Option<T> {
    let index = number as usize;
    if index == slots.len() {
        slots.push(None);
    }
    &mut slots[index]
}
