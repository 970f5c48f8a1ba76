//! A rate, and what is left of it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many a second, of which one second's worth may come at once (a token bucket).
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u32,
    /// What is left, and when that was so. A std mutex: held for a subtraction.
    left: Mutex<(f64, Instant)>,
}

impl Bucket {
    /// A full one. One of 0 a second never runs out.
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, left: Mutex::new((f64::from(per_second), now)) }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self, now: Instant) -> bool {
        self.take_within(now, 1.0)
    }

    /// Takes one, be there one or not: those that come next wait for it, for a second at most.
    pub(super) fn take_anyhow(&self, now: Instant) {
        self.take_within(now, f64::NEG_INFINITY);
    }

    /// Whether it is full, so that a new one would do as well.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.per_second == 0 || self.filled(&self.left(), now) >= f64::from(self.per_second)
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
        let most = f64::from(self.per_second);
        (left + now.saturating_duration_since(*at).as_secs_f64() * most).min(most)
    }

    fn left(&self) -> MutexGuard<'_, (f64, Instant)> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn what_is_taken_anyhow_is_missing_for_a_second_at_most() {
        let start = Instant::now();
        let bucket = Bucket::new(10, start);
        (0..1_000).for_each(|_| bucket.take_anyhow(start));
        assert!(!bucket.take(start + Duration::from_millis(1_050)));
        assert!(bucket.take(start + Duration::from_millis(1_101)));
    }
}
