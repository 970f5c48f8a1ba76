//! How many objects may be live, over all shards together, and how many of one tenant.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Quota, QuotaPermit};
use crate::model::error::ApiError;
use crate::model::tenant;

/// The objects that have a permit. Nobody but a [`LivePermit`] frees one.
pub(crate) struct LiveLimit {
    limit: u64,
    quota: Arc<Quota>,
    /// A std mutex: held to look one object up and never while a permit is dropped. The quota's is taken under it.
    permits: Mutex<HashMap<Arc<str>, Weak<LivePermit>, foldhash::fast::RandomState>>,
}

/// The permit of a live object, shared by its events: of the one that is live, in every shard, and of newer ones that
/// are on their way there. It is free again when the last of them is gone.
pub(crate) struct LivePermit {
    object: Arc<str>,
    limits: Arc<LiveLimit>,
    _quota: QuotaPermit,
}

impl LiveLimit {
    pub(crate) fn new(limit: u64, quota: Arc<Quota>) -> Arc<Self> {
        Arc::new(Self { limit, quota, permits: Mutex::default() })
    }

    /// The permit of an object; one that is live shares the permit that it has, and a new one may find none.
    pub(crate) fn acquire(self: &Arc<Self>, object: &str) -> Result<Arc<LivePermit>, ApiError> {
        self.acquire_within(object, Some(self.limit))
    }

    fn acquire_within(
        self: &Arc<Self>,
        object: &str,
        limit: Option<u64>,
    ) -> Result<Arc<LivePermit>, ApiError> {
        let mut permits = self.permits();
        let known = permits.get(object);
        if let Some(permit) = known.and_then(Weak::upgrade) {
            return Ok(permit);
        }
        // One that is known was held by somebody who is about to free it, and will find it taken anew.
        let limit = limit.filter(|_| known.is_none());
        if limit.is_some_and(|limit| permits.len() as u64 >= limit) {
            let setting = "limits.live_events";
            return Err(ApiError::Limit { what: "live objects", limit: self.limit, setting });
        }
        let tenant = tenant::split(object).0;
        let share = if limit.is_some() {
            self.quota.acquire(tenant, 1)?
        } else {
            self.quota.acquire_again(tenant, 1)
        };
        let (object, limits) = (Arc::from(object), Arc::clone(self));
        let permit = Arc::new(LivePermit { object: Arc::clone(&object), limits, _quota: share });
        permits.insert(object, Arc::downgrade(&permit));
        Ok(permit)
    }

    /// The permit of an object that was live before the broker began; it has one whatever the limit is now.
    pub(crate) fn acquire_again(self: &Arc<Self>, object: &str) -> Arc<LivePermit> {
        self.acquire_within(object, None).expect("there is no limit")
    }

    /// How many there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// How many objects have a permit.
    pub(crate) fn count(&self) -> usize {
        self.permits().len()
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    fn permits(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<LivePermit>, foldhash::fast::RandomState>> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LivePermit {
    /// Name of the object that the permit is for.
    pub(crate) fn object(&self) -> &Arc<str> {
        &self.object
    }
}

impl Drop for LivePermit {
    fn drop(&mut self) {
        let mut permits = self.limits.permits();
        let is_this = |permit: &Weak<Self>| std::ptr::eq(permit.as_ptr(), self);
        if permits.get(&self.object).is_some_and(is_this) {
            permits.remove(&self.object);
        }
    }
}

impl fmt::Debug for LivePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LivePermit").field("object", &self.object).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::config::Allotment;

    fn limits(limit: u64) -> Arc<LiveLimit> {
        LiveLimit::new(
            limit,
            Quota::new("live objects of one tenant", "quotas.tenant_live_events", Allotment::of(0)),
        )
    }

    #[test]
    fn a_tenant_has_its_own_bound() {
        let quota = Quota::new("live objects of one tenant", "quotas.tenant_live_events", Allotment::of(1));
        let limits = LiveLimit::new(9, quota);
        let of = |tenant: &str, key: &str| tenant::inside(tenant, key).into_owned();
        let a = limits.acquire(&of("a", "key:1")).unwrap();
        let again = limits.acquire(&of("a", "key:1")).unwrap();
        let refused = limits.acquire(&of("a", "key:2"));
        assert!(matches!(
            refused,
            Err(ApiError::Limit { limit: 1, setting: "quotas.tenant_live_events", .. })
        ));
        assert!(limits.acquire(&of("b", "key:2")).is_ok());
        let beyond = limits.acquire_again(&of("a", "key:3"));
        drop((a, again, beyond));
        assert!(limits.acquire(&of("a", "key:2")).is_ok());
        assert_eq!(limits.count(), 0);
    }

    #[test]
    fn a_new_object_needs_a_place_and_a_live_one_shares_its_own() {
        let limits = limits(2);
        let a = limits.acquire("key:a").unwrap();
        let b = limits.acquire("id:a").unwrap();
        let full = ApiError::Limit { what: "live objects", limit: 2, setting: "limits.live_events" };
        assert_eq!(limits.acquire("key:c").unwrap_err(), full);
        let again = limits.acquire("key:a").unwrap();
        assert!(Arc::ptr_eq(&a, &again) && Arc::ptr_eq(a.object(), again.object()));
        drop(a);
        assert_eq!(limits.count(), 2);
        drop(again);
        assert_eq!(limits.count(), 1);
        let c = limits.acquire("key:c").unwrap();
        assert!(limits.acquire("key:a").is_err());
        drop((b, c));
        assert_eq!(limits.count(), 0);
    }

    #[test]
    fn who_leaves_does_not_take_the_place_of_who_came_since() {
        let limits = limits(1);
        let permit = limits.acquire("key:a").unwrap();
        // As when the last holder has let go and not yet taken the lock: nobody can share its permit any more.
        let leaving = Arc::into_inner(permit).unwrap();
        let new = limits.acquire("key:a").unwrap();
        drop(leaving);
        assert_eq!(limits.count(), 1);
        assert!(Arc::ptr_eq(&new, &limits.acquire("key:a").unwrap()));
    }

    #[test]
    fn threads_that_come_and_go_never_pass_the_limit_and_leave_nothing() {
        const LIMIT: usize = 3;
        const THREADS: usize = 4;
        const ROUNDS: usize = 20_000;
        let limits = limits(LIMIT as u64);
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (limits, start) = (&limits, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut held = Vec::new();
                    for round in 0..ROUNDS {
                        let object = format!("key:{}", (round * 7 + thread * 3) % 5);
                        match limits.acquire(&object) {
                            Ok(permit) => {
                                assert_eq!(**permit.object(), *object);
                                // Held by somebody, an object has one permit.
                                assert!(Arc::ptr_eq(&permit, &limits.acquire(&object).unwrap()));
                                held.push(permit);
                            }
                            Err(refusal) => assert!(matches!(refusal, ApiError::Limit { .. })),
                        }
                        assert!(limits.count() <= LIMIT);
                        if round % 3 == thread % 3 {
                            held.clear();
                        }
                    }
                });
            }
        });
        assert_eq!(limits.count(), 0);
    }
}
