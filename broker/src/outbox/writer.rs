//! The writer of an outbox. The task of its connection polls it, and so may the thread that has just enqueued a delivery.
//!
//! To wake a task on another thread for a lone frame costs more than to write the frame. A thread that polls in the task's
//! place does so with the task's waker, so that a socket that takes no more wakes the task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

/// A future that writes until the connection ends, and then says whether it broke: the handle of threads other than its task's. A
/// std mutex: held for a poll, and never waited for.
pub(crate) struct Writer(Mutex<Stage>);

enum Stage {
    Writing(Pin<Box<dyn Future<Output = bool> + Send>>),
    Ended { is_broken: bool },
    Gone,
}

/// The task's own handle to the writer. Dropping it drops the future.
pub(crate) struct OwnWriter(Arc<Writer>);

impl OwnWriter {
    pub(crate) fn new(writing: impl Future<Output = bool> + Send + 'static) -> Self {
        Self(Arc::new(Writer(Mutex::new(Stage::Writing(Box::pin(writing))))))
    }

    pub(crate) fn share(&self) -> Arc<Writer> {
        Arc::clone(&self.0)
    }
}

impl Future for OwnWriter {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<bool> {
        match self.0.stage() {
            Some(mut stage) => stage.poll(ctx),
            // Another thread polls, and may be preempted: this one has other tasks.
            None => {
                ctx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for OwnWriter {
    fn drop(&mut self) {
        let mut stage = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *stage, Stage::Gone);
        drop(stage);
        drop(before);
    }
}

impl Writer {
    /// The stage; nothing while another thread polls. A panic while the task polled has ended the task.
    fn stage(&self) -> Option<MutexGuard<'_, Stage>> {
        match self.0.try_lock() {
            Ok(stage) => Some(stage),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Writes in the place of a task what can be written at once. The task is woken when the writing has ended. Returns `false` if
    /// another thread polls.
    pub(super) fn write_for(&self, task: &Waker) -> bool {
        let Some(mut stage) = self.stage() else { return false };
        let mut ctx = Context::from_waker(task);
        // A panic ends this connection, as in its task, and not the thread that polls here.
        let polled = catch_unwind(AssertUnwindSafe(|| stage.poll(&mut ctx))).unwrap_or_else(|_| {
            *stage = Stage::Ended { is_broken: true };
            Poll::Ready(true)
        });
        if polled.is_ready() {
            task.wake_by_ref();
        }
        true
    }
}

impl Stage {
    fn poll(&mut self, ctx: &mut Context<'_>) -> Poll<bool> {
        match self {
            Self::Writing(writing) => {
                let polled = writing.as_mut().poll(ctx);
                if let Poll::Ready(is_broken) = polled {
                    *self = Self::Ended { is_broken };
                }
                polled
            }
            Self::Ended { is_broken } => Poll::Ready(*is_broken),
            Self::Gone => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_poll_in_the_place_of_the_task_leaves_it_the_end() {
        for is_broken in [false, true] {
            let mut writing = OwnWriter::new(ready(is_broken));
            writing.share().write_for(Waker::noop());
            // A future that has ended is not polled again.
            writing.share().write_for(Waker::noop());
            assert_eq!((&mut writing).now_or_never(), Some(is_broken));
        }
    }

    #[test]
    fn a_panic_is_the_end_of_the_connection_alone() {
        let mut writing = OwnWriter::new(async { panic!("in a test") });
        writing.share().write_for(Waker::noop());
        assert_eq!((&mut writing).now_or_never(), Some(true));
    }

    #[test]
    fn the_future_is_dropped_with_its_task() {
        let (sender, mut receiver) = tokio::sync::oneshot::channel::<()>();
        let writing = OwnWriter::new(async move {
            let _sender = sender;
            pending().await
        });
        let shared = writing.share();
        shared.write_for(Waker::noop());
        assert!(receiver.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty));
        drop(writing);
        shared.write_for(Waker::noop());
        assert!(receiver.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Closed));
    }
}
