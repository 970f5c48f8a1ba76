//! Connections whose bytes come in crumbs: each costs a wake and a look at what is still not complete, a thousand such connections
//! most of a core.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// What a read should bring. The shortest frame of any use, a ping, has 19; nobody needs many of those.
const ENOUGH_BYTES: usize = 32;

/// How far a connection may fall behind that: so many reads of nothing to speak of.
const DEBT_BYTES_MAX: usize = 32 * ENOUGH_BYTES;

/// Before each read beyond it.
const PAUSE: Duration = Duration::from_millis(250);

/// Reads the more seldom the less comes.
#[derive(Debug, Default)]
pub(super) struct Crumbs {
    /// By how much all reads together brought less than enough. What they brought beyond it earlier does not count.
    debt_bytes: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Crumbs {
    /// Waits until something may be read.
    pub(super) fn poll_pause(&mut self, ctx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(ctx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// So many bytes were read.
    pub(super) fn came(&mut self, bytes: usize) {
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
        let mut crumbs = Crumbs::default();
        let waits = |crumbs: &mut Crumbs| {
            let mut ctx = Context::from_waker(std::task::Waker::noop());
            crumbs.poll_pause(&mut ctx).is_pending()
        };
        for _ in 0..10 {
            (0..32).for_each(|_| crumbs.came(1));
            assert!(!waits(&mut crumbs));
            crumbs.came(2 * DEBT_BYTES_MAX);
        }
        // A read that is just enough now and then pays nothing back.
        for count in [31, 2] {
            (0..count).for_each(|_| crumbs.came(1));
            crumbs.came(ENOUGH_BYTES);
        }
        (0..2).for_each(|_| crumbs.came(1));
        assert!(waits(&mut crumbs));
        poll_fn(|ctx| crumbs.poll_pause(ctx)).await;
        crumbs.came(1);
        assert!(waits(&mut crumbs));
    }
}
