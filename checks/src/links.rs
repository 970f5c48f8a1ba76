//! Links: which events are to blame for a violation.

use crate::sets::{Sets, Slot};

/// A variable of a formula and the event that it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding {
    /// Place of the variable in [`Check::variables`](crate::Check::variables).
    pub variable: usize,
    /// Number of the event.
    pub number: u64,
    pub(crate) slot: Slot,
}

/// Bindings that together made a formula false, in the order of the variables. A violation that no binding made has one without any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(Vec<Binding>);

impl Link {
    pub(crate) fn new(bindings: &[Binding]) -> Self {
        let mut bindings = bindings.to_vec();
        bindings.sort_unstable();
        Self(bindings)
    }

    /// The link that binds variables to events that sets hold, by their slots.
    ///
    /// # Panics
    /// When there is no event of a slot.
    pub fn of(sets: &Sets, bindings: impl Iterator<Item = (usize, Slot)>) -> Self {
        let binding = |(variable, slot)| Binding { variable, number: sets.get(slot).number, slot };
        Self::new(&bindings.map(binding).collect::<Vec<_>>())
    }

    /// What it binds.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.0
    }
}

/// More than an engine may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    /// More links than the bound at one evaluation.
    #[error("the violation has more than {max} links")]
    Links {
        /// The bound.
        max: usize,
    },
    /// More intermediate results than the bound.
    #[error("the check has more than {max} intermediate results")]
    Results {
        /// The bound.
        max: usize,
    },
}

/// How much an engine may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most links of a violation at one evaluation.
    pub links_max: usize,
    /// The most intermediate results that the incremental engine keeps, of some 60 bytes each.
    pub results_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { links_max: 100_000, results_max: 4_000_000 }
    }
}
