//! What the presets find.

use std::sync::Arc;

use checks::engine::Kind;
use checks::{Arrival, Bounds, Check, Clock, Document, cost, presets, replay};
use matcher::World;
use matcher::event::{Event, Value};

/// Degrees of latitude for some metres.
fn north(metres: f64) -> f64 {
    metres / 111_195.0
}

/// Events of taxis: name, seconds, metres to the north, and one more attribute.
fn events(rows: &[(&str, f64, f64)], attribute: Option<(&str, &[Option<f64>])>) -> Vec<(usize, Arrival)> {
    let event = |(idx, (taxi, time_s, metres)): (usize, &(&str, f64, f64))| {
        let mut event = Event::at(World::Geodetic.position(&[9.0, 45.0 + north(*metres)]).expect("a place"));
        event = event.with("taxi", *taxi);
        if let Some((name, values)) = attribute
            && let Some(value) = values[idx]
        {
            event = event.with(name, Value::from(value));
        }
        #[expect(clippy::cast_possible_truncation, reason = "small and whole")]
        let time_ms = (time_s * 1_000.0) as i64;
        (idx, Arrival { event: Arc::new(event), time_ms: Some(time_ms), arrival_ms: time_ms })
    };
    rows.iter().enumerate().map(event).collect()
}

/// Links of a preset, as the events that they bind.
fn found(document: Document, events: Vec<(usize, Arrival)>) -> Vec<Vec<usize>> {
    let document = Document { clock: Clock::Event, ..document };
    let check = Arc::new(Check::new(World::Geodetic, &document).unwrap_or_else(|error| panic!("{error}")));
    let of = |kind| {
        let report = replay(&check, kind, Bounds::default(), events.clone()).expect("few links");
        let links = report.links.into_iter().map(|link| link.into_iter().map(|(_, event)| event).collect());
        let mut links: Vec<Vec<usize>> = links.collect();
        links.sort_unstable();
        links
    };
    let links = of(Kind::Incremental);
    assert_eq!(links, of(Kind::Sequential));
    links
}

#[test]
fn speed_finds_jumps_of_one_object() {
    let rows = [
        ("A", 0.0, 0.0),
        ("B", 1.0, 5_000.0),
        ("A", 10.0, 500.0),
        ("A", 20.0, 2_000.0),
        ("A", 90.0, 9_000.0),
    ];
    assert_eq!(found(presets::speed("taxi", 55.0), events(&rows, None)), [vec![0, 3], vec![2, 3]]);
}

#[test]
fn accuracy_finds_what_says_that_it_is_inaccurate() {
    // The last one is late.
    let rows = [("A", 0.0, 0.0), ("A", 1.0, 0.0), ("A", 0.5, 0.0)];
    let events = events(&rows, Some(("accuracy_m", &[Some(5.0), None, Some(80.0)])));
    assert_eq!(found(presets::accuracy("accuracy_m", 50.0, Clock::Event), events), [vec![2]]);
}

#[test]
fn frozen_finds_objects_that_report_one_place() {
    let rows = [
        ("A", 0.0, 0.0),
        ("B", 0.0, 0.0),
        ("B", 30.0, 10.0),
        ("A", 30.0, 0.0),
        ("B", 60.0, 0.0),
        ("A", 60.0, 0.0),
    ];
    assert_eq!(found(presets::frozen("taxi", 60.0), events(&rows, None)), [vec![0, 5]]);
}

#[test]
fn frozen_tells_an_object_that_stays_where_it_is_once_for_each_report() {
    // Reports of every ten seconds for five minutes, then a move, and then the first place again.
    let mut rows: Vec<_> = (0..30).map(|report| ("A", 10.0 * f64::from(report), 0.0)).collect();
    rows.extend([("A", 300.0, 40.0), ("A", 310.0, 0.0), ("A", 340.0, 0.0), ("A", 380.0, 0.0)]);
    let mut expected: Vec<_> = (6..30).map(|report| vec![report - 6, report]).collect();
    // The report of 370 s is not there; that of 310 s is the newest that is a minute older.
    expected.push(vec![31, 33]);
    assert_eq!(found(presets::frozen("taxi", 60.0), events(&rows, None)), expected);
}

#[test]
fn outside_finds_what_is_outside() {
    let square = vec![vec![[8.9, 44.9], [9.1, 44.9], [9.1, 45.1], [8.9, 45.1], [8.9, 44.9]]];
    let rows = [("A", 0.0, 0.0), ("A", 1.0, 50_000.0), ("A", 2.0, -50_000.0)];
    assert_eq!(found(presets::outside(&square, Clock::Event), events(&rows, None)), [vec![1], vec![2]]);
}

#[test]
fn duplicate_finds_reports_of_one_object_that_are_near() {
    let rows = [("A", 0.0, 0.0), ("B", 0.5, 0.0), ("A", 1.0, 3.0), ("A", 2.0, 30.0), ("A", 9.0, 31.0)];
    assert_eq!(found(presets::duplicate("taxi", 5.0, 2.0), events(&rows, None)), [vec![0, 2]]);
}

#[test]
fn names_of_attributes_are_quoted_where_they_have_to_be() {
    let document = presets::speed("taxi id", 55.0);
    Check::new(World::Geodetic, &document).unwrap_or_else(|error| panic!("{error}: {document:?}"));
}

#[test]
fn estimates_grow_with_what_is_looked_at() {
    let check = |document: &Document| Check::new(World::Geodetic, document).expect("a preset is sound");
    let joined = check(&presets::speed("taxi", 55.0));
    let of = |check: &Check, events: f64| cost::estimate(check, |_| events);
    assert!(of(&joined, 1e4).whole > 50.0 * of(&joined, 1e3).whole);
    assert_eq!(of(&joined, 1e4).change, of(&joined, 1e3).change, "taxis are looked up by their name");
    let frozen = check(&presets::frozen("taxi", 60.0));
    assert!(of(&frozen, 1e3).whole > 500.0 * of(&joined, 1e3).whole);
    assert!(of(&frozen, 1e3).change < 1e5, "{:?}", of(&frozen, 1e3));
}
