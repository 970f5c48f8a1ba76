//! What: conditions of subscriptions, written as CQL2 text. The broker's `docs/semantics.md` has their meaning.

use std::{fmt, ops};

use serde_json::Value;

/// A condition on the attributes of events. [`Display`](fmt::Display) writes its CQL2 text.
///
/// ```
/// use nearcast_client::attr;
/// let condition = attr("type").eq("accident").and(attr("severity").ge(2).or(!attr("lanes").is_null()));
/// assert_eq!(condition.to_string(), "type = 'accident' AND (severity >= 2 OR NOT lanes IS NULL)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Condition {
    text: String,
    shape: Shape,
}

/// Outermost form of a condition, which decides whether it needs parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Constraint,
    And,
    Or,
    Not,
}

impl Condition {
    /// True where both are.
    pub fn and(self, other: Self) -> Self {
        let text = format!("{} AND {}", self.within(&[Shape::Or]), other.within(&[Shape::Or]));
        Self { text, shape: Shape::And }
    }

    /// True where one of them is.
    pub fn or(self, other: Self) -> Self {
        Self { text: format!("{self} OR {other}"), shape: Shape::Or }
    }

    /// The text as a part of something in which these shapes need parentheses.
    fn within(&self, loose: &[Shape]) -> String {
        if loose.contains(&self.shape) { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `!condition` is true where the condition is false. What is unknown, such as a comparison with an absent attribute, stays unknown
/// and does not match.
impl ops::Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        Self { text: format!("NOT {}", self.within(&[Shape::And, Shape::Or, Shape::Not])), shape: Shape::Not }
    }
}

/// As [`Condition::and`].
impl ops::BitAnd for Condition {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.and(other)
    }
}

/// As [`Condition::or`].
impl ops::BitOr for Condition {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

/// The attribute of this name, as it is after flattening: `road.name` is the member `name` of the object `road`.
pub fn attr(name: impl AsRef<str>) -> Attribute {
    Attribute(quoted(name.as_ref()))
}

/// An attribute, which a condition holds against something. Made by [`attr`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Attribute(String);

impl Attribute {
    /// `=`
    pub fn eq(self, value: impl Into<Literal>) -> Condition {
        self.constraint("=", &value.into().0)
    }

    /// `<>`
    pub fn ne(self, value: impl Into<Literal>) -> Condition {
        self.constraint("<>", &value.into().0)
    }

    /// `<`
    pub fn lt(self, value: impl Into<Literal>) -> Condition {
        self.constraint("<", &value.into().0)
    }

    /// `<=`
    pub fn le(self, value: impl Into<Literal>) -> Condition {
        self.constraint("<=", &value.into().0)
    }

    /// `>`
    pub fn gt(self, value: impl Into<Literal>) -> Condition {
        self.constraint(">", &value.into().0)
    }

    /// `>=`
    pub fn ge(self, value: impl Into<Literal>) -> Condition {
        self.constraint(">=", &value.into().0)
    }

    /// The attribute is between `low` and `high`, both included.
    pub fn between(self, low: impl Into<Literal>, high: impl Into<Literal>) -> Condition {
        self.constraint("BETWEEN", &format!("{} AND {}", low.into().0, high.into().0))
    }

    /// The attribute is one of these values, of which the broker wants at least one.
    pub fn is_in<V: Into<Literal>>(self, values: impl IntoIterator<Item = V>) -> Condition {
        self.constraint("IN", &list(values.into_iter().map(|value| value.into().0)))
    }

    /// The whole text fits: `%` is any number of characters, `_` exactly one, and `\` takes the next one literally.
    pub fn like(self, pattern: impl AsRef<str>) -> Condition {
        self.constraint("LIKE", &text(pattern.as_ref()))
    }

    /// There is no such attribute.
    pub fn is_null(self) -> Condition {
        self.constraint("IS", "NULL")
    }

    /// There is such an attribute.
    pub fn is_not_null(self) -> Condition {
        self.constraint("IS", "NOT NULL")
    }

    /// The attribute, to be compared without regard to case.
    pub fn casei(self) -> Caseless {
        Caseless(Self(format!("CASEI({})", self.0)))
    }

    fn constraint(self, operator: &str, right: &str) -> Condition {
        Condition { text: format!("{} {operator} {right}", self.0), shape: Shape::Constraint }
    }
}

/// An attribute's text without regard to case, by Unicode's case folding. Made by [`Attribute::casei`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Caseless(Attribute);

impl Caseless {
    /// `=`
    pub fn eq(self, text: impl AsRef<str>) -> Condition {
        self.0.constraint("=", &folded(text.as_ref()))
    }

    /// `<>`
    pub fn ne(self, text: impl AsRef<str>) -> Condition {
        self.0.constraint("<>", &folded(text.as_ref()))
    }

    /// The attribute is one of these texts without regard to case. The broker wants at least one text.
    pub fn is_in<T: AsRef<str>>(self, texts: impl IntoIterator<Item = T>) -> Condition {
        self.0.constraint("IN", &list(texts.into_iter().map(|text| folded(text.as_ref()))))
    }

    /// As [`Attribute::like`].
    pub fn like(self, pattern: impl AsRef<str>) -> Condition {
        self.0.constraint("LIKE", &folded(pattern.as_ref()))
    }
}

/// A condition in CQL2, as text or as JSON. Made of a [`Condition`], a text or a JSON value.
#[derive(Clone, Debug, PartialEq)]
pub struct Cql2(pub(crate) Value);

impl From<Condition> for Cql2 {
    fn from(condition: Condition) -> Self {
        Self(condition.to_string().into())
    }
}

impl From<&str> for Cql2 {
    fn from(cql2_text: &str) -> Self {
        Self(cql2_text.into())
    }
}

impl From<String> for Cql2 {
    fn from(cql2_text: String) -> Self {
        Self(cql2_text.into())
    }
}

impl From<Value> for Cql2 {
    fn from(cql2_json: Value) -> Self {
        Self(cql2_json)
    }
}

/// Value that an attribute is compared with: a text, a number or a truth value. The broker refuses numbers that are not
/// finite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal(String);

impl From<&str> for Literal {
    fn from(value: &str) -> Self {
        Self(text(value))
    }
}

impl From<String> for Literal {
    fn from(value: String) -> Self {
        Self(text(&value))
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        Self(if value { "TRUE" } else { "FALSE" }.to_owned())
    }
}

impl From<f64> for Literal {
    fn from(value: f64) -> Self {
        // What JSON cannot write stands there as a name, which the broker refuses and shows.
        Self(
            serde_json::Number::from_f64(value)
                .map_or_else(|| value.to_string(), |number| number.to_string()),
        )
    }
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl From<$number> for Literal {
            fn from(value: $number) -> Self {
                Self(value.to_string())
            }
        }
    )*};
}
whole!(i8, i16, i32, i64, u8, u16, u32, u64);

const KEYWORDS: [&str; 11] =
    ["and", "or", "not", "between", "in", "like", "is", "null", "true", "false", "casei"];

fn quoted(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && !KEYWORDS.contains(&name.to_ascii_lowercase().as_str());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A backslash before a quote would escape it. `U&'..'` has a spelling for backslashes, too.
fn text(value: &str) -> String {
    if value.ends_with('\\') || value.contains("\\'") {
        return format!("U&'{}'", value.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", value.replace('\'', "''"))
}

fn folded(value: &str) -> String {
    format!("CASEI({})", text(value))
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("({})", values.collect::<Vec<_>>().join(", "))
}
