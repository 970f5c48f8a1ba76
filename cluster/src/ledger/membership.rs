//! Who is there, by what was seen of it. A member that is taken for gone may be there: seals make that harmless.

use std::time::Duration;

use super::Timing;

/// What a member's process says of itself from time to time, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The random number of its process, by which it is named in [`Incarnation`](crate::record::Incarnation).
    pub nonce: u64,
    /// Another number each time.
    pub count: u64,
    /// It is about to end, and appends nothing any more.
    pub is_leaving: bool,
}

/// Watches one process.
#[derive(Clone, Debug)]
pub struct Watch {
    nonce: u64,
    count: Option<u64>,
    looked_at: Option<Duration>,
    /// For how long nothing new has been seen, as far as somebody looked.
    silence: Duration,
    has_left: bool,
}

impl Watch {
    /// Watches a process of which nothing has been seen.
    #[must_use]
    pub fn new(nonce: u64) -> Self {
        Self { nonce, count: None, looked_at: None, silence: Duration::ZERO, has_left: false }
    }

    /// Takes what was seen at a look that succeeded. A look that fails says nothing. Between two looks, no more than half of the time
    /// to live counts as silence: the one that looks may have been stopped.
    pub fn look(&mut self, now: Duration, beats: &[Beat], timing: &Timing) {
        let since = self.looked_at.map_or(Duration::ZERO, |looked_at| now.saturating_sub(looked_at));
        self.looked_at = Some(now);
        let beat = beats.iter().find(|beat| beat.nonce == self.nonce);
        self.has_left |= beat.is_some_and(|beat| beat.is_leaving);
        let count = beat.map(|beat| beat.count);
        if count.is_some() && count != self.count {
            self.silence = Duration::ZERO;
            self.count = count;
        } else {
            self.silence += since.min(timing.ttl / 2);
        }
    }

    /// Whether it said that it leaves.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether it is taken for gone: it said that it leaves, or has been silent for long enough.
    #[must_use]
    pub fn is_gone(&self, timing: &Timing) -> bool {
        self.has_left || self.silence >= timing.ttl + timing.grace
    }
}
