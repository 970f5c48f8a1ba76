//! Candidates that come, move and leave, and the groups among them.
//!
//! A [`Definition`] has roles and conditions over one or two of them. Live objects are candidates of roles. A *group* is one object for each
//! role, no object in two roles, so that all conditions are true. [`Matching`] tells the first groups by a ranking, and how they change
//! with each object that comes, moves or leaves. [`Naive`] does the same from scratch each time, and defines the right answer.
//!
//! The reported groups follow from the candidates alone: the same candidates, put in any order, have the same groups. So a matching is kept by
//! keeping its candidates.

mod candidates;
mod consistency;
mod definition;
mod engine;
mod naive;
mod plan;
mod ranking;
mod search;
mod standing;

use std::sync::Arc;

use matcher::event::Event;

pub use definition::{CONDITIONS_MAX, Definition, DefinitionError, Fault, Part, ROLES_MAX};
pub use engine::Matching;
pub use naive::Naive;

/// The newest event of an object, as conditions see it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The event.
    pub event: Arc<Event>,
    /// Its time in milliseconds, from a moment that all events share.
    pub time_ms: i64,
}

/// Roles of an object, by their places in the definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RoleSet(u8);

/// One object for each role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    objects: Box<[Arc<str>]>,
}

/// A change of the reported groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is among the first from now on.
    Enter(Group),
    /// It is among the first no more.
    Exit(Group),
}

/// How many objects may take a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Objects that are candidates.
    pub candidates: usize,
    /// Candidates that satisfy the conditions over the role alone and are supported: for each role that shares a condition with it
    /// there is a consistent candidate with which all conditions over both are true (the largest sets of which this can be said).
    pub consistent: usize,
}

/// How much there may be, and what a change may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Candidates of all roles; an object counts once for each of its roles.
    pub candidates_max: usize,
    /// Pairs of candidates that support each other, over all pairs of roles with conditions.
    pub pairs_max: usize,
    /// Candidates and pairs that one change looks at. Each is a few conditions or terms, tens of nanoseconds.
    pub looks_max: usize,
}

/// A bound that a change would pass. The candidates and the groups are as they were before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    /// [`Bounds::candidates_max`].
    #[error("more than {max} candidates")]
    Candidates {
        /// The bound.
        max: usize,
    },
    /// [`Bounds::pairs_max`].
    #[error("more than {max} pairs of candidates that fit")]
    Pairs {
        /// The bound.
        max: usize,
    },
    /// [`Bounds::looks_max`].
    #[error("a change looks at more than {max} candidates")]
    Looks {
        /// The bound.
        max: usize,
    },
}

/// Why an object is in a group or in none, as a candidate of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The role.
    pub role: usize,
    /// Conditions over the role alone that are not true of it, by their places in the definition.
    pub failed: Vec<usize>,
    /// Whether it is consistent, as [`Count::consistent`] has it.
    pub is_consistent: bool,
    /// One for each role that shares a condition with it, in their order.
    pub partners: Vec<Partners>,
}

/// What is left of another role's candidates beside an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partners {
    /// The other role.
    pub role: usize,
    /// Its candidates; the object itself does not count.
    pub candidates: usize,
    /// The conditions over the other role alone and over both roles, in the order of the definition.
    pub left: Vec<Left>,
    /// How many candidates all of them leave.
    pub fitting: usize,
    /// How many of those are consistent.
    pub consistent: usize,
}

/// What a condition leaves of the candidates of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The condition, by its place in the definition.
    pub condition: usize,
    /// How many candidates it leaves by itself.
    pub alone: usize,
    /// How many it leaves together with those before it.
    pub together: usize,
}

impl RoleSet {
    /// No role.
    pub const EMPTY: Self = Self(0);

    /// The set with one more role. One past [`ROLES_MAX`] changes nothing.
    #[must_use]
    pub const fn with(self, role: usize) -> Self {
        if role < ROLES_MAX { Self(self.0 | 1 << role) } else { self }
    }

    /// Whether it has a role.
    #[must_use]
    pub fn has(self, role: usize) -> bool {
        role < ROLES_MAX && self.0 >> role & 1 == 1
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its roles, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..ROLES_MAX).filter(move |role| self.has(*role))
    }

    /// Only its roles among the first `count`.
    fn of_first(self, count: usize) -> Self {
        self.iter().take_while(|role| *role < count).collect()
    }
}

impl FromIterator<usize> for RoleSet {
    fn from_iter<T: IntoIterator<Item = usize>>(roles: T) -> Self {
        roles.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl Group {
    /// Names of the objects, in the order of the roles.
    #[must_use]
    pub fn objects(&self) -> &[Arc<str>] {
        &self.objects
    }
}

impl Bounds {
    /// No bound.
    pub const NONE: Self = Self { candidates_max: usize::MAX, pairs_max: usize::MAX, looks_max: usize::MAX };
}

impl Default for Bounds {
    fn default() -> Self {
        Self { candidates_max: 200_000, pairs_max: 4_000_000, looks_max: 4_000_000 }
    }
}
