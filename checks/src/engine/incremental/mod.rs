//! The engine `incremental`: only what a change touches (PCC), found by joins.
//!
//! PCC (Xu, Cheung, Chan and Ye, "Partial constraint checking for context consistency in pervasive computing", 2010) keeps the truth of
//! every node of the runtime tree, which for nested quantifiers is a table over all pairs. Here the violation is brought into a
//! normal form (`normal`) in which an assignment is worth keeping only if it makes something true, which is rare, and the assignments that
//! a change makes true are looked up in hash tables and grids.
//!
//! An evaluation goes through the nodes from the innermost outwards. For each it
//!
//! 1. takes away the results that bind an event that left,
//! 2. evaluates again where a node inside changed,
//! 3. looks for results that bind the event that came,
//! 4. where only a witness is kept and was lost, looks for another.
//!
//! In the end the links are told that the touched results make and did not make before.

mod links;
mod normal;
pub mod outline;
mod plan;
mod search;
mod table;

use std::sync::Arc;

use self::links::Telling;
use self::normal::{Node, Normal};
pub(crate) use self::plan::cost_of_change;
use self::plan::{OfSet, Way};
use self::search::{Frame, Search, View};
use self::table::Table;
use super::{Engine, Evaluation};
use crate::check::Check;
use crate::links::{Bounds, Link, Overflow};
use crate::sets::{Sets, Slot};

/// Intermediate results that are kept in step with the sets.
#[derive(Debug)]
pub struct Incremental {
    check: Arc<Check>,
    normal: Normal,
    ways: Vec<Way>,
    indices: Vec<OfSet>,
    /// Results of each node.
    tables: Vec<Table>,
    was_violated: bool,
    links_count: usize,
    bounds: Bounds,
    /// Slots of results that were found and are not yet in their table; its memory is kept.
    found: Vec<Slot>,
}

impl Incremental {
    /// An engine over sets that hold nothing.
    #[must_use]
    pub fn new(check: Arc<Check>, bounds: Bounds) -> Self {
        let normal = Normal::of(&check);
        let (ways, indices) = plan::ways(&check, &normal);
        let mut engine = Self {
            normal,
            ways,
            indices,
            tables: Vec::new(),
            was_violated: false,
            links_count: 0,
            bounds,
            found: Vec::new(),
            check,
        };
        engine.clear();
        engine
    }

    /// Brings the results of a node in step with the sets and the nodes inside.
    fn update(&mut self, idx: usize, sets: &Sets) -> Result<(), Overflow> {
        let mut table = std::mem::take(&mut self.tables[idx]);
        let mut found = std::mem::take(&mut self.found);
        let node = &self.normal.nodes[idx];
        let view = View { check: &self.check, nodes: &self.normal.nodes, sets, tables: &self.tables };
        let way = &self.ways[idx];
        let mut updating = Updating {
            view,
            indices: &self.indices,
            node,
            way,
            table: &mut table,
            found: &mut found,
            frame: Frame::new(&self.check),
            results_max: self.bounds.results_max,
        };
        let result = updating.run();
        self.tables[idx] = table;
        self.found = found;
        result
    }
}

/// The update of one node.
struct Updating<'a, 't> {
    view: View<'a>,
    indices: &'a [OfSet],
    node: &'a Node,
    way: &'a Way,
    table: &'t mut Table,
    found: &'t mut Vec<Slot>,
    frame: Frame<'a>,
    results_max: usize,
}

impl Updating<'_, '_> {
    fn run(&mut self) -> Result<(), Overflow> {
        let (view, node) = (self.view, self.node);
        for (slot, set) in view.sets.changes().removed() {
            let of_event = self.table.of_event(slot);
            let gone = of_event.iter().filter(|(_, position)| node.sets[*position as usize] == set);
            let gone: Vec<_> = gone.map(|(result, _)| *result).collect();
            gone.into_iter().for_each(|result| self.table.remove(result));
        }
        for &child in &node.children {
            let inner = &view.nodes[child];
            for group in view.tables[child].touched_groups() {
                let is_changed = inner.is_linked || group.was() != group.is();
                if is_changed && view.is_alive_at(node, inner.free(), group.key()) {
                    self.frame.bind_all(inner.free(), group.key(), view.sets);
                    self.search(inner.free(), None, true)?;
                }
            }
        }
        if let Some(slot) = view.sets.changes().added {
            for (&depth, &set) in node.depths.iter().zip(&node.sets) {
                if view.sets.holds(set, slot) {
                    self.frame.bind(depth, slot, view.sets);
                    self.search(&[depth], Some((depth, slot)), false)?;
                }
            }
        }
        if !node.is_linked {
            self.find_witnesses()?;
        }
        Ok(())
    }

    /// Looks for another witness where the last one was lost.
    fn find_witnesses(&mut self) -> Result<(), Overflow> {
        let (view, node) = (self.view, self.node);
        let lost = self
            .table
            .touched_groups()
            .filter(|group| group.was() && !group.is() && view.is_alive_at(node, node.free(), group.key()));
        let lost: Vec<Box<[Slot]>> = lost.map(|group| group.key().into()).collect();
        for key in lost {
            self.frame.bind_all(node.free(), &key, view.sets);
            self.search(node.free(), None, false)?;
        }
        Ok(())
    }

    /// Looks for results from what is bound in the frame, and takes them into the table.
    fn search(
        &mut self,
        bound: &[usize],
        came: Option<(usize, Slot)>,
        finds_false: bool,
    ) -> Result<(), Overflow> {
        let node = self.node;
        for plan in self.way.from(bound) {
            self.found.clear();
            let mut lost = Vec::new();
            let search = Search {
                view: self.view,
                indices: self.indices,
                node,
                table: self.table,
                plan,
                rest: &self.way.rest,
                came,
                finds_false,
                results_max: self.results_max,
            };
            search.run(&mut self.frame, self.found, &mut lost)?;
            lost.into_iter().for_each(|result| self.table.remove(result));
            for slots in self.found.chunks_exact(node.depths.len()) {
                let known = if finds_false { self.table.find(slots) } else { None };
                match known.filter(|&result| self.table.result(result).is) {
                    Some(result) if node.is_linked => self.table.mark(result),
                    Some(_) => {}
                    None => {
                        let key = &slots[..slots.len() - 1];
                        if node.is_linked || !self.table.group(key).is_some_and(table::Group::is) {
                            self.table.add(slots);
                        }
                    }
                }
            }
            if self.table.len() > self.results_max {
                return Err(Overflow::Results { max: self.results_max });
            }
        }
        Ok(())
    }
}

impl Engine for Incremental {
    fn name(&self) -> &'static str {
        "incremental"
    }

    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow> {
        let changes = sets.changes();
        for (slot, set) in changes.removed() {
            let indices = self.indices.iter_mut().filter(|of_set| of_set.set == set);
            indices.for_each(|of_set| of_set.index.remove(&sets.subject(slot), slot));
        }
        if let Some(slot) = changes.added {
            let indices = self.indices.iter_mut().filter(|of_set| sets.holds(of_set.set, slot));
            indices.for_each(|of_set| of_set.index.insert(&sets.subject(slot), slot));
        }
        for idx in 0..self.normal.nodes.len() {
            self.update(idx, sets)?;
        }
        let view = View { check: &self.check, nodes: &self.normal.nodes, sets, tables: &self.tables };
        let mut telling = Telling::new(view, self.bounds.links_max);
        let violated = telling.root(&self.normal.root, self.was_violated);
        let (told, gone) = telling.finish()?;
        self.links_count = self.links_count + told.len() - gone;
        if self.links_count > self.bounds.links_max {
            return Err(Overflow::Links { max: self.bounds.links_max });
        }
        self.was_violated = violated;
        self.tables.iter_mut().for_each(Table::settle);
        Ok(Evaluation { violated, told })
    }

    fn links(&self, sets: &Sets) -> Vec<Link> {
        if !self.was_violated {
            return Vec::new();
        }
        let view = View { check: &self.check, nodes: &self.normal.nodes, sets, tables: &self.tables };
        let mut telling = Telling::new(view, usize::MAX);
        telling.root(&self.normal.root, false);
        telling.finish().map_or_else(|_| Vec::new(), |(links, _)| links)
    }

    fn links_count(&self) -> usize {
        self.links_count
    }

    fn clear(&mut self) {
        self.tables = self.normal.nodes.iter().map(|node| Table::new(node.depths.len())).collect();
        self.indices.iter_mut().for_each(|of_set| of_set.index.clear());
        self.was_violated = false;
        self.links_count = 0;
    }

    fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        let indices: usize = self.indices.iter().map(|of_set| of_set.index.bytes()).sum();
        tables + indices + 4 * self.found.capacity()
    }
}
