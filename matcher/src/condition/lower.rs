//! Trees over one event to expressions of conditions: constraints wherever an index serves them.

use super::expression::{Comparand, Constraint, Expression, Residual, Test};
use crate::event::Symbol;
use crate::geo::World;
use crate::predicate::node::{Folding, Node, Operand};

/// The expression that means the same as a tree.
pub(super) fn expression(world: World, node: Node) -> Expression {
    let all = |inner: Vec<Node>| inner.into_iter().map(|node| expression(world, node)).collect();
    match node {
        Node::Constant(truth) => Expression::Constant(truth),
        Node::Not(inner) => Expression::Not(Box::new(expression(world, *inner))),
        Node::And(inner) => Expression::And(all(inner)),
        Node::Or(inner) => Expression::Or(all(inner)),
        leaf @ (Node::Compare(..)
        | Node::Between(_)
        | Node::In(..)
        | Node::Like(..)
        | Node::IsNull(_)
        | Node::Temporal(..)
        | Node::Sets(..)
        | Node::Within(..)
        | Node::Same(..)) => match constraint(&leaf) {
            Some(constraint) => Expression::Constraint(constraint),
            None => Residual::expression(world, leaf),
        },
    }
}

/// The constraint that means the same as a leaf, if there is one: an attribute is tested with values.
fn constraint(leaf: &Node) -> Option<Constraint> {
    let ((name, casei), test) = match leaf {
        Node::Compare(comparison, operands) => match &**operands {
            [attribute, Operand::Value(value)] => {
                (tested(attribute)?, Test::Compare(*comparison, value.clone()))
            }
            [Operand::Value(value), attribute] => {
                (tested(attribute)?, Test::Compare(comparison.flipped(), value.clone()))
            }
            _ => return None,
        },
        Node::Between(operands) => {
            let [attribute, low, high] = &**operands;
            (tested(attribute)?, Test::Between(value(low)?, value(high)?))
        }
        Node::In(attribute, list) => {
            (tested(attribute)?, Test::In(list.iter().map(value).collect::<Option<_>>()?))
        }
        Node::Like(attribute, pattern) => (tested(attribute)?, Test::Like(pattern.clone())),
        // Presence has no case.
        Node::IsNull(attribute) => ((tested(attribute)?.0, false), Test::IsNull),
        Node::Constant(_)
        | Node::Not(_)
        | Node::And(_)
        | Node::Or(_)
        | Node::Temporal(..)
        | Node::Sets(..)
        | Node::Within(..)
        | Node::Same(..) => return None,
    };
    Some(Constraint { name, casei, test })
}

/// An attribute, and whether it is under `CASEI`.
fn tested(operand: &Operand) -> Option<(Symbol, bool)> {
    if let Operand::Attribute(attribute) = operand {
        return Some((attribute.name.clone(), false));
    }
    if let Operand::Folded(Folding::Case, inner) = operand
        && let Operand::Attribute(attribute) = &**inner
    {
        return Some((attribute.name.clone(), true));
    }
    None
}

fn value(operand: &Operand) -> Option<Comparand> {
    if let Operand::Value(value) = operand { Some(value.clone()) } else { None }
}
