//! One account, and what is held of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bounds::{Bound, Level};
use super::{Books, Kind};
use crate::model::error::ApiError;

/// Bytes that are held for one connection, client or tenant, or for all. Nothing but a [`Held`] changes them.
pub(crate) struct Account {
    level: Level,
    name: Arc<str>,
    bytes: [AtomicU64; Kind::COUNT],
    parent: Option<Arc<Account>>,
    books: Arc<Books>,
}

/// The exactness of what changes too often to be counted each time.
const STEP_BYTES: u64 = 16 * 1024;

/// Bytes that are held, given back when this is dropped; by default none, and for nobody.
#[derive(Default)]
pub(crate) struct Held {
    bytes: u64,
    account: Option<(Arc<Account>, Kind)>,
}

impl Account {
    pub(super) fn new(level: Level, name: Arc<str>, parent: Option<Arc<Self>>, books: Arc<Books>) -> Self {
        Self { level, name, bytes: Default::default(), parent, books }
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of one kind.
    pub(crate) fn bytes(&self, kind: Kind) -> u64 {
        self.bytes[kind as usize].load(Ordering::Relaxed)
    }

    /// Holds bytes where this account and all above it have room for them.
    ///
    /// # Errors
    /// A limit that is reached; nothing is held then.
    pub(crate) fn hold(self: &Arc<Self>, kind: Kind, bytes: u64) -> Result<Held, ApiError> {
        let mut held = Held { bytes: 0, account: Some((Arc::clone(self), kind)) };
        held.resize(bytes)?;
        Ok(held)
    }

    /// Holds bytes whatever the bounds are: of what was there before the broker began, and of what is bounded by other means.
    pub(crate) fn hold_anyway(self: &Arc<Self>, kind: Kind, bytes: u64) -> Held {
        let mut held = Held { bytes: 0, account: Some((Arc::clone(self), kind)) };
        held.set(bytes);
        held
    }

    fn lineage(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.parent.as_deref())
    }

    /// The bound of the account for a kind, and its value in bytes; `None` where there is none.
    fn bound(&self, kind: Kind) -> Option<(&Bound, u64)> {
        let bound = self.books.bounds.at(self.level, kind)?;
        Some((bound, bound.bytes(&self.name)?))
    }

    /// All levels take more, or none does.
    fn take(&self, kind: Kind, more: u64) -> Result<(), ApiError> {
        for (depth, account) in self.lineage().enumerate() {
            let Some((bound, most)) = account.bound(kind) else {
                account.add(kind, more);
                continue;
            };
            let grown = |bytes: u64| bytes.checked_add(more).filter(|bytes| *bytes <= most);
            let count = &account.bytes[kind as usize];
            if count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
                self.lineage().take(depth).for_each(|below| below.subtract(kind, more));
                return Err(bound.refusal(most));
            }
        }
        Ok(())
    }

    fn add(&self, kind: Kind, more: u64) {
        self.bytes[kind as usize].fetch_add(more, Ordering::Relaxed);
    }

    fn subtract(&self, kind: Kind, less: u64) {
        self.bytes[kind as usize].fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.books.forget(self);
    }
}

impl Held {
    /// How many bytes are held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds `bytes` instead. Fewer than before are never refused.
    ///
    /// # Errors
    /// A limit that is reached; as much is held then as before.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), ApiError> {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return Ok(());
        }
        if let Some((account, kind)) = &self.account {
            account.take(*kind, bytes - self.bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Holds `bytes` instead, whatever the bounds are.
    pub(crate) fn set(&mut self, bytes: u64) {
        if bytes <= self.bytes {
            return self.shrink(bytes);
        }
        if let Some((account, kind)) = &self.account {
            account.lineage().for_each(|account| account.add(*kind, bytes - self.bytes));
        }
        self.bytes = bytes;
    }

    /// Holds `bytes` or a few more, whatever the bounds are: the accounts are asked only after [`STEP_BYTES`] more or less.
    pub(crate) fn cover(&mut self, bytes: u64) {
        let steps = bytes.next_multiple_of(STEP_BYTES);
        if steps > self.bytes || steps + STEP_BYTES < self.bytes {
            self.set(steps);
        }
    }

    /// Takes in what the same account holds of the same kind besides.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
        if self.account.is_none() {
            self.account = other.account.take();
        }
    }

    /// Gives back all but `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes -= surplus;
        if let Some((account, kind)) = &self.account
            && surplus > 0
        {
            account.lineage().for_each(|account| account.subtract(*kind, surplus));
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
