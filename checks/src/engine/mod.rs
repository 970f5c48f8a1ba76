//! Engines: each evaluates a check after every change, and all give the same answers.

pub mod concurrent;
pub mod incremental;
mod recursion;
pub mod sequential;

use std::num::NonZeroUsize;
use std::sync::Arc;

pub use concurrent::Concurrent;
pub use incremental::Incremental;
pub use sequential::Sequential;

use crate::check::Check;
use crate::links::{Bounds, Link, Overflow};
use crate::sets::{Sets, Step};

/// Evaluates a check.
pub trait Engine: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Evaluates the whole check over the sets as they are, of which [`Sets::changes`] says what came and went since the evaluation
    /// before.
    ///
    /// # Errors
    /// [`Overflow`], after which the engine has to be cleared, and the sets emptied.
    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow>;

    /// How many changes it takes at once; 1 where it takes each by itself.
    fn steps_max(&self) -> usize {
        1
    }

    /// Evaluates the check as it was after each of several changes, oldest first, all of which [`Sets::changes`] has: the answers are those of
    /// [`Engine::evaluate`] after each. `None`, and no change, where it has to be done one by one.
    fn evaluate_all(&mut self, sets: &Sets, steps: &[Step]) -> Option<Vec<Evaluation>> {
        let _ = (sets, steps);
        None
    }

    /// All links of the violation at the last evaluation, in no order. For tests and for a reader that comes anew: it costs as much as
    /// there is to tell.
    fn links(&self, sets: &Sets) -> Vec<Link>;

    /// How many links there were at the last evaluation.
    fn links_count(&self) -> usize;

    /// Forgets everything.
    fn clear(&mut self);

    /// The memory that it takes besides the sets.
    fn bytes(&self) -> usize;

    /// Where it worked, for an engine that has a choice.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// Outcome of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// Whether the formula is false.
    pub violated: bool,
    /// Links that were not there at the evaluation before, in no order.
    pub told: Vec<Link>,
}

/// Which engine evaluates a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// [`Sequential`].
    Sequential,
    /// [`Concurrent`] on some threads.
    Concurrent(NonZeroUsize),
    /// [`Incremental`].
    #[default]
    Incremental,
}

impl Kind {
    /// Makes one for a check.
    #[must_use]
    pub fn engine(self, check: &Arc<Check>, bounds: Bounds) -> Box<dyn Engine> {
        match self {
            Self::Sequential => Box::new(Sequential::new(check.clone(), bounds)),
            Self::Concurrent(threads) => Box::new(Concurrent::new(check.clone(), bounds, threads)),
            Self::Incremental => Box::new(Incremental::new(check.clone(), bounds)),
        }
    }
}
