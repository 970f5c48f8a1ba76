//! Connections whose bytes come in crumbs: each costs a wake and a look at what is still not complete, a thousand such connections
//! most of a core.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Fewer bytes are a crumb. The shortest frame of any use, a ping, has 19; nobody needs many of those in a row.
const ENOUGH_BYTES: usize = 32;

/// Crumbs in a row that are read as they come.
const IN_A_ROW: u32 = 32;

/// Before each one behind them.
const PAUSE: Duration = Duration::from_millis(250);

/// Reads the more seldom the less comes.
#[derive(Debug)]
pub(super) struct Crumbs {
    left: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Default for Crumbs {
    fn default() -> Self {
        Self { left: IN_A_ROW, pause: None }
    }
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
        if bytes >= ENOUGH_BYTES {
            self.left = IN_A_ROW;
        } else if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
        } else {
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
            (0..IN_A_ROW).for_each(|_| crumbs.came(1));
            assert!(!waits(&mut crumbs));
            crumbs.came(ENOUGH_BYTES);
        }
        (0..=IN_A_ROW).for_each(|_| crumbs.came(1));
        assert!(waits(&mut crumbs));
        poll_fn(|ctx| crumbs.poll_pause(ctx)).await;
        crumbs.came(1);
        assert!(waits(&mut crumbs));
    }
}
