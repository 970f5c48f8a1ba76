//! Predicates as trees: truth-valued nodes over operands, which have values.

use std::ops::ControlFlow;

use super::evaluate::fold;
use crate::area::Polygon;
use crate::condition::expression::{Comparand, Comparison};
use crate::condition::like::Pattern;
use crate::event::{Scalar, Symbol};
use crate::geo::Position;

/// A truth-valued part of a predicate. Its truth is Kleene's: true, false or unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `TRUE` or `FALSE`.
    Constant(bool),
    /// `NOT`.
    Not(Box<Node>),
    /// `AND` of any number.
    And(Vec<Node>),
    /// `OR` of any number.
    Or(Vec<Node>),
    /// `= <> < <= > >=`. Where one side is an array, one of its elements has to satisfy it.
    Compare(Comparison, Box<[Operand; 2]>),
    /// `value BETWEEN low AND high`, in this order.
    Between(Box<[Operand; 3]>),
    /// `value IN (..)`.
    In(Operand, Vec<Operand>),
    /// `LIKE`.
    Like(Operand, Pattern),
    /// `IS NULL`: whether the operand has no value.
    IsNull(Operand),
    /// `T_BEFORE` and its kin: how two moments or intervals lie to each other.
    Temporal(Temporal, Box<[Operand; 2]>),
    /// `A_CONTAINS` and its kin: how two arrays are related as sets.
    Sets(Sets, Box<[Operand; 2]>),
    /// `S_WITHIN(variable, POLYGON(..))`, edges included.
    Within(usize, Box<Polygon>),
    /// `SAME(a, b)`: whether two variables are the very same event.
    Same(usize, usize),
}

/// A part of a predicate that has a value, or none.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value that stands in the text.
    Value(Comparand),
    /// An attribute of a variable's event.
    Attribute(Attribute),
    /// `CASEI` or `ACCENTI`; a value that is no text stays as it is.
    Folded(Folding, Box<Operand>),
    /// Minus one number.
    Negated(Box<Operand>),
    /// An operation on two numbers. A result that is not finite is no value.
    Arithmetic(Operator, Box<[Operand; 2]>),
    /// `ABS`.
    Absolute(Box<Operand>),
    /// `DISTANCE`, in metres.
    Distance(Box<[Place; 2]>),
    /// `ELAPSED(from, to)`: seconds from the time of one to that of the other, below 0 where that is earlier.
    Elapsed(usize, usize),
    /// `SPEED(a, b)`: metres a second from one to the other; no value where no time has passed between them.
    Speed(usize, usize),
    /// `LON`: degrees, or x in metres.
    Longitude(usize),
    /// `LAT`: degrees, or y in metres.
    Latitude(usize),
    /// `INTERVAL(from, to)`, both ends included; `None` is `'..'`, without a bound. Only [`Node::Temporal`] has it.
    Interval(Box<[Option<Operand>; 2]>),
    /// `(.., ..)`. Only [`Node::Sets`] has it.
    Array(Vec<Operand>),
}

/// An attribute of the event of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The index of the variable.
    pub variable: usize,
    /// The attribute's flattened name.
    pub name: Symbol,
}

/// Where `DISTANCE` is measured from or to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The event of a variable.
    Of(usize),
    /// `POINT(..)`.
    At(Position),
}

/// Change of a text before it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// `CASEI`: Unicode's default case folding.
    Case,
    /// `ACCENTI`: without the marks of letters.
    Accents,
}

/// Operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`: what is left by [`IntegerDivide`](Self::IntegerDivide), with the sign of the dividend.
    Remainder,
    /// `div`: the quotient without its fraction.
    IntegerDivide,
    /// `^`
    Power,
}

/// How two moments or intervals lie to each other. The first five are for both, the others for intervals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of CQL2, which defines them by OWL-Time")]
pub enum Temporal {
    After,
    Before,
    Disjoint,
    Equals,
    Intersects,
    Contains,
    During,
    FinishedBy,
    Finishes,
    Meets,
    MetBy,
    OverlappedBy,
    Overlaps,
    StartedBy,
    Starts,
}

/// How two arrays are related as sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// `A_EQUALS`: each has the elements of the other.
    Equals,
    /// `A_CONTAINS`: the first has all elements of the second.
    Contains,
    /// `A_CONTAINEDBY`: the second has all elements of the first.
    ContainedBy,
    /// `A_OVERLAPS`: an element is in both.
    Overlaps,
}

/// Cost of a distance, in plain constraints.
const DISTANCE_COST: usize = 16;
/// Cost of a polygon, in plain constraints.
const POLYGON_COST: usize = 64;
/// Cost of a text that is folded, in plain constraints.
const FOLDING_COST: usize = 64;

impl Operator {
    /// Its result; `None` where that is not finite.
    #[must_use]
    pub fn of(self, left: f64, right: f64) -> Option<f64> {
        let result = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            Self::IntegerDivide => (left / right).trunc(),
            Self::Power => left.powf(right),
        };
        result.is_finite().then_some(result)
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::IntegerDivide => "div",
            Self::Power => "^",
        }
    }
}

impl Temporal {
    /// All of them, each with its name.
    pub const ALL: [(&'static str, Self); 15] = [
        ("T_AFTER", Self::After),
        ("T_BEFORE", Self::Before),
        ("T_DISJOINT", Self::Disjoint),
        ("T_EQUALS", Self::Equals),
        ("T_INTERSECTS", Self::Intersects),
        ("T_CONTAINS", Self::Contains),
        ("T_DURING", Self::During),
        ("T_FINISHEDBY", Self::FinishedBy),
        ("T_FINISHES", Self::Finishes),
        ("T_MEETS", Self::Meets),
        ("T_METBY", Self::MetBy),
        ("T_OVERLAPPEDBY", Self::OverlappedBy),
        ("T_OVERLAPS", Self::Overlaps),
        ("T_STARTEDBY", Self::StartedBy),
        ("T_STARTS", Self::Starts),
    ];

    /// The one of a name, in capitals or not.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, relation)| *relation)
    }

    /// Whether it is for intervals alone, so that it is unknown for a moment.
    #[must_use]
    pub fn is_of_intervals(self) -> bool {
        !matches!(self, Self::After | Self::Before | Self::Disjoint | Self::Equals | Self::Intersects)
    }
}

impl Sets {
    /// All of them, each with its name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("A_EQUALS", Self::Equals),
        ("A_CONTAINS", Self::Contains),
        ("A_CONTAINEDBY", Self::ContainedBy),
        ("A_OVERLAPS", Self::Overlaps),
    ];

    /// The one of a name, in capitals or not.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, relation)| *relation)
    }
}

impl Node {
    /// The operands directly below a leaf; none for a node of nodes.
    #[must_use]
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            Self::Constant(_)
            | Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Within(..)
            | Self::Same(..) => Vec::new(),
            Self::Compare(_, operands) | Self::Temporal(_, operands) | Self::Sets(_, operands) => {
                operands.iter().collect()
            }
            Self::Between(operands) => operands.iter().collect(),
            Self::In(value, list) => std::iter::once(value).chain(list).collect(),
            Self::Like(operand, _) | Self::IsNull(operand) => vec![operand],
        }
    }

    /// The nodes directly below it.
    #[must_use]
    pub fn children(&self) -> &[Node] {
        match self {
            Self::Not(inner) => std::slice::from_ref(inner),
            Self::And(inner) | Self::Or(inner) => inner,
            Self::Constant(_)
            | Self::Compare(..)
            | Self::Between(_)
            | Self::In(..)
            | Self::Like(..)
            | Self::IsNull(_)
            | Self::Temporal(..)
            | Self::Sets(..)
            | Self::Within(..)
            | Self::Same(..) => &[],
        }
    }

    /// Calls `visit` with the index of each variable that it reads, as often as it does, until `visit` breaks.
    pub fn visit_variables(&self, visit: &mut impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Self::Within(variable, _) = self {
            visit(*variable)?;
        }
        if let Self::Same(a, b) = self {
            visit(*a)?;
            visit(*b)?;
        }
        self.children().iter().try_for_each(|child| child.visit_variables(visit))?;
        self.operands().into_iter().try_for_each(|operand| operand.visit_variables(visit))
    }

    /// Cost of its truth at worst, in tests of plain constraints.
    #[must_use]
    pub fn cost(&self) -> usize {
        let own = match self {
            Self::Constant(_) | Self::Not(_) | Self::And(_) | Self::Or(_) => 0,
            Self::Like(_, pattern) => pattern.cost(),
            Self::Within(..) => POLYGON_COST,
            Self::Compare(..)
            | Self::Between(_)
            | Self::In(..)
            | Self::IsNull(_)
            | Self::Temporal(..)
            | Self::Sets(..)
            | Self::Same(..) => 1,
        };
        let below = self.children().iter().map(Self::cost).sum::<usize>();
        own + below + self.operands().into_iter().map(Operand::cost).sum::<usize>()
    }
}

impl Operand {
    /// An operation on two numbers: worked out at once where both stand in the text and there is a result.
    #[must_use]
    pub fn arithmetic(operator: Operator, left: Self, right: Self) -> Self {
        let result = match (left.number(), right.number()) {
            (Some(left), Some(right)) => operator.of(left, right),
            _ => None,
        };
        match result {
            Some(number) => Scalar::Number(number).into(),
            None => Self::Arithmetic(operator, Box::new([left, right])),
        }
    }

    /// Minus an operand.
    #[must_use]
    pub fn negated(inner: Self) -> Self {
        match inner.number() {
            Some(number) => Scalar::Number(-number).into(),
            None => Self::Negated(Box::new(inner)),
        }
    }

    /// An operand without its sign.
    #[must_use]
    pub fn absolute(inner: Self) -> Self {
        match inner.number() {
            Some(number) => Scalar::Number(number.abs()).into(),
            None => Self::Absolute(Box::new(inner)),
        }
    }

    /// A folded attribute or text, a text at once; `None` of anything else.
    #[must_use]
    pub fn folded(folding: Folding, inner: Self) -> Option<Self> {
        if let Self::Value(Comparand::Scalar(Scalar::Text(text))) = &inner {
            let folded = fold(folding, text.as_str().into());
            return Some(Scalar::Text(Symbol::new(&*folded)).into());
        }
        matches!(inner, Self::Attribute(_) | Self::Folded(..)).then(|| Self::Folded(folding, Box::new(inner)))
    }

    /// An interval between two ends; `None` for one from a date to a timestamp or the other way round.
    #[must_use]
    pub fn interval(from: Option<Self>, to: Option<Self>) -> Option<Self> {
        if let (Some(Self::Value(from)), Some(Self::Value(to))) = (&from, &to)
            && std::mem::discriminant(from) != std::mem::discriminant(to)
        {
            return None;
        }
        Some(Self::Interval(Box::new([from, to])))
    }

    /// Whether it may be a moment: a date, a timestamp, or an attribute.
    #[must_use]
    pub fn is_moment(&self) -> bool {
        matches!(self, Self::Attribute(_) | Self::Value(Comparand::Date(_) | Comparand::Timestamp(_)))
    }

    /// A number that stands in the text.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        if let Self::Value(Comparand::Scalar(Scalar::Number(number))) = self { Some(*number) } else { None }
    }

    /// The operands directly below it.
    #[must_use]
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            Self::Folded(_, inner) | Self::Negated(inner) | Self::Absolute(inner) => vec![inner],
            Self::Arithmetic(_, inner) => inner.iter().collect(),
            Self::Interval(ends) => ends.iter().flatten().collect(),
            Self::Array(elements) => elements.iter().collect(),
            Self::Value(_)
            | Self::Attribute(_)
            | Self::Distance(_)
            | Self::Elapsed(..)
            | Self::Speed(..)
            | Self::Longitude(_)
            | Self::Latitude(_) => Vec::new(),
        }
    }

    /// Calls `visit` with the index of each variable that it reads, as often as it does, until `visit` breaks.
    pub fn visit_variables(&self, visit: &mut impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Self::Attribute(Attribute { variable, .. })
            | Self::Longitude(variable)
            | Self::Latitude(variable) => visit(*variable)?,
            Self::Elapsed(a, b) | Self::Speed(a, b) => {
                visit(*a)?;
                visit(*b)?;
            }
            Self::Distance(places) => {
                for place in &**places {
                    if let Place::Of(variable) = place {
                        visit(*variable)?;
                    }
                }
            }
            Self::Value(_)
            | Self::Folded(..)
            | Self::Negated(_)
            | Self::Arithmetic(..)
            | Self::Absolute(_)
            | Self::Interval(_)
            | Self::Array(_) => {}
        }
        self.operands().into_iter().try_for_each(|operand| operand.visit_variables(visit))
    }

    /// Cost of its value at worst, in tests of plain constraints.
    #[must_use]
    pub fn cost(&self) -> usize {
        let own = match self {
            Self::Value(_) => 0,
            Self::Folded(..) => FOLDING_COST,
            Self::Distance(_) | Self::Speed(..) => DISTANCE_COST,
            Self::Attribute(_)
            | Self::Negated(_)
            | Self::Arithmetic(..)
            | Self::Absolute(_)
            | Self::Elapsed(..)
            | Self::Longitude(_)
            | Self::Latitude(_)
            | Self::Interval(_)
            | Self::Array(_) => 1,
        };
        own + self.operands().into_iter().map(Self::cost).sum::<usize>()
    }
}

impl From<Scalar> for Operand {
    fn from(scalar: Scalar) -> Self {
        Self::Value(Comparand::Scalar(scalar))
    }
}
