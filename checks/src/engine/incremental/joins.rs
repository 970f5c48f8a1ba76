//! What a leaf says of two events that an index can look up.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operands that an index does not know say nothing, whatever they are"
)]

use matcher::World;
use matcher::condition::expression::Comparison;
use matcher::event::Symbol;
use matcher::geo::Radius;
use matcher::predicate::node::{Attribute, Node, Operand, Operator};
use matcher::predicate::{Join as Necessary, Predicate};

use super::index::{Key, Probe, Term};

/// A necessary condition between the events of two variables, by their depths.
#[derive(Clone, Debug)]
pub(super) enum Join {
    /// Attributes that are equal.
    Equal { a: (usize, Symbol), b: (usize, Symbol) },
    /// Terms whose differences are each within a range: the second's less the first's.
    Near { a: usize, b: usize, ranges: Vec<Range> },
}

/// A range of the difference of two terms.
#[derive(Clone, Debug)]
pub(super) struct Range {
    a: Term,
    b: Term,
    from: f64,
    to: f64,
}

/// How a variable's events are found from another's.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) key: Key,
    pub(super) probe: Probe,
    /// The lower the better.
    pub(super) rank: usize,
}

impl Join {
    /// How events of the variable at depth `to` are found from the one at depth `from`; `None` where the join is not about these.
    pub(super) fn lookup(&self, from: usize, to: usize) -> Option<Lookup> {
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

/// The joins of leaves that have to hold together, each as it is or as what is not true. `apart_ms` is how far the times of two events
/// can be from each other, by their depths.
pub(super) fn of_leaves<'a>(
    world: World,
    leaves: impl Iterator<Item = (&'a Predicate, bool)>,
    apart_ms: impl Fn(usize, usize) -> f64,
) -> Vec<Join> {
    let mut joins = Vec::new();
    for (predicate, holds) in leaves {
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

fn of_necessary(world: World, join: Necessary, apart_ms: impl Fn(usize, usize) -> f64) -> Option<Join> {
    match join {
        Necessary::Equal { a, b } => Some(Join::Equal { a, b }),
        Necessary::Within { a, b, metres } => within(world, a, b, metres),
        Necessary::Speed { a, b, most_m_per_s } => {
            // A little more for the rounding of the quotient.
            within(world, a, b, most_m_per_s * apart_ms(a, b) / 1_000.0 * (1.0 + 1e-9))
        }
        Necessary::Elapsed { a, b, from_s, to_s } => {
            let apart_ms = apart_ms(a, b);
            let (from, to) = ((from_s * 1_000.0).max(-apart_ms), (to_s * 1_000.0).min(apart_ms));
            // Half of the time between the ends of a set is not worth an index.
            let is_narrow = to - from < apart_ms;
            is_narrow.then(|| Join::Near {
                a,
                b,
                ranges: vec![Range { a: Term::Time, b: Term::Time, from, to }],
            })
        }
    }
}

fn within(world: World, a: usize, b: usize, metres: f64) -> Option<Join> {
    let reach = Radius::new(world, metres).ok()?.chord();
    let axes = match world {
        // Half of the globe is not worth an index.
        World::Geodetic if reach > 1.0 => return None,
        World::Geodetic => 3,
        World::Planar => 2,
    };
    let axis = |axis| Range { a: Term::Point(axis), b: Term::Point(axis), from: -reach, to: reach };
    Some(Join::Near { a, b, ranges: (0..axes).map(axis).collect() })
}

/// Difference of two terms and its range.
type Difference = (usize, usize, Range);

/// At most so many axes of a grid: each doubles the cells that are looked up.
const AXES_MAX: usize = 2;

/// Differences between the same two variables become one grid.
fn together(differences: Vec<Difference>) -> Vec<Join> {
    let mut joins: Vec<(usize, usize, Vec<Range>)> = Vec::new();
    for (a, b, range) in differences {
        match joins.iter_mut().find(|join| (join.0, join.1) == (a, b)) {
            Some((_, _, ranges)) if ranges.len() < AXES_MAX => ranges.push(range),
            Some(_) => {}
            None => joins.push((a, b, vec![range])),
        }
    }
    joins.into_iter().map(|(a, b, ranges)| Join::Near { a, b, ranges }).collect()
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
    if let (Some((b, b_term)), Some((a, a_term))) = (term(left), term(right))
        && a != b
    {
        found.push((a, b, Range { a: a_term, b: b_term, from, to }));
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

/// The variable and the term of an operand that is one.
fn term(operand: &Operand) -> Option<(usize, Term)> {
    match operand {
        Operand::Attribute(Attribute { variable, name }) => Some((*variable, Term::Attribute(name.clone()))),
        Operand::Longitude(variable) => Some((*variable, Term::Longitude)),
        Operand::Latitude(variable) => Some((*variable, Term::Latitude)),
        _ => None,
    }
}
