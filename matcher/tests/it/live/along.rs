//! What is reached on the way, against every event held against the whole line.

use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::{Area, Corridor};
use nearcast_matcher::condition::Condition;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Position, Radius, World};
use nearcast_matcher::live::{Announcement, Cause, Change, Interest, Partition, Settings, Tracker};
use nearcast_matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::random::{CLIENTS, Run};

#[test]
fn what_is_passed_is_told_once() {
    let mut reached_count = 0;
    for seed in 4_000..4_040 {
        for world in [World::Planar, World::Geodetic] {
            let mut run = Run::new(world, seed);
            for step in 0..250 {
                let place = format!("seed {seed}, {world:?}, step {step}");
                run.step();
                run.compare(&place);
                if step % 4 == 0 {
                    let client = run.pick(CLIENTS);
                    let track: Vec<_> = (0..=run.pick(6)).map(|_| run.place()).collect();
                    run.tracker.reach_along(ClientId(client), &track, run.now, &mut run.effects);
                    run.oracle.reach_along(client, &track);
                    reached_count += run.effects.len();
                    run.compare(&format!("{place}, on the way"));
                    run.move_client(client, *track.last().unwrap());
                    run.compare(&format!("{place}, there"));
                }
            }
        }
    }
    assert!(reached_count > 1_000, "{reached_count}");
}

const ID: SubscriptionId = SubscriptionId(0);
const CLIENT: ClientId = ClientId(0);

/// A tracker with live events `0`, `1` and on at some places, and a subscription to what is so near to its client.
fn tracker(world: World, places: &[Position], radius: Radius) -> Tracker<u64> {
    let mut tracker = Tracker::new(
        world,
        Settings { members_max: usize::MAX, members_per_client: usize::MAX, holds_inaccurate: true },
    );
    for (sequence, place) in (0..).zip(places) {
        tracker.restore_live(Announcement {
            object: sequence.to_string().into(),
            id: sequence.to_string().into(),
            sequence,
            expires: Duration::from_secs(10),
            partition: Partition::default(),
            event: Arc::new(Event::at(*place)),
            payload: sequence,
        });
    }
    let filters = vec![Filter { area: Area::Following(radius), condition: Condition::always() }];
    let subscription = Subscription { client: CLIENT, filters };
    tracker.install(ID, subscription, vec![None], Interest::Events, Duration::ZERO, &mut Vec::new());
    tracker
}

fn reached(tracker: &mut Tracker<u64>, track: &[Position]) -> Vec<u64> {
    let mut effects = Vec::new();
    tracker.reach_along(CLIENT, track, Duration::ZERO, &mut effects);
    assert!(effects.iter().all(|effect| (effect.change, effect.cause) == (Change::Reached, Cause::Moved)));
    effects.iter().map(|effect| effect.sequence).collect()
}

#[test]
fn a_journey_around_the_world_passes_what_its_corridor_holds() {
    let world = World::Geodetic;
    let mut random = StdRng::seed_from_u64(12);
    for metres in [20_000.0, 300_000.0, 3_000_000.0] {
        let anywhere = |random: &mut StdRng| {
            world.position(&[random.random_range(-180.0..=180.0), random.random_range(-90.0..=90.0)]).unwrap()
        };
        let places: Vec<_> = (0..20_000).map(|_| anywhere(&mut random)).collect();
        let mut track: Vec<_> = (0..6).map(|_| anywhere(&mut random)).collect();
        // Across a pole and the antimeridian, and a walk around the block at the end.
        track.extend(
            [[10.0, 80.0], [-170.0, 85.0], [175.0, 10.0], [-175.0, -10.0]]
                .map(|c| world.position(&c).unwrap()),
        );
        for step in 0..300 {
            let (sin, cos) = (f64::from(step) / 20.0).sin_cos();
            track.push(world.position(&[9.0 + sin, 45.0 + cos]).unwrap());
        }
        let radius = Radius::new(world, metres).unwrap();
        let corridor = Corridor::new(world, &track, radius).unwrap();
        let expected: Vec<u64> = (0..)
            .zip(&places)
            .filter(|(_, place)| corridor.holds(world, place))
            .map(|(number, _)| number)
            .collect();
        let mut tracker = tracker(world, &places, radius);
        assert!(expected.len() > 100, "{}", expected.len());
        assert_eq!(reached(&mut tracker, &track), expected, "{metres} m");
        assert!(reached(&mut tracker, &track).is_empty(), "once is enough");
    }
}

#[test]
fn an_event_comes_as_far_as_it_reaches_itself() {
    let world = World::Planar;
    let at = |x, y| world.position(&[x, y]).unwrap();
    let radius = |metres| Radius::new(world, metres).unwrap();
    let mut tracker = tracker(world, &[], radius(100.0));
    for (sequence, (y, reach_m)) in
        (0..).zip([(50.0, 50.0), (50.0, 49.9), (-100.0, 1_000.0), (101.0, 1_000.0)])
    {
        let mut event = Event::at(at(500.0, y));
        event.reach = Some(radius(reach_m));
        tracker.restore_live(Announcement {
            object: sequence.to_string().into(),
            id: sequence.to_string().into(),
            sequence,
            expires: Duration::from_secs(10),
            partition: Partition::default(),
            event: Arc::new(event),
            payload: sequence,
        });
    }
    assert_eq!(reached(&mut tracker, &[]), []);
    assert_eq!(reached(&mut tracker, &[at(0.0, 0.0), at(1_000.0, 0.0)]), [0, 2]);
    assert_eq!(reached(&mut tracker, &[at(500.0, 51.0)]), [1, 3]);
}
