//! Constraints as they are written: formulas, and the sets of events that they speak of.

use matcher::area::Area;

/// A constraint in first-order logic over sets of events.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// CQL2 text over the variables that are bound around it. Unknown counts as false.
    Leaf(String),
    /// Every event of a set makes the inner formula true.
    Forall(Quantified),
    /// Some event of a set makes the inner formula true.
    Exists(Quantified),
    /// All parts are true; of none, it is true.
    And(Vec<Formula>),
    /// Some part is true; of none, it is false.
    Or(Vec<Formula>),
    /// The second is true where the first is.
    Implies(Box<Formula>, Box<Formula>),
    /// The inner formula is false.
    Not(Box<Formula>),
}

/// A variable, the set that it goes through, and the formula that is about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantified {
    /// Name of the variable, bound once in a formula.
    pub variable: String,
    /// Name of the set.
    pub set: String,
    /// The formula in which the variable is bound.
    pub that: Box<Formula>,
}

impl Formula {
    /// A leaf.
    #[must_use]
    pub fn leaf(text: impl Into<String>) -> Self {
        Self::Leaf(text.into())
    }

    /// `forall variable in set: that`.
    #[must_use]
    pub fn forall(variable: &str, set: &str, that: Self) -> Self {
        Self::Forall(Quantified::new(variable, set, that))
    }

    /// `exists variable in set: that`.
    #[must_use]
    pub fn exists(variable: &str, set: &str, that: Self) -> Self {
        Self::Exists(Quantified::new(variable, set, that))
    }

    /// `premise implies conclusion`.
    #[must_use]
    pub fn implies(premise: Self, conclusion: Self) -> Self {
        Self::Implies(Box::new(premise), Box::new(conclusion))
    }

    /// `not inner`.
    #[must_use]
    pub fn negated(inner: Self) -> Self {
        Self::Not(Box::new(inner))
    }
}

impl Quantified {
    fn new(variable: &str, set: &str, that: Formula) -> Self {
        Self { variable: variable.to_owned(), set: set.to_owned(), that: Box::new(that) }
    }
}

/// A set of recent events: which of them it takes, and for how long it holds each.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// CQL2 text that an event has to satisfy; `None` takes every event.
    pub condition: Option<String>,
    /// Area that holds the event's place; `None` is everywhere. An area that follows a client is refused.
    pub area: Option<Area>,
    /// Seconds that an event stays, counted in whole milliseconds, the last one included.
    pub for_s: f64,
}

impl Context {
    /// A set that takes every event.
    #[must_use]
    pub fn of_all(name: &str, for_s: f64) -> Self {
        Self { name: name.to_owned(), condition: None, area: None, for_s }
    }

    /// The set of those events that satisfy a condition.
    #[must_use]
    pub fn when(self, condition: impl Into<String>) -> Self {
        Self { condition: Some(condition.into()), ..self }
    }
}

/// What drives the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The arrival of events.
    #[default]
    Arrival,
    /// The events' own times; now is the newest time seen.
    Event,
}

/// A check as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The sets that the formula speaks of.
    pub contexts: Vec<Context>,
    /// What has to hold.
    pub formula: Formula,
    /// What drives the sets.
    pub clock: Clock,
}
