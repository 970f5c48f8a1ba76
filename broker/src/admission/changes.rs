//! Changes of subscriptions, and questions: what it takes to read a large one, and to carry out any of them, would hold everybody else up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::engine_time::Paid;
use super::flows::Publisher;
use crate::ingest::Weighed;
use crate::model::aside::aside;
use crate::model::error::ApiError;

/// Bytes up to which a document is read at once.
const SMALL_BYTES: usize = 4 * 1_024;

/// Changes that are under way at once: of one client or connection, of one tenant, and of all. A tenant's clients are many, and are not
/// to wait for one another as if they were one; and those that are of no tenant in particular have no more in common than all have.
pub(super) const OF_ONE: usize = 2;
pub(super) const OF_TENANT: usize = 4;
pub(super) const OF_ALL: usize = 8;

/// Lets changes go on their way: a bounded number at once, small ones read at once and large ones on threads beside those
/// that serve everybody, and of one flow no faster than `admission.change_bytes_per_second`.
#[derive(Debug)]
pub(super) struct Changes {
    under_way: Arc<Semaphore>,
    /// Large ones that are read at once.
    reading: Arc<Semaphore>,
    /// How long a sender is held back before it is refused.
    patience: Duration,
}

/// A change on its way to an engine, until it has been carried out.
#[derive(Debug)]
pub(crate) struct Change {
    _permits: Vec<OwnedSemaphorePermit>,
    _paid: Paid,
}

impl Change {
    /// Adds the debts that were paid for the change.
    pub(super) fn paid(self, paid: Paid) -> Self {
        Self { _paid: paid, ..self }
    }
}

impl Changes {
    pub(super) fn new(patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let reading = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { under_way: Arc::new(Semaphore::new(OF_ALL)), reading, patience }
    }

    /// Reads a document of `bytes` bytes.
    pub(super) async fn read<T: Weighed + Send + 'static>(
        &self,
        publisher: &Publisher,
        bytes: usize,
        read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Change), ApiError> {
        let rate = &publisher.own.change_bytes;
        let charged = if bytes > SMALL_BYTES { bytes } else { 0 };
        let pause = rate.take_ahead(Instant::now(), charged, self.patience).ok_or(ApiError::Overloaded)?;
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
            aside(read, "a document could not be read").await?
        } else {
            read()
        }?;
        let more = read.bytes().saturating_sub(charged);
        if more > SMALL_BYTES {
            // The next one waits for it.
            rate.take_ahead(Instant::now(), more, Duration::MAX);
        }
        Ok((read, Change { _permits: permits, _paid: Paid::default() }))
    }

    async fn permit(&self, semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ApiError> {
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_owned() {
            return Ok(permit);
        }
        match tokio::time::timeout(self.patience, Arc::clone(semaphore).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(ApiError::Overloaded),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::flows::{Flows, Rates};
    use super::*;

    impl Weighed for () {
        fn bytes(&self) -> usize {
            0
        }
    }

    /// How many of eight clients of a tenant get a change under way while those before them still have theirs.
    fn served_at_once(tenant: &str) -> usize {
        let changes = Changes::new(Duration::from_secs(60));
        let (clients, tenants) = (Flows::new(Rates::default()), Flows::of_tenants(Rates::default()));
        let reading = (0..OF_ALL).map(|client| {
            let (own, tenant) = (clients.of(&client.to_string()), Some(tenants.of(tenant)));
            let publisher = Publisher { own, tenant, confinement: None };
            changes.read(&publisher, 1, || Ok(())).now_or_never()
        });
        let under_way: Vec<_> = reading.map_while(|read| read.map(Result::unwrap)).collect();
        under_way.len()
    }

    #[tokio::test]
    async fn clients_without_a_tenant_do_not_wait_for_one_another() {
        assert_eq!(served_at_once(""), OF_ALL);
        assert_eq!(served_at_once("acme"), OF_TENANT);
    }
}
