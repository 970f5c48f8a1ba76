//! Expressions of conditions: constraints under `AND`, `OR` and `NOT`, with the three truth values of SQL.

use std::cell::OnceCell;
use std::cmp::Ordering;

use super::like::Pattern;
use super::reading::Reading;
pub use super::residual::Residual;
use super::time::Instant;
pub use super::time::{Date, Timestamp};
use crate::event::{Event, Scalar, Symbol, Value};
use crate::geo::Position;

/// A condition as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// `TRUE` or `FALSE`.
    Constant(bool),
    /// A test of one attribute.
    Constraint(Constraint),
    /// Any other test of an event.
    Residual(Residual),
    /// `NOT`.
    Not(Box<Expression>),
    /// `AND` of any number; of none, it is true.
    And(Vec<Expression>),
    /// `OR` of any number; of none, it is false.
    Or(Vec<Expression>),
}

/// A test of one attribute: the paper's elementary constraint (name, operator, value).
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The attribute's flattened name.
    pub name: Symbol,
    /// `CASEI(name)`: the attribute's text is case-folded before the test.
    pub casei: bool,
    /// The operator and its values.
    pub test: Test,
}

/// An operator and its values.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `= <> < <= > >=`.
    Compare(Comparison, Comparand),
    /// `BETWEEN low AND high`, both included.
    Between(Comparand, Comparand),
    /// `IN (..)`.
    In(Vec<Comparand>),
    /// `LIKE`.
    Like(Pattern),
    /// `IS NULL`.
    IsNull,
}

/// Value that an attribute is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparand {
    /// A number, a text or a truth value.
    Scalar(Scalar),
    /// `DATE('..')`, for texts that are dates.
    Date(Date),
    /// `TIMESTAMP('..')`, for texts that are timestamps.
    Timestamp(Timestamp),
}

impl From<Scalar> for Comparand {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

/// `= <> < <= > >=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The truth values of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds; only this matches.
    True,
    /// It does not hold.
    False,
    /// It cannot be said: the attribute is absent, or the types do not compare.
    Unknown,
}

impl From<bool> for Truth {
    fn from(truth: bool) -> Self {
        if truth { Self::True } else { Self::False }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl Comparison {
    /// Whether two values in this order satisfy it.
    #[must_use]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// Cost of `CASEI`, in plain constraints: at 16 KB of text up to 260 us, shared by all constraints that have it where
/// an engine tests an event.
const FOLDING_COST: usize = 64;

/// Bytes that a value takes besides its text.
const VALUE_BYTES: usize = 32;

impl Expression {
    /// Evaluates the tree over an event (Kleene's logic). The meaning of a condition; engines may be faster,
    /// never different. What depends on a client is unknown.
    #[must_use]
    pub fn truth(&self, event: &Event) -> Truth {
        self.truth_for(event, None)
    }

    /// Evaluates the tree over an event and a client, where that is.
    #[must_use]
    pub fn truth_for(&self, event: &Event, client: Option<&Position>) -> Truth {
        self.truth_by(event, &mut Reading::of_client(client))
    }

    pub(crate) fn truth_by<'a>(&self, event: &'a Event, reading: &mut Reading<'a>) -> Truth {
        match self {
            Self::Constant(truth) => (*truth).into(),
            Self::Constraint(constraint) => reading.truth(constraint, event.value(&constraint.name)),
            Self::Residual(residual) => reading.residual(residual, event),
            Self::Not(inner) => !inner.truth_by(event, reading),
            Self::And(inner) => decide(inner, event, reading, Truth::False, Truth::True),
            Self::Or(inner) => decide(inner, event, reading, Truth::True, Truth::False),
        }
    }
}

/// `AND` and `OR` alike: one operand may decide, an unknown one spoils the rest.
fn decide<'a>(
    operands: &[Expression],
    event: &'a Event,
    reading: &mut Reading<'a>,
    decisive: Truth,
    otherwise: Truth,
) -> Truth {
    let mut result = otherwise;
    for operand in operands {
        let truth = operand.truth_by(event, reading);
        if truth == decisive {
            return decisive;
        }
        if truth == Truth::Unknown {
            result = Truth::Unknown;
        }
    }
    result
}

impl Constraint {
    /// Tests the attribute's value, `None` where it is absent. Over an array it is true when one element
    /// makes it true, and false when none does.
    #[must_use]
    pub fn truth(&self, value: Option<&Value>) -> Truth {
        match (&self.test, value) {
            (Test::IsNull, value) => value.is_none().into(),
            (_, None) => Truth::Unknown,
            (_, Some(Value::Scalar(scalar))) => self.scalar_truth(scalar),
            (_, Some(Value::Array(elements))) => {
                elements.iter().any(|element| self.scalar_truth(element) == Truth::True).into()
            }
        }
    }

    /// Tests the value of an attribute that is there. The value is folded by [`fold_value`] where the constraint has
    /// `CASEI`.
    pub(crate) fn truth_of_folded(&self, value: &Value) -> Truth {
        match (&self.test, value) {
            (Test::IsNull, _) => Truth::False,
            (_, Value::Scalar(scalar)) => self.folded_truth(scalar),
            (_, Value::Array(elements)) => {
                elements.iter().any(|element| self.folded_truth(element) == Truth::True).into()
            }
        }
    }

    fn scalar_truth(&self, scalar: &Scalar) -> Truth {
        let folded = if self.casei { fold_scalar(scalar) } else { None };
        self.folded_truth(folded.as_ref().unwrap_or(scalar))
    }

    fn folded_truth(&self, scalar: &Scalar) -> Truth {
        let seen = Seen::new(scalar);
        match &self.test {
            Test::Compare(comparison, other) => match seen.compare(other) {
                Some(ordering) => comparison.accepts(ordering).into(),
                None => Truth::Unknown,
            },
            Test::Between(low, high) => match (seen.compare(low), seen.compare(high)) {
                (Some(low), Some(high)) => (low.is_ge() && high.is_le()).into(),
                _ => Truth::Unknown,
            },
            Test::In(values) => {
                let mut result = Truth::False;
                for value in values {
                    match seen.compare(value) {
                        Some(Ordering::Equal) => return Truth::True,
                        Some(Ordering::Less | Ordering::Greater) => {}
                        None => result = Truth::Unknown,
                    }
                }
                result
            }
            Test::Like(pattern) => match scalar {
                Scalar::Text(text) => pattern.matches(text.as_str()).into(),
                Scalar::Number(_) | Scalar::Bool(_) => Truth::Unknown,
            },
            Test::IsNull => Truth::False,
        }
    }

    /// Cost of a test at worst, in tests of plain constraints.
    pub(super) fn cost(&self) -> usize {
        let folding = if self.casei { FOLDING_COST } else { 0 };
        let test = match &self.test {
            Test::Like(pattern) => pattern.cost(),
            Test::Compare(..) | Test::Between(..) | Test::In(_) | Test::IsNull => 1,
        };
        test.max(folding)
    }

    /// Bytes that its name and its values take, about.
    pub(super) fn bytes(&self) -> usize {
        let value = |value: &Comparand| match value {
            Comparand::Scalar(Scalar::Text(text)) => VALUE_BYTES + text.as_str().len(),
            Comparand::Timestamp(timestamp) => VALUE_BYTES + timestamp.as_str().len(),
            Comparand::Scalar(Scalar::Number(_) | Scalar::Bool(_)) | Comparand::Date(_) => VALUE_BYTES,
        };
        let values = match &self.test {
            Test::Compare(_, other) => value(other),
            Test::Between(low, high) => value(low) + value(high),
            Test::In(values) => values.iter().map(value).sum(),
            Test::Like(pattern) => VALUE_BYTES + pattern.as_str().len(),
            Test::IsNull => 0,
        };
        self.name.as_str().len() + values
    }
}

/// A value of an event, which is read as a date or as a timestamp at most once, however many of these it is compared with.
pub(crate) struct Seen<'a> {
    scalar: &'a Scalar,
    date: OnceCell<Option<Date>>,
    instant: OnceCell<Option<Instant<'a>>>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(scalar: &'a Scalar) -> Self {
        Self { scalar, date: OnceCell::new(), instant: OnceCell::new() }
    }

    /// Its order to what it is compared with; `None` where the two do not compare.
    pub(crate) fn compare(&self, other: &Comparand) -> Option<Ordering> {
        match (other, self.scalar) {
            (Comparand::Scalar(other), scalar) => compare(scalar, other),
            (Comparand::Date(other), Scalar::Text(text)) => {
                let date = self.date.get_or_init(|| Date::parse(text.as_str()));
                date.map(|date| date.cmp(other))
            }
            (Comparand::Timestamp(other), Scalar::Text(text)) => {
                let instant = self.instant.get_or_init(|| Instant::parse(text.as_str()));
                instant.map(|instant| instant.cmp(&other.instant()))
            }
            (Comparand::Date(_) | Comparand::Timestamp(_), Scalar::Number(_) | Scalar::Bool(_)) => None,
        }
    }
}

/// The order of two values of one type: numbers by size, texts by code point, `false` before `true`; `None`
/// between types.
#[must_use]
pub fn compare(a: &Scalar, b: &Scalar) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Number(a), Scalar::Number(b)) => a.partial_cmp(b),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.as_str().cmp(b.as_str())),
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Unicode's default case folding: what `CASEI` does to a text.
#[must_use]
pub fn fold_case(text: &str) -> String {
    caseless::default_case_fold_str(text)
}

/// A value with its texts folded; `None` where that changes nothing.
pub(crate) fn fold_value(value: &Value) -> Option<Value> {
    let fold = |scalar: &Scalar| fold_scalar(scalar).unwrap_or_else(|| scalar.clone());
    match value {
        Value::Scalar(scalar) => fold_scalar(scalar).map(Value::Scalar),
        Value::Array(elements) => Some(Value::Array(elements.iter().map(fold).collect())),
    }
}

fn fold_scalar(scalar: &Scalar) -> Option<Scalar> {
    match scalar {
        Scalar::Text(text) if !is_folded(text.as_str()) => {
            Some(Scalar::Text(Symbol::new(fold_case(text.as_str()))))
        }
        Scalar::Text(_) | Scalar::Number(_) | Scalar::Bool(_) => None,
    }
}

/// Whether folding would surely change nothing; most texts are small letters of ASCII, and cost nothing then.
fn is_folded(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}
