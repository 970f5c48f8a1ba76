//! Questions for live events against a look at every one of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::condition::expression::Expression;
use nearcast_matcher::event::{Event, Scalar, Symbol, Value};
use nearcast_matcher::geo::{PLANAR_LIMIT_M, Position, Radius, World, squared_chord};
use nearcast_matcher::live::{
    Announcement, Fix, Interest, Nearest, Partition, Place, Rectangle, Tracker, View, Wanted, Within,
};
use nearcast_matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::random::SETTINGS;

const WORLDS: [World; 2] = [World::Geodetic, World::Planar];
const CLIENT: ClientId = ClientId(3);
const HOME: Partition = Partition(7);

/// A tracker, and what is live in it by sequence number.
struct Scene {
    world: World,
    random: StdRng,
    tracker: Tracker<u64>,
    live: BTreeMap<u64, Arc<Event>>,
    sequence: u64,
}

/// A corner of the world, and so large a step in it that the numbers are exact.
fn extent(world: World) -> ([f64; 2], f64) {
    match world {
        World::Geodetic => ([180.0, 90.0], 0.25),
        World::Planar => ([PLANAR_LIMIT_M; 2], 1_000.0),
    }
}

impl Scene {
    fn new(world: World, seed: u64, count: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let mut tracker = Tracker::new(world, SETTINGS);
        tracker.place(CLIENT, HOME);
        let mut scene = Self { world, random, tracker, live: BTreeMap::new(), sequence: 0 };
        (0..count).for_each(|_| scene.publish());
        scene
    }

    /// Anywhere; often at a seam, at the edge, or where others are.
    fn somewhere(&mut self) -> Position {
        let ([x_max, y_max], step) = extent(self.world);
        let mut along = |max: f64| match self.random.random_range(0..6) {
            0 => [max, -max, 0.0][self.random.random_range(0..3)],
            1 | 2 => step * f64::from(self.random.random_range(-4_i8..=4)),
            3 => {
                (max - step * f64::from(self.random.random_range(0_u8..4)))
                    * [-1.0, 1.0][self.random.random_range(0..2)]
            }
            _ => (self.random.random_range(-max..=max) / step).round() * step,
        };
        let coordinates = [along(x_max), along(y_max)];
        self.world.position(&coordinates).unwrap()
    }

    fn publish(&mut self) {
        let position = self.somewhere();
        let level = self.random.random_range(0..4);
        let mut event = Event::at(position).with("level", f64::from(level));
        if self.random.random_range(0..8) == 0 {
            event.reach = Some(Radius::new(self.world, 2e6).unwrap());
        }
        let partition = if self.random.random_range(0..10) == 0 { Partition(8) } else { HOME };
        self.sequence += 1;
        let event = Arc::new(event);
        let name: Arc<str> = self.sequence.to_string().into();
        let new = Announcement {
            object: Arc::clone(&name),
            id: name,
            sequence: self.sequence,
            expires: Duration::MAX,
            partition,
            event: Arc::clone(&event),
            payload: self.sequence,
        };
        self.tracker.publish(new, &[], Duration::ZERO, &mut Vec::new());
        if partition == HOME {
            self.live.insert(self.sequence, event);
        }
    }

    /// Some come and some go.
    fn churn(&mut self) {
        for _ in 0..self.random.random_range(0..4) {
            let at = self.random.random_range(1..=self.sequence);
            let Some(sequence) = self.live.range(at..).next().map(|(sequence, _)| *sequence) else {
                continue;
            };
            self.tracker.revoke(&sequence.to_string(), Duration::ZERO, &mut Vec::new());
            self.live.remove(&sequence);
            self.publish();
        }
    }

    fn within(&mut self) -> Within {
        let ([x_max, _], step) = extent(self.world);
        match self.random.random_range(0..5) {
            0 => Within::Everywhere,
            1 | 2 => {
                let (a, b) = (self.somewhere(), self.somewhere());
                let [south, north] = [a.y().min(b.y()), a.y().max(b.y())];
                let [mut west, mut east] = [a.x(), b.x()];
                if self.world == World::Planar && west > east {
                    (west, east) = (east, west);
                }
                if self.random.random_range(0..4) == 0 {
                    (west, east) = (a.x(), (a.x() + 3.0 * step).min(x_max));
                }
                Within::Rectangle(Rectangle::new(self.world, [west, south, east, north]).unwrap())
            }
            _ => {
                let metres = [0.0, 500.0, 5e4, 1e6, 1.2e7, 2.1e7][self.random.random_range(0..6)];
                let radius = Radius::new(self.world, metres).unwrap();
                Within::Circle { centre: self.somewhere(), radius }
            }
        }
    }

    /// Pages through an answer, while others come and go where `churns` says so, and compares it with what `expected` says of each event.
    fn check(&mut self, wanted: &Wanted, churns: bool, expected: impl Fn(&Self, &Event) -> bool) -> usize {
        let fits = |scene: &Self| -> BTreeMap<u64, Arc<Event>> {
            let fits = scene.live.iter().filter(|(_, event)| expected(scene, event));
            fits.map(|(sequence, event)| (*sequence, Arc::clone(event))).collect()
        };
        let before = fits(self);
        let mut ever = before.clone();
        let mut met: Vec<(Place, u64)> = Vec::new();
        let mut wanted = wanted.clone();
        loop {
            let mut query = self.tracker.query(wanted.clone());
            loop {
                let mut looks = self.random.random_range(1..200);
                let goes_on = || {
                    looks -= 1;
                    looks > 0
                };
                if self.tracker.look_into(&mut query, |_, _| true, goes_on) {
                    break;
                }
                if churns {
                    self.churn();
                    ever.extend(fits(self));
                }
            }
            let page = self.tracker.answer(query);
            assert!(page.events.len() <= wanted.most);
            met.extend(page.events);
            let Some(next) = page.next else { break };
            assert_eq!(Place::from_bytes(&next.to_bytes()), next);
            wanted.after = Some(next);
            if churns {
                self.churn();
                ever.extend(fits(self));
            }
        }
        assert!(met.is_sorted_by(|(a, _), (b, _)| a < b), "in their order, each once: {wanted:?}");
        let mut sequences: Vec<u64> = met.iter().map(|(_, sequence)| *sequence).collect();
        if let Within::Circle { centre, .. } = &wanted.within {
            // As straight lines, by which distances near to the other side of the globe are told apart less well.
            let line = |sequence: &u64| squared_chord(centre.point(), ever[sequence].position.point()).sqrt();
            let lines: Vec<f64> = sequences.iter().map(line).collect();
            assert!(lines.is_sorted_by(|a, b| *a <= b + 1e-9), "the nearest first: {lines:?}");
        }
        sequences.sort_unstable();
        let stays = before.keys().filter(|sequence| self.live.contains_key(sequence));
        for sequence in stays {
            assert!(
                sequences.binary_search(sequence).is_ok(),
                "{:?} is missing: {wanted:?}",
                before[sequence]
            );
        }
        let spurious = sequences.iter().find(|sequence| !ever.contains_key(sequence));
        assert_eq!(spurious, None, "{wanted:?}");
        met.len()
    }
}

/// Whether an event is there, in other words: longitudes are counted on from the western border.
fn is_within(world: World, within: &Within, [west, south, east, north]: [f64; 4], event: &Event) -> bool {
    let (x, y) = (event.position.x(), event.position.y());
    match within {
        Within::Everywhere => true,
        Within::Circle { centre, radius } => radius.holds(world, centre, &event.position),
        Within::Rectangle(_) if world == World::Planar => west <= x && x <= east && south <= y && y <= north,
        Within::Rectangle(_) => {
            let east = if west <= east { east } else { east + 360.0 };
            let is_pole = y.abs() == 90.0;
            south <= y
                && y <= north
                && (is_pole || [x - 360.0, x, x + 360.0].iter().any(|x| west <= *x && *x <= east))
        }
    }
}

fn level(event: &Event) -> f64 {
    match event.value(&Symbol::new("level")) {
        Some(Value::Scalar(Scalar::Number(level))) => *level,
        other => panic!("{other:?}"),
    }
}

fn wanted(within: Within, most: usize) -> Wanted {
    Wanted { partition: HOME, within, condition: Expression::Constant(true), client: None, after: None, most }
}

#[test]
fn whatever_is_asked_the_answer_is_what_there_is() {
    let mut met = [0; 2];
    for seed in 0..30_u32 {
        let world = WORLDS[usize::from(seed % 2 == 1)];
        let mut scene = Scene::new(world, seed.into(), 300);
        for case in 0..12 {
            let within = scene.within();
            let numbers = match &within {
                Within::Rectangle(rectangle) => rectangle.numbers(),
                Within::Everywhere | Within::Circle { .. } => [0.0; 4],
            };
            let most = [1, 7, 50, 1_000][scene.random.random_range(0..4)];
            let condition = if case % 3 == 0 { "level >= 2" } else { "level < 4" };
            let mut asked = wanted(within.clone(), most);
            asked.condition = Condition::parse_expression(World::Geodetic, condition).unwrap();
            let takes = |event: &Event| case % 3 != 0 || level(event) >= 2.0;
            met[case % 2] += scene.check(&asked, case % 2 == 0, |scene, event| {
                is_within(scene.world, &within, numbers, event) && takes(event)
            });
        }
    }
    assert!(met.iter().all(|count| *count > 2_000), "{met:?}");
}

fn install(scene: &mut Scene, id: u32, filters: Vec<(Filter, Nearest)>) {
    let (filters, nearest) = filters.into_iter().unzip();
    let subscription = Subscription { client: CLIENT, filters };
    scene.tracker.install(
        SubscriptionId(id),
        subscription,
        nearest,
        Interest::Events,
        Duration::ZERO,
        &mut Vec::new(),
    );
}

fn following(world: World, metres: f64, condition: &str) -> Filter {
    let area = Area::Following(Radius::new(world, metres).unwrap());
    Filter { area, condition: Condition::parse(condition).unwrap() }
}

#[test]
fn what_a_clients_subscriptions_hold_is_seen_from_where_it_is() {
    let mut met = 0;
    for seed in 0..30_u32 {
        let world = WORLDS[usize::from(seed % 2 == 1)];
        let mut scene = Scene::new(world, seed.into(), 300);
        let filters = [following(world, 3e6, "level >= 2"), following(world, 1e6, "level = 0")];
        install(&mut scene, 1, filters.iter().map(|filter| (filter.clone(), None)).collect());
        let within = scene.within();
        for case in 0..6 {
            let fix = Some(Fix { position: scene.somewhere(), accuracy_m: 0.0 }).filter(|_| case != 5);
            let view = if case % 2 == 0 {
                scene.tracker.move_client(CLIENT, fix, Duration::ZERO, &mut Vec::new());
                View::Own
            } else {
                View::From(fix)
            };
            let within = if case < 2 { within.clone() } else { Within::Everywhere };
            let numbers = match &within {
                Within::Rectangle(rectangle) => rectangle.numbers(),
                Within::Everywhere | Within::Circle { .. } => [0.0; 4],
            };
            let mut asked = wanted(within.clone(), 9);
            asked.client = Some((CLIENT, view));
            let at = fix.map(|fix| fix.position);
            met += scene.check(&asked, false, |scene, event| {
                let takes = |filter: &Filter| filter.area.holds(scene.world, at.as_ref(), &event.position);
                let reaches = event
                    .reach
                    .is_none_or(|reach| at.is_none_or(|at| reach.holds(scene.world, &event.position, &at)));
                let holds = (takes(&filters[0]) && level(event) >= 2.0)
                    || (takes(&filters[1]) && level(event) == 0.0);
                holds && reaches && is_within(scene.world, &within, numbers, event)
            });
        }
    }
    assert!(met > 1_000, "{met}");
}

#[test]
fn of_what_counts_the_nearest_these_are_held() {
    let mut scene = Scene::new(World::Planar, 1, 300);
    let everywhere = Filter { area: Area::Everywhere, condition: Condition::always() };
    install(&mut scene, 1, vec![(everywhere, NonZeroU32::new(5))]);
    let position = scene.world.position(&[500.0, 500.0]).unwrap();
    let fix = Some(Fix { position, accuracy_m: 0.0 });
    scene.tracker.move_client(CLIENT, fix, Duration::ZERO, &mut Vec::new());
    let count = |scene: &mut Scene, view| {
        let mut asked = wanted(Within::Everywhere, 1_000);
        asked.client = Some((CLIENT, view));
        let mut query = scene.tracker.query(asked);
        assert!(scene.tracker.look_into(&mut query, |_, _| true, || true));
        scene.tracker.answer(query).events.len()
    };
    assert_eq!(count(&mut scene, View::Own), 5);
    assert_eq!(count(&mut scene, View::From(fix)), 0, "of another client that is not counted");
}

/// How much was looked at for a page, in looks, and how many slices of `slice` looks that took.
fn work(scene: &Scene, wanted: Wanted, slice: u64) -> (u64, u64, usize) {
    let begun = scene.tracker.work_count();
    let mut query = scene.tracker.query(wanted);
    let mut slices = 1;
    loop {
        let ends = scene.tracker.work_count() + slice;
        if scene.tracker.look_into(&mut query, |_, _| true, || scene.tracker.work_count() < ends) {
            break;
        }
        slices += 1;
        assert!(scene.tracker.work_count() < ends + 64, "a slice ends");
    }
    (scene.tracker.work_count() - begun, slices, scene.tracker.answer(query).events.len())
}

#[test]
fn a_small_answer_costs_little_and_a_large_one_is_interrupted() {
    let mut scene = Scene::new(World::Geodetic, 2, 0);
    for number in 0..20_000_u32 {
        let at = [f64::from(number % 200) * 0.9 - 90.0, f64::from(number / 200) * 0.9 - 45.0];
        scene.sequence += 1;
        let name: Arc<str> = scene.sequence.to_string().into();
        let new = Announcement {
            object: Arc::clone(&name),
            id: name,
            sequence: scene.sequence,
            expires: Duration::MAX,
            partition: HOME,
            event: Arc::new(Event::at(scene.world.position(&at).unwrap())),
            payload: scene.sequence,
        };
        scene.tracker.publish(new, &[], Duration::ZERO, &mut Vec::new());
    }
    let world = scene.world;
    let rectangle = |numbers| Within::Rectangle(Rectangle::new(world, numbers).unwrap());
    let circle = |metres| Within::Circle {
        centre: world.position(&[9.0, 45.0]).unwrap(),
        radius: Radius::new(world, metres).unwrap(),
    };
    // A box with four events; a long one; the first ten of all; the ten nearest of half the globe.
    for (within, most, found, looks) in [
        (rectangle([8.9, -0.1, 10.0, 1.0]), 100, 4, 200),
        (rectangle([-180.0, 0.0, 180.0, 0.5]), 1_000, 200, 3_000),
        (Within::Everywhere, 10, 10, 200),
        (circle(1e7), 10, 10, 600),
    ] {
        let (work, _, count) = work(&scene, wanted(within.clone(), most), u64::MAX / 2);
        assert!(count == found && work < looks, "{within:?}: {count} in {work} looks");
    }
    let mut nothing = wanted(Within::Everywhere, 10);
    nothing.condition = Condition::parse_expression(World::Geodetic, "level > 9").unwrap();
    let (work, slices, count) = work(&scene, nothing, 1_000);
    assert!(count == 0 && work >= 20_000 && slices > work / 1_064, "{work} {slices}");
}
