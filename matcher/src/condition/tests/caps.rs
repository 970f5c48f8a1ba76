//! How large a normal form may be.

use crate::condition::expression::{Comparison, Constraint, Expression, Test};
use crate::condition::normal::TooLarge;
use crate::condition::{Condition, ConditionError};
use crate::event::{Scalar, Symbol};

fn repeated(constraint: &str, count: usize, join: &str) -> String {
    vec![constraint; count].join(join)
}

#[track_caller]
fn check_size(text: &str, conjunctions: usize) {
    let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(condition.normal().conjunctions().len(), conjunctions, "{text}");
}

#[track_caller]
fn check_refused(text: &str, expected: TooLarge) {
    assert_eq!(Condition::parse(text), Err(ConditionError::TooLarge(expected)), "{text}");
}

#[test]
fn sixty_four_conjunctions_pass_and_one_more_is_counted() {
    check_size(&repeated("a = 1", 64, " OR "), 64);
    check_refused(&repeated("a = 1", 65, " OR "), TooLarge::Conjunctions { found: 65 });
    // Six factors of two make 64, a seventh 128.
    check_size(&repeated("(a = 1 OR b = 2)", 6, " AND "), 64);
    check_refused(&repeated("(a = 1 OR b = 2)", 7, " AND "), TooLarge::Conjunctions { found: 128 });
    check_refused(
        &format!("NOT ({})", repeated("(a = 1 AND b = 2)", 7, " OR ")),
        TooLarge::Conjunctions { found: 128 },
    );
    assert_eq!(
        TooLarge::Conjunctions { found: 65 }.to_string(),
        "the disjunctive form of the condition has 65 conjunctions, at most 64 are allowed"
    );
}

#[test]
fn thirty_two_constraints_pass_and_one_more_is_counted() {
    check_size(&repeated("a = 1", 32, " AND "), 1);
    check_refused(&repeated("a = 1", 33, " AND "), TooLarge::Constraints { found: 33 });
    // The longest conjunction counts.
    let longest = format!("b = 1 OR {} OR b = 2", repeated("a = 1", 33, " AND "));
    check_refused(&longest, TooLarge::Constraints { found: 33 });
    assert_eq!(
        TooLarge::Constraints { found: 33 }.to_string(),
        "the disjunctive form of the condition has a conjunction of 33 constraints, at most 32 are allowed"
    );
}

#[test]
fn lists_and_ranges_are_one_constraint() {
    let list = (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    check_size(&format!("a IN ({list}) AND b BETWEEN 1 AND 2"), 1);
}

#[test]
fn a_size_beyond_counting_is_refused_at_once() {
    check_refused(&repeated("(a = 1 OR b = 2)", 3_000, " AND "), TooLarge::Conjunctions { found: u64::MAX });
}

#[test]
fn a_product_with_false_is_empty_whatever_its_other_factors() {
    let factors = repeated("(a = 1 OR b = 2)", 3_000, " AND ");
    check_size(&format!("{factors} AND FALSE"), 0);
    check_size(&format!("b = 1 OR {factors} AND (FALSE AND c = 1)"), 1);
    check_size(&format!("NOT (NOT ({factors}) OR TRUE)"), 0);
}

#[test]
fn expressions_made_by_hand_have_the_same_caps() {
    let constraint = Expression::Constraint(Constraint {
        name: Symbol::from("a"),
        casei: false,
        test: Test::Compare(Comparison::Equal, Scalar::Bool(true).into()),
    });
    let condition = Condition::new(Expression::And(vec![constraint; 33]));
    assert_eq!(condition, Err(TooLarge::Constraints { found: 33 }));
    assert_eq!(
        Condition::new(Expression::And(Vec::new())).map(|it| it.normal().to_string()),
        Ok("TRUE".into())
    );
    assert_eq!(
        Condition::new(Expression::Or(Vec::new())).map(|it| it.normal().to_string()),
        Ok("FALSE".into())
    );
    assert_eq!(Condition::always().normal().to_string(), "TRUE");
}

#[test]
fn a_constraint_more_is_asked_by_each_conjunction_and_not_counted() {
    let more = Condition::parse("b = 7").unwrap();
    let Expression::Constraint(constraint) = more.expression() else { panic!("{more:?}") };
    for (text, sizes) in [
        (repeated("a = 1", 32, " AND "), vec![33]),
        (repeated("a = 1", 64, " OR "), vec![2; 64]),
        ("TRUE".to_owned(), vec![1]),
        ("FALSE".to_owned(), vec![]),
    ] {
        let condition = Condition::parse(&text).unwrap().and(constraint.clone());
        let found: Vec<_> =
            condition.normal().conjunctions().iter().map(|conjunction| conjunction.literals.len()).collect();
        assert_eq!(found, sizes, "{text}");
        let both = Expression::And(vec![
            Condition::parse(&text).unwrap().expression().clone(),
            more.expression().clone(),
        ]);
        assert_eq!(*condition.expression(), both, "{text}");
    }
}

#[test]
fn what_it_is_to_hold_is_counted_in_constraints() {
    let count = |text: &str| Condition::parse(text).unwrap().normal().constraints_count();
    for (text, expected) in [
        ("a = 1", 1),
        ("a IS NULL AND b BETWEEN 1 AND 2 AND NOT c LIKE 'x%'", 3),
        ("(a = 1 OR b = 2) AND c = 3", 4),
        ("TRUE", 1),
        ("a = 1 OR TRUE", 2),
        ("FALSE", 0),
    ] {
        assert_eq!(count(text), expected, "{text}");
    }
    assert_eq!(Condition::always().normal().constraints_count(), 1);
    // What is looked for in whole texts costs more than what is compared with their ends.
    for (text, expected) in [
        ("a LIKE 'x%y'", 1),
        ("a LIKE 'x_'", 1),
        ("CASEI(a) LIKE CASEI('%x')", 64),
        ("CASEI(a) = 'x' AND b = 1", 65),
        ("CASEI(a) LIKE '%x_'", 256),
        ("a LIKE '%x%'", 64),
        ("(a = 1 OR b = 2) AND NOT c LIKE '%x%'", 130),
        ("a LIKE '%x_'", 256),
    ] {
        assert_eq!(count(text), expected, "{text}");
    }
    // A name of one byte, and 32 bytes for each value besides its text.
    let text = |bytes: usize| format!("a = '{}'", "x".repeat(bytes));
    assert_eq!([223, 224, 479, 480].map(|bytes| count(&text(bytes))), [1, 2, 2, 3]);
    let list = |values: usize| format!("(a = 1 OR b = 2) AND c IN ({})", vec!["7"; values].join(","));
    assert_eq!([7, 8, 4_000].map(|values| count(&list(values))), [4, 6, 2 * (1 + 501)]);
}
