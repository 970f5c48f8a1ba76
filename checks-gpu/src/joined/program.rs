//! The violation's nodes as the device has them.

use bytemuck::Zeroable;
use checks::Check;
use checks::engine::incremental::outline::{Access, Matrix, Node, Outline};
use kernels::checks::CODE;
use kernels::checks_joined::{
    self as k, JOINED_KEYS, JOINED_LEAVES, JOINED_LOOKUPS, JOINED_STACK, JOINED_STEPS,
};
use matcher::condition::expression::Truth;
use matcher::predicate::index::Probe;

use crate::columns::Columns;
use crate::compile::{Unfit, u32_of};
use crate::leaves::Leaves;

/// A check for batches.
pub(crate) struct Program {
    pub(crate) outline: Outline,
    pub(crate) columns: Columns,
    /// The nodes of the outline, and the root.
    pub(crate) nodes: Vec<Compiled>,
    /// What is looked up for each event: an index, and what of the event.
    pub(crate) lookups: Vec<(usize, Probe)>,
    /// Whether links of several quantifiers are joined, which the processor does.
    pub(crate) joins_links: bool,
}

/// A node.
pub(crate) struct Compiled {
    /// Its record for each of the ways to its events.
    pub(crate) ways: Vec<k::Node>,
    /// Its leaves, as the check numbers them.
    pub(crate) leaves: Vec<usize>,
    pub(crate) is_linked: bool,
    /// The node that has its entries around this one's.
    pub(crate) outer: usize,
}

/// What a program is about.
struct Writing<'a> {
    check: &'a Check,
    nodes: &'a [Node],
    compiled: &'a [Compiled],
    /// The node that has the matrix, and how many entries there are from the one that the program runs for to its own.
    node: usize,
    level: usize,
    steps: Vec<k::Step>,
}

impl Program {
    pub(crate) fn new(check: &Check) -> Result<Self, Unfit> {
        let outline = Outline::of(check);
        let root = outline.nodes.len();
        let mut program = Self {
            nodes: Vec::new(),
            columns: Columns::default(),
            lookups: Vec::new(),
            joins_links: false,
            outline,
        };
        let parents = parents(&program.outline);
        for idx in 0..=root {
            let outer = outer(&program.outline, &parents, idx);
            let leaves = leaves(&program.outline, idx);
            let is_linked = program.outline.nodes.get(idx).is_none_or(|node| node.is_linked);
            program.nodes.push(Compiled { ways: Vec::new(), leaves, is_linked, outer });
        }
        for (idx, parent) in parents.into_iter().enumerate() {
            let record = program.record(check, parent, idx)?;
            let ways = match program.outline.nodes.get(idx) {
                None => vec![record],
                Some(_) => program.ways(idx, &record),
            };
            program.nodes[idx].ways = ways;
        }
        let joins_links = program.matrices().any(|matrix| joins_links(&program.outline.nodes, matrix));
        program.joins_links = joins_links;
        Ok(program)
    }

    pub(crate) fn root(&self) -> usize {
        self.outline.nodes.len()
    }

    /// Words of an event's row of keys.
    pub(crate) fn keys_width(&self) -> usize {
        self.lookup_begin(self.lookups.len())
    }

    fn lookup_begin(&self, lookup: usize) -> usize {
        self.outline.indices.len() * (JOINED_KEYS + 1) + lookup * (JOINED_LOOKUPS + 1)
    }

    /// Matrices that links come from.
    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let linked = self.outline.nodes.iter().filter(|node| node.is_linked);
        linked.map(|node| &node.matrix).chain([&self.outline.root])
    }

    /// Nodes whose entries are around those of a node, the nearest first and the root last.
    fn around(&self, idx: usize) -> Vec<usize> {
        let mut around = Vec::new();
        let mut at = idx;
        while at != self.root() {
            at = self.nodes[at].outer;
            around.push(at);
        }
        around
    }

    fn record(&mut self, check: &Check, parent: usize, idx: usize) -> Result<k::Node, Unfit> {
        let mut record = k::Node::zeroed();
        let mut code = Vec::new();
        let leaves = &self.nodes[idx].leaves;
        if leaves.len() > JOINED_LEAVES {
            return Err(Unfit::Nodes);
        }
        for (bit, leaf) in leaves.iter().enumerate() {
            let begin = code.len();
            Leaves::new(check.predicate(*leaf), &mut self.columns, &mut code).compile()?;
            if code.len() > CODE {
                return Err(Unfit::Code);
            }
            record.leaf_begin[bit] = short(begin);
            record.leaf_count[bit] = short(code.len() - begin);
        }
        record.code[..code.len()].copy_from_slice(&code);
        record.leaves = u32_of(leaves.len());

        let around = self.around(idx);
        for (level, node) in around.iter().enumerate() {
            record.around[level] = byte(*node);
            if let Some(outer) = self.outline.nodes.get(*node) {
                record.depths[level] = byte(outer.depth);
                record.variables[level + 1] = byte(outer.variable);
            }
        }
        record.around_count = u32_of(around.len());
        let inner = (0..self.root()).filter(|other| self.nodes[*other].outer == idx);
        for (place, inner) in inner.enumerate() {
            record.inner[place] = byte(inner);
            record.inner_count = u32_of(place + 1);
        }
        record.number = u32_of(idx);
        if let Some(node) = self.outline.nodes.get(idx) {
            record.variables[0] = byte(node.variable);
            record.depth = u32_of(node.depth);
        }
        self.programs(check, parent, idx, &mut record)?;
        Ok(record)
    }

    /// Writes what is true, where it has links inside, and where links around go through it.
    fn programs(&self, check: &Check, parent: usize, idx: usize, record: &mut k::Node) -> Result<(), Unfit> {
        let nodes = &self.outline.nodes;
        let matrix_of = |idx: usize| nodes.get(idx).map_or(&self.outline.root, |node| &node.matrix);
        let steps = Vec::new();
        let mut writing = Writing { check, nodes, compiled: &self.nodes, node: idx, level: 0, steps };
        writing.value(matrix_of(idx));
        record.value_end = u32_of(writing.steps.len());
        if self.nodes[idx].is_linked {
            writing.linked(matrix_of(idx));
        }
        record.linked_end = u32_of(writing.steps.len());
        if self.nodes[idx].is_linked && idx != self.root() {
            (writing.node, writing.level) = (parent, 1);
            let mut parts = Vec::new();
            alternatives_around(matrix_of(parent), idx, &mut parts);
            writing.push(k::STEP_TRUE, 0, true);
            for part in parts {
                writing.value(part);
                writing.push(k::STEP_AND, 0, true);
            }
        }
        record.through_end = u32_of(writing.steps.len());
        if writing.steps.len() > JOINED_STEPS || !fits(&writing.steps) {
            return Err(Unfit::Nodes);
        }
        record.steps[..writing.steps.len()].copy_from_slice(&writing.steps);
        Ok(())
    }

    fn ways(&mut self, idx: usize, record: &k::Node) -> Vec<k::Node> {
        let mut records = Vec::new();
        for way in &self.outline.nodes[idx].ways {
            let mut record = *record;
            for (leaf, holds) in &way.literals {
                let bit = self.nodes[idx].leaves.iter().position(|other| other == leaf);
                let bit = 1_u64 << bit.expect("a node has the leaves of its ways");
                // A leaf that is to be true and false stands in the matrix, too.
                if record.needed & bit == 0 {
                    record.needed |= bit;
                    record.wanted |= if *holds { bit } else { 0 };
                }
            }
            if let Access::Probe { index, from, probe } = &way.access {
                let known = self.lookups.iter().position(|(of, other)| of == index && other == probe);
                let lookup = known.unwrap_or_else(|| {
                    self.lookups.push((*index, probe.clone()));
                    self.lookups.len() - 1
                });
                record.index = u32_of(*index);
                record.from = u32_of(*from);
                record.lookup =
                    u32_of(self.outline.indices.len() * (JOINED_KEYS + 1) + lookup * (JOINED_LOOKUPS + 1));
            }
            records.push(record);
        }
        records
    }
}

/// The node in whose matrix each stands; the root's own is itself.
fn parents(outline: &Outline) -> Vec<usize> {
    let root = outline.nodes.len();
    let mut parents = vec![root; root + 1];
    for (idx, node) in outline.nodes.iter().enumerate() {
        let mut found = Vec::new();
        nodes_of(&node.matrix, &mut found);
        found.into_iter().for_each(|child| parents[child] = idx);
    }
    parents
}

/// Entries of what links come from are around each other as in the formula; the others are with the last variable that they depend on.
fn outer(outline: &Outline, parents: &[usize], idx: usize) -> usize {
    let root = outline.nodes.len();
    let Some(node) = outline.nodes.get(idx) else { return root };
    let mut outer = parents[idx];
    if !node.is_linked {
        while outer != root && node.free.last() != Some(&outline.nodes[outer].depth) {
            outer = parents[outer];
        }
    }
    outer
}

fn nodes_of(matrix: &Matrix, found: &mut Vec<usize>) {
    match matrix {
        Matrix::Leaf { .. } => {}
        Matrix::Some { node, .. } => found.push(*node),
        Matrix::All(parts) | Matrix::Any(parts) => parts.iter().for_each(|part| nodes_of(part, found)),
    }
}

/// Leaves of a node, those by which its ways begin in front. The root's have no variables, and are constants.
fn leaves(outline: &Outline, idx: usize) -> Vec<usize> {
    let Some(node) = outline.nodes.get(idx) else { return Vec::new() };
    let mut all: Vec<usize> =
        node.ways.iter().flat_map(|way| way.literals.iter().map(|(leaf, _)| *leaf)).collect();
    leaves_of(&node.matrix, &mut all);
    let mut leaves = Vec::new();
    for leaf in all {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    leaves
}

fn leaves_of(matrix: &Matrix, found: &mut Vec<usize>) {
    match matrix {
        Matrix::Leaf { leaf, .. } => found.push(*leaf),
        Matrix::Some { .. } => {}
        Matrix::All(parts) | Matrix::Any(parts) => parts.iter().for_each(|part| leaves_of(part, found)),
    }
}

pub(super) fn may_link(nodes: &[Node], matrix: &Matrix) -> bool {
    match matrix {
        Matrix::Leaf { .. } => false,
        Matrix::Some { node, holds } => *holds && nodes[*node].is_linked,
        Matrix::All(parts) | Matrix::Any(parts) => parts.iter().any(|part| may_link(nodes, part)),
    }
}

/// Whether links of several parts are joined.
fn joins_links(nodes: &[Node], matrix: &Matrix) -> bool {
    match matrix {
        Matrix::Leaf { .. } | Matrix::Some { .. } => false,
        Matrix::Any(parts) => parts.iter().any(|part| joins_links(nodes, part)),
        Matrix::All(parts) => {
            parts.iter().filter(|part| may_link(nodes, part)).count() > 1
                || parts.iter().any(|part| joins_links(nodes, part))
        }
    }
}

/// Alternatives in a matrix that have a node in them, from the outside; whether the node is in the matrix.
fn alternatives_around<'a>(matrix: &'a Matrix, node: usize, found: &mut Vec<&'a Matrix>) -> bool {
    match matrix {
        Matrix::Leaf { .. } => false,
        Matrix::Some { node: other, .. } => *other == node,
        Matrix::All(parts) => parts.iter().any(|part| alternatives_around(part, node, found)),
        Matrix::Any(parts) => parts.iter().any(|part| {
            found.push(part);
            let is_in = alternatives_around(part, node, found);
            if !is_in {
                found.pop();
            }
            is_in
        }),
    }
}

impl Writing<'_> {
    fn push(&mut self, op: u8, a: usize, holds: bool) {
        self.steps.push(k::Step { op, a: byte(a), level: byte(self.level), holds: holds.into() });
    }

    /// The states in which a matrix is true.
    fn value(&mut self, matrix: &Matrix) {
        match matrix {
            Matrix::Leaf { leaf, holds } => {
                match self.compiled[self.node].leaves.iter().position(|other| other == leaf) {
                    Some(bit) => self.push(k::STEP_LEAF, bit, *holds),
                    None => {
                        let is = (self.check.predicate(*leaf).truth(&[]) == Truth::True) == *holds;
                        self.push(if is { k::STEP_TRUE } else { k::STEP_FALSE }, 0, true);
                    }
                }
            }
            Matrix::Some { node, holds } => self.some(*node, *holds),
            Matrix::All(parts) => {
                self.push(k::STEP_TRUE, 0, true);
                for part in parts {
                    self.value(part);
                    self.push(k::STEP_AND, 0, true);
                }
            }
            Matrix::Any(parts) => {
                self.push(k::STEP_FALSE, 0, true);
                for part in parts {
                    self.value(part);
                    self.push(k::STEP_OR, 0, true);
                }
            }
        }
    }

    /// The states in which a node is satisfied around the present entry: its own are with one of those around.
    fn some(&mut self, node: usize, holds: bool) {
        let outer = self.compiled[node].outer;
        let (mut at, mut level) = (self.node, self.level);
        while at != outer {
            at = self.compiled[at].outer;
            level += 1;
        }
        let level = byte(level);
        self.steps.push(k::Step { op: k::STEP_SOME, a: byte(node), level, holds: holds.into() });
    }

    /// The states in which a true matrix has links.
    fn linked(&mut self, matrix: &Matrix) {
        self.push(k::STEP_FALSE, 0, true);
        match matrix {
            Matrix::Leaf { .. } => {}
            Matrix::Some { node, .. } => {
                if may_link(self.nodes, matrix) {
                    self.some(*node, true);
                    self.push(k::STEP_OR, 0, true);
                }
            }
            Matrix::All(parts) | Matrix::Any(parts) => {
                for part in parts.iter().filter(|part| may_link(self.nodes, part)) {
                    self.linked(part);
                    if matches!(matrix, Matrix::Any(_)) {
                        self.value(part);
                        self.push(k::STEP_AND, 0, true);
                    }
                    self.push(k::STEP_OR, 0, true);
                }
            }
        }
    }
}

/// Whether no program needs more room on its stack than there is.
fn fits(steps: &[k::Step]) -> bool {
    let mut used = 0_usize;
    steps.iter().all(|step| {
        if step.op == k::STEP_AND || step.op == k::STEP_OR {
            used -= 1;
        } else {
            used += 1;
        }
        // The programs follow one another; each leaves a word.
        used <= JOINED_STACK
    })
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).expect("a formula has few parts")
}

fn short(number: usize) -> u16 {
    u16::try_from(number).expect("code has a bound")
}
