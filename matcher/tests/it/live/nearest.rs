//! What the nearest cost where nothing changes about them.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::Radius;
use nearcast_matcher::live::Cause::{Moved, Published, Revoked};
use nearcast_matcher::live::Change::{Entered, Left};
use nearcast_matcher::live::Nearest;
use nearcast_matcher::subscription::Filter;

use super::stage::{Stage, WORLD, at, dwelling, told};

const LIVES: u32 = 10_000;

/// The nearest anywhere, of those that satisfy a condition.
fn nearest(count: u32, condition: &str) -> [(Filter, Nearest); 1] {
    let condition = Condition::parse(condition).unwrap();
    [(Filter { area: Area::Everywhere, condition }, NonZeroU32::new(count))]
}

/// A client at 0 and objects in two rows from there, a metre apart.
fn crowd() -> Stage {
    let mut stage = Stage::new(usize::MAX);
    for number in 0..LIVES {
        let side = if number % 2 == 0 { 1.0 } else { -1.0 };
        stage.publish(&number.to_string(), side * f64::from(1 + number / 2));
    }
    stage
}

/// How long something takes when nothing else keeps the machine busy.
fn quickest(mut what: impl FnMut()) -> Duration {
    let times = (0..20).map(|_| {
        let begin = Instant::now();
        what();
        begin.elapsed()
    });
    times.min().unwrap()
}

#[test]
fn a_move_does_not_look_at_all_where_fewer_fit_than_count() {
    let mut stage = crowd();
    let rare = |x| Event::at(at(x)).with("rare", true);
    let mut reaching = rare(-50.0);
    reaching.reach = Some(Radius::new(WORLD, 20.0).unwrap());
    assert_eq!(stage.publish_for("reaching", reaching, 1_000), []);
    assert_eq!(stage.publish_for("far", rare(1e6), 1_000), []);
    let search = quickest(|| {
        stage.install(0, &nearest(3, "rare = TRUE"), dwelling(0));
    });
    let mut x = 0.0;
    let moving = quickest(|| {
        x += 0.5;
        assert_eq!(stage.go(x, 0.0), []);
    });
    assert!(moving * 20 < search, "a move takes {moving:?}, a search {search:?}");
    // And nothing is missed.
    assert_eq!(stage.go(-40.0, 0.0), [told(0, Entered, Moved, "reaching")]);
    let enters = [told(0, Entered, Published, "near")];
    assert_eq!(stage.publish_for("near", rare(5.0), 1_000), enters);
    let exchange = [told(0, Left, Published, "far"), told(0, Entered, Published, "nearer")];
    assert_eq!(stage.publish_for("nearer", rare(-10.0), 1_000), exchange);
    let exchange = [told(0, Left, Moved, "reaching"), told(0, Entered, Moved, "far")];
    assert_eq!(stage.go(100.0, 0.0), exchange);
    assert_eq!(stage.revoke("far"), [told(0, Left, Revoked, "far")]);
    assert_eq!(stage.go(-45.0, 0.0), [told(0, Entered, Moved, "reaching")]);
}

#[test]
fn an_event_behind_the_nearest_counts_nobody_anew() {
    let mut stage = crowd();
    stage.install(0, &nearest(1_000, "TRUE"), dwelling(0));
    let mut x = 0.0;
    let counting = quickest(|| {
        x = 0.1 - x;
        stage.go(x, 0.0);
    });
    stage.go(0.0, 0.0);
    let mut number = 0;
    let publishing = quickest(|| {
        number += 1;
        assert_eq!(stage.publish(&format!("behind {number}"), f64::from(501 + number)), []);
    });
    assert!(publishing * 20 < counting, "an event takes {publishing:?}, a count {counting:?}");
    // As far as the last that counts, which was there before.
    assert_eq!(stage.publish("as far", 500.0), []);
    let exchange = [told(0, Left, Published, "999"), told(0, Entered, Published, "near")];
    assert_eq!(stage.publish("near", 499.0), exchange);
    assert_eq!(stage.publish("as far", 501.0), []);
    // Two are there of 500 m when one of the nearer goes; the earlier one is nearer.
    let exchange = [told(0, Left, Revoked, "0"), told(0, Entered, Revoked, "999")];
    assert_eq!(stage.revoke("0"), exchange);
    // One that was numbered before all of them and comes late.
    stage.sequence = 5;
    let exchange = [told(0, Left, Published, "999"), told(0, Entered, Published, "early")];
    assert_eq!(stage.publish("early", 500.0), exchange);
}
