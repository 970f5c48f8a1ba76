//! Subscribers that move among live events, and objects that move among subscribers.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::geo::{PLANAR_LIMIT_M, Position, Radius, World};
use matcher::live::{Announcement, Effect, Fix, Interest, Moment, Partition, Settings, Tracker, Transitions};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Metres of the circle around each subscriber.
pub const RADIUS_M: f64 = 300.0;
/// Live events in such a circle, on average.
pub const NEARBY: f64 = 20.0;
/// Kinds of events; a subscription asks for one of them.
pub const KINDS: u32 = 10;
/// Metres that somebody moves at a time.
pub const STEP_M: f64 = 10.0;

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Live events.
    pub live: u32,
    /// Subscribers, each with one subscription whose circle follows it.
    pub subscribers: u32,
}

/// A square with live events and subscribers spread evenly, as large as keeps the density.
pub struct Town {
    size: Size,
    side_m: f64,
    random: StdRng,
    engine: Cells,
    tracker: Tracker<u64>,
    effects: Vec<Effect<u64>>,
    rows: MatchRows,
    objects: Vec<Object>,
    subscribers: Vec<[f64; 2]>,
    sequence: u64,
    /// What was told since it was asked for last.
    told: u64,
}

struct Object {
    name: Arc<str>,
    place: [f64; 2],
    kind: u32,
    sequence: u64,
}

impl Town {
    /// Fills a town. Half of the subscribers get events, half get enters and exits.
    ///
    /// # Errors
    /// When an engine cannot take all.
    pub fn new(size: Size, seed: u64) -> anyhow::Result<Self> {
        let side_m = (f64::from(size.live) * PI * RADIUS_M * RADIUS_M / NEARBY).sqrt();
        ensure!(side_m < PLANAR_LIMIT_M, "the town is larger than the world");
        let settings = Settings { members_max: 10_000, members_per_client: 100_000, holds_inaccurate: true };
        let mut town = Self {
            size,
            side_m,
            random: StdRng::seed_from_u64(seed),
            engine: Cells::new(World::Planar),
            tracker: Tracker::new(World::Planar, settings),
            effects: Vec::new(),
            rows: MatchRows::new(),
            objects: Vec::new(),
            subscribers: Vec::new(),
            sequence: 0,
            told: 0,
        };
        for number in 0..size.live {
            let (place, kind) = (town.anywhere(), town.random.random_range(0..KINDS));
            let name = format!("object {number}").into();
            town.objects.push(Object { name, place, kind, sequence: 0 });
            town.announce(number as usize);
        }
        for number in 0..size.subscribers {
            let place = town.anywhere();
            town.subscribers.push(place);
            town.subscribe(number)?;
        }
        town.take_told();
        Ok(town)
    }

    fn anywhere(&mut self) -> [f64; 2] {
        [self.random.random_range(0.0..self.side_m), self.random.random_range(0.0..self.side_m)]
    }

    /// A step away from a place, inside of the town.
    fn step(&mut self, from: [f64; 2]) -> [f64; 2] {
        let angle = self.random.random_range(0.0..TAU);
        [from[0] + STEP_M * angle.cos(), from[1] + STEP_M * angle.sin()]
            .map(|coordinate| coordinate.clamp(0.0, self.side_m))
    }

    fn subscribe(&mut self, number: u32) -> anyhow::Result<()> {
        let kind = self.random.random_range(0..KINDS);
        let condition = Condition::parse(&format!("kind = {kind}"))?;
        let filter = Filter { area: Area::Following(Radius::new(World::Planar, RADIUS_M)?), condition };
        let subscription = Subscription { client: ClientId(number), filters: vec![filter] };
        let interest = if number.is_multiple_of(2) {
            Interest::Events
        } else {
            Interest::Transitions(Transitions {
                enter: true,
                exit: true,
                initial: false,
                dwell: Duration::ZERO,
                hysteresis_m: 0.0,
            })
        };
        self.engine.install(SubscriptionId(number), &subscription)?;
        let id = SubscriptionId(number);
        self.tracker.install(id, subscription, Vec::new(), interest, Moment::ZERO, &mut self.effects);
        self.tell_where(number);
        Ok(())
    }

    fn tell_where(&mut self, number: u32) {
        let position = position(self.subscribers[number as usize]);
        self.engine.move_client(ClientId(number), Some(position));
        let fix = Fix { position, accuracy_m: 0.0 };
        self.tracker.move_client(ClientId(number), Some(fix), Moment::ZERO, &mut self.effects);
        self.forget_effects();
    }

    /// Publishes the newest event of an object where it is now.
    fn announce(&mut self, number: usize) {
        self.sequence += 1;
        let object = &mut self.objects[number];
        object.sequence = self.sequence;
        let event = Event::at(position(object.place)).with("kind", f64::from(object.kind));
        self.rows.clear();
        // Engines on the CPU do not fail.
        let _ = self.engine.match_batch(&[&event], &mut self.rows);
        let new = Announcement {
            object: Arc::clone(&object.name),
            id: Arc::clone(&object.name),
            sequence: self.sequence,
            expires: Moment::MAX,
            partition: Partition::default(),
            event: Arc::new(event),
            payload: self.sequence,
        };
        self.tracker.publish(new, self.rows.row(0), Moment::ZERO, &mut self.effects);
        self.forget_effects();
    }

    fn forget_effects(&mut self) {
        self.told += self.effects.len() as u64;
        self.effects.clear();
    }

    /// A subscriber takes a step.
    pub fn move_subscriber(&mut self) {
        let number = self.random.random_range(0..self.size.subscribers);
        self.subscribers[number as usize] = self.step(self.subscribers[number as usize]);
        self.tell_where(number);
    }

    /// A subscriber is somewhere else.
    pub fn transport_subscriber(&mut self) {
        let number = self.random.random_range(0..self.size.subscribers);
        self.subscribers[number as usize] = self.anywhere();
        self.tell_where(number);
    }

    /// An object takes a step, which a new event tells.
    pub fn move_object(&mut self) {
        let number = self.random.random_range(0..self.objects.len());
        self.objects[number].place = self.step(self.objects[number].place);
        self.announce(number);
    }

    /// How much was told since this was asked last.
    pub fn take_told(&mut self) -> u64 {
        std::mem::take(&mut self.told)
    }

    /// Holds what `count` subscriptions know against every live event.
    ///
    /// # Errors
    /// The first subscription that knows what it should not, or does not know what it should.
    pub fn check(&mut self, count: u32) -> anyhow::Result<u64> {
        let mut inside_count = 0;
        for _ in 0..count {
            let number = self.random.random_range(0..self.size.subscribers);
            let id = SubscriptionId(number);
            let here = position(self.subscribers[number as usize]);
            let watch = self.tracker.watch(id).ok_or_else(|| anyhow::anyhow!("{id:?} is not there"))?;
            let condition = watch.filters()[0].condition.normal().to_string();
            let is_inside = |object: &&Object| {
                World::Planar.distance_m(&here, &position(object.place)) <= RADIUS_M
                    && format!("kind = {}", object.kind) == condition
            };
            let near: Vec<&Object> = self.objects.iter().filter(is_inside).collect();
            let known = near.iter().filter(|object| self.tracker.is_inside(id, object.sequence)).count();
            let is_right = match watch.interest() {
                Interest::Events => known == near.len(),
                Interest::Transitions(_) => known == near.len() && self.tracker.known_count(id) == known,
            };
            ensure!(is_right, "{id:?}: {} are inside and {known} of them known", near.len());
            inside_count += near.len() as u64;
        }
        Ok(inside_count)
    }
}

fn position(place: [f64; 2]) -> Position {
    World::Planar.position(&place).expect("the town is inside of the world")
}
