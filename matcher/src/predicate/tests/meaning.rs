//! Predicates and their truth, case by case.

use super::{VARIABLES, check, check_value, events, parse, subjects};
use crate::condition::expression::Truth::{False, True, Unknown};
use crate::event::Scalar;
use crate::geo::World;
use crate::predicate::{Join, Predicate, Term};

#[test]
fn properties_compare_with_each_other() {
    check(&[
        ("a.taxi = b.taxi", True),
        ("a.n = b.n AND a.m < b.n", True),
        ("a.taxi <> b.taxi", False),
        ("a.n = a.taxi", Unknown),
        ("a.n = b.gone", Unknown),
        ("gone.n = a.n", Unknown),
        ("gone.n IS NULL", Unknown),
        ("b.m IS NULL", True),
        ("a.road.name = 'A4' AND a.\"two words\" = 5 AND \"a.two words\" = 5", True),
        ("a.n BETWEEN a.m AND b.n", True),
        ("a.m NOT BETWEEN 3 AND b.n", True),
        ("5 BETWEEN a.m AND a.n", True),
        ("a.n IN (1, b.n)", True),
        ("a.n IN (1, b.m)", Unknown),
        ("a.n NOT IN (1, a.m)", True),
        ("'T1' IN (a.taxi, b.taxi)", True),
        ("'København' LIKE 'K_benhavn'", True),
        ("TRUE = a.open", True),
        ("1 = 1 AND NOT 1 = 2", True),
        ("1 = 'x'", Unknown),
    ]);
}

#[test]
fn arithmetic_has_the_precedence_of_cql2() {
    check_value(&[
        ("1 + 2 * 3", Some(7.0)),
        ("(1 + 2) * 3", Some(9.0)),
        ("7 - 2 - 1", Some(4.0)),
        ("a.n-a.m-1", Some(4.0)),
        ("12 / 2 / 3", Some(2.0)),
        ("2 * 3 ^ 2", Some(18.0)),
        // A sign belongs to its operand.
        ("-2 ^ 2", Some(4.0)),
        ("-a.m ^ 2", Some(4.0)),
        ("3 - -2", Some(5.0)),
        ("a.n - -a.m", Some(9.0)),
        ("-(a.n + 1)", Some(-8.0)),
        ("+5", Some(5.0)),
        ("7 div 2", Some(3.0)),
        ("-7 DIV 2", Some(-3.0)),
        ("a.n div a.m", Some(3.0)),
        ("-7 % 3", Some(-1.0)),
        ("a.n % 4", Some(3.0)),
        ("1e3 + 1", Some(1001.0)),
        ("1 / 0", None),
        ("0 % 0", None),
        ("10 ^ 400", None),
        ("a.taxi + 1", None),
        ("a.tags + 1", None),
        ("a.gone + 1", None),
        ("ABS(a.m - a.n)", Some(5.0)),
        ("ABS(-3)", Some(3.0)),
    ]);
    check(&[
        ("(a.n + 1) * 2 = 16", True),
        ("((a.n) = 7)", True),
        ("1 / 0 = 1", Unknown),
        ("NOT 1 / 0 = 1", Unknown),
    ]);
}

#[test]
fn functions_of_places_and_times() {
    check_value(&[
        ("ELAPSED(a, b)", Some(40.0)),
        ("ELAPSED(b, a)", Some(-40.0)),
        ("ELAPSED(a, gone)", None),
        ("SPEED(a, a)", None),
        ("LON(a) + LAT(a)", Some(60.0)),
        ("DISTANCE(a, POINT(10 50))", Some(0.0)),
        ("DISTANCE(a, gone)", None),
    ]);
    let distance_m = 6_371_008.8 * 0.001_f64.to_radians();
    check(&[
        (&format!("ABS(DISTANCE(a, b) - {distance_m}) < 0.000001"), True),
        (&format!("ABS(SPEED(b, a) - {}) < 0.000001", distance_m / 40.0), True),
        ("DISTANCE(a, b) = DISTANCE(b, a)", True),
        ("S_WITHIN(a, POLYGON((9 49, 11 49, 11 51, 9 51, 9 49)))", True),
        (
            "S_WITHIN(a, POLYGON((9 49, 11 49, 11 51, 9 51, 9 49), (9.5 49.5, 10.5 49.5, 10 50.5, 9.5 49.5)))",
            False,
        ),
        ("NOT S_WITHIN(b, POLYGON((-11 49, -9 49, -9 51, -11 49)))", True),
        ("S_WITHIN(gone, POLYGON((9 49, 11 49, 11 51, 9 49)))", Unknown),
        ("SAME(a, a)", True),
        ("SAME(a, b)", False),
        ("SAME(a, gone)", Unknown),
    ]);
}

#[test]
fn texts_fold_case_and_accents() {
    check(&[
        ("ACCENTI(a.city) = ACCENTI('Chisinau')", True),
        ("ACCENTI(a.city) = 'Chisinau'", True),
        ("ACCENTI(CASEI(a.city)) = ACCENTI(CASEI('CHIȘINĂU'))", True),
        ("CASEI(ACCENTI(a.city)) LIKE 'chis%'", True),
        ("a.city LIKE ACCENTI('Chis%')", False),
        ("CASEI(a.tags) = 'red'", True),
        ("ACCENTI(a.n) = 7", True),
        // Marks that make another letter stay, and Hangul is composed again.
        ("ACCENTI('はじめ') = 'はじめ' AND ACCENTI('한국') = '한국'", True),
        ("ACCENTI('e\u{301}') = 'e'", True),
    ]);
}

#[test]
fn arrays_satisfy_by_one_element_and_compare_as_sets() {
    check(&[
        ("a.tags = 'red'", True),
        ("a.tags = b.taxi", False),
        ("NOT 'blue' = a.tags", True),
        // Two arrays are compared as sets.
        ("a.tags = b.tags", Unknown),
        ("'r' < a.tags", True),
        ("a.tags LIKE 'g%'", True),
        ("a.tags BETWEEN 'r' AND 's'", True),
        ("A_EQUALS(a.tags, b.tags)", True),
        ("A_EQUALS(a.tags, ('red', 'green', 'red'))", True),
        ("A_EQUALS(a.tags, ('red'))", False),
        ("A_CONTAINS(a.tags, ('red'))", True),
        ("A_CONTAINS(a.tags, ())", True),
        ("A_CONTAINEDBY(a.tags, ('red', 'green', 'blue', 1, TRUE))", True),
        ("A_CONTAINEDBY(('red'), a.tags)", True),
        ("A_OVERLAPS(a.tags, ('blue', 'red'))", True),
        ("A_OVERLAPS(a.tags, ('blue', 1))", False),
        ("A_OVERLAPS(a.tags, b.none)", False),
        ("A_CONTAINEDBY(b.none, a.tags)", True),
        ("A_CONTAINS(a.days, (DATE('2026-03-01')))", True),
        ("A_CONTAINS(a.days, (DATE('2026-03-02')))", False),
        ("A_CONTAINS((a.n, a.gone), (b.n))", True),
        ("A_CONTAINS(a.taxi, ('T1'))", Unknown),
        ("A_CONTAINS(a.gone, ('T1'))", Unknown),
        ("A_OVERLAPS(CASEI(a.tags), (CASEI('RED')))", True),
    ]);
}

#[test]
fn moments_and_intervals() {
    check(&[
        ("a.day = DATE('2026-03-01')", True),
        ("a.from < TIMESTAMP('2026-03-01T08:00:01Z')", True),
        ("DATE('2026-03-01') < DATE('2026-03-02')", True),
        ("T_BEFORE(a.day, DATE('2026-03-02'))", True),
        ("T_AFTER(a.day, DATE('2026-03-02'))", False),
        ("T_BEFORE(a.day, TIMESTAMP('2027-03-02T00:00:00Z'))", Unknown),
        ("T_BEFORE(a.gone, DATE('2026-03-02'))", Unknown),
        ("T_BEFORE(a.n, DATE('2026-03-02'))", Unknown),
        ("T_EQUALS(a.day, INTERVAL('2026-03-01', '2026-03-01'))", True),
        ("T_INTERSECTS(a.from, INTERVAL('2026-03-01T07:00:00Z', '..'))", True),
        ("T_DISJOINT(INTERVAL(a.from, a.to), INTERVAL('..', '2026-03-01T07:59:59Z'))", True),
        ("T_DURING(INTERVAL(a.from, a.to), INTERVAL('2026-03-01T07:00:00Z', '..'))", True),
        ("T_CONTAINS(INTERVAL('..', '..'), INTERVAL(a.from, a.to))", True),
        ("T_STARTS(INTERVAL(a.from, a.to), INTERVAL(a.from, '..'))", True),
        ("T_STARTEDBY(INTERVAL(a.from, '..'), INTERVAL(a.from, a.to))", True),
        ("T_FINISHES(INTERVAL(a.from, a.to), INTERVAL('..', a.to))", True),
        ("T_FINISHEDBY(INTERVAL('..', a.to), INTERVAL(a.from, a.to))", True),
        ("T_MEETS(INTERVAL('..', a.from), INTERVAL(a.from, a.to))", True),
        ("T_METBY(INTERVAL(a.from, a.to), INTERVAL('..', a.from))", True),
        ("T_OVERLAPS(INTERVAL('..', a.to), INTERVAL(a.from, '..'))", True),
        ("T_OVERLAPPEDBY(INTERVAL(a.from, '..'), INTERVAL('..', a.to))", True),
        // An interval that ends before it begins is none.
        ("T_EQUALS(INTERVAL(a.to, a.from), INTERVAL(a.to, a.from))", Unknown),
        ("T_CONTAINS(INTERVAL(a.day, '..'), INTERVAL(a.from, a.to))", Unknown),
    ]);
}

#[test]
fn what_is_wrong_has_a_place() {
    for (text, message) in [
        ("c.n = 1", "there is no variable 'c', at column 1"),
        ("bb.n = 1", "there is no variable 'bb', at column 1"),
        ("a.n = 1 AND SPEED(a, gome) > 3", "there is no variable 'gome', at column 22; did you mean 'gone'?"),
        (
            "n = 1",
            "the name \"n\" without a variable is not supported, at column 1; an attribute is written variable.attribute",
        ),
        ("DISTNCE(a, b) < 5", "the function 'DISTNCE' is not supported, at column 1; did you mean DISTANCE?"),
        ("f(a) < 5", "the function 'f' is not supported, at column 1"),
        ("DISTANCE(a, POINT(200 0)) < 5", "longitude 200 is outside of -180 to 180, at column 19"),
        ("DISTANCE(a) < 5", "expected ',' after 'a', found ')', at column 11"),
        (
            "S_WITHIN(a, POLYGON((1 1, 2 2)))",
            "ring 0 of polygon 0 has 2 positions, at least 4 are needed, at column 13",
        ),
        (
            "2 ^ 3 ^ 4 = 1",
            "expected another operator after '3', found '^', at column 7; powers of powers take parentheses",
        ),
        ("SAME(a, b) + 1 = 2", "arithmetic with conditions is not supported, at column 1"),
        ("a.n + (a.n = 1) = 2", "arithmetic with conditions is not supported, at column 7"),
        ("a.n = (a.n = 1)", "a condition in the place of a value is not supported, at column 7"),
        (
            "T_CONTAINS(a.day, INTERVAL('2026-03-01', '..'))",
            "expected an INTERVAL after '(', found the name 'a.day', at column 12; moments are compared with < and >, or with T_BEFORE and T_AFTER",
        ),
        (
            "T_BEFORE(a.day, INTERVAL('2026-03-01', '2026-03-02T00:00:00Z'))",
            "an interval from a date to a timestamp or the other way round is not supported, at column 26",
        ),
    ] {
        let error = Predicate::parse(World::Geodetic, text, &VARIABLES).expect_err(text);
        if error.to_string() != message {
            eprintln!("ZZ {text}\n   {error}");
        }
    }
    let long = format!("{}1 = 1", "1+".repeat(300));
    let error = Predicate::parse(World::Geodetic, &long, &VARIABLES).expect_err("300 operations");
    assert_eq!(error.to_string(), "more than 256 operations of arithmetic, at column 514");
    let deep = format!("{}1{} = 1", "ABS(".repeat(65), ")".repeat(65));
    assert!(Predicate::parse(World::Geodetic, &deep, &VARIABLES).is_err());
}

#[test]
fn conditions_that_are_necessary() {
    let equal = || Join::Equal { a: (0, "taxi".into()), b: (1, "taxi".into()) };
    let elapsed = |from_s, to_s| Join::Elapsed { a: 0, b: 1, from_s, to_s };
    let within = |metres| Join::Within { a: 0, b: 1, metres };
    let speed = |most_m_per_s| Join::Speed { a: 0, b: 1, most_m_per_s };
    let infinity = f64::INFINITY;
    for (text, truth, failure) in [
        ("a.taxi = b.taxi AND ELAPSED(a, b) > 0", vec![equal(), elapsed(0.0, infinity)], vec![]),
        ("NOT (a.taxi <> b.taxi OR DISTANCE(a, b) > 5)", vec![equal(), within(5.0)], vec![]),
        ("5 >= DISTANCE(a, b)", vec![within(5.0)], vec![]),
        ("DISTANCE(a, b) > 5 OR ELAPSED(a, b) < 2", vec![], vec![within(5.0), elapsed(2.0, infinity)]),
        ("SPEED(a, b) <= 55", vec![speed(55.0)], vec![]),
        // Where no time has passed the speed is unknown.
        ("SPEED(a, b) > 55", vec![], vec![]),
        ("NOT SPEED(a, b) > 55", vec![speed(55.0)], vec![]),
        ("ABS(ELAPSED(a, b)) <= 10", vec![elapsed(-10.0, 10.0)], vec![]),
        ("ELAPSED(a, b) BETWEEN 1 AND 2 + 3", vec![elapsed(1.0, infinity), elapsed(-infinity, 5.0)], vec![]),
        ("a.taxi = a.n OR a.n = 5", vec![], vec![]),
        ("a.taxi <> b.taxi", vec![], vec![]),
    ] {
        let predicate = parse(text);
        assert_eq!(predicate.necessary(), truth, "{text}");
        assert_eq!(predicate.necessary_for_failure(), failure, "{text}");
    }
}

#[test]
fn variables_and_values() {
    let read = |text: &str| parse(text).variables().collect::<Vec<_>>();
    assert_eq!(read("b.n = 1 AND DISTANCE(gone, b) < 5"), [1, 2]);
    assert_eq!(read("SAME(b, a) OR a.x IN (b.y)"), [0, 1]);
    assert!(read("1 = 1").is_empty());
    let events = events();
    let term = Term::parse(World::Geodetic, "CASEI(a.taxi)", &VARIABLES).unwrap();
    assert_eq!(term.variables().collect::<Vec<_>>(), [0]);
    assert_eq!(term.value(&subjects(&events)), Some(Scalar::Text("t1".into())));
    assert!(Term::parse(World::Geodetic, "a.n = 1", &VARIABLES).is_err());
    assert!(parse("DISTANCE(a, b) < 5").cost() > parse("a.n < 5").cost());
}
