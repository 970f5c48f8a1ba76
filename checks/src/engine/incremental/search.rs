//! Searches for assignments that make a node's matrix true.

use matcher::condition::expression::Truth;
use matcher::predicate::Subject;

use super::normal::{Matrix, Node};
use super::plan::{Access, Literal, OfSet, Plan};
use super::table::{Group, Table};
use crate::check::{Check, VARIABLES_MAX};
use crate::links::Overflow;
use crate::sets::{Sets, Slot};

/// What a matrix is evaluated over.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) check: &'a Check,
    pub(super) nodes: &'a [Node],
    pub(super) sets: &'a Sets,
    pub(super) tables: &'a [Table],
}

/// Events by the depth of their variables.
pub(super) struct Frame<'a> {
    pub(super) subjects: Vec<Option<Subject<'a>>>,
    pub(super) slots: Vec<Slot>,
}

/// At which evaluation something is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Before,
    Now,
}

/// What a search goes on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// One is enough.
    Found,
    Stop,
}

impl<'a> Frame<'a> {
    pub(super) fn new(check: &Check) -> Self {
        let deepest = check.variables.iter().map(|variable| variable.depth + 1).max().unwrap_or(0);
        Self { subjects: vec![None; deepest], slots: vec![0; deepest] }
    }

    pub(super) fn bind(&mut self, depth: usize, slot: Slot, sets: &'a Sets) {
        self.subjects[depth] = Some(sets.subject(slot));
        self.slots[depth] = slot;
    }

    /// What a depth is bound to, for [`Frame::restore`].
    pub(super) fn at(&self, depth: usize) -> (Option<Subject<'a>>, Slot) {
        (self.subjects[depth], self.slots[depth])
    }

    pub(super) fn restore(&mut self, depth: usize, (subject, slot): (Option<Subject<'a>>, Slot)) {
        self.subjects[depth] = subject;
        self.slots[depth] = slot;
    }

    pub(super) fn bind_all(&mut self, depths: &[usize], slots: &[Slot], sets: &'a Sets) {
        for (&depth, &slot) in depths.iter().zip(slots) {
            self.bind(depth, slot, sets);
        }
    }

    /// Slots of some variables.
    pub(super) fn key<'k>(&self, depths: &[usize], key: &'k mut [Slot; VARIABLES_MAX]) -> &'k [Slot] {
        for (place, &depth) in key.iter_mut().zip(depths) {
            *place = self.slots[depth];
        }
        &key[..depths.len()]
    }
}

impl<'a> View<'a> {
    pub(super) fn holds(self, (leaf, holds): Literal, frame: &Frame<'_>) -> bool {
        (self.check.leaves[leaf].predicate.truth(&frame.subjects) == Truth::True) == holds
    }

    pub(super) fn value(self, matrix: &Matrix, frame: &Frame<'_>, when: When) -> bool {
        match matrix {
            Matrix::Leaf { leaf, holds } => self.holds((*leaf, *holds), frame),
            Matrix::Some { node, holds } => {
                let mut key = [0; VARIABLES_MAX];
                let group = self.tables[*node].group(frame.key(self.nodes[*node].free(), &mut key));
                let is = group.is_some_and(|group| match when {
                    When::Before => group.was(),
                    When::Now => group.is(),
                });
                is == *holds
            }
            Matrix::All(parts) => parts.iter().all(|part| self.value(part, frame, when)),
            Matrix::Any(parts) => parts.iter().any(|part| self.value(part, frame, when)),
        }
    }

    /// Whether the sets still hold the events of some of a node's variables.
    pub(super) fn is_alive_at(self, node: &Node, depths: &[usize], slots: &[Slot]) -> bool {
        let set_of =
            |depth: &usize| node.depths.iter().position(|other| other == depth).map(|place| node.sets[place]);
        depths
            .iter()
            .zip(slots)
            .all(|(depth, &slot)| set_of(depth).is_some_and(|set| self.sets.holds(set, slot)))
    }
}

/// A search for results of one node.
pub(super) struct Search<'a, 't> {
    pub(super) view: View<'a>,
    pub(super) indices: &'a [OfSet],
    pub(super) node: &'a Node,
    pub(super) table: &'t Table,
    pub(super) plan: &'a Plan,
    pub(super) rest: &'a Matrix,
    /// The event that came, and the depth that it is bound at: variables further out are bound to others, since it was bound to them
    /// before.
    pub(super) came: Option<(usize, Slot)>,
    /// Results that are there may be true no more.
    pub(super) finds_false: bool,
    pub(super) results_max: usize,
}

impl<'a> Search<'a, '_> {
    /// Appends the slots of what the plan finds: those that are true, and behind them those that are true no more.
    pub(super) fn run(
        &self,
        frame: &mut Frame<'a>,
        found: &mut Vec<Slot>,
        lost: &mut Vec<u32>,
    ) -> Result<(), Overflow> {
        if !self.plan.literals.iter().all(|literal| self.view.holds(*literal, frame)) {
            return Ok(());
        }
        match self.step(0, frame, found, lost) {
            Flow::Next | Flow::Found => Ok(()),
            Flow::Stop => Err(Overflow::Results { max: self.results_max }),
        }
    }

    fn step(&self, at: usize, frame: &mut Frame<'a>, found: &mut Vec<Slot>, lost: &mut Vec<u32>) -> Flow {
        if at == self.plan.ready && !self.node.is_linked && !self.finds_false {
            let mut key = [0; VARIABLES_MAX];
            let group = self.table.group(frame.key(self.node.free(), &mut key));
            if group.is_some_and(Group::is) {
                return Flow::Next;
            }
        }
        let Some(step) = self.plan.steps.get(at) else { return self.visit(frame, found, lost) };
        let sets = self.view.sets;
        let mut keys = Vec::new();
        let probed = match &step.access {
            Access::Scan => None,
            Access::Probe { index, from, probe } => {
                let index = &self.indices[*index].index;
                let other = frame.subjects[*from].as_ref().expect("a plan looks up what is bound");
                index.look_up(probe, other, &mut keys).then_some(index)
            }
        };
        let mut bind = |slot: Slot| {
            if self.came.is_some_and(|(depth, came)| step.depth < depth && slot == came) {
                return Flow::Next;
            }
            frame.bind(step.depth, slot, sets);
            if !step.literals.iter().all(|literal| self.view.holds(*literal, frame)) {
                return Flow::Next;
            }
            let flow = self.step(at + 1, frame, found, lost);
            // Only the node's own variable needs no second one.
            if flow == Flow::Found && step.depth != self.node.own() { Flow::Next } else { flow }
        };
        let ends = |flow: &Flow| *flow != Flow::Next;
        let flow = match probed {
            Some(index) => keys.into_iter().flat_map(|key| index.bucket(key)).map(&mut bind).find(ends),
            None => sets.members(step.set, 0..sets.count(step.set)).rev().map(&mut bind).find(ends),
        };
        if flow == Some(Flow::Stop) { Flow::Stop } else { Flow::Next }
    }

    fn visit(&self, frame: &Frame<'a>, found: &mut Vec<Slot>, lost: &mut Vec<u32>) -> Flow {
        let mut slots = [0; VARIABLES_MAX];
        let slots = frame.key(&self.node.depths, &mut slots);
        if !self.view.value(self.rest, frame, When::Now) {
            lost.extend(self.finds_false.then(|| self.table.find(slots)).flatten());
            return Flow::Next;
        }
        found.extend_from_slice(slots);
        if found.len() > self.results_max.saturating_mul(self.node.depths.len()) {
            return Flow::Stop;
        }
        if self.node.is_linked || self.finds_false { Flow::Next } else { Flow::Found }
    }
}
