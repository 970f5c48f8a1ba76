//! What writes for an outbox: polled by the task of its connection, and by whoever has put something in while it slept.
//!
//! To wake a task on another thread for a lone frame costs more than to write the frame. Whoever polls in the task's place
//! does so with the task's waker, so that a socket that takes no more wakes the task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

/// A future that writes until the connection ends, and then says whether it broke.
type Writing = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The shared handle. Its mutex is a std one: held for a poll, in which nothing waits.
pub(crate) struct Writer(Mutex<State>);

enum State {
    Writing(Writing),
    Ended { is_broken: bool },
    Gone,
}

/// The task's own handle: with it the future goes.
pub(crate) struct Held(Arc<Writer>);

impl Held {
    pub(crate) fn new(writing: impl Future<Output = bool> + Send + 'static) -> Self {
        Self(Arc::new(Writer(Mutex::new(State::Writing(Box::pin(writing))))))
    }

    pub(crate) fn share(&self) -> Arc<Writer> {
        Arc::clone(&self.0)
    }
}

impl Future for Held {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<bool> {
        self.0.state().poll(ctx)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.0.state(), State::Gone);
        drop(state);
    }
}

impl Writer {
    /// A panic while it was polled ended the task.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what can be written at once, in the place of a task. Where somebody else is at it, or it has ended, the task is
    /// woken.
    pub(super) fn write_for(&self, task: &Waker) {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return task.wake_by_ref(),
        };
        let mut ctx = Context::from_waker(task);
        // A panic ends this connection, as in its task, and not whoever polls here.
        let polled = catch_unwind(AssertUnwindSafe(|| state.poll(&mut ctx)));
        if let Poll::Ready(is_broken) = polled.unwrap_or(Poll::Ready(true)) {
            *state = State::Ended { is_broken };
            task.wake_by_ref();
        }
    }
}

impl State {
    fn poll(&mut self, ctx: &mut Context<'_>) -> Poll<bool> {
        match self {
            Self::Writing(writing) => writing.as_mut().poll(ctx),
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
    fn who_polls_in_the_place_of_the_task_leaves_it_the_end() {
        for is_broken in [false, true] {
            let mut held = Held::new(ready(is_broken));
            held.share().write_for(Waker::noop());
            // Once it has ended there is nothing to poll.
            held.share().write_for(Waker::noop());
            assert_eq!((&mut held).now_or_never(), Some(is_broken));
        }
    }

    #[test]
    fn a_panic_is_the_end_of_the_connection_alone() {
        let mut held = Held::new(async { panic!("in a test") });
        held.share().write_for(Waker::noop());
        assert_eq!((&mut held).now_or_never(), Some(true));
    }

    #[test]
    fn with_its_task_the_future_goes() {
        let (sender, mut receiver) = tokio::sync::oneshot::channel::<()>();
        let held = Held::new(async move {
            let _sender = sender;
            pending().await
        });
        let shared = held.share();
        shared.write_for(Waker::noop());
        assert!(receiver.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty));
        drop(held);
        shared.write_for(Waker::noop());
        assert!(receiver.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Closed));
    }
}
