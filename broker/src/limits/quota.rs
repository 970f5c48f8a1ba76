//! How much of something each tenant may have, over all shards together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crate::config::{Allotment, Allotments, Config};
use crate::model::error::ApiError;

/// A quota: for each tenant, the count of what it has of something. Nobody but a [`QuotaPermit`] changes a count.
pub(crate) struct Quota {
    what: &'static str,
    setting: &'static str,
    /// Where any number may be had, nothing is counted.
    allotment: Allotment,
    /// Tallies of the tenants that have something, by name. The lock is held to look one up, or to put one in or out.
    tallies: RwLock<HashMap<Arc<str>, Weak<Tally>, foldhash::fast::RandomState>>,
}

/// The count of one tenant.
struct Tally {
    tenant: Arc<str>,
    taken: AtomicU64,
    quota: Arc<Quota>,
}

/// Some of those that a tenant may have, free again when this is dropped; nothing where any number may be had.
#[derive(Default)]
pub(crate) struct QuotaPermit {
    count: u64,
    tally: Option<Arc<Tally>>,
}

/// Shares that must be left before one is given to somebody who may not need it: half of all within these bounds. Closer to the limit
/// a client that is known could otherwise keep one from another that is new.
const AMPLE: std::ops::RangeInclusive<u64> = 64..=1_000;

/// The quotas of the settings. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Quotas {
    pub(crate) clients: Arc<Quota>,
    pub(crate) subscriptions: Arc<Quota>,
    pub(crate) constraints: Arc<Quota>,
    pub(crate) live_events: Arc<Quota>,
    pub(crate) connections: Arc<Quota>,
    pub(crate) push_messages: Arc<Quota>,
}

impl Quotas {
    pub(crate) fn new(config: &Config) -> Self {
        let Allotments {
            clients, subscriptions, constraints, live_events, connections, push_messages, ..
        } = config.allotments();
        Self {
            clients: Quota::new("clients of one tenant", "quotas.tenant_clients", clients),
            subscriptions: Quota::new(
                "subscriptions of one tenant",
                "quotas.tenant_subscriptions",
                subscriptions,
            ),
            constraints: Quota::new(
                "constraints in the subscriptions of one tenant",
                "quotas.tenant_constraints",
                constraints,
            ),
            live_events: Quota::new("live objects of one tenant", "quotas.tenant_live_events", live_events),
            connections: Quota::new(
                "connections that read for clients of one tenant",
                "quotas.tenant_connections",
                connections,
            ),
            push_messages: Quota::new(
                "push messages for one tenant that wait",
                "quotas.tenant_push_messages",
                push_messages,
            ),
        }
    }
}

impl Quota {
    pub(crate) fn new(what: &'static str, setting: &'static str, allotment: Allotment) -> Arc<Self> {
        Arc::new(Self { what, setting, allotment, tallies: RwLock::default() })
    }

    /// Returns a quota without a limit: a tenant may have any number.
    pub(crate) fn none() -> Arc<Self> {
        Self::new("", "", Allotment::of(0))
    }

    /// Takes `count` more for a tenant, or none of them. Refuses where that would pass the tenant's limit.
    pub(crate) fn acquire(self: &Arc<Self>, tenant: &str, count: u64) -> Result<QuotaPermit, ApiError> {
        let limit = self.allotment.limit(tenant);
        let full = ApiError::Limit { what: self.what, limit, setting: self.setting };
        self.take(tenant, count, limit).ok_or(full)
    }

    /// One for a tenant that may not need it, as long as it has plenty.
    ///
    /// Cost: as that of any other, a look into a table under a lock that is shared; none where there is no limit.
    pub(crate) fn acquire_in_advance(self: &Arc<Self>, tenant: &str) -> Option<QuotaPermit> {
        let limit = self.allotment.limit(tenant);
        let ample = (limit / 2).clamp(*AMPLE.start(), *AMPLE.end());
        self.take(tenant, 1, limit.saturating_sub(ample))
    }

    /// Takes `count` that a tenant had before the broker began; it has them whatever the limit is now.
    pub(crate) fn acquire_again(self: &Arc<Self>, tenant: &str, count: u64) -> QuotaPermit {
        self.take(tenant, count, u64::MAX).expect("nobody has so many")
    }

    fn take(self: &Arc<Self>, tenant: &str, count: u64, limit: u64) -> Option<QuotaPermit> {
        if self.allotment.limit(tenant) == 0 || count == 0 {
            return Some(QuotaPermit::default());
        }
        let tally = self.tally(tenant);
        let more = |taken: u64| taken.checked_add(count).filter(|taken| *taken <= limit);
        tally.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(QuotaPermit { count, tally: Some(tally) })
    }

    fn tally(self: &Arc<Self>, tenant: &str) -> Arc<Tally> {
        if let Some(tally) = self.read().get(tenant).and_then(Weak::upgrade) {
            return tally;
        }
        let mut tallies = self.write();
        // Somebody may have come first, or the last permit be on its way out: its tally counts nothing any more.
        if let Some(tally) = tallies.get(tenant).and_then(Weak::upgrade) {
            return tally;
        }
        let tenant: Arc<str> = tenant.into();
        let (taken, quota) = (AtomicU64::new(0), Arc::clone(self));
        let tally = Arc::new(Tally { tenant: Arc::clone(&tenant), taken, quota });
        tallies.insert(tenant, Arc::downgrade(&tally));
        tally
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Weak<Tally>, foldhash::fast::RandomState>> {
        self.tallies.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Weak<Tally>, foldhash::fast::RandomState>> {
        self.tallies.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaPermit {
    /// Takes in what the same tenant has of the same besides.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.count += std::mem::take(&mut other.count);
        if self.tally.is_none() {
            self.tally = other.tally.take();
        }
    }

    /// Gives back all but `count`.
    pub(crate) fn shrink(&mut self, count: u64) {
        let surplus = self.count.saturating_sub(count);
        self.count -= surplus;
        if let Some(tally) = &self.tally {
            tally.taken.fetch_sub(surplus, Ordering::Relaxed);
        }
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let mut tallies = self.quota.write();
        let is_this = |tally: &Weak<Self>| std::ptr::eq(tally.as_ptr(), self);
        if tallies.get(&self.tenant).is_some_and(is_this) {
            tallies.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn each_tenant_has_its_own_and_gives_it_back() {
        let quota = Quota::new("things", "quotas.things", Allotment::of(2));
        let (first, second) = (quota.acquire("a", 1).unwrap(), quota.acquire("a", 1).unwrap());
        let full = ApiError::Limit { what: "things", limit: 2, setting: "quotas.things" };
        assert_eq!(quota.acquire("a", 1).err(), Some(full));
        assert!(quota.acquire("", 1).is_ok() && quota.acquire("b", 1).is_ok());
        drop(first);
        let again = quota.acquire_again("a", 1);
        let beyond = quota.acquire_again("a", 1);
        assert!(quota.acquire("a", 1).is_err());
        drop((again, beyond, second));
        assert!(quota.acquire("a", 1).is_ok());
        assert!(quota.read().is_empty());
    }

    #[test]
    fn shares_of_many_grow_and_shrink() {
        let quota = Quota::new("things", "quotas.things", Allotment::of(10));
        let mut held = quota.acquire("a", 6).unwrap();
        assert!(quota.acquire("a", 5).is_err(), "all or none");
        assert!(quota.acquire("a", u64::MAX).is_err());
        held.join(quota.acquire("a", 4).unwrap());
        assert!(quota.acquire("a", 1).is_err());
        assert!(quota.acquire("a", 0).is_ok());
        held.shrink(3);
        held.shrink(5);
        drop(quota.acquire("a", 7).unwrap());
        let mut none = QuotaPermit::default();
        none.join(held);
        assert!(quota.acquire("a", 8).is_err());
        drop(none);
        assert!(quota.read().is_empty());
    }

    #[test]
    fn in_advance_there_are_some_while_there_are_plenty() {
        for (limit, advance) in [(1, 0), (64, 0), (100, 36), (400, 200), (5_000, 4_000)] {
            let quota = Quota::new("things", "quotas.things", Allotment::of(limit));
            let held: Vec<_> = std::iter::from_fn(|| quota.acquire_in_advance("a")).collect();
            assert_eq!(held.len(), advance, "{limit}");
            let rest: Vec<_> = std::iter::from_fn(|| quota.acquire("a", 1).ok()).collect();
            assert_eq!((held.len() + rest.len()) as u64, limit);
        }
        let none = Quota::new("things", "quotas.things", Allotment::of(0));
        assert!(none.acquire("a", 1).is_ok() && none.acquire_in_advance("a").is_some());
        assert!(none.read().is_empty());
    }

    #[test]
    fn threads_that_come_and_go_never_pass_the_limit_and_leave_nothing() {
        const LIMIT: u64 = 3;
        const ROUNDS: usize = 20_000;
        let quota = Quota::new("things", "quotas.things", Allotment::of(LIMIT));
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (quota, start) = (&quota, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut held = Vec::new();
                    for round in 0..ROUNDS {
                        held.extend(quota.acquire("a", 1).ok());
                        let tally = quota.read().get("a").and_then(Weak::upgrade);
                        assert!(tally.is_none_or(|tally| tally.taken.load(Ordering::Relaxed) <= LIMIT));
                        if round % 3 == thread % 3 {
                            held.clear();
                        }
                    }
                });
            }
        });
        assert!(quota.read().is_empty());
        let all: Vec<_> = std::iter::from_fn(|| quota.acquire("a", 1).ok()).collect();
        assert_eq!(all.len() as u64, LIMIT);
    }
}
