//! What time it is, by both clocks. For a test, time can stand still on its thread.

use std::cell::RefCell;
use std::fmt::Write as _;
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
    write!(text, ".{:03}Z", now_ms % 1_000).expect("a text grows");
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

    /// Lets time pass on the clocks of this thread, which stand still again after it.
    pub(crate) fn pass(duration: Duration) {
        if let Some((now, since)) = TIME.get() {
            TIME.set(Some((now + duration, since + duration)));
        }
    }
}
