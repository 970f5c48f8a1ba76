//! How late tasks get their turn: whatever is read and written waits for that.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// The weight of a sample that is below the mean is one part in this many. A sample above it counts at once.
const DECAY: u64 = 8;

/// The delay of tasks. Written by a task that has its turn; nobody waits for it.
#[derive(Debug, Default)]
pub(super) struct Lag {
    now_ns: AtomicU64,
    /// Nanoseconds that the woken writers since the last look have waited for their turn in all; `writers` is their number.
    waited_ns: AtomicU64,
    writers: AtomicU64,
}

impl Lag {
    /// How late they are now.
    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    /// A writer that was woken waited so long for its turn.
    pub(super) fn writer(&self, waited: Duration) {
        self.waited_ns.fetch_add(nanoseconds(waited), Ordering::Relaxed);
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// Looks at it for as long as it is polled.
    pub(super) async fn watch(&self) -> Infallible {
        loop {
            let due = tokio::time::Instant::now() + INTERVAL;
            tokio::time::sleep_until(due).await;
            // The clock that wakes sleepers goes by milliseconds.
            self.look(due.elapsed().saturating_sub(Duration::from_millis(1)));
        }
    }

    /// Takes a sample. `late` is how late the watching task itself was.
    fn look(&self, late: Duration) {
        let (waited_ns, writers) =
            (self.waited_ns.swap(0, Ordering::Relaxed), self.writers.swap(0, Ordering::Relaxed));
        let found_ns = nanoseconds(late).max(waited_ns.checked_div(writers).unwrap_or(0));
        let before_ns = self.now_ns.load(Ordering::Relaxed);
        let decayed_ns = before_ns / DECAY * (DECAY - 1) + found_ns / DECAY;
        self.now_ns.store(found_ns.max(decayed_ns), Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_counts_at_once_and_less_after_a_while() {
        let lag = Lag::default();
        let ms = Duration::from_millis;
        lag.look(ms(3));
        assert_eq!(lag.now(), ms(3));
        [10, 20, 30].into_iter().for_each(|waited| lag.writer(ms(waited)));
        lag.look(ms(1));
        assert_eq!(lag.now(), ms(20));
        lag.look(ms(4));
        assert_eq!(lag.now(), ms(18));
        (0..40).for_each(|_| lag.look(Duration::ZERO));
        assert!(lag.now() < ms(1));
    }
}
