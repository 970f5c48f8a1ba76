//! Predicates case by case, and random ones against an evaluator that tries everything.

mod meaning;
mod random;

use super::{Predicate, Subject, Term};
use crate::condition::expression::Truth;
use crate::event::{Event, Scalar, Value};
use crate::geo::World;

/// The variables of all tests; the last has no event.
const VARIABLES: [&str; 3] = ["a", "b", "gone"];

fn at(lon: f64, lat: f64) -> Event {
    Event::at(World::Geodetic.position(&[lon, lat]).unwrap())
}

fn texts(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(|text| Scalar::Text((*text).into())).collect())
}

/// Two events, the second 40 s after the first and a thousandth of a degree north of it.
fn events() -> [Event; 2] {
    let a = at(10.0, 50.0)
        .with("n", 7.0)
        .with("m", 2.0)
        .with("taxi", "T1")
        .with("road.name", "A4")
        .with("two words", 5.0)
        .with("open", true)
        .with("city", "Chișinău")
        .with("day", "2026-03-01")
        .with("from", "2026-03-01T08:00:00Z")
        .with("to", "2026-03-01T10:00:00+01:00")
        .with("tags", texts(&["red", "green"]))
        .with("days", texts(&["2026-03-01", "soon"]));
    let b = at(10.0, 50.001)
        .with("n", 7.0)
        .with("taxi", "T1")
        .with("tags", texts(&["green", "red", "red"]))
        .with("none", Value::Array(Vec::new()));
    [a, b]
}

fn subjects(events: &[Event; 2]) -> [Option<Subject<'_>>; 3] {
    let [a, b] = events;
    [
        Some(Subject { event: a, time_ms: 1_000, identity: 1 }),
        Some(Subject { event: b, time_ms: 41_000, identity: 2 }),
        None,
    ]
}

fn parse(text: &str) -> Predicate {
    Predicate::parse(World::Geodetic, text, &VARIABLES).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn check(cases: &[(&str, Truth)]) {
    let events = events();
    for (text, truth) in cases {
        assert_eq!(parse(text).truth(&subjects(&events)), *truth, "{text}");
    }
}

#[track_caller]
fn check_value(cases: &[(&str, Option<f64>)]) {
    let events = events();
    for (text, value) in cases {
        let term = Term::parse(World::Geodetic, text, &VARIABLES);
        let term = term.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(term.value(&subjects(&events)), value.map(Scalar::Number), "{text}");
    }
}
