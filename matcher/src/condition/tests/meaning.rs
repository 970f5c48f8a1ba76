//! The three truth values, arrays, types, case and `LIKE`, over events.

use crate::condition::Condition;
use crate::condition::expression::Truth::{self, False, True, Unknown};
use crate::event::{Event, Scalar, Value};
use crate::geo::World;

fn event() -> Event {
    let position = World::Planar.position(&[0.0, 0.0]).expect("the origin is in the world");
    let texts =
        |texts: &[&str]| Value::Array(texts.iter().map(|text| Scalar::Text((*text).into())).collect());
    let numbers =
        |numbers: &[f64]| Value::Array(numbers.iter().map(|number| Scalar::Number(*number)).collect());
    let mixed = Value::Array(vec![Scalar::Number(5.0), Scalar::Text("five".into()), Scalar::Bool(false)]);
    Event::at(position)
        .with("n", 5.0)
        .with("t", "Fire")
        .with("yes", true)
        .with("no", false)
        .with("road.name", "A4")
        .with("city", "STRASSE")
        .with("tags", texts(&["red", "Green"]))
        .with("levels", numbers(&[1.0, 9.0]))
        .with("none", Value::Array(Vec::new()))
        .with("mixed", mixed)
        .with("day", "2026-03-01")
        .with("at", "2026-03-01T01:30:00.5+01:00")
        .with("days", texts(&["2026-03-01", "soon"]))
        .with("path", "C:\\")
}

#[test]
fn texts_compare_with_dates_and_timestamps_that_they_are() {
    check(&[
        ("day = DATE('2026-03-01')", True),
        ("day <> DATE('2026-03-01')", False),
        ("day < DATE('2026-03-02')", True),
        ("DATE('2026-02-28') < day", True),
        ("day >= DATE('2026-03-02')", False),
        ("day BETWEEN DATE('2026-03-01') AND DATE('2026-03-01')", True),
        ("day IN (DATE('2026-01-01'), DATE('2026-03-01'))", True),
        ("day NOT IN (DATE('2026-01-01'))", True),
        // An instant, whatever its offset and its digits.
        ("at = TIMESTAMP('2026-03-01T00:30:00.500Z')", True),
        ("at < TIMESTAMP('2026-03-01T00:30:00.51Z')", True),
        ("at > TIMESTAMP('2026-03-01T00:30:00Z')", True),
        ("at <= TIMESTAMP('2026-03-01T00:30:00Z')", False),
        ("CASEI(at) = TIMESTAMP('2026-03-01T00:30:00.5Z')", True),
        ("at BETWEEN TIMESTAMP('2026-03-01T00:00:00Z') AND TIMESTAMP('2026-03-01T01:00:00Z')", True),
        ("at IN (TIMESTAMP('2026-03-01T00:30:00.5Z'))", True),
        // A day is no instant, and an instant no day.
        ("day < TIMESTAMP('2027-01-01T00:00:00Z')", Unknown),
        ("at < DATE('2027-01-01')", Unknown),
        ("NOT at < DATE('2027-01-01')", Unknown),
        ("day IN (TIMESTAMP('2027-01-01T00:00:00Z'), DATE('2026-03-01'))", True),
        ("day NOT IN (TIMESTAMP('2027-01-01T00:00:00Z'))", Unknown),
        ("day BETWEEN DATE('2026-01-01') AND TIMESTAMP('2027-01-01T00:00:00Z')", Unknown),
        ("t <> DATE('2026-03-01')", Unknown),
        ("n > DATE('2026-03-01')", Unknown),
        ("yes > TIMESTAMP('2026-03-01T00:00:00Z')", Unknown),
        ("x > DATE('2026-03-01')", Unknown),
        // As texts they are ordered by their characters.
        ("at > '2026-03-01T01'", True),
        ("days = DATE('2026-03-01')", True),
        ("NOT days <> DATE('2026-03-01')", True),
        ("path = U&'C:\\\\'", True),
    ]);
}

/// The only place that evaluates: the tree and the normal form have to agree.
#[track_caller]
fn check(cases: &[(&str, Truth)]) {
    let event = event();
    for (text, truth) in cases {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(condition.expression().truth(&event), *truth, "{text}");
        assert_eq!(holds(&condition, &event), *truth == True, "{text}: {}", condition.normal());
    }
}

fn holds(condition: &Condition, event: &Event) -> bool {
    condition.normal().conjunctions().iter().any(|conjunction| conjunction.satisfied(event, None))
}

#[test]
fn values_of_one_type_compare() {
    check(&[
        ("n = 5", True),
        ("n <> 5", False),
        ("n < 5", False),
        ("n <= 5", True),
        ("n > 4.999", True),
        ("n >= 5.001", False),
        ("6 > n", True),
        ("n BETWEEN 5 AND 5", True),
        ("n BETWEEN 6 AND 4", False),
        ("n NOT BETWEEN 6 AND 7", True),
        ("n IN (1, 5)", True),
        ("n NOT IN (1, 5)", False),
        ("n NOT IN (1)", True),
        // Texts by code point: capitals before small letters, the rest after both.
        ("t = 'Fire'", True),
        ("t = 'fire'", False),
        ("t < 'fire'", True),
        ("t < 'Äpfel'", True),
        ("t > 'Fir'", True),
        ("t BETWEEN 'F' AND 'G'", True),
        // Truth values: false before true.
        ("yes = TRUE", True),
        ("no < TRUE", True),
        ("yes <= FALSE", False),
        ("road.name = 'A4'", True),
        ("\"road.name\" = 'A4'", True),
    ]);
}

#[test]
fn an_absent_attribute_is_unknown_and_so_is_its_not() {
    check(&[
        ("x = 1", Unknown),
        ("NOT x = 1", Unknown),
        ("x <> 1", Unknown),
        ("x IN (1)", Unknown),
        ("x NOT IN (1)", Unknown),
        ("x LIKE '%'", Unknown),
        ("x NOT LIKE '%'", Unknown),
        ("x NOT BETWEEN 1 AND 2", Unknown),
        ("x IS NULL", True),
        ("NOT x IS NULL", False),
        ("x IS NOT NULL", False),
        ("n IS NULL", False),
        ("n IS NOT NULL", True),
        // Names are case-sensitive, and an object is there by its members only.
        ("N = 5", Unknown),
        ("road IS NULL", True),
    ]);
}

#[test]
fn types_that_do_not_compare_are_unknown() {
    check(&[
        ("n = '5'", Unknown),
        ("NOT n = '5'", Unknown),
        ("n <> '5'", Unknown),
        ("t > 5", Unknown),
        ("yes = 1", Unknown),
        ("yes = 'true'", Unknown),
        ("n LIKE '5'", Unknown),
        ("NOT n LIKE '5'", Unknown),
        ("n BETWEEN 'a' AND 'b'", Unknown),
        ("n BETWEEN 9 AND 'b'", Unknown),
        ("n IN ('5')", Unknown),
        ("n IN ('5', 5)", True),
        ("n IN ('5', 6)", Unknown),
        ("n NOT IN ('5', 6)", Unknown),
        ("CASEI(n) = 5", True),
    ]);
}

#[test]
fn and_or_not_follow_kleene() {
    let (yes, no, unknown) = ("n = 5", "n = 6", "x = 1");
    for (a, b, and, or) in [
        (yes, yes, True, True),
        (yes, no, False, True),
        (yes, unknown, Unknown, True),
        (no, no, False, False),
        (no, unknown, False, Unknown),
        (unknown, unknown, Unknown, Unknown),
    ] {
        for (a, b) in [(a, b), (b, a)] {
            check(&[
                (&format!("{a} AND {b}"), and),
                (&format!("{a} OR {b}"), or),
                (&format!("NOT ({a} AND {b})"), !and),
                (&format!("NOT ({a} OR {b})"), !or),
            ]);
        }
    }
    check(&[("TRUE", True), ("FALSE", False), ("NOT FALSE", True), ("x = 1 OR TRUE", True)]);
}

#[test]
fn an_array_satisfies_by_one_element_and_its_not_by_none() {
    check(&[
        ("tags = 'red'", True),
        ("NOT tags = 'red'", False),
        ("tags = 'blue'", False),
        ("NOT tags = 'blue'", True),
        // `<>` is a constraint of its own: one element differs.
        ("tags <> 'red'", True),
        ("NOT tags <> 'red'", False),
        ("tags IN ('blue', 'red')", True),
        ("tags NOT IN ('blue', 'black')", True),
        ("tags LIKE 'G%'", True),
        ("tags NOT LIKE 'B%'", True),
        ("CASEI(tags) = 'green'", True),
        // One element has to satisfy all of a range, two constraints may take two elements.
        ("levels BETWEEN 4 AND 6", False),
        ("levels NOT BETWEEN 4 AND 6", True),
        ("levels > 4 AND levels < 6", True),
        ("levels > 9", False),
        // Elements of another type make nothing true.
        ("tags = 5", False),
        ("NOT tags = 5", True),
        ("mixed = 5 AND mixed = 'five' AND mixed = FALSE", True),
        ("mixed LIKE 'f%'", True),
        ("tags IS NULL", False),
        ("tags IS NOT NULL", True),
    ]);
}

#[test]
fn an_empty_array_is_there_and_satisfies_nothing() {
    check(&[
        ("none = 1", False),
        ("NOT none = 1", True),
        ("none <> 1", False),
        ("none LIKE '%'", False),
        ("none NOT IN (1)", True),
        ("none IS NULL", False),
        ("none IS NOT NULL", True),
    ]);
}

#[test]
fn casei_folds_the_side_that_it_stands_on() {
    check(&[
        ("CASEI(t) = CASEI('FIRE')", True),
        ("CASEI(t) = 'fire'", True),
        ("CASEI(t) = 'Fire'", False),
        ("t = CASEI('Fire')", False),
        ("CASEI(t) IN (CASEI('FIRE'), 'x')", True),
        ("CASEI(t) BETWEEN 'fi' AND 'fj'", True),
        ("CASEI(t) LIKE CASEI('FI%')", True),
        ("CASEI(t) LIKE 'FI%'", False),
        ("CASEI(city) = CASEI('Straße')", True),
        ("CASEI(x) = 'x'", Unknown),
        ("CASEI(x) IS NULL", True),
    ]);
}
