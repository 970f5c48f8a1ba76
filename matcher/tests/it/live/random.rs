//! Random lives: places and radii from few values, so that borders are met exactly.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::{Area, Polygon};
use nearcast_matcher::condition::Condition;
use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::engine::{Engine, MatchRows};
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Position, Radius, World};
use nearcast_matcher::live::{
    Announcement, Cause, Change, Effect, Fix, Interest, Moment, Nearest, Partition, Settings, Standing,
    StandingNow, Survey, Tracker, Transitions,
};
use nearcast_matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::oracle::{Live, Oracle, State, Told};

pub(super) const CLIENTS: u32 = 5;
pub(super) const SUBSCRIPTIONS: u32 = 14;
const OBJECTS: u32 = 25;
const STEPS: u32 = 400;
pub(super) const SETTINGS: Settings =
    Settings { members_max: 10_000, members_per_client: usize::MAX, holds_inaccurate: true };

pub(super) struct Run {
    pub(super) world: World,
    random: StdRng,
    pub(super) tracker: Tracker<u64>,
    pub(super) engine: Scan,
    pub(super) oracle: Oracle,
    pub(super) effects: Vec<Effect<u64>>,
    /// What the tracker had recorded, by subscription and object.
    pub(super) recorded: BTreeMap<u32, BTreeMap<String, StandingNow>>,
    pub(super) records_all: bool,
    /// Whether there are only transitions, and none of them counts the nearest.
    pub(super) is_plain: bool,
    /// Whether installations and moves are surveyed, while other things happen.
    pub(super) surveys: bool,
    pub(super) now: Moment,
    sequence: u64,
}

impl Run {
    pub(super) fn new(world: World, seed: u64) -> Self {
        Self::with(world, seed, SETTINGS)
    }

    pub(super) fn with(world: World, seed: u64, settings: Settings) -> Self {
        Self {
            world,
            random: StdRng::seed_from_u64(seed),
            tracker: Tracker::new(world, settings),
            engine: Scan::new(world),
            oracle: Oracle::new(world, settings.members_max),
            effects: Vec::new(),
            recorded: BTreeMap::new(),
            records_all: false,
            is_plain: false,
            surveys: false,
            now: Duration::ZERO,
            sequence: 0,
        }
    }

    pub(super) fn pick(&mut self, below: u32) -> u32 {
        self.random.random_range(0..below)
    }

    /// A point of a lattice of 8 by 8, 100 metres apart, around a corner of the world.
    pub(super) fn place(&mut self) -> Position {
        let (column, row) = (f64::from(self.pick(8)), f64::from(self.pick(8)));
        let coordinates = match self.world {
            World::Planar => [column * 100.0, row * 100.0],
            World::Geodetic => {
                let longitude = 179.9965 + column * 0.001;
                [if longitude > 180.0 { longitude - 360.0 } else { longitude }, row * 0.001]
            }
        };
        self.world.position(&coordinates).unwrap()
    }

    fn radius(&mut self) -> Radius {
        let metres = [0.0, 100.0, 150.0, 200.0, 300.0, 500.0][self.pick(6) as usize];
        Radius::new(self.world, metres).unwrap()
    }

    fn filter(&mut self) -> (Filter, Nearest) {
        let area = match self.pick(8) {
            0 => Area::Everywhere,
            1 => {
                let (centre, radius) = (self.place(), self.radius());
                Area::Circle { centre, radius }
            }
            2 => {
                let corners = match self.world {
                    World::Planar => [[100.0, 100.0], [400.0, 100.0], [400.0, 300.0], [100.0, 300.0]],
                    World::Geodetic => {
                        [[179.9975, 0.001], [179.9995, 0.001], [179.9995, 0.003], [179.9975, 0.003]]
                    }
                };
                let mut ring: Vec<_> =
                    corners.iter().map(|corner| self.world.position(corner).unwrap()).collect();
                ring.push(ring[0]);
                Area::Polygon(Box::new(Polygon::new(self.world, &[vec![ring]]).unwrap()))
            }
            _ => Area::Following(self.radius()),
        };
        let pick = self.pick(6);
        let of_client = |text: &str| Condition::parse_in(self.world, text).unwrap();
        let condition = match pick {
            0 => Condition::always(),
            1 => Condition::parse("level >= 2").unwrap(),
            2 => Condition::parse("kind = 'a' OR level = 0").unwrap(),
            3 => of_client("DISTANCE(event, me) <= 100 * level"),
            4 => of_client("LON(me) > 0 AND LAT(me) <= LAT(event) OR kind = 'b'"),
            _ => Condition::parse("kind <> 'b'").unwrap(),
        };
        let counts = !self.is_plain && self.pick(4) == 0;
        let nearest = if counts { NonZeroU32::new(1 + self.pick(4)) } else { None };
        (Filter { area, condition }, nearest)
    }

    pub(super) fn event(&mut self) -> Event {
        let mut event = Event::at(self.place()).with("level", f64::from(self.pick(4)));
        if self.pick(3) > 0 {
            event = event.with("kind", ["a", "b"][self.pick(2) as usize]);
        }
        if self.pick(4) == 0 {
            event.reach = Some(self.radius());
        }
        event
    }

    fn install(&mut self) {
        let id = self.pick(SUBSCRIPTIONS);
        // A subscription belongs to one client for good.
        let client = id % CLIENTS;
        let filters: Vec<_> = (0..1 + self.pick(3)).map(|_| self.filter()).collect();
        let interest = if !self.is_plain && self.pick(3) == 0 {
            Interest::Events
        } else {
            Interest::Transitions(Transitions {
                enter: self.pick(5) > 0,
                exit: self.pick(5) > 0,
                initial: self.pick(2) == 0,
                dwell: Duration::from_millis([0, 0, 700, 2_000][self.pick(4) as usize]),
                hysteresis_m: [0.0, 0.0, 50.0, 100.0][self.pick(4) as usize],
            })
        };
        let subscription = Subscription {
            client: ClientId(client),
            filters: filters.iter().map(|(filter, _)| filter.clone()).collect(),
        };
        let nearest: Vec<_> = filters.iter().map(|(_, nearest)| *nearest).collect();
        if self.surveys {
            let previous = self.oracle.held.contains_key(&id).then_some(SubscriptionId(id));
            let (subscription, nearest) = (subscription.clone(), nearest.clone());
            let partition = Partition::default();
            let survey =
                self.tracker.survey_installation(previous, subscription, nearest, interest, partition);
            self.survey(survey, client);
        }
        self.engine.install(SubscriptionId(id), &subscription).unwrap();
        self.tracker.install(
            SubscriptionId(id),
            subscription,
            nearest,
            interest,
            self.now,
            &mut self.effects,
        );
        self.oracle.install(id, client, filters, interest, self.now);
        let is_recorded = self.pick(4) > 0 || self.records_all;
        self.tracker.record_standings(SubscriptionId(id), is_recorded);
        if is_recorded {
            self.recorded.entry(id).or_default();
        }
        self.drain_standings();
        if !is_recorded {
            let left = self.recorded.remove(&id);
            assert!(left.is_none_or(|left| left.is_empty()), "what is turned off is taken back");
        }
    }

    /// Brings the record up to date.
    pub(super) fn drain_standings(&mut self) {
        let recorded = &mut self.recorded;
        self.tracker.drain_standings(|id, object, now| {
            let of = recorded.get_mut(&id.0).expect("only what is recorded is told");
            match now {
                Some(now) => drop(of.insert(object.to_string(), now)),
                None => drop(of.remove(&**object)),
            }
        });
    }

    fn publish(&mut self) {
        let object = self.object();
        let event = Arc::new(self.event());
        self.announce(&object, event);
    }

    pub(super) fn object(&mut self) -> String {
        format!("object {}", self.pick(OBJECTS))
    }

    pub(super) fn announce(&mut self, object: &str, event: Arc<Event>) {
        let id = format!("id {}", self.pick(OBJECTS));
        self.sequence += 1;
        let lives = [300, 1_000, 5_000, 60_000][self.pick(4) as usize];
        let expires = self.now + Duration::from_millis(lives);
        let mut rows = MatchRows::new();
        self.engine.match_batch(&[&*event], &mut rows).unwrap();
        let new = Announcement {
            object: object.into(),
            id: id.as_str().into(),
            sequence: self.sequence,
            expires,
            partition: Partition::default(),
            event: Arc::clone(&event),
            payload: self.sequence,
        };
        self.tracker.publish(new, rows.row(0), self.now, &mut self.effects);
        let live = Live { id, sequence: self.sequence, expires, event };
        self.oracle.publish(object, live, self.now);
    }

    pub(super) fn step(&mut self) {
        match self.pick(20) {
            0..8 => {
                let (client, position) = (self.pick(CLIENTS), self.place());
                self.move_client(client, position);
            }
            8..15 => self.publish(),
            15 => {
                let id = format!("id {}", self.pick(OBJECTS));
                let of_id = self.oracle.lives.iter().filter(|(_, live)| live.id == id);
                // Those of one id end in an order of no meaning: only single ones are compared.
                let objects: Vec<String> = of_id.map(|(object, _)| object.clone()).collect();
                if objects.len() < 2 {
                    assert_eq!(self.tracker.revoke(&id, self.now, &mut self.effects), !objects.is_empty());
                    for object in objects {
                        self.oracle.end(&object, self.now, Cause::Revoked);
                    }
                }
            }
            16 => {
                let id = self.pick(SUBSCRIPTIONS);
                self.engine.remove(SubscriptionId(id));
                self.tracker.remove(SubscriptionId(id));
                self.oracle.remove(id);
                self.recorded.remove(&id);
            }
            17 => self.pass_time(),
            _ => self.install(),
        }
    }

    pub(super) fn move_client(&mut self, client: u32, position: Position) {
        let accuracy_m = [0.0, 0.0, 0.0, 120.0][self.pick(4) as usize];
        let fix = Fix { position, accuracy_m };
        if self.surveys {
            let track: Option<Vec<_>> =
                (self.pick(3) == 0).then(|| (0..=self.pick(4)).map(|_| self.place()).collect());
            let survey = self.tracker.survey_move(ClientId(client), fix, track.as_deref());
            self.survey(survey, client);
            if let Some(track) = track {
                self.tracker.reach_along(ClientId(client), &track, self.now, &mut self.effects);
                self.oracle.reach_along(client, &track);
            }
        }
        self.engine.move_client(ClientId(client), Some(fix.position));
        self.tracker.move_client(ClientId(client), Some(fix), self.now, &mut self.effects);
        self.oracle.move_client(client, fix, self.now);
    }

    /// Makes a survey a few looks at a time. What happens in between is not its client's.
    fn survey(&mut self, mut survey: Survey, client: u32) {
        self.surveys = false;
        loop {
            let mut left = self.pick(30);
            let mut goes_on = || {
                left = left.saturating_sub(1);
                left > 0
            };
            let is_done = self.tracker.go_on(&mut survey, &mut goes_on);
            match self.pick(6) {
                0 => {
                    let (other, position) = ((client + 1 + self.pick(CLIENTS - 1)) % CLIENTS, self.place());
                    self.move_client(other, position);
                }
                1..3 => self.publish(),
                3 => self.pass_time(),
                _ if is_done => break,
                _ => {}
            }
        }
        self.tracker.use_survey(survey);
        self.surveys = true;
    }

    pub(super) fn pass_time(&mut self) {
        let passes = u64::from(self.pick(800));
        self.now += Duration::from_millis(passes);
        while self.tracker.advance(self.now, &mut self.effects) {}
        self.oracle.advance(self.now);
    }

    pub(super) fn compare(&mut self, place: &str) {
        let mut told: Vec<Told> = self
            .effects
            .drain(..)
            .map(|effect| {
                assert_eq!(effect.sequence, effect.payload, "{place}");
                (effect.subscription.0, effect.change, effect.cause, effect.sequence)
            })
            .collect();
        let mut expected = self.oracle.take_told();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{place}");
        assert_eq!(self.tracker.live_count(), self.oracle.lives.len(), "{place}");
        for id in 0..SUBSCRIPTIONS {
            let known = self.tracker.known_count(SubscriptionId(id));
            assert_eq!(known, self.oracle.known(id), "{place}: what subscription {id} knows");
        }
        self.compare_record(place);
    }

    /// What is recorded is what the recorded subscriptions know.
    fn compare_record(&mut self, place: &str) {
        self.drain_standings();
        for (id, recorded) in &self.recorded {
            let held = &self.oracle.held[id];
            let states = recorded.iter().map(|(object, now)| {
                let live = self.oracle.lives[object].sequence;
                // A member stays one with a newer event.
                assert!(live == now.sequence || held.interest != Interest::Events && live > now.sequence);
                (object.clone(), state(now.standing))
            });
            assert_eq!(states.collect::<BTreeMap<_, _>>(), held.known, "{place}: what {id} had recorded");
        }
    }
}

fn state(standing: Standing) -> State {
    match standing {
        Standing::Inside => State::Inside,
        Standing::Waiting { until, cause } => State::Waiting(until, cause),
    }
}

/// Left, entered, reached, refused.
pub(super) fn kind(change: Change) -> usize {
    match change {
        Change::Left | Change::Lost => 0,
        Change::Entered => 1,
        Change::Reached => 2,
        Change::Refused => 3,
    }
}

#[test]
fn every_change_is_told_once() {
    let mut told = [0_usize; 4];
    for seed in 0..60 {
        for world in [World::Planar, World::Geodetic] {
            let mut run = Run::new(world, seed);
            for step in 0..STEPS {
                run.step();
                for effect in &run.effects {
                    told[kind(effect.change)] += 1;
                }
                run.compare(&format!("seed {seed}, {world:?}, step {step}"));
            }
        }
    }
    // The run is about something.
    assert!(told[..3].iter().all(|count| *count > 2_000), "{told:?}");
}
