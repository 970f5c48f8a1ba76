//! The condition language beside the crate `cql2`: the same texts are conditions, and over events of plain
//! values they hold for the same.

use cql2::Expr;
use matcher::condition::Condition;
use matcher::condition::expression::Truth;
use matcher::event::Event;
use matcher::geo::World;
use serde_json::{Value, json};

/// What both accept. Each is also evaluated over [`events`].
const ACCEPTED: [&str; 44] = [
    "n = 5",
    "n <> 5",
    "n < 5.5",
    "n <= -1",
    "n > 1e1",
    "n >= 2.5E-1",
    "5 < n",
    "'Fire' = t",
    "t = 'Fire'",
    "t <> 'it''s'",
    "t > 'Fir'",
    "t <= 'Z'",
    "t = ''",
    "yes = TRUE",
    "yes <> false",
    "n BETWEEN 4 AND 6",
    "n NOT BETWEEN 4 AND 6",
    "n BETWEEN 6 AND 4",
    "n between 1 and 2 or t = 'Fire'",
    "n IN (1, 5)",
    "n NOT IN (1, 5)",
    "t IN ('Fire', 'flood')",
    "t not in ('a')",
    "t LIKE 'F%'",
    "t LIKE '_i_e'",
    "t NOT LIKE '%x%'",
    "t LIKE 'Fire'",
    "x IS NULL",
    "x IS NOT NULL",
    "n IS NULL",
    "NOT x IS NULL",
    "x = 1",
    "NOT x = 1",
    "x = 1 OR n = 5",
    "x = 1 AND n = 6",
    "NOT (x = 1 AND n = 6)",
    "n = 5 AND t = 'Fire' OR yes = FALSE",
    "n = 5 AND (t = 'x' OR yes = TRUE)",
    "NOT (n = 5 OR t = 'x')",
    "NOT n = 5 AND t = 'Fire'",
    "((n = 5))",
    "TRUE",
    "FALSE OR n = 5",
    "CASEI(t) = CASEI('FIRE')",
];

/// What both refuse.
const REFUSED: [&str; 22] = [
    "",
    "n =",
    "= 5",
    "n = 5 AND",
    "OR n = 5",
    "(n = 5",
    "n = 5)",
    "()",
    "n = 'open",
    "\"open = 5",
    "n BETWEEN 1",
    "n BETWEEN 1 OR 2",
    "n IN",
    "n IN (1",
    "n IN (1,)",
    "n IS",
    "n IS NOT",
    "n = 5 t = 'x'",
    "n == 5",
    "n = 'it's'",
    "n # 5",
    "n < > 5",
];

/// CQL2 that conditions leave out, and what that crate accepts beyond CQL2.
const THEIRS_ALONE: [&str; 10] = [
    "n = t",
    "n + 1 = 2",
    "n = 2 * 3",
    "f(n) = 1",
    "5 = 5",
    "yes",
    "n != 5",
    "n IN ()",
    "S_INTERSECTS(g, POINT(1 2))",
    "d > DATE('2026-03-01')",
];

/// CQL2 that the crate does not read: names that begin with `_` or `:`, numbers without a digit before the point.
const OURS_ALONE: [&str; 3] = ["_n = 5", ":n = 5", "n = .5"];

fn theirs(text: &str) -> Option<Expr> {
    cql2::parse_text(text).ok()
}

#[test]
fn the_same_texts_are_conditions() {
    let wrong = |texts: &[&str], ours: bool, expected: bool| -> Vec<String> {
        let differs = texts.iter().filter(|text| {
            let ours_reads = Condition::parse(text).is_ok();
            ours_reads != ours || theirs(text).is_some() != expected
        });
        differs
            .map(|text| {
                format!("{text}: {} {}", Condition::parse(text).is_ok(), theirs(text).is_some())
            })
            .collect()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(wrong(&ACCEPTED, true, true), none);
    assert_eq!(wrong(&REFUSED, false, false), none);
    assert_eq!(wrong(&THEIRS_ALONE, false, true), none);
    assert_eq!(wrong(&OURS_ALONE, true, false), none);
}

#[test]
fn a_normal_form_is_cql2() {
    for text in ACCEPTED {
        let normal = Condition::parse(text).expect(text).normal().to_string();
        assert!(theirs(&normal).is_some(), "{text}: {normal}");
    }
}

/// Attributes that are absent for us are `null` for them: they leave a name that is not there unresolved.
fn events() -> Vec<Value> {
    let mut events = Vec::new();
    for n in [json!(5), json!(6), json!(-1), json!(0.25)] {
        for t in [json!("Fire"), json!("fire"), json!("it's"), json!("")] {
            for yes in [json!(true), json!(false)] {
                events.push(json!({"n": n, "t": t, "yes": yes, "x": null}));
            }
        }
    }
    events
}

fn our_event(properties: &Value) -> Event {
    let position = World::Planar.position(&[0.0, 0.0]).expect("the origin is in the world");
    let properties = properties.as_object().expect("events are objects");
    properties.iter().fold(Event::at(position), |event, (name, value)| match value {
        Value::Number(number) => event.with(name, number.as_f64().expect("small")),
        Value::String(text) => event.with(name, text.as_str()),
        Value::Bool(truth) => event.with(name, *truth),
        Value::Null | Value::Array(_) | Value::Object(_) => event,
    })
}

#[test]
fn they_hold_for_the_same_events() {
    let mut compared = 0;
    for text in ACCEPTED {
        let condition = Condition::parse(text).expect(text);
        let judge = theirs(text).expect(text);
        for properties in events() {
            let ours = condition.expression().truth(&our_event(&properties)) == Truth::True;
            let Ok(matches) = judge.clone().matches(Some(&properties)) else {
                continue;
            };
            compared += 1;
            assert_eq!(ours, matches, "{text} over {properties}");
        }
    }
    assert!(compared > 1_000, "only {compared} pairs could be compared");
}
