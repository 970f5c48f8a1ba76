//! Conditions between two events that are necessary for a predicate to be true, or not to be true: a join looks events up by them.

use super::node::{Attribute, Node, Operand, Place};
use crate::condition::expression::Comparison;
use crate::event::Symbol;

/// A condition between the events of two variables, given by their indices. Bounds are included.
#[derive(Clone, Debug, PartialEq)]
pub enum Join {
    /// Two attributes are equal; where one of them is an array, one of its elements equals the other.
    Equal {
        /// The attribute of one.
        a: (usize, Symbol),
        /// The attribute of the other.
        b: (usize, Symbol),
    },
    /// They are at most so far from each other.
    Within {
        /// One.
        a: usize,
        /// The other.
        b: usize,
        /// The distance.
        metres: f64,
    },
    /// Seconds from one to the other are in a range, whose ends may be infinite.
    Elapsed {
        /// Where the time begins.
        a: usize,
        /// Where it ends.
        b: usize,
        /// The least.
        from_s: f64,
        /// The most.
        to_s: f64,
    },
    /// From one to the other it is at most so fast: at most so far from each other as the speed makes of the time between.
    Speed {
        /// One.
        a: usize,
        /// The other.
        b: usize,
        /// Metres a second.
        most_m_per_s: f64,
    },
}

/// Truths that a node is to have. A condition is necessary for *not true* if it holds wherever the node is false or unknown.
#[derive(Clone, Copy)]
enum Wanted {
    True,
    False,
    NotTrue,
    NotFalse,
}

impl Wanted {
    fn negated(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::NotTrue => Self::NotFalse,
            Self::NotFalse => Self::NotTrue,
        }
    }
}

/// The conditions that hold wherever the node is true.
pub(super) fn of_truth(node: &Node) -> Vec<Join> {
    let mut joins = Vec::new();
    collect(node, Wanted::True, &mut joins);
    joins
}

/// The conditions that hold wherever the node is false or unknown although its variables are bound.
pub(super) fn of_failure(node: &Node) -> Vec<Join> {
    let mut joins = Vec::new();
    collect(node, Wanted::NotTrue, &mut joins);
    joins
}

fn collect(node: &Node, wanted: Wanted, joins: &mut Vec<Join>) {
    match (node, wanted) {
        (Node::Not(inner), _) => collect(inner, wanted.negated(), joins),
        (Node::And(inner), Wanted::True | Wanted::NotFalse)
        | (Node::Or(inner), Wanted::False | Wanted::NotTrue) => {
            inner.iter().for_each(|node| collect(node, wanted, joins));
        }
        (Node::And(inner) | Node::Or(inner), _) => {
            if let [only] = &**inner {
                collect(only, wanted, joins);
            }
        }
        (Node::Compare(comparison, operands), _) => {
            let [left, right] = &**operands;
            let comparison = match wanted {
                Wanted::True | Wanted::NotFalse => *comparison,
                Wanted::False | Wanted::NotTrue => comparison.negated(),
            };
            // An operand that has a value wherever there are events leaves a comparison true or false.
            let certain = match wanted {
                Wanted::True | Wanted::False => true,
                Wanted::NotTrue | Wanted::NotFalse => is_known(left) && is_known(right),
            };
            if certain {
                joins.extend(of_comparison(comparison, left, right));
            }
        }
        (Node::Between(operands), Wanted::True | Wanted::NotFalse) => {
            let [value, low, high] = &**operands;
            let known = operands.iter().all(is_known);
            if matches!(wanted, Wanted::True) || known {
                joins.extend(of_comparison(Comparison::GreaterOrEqual, value, low));
                joins.extend(of_comparison(Comparison::LessOrEqual, value, high));
            }
        }
        (
            Node::Constant(_)
            | Node::Between(_)
            | Node::In(..)
            | Node::Like(..)
            | Node::IsNull(_)
            | Node::Temporal(..)
            | Node::Sets(..)
            | Node::Within(..)
            | Node::Same(..),
            _,
        ) => {}
    }
}

/// Whether it has a value wherever its variables are bound.
fn is_known(operand: &Operand) -> bool {
    if let Operand::Absolute(inner) = operand {
        return is_known(inner);
    }
    matches!(
        operand,
        Operand::Distance(_) | Operand::Elapsed(..) | Operand::Longitude(_) | Operand::Latitude(_)
    ) || operand.number().is_some()
}

fn of_comparison(comparison: Comparison, left: &Operand, right: &Operand) -> Option<Join> {
    if let (
        Comparison::Equal,
        Operand::Attribute(Attribute { variable: a, name: a_name }),
        Operand::Attribute(Attribute { variable: b, name: b_name }),
    ) = (comparison, left, right)
    {
        return (a != b).then(|| Join::Equal { a: (*a, a_name.clone()), b: (*b, b_name.clone()) });
    }
    let (operand, comparison, bound) = match (left.number(), right.number()) {
        (None, Some(bound)) => (left, comparison, bound),
        (Some(bound), None) => (right, comparison.flipped(), bound),
        _ => return None,
    };
    let (from, to) = match comparison {
        Comparison::Equal => (bound, bound),
        Comparison::Less | Comparison::LessOrEqual => (f64::NEG_INFINITY, bound),
        Comparison::Greater | Comparison::GreaterOrEqual => (bound, f64::INFINITY),
        Comparison::NotEqual => return None,
    };
    // From here on an upper bound is what an index has a use for.
    if let Operand::Distance(places) = operand
        && let [Place::Of(a), Place::Of(b)] = **places
    {
        return (a != b && to.is_finite()).then_some(Join::Within { a, b, metres: to });
    }
    if let Operand::Speed(a, b) = *operand {
        return (a != b && to.is_finite()).then_some(Join::Speed { a, b, most_m_per_s: to });
    }
    if let Operand::Elapsed(a, b) = *operand {
        return (a != b).then_some(Join::Elapsed { a, b, from_s: from, to_s: to });
    }
    if let Operand::Absolute(inner) = operand
        && let Operand::Elapsed(a, b) = **inner
    {
        return (a != b && to.is_finite()).then_some(Join::Elapsed { a, b, from_s: -to, to_s: to });
    }
    None
}
