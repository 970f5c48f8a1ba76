//! What the situations of one tenant take together, so that no tenant feels another one's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::publishing::Window;
use crate::config;

/// Time of threads that a tenant may save up.
const SAVED: Duration = Duration::from_secs(1);

/// The shares of all tenants that have situations.
pub(super) struct Shares {
    /// Seconds of evaluation that a tenant may take each second.
    rate: f64,
    /// A std mutex: held for a look.
    shares: Mutex<BTreeMap<Arc<str>, Weak<Share>>>,
}

/// What one tenant's situations take.
pub(super) struct Share {
    rate: f64,
    /// A std mutex: held for a few additions.
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    situations_count: usize,
    state_bytes: usize,
    findings: Window,
    /// When its time is paid for.
    due: Option<Instant>,
}

impl Shares {
    pub(super) fn new(threads: usize, settings: &config::Situations) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many threads")]
        let rate = threads as f64 * settings.tenant_time_share;
        Self { rate, shares: Mutex::default() }
    }

    /// The share of a tenant, for a situation that begins.
    pub(super) fn begin(&self, tenant: &Arc<str>) -> Holding {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        let share = shares.get(tenant).and_then(Weak::upgrade).unwrap_or_else(|| {
            let share = Arc::new(Share { rate: self.rate, taken: Mutex::default() });
            shares.insert(Arc::clone(tenant), Arc::downgrade(&share));
            share
        });
        drop(shares);
        share.taken().situations_count += 1;
        Holding { share, state_bytes: 0 }
    }
}

impl Share {
    /// A panic under the lock is impossible but for memory running out.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tenant may publish one more finding in this second.
    pub(super) fn takes_finding(&self, now: Instant, limit: u32) -> bool {
        self.taken().findings.takes(now, limit)
    }

    /// How long the tenant has to wait until it may evaluate again.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.taken().due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now))
    }

    /// Charges an evaluation.
    pub(super) fn pay(&self, now: Instant, took: Duration) {
        // A share is no less than a millionth, so that this is no more than some months.
        let costs = took.div_f64(self.rate.max(1e-6));
        let saved = now.checked_sub(SAVED).unwrap_or(now);
        let mut taken = self.taken();
        taken.due = taken.due.map_or(saved, |due| due.max(saved)).checked_add(costs);
    }
}

/// The part of a share that one situation holds.
pub(super) struct Holding {
    pub(super) share: Arc<Share>,
    state_bytes: usize,
}

impl Holding {
    /// Notes what the situation's state takes. Returns whether it is more than its part of what its tenant may have, where that is
    /// used up: then the state has to go.
    pub(super) fn is_too_much(&mut self, state_bytes: usize, limit: usize) -> bool {
        let mut taken = self.share.taken();
        taken.state_bytes = taken.state_bytes - self.state_bytes + state_bytes;
        self.state_bytes = state_bytes;
        limit > 0 && taken.state_bytes > limit && state_bytes > limit / taken.situations_count.max(1)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let mut taken = self.share.taken();
        taken.situations_count -= 1;
        taken.state_bytes -= self.state_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> Shares {
        Shares { rate: 0.5, shares: Mutex::default() }
    }

    #[test]
    fn the_largest_of_a_tenant_gives_way_and_others_do_not_feel_it() {
        let shares = shares();
        let (acme, other) = ("acme".into(), "other".into());
        let (mut small, mut large, mut far) =
            (shares.begin(&acme), shares.begin(&acme), shares.begin(&other));
        assert!(!large.is_too_much(900, 1_000));
        assert!(!small.is_too_much(200, 1_000), "it has less than its part");
        assert!(large.is_too_much(901, 1_000));
        assert!(!far.is_too_much(900, 1_000));
        assert!(!large.is_too_much(0, 1_000));
        drop(large);
        assert!(!small.is_too_much(1_000, 1_000), "it is alone now");
        assert!(small.is_too_much(1_001, 1_000));
        assert!(!small.is_too_much(usize::MAX / 2, 0), "without a bound");
    }

    #[test]
    fn time_beyond_a_share_is_waited_for() {
        let shares = shares();
        let (acme, other) = (shares.begin(&"acme".into()), shares.begin(&"other".into()));
        let now = Instant::now() + Duration::from_secs(60);
        acme.share.pay(now, Duration::from_millis(400));
        assert_eq!(acme.share.wait(now), Duration::ZERO, "it had saved a second");
        acme.share.pay(now, Duration::from_millis(600));
        assert_eq!(acme.share.wait(now), Duration::from_secs(1));
        assert_eq!(other.share.wait(now), Duration::ZERO);
        assert_eq!(acme.share.wait(now + Duration::from_secs(1)), Duration::ZERO);
    }
}
