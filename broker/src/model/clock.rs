//! The time by both clocks, and how far the time of day is believed. For a test, time can stand still on its thread.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time that only goes on.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some((now, _)) = paused::get() {
        return now;
    }
    Instant::now()
}

/// The time of day, in Unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    #[cfg(test)]
    if let Some((_, since)) = paused::get() {
        return millis(since);
    }
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// How long the calling thread has worked: what it waited for a processor does not count. A system call.
pub(crate) fn worked() -> Duration {
    let worked = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(worked).unwrap_or_default()
}

/// A clock that goes ahead by more at once has been set, or was wrong before. What would be over by that is kept for the time
/// being.
pub(crate) const JUMP: Duration = Duration::from_secs(30 * 60);

/// Time for which a jump of the clock is in doubt. A life that would be over by the jump ends if the clock still says so
/// then.
pub(crate) const DOUBT: Duration = Duration::from_secs(10 * 60);

/// The time of day by which everything that may be on disk is dated, and by which it ages. It goes on with the time that only goes
/// on, and never back; where the clock is ahead of it, it follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    unix_ms: u64,
    at: Instant,
    /// How much of that nothing ages by.
    doubted_ms: u64,
    doubt_ends: Option<Instant>,
}

impl Timeline {
    /// Begins where the last run of the broker was seen last, if there was one.
    pub(crate) fn after(last_ms: Option<u64>) -> Self {
        let (at, wall_ms) = (now(), unix_ms());
        let unix_ms = last_ms.unwrap_or(wall_ms);
        let mut timeline = Self { unix_ms, at, doubted_ms: 0, doubt_ends: None };
        timeline.advance(at, wall_ms);
        timeline
    }

    /// Goes on to now; says whether a doubt has ended.
    pub(crate) fn advance(&mut self, now: Instant, wall_ms: u64) -> bool {
        let passed_ms = millis(now.saturating_duration_since(self.at));
        let expected_ms = self.unix_ms.saturating_add(passed_ms);
        self.unix_ms = expected_ms.max(wall_ms);
        // What is left of a millisecond counts the next time: without it, time would stand still for who looks more often.
        self.at += Duration::from_millis(passed_ms);
        let ahead_ms = wall_ms.saturating_sub(expected_ms);
        if ahead_ms > millis(JUMP) {
            self.doubted_ms = self.doubted_ms.saturating_add(ahead_ms);
            self.doubt_ends = Some(now + DOUBT);
        }
        let ends = self.doubt_ends.is_some_and(|ends| ends <= now);
        if ends {
            self.doubt_ends = None;
            // A clock that was put back again was wrong by as much.
            let behind_ms = self.unix_ms.saturating_sub(wall_ms);
            self.doubted_ms = if behind_ms > millis(JUMP) { self.doubted_ms.min(behind_ms) } else { 0 };
        }
        ends
    }

    /// The time by which things are dated, in Unix milliseconds.
    pub(crate) fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    /// The time by which they age.
    pub(crate) fn ages_ms(&self) -> u64 {
        self.unix_ms.saturating_sub(self.doubted_ms)
    }

    /// The time that the next start may take for the end of this run. It is not ahead of the clock: where that was ahead and was put
    /// back, the next start follows it again.
    pub(crate) fn believed_ms(&self, wall_ms: u64) -> u64 {
        self.ages_ms().min(wall_ms)
    }

    /// The length of the clock's jump, while that is in doubt, and the time when it is settled.
    pub(crate) fn doubt(&self) -> Option<(Duration, Instant)> {
        self.doubt_ends.map(|ends| (Duration::from_millis(self.doubted_ms), ends))
    }
}

/// A time of day as text (RFC 3339, UTC).
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.unwrap_or_default().to_string()
}

thread_local! {
    /// The last second that this thread has written, and its text up to there.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

/// Appends the time of day (RFC 3339, UTC, milliseconds). A second is formatted once.
pub(crate) fn push_time(text: &mut String) {
    let now_ms = unix_ms();
    SECOND.with_borrow_mut(|(second, shown)| {
        if *second != now_ms / 1_000 {
            *second = now_ms / 1_000;
            let timestamp = i64::try_from(*second).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
            *shown = timestamp.unwrap_or_default().to_string();
            shown.pop();
        }
        text.push_str(shown);
    });
    // The digits behind that of the thousand.
    text.push('.');
    text.push_str(&itoa::Buffer::new().format(1_000 + now_ms % 1_000)[1..]);
    text.push('Z');
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod paused {
    use std::cell::Cell;

    use super::{Duration, Instant};

    thread_local! {
        /// The time by both clocks, where it stands still.
        static TIME: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<(Instant, Duration)> {
        TIME.get()
    }

    /// Stops the clocks of this thread at a time of day.
    pub(crate) fn pause(unix_ms: u64) {
        TIME.set(Some((Instant::now(), Duration::from_millis(unix_ms))));
    }

    /// Sets the clock that can be set.
    pub(crate) fn set(unix_ms: u64) {
        if let Some((now, _)) = TIME.get() {
            TIME.set(Some((now, Duration::from_millis(unix_ms))));
        }
    }

    /// Lets time pass on the clocks of this thread, which stand still again after it.
    pub(crate) fn pass(duration: Duration) {
        if let Some((now, since)) = TIME.get() {
            TIME.set(Some((now + duration, since + duration)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;
    const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
    const START_MS: u64 = 20_000 * DAY_MS;

    fn timeline(last_ms: u64, wall_ms: u64) -> Timeline {
        paused::pause(wall_ms);
        Timeline::after(Some(last_ms))
    }

    #[test]
    fn time_goes_on_in_steps_below_a_millisecond() {
        let mut timeline = timeline(START_MS, START_MS - DAY_MS);
        let begun = timeline.at;
        for step in 1..=5_000 {
            timeline.advance(begun + step * Duration::from_micros(300), START_MS - DAY_MS);
        }
        assert_eq!(timeline.unix_ms(), START_MS + 1_500);
    }

    /// Some time later, by a clock that says this.
    fn advance(timeline: &mut Timeline, ms: u64, wall_ms: u64) -> (bool, u64, u64) {
        let settled = timeline.advance(timeline.at + Duration::from_millis(ms), wall_ms);
        (settled, timeline.unix_ms(), timeline.ages_ms())
    }

    #[test]
    fn a_clock_that_goes_as_it_should_is_followed() {
        let mut timeline = timeline(START_MS, START_MS + MINUTE_MS);
        let mut now = START_MS + MINUTE_MS;
        assert_eq!((timeline.unix_ms(), timeline.ages_ms()), (now, now));
        for drift_ms in [0, 7, 29 * MINUTE_MS] {
            now += 1_000 + drift_ms;
            assert_eq!(advance(&mut timeline, 1_000, now), (false, now, now));
            assert!(timeline.doubt().is_none());
        }
    }

    #[test]
    fn time_never_goes_back() {
        for wall_ms in [0, START_MS - 1] {
            let mut timeline = timeline(START_MS, wall_ms);
            assert_eq!((timeline.unix_ms(), timeline.ages_ms()), (START_MS, START_MS));
            let later = START_MS + 5_000;
            assert_eq!(advance(&mut timeline, 5_000, wall_ms + 5_000), (false, later, later));
            assert_eq!(advance(&mut timeline, 0, 0), (false, later, later));
        }
    }

    #[test]
    fn a_jump_ahead_ages_nothing_before_the_clock_has_stayed_with_it() {
        let mut timeline = timeline(START_MS, START_MS + 8 * DAY_MS);
        let (ahead, doubt_ms) = (START_MS + 8 * DAY_MS, millis(DOUBT));
        assert_eq!((timeline.unix_ms(), timeline.ages_ms()), (ahead, START_MS));
        let before = advance(&mut timeline, doubt_ms - 1, ahead + doubt_ms - 1);
        assert_eq!(before, (false, ahead + doubt_ms - 1, START_MS + doubt_ms - 1));
        let settled = advance(&mut timeline, 1, ahead + doubt_ms);
        assert_eq!(settled, (true, ahead + doubt_ms, ahead + doubt_ms));
        assert!(timeline.doubt().is_none());
    }

    #[test]
    fn a_jump_ahead_that_is_taken_back_ages_nothing() {
        let mut timeline = timeline(START_MS, START_MS + 8 * DAY_MS);
        let right = START_MS + MINUTE_MS;
        advance(&mut timeline, 1_000, right + 1_000);
        let doubt_ms = millis(DOUBT);
        let (settled, dated, ages) = advance(&mut timeline, doubt_ms, right + 1_000 + doubt_ms);
        assert!(settled);
        assert_eq!(dated, START_MS + 8 * DAY_MS + 1_000 + doubt_ms, "what was dated comes before what is");
        assert_eq!(ages, right + 1_000 + doubt_ms);
        // It goes on from there.
        let later = advance(&mut timeline, MINUTE_MS, right + 1_000 + doubt_ms + MINUTE_MS);
        assert_eq!(later, (false, dated + MINUTE_MS, ages + MINUTE_MS));
    }

    #[test]
    fn jumps_while_it_runs_are_doubted_as_well() {
        let mut timeline = timeline(START_MS, START_MS);
        let jumped = advance(&mut timeline, 1_000, START_MS + DAY_MS);
        assert_eq!(jumped, (false, START_MS + DAY_MS, START_MS + 1_000));
        assert_eq!(timeline.doubt().map(|(by, _)| millis(by)), Some(DAY_MS - 1_000));
    }
}
