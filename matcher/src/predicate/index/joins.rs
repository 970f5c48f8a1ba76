//! What a predicate says of two events that an index can look up.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operands that an index does not know say nothing, whatever they are"
)]

use super::{Coordinate, Key, Probe};
use crate::condition::expression::Comparison;
use crate::event::Symbol;
use crate::geo::{Radius, World};
use crate::predicate::node::{Attribute, Node, Operand, Operator};
use crate::predicate::{Join, Predicate};

/// A necessary condition between the events of two variables that an index can look up.
#[derive(Clone, Debug)]
pub enum IndexJoin {
    /// Attributes that are equal.
    Equal {
        /// A variable and its attribute.
        a: (usize, Symbol),
        /// Another one and its attribute.
        b: (usize, Symbol),
    },
    /// Coordinates whose differences are each within a range: the second's less the first's.
    Near {
        /// The first variable.
        a: usize,
        /// The second.
        b: usize,
        /// The ranges.
        ranges: Vec<Range>,
    },
}

/// A range of the difference of two coordinates.
#[derive(Clone, Debug)]
pub struct Range {
    a: Coordinate,
    b: Coordinate,
    from: f64,
    to: f64,
}

/// How a variable's events are found from another's.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// What they have to be indexed by.
    pub key: Key,
    /// What is looked up.
    pub probe: Probe,
    /// The lower the better.
    pub rank: usize,
}

impl IndexJoin {
    /// How events of the variable `to` are found from one of the variable `from`; `None` where the join is not about these.
    #[must_use]
    pub fn lookup(&self, from: usize, to: usize) -> Option<Lookup> {
        match self {
            Self::Equal { a, b } => {
                let (mine, other) = if (a.0, b.0) == (to, from) {
                    (a, b)
                } else if (b.0, a.0) == (to, from) {
                    (b, a)
                } else {
                    return None;
                };
                let (key, probe) = (Key::Attribute(mine.1.clone()), Probe::Attribute(other.1.clone()));
                Some(Lookup { key, probe, rank: 0 })
            }
            Self::Near { a, b, ranges } => {
                let is_forward = (*a, *b) == (from, to);
                if !is_forward && (*b, *a) != (from, to) {
                    return None;
                }
                let axis = |range: &Range| {
                    // Where the difference has to be nothing, any cell will do.
                    let width = if range.to > range.from { range.to - range.from } else { 1.0 };
                    if is_forward {
                        ((range.b.clone(), width), (range.a.clone(), range.from, range.to))
                    } else {
                        ((range.a.clone(), width), (range.b.clone(), -range.to, -range.from))
                    }
                };
                let (axes, ranges): (Vec<_>, Vec<_>) = ranges.iter().map(axis).unzip();
                let rank = 4 - axes.len().min(3);
                Some(Lookup { key: Key::Cells(axes), probe: Probe::Ranges(ranges), rank })
            }
        }
    }
}

/// The joins of predicates that have to hold together, each as it is or as what is not true. `apart_ms` is how far the times of two
/// variables' events can be from each other.
pub fn of_predicates<'a>(
    world: World,
    predicates: impl Iterator<Item = (&'a Predicate, bool)>,
    apart_ms: impl Fn(usize, usize) -> f64,
) -> Vec<IndexJoin> {
    let mut joins = Vec::new();
    for (predicate, holds) in predicates {
        let necessary = if holds { predicate.necessary() } else { predicate.necessary_for_failure() };
        joins.extend(necessary.into_iter().filter_map(|join| of_necessary(world, join, &apart_ms)));
        if holds {
            let mut differences = Vec::new();
            of_node(predicate.tree(), &mut differences);
            joins.append(&mut together(differences));
        }
    }
    joins
}

fn of_necessary(world: World, join: Join, apart_ms: impl Fn(usize, usize) -> f64) -> Option<IndexJoin> {
    match join {
        Join::Equal { a, b } => Some(IndexJoin::Equal { a, b }),
        Join::Within { a, b, metres } => within(world, a, b, metres),
        Join::Speed { a, b, most_m_per_s } => {
            // A little more for the rounding of the quotient.
            within(world, a, b, most_m_per_s * apart_ms(a, b) / 1_000.0 * (1.0 + 1e-9))
        }
        Join::Elapsed { a, b, from_s, to_s } => {
            let apart_ms = apart_ms(a, b);
            let (from, to) = ((from_s * 1_000.0).max(-apart_ms), (to_s * 1_000.0).min(apart_ms));
            // Half of the time between the ends of a set is not worth an index.
            let is_narrow = to - from < apart_ms;
            is_narrow.then(|| IndexJoin::Near {
                a,
                b,
                ranges: vec![Range { a: Coordinate::Time, b: Coordinate::Time, from, to }],
            })
        }
    }
}

fn within(world: World, a: usize, b: usize, metres: f64) -> Option<IndexJoin> {
    let reach = Radius::new(world, metres).ok()?.chord();
    let axes = match world {
        // Half of the globe is not worth an index.
        World::Geodetic if reach > 1.0 => return None,
        World::Geodetic => 3,
        World::Planar => 2,
    };
    let axis =
        |axis| Range { a: Coordinate::Point(axis), b: Coordinate::Point(axis), from: -reach, to: reach };
    Some(IndexJoin::Near { a, b, ranges: (0..axes).map(axis).collect() })
}

/// Difference of two coordinates and its range.
type Difference = (usize, usize, Range);

/// At most so many axes of a grid: each doubles the cells that are looked up.
const AXES_MAX: usize = 2;

/// Differences between the same two variables become one grid.
fn together(differences: Vec<Difference>) -> Vec<IndexJoin> {
    let mut joins: Vec<(usize, usize, Vec<Range>)> = Vec::new();
    for (a, b, range) in differences {
        match joins.iter_mut().find(|join| (join.0, join.1) == (a, b)) {
            Some((_, _, ranges)) if ranges.len() < AXES_MAX => ranges.push(range),
            Some(_) => {}
            None => joins.push((a, b, vec![range])),
        }
    }
    joins.into_iter().map(|(a, b, ranges)| IndexJoin::Near { a, b, ranges }).collect()
}

/// Differences that are bounded wherever a node is true: `ABS(a.x - b.x) <= 5`, `(LON(a) - LON(b)) ^ 2 + (LAT(a) - LAT(b)) ^ 2 <= 0.01`.
fn of_node(node: &Node, found: &mut Vec<Difference>) {
    match node {
        Node::And(parts) => parts.iter().for_each(|part| of_node(part, found)),
        Node::Compare(comparison, operands) => {
            let [left, right] = &**operands;
            match comparison {
                Comparison::Less | Comparison::LessOrEqual => of_bound(left, right.number(), found),
                Comparison::Greater | Comparison::GreaterOrEqual => of_bound(right, left.number(), found),
                Comparison::Equal | Comparison::NotEqual => {}
            }
        }
        Node::Between(operands) => {
            let [value, low, high] = &**operands;
            if let (Some(low), Some(high)) = (low.number(), high.number()) {
                of_difference(value, low, high, found);
            }
        }
        Node::Constant(_)
        | Node::Not(_)
        | Node::Or(_)
        | Node::In(..)
        | Node::Like(..)
        | Node::IsNull(_)
        | Node::Temporal(..)
        | Node::Sets(..)
        | Node::Within(..)
        | Node::Same(..) => {}
    }
}

/// Differences in an operand that is at most a bound.
fn of_bound(operand: &Operand, bound: Option<f64>, found: &mut Vec<Difference>) {
    let Some(bound) = bound.filter(|bound| *bound >= 0.0) else { return };
    if let Some(inner) = square(operand) {
        of_bound_of_size(inner, bound.sqrt() * (1.0 + 1e-9), found);
        return;
    }
    match operand {
        Operand::Absolute(inner) => of_bound_of_size(inner, bound, found),
        Operand::Arithmetic(Operator::Add, operands) if operands.iter().all(is_never_negative) => {
            operands.iter().for_each(|operand| of_bound(operand, Some(bound), found));
        }
        _ => {}
    }
}

/// Differences in an operand whose size is at most a bound.
fn of_bound_of_size(operand: &Operand, bound: f64, found: &mut Vec<Difference>) {
    of_difference(operand, -bound, bound, found);
}

fn of_difference(operand: &Operand, from: f64, to: f64, found: &mut Vec<Difference>) {
    let Operand::Arithmetic(Operator::Subtract, operands) = operand else { return };
    let [left, right] = &**operands;
    if let (Some((b, b_coordinate)), Some((a, a_coordinate))) = (coordinate(left), coordinate(right))
        && a != b
    {
        found.push((a, b, Range { a: a_coordinate, b: b_coordinate, from, to }));
    }
}

/// What a square is the square of.
fn square(operand: &Operand) -> Option<&Operand> {
    let Operand::Arithmetic(operator, operands) = operand else { return None };
    let [left, right] = &**operands;
    let is_square = match operator {
        Operator::Multiply => left == right,
        Operator::Power => right.number() == Some(2.0),
        Operator::Add
        | Operator::Subtract
        | Operator::Divide
        | Operator::Remainder
        | Operator::IntegerDivide => false,
    };
    is_square.then_some(left)
}

fn is_never_negative(operand: &Operand) -> bool {
    match operand {
        Operand::Absolute(_) | Operand::Distance(_) => true,
        Operand::Arithmetic(Operator::Add, operands) => operands.iter().all(is_never_negative),
        _ => square(operand).is_some() || operand.number().is_some_and(|number| number >= 0.0),
    }
}

/// The variable and the coordinate of an operand that is one.
fn coordinate(operand: &Operand) -> Option<(usize, Coordinate)> {
    match operand {
        Operand::Attribute(Attribute { variable, name }) => {
            Some((*variable, Coordinate::Attribute(name.clone())))
        }
        Operand::Longitude(variable) => Some((*variable, Coordinate::Longitude)),
        Operand::Latitude(variable) => Some((*variable, Coordinate::Latitude)),
        _ => None,
    }
}
