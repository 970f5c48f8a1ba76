//! Large documents with conditions: what it takes to read one would hold everybody else up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::flows::Flow;
use crate::refusal::Refusal;

/// Bytes up to which a document is read at once: some 100 us.
const SMALL_BYTES: usize = 4 * 1_024;

/// Reads documents with conditions: small ones at once, large ones on threads beside those that serve everybody, and of one flow
/// no faster than `admission.change_bytes_per_second`.
#[derive(Debug)]
pub(super) struct Changes {
    /// Large ones that are read at once.
    reading: Semaphore,
    /// How long a sender is held back before it is refused.
    patience: Duration,
}

impl Changes {
    pub(super) fn new(patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { reading: Semaphore::new((cores / 2).max(1)), patience }
    }

    /// Reads a document of so many bytes.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        flow: &Arc<Flow>,
        bytes: usize,
        read: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        if bytes <= SMALL_BYTES {
            return read();
        }
        let pause = flow.changes.take_ahead(Instant::now(), bytes, self.patience);
        let pause = pause.ok_or(Refusal::Overloaded)?;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let permit = tokio::time::timeout(self.patience, self.reading.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(Refusal::Overloaded) };
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|_| Refusal::Internal("a document could not be read"))?
    }
}
