//! Truth and links by recursion over the formula, as Figures 4 and 5 of GAIN define them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use matcher::condition::expression::Truth;
use matcher::predicate::Subject;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Evaluation;
use crate::check::{Check, Node};
use crate::links::{Binding, Bounds, Link, Overflow};
use crate::sets::{Sets, Slot};

/// A formula over sets as they are. Its quantifiers may be split over threads.
pub(super) struct Recursion<'a> {
    pub(super) check: &'a Check,
    pub(super) sets: &'a Sets,
    pub(super) links_max: usize,
    /// Threads that a quantifier may be split over.
    pub(super) threads: Option<&'a ThreadPool>,
    /// Evaluations of leaves below which a quantifier is not worth splitting.
    pub(super) splitting_from: usize,
}

/// Events by the depth of their variable.
type Frame<'a> = Vec<Option<Subject<'a>>>;

impl<'a> Recursion<'a> {
    /// Evaluates the check, and tells what was not among the links before.
    pub(super) fn evaluate(&self, before: &mut HashSet<Link>) -> Result<Evaluation, Overflow> {
        let mut frame = Vec::new();
        if self.truth(&self.check.root, &mut frame, true) {
            before.clear();
            return Ok(Evaluation::default());
        }
        let links = self.links(&self.check.root, false, &mut frame)?;
        Ok(told(before, links.iter().map(|link| Link::new(link))))
    }

    fn truth(&self, node: &'a Node, frame: &mut Frame<'a>, may_split: bool) -> bool {
        match node {
            Node::Leaf(leaf) => self.leaf(*leaf, frame),
            Node::Forall(variable, body) => !self.is_any(*variable, body, false, frame, may_split),
            Node::Exists(variable, body) => self.is_any(*variable, body, true, frame, may_split),
            Node::And(parts) => parts.iter().all(|part| self.truth(part, frame, may_split)),
            Node::Or(parts) => parts.iter().any(|part| self.truth(part, frame, may_split)),
            Node::Implies(premise, conclusion) => {
                !self.truth(premise, frame, may_split) || self.truth(conclusion, frame, may_split)
            }
            Node::Not(inner) => !self.truth(inner, frame, may_split),
        }
    }

    fn leaf(&self, leaf: usize, frame: &[Option<Subject<'a>>]) -> bool {
        self.check.leaves[leaf].predicate.truth(frame) == Truth::True
    }

    /// Whether the body has a truth for any event of the variable's set.
    fn is_any(
        &self,
        variable: usize,
        body: &'a Node,
        truth: bool,
        frame: &mut Frame<'a>,
        may_split: bool,
    ) -> bool {
        let set = self.check.variables[variable].set;
        let count = self.sets.count(set);
        if let Some(threads) =
            self.threads.filter(|threads| may_split && self.is_worth_splitting(threads, count, body))
        {
            let found = AtomicBool::new(false);
            let look = |range: Range<usize>| {
                let has = self.each(set, range, &mut frame.clone(), |frame, _| {
                    found.load(Ordering::Relaxed) || self.truth(body, frame, false) == truth
                });
                if has {
                    found.store(true, Ordering::Relaxed);
                }
            };
            threads.install(|| parts_of(threads, count).into_par_iter().for_each(look));
            return found.into_inner();
        }
        self.each(set, 0..count, frame, |frame, _| self.truth(body, frame, may_split) == truth)
    }

    /// Calls `visit` with each event of a part of a set on top of the frame, until it returns true; whether it did.
    fn each(
        &self,
        set: usize,
        range: Range<usize>,
        frame: &mut Frame<'a>,
        mut visit: impl FnMut(&mut Frame<'a>, Slot) -> bool,
    ) -> bool {
        self.sets.members(set, range).any(|slot| {
            frame.push(Some(self.sets.subject(slot)));
            let is_found = visit(frame, slot);
            frame.pop();
            is_found
        })
    }

    /// Whether a quantifier has enough branches for all threads, and enough to do in them. All branches of a quantifier have the same
    /// shape, for sets do not depend on variables: they are persistently balanced.
    fn is_worth_splitting(&self, threads: &ThreadPool, count: usize, body: &Node) -> bool {
        count >= 2 * threads.current_num_threads()
            && count.saturating_mul(self.leaves(body)) >= self.splitting_from
    }

    /// About how many leaves of a part are evaluated.
    fn leaves(&self, node: &Node) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Forall(variable, body) | Node::Exists(variable, body) => {
                self.sets.count(self.check.variables[*variable].set).saturating_mul(self.leaves(body))
            }
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().fold(0, |sum, part| sum.saturating_add(self.leaves(part)))
            }
            Node::Implies(premise, conclusion) => {
                self.leaves(premise).saturating_add(self.leaves(conclusion))
            }
            Node::Not(inner) => self.leaves(inner),
        }
    }

    /// The links of a part whose truth is known. They bind the variables of the part alone.
    fn links(
        &self,
        node: &'a Node,
        truth: bool,
        frame: &mut Frame<'a>,
    ) -> Result<Vec<Vec<Binding>>, Overflow> {
        match (node, truth) {
            (Node::Leaf(_), _) | (Node::Forall(..), true) | (Node::Exists(..), false) => Ok(Vec::new()),
            (Node::Forall(variable, body), false) | (Node::Exists(variable, body), true) => {
                self.links_of_all(*variable, body, truth, frame)
            }
            (Node::And(parts), true) | (Node::Or(parts), false) => {
                let mut links = Vec::new();
                for part in parts {
                    links = self.product(links, self.links(part, truth, frame)?)?;
                }
                Ok(links)
            }
            (Node::And(parts), false) | (Node::Or(parts), true) => {
                let mut links = Vec::new();
                for part in parts {
                    if self.truth(part, frame, false) == truth {
                        links.append(&mut self.links(part, truth, frame)?);
                        self.check_bound(links.len())?;
                    }
                }
                Ok(links)
            }
            (Node::Implies(premise, conclusion), false) => {
                let premise = self.links(premise, true, frame)?;
                self.product(premise, self.links(conclusion, false, frame)?)
            }
            (Node::Implies(premise, conclusion), true) => {
                let mut links = Vec::new();
                if !self.truth(premise, frame, false) {
                    links = self.links(premise, false, frame)?;
                }
                if self.truth(conclusion, frame, false) {
                    links.append(&mut self.links(conclusion, true, frame)?);
                }
                self.check_bound(links.len())?;
                Ok(links)
            }
            (Node::Not(inner), truth) => self.links(inner, !truth, frame),
        }
    }

    /// The links of a quantifier, from all branches that have its truth.
    fn links_of_all(
        &self,
        variable: usize,
        body: &'a Node,
        truth: bool,
        frame: &mut Frame<'a>,
    ) -> Result<Vec<Vec<Binding>>, Overflow> {
        let set = self.check.variables[variable].set;
        let count = self.sets.count(set);
        let links_of = |range: Range<usize>, frame: &mut Frame<'a>| {
            let mut links = Vec::new();
            let mut result = Ok(());
            self.each(set, range, frame, |frame, slot| {
                if self.truth(body, frame, false) == truth {
                    let own = Binding { variable, number: self.sets.get(slot).number, slot };
                    result = self.links(body, truth, frame).and_then(|inner| {
                        links.append(&mut self.product(vec![vec![own]], inner)?);
                        self.check_bound(links.len())
                    });
                }
                result.is_err()
            });
            result.map(|()| links)
        };
        // Only the outermost one, as for its truth.
        if let Some(threads) =
            self.threads.filter(|threads| frame.is_empty() && self.is_worth_splitting(threads, count, body))
        {
            let parts = parts_of(threads, count).into_par_iter();
            let links: Result<Vec<_>, _> =
                threads.install(|| parts.map(|range| links_of(range, &mut frame.clone())).collect());
            let links = links?.concat();
            self.check_bound(links.len())?;
            return Ok(links);
        }
        links_of(0..count, frame)
    }

    /// Every union of one link of each; where one has none, the other's.
    fn product(
        &self,
        left: Vec<Vec<Binding>>,
        right: Vec<Vec<Binding>>,
    ) -> Result<Vec<Vec<Binding>>, Overflow> {
        if left.is_empty() {
            return Ok(right);
        }
        if right.is_empty() {
            return Ok(left);
        }
        self.check_bound(left.len().saturating_mul(right.len()))?;
        Ok(left.iter().flat_map(|a| right.iter().map(move |b| [a.as_slice(), b].concat())).collect())
    }

    fn check_bound(&self, links_count: usize) -> Result<(), Overflow> {
        let max = self.links_max;
        if links_count > max { Err(Overflow::Links { max }) } else { Ok(()) }
    }
}

/// Outcome of a violation with these links, told from those that there were before.
pub(super) fn told(before: &mut HashSet<Link>, links: impl Iterator<Item = Link>) -> Evaluation {
    let mut links: HashSet<_> = links.collect();
    if links.is_empty() {
        links.insert(Link::default());
    }
    let told = links.iter().filter(|link| !before.contains(link)).cloned().collect();
    *before = links;
    Evaluation { violated: true, told }
}

/// A share of a set for each thread.
fn parts_of(threads: &ThreadPool, count: usize) -> Vec<Range<usize>> {
    let parts = threads.current_num_threads();
    (0..parts).map(|part| count * part / parts..count * (part + 1) / parts).collect()
}

/// What an engine that evaluates everything anew keeps: the links that it told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) links: HashSet<Link>,
    pub(super) bounds: Bounds,
}

impl Told {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { links: HashSet::new(), bounds }
    }

    pub(super) fn all(&self) -> Vec<Link> {
        self.links.iter().cloned().collect()
    }

    pub(super) fn bytes(&self) -> usize {
        let bindings: usize = self.links.iter().map(|link| size_of_val(link.bindings())).sum();
        self.links.capacity() * (size_of::<Link>() + 1) + bindings
    }
}
