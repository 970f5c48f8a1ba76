//! Changes of subscriptions, and questions: what it takes to read a large one, and to carry out any of them, would hold everybody else up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::flows::Publisher;
use crate::refusal::Refusal;

/// Bytes up to which a document is read at once.
const SMALL_BYTES: usize = 4 * 1_024;

/// Changes that are under way at once: of one flow and of one tenant, and of all.
pub(super) const OF_ONE: usize = 2;
const OF_ALL: usize = 8;

/// Lets changes go on their way: so many at once, small ones read at once and large ones on threads beside those that serve
/// everybody, and of one flow no faster than `admission.change_bytes_per_second`.
#[derive(Debug)]
pub(super) struct Changes {
    under_way: Arc<Semaphore>,
    /// Large ones that are read at once.
    reading: Arc<Semaphore>,
    /// How long a sender is held back before it is refused.
    patience: Duration,
}

/// What is known of a document that was read.
pub(crate) trait Weighed {
    /// Bytes that it has in its normalised form: what was short may be long there.
    fn bytes(&self) -> usize;
}

/// A change on its way to an engine, until it has been carried out.
#[derive(Debug)]
pub(crate) struct Change {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Changes {
    pub(super) fn new(patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let reading = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { under_way: Arc::new(Semaphore::new(OF_ALL)), reading, patience }
    }

    /// Reads a document of so many bytes.
    pub(super) async fn read<T: Weighed + Send + 'static>(
        &self,
        publisher: &Publisher,
        bytes: usize,
        read: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<(T, Change), Refusal> {
        let rate = &publisher.own.change_bytes;
        let charged = if bytes > SMALL_BYTES { bytes } else { 0 };
        let pause = rate.take_ahead(Instant::now(), charged, self.patience).ok_or(Refusal::Overloaded)?;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        // By tenants before by all: who has many that wait has them wait for one another.
        let mut permits = Vec::with_capacity(3);
        for flow in publisher.flows() {
            permits.push(self.permit(&flow.changing).await?);
        }
        permits.push(self.permit(&self.under_way).await?);
        let read = if bytes > SMALL_BYTES {
            let reading = self.permit(&self.reading).await?;
            let read = move || {
                // Who asked may be gone by now; who comes next waits all the same.
                let _reading = reading;
                read()
            };
            tokio::task::spawn_blocking(read)
                .await
                .map_err(|_| Refusal::Internal("a document could not be read"))?
        } else {
            read()
        }?;
        let more = read.bytes().saturating_sub(charged);
        if more > SMALL_BYTES {
            // The next one waits for it.
            rate.take_ahead(Instant::now(), more, Duration::MAX);
        }
        Ok((read, Change { _permits: permits }))
    }

    async fn permit(&self, semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_owned() {
            return Ok(permit);
        }
        match tokio::time::timeout(self.patience, Arc::clone(semaphore).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Refusal::Overloaded),
        }
    }
}
