//! What a check is going to cost, before it is let in.

use crate::check::{Check, Node};
use crate::engine::incremental;

/// Estimated work, in comparisons of two numbers; a comparison takes some nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The whole formula anew, as `sequential` and `concurrent` evaluate it.
    pub whole: f64,
    /// One event that comes, as `incremental` evaluates it. What is looked up is taken to find a few events, so that this is right for
    /// data that are spread and too low for a single popular key.
    pub change: f64,
}

/// The estimate for sets that hold so many events: `events` is asked with the number of a set.
#[must_use]
pub fn estimate(check: &Check, events: impl Fn(usize) -> f64) -> Estimate {
    Estimate {
        whole: whole(check, &check.root, &events),
        change: incremental::cost_of_change(check, &events),
    }
}

fn whole(check: &Check, node: &Node, events: &impl Fn(usize) -> f64) -> f64 {
    match node {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        Node::Leaf(leaf) => check.leaves[*leaf].predicate.cost() as f64,
        Node::Forall(variable, body) | Node::Exists(variable, body) => {
            events(check.variables[*variable].set) * whole(check, body, events)
        }
        Node::And(parts) | Node::Or(parts) => parts.iter().map(|part| whole(check, part, events)).sum(),
        Node::Implies(premise, conclusion) => {
            whole(check, premise, events) + whole(check, conclusion, events)
        }
        Node::Not(inner) => whole(check, inner, events),
    }
}
