//! A future that is polled only when it was woken itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// One of several futures in a task. `select!` and its like poll all of them when any is woken; this one is polled only when
/// it was woken itself.
pub(crate) struct PollWhenWoken<F> {
    future: F,
    flag: Arc<Flag>,
    waker: Waker,
}

/// The flag that the future's waker sets.
struct Flag {
    is_woken: AtomicBool,
    /// The waker of the task that the future is in.
    task: AtomicWaker,
}

impl<F: Future + Unpin> PollWhenWoken<F> {
    pub(crate) fn new(future: F) -> Self {
        // The first poll needs no waking.
        let flag = Arc::new(Flag { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { future, waker: Waker::from(Arc::clone(&flag)), flag }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future + Unpin> Future for PollWhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<F::Output> {
        // The task is registered before the flag is looked at, so that a wake-up in between wakes the task again.
        self.flag.task.register(ctx.waker());
        if !self.flag.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let Self { future, waker, .. } = &mut *self;
        Pin::new(future).poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_at_first_and_when_it_was_woken() {
        let (polls_count, notify) = (AtomicUsize::new(0), Notify::new());
        let mut inner = Box::pin(notify.notified());
        let counted = std::future::poll_fn(|ctx| {
            polls_count.fetch_add(1, Ordering::Relaxed);
            inner.as_mut().poll(ctx)
        });
        let mut woken = PollWhenWoken::new(counted);
        for _ in 0..3 {
            assert_eq!((&mut woken).now_or_never(), None);
            assert_eq!(polls_count.load(Ordering::Relaxed), 1);
        }
        notify.notify_one();
        woken.await;
        assert_eq!(polls_count.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn its_task_is_woken() {
        let (send, receive) = tokio::sync::oneshot::channel();
        let waits = tokio::spawn(PollWhenWoken::new(receive));
        tokio::task::yield_now().await;
        send.send(7).unwrap();
        assert_eq!(waits.await.unwrap(), Ok(7));
    }
}
