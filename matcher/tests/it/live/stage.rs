//! A tracker with little in it, on a line, moved by hand.

use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::engine::{Engine, MatchRows};
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Position, Radius, World};
use nearcast_matcher::live::{
    Announcement, Cause, Change, Effect, Fix, Interest, Moment, Nearest, Partition, Settings, Tracker,
    Transitions,
};
use nearcast_matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};

pub(super) const WORLD: World = World::Planar;
/// The client that moves, and mostly the only one.
pub(super) const CLIENT: ClientId = ClientId(0);

/// What is told: subscription, change, cause, object.
pub(super) type Told = (u32, Change, Cause, String);

pub(super) struct Stage {
    pub(super) tracker: Tracker<String>,
    pub(super) effects: Vec<Effect<String>>,
    engine: Scan,
    now: Moment,
    /// Where events are published.
    pub(super) partition: Partition,
    /// Of the last event.
    pub(super) sequence: u64,
}

pub(super) fn at(x: f64) -> Position {
    WORLD.position(&[x, 0.0]).unwrap()
}

pub(super) fn following(radius_m: f64) -> (Filter, Nearest) {
    let area = Area::Following(Radius::new(WORLD, radius_m).unwrap());
    (Filter { area, condition: Condition::always() }, None)
}

pub(super) fn circle(x: f64, radius_m: f64) -> (Filter, Nearest) {
    let area = Area::Circle { centre: at(x), radius: Radius::new(WORLD, radius_m).unwrap() };
    (Filter { area, condition: Condition::always() }, None)
}

/// Transitions, all told, that take so long to enter.
pub(super) fn dwelling(dwell_s: u64) -> Transitions {
    let dwell = Duration::from_secs(dwell_s);
    Transitions { enter: true, exit: true, initial: false, dwell, hysteresis_m: 0.0 }
}

pub(super) fn told(id: u32, change: Change, cause: Cause, object: &str) -> Told {
    (id, change, cause, object.to_owned())
}

impl Stage {
    /// The client is at 0, and nothing is live.
    pub(super) fn new(members_max: usize) -> Self {
        Self::with(members_max, usize::MAX)
    }

    /// The same with a bound for all subscriptions of the client together.
    pub(super) fn with(members_max: usize, members_per_client: usize) -> Self {
        let mut stage = Self {
            tracker: Tracker::new(
                WORLD,
                Settings { members_max, members_per_client, holds_inaccurate: true },
            ),
            effects: Vec::new(),
            engine: Scan::new(WORLD),
            now: Duration::ZERO,
            partition: Partition::default(),
            sequence: 100,
        };
        stage.go(0.0, 0.0);
        stage
    }

    fn take_told(&mut self) -> Vec<Told> {
        let told = self.effects.drain(..);
        told.map(|effect| (effect.subscription.0, effect.change, effect.cause, effect.payload)).collect()
    }

    pub(super) fn install(
        &mut self,
        id: u32,
        filters: &[(Filter, Nearest)],
        transitions: Transitions,
    ) -> Vec<Told> {
        self.install_for(CLIENT, id, filters, transitions)
    }

    pub(super) fn install_for(
        &mut self,
        client: ClientId,
        id: u32,
        filters: &[(Filter, Nearest)],
        transitions: Transitions,
    ) -> Vec<Told> {
        let subscription =
            Subscription { client, filters: filters.iter().map(|(filter, _)| filter.clone()).collect() };
        let nearest = filters.iter().map(|(_, nearest)| *nearest).collect();
        let (id, interest) = (SubscriptionId(id), Interest::Transitions(transitions));
        self.engine.install(id, &subscription).unwrap();
        self.tracker.install(id, subscription, nearest, interest, self.now, &mut self.effects);
        self.take_told()
    }

    /// Publishes an event of an object that lives for so long.
    pub(super) fn publish_for(&mut self, object: &str, event: Event, lives_s: u64) -> Vec<Told> {
        let event = Arc::new(event);
        let mut rows = MatchRows::new();
        self.engine.match_batch(&[&*event], &mut rows).unwrap();
        self.sequence += 1;
        let new = Announcement {
            object: object.into(),
            id: object.into(),
            sequence: self.sequence,
            expires: self.now + Duration::from_secs(lives_s),
            partition: self.partition,
            event,
            payload: object.to_owned(),
        };
        self.tracker.publish(new, rows.row(0), self.now, &mut self.effects);
        self.take_told()
    }

    pub(super) fn publish(&mut self, object: &str, x: f64) -> Vec<Told> {
        self.publish_for(object, Event::at(at(x)), 1_000_000)
    }

    pub(super) fn revoke(&mut self, object: &str) -> Vec<Told> {
        assert!(self.tracker.revoke(object, self.now, &mut self.effects));
        self.take_told()
    }

    pub(super) fn go(&mut self, x: f64, accuracy_m: f64) -> Vec<Told> {
        let position = at(x);
        self.engine.move_client(CLIENT, Some(position));
        let fix = Some(Fix { position, accuracy_m });
        self.tracker.move_client(CLIENT, fix, self.now, &mut self.effects);
        self.take_told()
    }

    /// Lets time pass until then: what is told in each step.
    pub(super) fn wait_until(&mut self, now_s: f64) -> Vec<Vec<Told>> {
        self.now = Duration::from_secs_f64(now_s);
        let mut steps = Vec::new();
        while self.tracker.advance(self.now, &mut self.effects) {
            steps.push(self.take_told());
        }
        steps.retain(|step| !step.is_empty());
        steps
    }

    pub(super) fn known_count(&self, id: u32) -> usize {
        self.tracker.known_count(SubscriptionId(id))
    }
}

/// `count` filters with these areas and conditions.
pub(super) fn filters(
    count: u32,
    area: impl Fn(u32) -> Area,
    condition: impl Fn(u32) -> String,
) -> Vec<(Filter, Nearest)> {
    let filter = |number| {
        (Filter { area: area(number), condition: Condition::parse(&condition(number)).unwrap() }, None)
    };
    (0..count).map(filter).collect()
}
