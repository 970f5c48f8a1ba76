//! As many members as there is room for.

use std::num::NonZeroU32;

use nearcast_matcher::geo::World;
use nearcast_matcher::live::Cause::{Changed, Moved, Published, Revoked};
use nearcast_matcher::live::Change::{self, Entered, Left, Refused};
use nearcast_matcher::live::{Settings, Transitions};
use nearcast_matcher::subscription::SubscriptionId;

use super::random::{Run, SETTINGS, kind};
use super::stage::{CLIENT, Stage, circle, dwelling, following, told};

#[test]
fn a_move_brings_in_who_found_no_room_whatever_the_area() {
    for zone in [circle(0.0, 100.0), following(100.0)] {
        let mut stage = Stage::new(1);
        stage.install(0, &[zone], dwelling(0));
        assert_eq!(stage.publish("a", 0.0), [told(0, Entered, Published, "a")]);
        assert_eq!(stage.publish("b", 0.0), [told(0, Refused, Published, "b")]);
        assert_eq!(stage.go(1.0, 0.0), []);
        assert_eq!(stage.revoke("a"), [told(0, Left, Revoked, "a")]);
        assert_eq!(stage.go(2.0, 0.0), [told(0, Entered, Moved, "b")]);
        assert_eq!(stage.go(1.0, 0.0), []);
    }
}

#[test]
fn the_subscriptions_of_a_client_share_a_bound() {
    let mut stage = Stage::with(10, 3);
    stage.install(0, &[circle(0.0, 10.0)], dwelling(0));
    stage.install(1, &[following(100.0)], dwelling(5));
    // What waits to enter takes its place already.
    assert_eq!(stage.publish("a", 0.0), [told(0, Entered, Published, "a")]);
    let b = [told(0, Entered, Published, "b"), told(1, Refused, Published, "b")];
    assert_eq!(stage.publish("b", 1.0), b);
    assert_eq!(stage.publish("c", 50.0), [told(1, Refused, Published, "c")]);
    assert_eq!((stage.known_count(0), stage.known_count(1), stage.tracker.members_count()), (2, 1, 3));
    assert_eq!(stage.tracker.members_of(CLIENT), 3);
    // A newer event of a member is no further one, and a replaced subscription keeps what it has.
    assert_eq!(stage.publish("b", 2.0), [told(1, Refused, Published, "b")]);
    assert_eq!(stage.install(0, &[circle(0.0, 11.0)], dwelling(0)), []);
    assert_eq!(stage.tracker.members_of(CLIENT), 3);
    // Room that one subscription leaves is for all.
    assert!(stage.tracker.remove(SubscriptionId(0)));
    assert_eq!(stage.tracker.members_of(CLIENT), 1);
    stage.go(1.0, 0.0);
    assert_eq!((stage.known_count(1), stage.tracker.members_of(CLIENT)), (3, 3));
    for object in ["a", "b", "c"] {
        stage.revoke(object);
    }
    assert_eq!((stage.tracker.members_of(CLIENT), stage.tracker.members_count()), (0, 0));
}

#[test]
fn a_move_tells_once_of_whom_it_finds_no_room_for() {
    for nearest in [None, NonZeroU32::new(3)] {
        let mut stage = Stage::new(1);
        stage.install(0, &[(following(100.0).0, nearest)], dwelling(0));
        stage.publish("a", 50.0);
        assert_eq!(stage.publish("b", 60.0), [told(0, Refused, Published, "b")]);
        assert_eq!(stage.publish("c", 130.0), []);
        assert_eq!(stage.go(10.0, 0.0), []);
        assert_eq!(stage.go(40.0, 0.0), [told(0, Refused, Moved, "c")], "{nearest:?}");
        assert_eq!(stage.go(41.0, 0.0), []);
        assert_eq!(stage.go(-45.0, 0.0), []);
        assert_eq!(stage.go(40.0, 0.0), [told(0, Refused, Moved, "b"), told(0, Refused, Moved, "c")]);
        // The one leaves, and another comes in.
        let exchange = [told(0, Left, Moved, "a"), told(0, Entered, Moved, "b")];
        assert_eq!(stage.go(155.0, 0.0), exchange);
    }
}

#[test]
fn who_is_among_the_nearest_when_another_goes_is_not_told_of_without_room() {
    let mut stage = Stage::new(2);
    let nearest = (following(1_000.0).0, NonZeroU32::new(2));
    stage.install(0, &[nearest, circle(-500.0, 1.0)], dwelling(0));
    stage.publish("zone", -500.0);
    stage.publish("a", 10.0);
    assert_eq!(stage.publish("b", 20.0), [told(0, Refused, Published, "b")]);
    assert_eq!(stage.publish("c", 30.0), []);
    // Every event of another has them counted anew: of those that are left out nobody is told again.
    assert_eq!(stage.publish("a", 11.0), []);
    assert_eq!(stage.revoke("a"), [told(0, Left, Revoked, "a"), told(0, Entered, Revoked, "b")]);
    assert_eq!(stage.known_count(0), 2);
}

#[test]
fn nothing_is_told_in_place_of_nothing() {
    let silent = Transitions { initial: false, ..dwelling(0) };
    for (how, at_first, later) in [
        (Transitions { exit: false, ..silent }, false, true),
        (Transitions { exit: false, initial: true, ..silent }, true, true),
        // It stands for the exit.
        (silent, true, true),
        (Transitions { enter: false, ..silent }, true, true),
        (Transitions { enter: false, exit: false, ..silent }, false, false),
    ] {
        let mut stage = Stage::new(1);
        stage.publish("a", 0.0);
        stage.publish("b", 0.0);
        let is_refused = |told: &[(u32, Change, _, String)]| told.iter().any(|told| told.1 == Refused);
        let first = stage.install(0, &[circle(0.0, 1.0)], how);
        assert_eq!(is_refused(&first), at_first, "{how:?}");
        assert!(first.iter().all(|told| told.2 == Changed));
        assert_eq!(is_refused(&stage.publish("c", 0.0)), later, "{how:?}");
    }
}

#[test]
fn every_change_is_told_once_where_there_is_no_room() {
    let mut told = [0_usize; 4];
    for seed in 5_000..5_060 {
        for world in [World::Planar, World::Geodetic] {
            let mut run = Run::with(world, seed, Settings { members_max: 3, ..SETTINGS });
            run.is_plain = true;
            for step in 0..400 {
                run.step();
                for effect in &run.effects {
                    told[kind(effect.change)] += 1;
                }
                run.compare(&format!("seed {seed}, {world:?}, step {step}"));
            }
        }
    }
    let [left, entered, reached, refused] = told;
    assert!(left.min(entered).min(refused) > 2_000 && reached == 0, "{told:?}");
}
