//! How many clients there may be, over all shards together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::refusal::Refusal;

/// Counts the places that are taken. Nobody but a [`Place`] changes the count.
pub(crate) struct Census {
    limit: u64,
    taken: AtomicU64,
}

/// A place for a client, which is free again when this is dropped: held by each client that there is, and by moves
/// that are under way and may turn out to be of a new one.
pub(crate) struct Place(Arc<Census>);

/// Places that must be left before one is given to somebody who may not need it. Closer to the limit a client that
/// is known could otherwise keep one from another that is new.
const AMPLE: u64 = 1_000;

impl Census {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicU64::new(0) })
    }

    /// A place for a new client.
    pub(crate) fn place(self: &Arc<Self>) -> Result<Place, Refusal> {
        let full = Refusal::Limit { what: "clients", limit: self.limit, setting: "limits.clients" };
        self.take(self.limit).ok_or(full)
    }

    /// A place for a client that may be new, as long as there are plenty.
    pub(crate) fn place_in_advance(self: &Arc<Self>) -> Option<Place> {
        self.take(self.limit.saturating_sub(AMPLE))
    }

    /// A place for a client that there was before the broker began; it has one whatever the limit is now.
    pub(crate) fn place_again(self: &Arc<Self>) -> Place {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Place(Arc::clone(self))
    }

    fn take(self: &Arc<Self>, limit: u64) -> Option<Place> {
        let one_more = |taken: u64| (taken < limit).then(|| taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_never_more_than_the_limit_and_come_back() {
        let census = Census::new(AMPLE + 1);
        let early = census.place_in_advance().unwrap();
        assert!(census.place_in_advance().is_none());
        let rest: Vec<_> = (0..AMPLE).map(|_| census.place().unwrap()).collect();
        assert!(matches!(census.place(), Err(Refusal::Limit { limit: 1_001, .. })));
        drop(early);
        assert!(census.place_in_advance().is_none());
        assert!(census.place().is_ok());
        drop(rest);
        assert!(census.place_in_advance().is_some());
        assert!(Census::new(AMPLE).place_in_advance().is_none());
    }
}
