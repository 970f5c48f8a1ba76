//! Links that an evaluation adds, from the results that changed.
//!
//! Every link has one derivation: variables are bound once in a formula, so that what a link binds says which parts it comes from. So
//! what is added to the links of a part is added to the whole, joined with the links of the other parts, and no set of links is kept.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::normal::Matrix;
use super::search::{Frame, View, When};
use super::table::Held;
use crate::check::VARIABLES_MAX;
use crate::links::{Binding, Link, Overflow};

/// Collects what is added.
pub(super) struct Telling<'a> {
    view: View<'a>,
    /// Bindings of the quantifiers around.
    bindings: Vec<Binding>,
    added: Vec<Vec<Binding>>,
    gone: usize,
    links_max: usize,
}

impl<'a> Telling<'a> {
    pub(super) fn new(view: View<'a>, links_max: usize) -> Self {
        Self { view, bindings: Vec::new(), added: Vec::new(), gone: 0, links_max }
    }

    /// Tells what the whole adds; whether it is true now.
    pub(super) fn root(&mut self, root: &'a Matrix, was: bool) -> bool {
        let mut frame = Frame::new(self.view.check);
        let is = self.view.value(root, &frame, When::Now);
        self.change(root, &mut frame, was, is, true);
        is
    }

    /// The links that are new, and how many went.
    pub(super) fn finish(self) -> Result<(Vec<Link>, usize), Overflow> {
        if self.added.len() > self.links_max {
            return Err(Overflow::Links { max: self.links_max });
        }
        Ok((self.added.iter().map(|bindings| Link::new(bindings)).collect(), self.gone))
    }

    /// A matrix under the bindings around it, which was and is true or not. With `stands_alone`, one without links counts as one link,
    /// that of the bindings around it.
    fn change(&mut self, matrix: &'a Matrix, frame: &mut Frame<'a>, was: bool, is: bool, stands_alone: bool) {
        let had = was && self.is_linked(matrix, frame, When::Before);
        let has = is && self.is_linked(matrix, frame, When::Now);
        if had && has {
            self.difference(matrix, frame);
            return;
        }
        if had {
            self.gone += self.count(matrix, frame, When::Before);
        } else if was && stands_alone && (has || !is) {
            self.gone += 1;
        }
        if has {
            self.tell(&[matrix], frame, When::Now);
        } else if is && stands_alone && (had || !was) {
            self.add();
        }
    }

    fn add(&mut self) {
        // One more than the bound says that it was passed.
        if self.added.len() <= self.links_max {
            self.added.push(self.bindings.clone());
        }
    }

    /// Whether a true matrix has links.
    fn is_linked(&self, matrix: &Matrix, frame: &Frame<'_>, when: When) -> bool {
        match matrix {
            Matrix::Leaf { .. } | Matrix::Some { holds: false, .. } => false,
            Matrix::Some { node, holds: true } => self.view.nodes[*node].is_linked,
            Matrix::All(parts) => parts.iter().any(|part| self.is_linked(part, frame, when)),
            Matrix::Any(parts) => parts.iter().any(|part| {
                self.may_link(part) && self.view.value(part, frame, when) && self.is_linked(part, frame, when)
            }),
        }
    }

    /// Whether a matrix may have links.
    fn may_link(&self, matrix: &Matrix) -> bool {
        match matrix {
            Matrix::Leaf { .. } => false,
            Matrix::Some { node, holds } => *holds && self.view.nodes[*node].is_linked,
            Matrix::All(parts) | Matrix::Any(parts) => parts.iter().any(|part| self.may_link(part)),
        }
    }

    /// How many links a true matrix has.
    fn count(&self, matrix: &'a Matrix, frame: &mut Frame<'a>, when: When) -> usize {
        match matrix {
            Matrix::Leaf { .. } => 0,
            Matrix::Some { node: idx, holds } => {
                let node = &self.view.nodes[*idx];
                if !holds || !node.is_linked {
                    return 0;
                }
                let results = self.results(*idx, frame, when);
                let count_of = |own: Binding| {
                    frame.bind(node.own(), own.slot, self.view.sets);
                    self.count(&node.matrix, frame, when).max(1)
                };
                results.into_iter().map(count_of).fold(0, usize::saturating_add)
            }
            Matrix::All(parts) => {
                let linked =
                    parts.iter().map(|part| self.count(part, frame, when)).filter(|count| *count > 0);
                linked.reduce(usize::saturating_mul).unwrap_or(0)
            }
            Matrix::Any(parts) => parts
                .iter()
                .map(|part| {
                    let counts = self.may_link(part) && self.view.value(part, frame, when);
                    if counts { self.count(part, frame, when) } else { 0 }
                })
                .fold(0, usize::saturating_add),
        }
    }

    /// Events that a node has results with, under the bindings in the frame.
    fn results(&self, node: usize, frame: &Frame<'_>, when: When) -> Vec<Binding> {
        let table = &self.view.tables[node];
        let mut key = [0; VARIABLES_MAX];
        let group = table.group(frame.key(self.view.nodes[node].free(), &mut key));
        let results = group.map_or(&[][..], |group| &group.results);
        let counts = |held: Held| match when {
            When::Before => held.was,
            When::Now => held.is,
        };
        let counting = results.iter().filter(|&&result| counts(table.result(result)));
        counting.map(|&result| self.binding(node, result)).collect()
    }

    /// What a result binds a node's own variable to.
    fn binding(&self, node: usize, result: u32) -> Binding {
        let slot = *self.view.tables[node].slots(result).last().expect("the node's own variable");
        let number = self.view.sets.get(slot).number;
        Binding { variable: self.view.nodes[node].variable, number, slot }
    }

    /// Adds all links of true matrices joined, each that has none left out.
    fn tell(&mut self, matrices: &[&'a Matrix], frame: &mut Frame<'a>, when: When) {
        if self.added.len() > self.links_max {
            return;
        }
        let Some((first, others)) = matrices.split_first() else { return self.add() };
        match first {
            _ if !self.is_linked(first, frame, when) => self.tell(others, frame, when),
            Matrix::Leaf { .. } => {}
            Matrix::Some { node: idx, .. } => {
                let node = &self.view.nodes[*idx];
                let all: Vec<_> = std::iter::once(&node.matrix).chain(others.iter().copied()).collect();
                // One of the others may bind a variable of the same depth.
                let outside = frame.at(node.own());
                for own in self.results(*idx, frame, when) {
                    frame.bind(node.own(), own.slot, self.view.sets);
                    self.bindings.push(own);
                    self.tell(&all, frame, when);
                    self.bindings.pop();
                }
                frame.restore(node.own(), outside);
            }
            Matrix::All(parts) => {
                let all: Vec<_> = parts.iter().chain(others.iter().copied()).collect();
                self.tell(&all, frame, when);
            }
            Matrix::Any(parts) => {
                for part in parts {
                    let counts = self.may_link(part) && self.view.value(part, frame, when);
                    if counts && self.is_linked(part, frame, when) {
                        let all: Vec<_> = std::iter::once(part).chain(others.iter().copied()).collect();
                        self.tell(&all, frame, when);
                    }
                }
            }
        }
    }

    /// Tells by how much the links of a matrix differ that was true with links and is.
    fn difference(&mut self, matrix: &'a Matrix, frame: &mut Frame<'a>) {
        match matrix {
            Matrix::Leaf { .. } | Matrix::Some { holds: false, .. } => {}
            Matrix::Some { node, holds: true } => self.difference_of_node(*node, frame),
            Matrix::Any(parts) => {
                for part in parts {
                    if !self.may_link(part) {
                        continue;
                    }
                    let [was, is] = [When::Before, When::Now].map(|when| self.view.value(part, frame, when));
                    self.change(part, frame, was, is, false);
                }
            }
            Matrix::All(parts) => {
                let linked = |when, frame: &Frame<'_>| -> Vec<&'a Matrix> {
                    parts.iter().filter(|part| self.is_linked(part, frame, when)).collect()
                };
                let (before, now) = (linked(When::Before, frame), linked(When::Now, frame));
                if before.len() != now.len() || before.iter().zip(&now).any(|(a, b)| !std::ptr::eq(*a, *b)) {
                    // Every link binds other variables than before.
                    self.gone += self.count(matrix, frame, When::Before);
                    self.tell(&[matrix], frame, When::Now);
                } else if let [only] = now[..] {
                    self.difference(only, frame);
                } else {
                    self.difference_of_product(&now, frame);
                }
            }
        }
    }

    fn difference_of_node(&mut self, idx: usize, frame: &mut Frame<'a>) {
        let View { nodes, tables, sets, .. } = self.view;
        let node = &nodes[idx];
        let mut key = [0; VARIABLES_MAX];
        let Some(group) = tables[idx].group(frame.key(node.free(), &mut key)) else { return };
        let outside = frame.at(node.own());
        for &result in &group.touched {
            let held = tables[idx].result(result);
            if held.was != held.is || held.is_dirty {
                let own = self.binding(idx, result);
                frame.bind(node.own(), own.slot, sets);
                self.bindings.push(own);
                self.change(&node.matrix, frame, held.was, held.is, true);
                self.bindings.pop();
            }
        }
        frame.restore(node.own(), outside);
    }

    /// Tells what is new in the links of several matrices joined, all of which had links and have.
    fn difference_of_product(&mut self, parts: &[&'a Matrix], frame: &mut Frame<'a>) {
        let mut factors = Vec::new();
        for part in parts {
            let mut new = Telling::new(self.view, self.links_max);
            new.difference(part, frame);
            let mut all = Telling::new(self.view, self.links_max);
            all.tell(&[part], frame, When::Now);
            let added: HashSet<_> = new.added.iter().collect();
            let kept: Vec<_> = all.added.iter().filter(|link| !added.contains(link)).cloned().collect();
            factors.push(Factor { gone: new.gone, added: new.added, kept, all: all.added });
        }
        let product = |count: fn(&Factor) -> usize| factors.iter().map(count).fold(1, usize::saturating_mul);
        self.gone += product(|factor| factor.kept.len() + factor.gone) - product(|factor| factor.kept.len());
        for place in 0..factors.len() {
            let lists = factors.iter().enumerate().map(|(idx, factor)| match idx.cmp(&place) {
                Ordering::Less => &factor.kept,
                Ordering::Equal => &factor.added,
                Ordering::Greater => &factor.all,
            });
            let lists: Vec<_> = lists.collect();
            self.add_product(&lists);
        }
    }

    fn add_product(&mut self, lists: &[&Vec<Vec<Binding>>]) {
        let Some((first, others)) = lists.split_first() else { return self.add() };
        if others.iter().any(|list| list.is_empty()) {
            return;
        }
        for link in *first {
            if self.added.len() > self.links_max {
                return;
            }
            let length = self.bindings.len();
            self.bindings.extend(link);
            self.add_product(others);
            self.bindings.truncate(length);
        }
    }
}

/// Links of a part that is joined with others.
struct Factor {
    gone: usize,
    added: Vec<Vec<Binding>>,
    /// Links that were there before.
    kept: Vec<Vec<Binding>>,
    all: Vec<Vec<Binding>>,
}
