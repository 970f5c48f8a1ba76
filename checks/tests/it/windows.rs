//! Which events the sets hold, and when.

use std::sync::Arc;

use checks::{Arrival, Bounds, Check, Checker, Clock, Context, Document, Formula, Kind, Sets};
use matcher::World;
use matcher::area::Area;
use matcher::geo::Radius;

use crate::world::arrival;

fn check_of(clock: Clock, contexts: Vec<Context>) -> Check {
    let document = Document { contexts, formula: Formula::And(Vec::new()), clock };
    Check::new(World::Planar, &document).expect("the contexts are sound")
}

fn at(time_ms: i64) -> Arrival {
    arrival([0.0, 0.0], time_ms, &[("x", 1.0.into())])
}

/// Numbers of the events in a set.
fn held(sets: &Sets, set: usize) -> Vec<u64> {
    sets.numbers(set).collect()
}

#[test]
fn both_ends_of_a_duration_are_included() {
    let check = check_of(Clock::Event, vec![Context::of_all("two", 0.002)]);
    let mut sets = Sets::new(&check);
    for time_ms in [10, 12, 13] {
        assert!(sets.admit(&check, &at(time_ms)));
        sets.settle();
        let expected: &[u64] = match time_ms {
            10 => &[0],
            12 => &[0, 1],
            _ => &[1, 2],
        };
        assert_eq!(held(&sets, 0), expected);
    }
    assert_eq!(sets.events_count(), 2);
}

#[test]
fn a_duration_of_nothing_holds_events_of_one_moment() {
    let check = check_of(Clock::Arrival, vec![Context::of_all("now", 0.0)]);
    let mut sets = Sets::new(&check);
    for (time_ms, count) in [(5, 1), (5, 2), (6, 1)] {
        sets.admit(&check, &at(time_ms));
        sets.settle();
        assert_eq!(sets.count(0), count, "{time_ms}");
    }
}

#[test]
fn an_event_clock_follows_the_newest_and_refuses_what_is_too_old_or_ahead() {
    let contexts = vec![Context::of_all("short", 1.0), Context::of_all("long", 10.0)];
    let check = Arc::new(check_of(Clock::Event, contexts));
    let mut checker = Checker::new(check.clone(), Kind::Incremental, Bounds::default());
    let mut take = |time_ms, arrival_ms| {
        let arrival = Arrival { arrival_ms, ..at(time_ms) };
        checker.take((), &arrival).expect("no links").is_some()
    };
    assert!(take(20_000, 50_000));
    // Too old for the short set alone.
    assert!(take(18_000, 50_000));
    assert!(!take(9_999, 50_000));
    assert!(take(10_000, 50_000));
    assert!(take(110_000, 50_000), "60 s ahead are allowed");
    assert!(!take(110_001, 50_000));
    assert!(!take(i64::MAX, 50_000));
    assert_eq!((checker.ahead(), checker.evaluations()), (2, 4));
    assert_eq!((checker.sets().count(0), checker.sets().count(1)), (1, 1));
}

#[test]
fn without_a_time_the_arrival_counts() {
    let check = check_of(Clock::Event, vec![Context::of_all("long", 10.0)]);
    let mut sets = Sets::new(&check);
    assert!(sets.admit(&check, &Arrival { time_ms: None, arrival_ms: 20_000, ..at(0) }));
    assert!(!sets.admit(&check, &at(9_999)));
}

#[test]
fn sets_take_what_their_condition_and_their_area_take() {
    let centre = World::Planar.position(&[0.0, 0.0]).expect("a place");
    let circle = Area::Circle { centre, radius: Radius::new(World::Planar, 5.0).expect("a radius") };
    let near = Context { area: Some(circle), ..Context::of_all("near", 10.0) };
    let check = check_of(Clock::Event, vec![Context::of_all("positive", 10.0).when("x > 0"), near]);
    let mut sets = Sets::new(&check);
    let takes = [(0.0, 1.0), (0.0, -1.0), (9.0, 1.0), (9.0, -1.0)].map(|(place, x)| {
        let is_taken = sets.admit(&check, &arrival([place, 0.0], 1_000, &[("x", f64::into(x))]));
        sets.settle();
        is_taken
    });
    assert_eq!(takes, [true, true, true, false]);
    assert_eq!((held(&sets, 0), held(&sets, 1)), (vec![0, 2], vec![0, 1]));
    // What no set takes moves no clock either.
    assert!(!sets.admit(&check, &arrival([9.0, 0.0], 90_000, &[])));
    assert_eq!(sets.count(0), 2);
}

#[test]
fn an_event_that_is_retracted_is_held_against_nobody() {
    let pair = Formula::forall("b", "all", Formula::leaf("a.x + b.x < 10"));
    let document = Document {
        contexts: vec![Context::of_all("all", 10.0)],
        formula: Formula::forall("a", "all", pair),
        clock: Clock::Event,
    };
    let check = Arc::new(Check::new(World::Planar, &document).expect("the check is sound"));
    let mut checker = Checker::new(check, Kind::Incremental, Bounds::default());
    let mut take = |x: f64, time_ms| {
        let outcome = checker.take((), &arrival([0.0, 0.0], time_ms, &[("x", x.into())]));
        let told = outcome.expect("few links").expect("taken").told.len();
        if told > 0 {
            checker.retract().expect("few links");
        }
        told
    };
    assert_eq!([take(4.0, 0), take(8.0, 1), take(4.0, 2), take(7.0, 3), take(3.0, 4)], [0, 3, 0, 5, 0]);
    assert_eq!(checker.sets().count(0), 3);
}

#[test]
fn a_link_that_a_retracted_event_brought_is_told_again_when_another_brings_it() {
    let of =
        |name: &str| Context { condition: Some(format!("set = '{name}'")), ..Context::of_all(name, 10.0) };
    let each = Formula::forall("c", "c", Formula::leaf("c.x < 5"));
    let document = Document {
        contexts: ["a", "b", "c"].map(of).into(),
        formula: Formula::forall("a", "a", Formula::exists("b", "b", each)),
        clock: Clock::Event,
    };
    for kind in [Kind::Sequential, Kind::Incremental] {
        let check = Arc::new(Check::new(World::Planar, &document).expect("the check is sound"));
        let mut checker = Checker::new(check, kind, Bounds::default());
        let mut take = |set: &str, x: f64| {
            let arrival = arrival([0.0, 0.0], 0, &[("set", set.into()), ("x", x.into())]);
            let told = checker.take((), &arrival).expect("few links").expect("taken").told.len();
            if told > 0 {
                checker.retract().expect("few links");
            }
            told
        };
        let told = [take("b", 0.0), take("a", 0.0), take("c", 7.0), take("c", 8.0), take("c", 1.0)];
        assert_eq!(told, [0, 0, 1, 1, 0], "{kind:?}");
    }
}

#[test]
fn an_event_counts_as_memory_while_it_is_held() {
    let document = Document {
        contexts: vec![Context::of_all("all", 1.0)],
        formula: Formula::forall("a", "all", Formula::leaf("a.x = 1")),
        clock: Clock::Event,
    };
    let check = Arc::new(Check::new(World::Planar, &document).expect("the check is sound"));
    let mut checker = Checker::new(check, Kind::Incremental, Bounds::default());
    let mut bytes_after = |text: &str, time_ms| {
        let arrival = arrival([0.0, 0.0], time_ms, &[("x", 1.0.into()), ("text", text.into())]);
        checker.take((), &arrival).expect("few links").expect("taken");
        checker.bytes()
    };
    let [small, large, again] =
        [bytes_after("", 0), bytes_after(&"x".repeat(10_000), 1), bytes_after("", 2_000)];
    assert!(large >= small + 10_000 && again + 10_000 <= large, "{small}, {large}, {again}");
}
