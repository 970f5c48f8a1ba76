//! How many clients there may be, over all shards together, and how many of one tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Quota, QuotaPermit};
use crate::model::error::ApiError;
use crate::model::tenant;

/// Counts the permits that are taken. Nobody but a [`ClientPermit`] changes the count.
pub(crate) struct ClientLimit {
    limit: u64,
    taken: AtomicU64,
    quota: Arc<Quota>,
}

/// A permit for a client, which is free again when this is dropped: held by each client that there is, and by moves
/// that are under way and may turn out to be of a new one.
pub(crate) struct ClientPermit {
    limit: Arc<ClientLimit>,
    _quota: QuotaPermit,
}

/// Permits that must be left before one is given to somebody who may not need it. Closer to the limit a client that
/// is known could otherwise keep one from another that is new.
const AMPLE: u64 = 1_000;

impl ClientLimit {
    pub(crate) fn new(limit: u64, quota: Arc<Quota>) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicU64::new(0), quota })
    }

    /// A permit for a new client.
    pub(crate) fn acquire(self: &Arc<Self>, name: &str) -> Result<ClientPermit, ApiError> {
        let full = ApiError::Limit { what: "clients", limit: self.limit, setting: "limits.clients" };
        let quota = self.quota.acquire(tenant::split(name).0, 1)?;
        self.take(self.limit, quota).ok_or(full)
    }

    /// A permit for a client that may be new, as long as there are plenty.
    pub(crate) fn acquire_in_advance(self: &Arc<Self>, name: &str) -> Option<ClientPermit> {
        let quota = self.quota.acquire_in_advance(tenant::split(name).0)?;
        self.take(self.limit.saturating_sub(AMPLE), quota)
    }

    /// A permit for a client that there was before the broker began; it has one whatever the limits are now.
    pub(crate) fn acquire_again(self: &Arc<Self>, name: &str) -> ClientPermit {
        self.taken.fetch_add(1, Ordering::Relaxed);
        ClientPermit { limit: Arc::clone(self), _quota: self.quota.acquire_again(tenant::split(name).0, 1) }
    }

    fn take(self: &Arc<Self>, limit: u64, quota: QuotaPermit) -> Option<ClientPermit> {
        let one_more = |taken: u64| (taken < limit).then(|| taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| ClientPermit { limit: Arc::clone(self), _quota: quota })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.limit.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Allotment;

    fn limit(limit: u64, quota: u64) -> Arc<ClientLimit> {
        ClientLimit::new(
            limit,
            Quota::new("clients of one tenant", "quotas.tenant_clients", Allotment::of(quota)),
        )
    }

    #[test]
    fn places_are_never_more_than_the_limit_and_come_back() {
        let full = limit(AMPLE + 1, 0);
        let early = full.acquire_in_advance("a").unwrap();
        assert!(full.acquire_in_advance("b").is_none());
        let rest: Vec<_> = (0..AMPLE).map(|_| full.acquire("b").unwrap()).collect();
        assert!(matches!(full.acquire("b"), Err(ApiError::Limit { limit: 1_001, .. })));
        drop(early);
        assert!(full.acquire_in_advance("b").is_none());
        assert!(full.acquire("b").is_ok());
        drop(rest);
        assert!(full.acquire_in_advance("b").is_some());
        assert!(limit(AMPLE, 0).acquire_in_advance("b").is_none());
    }

    #[test]
    fn a_tenant_takes_no_more_than_its_quota_and_nothing_of_anothers() {
        let limit = limit(10 * AMPLE, 200);
        let mut permits: Vec<_> = (0..100).map(|_| limit.acquire_in_advance("a").unwrap()).collect();
        assert!(limit.acquire_in_advance("a").is_none(), "near its quota it has to be asked for");
        permits.extend((0..100).map(|_| limit.acquire("a").unwrap()));
        assert!(matches!(limit.acquire("a"), Err(ApiError::Limit { setting: "quotas.tenant_clients", .. })));
        let other = tenant::inside("other", "a");
        assert!(limit.acquire(&other).is_ok() && limit.acquire_in_advance(&other).is_some());
        permits.pop();
        assert!(limit.acquire("a").is_ok());
    }
}
