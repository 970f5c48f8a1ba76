//! How long a broker of a cluster may take itself for its one active broker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time at which the cluster was last known to have this broker as its active one.
///
/// It is looked at when something is acknowledged, by a clock that goes on while the process is stopped. So a broker that was stopped and
/// goes on acknowledges nothing that is another's to acknowledge.
#[derive(Debug)]
pub(crate) struct Lease {
    begun: Instant,
    /// Milliseconds from then on.
    confirmed_ms: AtomicU64,
    time: Duration,
}

impl Lease {
    /// A lease of some time, confirmed now.
    pub(crate) fn new(time: Duration) -> Self {
        Self { begun: Instant::now(), confirmed_ms: AtomicU64::new(0), time }
    }

    /// Renews it by what was known at a time. An older time than the last changes nothing.
    pub(crate) fn confirm(&self, at: Instant) {
        let ms = u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX);
        self.confirmed_ms.fetch_max(ms, Ordering::Relaxed);
    }

    /// How long ago it was confirmed.
    pub(crate) fn age(&self) -> Duration {
        let confirmed = Duration::from_millis(self.confirmed_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(confirmed)
    }

    /// Whether it is in force.
    pub(crate) fn is_valid(&self) -> bool {
        self.age() < self.time
    }
}
