//! The violation as a formula of its own: what has to be true for the check to be false.
//!
//! Negation is pushed down to the leaves, and every quantifier becomes *some event makes the matrix true*, perhaps negated. So there is one
//! kind of intermediate result, an assignment that makes a matrix true, and by the table of links a link is made of satisfied matrices
//! alone: those that are reached without a negation. The others need no links, only a witness. (The successors of PCC call this minimised
//! link generation.)

use crate::check::{Check, Node as Formula};

/// A formula without quantifiers over leaves and quantified nodes.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// A leaf that is true, or is not.
    Leaf {
        /// Its place in [`Check::predicate`].
        leaf: usize,
        /// Whether it is to be true.
        holds: bool,
    },
    /// A node that some event satisfies, or none.
    Some {
        /// The node.
        node: usize,
        /// Whether some event is to satisfy it.
        holds: bool,
    },
    /// All parts are true.
    All(Vec<Matrix>),
    /// Some part is true.
    Any(Vec<Matrix>),
}

/// Some event of a set that makes a matrix true.
#[derive(Debug)]
pub(super) struct Node {
    /// Variable that is bound to the event.
    pub(super) variable: usize,
    /// Depths of the variables of the matrix, ascending; the node's own, the last, is there even if the matrix does not speak of it.
    pub(super) depths: Vec<usize>,
    /// Sets of these variables.
    pub(super) sets: Vec<usize>,
    pub(super) matrix: Matrix,
    /// Whether links come from it.
    pub(super) is_linked: bool,
    /// Nodes in the matrix.
    pub(super) children: Vec<usize>,
}

impl Node {
    /// Depths of the variables that are bound around it and that it depends on.
    pub(super) fn free(&self) -> &[usize] {
        &self.depths[..self.depths.len() - 1]
    }

    /// Depth of its own variable.
    pub(super) fn own(&self) -> usize {
        *self.depths.last().expect("the node's own variable")
    }
}

/// The whole violation.
#[derive(Debug)]
pub(super) struct Normal {
    /// Nodes, each behind those in its matrix.
    pub(super) nodes: Vec<Node>,
    pub(super) root: Matrix,
}

impl Normal {
    pub(super) fn of(check: &Check) -> Self {
        let mut building = Building { check, nodes: Vec::new(), path: Vec::new() };
        let mut root = building.matrix(&check.root, false, true);
        let mut nodes = building.nodes;
        push_down(check, &mut nodes, &mut root, &[]);
        Self { nodes, root }
    }
}

struct Building<'a> {
    check: &'a Check,
    nodes: Vec<Node>,
    /// Variables that are bound here, from the outermost inwards.
    path: Vec<usize>,
}

impl Building<'_> {
    /// The matrix that is true where a part of the formula has a truth.
    fn matrix(&mut self, formula: &Formula, truth: bool, is_linked: bool) -> Matrix {
        match (formula, truth) {
            (Formula::Leaf(leaf), holds) => Matrix::Leaf { leaf: *leaf, holds },
            (Formula::Exists(variable, body), holds) => self.node(*variable, body, true, holds, is_linked),
            (Formula::Forall(variable, body), truth) => self.node(*variable, body, false, !truth, is_linked),
            (Formula::And(parts), true) | (Formula::Or(parts), false) => {
                all(parts.iter().map(|part| self.matrix(part, truth, is_linked)))
            }
            (Formula::And(parts), false) | (Formula::Or(parts), true) => {
                any(parts.iter().map(|part| self.matrix(part, truth, is_linked)))
            }
            (Formula::Implies(premise, conclusion), truth) => {
                let parts =
                    [self.matrix(premise, !truth, is_linked), self.matrix(conclusion, truth, is_linked)];
                if truth { any(parts) } else { all(parts) }
            }
            (Formula::Not(inner), truth) => self.matrix(inner, !truth, is_linked),
        }
    }

    fn node(&mut self, variable: usize, body: &Formula, truth: bool, holds: bool, is_linked: bool) -> Matrix {
        let own = self.path.len();
        self.path.push(variable);
        let is_linked = is_linked && holds;
        let matrix = self.matrix(body, truth, is_linked);
        self.path.pop();
        let mut children = Vec::new();
        nodes_of(&matrix, &mut children);
        let mut depths = vec![own];
        depths_of(self.check, &self.nodes, &matrix, &mut depths);
        depths.sort_unstable();
        depths.dedup();
        let set_of = |&depth: &usize| {
            let variable = if depth == own { variable } else { self.path[depth] };
            self.check.variables[variable].set
        };
        let sets = depths.iter().map(set_of).collect();
        self.nodes.push(Node { variable, depths, sets, matrix, is_linked, children });
        Matrix::Some { node: self.nodes.len() - 1, holds }
    }
}

/// All parts, without an `all` inside.
fn all(parts: impl IntoIterator<Item = Matrix>) -> Matrix {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Matrix::All(mut inner) => flat.append(&mut inner),
            Matrix::Leaf { .. } | Matrix::Some { .. } | Matrix::Any(_) => flat.push(part),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Matrix::All(flat) }
}

/// Any part, without an `any` inside.
fn any(parts: impl IntoIterator<Item = Matrix>) -> Matrix {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Matrix::Any(mut inner) => flat.append(&mut inner),
            Matrix::Leaf { .. } | Matrix::Some { .. } | Matrix::All(_) => flat.push(part),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Matrix::Any(flat) }
}

/// The nodes that stand in a matrix, not those inside them.
fn nodes_of(matrix: &Matrix, found: &mut Vec<usize>) {
    match matrix {
        Matrix::Leaf { .. } => {}
        Matrix::Some { node, .. } => found.push(*node),
        Matrix::All(parts) | Matrix::Any(parts) => parts.iter().for_each(|part| nodes_of(part, found)),
    }
}

/// The depths of the variables that a matrix depends on.
fn depths_of(check: &Check, nodes: &[Node], matrix: &Matrix, found: &mut Vec<usize>) {
    match matrix {
        Matrix::Leaf { leaf, .. } => found.extend(&check.leaves[*leaf].depths),
        Matrix::Some { node, .. } => found.extend(nodes[*node].free()),
        Matrix::All(parts) | Matrix::Any(parts) => {
            parts.iter().for_each(|part| depths_of(check, nodes, part, found));
        }
    }
}

/// Repeats leaves inside the nodes beside which they have to hold: `p and some x: m` is `p and some x: (p and m)`, and so with `none`. So
/// what is not going to count is not looked for, and what joins an outer variable to another joins inside, too.
fn push_down(check: &Check, nodes: &mut [Node], matrix: &mut Matrix, outer: &[Matrix]) {
    match matrix {
        Matrix::Leaf { .. } => {}
        Matrix::Any(parts) => parts.iter_mut().for_each(|part| push_down(check, nodes, part, outer)),
        Matrix::All(parts) => {
            let is_leaf = |part: &&Matrix| matches!(part, Matrix::Leaf { .. });
            let leaves: Vec<_> = outer.iter().chain(parts.iter().filter(is_leaf)).cloned().collect();
            parts.iter_mut().for_each(|part| push_down(check, nodes, part, &leaves));
        }
        Matrix::Some { node, .. } => {
            let idx = *node;
            let depends = |leaf: &&Matrix| match leaf {
                Matrix::Leaf { leaf, .. } => {
                    check.leaves[*leaf].depths.iter().all(|depth| nodes[idx].free().contains(depth))
                }
                Matrix::Some { .. } | Matrix::All(_) | Matrix::Any(_) => false,
            };
            let pushed: Vec<_> = outer.iter().filter(depends).cloned().collect();
            let inner = std::mem::replace(&mut nodes[idx].matrix, Matrix::All(Vec::new()));
            let mut inner = all(pushed.into_iter().chain([inner]));
            push_down(check, nodes, &mut inner, &[]);
            nodes[idx].matrix = inner;
        }
    }
}
