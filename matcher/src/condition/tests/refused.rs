//! Texts that are no conditions, and what their authors are told.

use crate::condition::error::Place;
use crate::condition::text::{NESTING_MAX, TEXT_BYTES_MAX};
use crate::condition::{Condition, ConditionError};
use crate::geo::World;

#[track_caller]
fn check_all(cases: &[(&str, &str)]) {
    let told = |text: &str| match Condition::parse(text) {
        Ok(condition) => format!("{text:?} is accepted as {}", condition.normal()),
        Err(error) => error.to_string(),
    };
    let (found, expected): (Vec<_>, Vec<_>) =
        cases.iter().map(|(text, message)| ((*text, told(text)), (*text, (*message).to_owned()))).unzip();
    let wrong: Vec<_> =
        found.into_iter().zip(expected).filter(|(found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_breaks_the_grammar() {
    check_all(&[
        ("", "expected a condition, found end of text, at column 1"),
        ("   ", "expected a condition, found end of text, at column 4"),
        (
            "speed",
            "expected a comparison, BETWEEN, IN, LIKE or IS after 'speed', found end of text, at column 6",
        ),
        ("speed >=", "expected a value after '>=', found end of text, at column 9"),
        ("road.speed >= ", "expected a value after '>=', found end of text, at column 15"),
        ("speed >= AND", "expected a value after '>=', found the keyword 'AND', at column 10"),
        ("a = 1 AND", "expected a condition after 'AND', found end of text, at column 10"),
        (
            "a = 1 OR OR b = 2",
            "expected a condition after 'OR', found the keyword 'OR', at column 10; a name that is a keyword takes double quotes",
        ),
        ("(a = 1", "expected AND, OR or ')' after '1', found end of text, at column 7"),
        ("a = 1)", "expected AND, OR or the end of the text after '1', found ')', at column 6"),
        ("()", "expected a condition after '(', found ')', at column 2"),
        ("NOT", "expected a condition after 'NOT', found end of text, at column 4"),
        ("a NOT 5", "expected BETWEEN, IN or LIKE after 'NOT', found the number '5', at column 7"),
        ("a NOT = 5", "expected BETWEEN, IN or LIKE after 'NOT', found '=', at column 7; did you mean <>?"),
        ("a IS 5", "expected NULL or NOT NULL after 'IS', found the number '5', at column 6"),
        ("a IS NOT 5", "expected NULL after 'NOT', found the number '5', at column 10"),
        ("a BETWEEN 1", "expected AND and the upper bound after '1', found end of text, at column 12"),
        (
            "a BETWEEN 1 OR 2",
            "expected AND and the upper bound after '1', found the keyword 'OR', at column 13",
        ),
        ("a BETWEEN 1 AND", "expected a value after 'AND', found end of text, at column 16"),
        ("a IN", "expected '(' after 'IN', found end of text, at column 5"),
        ("a IN ()", "expected a value after '(', found ')', at column 7"),
        ("a IN (1", "expected ',' or ')' after '1', found end of text, at column 8"),
        ("a IN (1,)", "expected a value after ',', found ')', at column 9"),
        ("a IN 1", "expected '(' after 'IN', found the number '1', at column 6"),
        ("a LIKE", "expected a text after 'LIKE', found end of text, at column 7"),
        ("a LIKE 5", "expected a text after 'LIKE', found the number '5', at column 8"),
        ("a LIKE b", "expected a text after 'LIKE', found the name 'b', at column 8"),
        (
            "a LIKE U&'\\\\'",
            "the LIKE pattern ends in a single '\\', which takes the next character literally, at column 8",
        ),
        ("5", "expected a comparison, BETWEEN, IN, LIKE or IS after '5', found end of text, at column 2"),
        ("'x'", "expected a comparison, BETWEEN, IN, LIKE or IS after 'x', found end of text, at column 4"),
        (
            "'x' AND a = 1",
            "expected a comparison, BETWEEN, IN, LIKE or IS after 'x', found the keyword 'AND', at column 5; a truth value is tested with = TRUE",
        ),
        ("a = 10 div", "expected a value after 'div', found end of text, at column 11"),
        ("a == 1", "expected a value after '=', found '=', at column 4; did you mean =?"),
        (
            "a = NULL",
            "expected a value after '=', found the keyword 'NULL', at column 5; whether an attribute is absent is asked with IS NULL",
        ),
        (
            "a IN (NULL)",
            "expected a value after '(', found the keyword 'NULL', at column 7; whether an attribute is absent is asked with IS NULL",
        ),
        (
            "NULL = a",
            "expected a condition, found the keyword 'NULL', at column 1; a name that is a keyword takes double quotes",
        ),
        (
            "and = 1",
            "expected a condition, found the keyword 'and', at column 1; a name that is a keyword takes double quotes",
        ),
        (
            "lanes_closed AND a = 1",
            "expected a comparison, BETWEEN, IN, LIKE or IS after 'lanes_closed', found the keyword 'AND', at column 14; a truth value is tested with = TRUE",
        ),
        ("a = 1 b = 2", "expected AND, OR or the end of the text after '1', found the name 'b', at column 7"),
        (
            "a = 1 AND b",
            "expected a comparison, BETWEEN, IN, LIKE or IS after 'b', found end of text, at column 12",
        ),
        (
            "(a) AND b = 1",
            "expected a comparison, BETWEEN, IN, LIKE or IS after ')', found the keyword 'AND', at column 5; a truth value is tested with = TRUE",
        ),
        ("a = (5", "expected an operator or ')' after '5', found end of text, at column 7"),
        ("a = ()", "expected a value after '(', found ')', at column 6"),
        ("a = 5abc", "expected AND, OR or the end of the text after '5', found the name 'abc', at column 6"),
        ("🚗 = 1 🚗", "expected AND, OR or the end of the text after '1', found the name '🚗', at column 7"),
        ("CASEI(5) = 5", "expected a name or a text after '(', found the number '5', at column 7"),
        ("CASEI(a = 'x'", "expected ')' after 'a', found '=', at column 9"),
        ("CASEI() = 'x'", "expected a name or a text after '(', found ')', at column 7"),
        (
            "CASEI(a)",
            "expected a comparison, BETWEEN, IN, LIKE or IS after ')', found end of text, at column 9",
        ),
        (
            "TRUE FALSE",
            "expected AND, OR or the end of the text after 'TRUE', found the keyword 'FALSE', at column 6",
        ),
        ("a = 'x' 'y'", "expected AND, OR or the end of the text after 'x', found the text 'y', at column 9"),
        ("a b", "expected a comparison, BETWEEN, IN, LIKE or IS after 'a', found the name 'b', at column 3"),
        (", a = 1", "expected a condition, found ',', at column 1"),
        ("a..b IS", "expected NULL or NOT NULL after 'IS', found end of text, at column 8"),
        (
            "a LIKE 'x' ESCAPE '!'",
            "expected AND, OR or the end of the text after 'x', found the name 'ESCAPE', at column 12",
        ),
        (
            "a ILIKE 'x'",
            "expected a comparison, BETWEEN, IN, LIKE or IS after 'a', found the name 'ILIKE', at column 3; did you mean LIKE with CASEI(..) on both sides?",
        ),
        ("a = 1 AND NOT", "expected a condition after 'NOT', found end of text, at column 14"),
        (
            "a < DATE('2026-02-30')",
            "expected a date such as '2026-01-31' after '(', found the text '2026-02-30', at column 10",
        ),
        ("a < DATE(a)", "expected a date such as '2026-01-31' after '(', found the name 'a', at column 10"),
        ("a < DATE('2026-02-03', 1)", "expected ')' after '2026-02-03', found ',', at column 22"),
        (
            "a < TIMESTAMP('2026-01-31T08:30:00+01:00')",
            "expected a timestamp in UTC such as '2026-01-31T08:30:00Z' after '(', found the text '2026-01-31T08:30:00+01:00', at column 15",
        ),
        (
            "a < TIMESTAMP()",
            "expected a timestamp in UTC such as '2026-01-31T08:30:00Z' after '(', found ')', at column 15",
        ),
    ]);
}

#[test]
fn what_is_cut_off_or_strange() {
    check_all(&[
        (
            "a != 1",
            "expected a name, a value or an operator, found the character '!', at column 3; did you mean <>?",
        ),
        (
            "a = 'it's'",
            "expected a closing ' for the text that begins at column 10, found end of text, at column 11; a ' inside a text is doubled: 'it''s'",
        ),
        (
            "a = 'open",
            "expected a closing ' for the text that begins at column 5, found end of text, at column 10; a ' inside a text is doubled: 'it''s'",
        ),
        (
            "a = 'C:\\'",
            "expected a closing ' for the text that begins at column 5, found end of text, at column 10; \\' is a quote inside a text; one that ends in a backslash is written U&'..\\\\'",
        ),
        (
            "a = U&'a\\b'",
            "expected a text after U&, with its quotes and backslashes doubled, found the character '&', at column 6",
        ),
        (
            "\"open = 1",
            "expected a closing \" for the name that begins at column 1, found end of text, at column 10; a \" inside a name is doubled",
        ),
        ("a = 1e999", "the number 1e999 is too large, at column 5"),
        ("a = -1e999", "the number 1e999 is too large, at column 6"),
        ("a = 1e5000000000000000000", "the number 1e5000000000000000000 is too large, at column 5"),
        ("a; b", "expected a name, a value or an operator, found the character ';', at column 2"),
        ("a = 1 § b", "expected a name, a value or an operator, found the character '§', at column 7"),
        ("a = 'ä' AND §", "expected a name, a value or an operator, found the character '§', at column 13"),
        (
            "a && b",
            "expected a name, a value or an operator, found the character '&', at column 3; did you mean AND?",
        ),
        ("a = \0", "expected a name, a value or an operator, found the character '\\0', at column 5"),
        (
            "\u{feff}a = 1",
            "expected a name, a value or an operator, found the character '\\u{feff}', at column 1",
        ),
        ("a = $1", "expected a name, a value or an operator, found the character '$', at column 5"),
    ]);
}

/// Ends of messages for what people write who know other languages.
#[test]
fn near_misses_are_told_what_they_miss() {
    for (text, advice) in [
        ("severity => 2", "found '>', at column 11; did you mean >=?"),
        ("severity =< 2", "found '<', at column 11; did you mean <=?"),
        ("severity === 2", "found '=', at column 11; did you mean =?"),
        ("a !== 1", "did you mean <>?"),
        ("a ≠ 1", "did you mean <>?"),
        ("a ≥ 1", "did you mean >=?"),
        ("!a = 1", "did you mean NOT?"),
        ("a = 1 & b = 2", "did you mean AND?"),
        ("a = 1 || b = 2", "did you mean OR?"),
        ("a = ‘fire’", "a text takes straight single quotes: '..'"),
        ("a = `fire`", "a text takes straight single quotes: '..'"),
        ("a LIKE \"f%\"", "a text takes single quotes, double quotes are for names"),
        ("a ~ 'f'", "did you mean LIKE? Its wildcards are % and _"),
        ("a contains 'f'", "did you mean LIKE? Its wildcards are % and _"),
        ("a IN [1, 2]", "did you mean (..)? A list takes parentheses"),
        ("a eq 1", "did you mean =?"),
        ("a NE 1", "did you mean <>?"),
        ("a gte 1", "did you mean >=?"),
        ("a IS TRUE", "a truth value is tested with = TRUE or = FALSE"),
        ("a IS NOT false", "a truth value is tested with = TRUE or = FALSE"),
        ("a exists", "did you mean IS NOT NULL?"),
        ("1 < a < 3", "found '<', at column 7; two comparisons are joined by AND"),
    ] {
        let message = Condition::parse(text).expect_err(text).to_string();
        assert!(message.ends_with(advice), "{text}: {message}");
    }
}

#[test]
fn what_cql2_has_and_conditions_do_not() {
    check_all(&[
        ("5 LIKE a", "expected a text after 'LIKE', found the name 'a', at column 8"),
        ("f(a) = 1", "the function 'f' is not supported, at column 1"),
        ("a = f(1)", "the function 'f' is not supported, at column 5"),
        (
            "T_AFTR(a, DATE('2026-01-01'))",
            "the function 'T_AFTR' is not supported, at column 1; did you mean T_AFTER?",
        ),
        (
            "S_INTERSECTS(geometry, POINT(1 2))",
            "the function 'S_INTERSECTS' is not supported, at column 1; the area of a filter says where, and S_WITHIN(event, POLYGON((..))) beside it",
        ),
        ("a = INTERVAL('2026-01-01', '..')", "INTERVAL in this place is not supported, at column 5"),
        ("a LIKE DATE('2026-01-01')", "DATE in this place is not supported, at column 8"),
        (
            "CASEI(DATE('2026-01-01')) = a",
            "CASEI of anything but a name or a text is not supported, at column 7",
        ),
        ("größe = ü AND", "expected a condition after 'AND', found end of text, at column 14"),
        ("* = 1", "expected a condition, found '*', at column 1"),
        ("a = (b = 1)", "a condition in the place of a value is not supported, at column 5"),
        (
            "a = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(",
            "the function 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…' is not supported, at column 5",
        ),
        ("DISTANCE(event, POINT(1 2)) < 5", "DISTANCE in this place is not supported, at column 1"),
        ("LON(evnt) < 5", "there is no variable 'evnt', at column 5; did you mean 'event'?"),
        (
            "LON(me) < 5",
            "'me' in this place is not supported, at column 5; conditions of subscriptions have it, which are of a client",
        ),
    ]);
}

#[test]
fn a_client_has_no_time() {
    let told = |text: &str| Condition::parse_in(World::Planar, text).expect_err("it is refused").to_string();
    let advice = "a client has a place, for DISTANCE, LON, LAT and S_WITHIN, and no time";
    for (text, column) in
        [("ELAPSED(me, event) < 5", 9), ("SPEED(event, me) < 5", 14), ("SAME(me, event)", 6)]
    {
        let expected = format!("'me' in this function is not supported, at column {column}; {advice}");
        assert_eq!(told(text), expected);
    }
    assert_eq!(told("LON(mee) < 5"), "there is no variable 'mee', at column 5; did you mean 'me'?");
    assert_eq!(told("LON(5) < 5"), "expected event or me after '(', found the number '5', at column 5");
    let question = Condition::parse_expression(World::Planar, "LON(me) < 5").expect_err("there is no client");
    assert!(question.to_string().starts_with("'me' in this place is not supported, at column 5"));
}

#[test]
fn a_place_counts_bytes_and_characters() {
    let error = Condition::parse("größe = 'ü' AND §").expect_err("§ is no operator");
    assert_eq!(error.place(), Some(Place { offset: 19, column: 17 }));
    assert_eq!(Place::of("ü = 1", 2), Place { offset: 2, column: 2 });
    assert_eq!(Place::of("", 0), Place { offset: 0, column: 1 });
    assert_eq!(ConditionError::TooLong { found: 1 }.place(), None);
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("(", ")"), ("NOT ", ""), ("NOT (", ")")] {
        let levels = open.matches(['(', 'N']).count();
        let nested = |count: usize| format!("{}a = 1{}", open.repeat(count), close.repeat(count));
        let fits = NESTING_MAX / levels;
        assert!(Condition::parse(&nested(fits)).is_ok(), "{open}");
        let error = Condition::parse(&nested(fits + 1)).expect_err("one level too many");
        let column = open.len() * fits + 1;
        assert_eq!(
            error.to_string(),
            format!("parentheses, functions and NOT nest deeper than 64 levels, at column {column}")
        );
        assert!(matches!(Condition::parse(&nested(5_000)), Err(ConditionError::TooDeep { .. })), "{open}");
    }
    // Levels that are closed again do not add up.
    let beside = vec!["(a = 1)"; 1_000].join(" AND ");
    assert!(matches!(Condition::parse(&beside), Err(ConditionError::TooLarge(_))));
    assert!(matches!(Condition::parse(&"(".repeat(5_000)), Err(ConditionError::TooDeep { .. })));
}

#[test]
fn length_is_bounded() {
    let text = |bytes: usize| format!("a = '{}'", "x".repeat(bytes - 6));
    assert!(Condition::parse(&text(TEXT_BYTES_MAX)).is_ok());
    let error = Condition::parse(&text(TEXT_BYTES_MAX + 1)).expect_err("a byte too many");
    assert_eq!(error.to_string(), "the condition has 65537 bytes, at most 65536 are allowed");
    let error = Condition::parse(&"(".repeat(10_000_000)).expect_err("ten million bytes too many");
    assert_eq!(error, ConditionError::TooLong { found: 10_000_000 });
}

#[test]
fn messages_stay_short_whatever_is_in_them() {
    let long = "x".repeat(60_000);
    for text in [
        long.clone(),
        format!("a = {long}(1)"),
        format!("{long}(1) = 2"),
        format!("a = '{long}' {long}"),
        format!("a = \"{long}"),
        format!("a = 1{} b", "0".repeat(60_000)),
        format!("a = f{}", "(".repeat(30_000)),
        format!("a = {} b", "ü".repeat(30_000)),
    ] {
        let message = Condition::parse(&text).expect_err("no condition").to_string();
        assert!(message.chars().count() < 250, "{message}");
    }
}
