//! The time by which lives end and dwells are over.
//!
//! On one machine it is the clock's. In a cluster with a stream of events a shard that is behind, after a takeover or a pause, has yet to
//! read what others published meanwhile: an object whose life ended by the clock may have been published again. There it is the
//! stream's, as far as that has been read.

use std::time::Duration;

use matcher::live::Moment;

/// How far the time goes on beyond that up to which the stream is known to have been read. While nothing comes, a reader hears
/// twice a second that there is nothing.
const BEYOND: Duration = Duration::from_millis(1_200);

/// Says what time it is for what is live.
#[derive(Debug)]
pub(super) struct LivesClock {
    /// Up to when the stream has been read; `None` without one.
    read: Option<Moment>,
}

impl LivesClock {
    /// A clock for a shard. That of one that reads a stream stands still until something is known of it.
    pub(super) fn new(reads_stream: bool) -> Self {
        Self { read: reads_stream.then_some(Moment::ZERO) }
    }

    /// Everything that the stream got up to a time has been read.
    pub(super) fn read_until(&mut self, at: Moment) {
        self.read = self.read.map(|read| read.max(at));
    }

    /// The time. It never goes back as long as `now` does not.
    pub(super) fn at(&self, now: Moment) -> Moment {
        self.read.map_or(now, |read| now.min(read + BEYOND))
    }

    /// Whether the clock will get to a time by itself.
    pub(super) fn gets_to(&self, at: Moment) -> bool {
        self.at(at) == at
    }
}

/// The moment of a time of day, in Unix milliseconds. `now` and `now_ms` are one time by both clocks.
pub(super) fn moment_of(at_ms: u64, now: Moment, now_ms: u64) -> Moment {
    let left = Duration::from_millis(at_ms.saturating_sub(now_ms));
    now.saturating_sub(Duration::from_millis(now_ms.saturating_sub(at_ms))).saturating_add(left)
}

/// The time of day of a moment, in Unix milliseconds, as with [`moment_of`].
pub(super) fn unix_ms_of(at: Moment, now: Moment, now_ms: u64) -> u64 {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    now_ms.saturating_sub(ms(now.saturating_sub(at))).saturating_add(ms(at.saturating_sub(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn moments_are_times_of_day_before_and_after_now() {
        let now = 100 * SECOND;
        for (at_ms, at) in [(5_000, now), (4_000, 99 * SECOND), (7_000, 102 * SECOND)] {
            assert_eq!((moment_of(at_ms, now, 5_000), unix_ms_of(at, now, 5_000)), (at, at_ms));
        }
        assert_eq!(moment_of(0, SECOND, 5_000), Moment::ZERO);
    }

    #[test]
    fn without_a_stream_it_is_the_clocks() {
        let mut clock = LivesClock::new(false);
        clock.read_until(SECOND);
        assert_eq!(clock.at(100 * SECOND), 100 * SECOND);
        assert!(clock.gets_to(100 * SECOND));
    }

    #[test]
    fn with_a_stream_it_stops_a_little_behind_what_was_read_and_goes_on_with_that() {
        let mut clock = LivesClock::new(true);
        assert_eq!(clock.at(100 * SECOND), BEYOND);
        clock.read_until(50 * SECOND);
        assert_eq!(clock.at(100 * SECOND), 50 * SECOND + BEYOND);
        assert!(clock.gets_to(51 * SECOND) && !clock.gets_to(52 * SECOND));
        clock.read_until(40 * SECOND);
        assert_eq!(clock.at(100 * SECOND), 50 * SECOND + BEYOND, "it never goes back");
        clock.read_until(100 * SECOND);
        assert_eq!(clock.at(100 * SECOND), 100 * SECOND);
    }
}
