//! How many clients there may be, over all shards together, and how many of one tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::{Quota, Share};
use crate::refusal::Refusal;
use crate::tenant;

/// Counts the places that are taken. Nobody but a [`Place`] changes the count.
pub(crate) struct Census {
    limit: u64,
    taken: AtomicU64,
    quota: Arc<Quota>,
}

/// A place for a client, which is free again when this is dropped: held by each client that there is, and by moves
/// that are under way and may turn out to be of a new one.
pub(crate) struct Place {
    census: Arc<Census>,
    _share: Share,
}

/// Places that must be left before one is given to somebody who may not need it. Closer to the limit a client that
/// is known could otherwise keep one from another that is new.
const AMPLE: u64 = 1_000;

impl Census {
    pub(crate) fn new(limit: u64, quota: Arc<Quota>) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicU64::new(0), quota })
    }

    /// A place for a new client.
    pub(crate) fn place(self: &Arc<Self>, name: &str) -> Result<Place, Refusal> {
        let full = Refusal::Limit { what: "clients", limit: self.limit, setting: "limits.clients" };
        let share = self.quota.share(tenant::split(name).0)?;
        self.take(self.limit, share).ok_or(full)
    }

    /// A place for a client that may be new, as long as there are plenty.
    pub(crate) fn place_in_advance(self: &Arc<Self>, name: &str) -> Option<Place> {
        let share = self.quota.share_in_advance(tenant::split(name).0)?;
        self.take(self.limit.saturating_sub(AMPLE), share)
    }

    /// A place for a client that there was before the broker began; it has one whatever the limits are now.
    pub(crate) fn place_again(self: &Arc<Self>, name: &str) -> Place {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Place { census: Arc::clone(self), _share: self.quota.share_again(tenant::split(name).0) }
    }

    fn take(self: &Arc<Self>, limit: u64, share: Share) -> Option<Place> {
        let one_more = |taken: u64| (taken < limit).then(|| taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Place { census: Arc::clone(self), _share: share })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.census.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_never_more_than_the_limit_and_come_back() {
        let new = |limit| Census::new(limit, Quota::new("clients of one tenant", "quotas.tenant_clients", 2));
        let census = new(AMPLE + 1);
        let early = census.place_in_advance("a").unwrap();
        assert!(census.place_in_advance("b").is_none());
        let of = |index: u64| tenant::inside(&index.to_string(), "a").into_owned();
        let rest: Vec<_> = (0..AMPLE).map(|index| census.place(&of(index)).unwrap()).collect();
        assert!(matches!(census.place("b"), Err(Refusal::Limit { limit: 1_001, .. })));
        drop(early);
        assert!(census.place_in_advance("b").is_none());
        assert!(census.place("b").is_ok());
        drop(rest);
        let one = census.place_in_advance("b").unwrap();
        assert!(census.place_in_advance("c").is_none());
        let two = census.place("c").unwrap();
        assert!(matches!(census.place("d"), Err(Refusal::Limit { setting: "quotas.tenant_clients", .. })));
        assert!(census.place(&of(1)).is_ok());
        drop((one, two));
        assert!(new(AMPLE).place_in_advance("b").is_none());
    }
}
