//! A tracker that ends and another one that takes up where it ended, against one that goes on.

use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Radius, World};
use nearcast_matcher::live::{
    Announcement, Cause, Change, Interest, Partition, Settings, Standing, StandingNow, Tracker, Transitions,
};
use nearcast_matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};

use super::random::{Run, SETTINGS};

const WORLDS: [World; 2] = [World::Planar, World::Geodetic];

/// Ends the tracker of a run and makes another one out of what lasts: live events, fixes, subscriptions, and the record.
/// The record of every fifth subscription may be `lost`: then all that is inside counts as known, as it does where
/// nothing is recorded. Says how many standings were taken over.
fn restart(run: &mut Run, settings: Settings, lost: Option<u32>) -> usize {
    run.drain_standings();
    run.tracker = Tracker::new(run.world, settings);
    for (object, live) in &run.oracle.lives {
        run.tracker.restore_live(Announcement {
            object: object.as_str().into(),
            id: live.id.as_str().into(),
            sequence: live.sequence,
            expires: live.expires,
            partition: Partition::default(),
            event: Arc::clone(&live.event),
            payload: live.sequence,
        });
    }
    for (client, fix) in &run.oracle.fixes {
        run.tracker.move_client(ClientId(*client), Some(*fix), run.now, &mut run.effects);
    }
    let (mut taken_count, mut anew) = (0, Vec::new());
    for (id, held) in &run.oracle.held {
        let filters = held.filters.iter().map(|(filter, _)| filter.clone()).collect();
        let subscription = Subscription { client: ClientId(held.client), filters };
        let nearest = held.filters.iter().map(|(_, nearest)| *nearest).collect();
        let mut record = run.recorded.get_mut(id);
        let is_recorded = record.is_some();
        if lost == Some(id % 5) {
            record = record.and_then(|record| {
                record.clear();
                None
            });
        }
        let known: Option<Vec<(&str, StandingNow)>> =
            record.map(|record| record.iter().map(|(object, now)| (object.as_str(), *now)).collect());
        taken_count += known.as_ref().map_or(0, Vec::len);
        anew.extend(known.is_none().then_some(*id));
        let (id, known) = (SubscriptionId(*id), known.as_deref());
        run.tracker.restore(id, subscription, nearest, held.interest, is_recorded, known);
    }
    for id in anew {
        run.oracle.take_for_known(id);
    }
    assert!(run.effects.is_empty(), "nobody is told that somebody stopped");
    taken_count
}

#[test]
fn a_restart_changes_nothing() {
    let mut taken_count = 0;
    for seed in 0..40 {
        for world in WORLDS {
            let mut run = Run::new(world, 2_000 + seed);
            for step in 0..300 {
                let place = format!("seed {seed}, {world:?}, step {step}");
                run.step();
                run.compare(&place);
                if (u64::from(step) + seed).is_multiple_of(7) {
                    let lost = [None, Some(step % 5)][(step % 2) as usize];
                    taken_count += restart(&mut run, SETTINGS, lost);
                    run.compare(&format!("{place}, restarted"));
                    run.pass_time();
                    let told = run.effects.len();
                    let ids: Vec<_> = run.oracle.held.keys().copied().collect();
                    for id in ids {
                        run.tracker.resume(SubscriptionId(id), run.now, &mut run.effects);
                    }
                    assert_eq!(run.effects.len(), told, "{place}: all effects had been told");
                    run.compare(&format!("{place}, restarted, later"));
                }
            }
        }
    }
    assert!(taken_count > 20_000, "{taken_count}");
}

/// What was told since the last time, in an order of its own.
fn take_told(run: &mut Run) -> Vec<(u32, Change, u64, Cause)> {
    let told = run.effects.drain(..);
    let mut told: Vec<_> =
        told.map(|effect| (effect.subscription.0, effect.change, effect.sequence, effect.cause)).collect();
    told.sort_unstable();
    told
}

#[test]
fn a_restart_changes_nothing_where_there_is_no_room() {
    let settings = Settings { members_max: 3, ..SETTINGS };
    let mut refused_count = 0;
    for seed in 3_000..3_040 {
        for world in WORLDS {
            let [mut lasting, mut restarted] = [0; 2].map(|_| Run::with(world, seed, settings));
            (lasting.records_all, restarted.records_all) = (true, true);
            for step in 0..300 {
                let place = format!("seed {seed}, {world:?}, step {step}");
                let goes: &[fn(&mut Run)] =
                    if step % 4 == 0 { &[Run::step, Run::pass_time] } else { &[Run::step] };
                for go in goes {
                    go(&mut lasting);
                    go(&mut restarted);
                    let told = take_told(&mut lasting);
                    assert_eq!(take_told(&mut restarted), told, "{place}");
                    refused_count += told.iter().filter(|told| told.1 == Change::Refused).count();
                }
                if step % 4 == 3 {
                    restart(&mut restarted, settings, None);
                }
                for run in [&mut lasting, &mut restarted] {
                    run.drain_standings();
                }
                assert_eq!(lasting.recorded, restarted.recorded, "{place}");
            }
        }
    }
    assert!(refused_count > 1_000, "{refused_count}");
}

const ID: SubscriptionId = SubscriptionId(7);
const OBJECTS: [&str; 4] = ["0", "1", "2", "3"];

/// A tracker with four live objects at one place, events 10 to 13, and a subscription of its own kind to that place,
/// which knew three of them and one more that is gone. Of object `1` it knew an earlier event.
fn restored(interest: Interest, members_max: usize, knows: bool) -> Tracker<u64> {
    let world = World::Planar;
    let place = world.position(&[0.0, 0.0]).unwrap();
    let mut tracker =
        Tracker::new(world, Settings { members_max, members_per_client: usize::MAX, holds_inaccurate: true });
    for (sequence, object) in (10..).zip(OBJECTS) {
        tracker.restore_live(Announcement {
            object: object.into(),
            id: object.into(),
            sequence,
            expires: Duration::from_secs(100),
            partition: Partition::default(),
            event: Arc::new(Event::at(place)),
            payload: sequence,
        });
    }
    let area = Area::Circle { centre: place, radius: Radius::new(world, 1.0).unwrap() };
    let filters = vec![Filter { area, condition: Condition::always() }];
    let subscription = Subscription { client: ClientId(3), filters };
    let known = [(10, "0"), (5, "1"), (12, "2"), (9, "gone")]
        .map(|(sequence, object)| (object, StandingNow { sequence, standing: Standing::Inside }));
    tracker.restore(ID, subscription, vec![None], interest, true, knows.then_some(&known[..]));
    tracker
}

/// What is noted of it: the objects, and whether each is known.
fn noted(tracker: &mut Tracker<u64>) -> Vec<(String, bool)> {
    let mut noted = Vec::new();
    tracker.drain_standings(|id, object, now| {
        assert_eq!(id, ID);
        noted.push((object.to_string(), now.is_some()));
    });
    noted
}

const TRANSITIONS: Interest = Interest::Transitions(Transitions {
    enter: true,
    exit: true,
    initial: true,
    dwell: Duration::from_secs(5),
    hysteresis_m: 0.0,
});

#[test]
fn what_a_record_says_of_the_past_is_dropped_and_noted() {
    let mut tracker = restored(Interest::Events, 10, true);
    assert_eq!(noted(&mut tracker), [("1".to_owned(), false), ("gone".to_owned(), false)]);
    assert_eq!([10, 11, 12, 13].map(|sequence| tracker.is_inside(ID, sequence)), [true, false, true, false]);
    // A member is one by whichever of its events.
    let mut tracker = restored(TRANSITIONS, 10, true);
    assert_eq!(noted(&mut tracker), [("gone".to_owned(), false)]);
    assert_eq!([10, 11, 12, 13].map(|sequence| tracker.is_inside(ID, sequence)), [true, true, true, false]);
}

#[test]
fn nothing_that_was_known_is_lost_for_want_of_room() {
    assert_eq!(restored(TRANSITIONS, 2, true).known_count(ID), 3);
}

#[test]
fn without_a_record_all_that_is_inside_is_known_as_far_as_there_is_room() {
    for interest in [Interest::Events, TRANSITIONS] {
        let mut tracker = restored(interest, 3, false);
        assert_eq!(noted(&mut tracker), ["0", "1", "2"].map(|object| (object.to_owned(), true)));
        assert!([10, 11, 12].iter().all(|sequence| tracker.is_inside(ID, *sequence)), "nothing waits");
    }
}

#[test]
fn what_events_did_after_the_last_record_is_told_once() {
    let now = Duration::from_secs(1);
    let told = |tracker: &mut Tracker<u64>| {
        let mut effects = Vec::new();
        tracker.resume(ID, now, &mut effects);
        effects.iter().map(|effect| (effect.change, effect.sequence, effect.cause)).collect::<Vec<_>>()
    };
    let mut tracker = restored(Interest::Events, 10, true);
    let new = [11, 13].map(|sequence| (Change::Reached, sequence, Cause::Changed));
    assert_eq!(told(&mut tracker), new);
    assert_eq!(told(&mut tracker), []);
    // Where there is room for one more, the other had been refused.
    assert_eq!(told(&mut restored(Interest::Events, 3, true)), new[..1]);
    let Interest::Transitions(how) = TRANSITIONS else { unreachable!() };
    let at_once = Interest::Transitions(Transitions { dwell: Duration::ZERO, ..how });
    assert_eq!(told(&mut restored(at_once, 10, true)), [(Change::Entered, 13, Cause::Changed)]);
}

/// A tracker that takes up with events of one object, by their places, and a subscription to the first metre that knew the
/// first of them.
fn overtaken(places: &[f64], standing: Standing) -> Tracker<u64> {
    let world = World::Planar;
    let mut tracker =
        Tracker::new(world, Settings { members_max: 9, members_per_client: 9, holds_inaccurate: true });
    // In whatever order they are found.
    let all: Vec<_> = (1..).zip(places).collect();
    for (sequence, place) in all.into_iter().rev() {
        tracker.restore_live(Announcement {
            object: "k".into(),
            id: "k".into(),
            sequence,
            expires: Duration::from_secs(100),
            partition: Partition::default(),
            event: Arc::new(Event::at(world.position(&[*place, 0.0]).unwrap())),
            payload: sequence,
        });
    }
    let centre = world.position(&[0.0, 0.0]).unwrap();
    let area = Area::Circle { centre, radius: Radius::new(world, 1.0).unwrap() };
    let filters = vec![Filter { area, condition: Condition::always() }];
    let subscription = Subscription { client: ClientId(3), filters };
    let known = [("k", StandingNow { sequence: 1, standing })];
    tracker.restore(ID, subscription, vec![None], TRANSITIONS, true, Some(&known));
    tracker.forget_overtaken();
    tracker
}

#[test]
fn an_exit_after_a_recovery_tells_the_last_event_that_was_inside() {
    let now = Duration::from_secs(1);
    /// What makes the object leave.
    type Leaving = fn(&mut Tracker<u64>, &mut Vec<nearcast_matcher::live::Effect<u64>>);
    let ways: [(Cause, Leaving); 4] = [
        (Cause::Changed, |tracker, effects| tracker.resume(ID, Duration::from_secs(1), effects)),
        (Cause::Revoked, |tracker, effects| {
            assert!(tracker.revoke_object("k", Duration::from_secs(1), effects));
        }),
        (Cause::Expired, |tracker, effects| while tracker.advance(Duration::from_secs(100), effects) {}),
        (Cause::Published, |tracker, effects| {
            let place = World::Planar.position(&[70.0, 0.0]).unwrap();
            let (sequence, expires) = (9, Duration::from_secs(100));
            let (object, id, event) = ("k".into(), "k".into(), Arc::new(Event::at(place)));
            let partition = Partition::default();
            let new = Announcement { object, id, sequence, expires, partition, event, payload: 9 };
            tracker.publish(new, &[], Duration::from_secs(1), effects);
        }),
    ];
    let cases: [(&[f64], Change, u64); 4] = [
        (&[0.0, 50.0], Change::Left, 1),
        (&[0.0, 0.5, 50.0], Change::Left, 2),
        (&[0.0, 50.0, 60.0], Change::Left, 1),
        // Nothing that it may be told.
        (&[40.0, 50.0], Change::Lost, 0),
    ];
    for (cause, leaves) in ways {
        for (places, change, sequence) in cases {
            let mut tracker = overtaken(places, Standing::Inside);
            let mut effects = Vec::new();
            leaves(&mut tracker, &mut effects);
            let told = effects.iter().map(|effect| {
                let is_lost = effect.change == Change::Lost;
                (effect.change, if is_lost { 0 } else { effect.sequence }, effect.cause)
            });
            let told: Vec<_> = told.collect();
            assert_eq!(told, [(change, sequence, cause)], "{places:?}");
            effects.clear();
            tracker.resume(ID, now, &mut effects);
            assert!(effects.is_empty(), "it is told once");
        }
    }
}

#[test]
fn what_waits_does_not_enter_by_an_event_that_is_outside() {
    let standing = Standing::Waiting { until: Duration::from_secs(1), cause: Cause::Published };
    let mut tracker = overtaken(&[0.0, 50.0], standing);
    let mut effects = Vec::new();
    while tracker.advance(Duration::from_secs(2), &mut effects) {}
    tracker.resume(ID, Duration::from_secs(2), &mut effects);
    assert!(effects.is_empty());
    assert_eq!(noted(&mut tracker), [("k".to_owned(), false)]);
    // One that is inside by its newer event waits on.
    let mut tracker = overtaken(&[0.0, 0.5], standing);
    while tracker.advance(Duration::from_secs(2), &mut effects) {}
    assert_eq!(
        effects.iter().map(|effect| (effect.change, effect.sequence)).collect::<Vec<_>>(),
        [(Change::Entered, 2)]
    );
}

#[test]
fn what_is_replaced_or_ends_is_collected_where_that_is_asked_for() {
    for collects in [false, true] {
        let mut tracker = overtaken(&[0.0], Standing::Inside);
        if collects {
            tracker.collect_released();
        }
        let place = World::Planar.position(&[0.0, 0.0]).unwrap();
        let event = Arc::new(Event::at(place));
        let expires = Duration::from_secs(100);
        let new = Announcement {
            object: "k".into(),
            id: "k".into(),
            sequence: 2,
            expires,
            partition: Partition::default(),
            event,
            payload: 2,
        };
        tracker.publish(new, &[ID], Duration::ZERO, &mut Vec::new());
        assert!(tracker.revoke("k", Duration::ZERO, &mut Vec::new()));
        let mut released = Vec::new();
        tracker.drain_released(|payload| released.push(payload));
        assert_eq!(released, if collects { vec![1, 2] } else { vec![] });
    }
}
