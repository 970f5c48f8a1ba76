//! Objects that have to stay before they enter.

use nearcast_matcher::event::Event;
use nearcast_matcher::live::Cause::{Changed, Expired, Moved, Published};
use nearcast_matcher::live::Change::{Entered, Left};

use super::stage::{Stage, at, circle, dwelling, following, told};

#[test]
fn nobody_waits_while_the_fix_is_inaccurate() {
    let mut stage = Stage::new(10);
    stage.install(0, &[following(100.0)], dwelling(1));
    assert_eq!(stage.publish("member", 10.0), []);
    assert_eq!(stage.wait_until(1.0), [[told(0, Entered, Published, "member")]]);
    assert_eq!(stage.publish("a", 50.0), []);
    assert_eq!(stage.known_count(0), 2);
    // Wherever the client may be now: the member stays one, and who is on the way stays outside.
    assert_eq!(stage.go(5_000.0, 200.0), []);
    assert_eq!(stage.known_count(0), 1);
    assert_eq!(stage.wait_until(5.0), [] as [Vec<_>; 0]);
    assert_eq!(stage.publish("a", 60.0), []);
    assert_eq!(stage.known_count(0), 1);
    // It begins anew.
    assert_eq!(stage.go(0.0, 100.0), []);
    assert_eq!(stage.wait_until(5.999), [] as [Vec<_>; 0]);
    assert_eq!(stage.wait_until(6.0), [[told(0, Entered, Moved, "a")]]);
}

#[test]
fn who_waits_elsewhere_does_not_come_into_an_area_that_is_held() {
    let mut stage = Stage::new(10);
    stage.install(0, &[following(100.0), circle(1_000.0, 10.0)], dwelling(1));
    stage.go(0.0, 200.0);
    assert_eq!(stage.publish("a", 1_000.0), []);
    assert_eq!(stage.known_count(0), 1);
    // The engine finds it near the client: it knows nothing of accuracy.
    assert_eq!(stage.publish("a", 50.0), []);
    assert_eq!(stage.known_count(0), 0);
    assert_eq!(stage.wait_until(5.0), [] as [Vec<_>; 0]);
}

#[test]
fn a_changed_dwell_is_for_those_who_wait_as_well() {
    let zone = [circle(0.0, 100.0)];
    let mut stage = Stage::new(10);
    stage.install(0, &zone, dwelling(600));
    stage.publish("a", 0.0);
    stage.wait_until(1.0);
    stage.publish("b", 0.0);
    stage.wait_until(3.0);
    // Of those that wait since 0 and 1 the first has stayed for long enough.
    assert_eq!(stage.install(0, &zone, dwelling(3)), [told(0, Entered, Changed, "a")]);
    assert_eq!(stage.install(0, &zone, dwelling(600)), []);
    assert_eq!(stage.wait_until(600.999), [] as [Vec<_>; 0]);
    assert_eq!(stage.wait_until(601.0), [[told(0, Entered, Published, "b")]]);
    stage.publish("c", 0.0);
    stage.publish("away", 90.0);
    stage.wait_until(602.0);
    // Who is outside of the new form does not enter, however short the time.
    let enters = [told(0, Entered, Changed, "c")];
    assert_eq!(stage.install(0, &[circle(0.0, 50.0)], dwelling(0)), enters);
    assert_eq!(stage.known_count(0), 3);
    assert_eq!(stage.wait_until(10_000.0), [] as [Vec<_>; 0]);
}

#[test]
fn a_shorter_dwell_is_counted_from_when_it_began() {
    let mut stage = Stage::new(10);
    stage.install(0, &[following(100.0)], dwelling(600));
    stage.publish("a", 0.0);
    stage.wait_until(2.0);
    assert_eq!(stage.install(0, &[following(100.0)], dwelling(5)), []);
    assert_eq!(stage.wait_until(4.999), [] as [Vec<_>; 0]);
    assert_eq!(stage.wait_until(5.0), [[told(0, Entered, Published, "a")]]);
    assert_eq!(stage.wait_until(700.0), [] as [Vec<_>; 0]);
}

#[test]
fn what_enters_in_one_instant_enters_in_one_step() {
    let mut stage = Stage::new(10);
    stage.install(0, &[following(100.0)], dwelling(5));
    stage.install(1, &[circle(0.0, 10.0)], dwelling(5));
    stage.install(2, &[circle(0.0, 10.0)], dwelling(0));
    stage.publish_for("a", Event::at(at(0.0)), 5);
    let [entered, left] = &stage.wait_until(6.0)[..] else { panic!("two steps") };
    assert_eq!(*entered, [told(0, Entered, Published, "a"), told(1, Entered, Published, "a")]);
    assert_eq!(*left, [0, 1, 2].map(|id| told(id, Left, Expired, "a")));
}
