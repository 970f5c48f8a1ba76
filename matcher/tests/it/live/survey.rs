//! What was looked up ahead of a change makes no difference to it.

use nearcast_matcher::area::Area;
use nearcast_matcher::condition::Condition;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Radius, World};
use nearcast_matcher::live::Cause::Moved;
use nearcast_matcher::live::Change::Entered;
use nearcast_matcher::live::{Fix, Interest, Settings, Survey};
use nearcast_matcher::subscription::{Filter, Subscription};

use super::random::{Run, SETTINGS, kind};
use super::stage::{CLIENT, Stage, WORLD, at, dwelling, filters, told};

#[test]
fn a_survey_changes_nothing_of_what_is_told() {
    let mut told = [0_usize; 4];
    let worlds = [World::Planar, World::Geodetic].into_iter().cycle();
    let bounds = [10_000, 10_000, 3].into_iter().cycle();
    for ((seed, world), members_max) in (0..100).zip(worlds).zip(bounds) {
        let mut run = Run::with(world, seed, Settings { members_max, ..SETTINGS });
        (run.surveys, run.is_plain) = (true, members_max == 3);
        for step in 0..300 {
            run.step();
            for effect in &run.effects {
                told[kind(effect.change)] += 1;
            }
            run.compare(&format!("seed {seed}, {world:?}, step {step}"));
        }
    }
    assert!(told.iter().all(|count| *count > 1_000), "{told:?}");
}

/// Counts the slices of a survey with `looks` in each.
fn slices(stage: &Stage, survey: &mut Survey, looks: u32) -> u32 {
    let mut slices = 1;
    loop {
        let mut left = looks;
        let mut goes_on = || {
            left -= 1;
            left > 0
        };
        if stage.tracker.go_on(survey, &mut goes_on) {
            return slices;
        }
        slices += 1;
    }
}

fn wide(number: u32) -> Area {
    Area::Circle { centre: at(f64::from(number)), radius: Radius::new(WORLD, 1e6).unwrap() }
}

#[test]
fn a_surveyed_installation_tests_what_has_come_in_the_meantime_only() {
    let (lives, count) = (1_000, 16);
    let mut stage = Stage::new(usize::MAX);
    for number in 0..lives {
        stage.publish(&number.to_string(), f64::from(number));
    }
    let unlike = filters(count, wide, |number| format!("level = {number}"));
    let subscription =
        Subscription { client: CLIENT, filters: unlike.iter().map(|(filter, _)| filter.clone()).collect() };
    let nearest = vec![None; count as usize];
    let interest = Interest::Transitions(dwelling(0));
    let mut survey =
        stage.tracker.survey_installation(None, subscription, nearest, interest, stage.partition);
    assert!(slices(&stage, &mut survey, 100) >= lives * count / 100);
    stage.publish("another", 5.0);
    let before = stage.tracker.work_count();
    stage.tracker.use_survey(survey);
    stage.install(0, &unlike, dwelling(0));
    let work = stage.tracker.work_count() - before;
    assert!(work <= u64::from(count) * 3, "{work}");
}

#[test]
fn a_surveyed_move_tests_no_condition_again() {
    let (lives, count) = (1_000, 16);
    let mut stage = Stage::new(usize::MAX);
    for number in 0..lives {
        let event = Event::at(at(10_000.0 + f64::from(number))).with("level", 3.0);
        stage.publish_for(&number.to_string(), event, 1_000_000);
    }
    let areas = |_| Area::Following(Radius::new(WORLD, 2_000.0).unwrap());
    stage.install(0, &filters(count, areas, |number| format!("level = {number}")), dwelling(0));
    let fix = Fix { position: at(10_500.0), accuracy_m: 0.0 };
    let mut survey = stage.tracker.survey_move(CLIENT, fix, None);
    assert!(slices(&stage, &mut survey, 100) >= lives * count / 100);
    let before = stage.tracker.work_count();
    stage.tracker.use_survey(survey);
    assert_eq!(stage.go(10_500.0, 0.0).len(), lives as usize);
    assert_eq!(stage.tracker.work_count(), before);
}

#[test]
fn what_was_replaced_before_the_last_round_is_tested_again() {
    let mut stage = Stage::new(usize::MAX);
    let reaching = |level: f64| {
        let mut event = Event::at(at(1_000.0)).with("level", level);
        event.reach = Some(Radius::new(WORLD, 100.0).unwrap());
        event
    };
    let condition = Condition::parse("level = 1").unwrap();
    stage.install(0, &[(Filter { area: Area::Everywhere, condition }, None)], dwelling(0));
    for (object, level) in [("ends", 1.0), ("begins", 2.0)] {
        assert_eq!(stage.publish_for(object, reaching(level), 1_000_000), []);
    }
    let fix = Fix { position: at(1_000.0), accuracy_m: 0.0 };
    let mut survey = stage.tracker.survey_move(CLIENT, fix, None);
    let mut looks = 0;
    while !stage.tracker.go_on(&mut survey, &mut || false) {
        looks += 1;
    }
    assert!(looks > 2, "{looks}");
    // More than are left to the change, so that there is another round.
    for (object, level) in [("ends", 2.0), ("begins", 1.0)] {
        stage.publish_for(object, reaching(level), 1_000_000);
    }
    (0..100).for_each(|number| drop(stage.publish(&number.to_string(), 0.0)));
    while !stage.tracker.go_on(&mut survey, &mut || false) {}
    stage.tracker.use_survey(survey);
    assert_eq!(stage.go(1_000.0, 0.0), [told(0, Entered, Moved, "begins")]);
}
