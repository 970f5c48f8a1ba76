//! Connections whose bytes come in slow_reads: each costs a wake and a look at what is still not complete, a thousand such connections
//! most of a core.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Bytes that a read should bring. The shortest frame of any use, a ping, has 19; nobody needs many of those.
const ENOUGH_BYTES: usize = 32;

/// Bytes that a connection may fall behind that: 32 reads of nothing to speak of.
const DEBT_BYTES_MAX: usize = 32 * ENOUGH_BYTES;

/// Pause before each read beyond it.
const PAUSE: Duration = Duration::from_millis(250);

/// Reads the more seldom the less comes, unless it is answered: who waits for the answer to a small request before the next one costs no
/// more than with larger ones.
#[derive(Debug, Default)]
pub(super) struct SlowReads {
    /// Bytes that were written since the last read, as far as they make up for what that read lacks.
    answered_bytes: usize,
    /// Bytes by which all reads together brought less than enough. Bytes beyond that in earlier reads do not count.
    debt_bytes: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl SlowReads {
    /// Waits until something may be read.
    pub(super) fn poll_pause(&mut self, ctx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(ctx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// Notes that `bytes` were written.
    pub(super) fn went(&mut self, bytes: usize) {
        self.answered_bytes = (self.answered_bytes + bytes).min(ENOUGH_BYTES);
    }

    /// Notes that `bytes` bytes were read.
    pub(super) fn came(&mut self, bytes: usize) {
        // What was answered pays nothing back, either.
        let bytes = bytes.max((bytes + std::mem::take(&mut self.answered_bytes)).min(ENOUGH_BYTES));
        self.debt_bytes = (self.debt_bytes + ENOUGH_BYTES).saturating_sub(bytes);
        if self.debt_bytes > DEBT_BYTES_MAX {
            self.debt_bytes = DEBT_BYTES_MAX;
            self.pause = Some(Box::pin(tokio::time::sleep(PAUSE)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn only_crumbs_are_read_seldom() {
        let mut slow_reads = SlowReads::default();
        let waits = |slow_reads: &mut SlowReads| {
            let mut ctx = Context::from_waker(std::task::Waker::noop());
            slow_reads.poll_pause(&mut ctx).is_pending()
        };
        for _ in 0..10 {
            (0..32).for_each(|_| slow_reads.came(1));
            assert!(!waits(&mut slow_reads));
            slow_reads.came(2 * DEBT_BYTES_MAX);
        }
        // A read that is just enough now and then pays nothing back.
        for count in [31, 2] {
            (0..count).for_each(|_| slow_reads.came(1));
            slow_reads.came(ENOUGH_BYTES);
        }
        (0..2).for_each(|_| slow_reads.came(1));
        assert!(waits(&mut slow_reads));
        poll_fn(|ctx| slow_reads.poll_pause(ctx)).await;
        slow_reads.came(1);
        assert!(waits(&mut slow_reads));
    }

    #[tokio::test]
    async fn small_requests_that_wait_for_their_answers_are_no_crumbs() {
        const PING: usize = br#"{"op":"ping"}"#.len() + 6;
        const PONG: usize = br#"{"op":"pong"}"#.len() + 2;
        let is_slowed = |answered: usize| {
            let mut slow_reads = SlowReads::default();
            for _ in 0..10_000 {
                slow_reads.came(PING);
                slow_reads.went(answered);
            }
            slow_reads.pause.is_some()
        };
        assert!(!is_slowed(PONG));
        assert!(is_slowed(0) && is_slowed(2));
        // What is delivered besides is no licence for later.
        let mut slow_reads = SlowReads::default();
        (0..1_000).for_each(|_| slow_reads.went(1_000));
        (0..100).for_each(|_| slow_reads.came(1));
        assert!(slow_reads.pause.is_some());
    }
}
