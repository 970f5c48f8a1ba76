//! Trees over one event as CQL2 text.

use std::fmt::{Display, Formatter, Result, Write};

use super::{separated, write_name, write_text};
use crate::area::Polygon;
use crate::condition::residual::CLIENT;
use crate::geo::Position;
use crate::predicate::node::{Folding, Node, Operand, Place, Sets, Temporal};

/// The name of a variable as an argument: the event or the client.
fn variable(index: usize) -> &'static str {
    if index == CLIENT { "me" } else { "event" }
}

/// The text of a tree over one event and a client.
impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Constant(true) => f.write_str("TRUE"),
            Self::Constant(false) => f.write_str("FALSE"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::And(inner) => separated(f, " AND ", inner.iter().map(Enclosed)),
            Self::Or(inner) => separated(f, " OR ", inner.iter().map(Enclosed)),
            Self::Compare(comparison, operands) => {
                let [left, right] = &**operands;
                write!(f, "{left} {comparison} {right}")
            }
            Self::Between(operands) => {
                let [value, low, high] = &**operands;
                write!(f, "{value} BETWEEN {low} AND {high}")
            }
            Self::In(value, list) => {
                write!(f, "{value} IN (")?;
                separated(f, ", ", list)?;
                f.write_char(')')
            }
            Self::Like(value, pattern) => {
                write!(f, "{value} LIKE ")?;
                write_text(f, pattern.as_str())
            }
            Self::IsNull(value) => write!(f, "{value} IS NULL"),
            Self::Temporal(relation, operands) => {
                let [left, right] = &**operands;
                write!(f, "{}({left}, {right})", name(&Temporal::ALL, *relation))
            }
            Self::Sets(relation, operands) => {
                let [left, right] = &**operands;
                write!(f, "{}({left}, {right})", name(&Sets::ALL, *relation))
            }
            Self::Within(of, polygon) => write!(f, "S_WITHIN({}, {})", variable(*of), Rings(polygon)),
            Self::Same(a, b) => write!(f, "SAME({}, {})", variable(*a), variable(*b)),
        }
    }
}

fn name<T: PartialEq>(all: &[(&'static str, T)], one: T) -> &'static str {
    all.iter().find(|(_, other)| *other == one).map_or("", |(name, _)| name)
}

/// A node in parentheses.
struct Enclosed<'a>(&'a Node);

impl Display for Enclosed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "({})", self.0)
    }
}

/// The text of an operand over one event and a client.
impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Attribute(attribute) => write_name(f, attribute.name.as_str()),
            Self::Folded(Folding::Case, inner) => write!(f, "CASEI({inner})"),
            Self::Folded(Folding::Accents, inner) => write!(f, "ACCENTI({inner})"),
            Self::Negated(inner) => write!(f, "-{}", Factor(inner)),
            Self::Arithmetic(operator, operands) => {
                let [left, right] = &**operands;
                write!(f, "{} {} {}", Factor(left), operator.as_str(), Factor(right))
            }
            Self::Absolute(inner) => write!(f, "ABS({inner})"),
            Self::Distance(places) => {
                let [a, b] = &**places;
                write!(f, "DISTANCE({a}, {b})")
            }
            Self::Elapsed(from, to) => write!(f, "ELAPSED({}, {})", variable(*from), variable(*to)),
            Self::Speed(a, b) => write!(f, "SPEED({}, {})", variable(*a), variable(*b)),
            Self::Longitude(of) => write!(f, "LON({})", variable(*of)),
            Self::Latitude(of) => write!(f, "LAT({})", variable(*of)),
            Self::Interval(ends) => {
                let [from, to] = &**ends;
                write!(f, "INTERVAL({}, {})", Bound(from.as_ref()), Bound(to.as_ref()))
            }
            Self::Array(elements) => {
                f.write_char('(')?;
                separated(f, ", ", elements)?;
                f.write_char(')')
            }
        }
    }
}

/// An operand as a part of arithmetic, in parentheses where it is arithmetic itself.
struct Factor<'a>(&'a Operand);

impl Display for Factor<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if matches!(self.0, Operand::Arithmetic(..) | Operand::Negated(_)) {
            write!(f, "({})", self.0)
        } else {
            self.0.fmt(f)
        }
    }
}

/// An end of an interval.
struct Bound<'a>(Option<&'a Operand>);

impl Display for Bound<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            None => f.write_str("'..'"),
            Some(operand) => operand.fmt(f),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Of(of) => f.write_str(variable(*of)),
            Self::At(position) => write!(f, "POINT({})", Coordinates(position)),
        }
    }
}

struct Coordinates<'a>(&'a Position);

impl Display for Coordinates<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {}", self.0.x(), self.0.y())
    }
}

/// A polygon of one member.
struct Rings<'a>(&'a Polygon);

impl Display for Rings<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("POLYGON(")?;
        for (index, ring) in self.0.rings().concat().iter().enumerate() {
            f.write_str(if index > 0 { ", (" } else { "(" })?;
            separated(f, ", ", ring.iter().map(|[x, y]| format!("{x} {y}")))?;
            f.write_char(')')?;
        }
        f.write_char(')')
    }
}
