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
        let share = self.quota.share(tenant::split(name).0, 1)?;
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
        Place { census: Arc::clone(self), _share: self.quota.share_again(tenant::split(name).0, 1) }
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
    use crate::config::Allotment;

    fn census(limit: u64, quota: u64) -> Arc<Census> {
        Census::new(limit, Quota::new("clients of one tenant", "quotas.tenant_clients", Allotment::of(quota)))
    }

    #[test]
    fn places_are_never_more_than_the_limit_and_come_back() {
        let full = census(AMPLE + 1, 0);
        let early = full.place_in_advance("a").unwrap();
        assert!(full.place_in_advance("b").is_none());
        let rest: Vec<_> = (0..AMPLE).map(|_| full.place("b").unwrap()).collect();
        assert!(matches!(full.place("b"), Err(Refusal::Limit { limit: 1_001, .. })));
        drop(early);
        assert!(full.place_in_advance("b").is_none());
        assert!(full.place("b").is_ok());
        drop(rest);
        assert!(full.place_in_advance("b").is_some());
        assert!(census(AMPLE, 0).place_in_advance("b").is_none());
    }

    #[test]
    fn a_tenant_takes_no_more_than_its_quota_and_nothing_of_anothers() {
        let census = census(10 * AMPLE, 200);
        let mut places: Vec<_> = (0..100).map(|_| census.place_in_advance("a").unwrap()).collect();
        assert!(census.place_in_advance("a").is_none(), "near its quota it has to be asked for");
        places.extend((0..100).map(|_| census.place("a").unwrap()));
        assert!(matches!(census.place("a"), Err(Refusal::Limit { setting: "quotas.tenant_clients", .. })));
        let other = tenant::inside("other", "a");
        assert!(census.place(&other).is_ok() && census.place_in_advance(&other).is_some());
        places.pop();
        assert!(census.place("a").is_ok());
    }
}
