//! The groups, kept in step with the candidates.

use std::sync::Arc;

use super::candidates::{Budget, Candidates, Id};
use super::definition::Definition;
use super::ranking::Window;
use super::search::{Memory, Search};
use super::{Bounds, Candidate, Change, Count, Group, Overflow, RoleSet, Standing};

/// Candidates and the groups among them.
#[derive(Debug)]
pub struct Matching {
    candidates: Candidates,
    /// The reported groups are the first of these.
    window: Window,
    bounds: Bounds,
    limit: usize,
    /// Groups of a change that are not yet in the window; its memory is kept.
    found: Window,
    memory: Memory,
}

impl Matching {
    /// No candidates.
    #[must_use]
    pub fn new(definition: Arc<Definition>, bounds: Bounds) -> Self {
        let (roles, limit) = (definition.roles.len(), definition.limit);
        Self {
            candidates: Candidates::new(definition),
            window: Window::new(roles, limit),
            bounds,
            limit,
            found: Window::new(roles, limit),
            memory: Memory::default(),
        }
    }

    /// Makes an object a candidate of these roles, and of no others, by its newest event. Without a role it is removed. Roles that the
    /// definition does not have are ignored.
    ///
    /// Returns how the reported groups changed: first the groups that left, in their former order, then the new ones, in their present order.
    ///
    /// Cost: the candidates that share a cell of a grid or a value with the object, or all of a role where no condition has either; the
    /// pairs that came or went; the groups of the object that rank among the first. Where many of the first groups have gone, all are looked
    /// for again: that is once in as many losses as groups are reported, at least.
    ///
    /// # Errors
    /// An [`Overflow`]; all is then as it was before.
    pub fn put(
        &mut self,
        object: &str,
        roles: RoleSet,
        candidate: Candidate,
    ) -> Result<Vec<Change>, Overflow> {
        let roles = roles.of_first(self.candidates.definition.roles.len());
        if roles.is_empty() {
            return self.remove(object);
        }
        let objects = &mut self.candidates.objects;
        let known = objects.find(object);
        let id = known.unwrap_or_else(|| objects.add(object, candidate.clone()));
        let changes = self.change(id, roles, candidate);
        if known.is_none() && changes.is_err() {
            self.candidates.objects.remove(id);
        }
        changes
    }

    /// Takes an object away, if it is there. Returns what [`put`](Self::put) does.
    ///
    /// # Errors
    /// [`Overflow::Looks`], where other groups are looked for in the place of those that it was in; all is then as it was before.
    pub fn remove(&mut self, object: &str) -> Result<Vec<Change>, Overflow> {
        let Some(id) = self.candidates.objects.find(object) else { return Ok(Vec::new()) };
        let candidate = self.candidates.objects.get(id).candidate.clone();
        let changes = self.change(id, RoleSet::EMPTY, candidate)?;
        self.candidates.objects.remove(id);
        Ok(changes)
    }

    /// Bounds the changes from now on.
    pub fn bound(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Whether an object is a candidate of some role.
    #[must_use]
    pub fn has(&self, object: &str) -> bool {
        self.candidates.objects.find(object).is_some()
    }

    /// The reported groups, in the order of the ranking.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        self.window.groups(&self.candidates.objects)
    }

    /// Candidates of each role.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let count = |pool: &super::candidates::Pool| Count {
            candidates: pool.by_name.len(),
            consistent: pool.consistent,
        };
        self.candidates.pools.iter().map(count).collect()
    }

    /// The memory that it takes, events included.
    ///
    /// Cost: all candidates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.candidates.bytes() + self.window.bytes() + self.found.bytes() + self.memory.bytes()
    }

    /// How an object stands as a candidate of each of its roles; nothing for an object that is not there.
    ///
    /// Cost: the conditions between its roles and all candidates of the others.
    #[must_use]
    pub fn why(&self, object: &str) -> Vec<Standing> {
        let Some(id) = self.candidates.objects.find(object) else { return Vec::new() };
        self.candidates.objects.get(id).roles.iter().map(|role| self.candidates.standing(id, role)).collect()
    }

    fn change(&mut self, id: Id, roles: RoleSet, candidate: Candidate) -> Result<Vec<Change>, Overflow> {
        let object = self.candidates.objects.get(id);
        let before = (object.roles, object.candidate.clone());
        let changes = self.try_change(id, roles, candidate);
        if changes.is_err() {
            // The groups are changed last, and the rest follows from the candidates.
            let restored = self.candidates.replace(id, before.0, before.1, &mut Budget::unbounded());
            debug_assert!(restored.is_ok(), "nothing is bounded");
        }
        changes
    }

    fn try_change(&mut self, id: Id, roles: RoleSet, candidate: Candidate) -> Result<Vec<Change>, Overflow> {
        let mut budget = Budget::new(self.bounds);
        let Self { candidates, window, found, memory, .. } = self;
        candidates.replace(id, roles, candidate, &mut budget)?;
        let (slots, kept) = (candidates.objects.get(id).slots, candidates.objects.get(id).kept as usize);
        found.clear();
        for role in roles.iter() {
            Search::new(candidates, Some(window), found, &mut budget, memory).of(role, slots[role])?;
        }
        let mut left = Vec::new();
        if window.is_cut() && window.len() - kept + found.len() < self.limit {
            found.clear();
            Search::new(candidates, None, found, &mut budget, memory).all()?;
            window.replace(found, &mut candidates.objects, &mut left);
        } else if !window.merge(id, found, &mut candidates.objects, &mut left) {
            return Ok(Vec::new());
        }
        Ok(window.tell(left, &candidates.objects))
    }
}
