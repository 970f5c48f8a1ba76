//! How much is looked at, by count.

use std::num::NonZeroU32;

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::Radius;
use nearcast_matcher::live::Cause::{Moved, Published};
use nearcast_matcher::live::Change::{Entered, Left};
use nearcast_matcher::live::Partition;
use nearcast_matcher::subscription::{ClientId, Filter, SubscriptionId};

use super::stage::{Stage, WORLD, at, circle, dwelling, filters, told};

/// How much a step did.
fn work_of(stage: &mut Stage, step: impl FnOnce(&mut Stage)) -> u64 {
    let before = stage.tracker.work_count();
    step(stage);
    stage.tracker.work_count() - before
}

fn reaching(x: f64, reach_m: f64) -> Event {
    let mut event = Event::at(at(x));
    event.reach = Some(Radius::new(WORLD, reach_m).unwrap());
    event
}

fn wide(number: u32) -> Area {
    Area::Circle { centre: at(f64::from(number)), radius: Radius::new(WORLD, 1e6).unwrap() }
}

#[test]
fn each_live_event_is_held_against_each_filter_once() {
    let (lives, count) = (500, 64);
    let mut stage = Stage::new(usize::MAX);
    for number in 0..lives {
        stage.publish(&number.to_string(), f64::from(number));
    }
    // A look and a condition of one constraint each.
    let unlike = filters(count, wide, |number| format!("level = {number}"));
    let work = work_of(&mut stage, |stage| assert_eq!(stage.install(0, &unlike, dwelling(0)), []));
    assert!(work <= u64::from(lives * count) * 3, "{work}");
    // And a condition that many filters have is tested once.
    let alike = filters(count, wide, |_| "level = 1".to_owned());
    let work = work_of(&mut stage, |stage| assert_eq!(stage.install(1, &alike, dwelling(0)), []));
    assert!(work <= u64::from(lives) * 3, "{work}");
}

#[test]
fn a_small_step_looks_at_the_border_of_what_follows() {
    let lives = 2_000;
    let mut stage = Stage::new(usize::MAX);
    for number in 0..lives {
        stage.publish(&number.to_string(), f64::from(number));
    }
    let areas = |number| Area::Following(Radius::new(WORLD, f64::from(1_500 - number)).unwrap());
    let following = filters(64, areas, |number| format!("level = {number}"));
    stage.install(0, &following, dwelling(0));
    let work = work_of(&mut stage, |stage| assert_eq!(stage.go(2.0, 0.0), []));
    assert!(work < 64 * 200, "{work}");
}

#[test]
fn a_move_looks_at_events_whose_own_area_it_enters_or_leaves() {
    let mut stage = Stage::new(usize::MAX);
    stage.install(0, &[circle(0.0, 1_000.0)], dwelling(0));
    for number in 0..1_000 {
        stage.publish_for(&number.to_string(), reaching(0.0, 500.0 + f64::from(number) / 10.0), 1_000);
        stage.publish_for(&format!("far {number}"), reaching(900.0, 100.0), 1_000);
    }
    assert_eq!(stage.publish_for("a", reaching(20.0, 15.0), 1_000), []);
    assert_eq!(stage.publish_for("b", reaching(-20.0, 25.0), 1_000), [told(0, Entered, Published, "b")]);
    let work = work_of(&mut stage, |stage| {
        let exchange = [told(0, Left, Moved, "b"), told(0, Entered, Moved, "a")];
        assert_eq!(stage.go(10.0, 0.0), exchange);
    });
    assert!(work < 10, "{work}");
}

#[test]
fn what_is_live_elsewhere_costs_nothing() {
    let mut stage = Stage::new(usize::MAX);
    stage.install(0, &filters(1, wide, |_| "level = 1".to_owned()), dwelling(0));
    stage.publish_for("here", reaching(20.0, 15.0).with("level", 1.0), 1_000);
    stage.partition = Partition(1);
    for number in 0..1_000 {
        stage.publish_for(&number.to_string(), reaching(20.0, 15.0), 1_000);
    }
    let work = work_of(&mut stage, |stage| {
        assert_eq!(stage.go(10.0, 0.0), [told(0, Entered, Moved, "here")]);
        assert_eq!(stage.install(1, &filters(1, wide, |_| "level = 2".to_owned()), dwelling(0)), []);
    });
    assert!(work < 20, "{work}");
}

#[test]
fn a_change_of_one_of_the_nearest_counts_that_one_anew() {
    let mut stage = Stage::new(usize::MAX);
    for number in 0..3_000 {
        stage.publish(&number.to_string(), f64::from(number));
    }
    let condition = Condition::always();
    let following = Area::Following(Radius::new(WORLD, 1e6).unwrap());
    for (id, area) in (0..).zip([Area::Everywhere, following]) {
        let filter = Filter { area, condition: condition.clone() };
        stage.install(id, &[(filter, NonZeroU32::new(1_000))], dwelling(0));
    }
    let work = work_of(&mut stage, |stage| {
        for round in 0..50 {
            // One that counts moves among those that do, and one behind them among those behind.
            assert_eq!(stage.publish("10", f64::from(round)), []);
            assert_eq!(stage.publish("2000", f64::from(2_000 + round)), []);
        }
        // Those that count go by and by, and others take their place.
        for number in 100..200 {
            assert_eq!(stage.revoke(&number.to_string()).len(), 4);
        }
    });
    assert!(work < 50 * 2 * 20 + 100 * 2 * 20 + 2 * 6_000, "{work}");
}

#[test]
fn clients_take_what_their_subscriptions_take_together_and_what_long_texts_do() {
    let mut stage = Stage::new(usize::MAX);
    let [reads, has_many, has_few] = [1, 2, 3].map(ClientId);
    stage.install_for(reads, 0, &filters(1, wide, |_| "text LIKE '%_zz_%'".to_owned()), dwelling(0));
    for id in 1..=300 {
        stage.install_for(has_many, id, &[circle(0.0, 10.0)], dwelling(0));
    }
    for id in 301..=400 {
        stage.install_for(has_few, id, &[circle(0.0, 10.0)], dwelling(0));
    }
    let event = |x: f64, text: &str| Event::at(at(x)).with("text", text);
    assert_eq!(stage.publish_for("a", event(0.0, "a zz b"), 1_000).len(), 401);
    assert_eq!(stage.tracker.demanding(), (Vec::new(), 0), "an engine has said all");
    assert_eq!(stage.publish_for("a", event(100.0, &"a".repeat(16_000)), 1_000).len(), 401);
    let (of, all) = stage.tracker.demanding();
    assert_eq!(
        of.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        (0..=300).map(SubscriptionId).collect::<Vec<_>>()
    );
    assert!(of[0].1 > 6 * 16_000 && of[1].1 < 1_000, "{of:?}");
    assert!(all > of.iter().map(|(_, ns)| ns).sum(), "{all}");
}
