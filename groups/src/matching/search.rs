//! Searches for groups among consistent candidates, in the order of a [`Way`].
//!
//! First the roles are bound that the order reads. Then its value is known, and a group that ranks behind the cut of the window is not looked for. The
//! groups of one such *head* are found in the order of their names, so that the first one behind the cut ends the search for more.

use matcher::predicate::index::Slot;

use super::Overflow;
use super::candidates::{Budget, Candidates, Id, Pool};
use super::definition::{Cast, ROLES_MAX};
use super::plan::{Source, Step, Way};
use super::ranking::{Entry, Window};

/// Heads that are held back, so that those with the least values come first and make the cut.
const HEADS_MAX: usize = 1 << 16;

/// A search.
pub(super) struct Search<'a, 'm> {
    candidates: &'a Candidates,
    way: &'a Way,
    /// What is behind the cut of this window is not looked for.
    kept: Option<&'m Window>,
    found: &'m mut Window,
    budget: &'m mut Budget,
    memory: &'m mut Memory,
    bound: Bound<'a>,
    value: f64,
    /// Whether heads are held back.
    is_sorting: bool,
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Candidates of each step.
    lists: [Vec<Slot>; ROLES_MAX],
    heads: Vec<(f64, [Slot; ROLES_MAX])>,
}

impl Memory {
    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| list.capacity() * size_of::<Slot>()).sum();
        lists + self.heads.capacity() * size_of::<(f64, [Slot; ROLES_MAX])>()
    }
}

/// Candidates by the roles that they are bound to.
#[derive(Clone, Copy)]
struct Bound<'a> {
    cast: Cast<'a>,
    slots: [Slot; ROLES_MAX],
    ids: [Id; ROLES_MAX],
}

/// How a search goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// With another head, for the rest of this one ranks behind the cut.
    NextHead,
}

impl<'a, 'm> Search<'a, 'm> {
    pub(super) fn new(
        candidates: &'a Candidates,
        kept: Option<&'m Window>,
        found: &'m mut Window,
        budget: &'m mut Budget,
        memory: &'m mut Memory,
    ) -> Self {
        let bound = Bound { cast: [None; ROLES_MAX], slots: [0; ROLES_MAX], ids: [Id::MAX; ROLES_MAX] };
        let way = &candidates.plan.all;
        Self { candidates, way, kept, found, budget, memory, bound, value: 0.0, is_sorting: false }
    }

    /// Finds the groups that have a candidate in a role.
    pub(super) fn of(mut self, role: usize, slot: Slot) -> Result<(), Overflow> {
        self.way = &self.candidates.plan.from[role];
        if self.candidates.pools[role].is_consistent(slot) {
            self.bind(role, slot);
            self.head(0)?;
        }
        Ok(())
    }

    /// Finds all groups.
    pub(super) fn all(mut self) -> Result<(), Overflow> {
        self.is_sorting = self.way.heads < self.way.steps.len();
        self.memory.heads.clear();
        self.head(0)?;
        self.heads_held_back()
    }

    fn bind(&mut self, role: usize, slot: Slot) {
        let id = self.candidates.pools[role].object(slot);
        self.bound.cast[role] = Some(self.candidates.objects.get(id).subject(id));
        self.bound.slots[role] = slot;
        self.bound.ids[role] = id;
    }

    fn unbind(&mut self, role: usize) {
        self.bound.cast[role] = None;
        self.bound.ids[role] = Id::MAX;
    }

    /// Binds the roles of a head from a step on.
    fn head(&mut self, at: usize) -> Result<Flow, Overflow> {
        if at < self.way.heads {
            return self.each(at, Self::head);
        }
        self.value = self.candidates.definition.value(&self.bound.cast);
        if !self.may_have(self.value) {
            return Ok(Flow::Next);
        }
        if self.is_sorting {
            self.memory.heads.push((self.value, self.bound.slots));
            if self.memory.heads.len() == HEADS_MAX {
                let bound = self.bound;
                self.heads_held_back()?;
                self.bound = bound;
            }
        } else {
            self.tail(at)?;
        }
        Ok(Flow::Next)
    }

    /// Goes on with the heads that were held back, the least first.
    fn heads_held_back(&mut self) -> Result<(), Overflow> {
        let mut heads = std::mem::take(&mut self.memory.heads);
        heads.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let way = self.way;
        for (value, slots) in heads.drain(..) {
            if !self.may_have(value) {
                break;
            }
            self.value = value;
            way.steps[..way.heads].iter().for_each(|step| self.bind(step.role, slots[step.role]));
            self.tail(way.heads)?;
        }
        self.memory.heads = heads;
        Ok(())
    }

    /// Binds the other roles from a step on.
    fn tail(&mut self, at: usize) -> Result<Flow, Overflow> {
        if at < self.way.steps.len() {
            return self.each(at, Self::tail);
        }
        let entry = Entry::new(self.value, self.bound.ids);
        let objects = &self.candidates.objects;
        if self.kept.is_some_and(|kept| !kept.admits(&entry, objects)) || !self.found.admits(&entry, objects)
        {
            return Ok(Flow::NextHead);
        }
        self.found.add(entry, objects);
        Ok(Flow::Next)
    }

    fn may_have(&self, value: f64) -> bool {
        self.kept.is_none_or(|kept| kept.may_have(value)) && self.found.may_have(value)
    }

    /// Goes on with each candidate of a step in turn.
    fn each(
        &mut self,
        at: usize,
        go_on: impl Fn(&mut Self, usize) -> Result<Flow, Overflow> + Copy,
    ) -> Result<Flow, Overflow> {
        let step = &self.way.steps[at];
        let pool = &self.candidates.pools[step.role];
        if matches!(step.source, Source::All) {
            for &slot in pool.by_name.values() {
                self.budget.look()?;
                if self.try_slot(step, pool, slot, at, go_on)? == Flow::NextHead {
                    return Ok(Flow::NextHead);
                }
            }
            return Ok(Flow::Next);
        }
        let mut list = std::mem::take(&mut self.memory.lists[at]);
        list.clear();
        let mut flow = self.list(step, &mut list).map(|()| Flow::Next);
        if at >= self.way.heads && flow.is_ok() {
            let name = |slot: Slot| self.candidates.objects.name(pool.object(slot));
            list.sort_unstable_by(|a, b| name(*a).cmp(name(*b)));
        }
        for &slot in &list {
            if !matches!(flow, Ok(Flow::Next)) {
                break;
            }
            flow = self.try_slot(step, pool, slot, at, go_on);
        }
        self.memory.lists[at] = list;
        flow
    }

    fn try_slot(
        &mut self,
        step: &Step,
        pool: &Pool,
        slot: Slot,
        at: usize,
        go_on: impl Fn(&mut Self, usize) -> Result<Flow, Overflow>,
    ) -> Result<Flow, Overflow> {
        if !pool.is_consistent(slot) || self.bound.ids.contains(&pool.object(slot)) {
            return Ok(Flow::Next);
        }
        self.bind(step.role, slot);
        let flow = go_on(self, at + 1);
        self.unbind(step.role);
        flow
    }

    /// Appends the candidates of a step, each once.
    fn list(&mut self, step: &Step, list: &mut Vec<Slot>) -> Result<(), Overflow> {
        let pools = &self.candidates.pools;
        let slots = &self.bound.slots;
        match &step.source {
            Source::Beside(arms) => {
                let partners =
                    |(role, arm): &(usize, usize)| &*pools[*role].link(slots[*role], *arm).partners;
                let fewest = arms.iter().min_by_key(|arm| partners(arm).len()).expect("there is an arm");
                for slot in partners(fewest) {
                    self.budget.look()?;
                    let is_partner =
                        |arm: &(usize, usize)| arm == fewest || partners(arm).binary_search(slot).is_ok();
                    if arms.iter().all(is_partner) {
                        list.push(*slot);
                    }
                }
            }
            Source::Along { from, arms } => {
                list.push(slots[*from]);
                let mut role = *from;
                for arm in arms {
                    let mut next = Vec::new();
                    for slot in &*list {
                        for partner in &pools[role].link(*slot, *arm).partners {
                            self.budget.look()?;
                            next.push(*partner);
                        }
                    }
                    role = self.candidates.plan.roles[role].arms[*arm].other;
                    next.retain(|slot| pools[role].is_consistent(*slot));
                    next.sort_unstable();
                    next.dedup();
                    *list = next;
                }
            }
            Source::All => {}
        }
        Ok(())
    }
}
