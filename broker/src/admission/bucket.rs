//! A rate, and what is left of it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A token bucket: a rate in tokens per second, of which some may be taken at once.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u32,
    at_once: u32,
    /// The tokens that are left, and the moment when that was so. A std mutex: held for a subtraction.
    left: Mutex<(f64, Instant)>,
}

impl Bucket {
    /// A full one, which holds one second's worth. One of 0 a second never runs out.
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self::holding(per_second, 1, now)
    }

    /// Makes a full bucket that holds the worth of `seconds` seconds.
    pub(super) fn holding(per_second: u32, seconds: u32, now: Instant) -> Self {
        let at_once = per_second.saturating_mul(seconds);
        Self { per_second, at_once, left: Mutex::new((f64::from(at_once), now)) }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self, now: Instant) -> bool {
        self.take_within(now, 1.0)
    }

    /// Takes one, be there one or not: those that come next wait for it, for a second at most.
    pub(super) fn take_anyhow(&self, now: Instant) {
        self.take_within(now, f64::NEG_INFINITY);
    }

    /// Takes many, be they there or not, and says after what time they would have been; `None`, and nothing is taken, where that
    /// is too long.
    pub(super) fn take_ahead(&self, now: Instant, count: usize, longest: Duration) -> Option<Duration> {
        if self.per_second == 0 {
            return Some(Duration::ZERO);
        }
        let mut left = self.left();
        #[expect(clippy::cast_precision_loss, reason = "nothing is that large")]
        let rest = self.filled(&left, now) - count as f64;
        let pause = Duration::try_from_secs_f64((-rest).max(0.0) / f64::from(self.per_second));
        let pause = pause.unwrap_or(Duration::MAX);
        if pause > longest {
            return None;
        }
        *left = (rest, now.max(left.1));
        Some(pause)
    }

    /// Whether it is full, so that a new one would do as well.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.per_second == 0 || self.filled(&self.left(), now) >= f64::from(self.at_once)
    }

    fn take_within(&self, now: Instant, least: f64) -> bool {
        if self.per_second == 0 {
            return true;
        }
        let mut left = self.left();
        let filled = self.filled(&left, now);
        let is_taken = filled >= least;
        let rest = if is_taken { (filled - 1.0).max(-f64::from(self.per_second)) } else { filled };
        *left = (rest, now.max(left.1));
        is_taken
    }

    fn filled(&self, (left, at): &(f64, Instant), now: Instant) -> f64 {
        let passed = now.saturating_duration_since(*at).as_secs_f64();
        (left + passed * f64::from(self.per_second)).min(f64::from(self.at_once))
    }

    fn left(&self) -> MutexGuard<'_, (f64, Instant)> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_may_come_at_once_and_no_more() {
        let start = Instant::now();
        let bucket = Bucket::new(2, start);
        assert!(bucket.is_full(start));
        assert_eq!([(); 3].map(|()| bucket.take(start)), [true, true, false]);
        let later = start + Duration::from_millis(500);
        assert_eq!([(); 2].map(|()| bucket.take(later)), [true, false]);
        assert!(!bucket.is_full(later) && bucket.is_full(later + Duration::from_secs(1)));
        let unlimited = Bucket::new(0, start);
        assert!((0..1_000).all(|_| unlimited.take(start)) && unlimited.is_full(start));
    }

    #[test]
    fn what_is_taken_ahead_is_waited_for() {
        let start = Instant::now();
        let bucket = Bucket::holding(10, 2, start);
        let take = |at, count| bucket.take_ahead(at, count, Duration::from_secs(5));
        assert_eq!(
            [take(start, 20), take(start, 15)],
            [Some(Duration::ZERO), Some(Duration::from_millis(1_500))]
        );
        assert_eq!(take(start, 36), None);
        assert_eq!(take(start, 35), Some(Duration::from_secs(5)));
        assert!(
            bucket.is_full(start + Duration::from_secs(7)) && !bucket.is_full(start + Duration::from_secs(6))
        );
        assert_eq!(Bucket::new(0, start).take_ahead(start, usize::MAX, Duration::ZERO), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_taken_anyhow_is_missing_for_a_second_at_most() {
        let start = Instant::now();
        let bucket = Bucket::new(10, start);
        (0..1_000).for_each(|_| bucket.take_anyhow(start));
        assert!(!bucket.take(start + Duration::from_millis(1_050)));
        assert!(bucket.take(start + Duration::from_millis(1_101)));
    }
}
