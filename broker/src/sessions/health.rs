//! Whether the disk takes what it is given, for all shards together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::model::error::{self, ApiError};
use crate::model::lease::Lease;
use crate::store::{Accepted, Shortage};

/// Why a broker of a cluster changes nothing.
const NO_LEASE: &str =
    "NATS has not confirmed for some seconds that this is the active broker of the cluster";

/// Whether the disk takes what it is given, over all shards.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Shards whose last commit failed.
    pub(super) failing: AtomicUsize,
    /// Text of the last failure. A std mutex: held to copy a text.
    why: Mutex<String>,
    /// Whether the disk is full; without a store it never is.
    shortage: OnceLock<Arc<Shortage>>,
    /// In a cluster, whether this is known to be the active broker.
    lease: OnceLock<Arc<Lease>>,
}

impl Health {
    /// Why not everything can be changed now; `None` where all is well.
    pub(crate) fn failure(&self) -> Option<String> {
        if self.failing.load(Ordering::Relaxed) > 0 {
            return Some(self.why().clone());
        }
        if self.has_no_lease() {
            return Some(NO_LEASE.to_owned());
        }
        self.is_short().then(|| error::FULL.to_owned())
    }

    /// Looks from now on also at whether the disk is full. Once.
    pub(crate) fn watch(&self, shortage: Arc<Shortage>) {
        // There is one store.
        let _ = self.shortage.set(shortage);
    }

    /// Refuses from now on also what another broker of the cluster may have the right to acknowledge. Once.
    pub(crate) fn watch_lease(&self, lease: Arc<Lease>) {
        // There is one ledger.
        let _ = self.lease.set(lease);
    }

    fn has_no_lease(&self) -> bool {
        self.lease.get().is_some_and(|lease| !lease.is_valid())
    }

    /// Whether the disk is full, so that only removals are taken.
    pub(crate) fn is_short(&self) -> bool {
        self.shortage.get().is_some_and(|shortage| shortage.is_short())
    }

    /// Refuses what would add to what is on disk while that is full or takes nothing.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.is_short() { Err(ApiError::Full) } else { self.check_removal() }
    }

    /// Accepts texts of these sizes, in bytes, as many as the disk has room for; says how many those are. They count until what is
    /// given back is dropped.
    pub(crate) fn accept(&self, sizes: impl ExactSizeIterator<Item = u64>) -> (usize, Option<Arc<Accepted>>) {
        let Some(shortage) = self.shortage.get() else { return (sizes.len(), None) };
        let (count, accepted) = shortage.accept(sizes);
        (count, Some(Arc::new(accepted)))
    }

    /// Refuses a removal while the disk takes nothing.
    pub(crate) fn check_removal(&self) -> Result<(), ApiError> {
        let is_failing = self.failing.load(Ordering::Relaxed) > 0 || self.has_no_lease();
        if is_failing { Err(ApiError::Storage) } else { Ok(()) }
    }

    pub(super) fn why(&self) -> MutexGuard<'_, String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
