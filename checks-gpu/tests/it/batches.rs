//! Several changes at once: what comes and goes among them, and where the device cannot take them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use checks::{
    Arrival, Binding, Bounds, Check, Checker, Clock, Context, Document, Formula, Kind, Link, Overflow,
};
use checks_gpu::{Gpu, Settings};
use device::{Device, Fault};
use matcher::World;
use matcher::event::{Scalar, Value};

use crate::world;

/// What an event brought: whether the check is violated, and what is told.
type Answer = Result<Option<(bool, BTreeSet<Vec<(usize, usize)>>)>, Overflow>;

/// Links by the events that they bind.
fn named(checker: &Checker<usize>, links: &[Link]) -> BTreeSet<Vec<(usize, usize)>> {
    let event = |binding: &Binding| *checker.event(binding).expect("it is there").1;
    let named =
        |link: &Link| link.bindings().iter().map(|binding| (binding.variable, event(binding))).collect();
    links.iter().map(named).collect()
}

/// No two events that are held have the same `x`, nor are they within so many metres of each other.
fn check(for_s: f64, within_m: Option<f64>) -> Arc<Check> {
    let leaf = within_m.map_or("a.x <> b.x OR SAME(a, b)".to_owned(), |metres| {
        format!("NOT (a.x = b.x AND DISTANCE(a, b) <= {metres}) OR SAME(a, b)")
    });
    let document = Document {
        contexts: vec![Context::of_all("all", for_s).when("x IS NOT NULL")],
        formula: Formula::forall("a", "all", Formula::forall("b", "all", Formula::leaf(leaf))),
        clock: Clock::Arrival,
    };
    Arc::new(Check::new(World::Planar, &document).expect("it is sound"))
}

/// Takes events in, some at once and with something before the second batch, and compares each answer with the oracle's. The
/// answers.
fn compare(
    check: &Arc<Check>,
    engine: Gpu,
    bounds: Bounds,
    arrivals: &[Arrival],
    at_once: usize,
    mut before_second: impl FnMut(),
) -> Vec<Answer> {
    let mut oracle = Checker::new(check.clone(), Kind::Sequential, bounds);
    let mut checker = Checker::with_engine(check.clone(), Box::new(engine));
    let mut expected = Vec::new();
    let mut found: Vec<Answer> = Vec::new();
    for (event, arrival) in arrivals.iter().enumerate() {
        let outcome = oracle.take(event, arrival);
        expected.push(
            outcome.map(|outcome| outcome.map(|outcome| (outcome.violated, named(&oracle, &outcome.told)))),
        );
    }
    for (nth, batch) in arrivals.chunks(at_once).enumerate() {
        if nth == 1 {
            before_second();
        }
        let batch = batch.iter().enumerate().map(|(at, arrival)| (nth * at_once + at, arrival.clone()));
        checker.take_all(batch, |checker, taken| {
            found.push(
                taken.map(|outcome| outcome.map(|outcome| (outcome.violated, named(checker, &outcome.told)))),
            );
            ControlFlow::Continue(())
        });
    }
    assert_eq!(found, expected);
    assert_eq!(named(&checker, &checker.links()), named(&oracle, &oracle.links()));
    assert_eq!((checker.evaluations(), checker.ahead()), (oracle.evaluations(), oracle.ahead()));
    found
}

fn engine(check: &Arc<Check>, device: &Device, bounds: Bounds, settings: Settings) -> Gpu {
    Gpu::new(check.clone(), bounds, &crate::kernels(device), settings)
}

/// Events a second apart with a few different `x`, and some that no set takes.
fn arrivals(count: usize) -> Vec<Arrival> {
    let arrival = |event: usize| {
        let x = Value::from(f64::from(u32::try_from(event * event % 11).expect("small")));
        let attributes: &[_] = if event % 7 == 3 { &[] } else { &[("x", x)] };
        let place = [f64::from(u32::try_from(event % 5).expect("small")), 0.0];
        world::arrival(place, i64::try_from(event).expect("few") * 1_000, attributes)
    };
    (0..count).map(arrival).collect()
}

#[test]
fn a_violation_that_comes_and_goes_within_a_batch_is_told() {
    let check = check(1.0, None);
    let device = crate::device();
    let bounds = Bounds::default();
    let x = |time_ms, x: f64| world::arrival([0.0, 0.0], time_ms, &[("x", Value::from(x))]);
    // The first two are there together for half a second, then again, long before the last.
    let arrivals = [x(0, 1.0), x(500, 1.0), x(5_000, 2.0), x(9_000, 1.0), x(9_500, 1.0), x(20_000, 3.0)];
    let engine = engine(&check, &device, bounds, Settings::default());
    let found = compare(&check, engine, bounds, &arrivals, arrivals.len(), || {});
    let told = |first: usize| {
        Ok(Some((true, [vec![(0, first), (1, first + 1)], vec![(0, first + 1), (1, first)]].into())))
    };
    let nothing = || Ok(Some((false, BTreeSet::new())));
    assert_eq!(found, [nothing(), told(0), nothing(), nothing(), told(3), nothing()]);
}

#[test]
fn batches_longer_than_words_and_than_the_most_at_once_are_taken() {
    let device = crate::device();
    let bounds = Bounds::default();
    for (for_s, within_m, count) in [(3.0, None, 1_100), (20.0, Some(1.5), 300), (200.0, Some(0.5), 130)] {
        let check = check(for_s, within_m);
        for at_once in [63, 64, count] {
            let engine = engine(&check, &device, bounds, Settings::default());
            compare(&check, engine, bounds, &arrivals(count), at_once, || {});
        }
    }
}

#[test]
fn a_device_that_fails_in_a_batch_gives_way_to_the_processor() {
    let check = check(30.0, None);
    let bounds = Bounds::default();
    for fault in [Fault::DeviceLost, Fault::LaunchFailed, Fault::OutOfMemory] {
        let device = Device::host(1 << 24);
        let engine = engine(&check, &device, bounds, Settings::default());
        compare(&check, engine, bounds, &arrivals(90), 20, || device.inject(fault, 1));
    }
}

#[test]
fn batches_that_are_too_large_for_the_device_are_taken_one_by_one() {
    let check = check(30.0, None);
    let standard = Settings::default();
    let bounds = Bounds::default();
    let device = crate::device();
    for settings in [
        Settings { nodes_max: 100, ..standard },
        Settings { links_max: 2, ..standard },
        Settings { doubts_max: 0, ..standard },
    ] {
        let engine = engine(&check, &device, bounds, settings);
        compare(&check, engine, bounds, &arrivals(60), 20, || {});
    }
    let engine = engine(&check, &Device::host(1 << 12), bounds, standard);
    compare(&check, engine, bounds, &arrivals(60), 20, || {});
}

#[test]
fn too_many_links_in_a_batch_are_refused_where_they_are_too_many() {
    let check = check(30.0, None);
    let bounds = Bounds { links_max: 5, ..Bounds::default() };
    let engine = engine(&check, &crate::device(), bounds, Settings::default());
    let found = compare(&check, engine, bounds, &arrivals(60), 20, || {});
    assert!(found.iter().filter(|answer| answer.is_err()).count() > 1);
}

#[test]
fn an_event_with_more_values_than_an_index_takes_is_compared() {
    let check = check(30.0, None);
    let bounds = Bounds::default();
    let mut arrivals = arrivals(40);
    for (event, arrival) in arrivals.iter_mut().enumerate().filter(|(event, _)| event % 6 == 0) {
        // Four values are in the index, and six are not.
        let count = if event < 20 { 4 } else { 6 };
        let values: Vec<_> = (0..count).map(|value| Scalar::Number(f64::from(value))).collect();
        let time_ms = arrival.arrival_ms;
        *arrival = world::arrival([0.0, 0.0], time_ms, &[("x", Value::Array(values))]);
    }
    let engine = engine(&check, &crate::device(), bounds, Settings::default());
    compare(&check, engine, bounds, &arrivals, 10, || {});
}
