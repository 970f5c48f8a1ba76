//! Documents, and the texts that mean the same.

use serde_json::json;

use super::*;

const WORLD: World = World::Geodetic;

/// The document means what the text means.
#[track_caller]
fn check(document: &Value, text: &str) {
    let condition = condition(WORLD, document).unwrap_or_else(|error| panic!("{document}: {error}"));
    assert_eq!(condition.normal().to_string(), text, "{document}");
    assert_eq!(
        Some(condition.normal()),
        Condition::parse_in(WORLD, text).ok().as_ref().map(Condition::normal)
    );
}

#[track_caller]
fn check_refused(document: &Value, pointer: &str, detail: &str) {
    match condition(WORLD, document) {
        Ok(condition) => panic!("{document} is accepted as {}", condition.normal()),
        Err(error) => {
            assert_eq!((error.pointer.as_str(), error.detail.as_str()), (pointer, detail), "{document}");
        }
    }
}

#[test]
fn operators() {
    let a = json!({"property": "a"});
    for op in ["=", "<>", "<", "<=", ">", ">="] {
        check(&json!({"op": op, "args": [a, 5]}), &format!("a {op} 5"));
    }
    check(&json!({"op": "<", "args": [5, a]}), "a > 5");
    check(&json!({"op": "between", "args": [a, 1, 2.5]}), "a BETWEEN 1 AND 2.5");
    check(&json!({"op": "in", "args": [a, [1, "x", true]]}), "a IN (1, 'x', TRUE)");
    check(&json!({"op": "like", "args": [a, "x%"]}), "a LIKE 'x%'");
    check(&json!({"op": "isNull", "args": [{"property": "road.name"}]}), "road.name IS NULL");
    check(&json!({"op": "not", "args": [{"op": "isNull", "args": [a]}]}), "a IS NOT NULL");
    check(&json!(true), "TRUE");
    check(&json!(false), "FALSE");
    check(&json!("a = 1 and b = 2"), "a = 1 AND b = 2");
}

#[test]
fn connectives() {
    let is = |name: &str| json!({"op": "=", "args": [{"property": name}, "x"]});
    check(
        &json!({"op": "and", "args": [{"op": "or", "args": [is("a"), is("b")]}, is("c")]}),
        "a = 'x' AND c = 'x' OR b = 'x' AND c = 'x'",
    );
    check(&json!({"op": "not", "args": [{"op": "or", "args": [is("a"), is("b"), true]}]}), "FALSE");
    check(&json!({"op": "or", "args": [is("AND")]}), "\"AND\" = 'x'");
}

#[test]
fn dates_and_timestamps() {
    let a = json!({"property": "a"});
    let (date, timestamp) = (json!({"date": "2026-03-01"}), json!({"timestamp": "2026-03-01T07:30:00.5Z"}));
    check(&json!({"op": "<", "args": [a, date]}), "a < DATE('2026-03-01')");
    check(&json!({"op": "<", "args": [timestamp, a]}), "a > TIMESTAMP('2026-03-01T07:30:00.5Z')");
    check(&json!({"op": "in", "args": [a, [date, 5]]}), "a IN (DATE('2026-03-01'), 5)");
    check(
        &json!({"op": "between", "args": [a, timestamp, timestamp]}),
        "a BETWEEN TIMESTAMP('2026-03-01T07:30:00.5Z') AND TIMESTAMP('2026-03-01T07:30:00.5Z')",
    );
}

#[test]
fn texts_keep_their_backslashes() {
    let is = |text: &str| json!({"op": "=", "args": [{"property": "a"}, text]});
    check(&is("\\"), "a = U&'\\\\'");
    check(&is("it\\'s"), "a = U&'it\\\\''s'");
    check(&is("C:\\x"), "a = 'C:\\x'");
}

#[test]
fn casei_on_either_side() {
    let folded = |inner: Value| json!({"op": "casei", "args": [inner]});
    let a = folded(json!({"property": "a"}));
    check(&json!({"op": "=", "args": [a, folded(json!("Straße"))]}), "CASEI(a) = 'strasse'");
    check(&json!({"op": "like", "args": [a, folded(json!("FOO%"))]}), "CASEI(a) LIKE 'foo%'");
    check(&json!({"op": "in", "args": [a, [folded(json!("X")), "Y"]]}), "CASEI(a) IN ('x', 'Y')");
    check(&json!({"op": "isNull", "args": [a]}), "a IS NULL");
}

#[test]
fn what_no_index_serves() {
    let (a, b) = (json!({"property": "a"}), json!({"property": "b"}));
    let event = json!({"property": "event"});
    let op = |op: &str, args: &[&Value]| json!({"op": op, "args": args});
    check(&op("=", &[&a, &b]), "a = b");
    check(&op("=", &[&json!(1), &json!(2)]), "FALSE");
    check(&op("=", &[&op("+", &[&a, &json!(1)]), &op("*", &[&json!(2), &json!(3)])]), "a + 1 = 6");
    check(&op("<", &[&op("div", &[&a, &b]), &op("^", &[&b, &json!(-2)])]), "a div b < b ^ -2");
    check(&op("between", &[&a, &b, &op("-", &[&b, &json!(1)])]), "a BETWEEN b AND b - 1");
    check(&op("in", &[&a, &json!([1, b])]), "a IN (1, b)");
    check(&op("isNull", &[&json!(5)]), "FALSE");
    check(
        &op("like", &[&op("accenti", &[&op("casei", &[&a])]), &op("accenti", &[&json!("\u{e9}%")])]),
        "ACCENTI(CASEI(a)) LIKE 'e%'",
    );
    check(&op("t_before", &[&a, &json!({"date": "2026-03-01"})]), "T_BEFORE(a, DATE('2026-03-01'))");
    let days = json!({"interval": ["2026-03-01", {"date": "2026-03-02"}]});
    check(
        &op("t_during", &[&json!({"interval": [a, ".."]}), &days]),
        "T_DURING(INTERVAL(a, '..'), INTERVAL(DATE('2026-03-01'), DATE('2026-03-02')))",
    );
    check(&op("a_contains", &[&a, &json!(["x", 1, true, b])]), "A_CONTAINS(a, ('x', 1, TRUE, b))");
    check(&op("a_equals", &[&json!([]), &a]), "A_EQUALS((), a)");
    let point = json!({"type": "Point", "coordinates": [10, 50.5]});
    check(&op("<", &[&op("distance", &[&event, &point]), &a]), "DISTANCE(event, POINT(10 50.5)) < a");
    check(
        &op(">", &[&op("lon", &[&event]), &op("abs", &[&op("lat", &[&event])])]),
        "LON(event) > ABS(LAT(event))",
    );
    let polygon = json!({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]});
    check(&op("s_within", &[&event, &polygon]), "S_WITHIN(event, POLYGON((0 0, 1 0, 1 1, 0 0)))");
}

#[test]
fn refusals_point_at_the_fault() {
    let a = json!({"property": "a"});
    let array = "an array of conditions";
    for (document, pointer, detail) in [
        (json!(null), "", "expected {\"op\": .., \"args\": [..]}, found null".to_owned()),
        (json!(5), "", "expected {\"op\": .., \"args\": [..]}, found a number".to_owned()),
        (a.clone(), "", "expected {\"op\": .., \"args\": [..]}, found another object".to_owned()),
        (json!({"op": 5}), "/op", "expected a text, found a number".to_owned()),
        (json!({"op": "and"}), "", "the operation \"and\" has no \"args\"".to_owned()),
        (json!({"op": "and", "args": []}), "/args", format!("expected {array}, found an empty array")),
        (json!({"op": "or", "args": {}}), "/args", format!("expected {array}, found another object")),
        (
            json!({"op": "and", "args": [true, "a = 1"]}),
            "/args/1",
            "expected {\"op\": .., \"args\": [..]}, found a text".to_owned(),
        ),
        (json!({"op": "not", "args": []}), "/args", "expected 1 arguments, found 0".to_owned()),
        (json!({"op": "=", "args": [a]}), "/args", "expected 2 arguments, found 1".to_owned()),
        (json!({"op": "=", "args": "x"}), "/args", "expected an array of arguments, found a text".to_owned()),
        (
            json!({"op": "=", "args": [a, null]}),
            "/args/1",
            "whether an attribute is absent is asked with isNull".to_owned(),
        ),
        (
            json!({"op": "=", "args": [{"property": 5}, 1]}),
            "/args/0/property",
            "expected a text, found a number".to_owned(),
        ),
        (
            json!({"op": "<", "args": [a, {"date": "2026-02-30"}]}),
            "/args/1/date",
            "must be a date such as 2026-01-31".to_owned(),
        ),
        (
            json!({"op": "<", "args": [a, {"timestamp": "2026-03-01T00:00:00+01:00"}]}),
            "/args/1/timestamp",
            "must be a timestamp such as 2026-01-31T08:30:00Z, in UTC".to_owned(),
        ),
        (
            json!({"op": "<", "args": [a, {"timestamp": 5}]}),
            "/args/1/timestamp",
            "expected a text, found a number".to_owned(),
        ),
        (
            json!({"op": "s_intersects", "args": [a, {"type": "Point"}]}),
            "/op",
            "the operation \"s_intersects\" is not supported".to_owned(),
        ),
        (
            json!({"op": "in", "args": [a, 5]}),
            "/args/1",
            "expected an array of values, found a number".to_owned(),
        ),
        (
            json!({"op": "in", "args": [a, []]}),
            "/args/1",
            "expected an array of values, found an empty array".to_owned(),
        ),
        (json!({"op": "between", "args": [a, 1]}), "/args", "expected 3 arguments, found 2".to_owned()),
        (json!({"op": "like", "args": [a, 5]}), "/args/1", "expected a text, found a number".to_owned()),
        (
            json!({"op": "and", "args": [{"op": "not", "args": [{"op": "like", "args": [a, "x\\"]}]}]}),
            "/args/0/args/0/args/1",
            "the LIKE pattern ends in a single '\\', which takes the next character literally".to_owned(),
        ),
        (
            json!({"op": "=", "args": [{"op": "casei", "args": [5]}, "x"]}),
            "/args/0/args/0",
            "expected a text or {\"property\": ..}, found a number".to_owned(),
        ),
        (
            json!({"op": "<", "args": [a, {"interval": ["2026-03-01", ".."]}]}),
            "/args/1",
            "an interval stands in operations such as t_during".to_owned(),
        ),
        (
            json!({"op": "t_during", "args": [a, {"interval": ["..", ".."]}]}),
            "/args/0",
            "expected {\"interval\": [.., ..]}, found another object".to_owned(),
        ),
        (
            json!({"op": "t_after", "args": [a, {"interval": ["2026-03-01", "soon"]}]}),
            "/args/1/interval/1",
            "expected \"..\", a date, a timestamp in UTC or {\"property\": ..}, found a text".to_owned(),
        ),
        (
            json!({"op": "=", "args": [{"op": "+", "args": [a, 1, 2]}, 2]}),
            "/args/0/args",
            "expected 2 arguments, found 3".to_owned(),
        ),
        (
            json!({"op": "=", "args": [{"op": "sqrt", "args": [a]}, 2]}),
            "/args/0/op",
            "the operation \"sqrt\" is not supported here".to_owned(),
        ),
        (
            json!({"op": "<", "args": [{"op": "distance", "args": [{"property": "event"}, {"type": "Point", "coordinates": [200, 0]}]}, 2]}),
            "/args/0/args/1/coordinates",
            "longitude 200 is outside of -180 to 180".to_owned(),
        ),
        (
            json!({"op": "<", "args": [{"op": "speed", "args": [{"property": "event"}, {"property": "me"}]}, 2]}),
            "/args/0/args/1",
            "'me' in this function is not supported: a client has a place, for distance, lon, lat and s_within, and no time"
                .to_owned(),
        ),
        (
            json!({"op": "s_within", "args": [{"property": "event"}, {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}]}),
            "/args/1/coordinates",
            "ring 0 of polygon 0 has 2 positions, at least 4 are needed".to_owned(),
        ),
        (json!("a = "), "", "expected a value after '=', found end of text, at column 5".to_owned()),
    ] {
        check_refused(&document, pointer, &detail);
    }
}

#[test]
fn caps_and_depth_are_those_of_texts() {
    let is = json!({"op": "=", "args": [{"property": "a"}, 1]});
    check_refused(
        &json!({"op": "or", "args": vec![is.clone(); 65]}),
        "",
        "the disjunctive form of the condition has 65 conjunctions, at most 64 are allowed",
    );
    check_refused(
        &json!({"op": "and", "args": vec![is.clone(); 33]}),
        "",
        "the disjunctive form of the condition has a conjunction of 33 constraints, at most 32 are allowed",
    );
    let nested =
        |levels: usize| (0..levels).fold(is.clone(), |inner, _| json!({"op": "not", "args": [inner]}));
    check(&nested(NESTING_MAX), "a = 1");
    let pointer = "/args/0".repeat(NESTING_MAX);
    check_refused(&nested(NESTING_MAX + 1), &pointer, "operations nest deeper than 64 levels");
    check_refused(&nested(1_000), &pointer, "operations nest deeper than 64 levels");
}
