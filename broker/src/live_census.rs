//! How many objects may be live, over all shards together, and how many of one tenant.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::quota::{Quota, Share};
use crate::refusal::Refusal;
use crate::tenant;

/// The objects that have a place. Nobody but a [`LivePlace`] frees one.
pub(crate) struct LiveCensus {
    limit: u64,
    quota: Arc<Quota>,
    /// A std mutex: held to look one object up and never while a place is dropped. The quota's is taken under it.
    places: Mutex<HashMap<Arc<str>, Weak<LivePlace>, foldhash::fast::RandomState>>,
}

/// The place of a live object, shared by its events: of the one that is live, in every shard, and of newer ones that
/// are on their way there. It is free again when the last of them is gone.
pub(crate) struct LivePlace {
    object: Arc<str>,
    census: Arc<LiveCensus>,
    _share: Share,
}

impl LiveCensus {
    pub(crate) fn new(limit: u64, quota: Arc<Quota>) -> Arc<Self> {
        Arc::new(Self { limit, quota, places: Mutex::default() })
    }

    /// The place of an object; one that is live shares the place that it has, and a new one may find none.
    pub(crate) fn place(self: &Arc<Self>, object: &str) -> Result<Arc<LivePlace>, Refusal> {
        self.place_within(object, Some(self.limit))
    }

    fn place_within(self: &Arc<Self>, object: &str, limit: Option<u64>) -> Result<Arc<LivePlace>, Refusal> {
        let mut places = self.places();
        let known = places.get(object);
        if let Some(place) = known.and_then(Weak::upgrade) {
            return Ok(place);
        }
        // One that is known was held by somebody who is about to free it, and will find it taken anew.
        let limit = limit.filter(|_| known.is_none());
        if limit.is_some_and(|limit| places.len() as u64 >= limit) {
            let setting = "limits.live_events";
            return Err(Refusal::Limit { what: "live objects", limit: self.limit, setting });
        }
        let tenant = tenant::split(object).0;
        let share =
            if limit.is_some() { self.quota.share(tenant, 1)? } else { self.quota.share_again(tenant, 1) };
        let (object, census) = (Arc::from(object), Arc::clone(self));
        let place = Arc::new(LivePlace { object: Arc::clone(&object), census, _share: share });
        places.insert(object, Arc::downgrade(&place));
        Ok(place)
    }

    /// The place of an object that was live before the broker began; it has one whatever the limit is now.
    pub(crate) fn place_again(self: &Arc<Self>, object: &str) -> Arc<LivePlace> {
        self.place_within(object, None).expect("there is no limit")
    }

    /// How many there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// How many objects have a place.
    pub(crate) fn count(&self) -> usize {
        self.places().len()
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    fn places(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<LivePlace>, foldhash::fast::RandomState>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LivePlace {
    /// Whose place it is.
    pub(crate) fn object(&self) -> &Arc<str> {
        &self.object
    }
}

impl Drop for LivePlace {
    fn drop(&mut self) {
        let mut places = self.census.places();
        let is_this = |place: &Weak<Self>| std::ptr::eq(place.as_ptr(), self);
        if places.get(&self.object).is_some_and(is_this) {
            places.remove(&self.object);
        }
    }
}

impl fmt::Debug for LivePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LivePlace").field("object", &self.object).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::config::Allotment;

    fn census(limit: u64) -> Arc<LiveCensus> {
        LiveCensus::new(
            limit,
            Quota::new("live objects of one tenant", "quotas.tenant_live_events", Allotment::of(0)),
        )
    }

    #[test]
    fn a_tenant_has_its_own_bound() {
        let quota = Quota::new("live objects of one tenant", "quotas.tenant_live_events", Allotment::of(1));
        let census = LiveCensus::new(9, quota);
        let of = |tenant: &str, key: &str| tenant::inside(tenant, key).into_owned();
        let a = census.place(&of("a", "key:1")).unwrap();
        let again = census.place(&of("a", "key:1")).unwrap();
        let refused = census.place(&of("a", "key:2"));
        assert!(matches!(
            refused,
            Err(Refusal::Limit { limit: 1, setting: "quotas.tenant_live_events", .. })
        ));
        assert!(census.place(&of("b", "key:2")).is_ok());
        let beyond = census.place_again(&of("a", "key:3"));
        drop((a, again, beyond));
        assert!(census.place(&of("a", "key:2")).is_ok());
        assert_eq!(census.count(), 0);
    }

    #[test]
    fn a_new_object_needs_a_place_and_a_live_one_shares_its_own() {
        let census = census(2);
        let a = census.place("key:a").unwrap();
        let b = census.place("id:a").unwrap();
        let full = Refusal::Limit { what: "live objects", limit: 2, setting: "limits.live_events" };
        assert_eq!(census.place("key:c").unwrap_err(), full);
        let again = census.place("key:a").unwrap();
        assert!(Arc::ptr_eq(&a, &again) && Arc::ptr_eq(a.object(), again.object()));
        drop(a);
        assert_eq!(census.count(), 2);
        drop(again);
        assert_eq!(census.count(), 1);
        let c = census.place("key:c").unwrap();
        assert!(census.place("key:a").is_err());
        drop((b, c));
        assert_eq!(census.count(), 0);
    }

    #[test]
    fn who_leaves_does_not_take_the_place_of_who_came_since() {
        let census = census(1);
        let place = census.place("key:a").unwrap();
        // As when the last holder has let go and not yet taken the lock: nobody can share its place any more.
        let leaving = Arc::into_inner(place).unwrap();
        let new = census.place("key:a").unwrap();
        drop(leaving);
        assert_eq!(census.count(), 1);
        assert!(Arc::ptr_eq(&new, &census.place("key:a").unwrap()));
    }

    #[test]
    fn threads_that_come_and_go_never_pass_the_limit_and_leave_nothing() {
        const LIMIT: usize = 3;
        const THREADS: usize = 4;
        const ROUNDS: usize = 20_000;
        let census = census(LIMIT as u64);
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (census, start) = (&census, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut held = Vec::new();
                    for round in 0..ROUNDS {
                        let object = format!("key:{}", (round * 7 + thread * 3) % 5);
                        match census.place(&object) {
                            Ok(place) => {
                                assert_eq!(**place.object(), *object);
                                // Held by somebody, an object has one place.
                                assert!(Arc::ptr_eq(&place, &census.place(&object).unwrap()));
                                held.push(place);
                            }
                            Err(refusal) => assert!(matches!(refusal, Refusal::Limit { .. })),
                        }
                        assert!(census.count() <= LIMIT);
                        if round % 3 == thread % 3 {
                            held.clear();
                        }
                    }
                });
            }
        });
        assert_eq!(census.count(), 0);
    }
}
