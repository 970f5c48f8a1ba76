//! Formulas as the device has them: cut into c-units, their leaves as code.

use std::collections::VecDeque;

use bytemuck::Zeroable;
use checks::{Check, Node};
use kernels::checks::{self as k, ABSENT, CODE, DEPTH, NODES};

use crate::columns::Columns;
use crate::leaves::Leaves;

/// Why a check cannot go to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A c-unit is larger than the memory for constants has room for.
    #[error("a part between two quantifiers has more than {NODES} parts of its own")]
    Nodes,
    /// The leaves of a c-unit are.
    #[error("the leaves between two quantifiers take more than {CODE} steps")]
    Code,
    /// A leaf needs more room while it is evaluated than a thread has.
    #[error("a leaf has more than {max} intermediate values", max = k::STACK)]
    Stack,
    /// A leaf has a part that only the processor can make sense of.
    #[error("a leaf has a part that a device does not know")]
    Leaf,
}

/// A check for the device.
pub(crate) struct Program {
    /// Units in the order of Algorithm 1: those below a unit come after it.
    pub(crate) units: Vec<Unit>,
    pub(crate) columns: Columns,
}

/// A c-unit: a part of the formula up to its quantifiers.
pub(crate) struct Unit {
    /// What does not change from one evaluation to the next.
    pub(crate) fixed: k::Unit,
    /// Place in the check of each node that is a leaf.
    pub(crate) leaves: Vec<Option<usize>>,
    /// Quantifiers of the unit, each with the unit below it.
    pub(crate) below: Vec<(usize, usize)>,
}

/// A unit on its way: its root, and the variables around it.
struct Waiting<'a> {
    root: &'a Node,
    sets: Vec<usize>,
    blamed: bool,
}

/// Algorithm 1, `Split`.
struct Splitting<'a> {
    check: &'a Check,
    waiting: VecDeque<Waiting<'a>>,
    columns: Columns,
    /// Units that there are, or that wait.
    count: usize,
}

impl Program {
    pub(crate) fn new(check: &Check) -> Result<Self, Unfit> {
        // Only false is looked at of the whole formula.
        let root = Waiting { root: check.root(), sets: Vec::new(), blamed: false };
        let columns = Columns::default();
        let mut splitting = Splitting { check, waiting: VecDeque::from([root]), columns, count: 1 };
        let mut units = Vec::new();
        while let Some(waiting) = splitting.waiting.pop_front() {
            let fixed = k::Unit {
                depth: u32_of(waiting.sets.len()),
                blamed: waiting.blamed.into(),
                number: u32_of(units.len()),
                ..k::Unit::zeroed()
            };
            let mut unit = Unit { fixed, leaves: Vec::new(), below: Vec::new() };
            for (at, set) in waiting.sets.iter().enumerate() {
                unit.fixed.set[at] = u32_of(*set);
            }
            let mut code = Vec::new();
            splitting.parse(&waiting, waiting.root, &mut unit, &mut code)?;
            let Some(room) = unit.fixed.code.get_mut(..code.len()) else { return Err(Unfit::Code) };
            room.copy_from_slice(&code);
            unit.fixed.nodes_count = u32_of(unit.leaves.len());
            units.push(unit);
        }
        Ok(Self { units, columns: splitting.columns })
    }
}

impl<'a> Splitting<'a> {
    /// `ParseCunit`: the nodes of a unit from its root on, up to the quantifiers, below which new units begin. Tells the node's place.
    fn parse(
        &mut self,
        around: &Waiting<'a>,
        node: &'a Node,
        unit: &mut Unit,
        code: &mut Vec<k::Code>,
    ) -> Result<u32, Unfit> {
        let at = unit.leaves.len();
        if at == NODES {
            return Err(Unfit::Nodes);
        }
        unit.leaves.push(None);
        let mut written = k::Node { next: ABSENT, first: ABSENT, ..k::Node::zeroed() };
        match node {
            Node::Leaf(leaf) => {
                unit.leaves[at] = Some(*leaf);
                written.kind = k::LEAF;
                written.first = u32_of(code.len());
                Leaves::new(self.check.predicate(*leaf), &mut self.columns, code).compile()?;
                written.count = u32_of(code.len()) - written.first;
            }
            Node::Forall(variable, body) | Node::Exists(variable, body) => {
                let is_exists = matches!(node, Node::Exists(..));
                written.kind = if is_exists { k::EXISTS } else { k::FORALL };
                written.variable = u32_of(*variable);
                let set = self.check.set_of_variable(*variable);
                written.first = u32_of(set);
                let sets: Vec<_> = around.sets.iter().copied().chain([set]).collect();
                debug_assert!(sets.len() <= DEPTH, "a check has no more variables");
                self.waiting.push_back(Waiting { root: body, sets, blamed: is_exists });
                unit.below.push((at, self.count));
                self.count += 1;
            }
            Node::And(parts) | Node::Or(parts) => {
                written.kind = if matches!(node, Node::And(_)) { k::AND } else { k::OR };
                written.first = self.parse_all(around, &parts.iter().collect::<Vec<_>>(), unit, code)?;
            }
            Node::Implies(premise, conclusion) => {
                written.kind = k::IMPLIES;
                written.first = self.parse_all(around, &[premise, conclusion], unit, code)?;
            }
            Node::Not(inner) => {
                written.kind = k::NOT;
                written.first = self.parse_all(around, &[inner], unit, code)?;
            }
        }
        unit.fixed.nodes[at] = written;
        Ok(u32_of(at))
    }

    /// The children of a node, as a list; tells the first.
    fn parse_all(
        &mut self,
        around: &Waiting<'a>,
        parts: &[&'a Node],
        unit: &mut Unit,
        code: &mut Vec<k::Code>,
    ) -> Result<u32, Unfit> {
        let mut first = ABSENT;
        let mut before = None;
        for part in parts {
            let at = self.parse(around, part, unit, code)?;
            match before {
                None => first = at,
                Some(before) => unit.fixed.nodes[before as usize].next = at,
            }
            before = Some(at);
        }
        Ok(first)
    }
}

/// Converts a count that is small in every check.
pub(crate) fn u32_of(number: usize) -> u32 {
    u32::try_from(number).expect("it is bounded far below")
}
