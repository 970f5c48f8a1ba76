//! Conditions that depend on where the client is, while it moves.

use std::time::Duration;

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::live::{Cause, Change, Nearest};
use nearcast_matcher::subscription::Filter;

use super::stage::{CLIENT, Stage, WORLD, circle, dwelling, told};

/// A filter whose area does not follow the client.
fn filter(area: Area, condition: &str) -> (Filter, Nearest) {
    (Filter { area, condition: Condition::parse_in(WORLD, condition).unwrap() }, None)
}

#[test]
fn a_move_lets_in_and_out_by_the_condition_alone() {
    let mut stage = Stage::new(10);
    stage.install(0, &[filter(Area::Everywhere, "DISTANCE(event, me) <= 50")], dwelling(0));
    let (area, _) = circle(100.0, 30.0);
    stage.install(1, &[filter(area.area, "LON(me) > LON(event)")], dwelling(0));
    assert_eq!(stage.publish("near", 50.0), [told(0, Change::Entered, Cause::Published, "near")]);
    assert_eq!(stage.publish("far", 110.0), []);
    let moved = |id, change, object| told(id, change, Cause::Moved, object);
    let both =
        [moved(0, Change::Left, "near"), moved(0, Change::Entered, "far"), moved(1, Change::Entered, "far")];
    assert_eq!(stage.go(120.0, 0.0), both);
    // However inexact the position is, the condition takes it as it is.
    assert_eq!(stage.go(70.0, 500.0), [moved(0, Change::Entered, "near"), moved(1, Change::Left, "far")]);
    let mut effects = Vec::new();
    stage.tracker.move_client(CLIENT, None, Duration::ZERO, &mut effects);
    let left: Vec<_> = effects.iter().map(|effect| (effect.change, &*effect.payload)).collect();
    assert_eq!(left, [(Change::Left, "near"), (Change::Left, "far")]);
    assert_eq!((stage.known_count(0), stage.known_count(1)), (0, 0));
}

#[test]
fn what_holds_without_a_position_is_no_news_with_one() {
    let mut stage = Stage::new(1);
    let mut effects = Vec::new();
    stage.tracker.move_client(CLIENT, None, Duration::ZERO, &mut effects);
    stage.install(0, &[filter(Area::Everywhere, "level = 1 OR LON(me) > 5")], dwelling(0));
    let level = |level: f64| nearcast_matcher::event::Event::at(super::stage::at(0.0)).with("level", level);
    stage.tracker.move_client(CLIENT, None, Duration::ZERO, &mut effects);
    let one = told(0, Change::Entered, Cause::Published, "one");
    assert_eq!(stage.publish_for("one", level(1.0), 100), [one]);
    let other = told(0, Change::Refused, Cause::Published, "other");
    assert_eq!(stage.publish_for("other", level(1.0), 100), [other]);
    assert_eq!(stage.go(4.0, 0.0), [], "nothing has changed, and there is no room");
    assert_eq!(stage.known_count(0), 1);
}
