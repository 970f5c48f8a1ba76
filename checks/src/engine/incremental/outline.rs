//! The violation and its joins, for an engine that finds assignments elsewhere, such as on a device.

use matcher::predicate::index::Key;

pub use super::normal::Matrix;
use super::normal::Normal;
pub use super::plan::Access;
use super::plan::Planners;
use crate::check::Check;

/// What has to be true for a check to be false.
#[derive(Debug)]
pub struct Outline {
    /// Nodes, each behind those in its matrix.
    pub nodes: Vec<Node>,
    /// What is outside all nodes.
    pub root: Matrix,
    /// Indices that nodes look events up in: a set, and what its events are looked up by.
    pub indices: Vec<(usize, Key)>,
}

/// Some event of a set that makes a matrix true.
#[derive(Debug)]
pub struct Node {
    /// Variable that is bound to the event.
    pub variable: usize,
    /// How many variables are bound around it.
    pub depth: usize,
    /// Set of the event.
    pub set: usize,
    /// Depths of the variables around that the matrix depends on, ascending.
    pub free: Vec<usize>,
    /// What has to be true.
    pub matrix: Matrix,
    /// Whether links come from it.
    pub is_linked: bool,
    /// Ways to the events that may make the matrix true. Together they find all of them, some perhaps several times.
    pub ways: Vec<Way>,
}

/// How events are found that may make a matrix true, where the variables that it depends on are bound.
#[derive(Debug)]
pub struct Way {
    /// Leaves without which the matrix is not true, or not by this way; the cheapest first. Each is to be true, or not.
    pub literals: Vec<(usize, bool)>,
    /// Where the events are looked for.
    pub access: Access,
}

impl Outline {
    /// The outline of a check.
    #[must_use]
    pub fn of(check: &Check) -> Self {
        let Normal { nodes: normal, root } = Normal::of(check);
        let mut indices = Vec::new();
        let mut nodes = Vec::new();
        for node in &normal {
            let plans = Planners::new(check, node).plans(node.free(), &mut indices);
            let ways = plans.into_iter().map(|mut plan| {
                let step = plan.steps.pop().expect("a node's own variable is left to bind");
                Way { literals: [plan.literals, step.literals].concat(), access: step.access }
            });
            nodes.push(Node {
                variable: node.variable,
                depth: node.own(),
                set: *node.sets.last().expect("the set of the node's own variable"),
                free: node.free().to_vec(),
                matrix: node.matrix.clone(),
                is_linked: node.is_linked,
                ways: ways.collect(),
            });
        }
        let indices = indices.into_iter().map(|of_set| (of_set.set, of_set.index.key().clone())).collect();
        Self { nodes, root, indices }
    }
}
