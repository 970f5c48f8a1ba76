//! Reasons in words for the outcomes of constraints.

use std::fmt::{Display, Formatter};

use crate::condition::expression::{Comparand, Constraint, Seen, Test, Truth, fold_case};
use crate::condition::write::{Written, separated};
use crate::event::{Scalar, Symbol, Value};

/// The most characters of an event's text that a sentence repeats.
const CHARACTERS_MAX: usize = 80;

/// The sentence for a constraint that saw a value, `None` for an absent attribute. It tells what is so, whether or
/// not the constraint stands under a `NOT`.
pub(super) fn of(constraint: &Constraint, value: Option<&Value>) -> String {
    let name = constraint.name.as_str();
    let Some(value) = value else { return format!("there is no attribute {name}") };
    if constraint.test == Test::IsNull {
        return match value {
            Value::Scalar(scalar) => format!("{name} is {}, which is not null", shown(scalar)),
            Value::Array(elements) => format!("{name} is an array of {}, which is not null", elements.len()),
        };
    }
    let test = Tested(&constraint.test);
    match value {
        Value::Scalar(scalar) => of_scalar(constraint, scalar),
        Value::Array(elements) => {
            let found = elements.iter().find(|element| truth(constraint, element) == Truth::True);
            match (found, elements.len()) {
                (Some(element), _) => format!("{name} has {}, which is {test}", seen(constraint, element)),
                (None, 0) => format!("{name} has no elements, so that none of them is {test}"),
                (None, 1) => format!("{name} has 1 element, which is not {test}"),
                (None, count) => format!("{name} has {count} elements, and none of them is {test}"),
            }
        }
    }
}

/// The sentence for what reads several attributes, or none: their values, and what follows from them.
pub(super) fn of_read(read: &[(Symbol, Option<&Value>)], truth: Truth) -> String {
    let values = read.iter().map(|(name, value)| {
        let name = name.as_str();
        match value {
            None => format!("there is no attribute {name}"),
            Some(Value::Scalar(scalar)) => format!("{name} is {}", shown(scalar)),
            Some(Value::Array(elements)) => format!("{name} is an array of {}", elements.len()),
        }
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let outcome = match truth {
        Truth::True => "it is so",
        Truth::False => "it is not so",
        Truth::Unknown => "it cannot be said",
    };
    if values.is_empty() { outcome.to_owned() } else { format!("{values}: {outcome}") }
}

fn of_scalar(constraint: &Constraint, scalar: &Scalar) -> String {
    let (name, test) = (constraint.name.as_str(), Tested(&constraint.test));
    match truth(constraint, scalar) {
        Truth::True => format!("{name} is {}, which is {test}", seen(constraint, scalar)),
        Truth::False => format!("{name} is {}, which is not {test}", seen(constraint, scalar)),
        Truth::Unknown => {
            let others = kinds_apart(&constraint.test, scalar);
            // Whether a text compares with a date depends on how it is written.
            let is = if others.iter().any(|kind| [DATE, TIMESTAMP].contains(kind)) && kind(scalar) == TEXT {
                shown(scalar)
            } else {
                kind(scalar).to_owned()
            };
            format!("{name} is {is}, which does not compare with {}", others.join(" or "))
        }
    }
}

fn truth(constraint: &Constraint, scalar: &Scalar) -> Truth {
    constraint.truth(Some(&Value::Scalar(scalar.clone())))
}

/// The kinds of the test's values with which the value does not compare, each once.
fn kinds_apart(test: &Test, scalar: &Scalar) -> Vec<&'static str> {
    let seen = Seen::new(scalar);
    let apart = |value: &Comparand| seen.compare(value).is_none().then(|| kind_of_comparand(value));
    let kinds: Vec<&'static str> = match test {
        Test::Compare(_, value) => apart(value).into_iter().collect(),
        Test::Between(low, high) => [low, high].into_iter().filter_map(apart).collect(),
        Test::In(values) => values.iter().filter_map(apart).collect(),
        Test::Like(_) => vec![TEXT],
        Test::IsNull => Vec::new(),
    };
    [NUMBER, TEXT, TRUTH, DATE, TIMESTAMP].into_iter().filter(|kind| kinds.contains(kind)).collect()
}

const NUMBER: &str = "a number";
const TEXT: &str = "a text";
const TRUTH: &str = "a truth value";
const DATE: &str = "a date";
const TIMESTAMP: &str = "a timestamp";

fn kind(scalar: &Scalar) -> &'static str {
    match scalar {
        Scalar::Number(_) => NUMBER,
        Scalar::Text(_) => TEXT,
        Scalar::Bool(_) => TRUTH,
    }
}

fn kind_of_comparand(value: &Comparand) -> &'static str {
    match value {
        Comparand::Scalar(scalar) => kind(scalar),
        Comparand::Date(_) => DATE,
        Comparand::Timestamp(_) => TIMESTAMP,
    }
}

/// A value as the test sees it: `CASEI` folds a text first.
fn seen(constraint: &Constraint, scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text(text) if constraint.casei => {
            // No more is shown than this, and one more tells that something is cut.
            let text = text.as_str();
            let end = text.char_indices().nth(CHARACTERS_MAX + 1).map_or(text.len(), |(end, _)| end);
            let folded = Scalar::Text(Symbol::new(fold_case(&text[..end])));
            format!("{} without case", shown(&folded))
        }
        Scalar::Text(_) | Scalar::Number(_) | Scalar::Bool(_) => shown(scalar),
    }
}

/// A value as CQL2 text, a long one cut.
fn shown(scalar: &Scalar) -> String {
    if let Scalar::Text(text) = scalar
        && let Some((end, _)) = text.as_str().char_indices().nth(CHARACTERS_MAX)
    {
        let cut = Scalar::Text(format!("{}…", &text.as_str()[..end]).as_str().into());
        return Written(&cut).to_string();
    }
    Written(scalar).to_string()
}

/// A test as what a value is or is not: `>= 3`, `in (1, 2)`.
struct Tested<'a>(&'a Test);

impl Display for Tested<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Test::Compare(comparison, value) => write!(f, "{comparison} {value}"),
            Test::Between(low, high) => write!(f, "between {low} and {high}"),
            Test::In(values) => {
                f.write_str("in (")?;
                separated(f, ", ", values)?;
                f.write_str(")")
            }
            Test::Like(pattern) => write!(f, "like {}", Written(&Scalar::Text(pattern.as_str().into()))),
            Test::IsNull => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::condition::Condition;
    use crate::condition::expression::Truth;
    use crate::event::{Event, Scalar, Value};
    use crate::explain::ConditionPart;
    use crate::geo::World;

    fn event() -> Event {
        let tags = ["red", "Blue"].map(|tag| Scalar::Text(tag.into())).to_vec();
        Event::at(World::Planar.position(&[0.0, 0.0]).unwrap())
            .with("severity", 2.0)
            .with("kind", "Fire")
            .with("open", true)
            .with("day", "2026-03-01")
            .with("tags", Value::Array(tags))
            .with("lanes", Value::Array(Vec::new()))
            .with("long", "ä".repeat(200).as_str())
    }

    /// One constraint: its text, truth and reason.
    #[track_caller]
    fn check(condition: &str, text: &str, truth: Truth, reason: &str) {
        let condition = Condition::parse(condition).unwrap();
        let part = ConditionPart::of(condition.expression(), None, &event());
        let [constraint] = part.constraints.as_slice() else { panic!("{part:?} has one constraint") };
        assert_eq!((constraint.constraint.as_str(), constraint.reason.as_str()), (text, reason));
        assert_eq!((constraint.truth, part.truth), (truth, truth));
    }

    #[test]
    fn a_reason_says_what_was_seen() {
        use Truth::{False, True, Unknown};
        check("severity >= 3", "severity >= 3", False, "severity is 2, which is not >= 3");
        check("severity < 3", "severity < 3", True, "severity is 2, which is < 3");
        check("lane = 1", "lane = 1", Unknown, "there is no attribute lane");
        check("kind > 1", "kind > 1", Unknown, "kind is a text, which does not compare with a number");
        check(
            "open LIKE 'a%'",
            "open LIKE 'a%'",
            Unknown,
            "open is a truth value, which does not compare with a text",
        );
        check(
            "day < DATE('2026-03-01')",
            "day < DATE('2026-03-01')",
            False,
            "day is '2026-03-01', which is not < DATE('2026-03-01')",
        );
        check(
            "kind IN ('a', DATE('2026-03-01'), TIMESTAMP('2026-03-01T00:00:00Z'))",
            "kind IN ('a', DATE('2026-03-01'), TIMESTAMP('2026-03-01T00:00:00Z'))",
            Unknown,
            "kind is 'Fire', which does not compare with a date or a timestamp",
        );
        check(
            "severity > DATE('2026-03-01')",
            "severity > DATE('2026-03-01')",
            Unknown,
            "severity is a number, which does not compare with a date",
        );
        check("kind LIKE 'f%'", "kind LIKE 'f%'", False, "kind is 'Fire', which is not like 'f%'");
        check(
            "severity BETWEEN 2 AND 4",
            "severity BETWEEN 2 AND 4",
            True,
            "severity is 2, which is between 2 and 4",
        );
        check(
            "kind IN ('a', 'b')",
            "kind IN ('a', 'b')",
            False,
            "kind is 'Fire', which is not in ('a', 'b')",
        );
        check("open = FALSE", "open = FALSE", False, "open is TRUE, which is not = FALSE");
    }

    #[test]
    fn a_not_is_given_with_its_constraint() {
        use Truth::{False, True, Unknown};
        check("NOT severity = 2", "NOT severity = 2", False, "severity is 2, which is = 2");
        check("kind NOT IN ('a')", "kind NOT IN ('a')", True, "kind is 'Fire', which is not in ('a')");
        check("NOT NOT lane = 2", "lane = 2", Unknown, "there is no attribute lane");
        check("lane IS NULL", "lane IS NULL", True, "there is no attribute lane");
        check("lane IS NOT NULL", "lane IS NOT NULL", False, "there is no attribute lane");
        check("severity IS NULL", "severity IS NULL", False, "severity is 2, which is not null");
    }

    #[test]
    fn arrays_are_told_by_their_elements() {
        use Truth::{False, True};
        check("tags = 'red'", "tags = 'red'", True, "tags has 'red', which is = 'red'");
        check("tags = 'blue'", "tags = 'blue'", False, "tags has 2 elements, and none of them is = 'blue'");
        check(
            "CASEI(tags) = CASEI('BLUE')",
            "CASEI(tags) = 'blue'",
            True,
            "tags has 'blue' without case, which is = 'blue'",
        );
        check("lanes > 1", "lanes > 1", False, "lanes has no elements, so that none of them is > 1");
        check("NOT lanes > 1", "NOT lanes > 1", True, "lanes has no elements, so that none of them is > 1");
        check("tags IS NULL", "tags IS NULL", False, "tags is an array of 2, which is not null");
    }

    #[test]
    fn a_long_text_is_cut() {
        let expected = format!("long is '{}…', which is not = 'a'", "ä".repeat(80));
        check("long = 'a'", "long = 'a'", Truth::False, &expected);
    }

    #[test]
    fn what_reads_several_attributes_tells_all_of_them() {
        check(
            "severity > lanes",
            "severity > lanes",
            Truth::False,
            "severity is 2, lanes is an array of 0: it is not so",
        );
        check(
            "NOT severity + 1 = limit",
            "NOT severity + 1 = limit",
            Truth::Unknown,
            "severity is 2, there is no attribute limit: it cannot be said",
        );
        check("LON(event) < 5", "LON(event) < 5", Truth::True, "it is so");
    }
}
