//! Completion of a request: it is answered when everything it asked for is in force and safe.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::model::error::ApiError;

/// Counts what of one request is not in force and safe yet. Cheap: one `Arc` for a request, however many elements.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    /// Tickets that are out.
    open: AtomicU64,
    /// Tickets that were settled with a refusal.
    failed: AtomicU64,
    /// The first of those refusals.
    refusal: OnceLock<ApiError>,
    /// Rung when the last ticket comes back.
    done: Notify,
}

/// One thing to wait for. Dropped unsettled it counts as [`ApiError::Stopping`]: the thread that should have settled it is
/// gone.
#[derive(Debug)]
pub(crate) struct CompletionGuard {
    receipt: Arc<Completion>,
    outcome: Result<(), ApiError>,
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Completion {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// One more thing to wait for.
    pub(crate) fn ticket(self: &Arc<Self>) -> CompletionGuard {
        self.open.fetch_add(1, Ordering::Relaxed);
        CompletionGuard { receipt: Arc::clone(self), outcome: Err(ApiError::Stopping), _held: None }
    }

    /// Waits until no ticket is out. Called when no more are given out, and by one at a time, who may give up and call
    /// again.
    ///
    /// # Errors
    /// The first refusal that a ticket was settled with.
    pub(crate) async fn settled(&self) -> Result<(), ApiError> {
        // What the last ticket brought is seen by who sees that it was the last.
        while self.open.load(Ordering::Acquire) > 0 {
            self.done.notified().await;
        }
        self.refusal.get().map_or(Ok(()), |refusal| Err(refusal.clone()))
    }

    /// Tickets that were settled with a refusal so far.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

impl CompletionGuard {
    /// Holds something until it is settled.
    pub(crate) fn holding(mut self, held: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        self._held = held;
        self
    }

    /// Says what became of it.
    pub(crate) fn settle(mut self, outcome: Result<(), ApiError>) {
        self.outcome = outcome;
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        let receipt = &self.receipt;
        if let Err(refusal) = std::mem::replace(&mut self.outcome, Ok(())) {
            receipt.failed.fetch_add(1, Ordering::Relaxed);
            receipt.refusal.get_or_init(|| refusal);
        }
        if receipt.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            receipt.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn it_is_settled_when_every_ticket_is() {
        let receipt = Completion::new();
        assert_eq!(receipt.settled().now_or_never(), Some(Ok(())), "nothing to wait for");
        let (first, second) = (receipt.ticket(), receipt.ticket());
        assert_eq!(receipt.settled().now_or_never(), None);
        second.settle(Ok(()));
        assert_eq!(receipt.settled().now_or_never(), None);
        first.settle(Ok(()));
        assert_eq!(receipt.settled().now_or_never(), Some(Ok(())));
        // An early end does not count for what comes after it.
        let third = receipt.ticket();
        assert_eq!(receipt.settled().now_or_never(), None);
        third.settle(Ok(()));
        assert_eq!((receipt.settled().await, receipt.failed()), (Ok(()), 0));
    }

    #[tokio::test]
    async fn the_first_refusal_stands_and_all_are_counted() {
        let receipt = Completion::new();
        let tickets: Vec<_> = (0..3).map(|_| receipt.ticket()).collect();
        let outcomes = [Ok(()), Err(ApiError::Overloaded), Err(ApiError::Storage)];
        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
            ticket.settle(outcome);
        }
        assert_eq!((receipt.settled().await, receipt.failed()), (Err(ApiError::Overloaded), 2));
    }

    #[tokio::test]
    async fn a_ticket_that_nobody_settled_was_lost_in_the_stop() {
        let receipt = Completion::new();
        drop(receipt.ticket());
        assert_eq!((receipt.settled().await, receipt.failed()), (Err(ApiError::Stopping), 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_waits_is_woken_from_other_threads() {
        for round in 0..200 {
            let receipt = Completion::new();
            let tickets: Vec<_> = (0..4).map(|_| receipt.ticket()).collect();
            let threads = tickets.into_iter().enumerate().map(|(index, ticket)| {
                let outcome = if index == 3 && round % 2 == 1 { Err(ApiError::Storage) } else { Ok(()) };
                std::thread::spawn(move || ticket.settle(outcome))
            });
            let threads: Vec<_> = threads.collect();
            let settled = tokio::time::timeout(std::time::Duration::from_secs(10), receipt.settled()).await;
            let expected = if round % 2 == 1 { Err(ApiError::Storage) } else { Ok(()) };
            assert_eq!(settled, Ok(expected), "round {round}");
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    }
}
