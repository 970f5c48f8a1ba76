//! Metrics of the store.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::recovery::LogState;

/// Where what the store does is counted.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// From a group of batches being taken to its being on disk.
    pub(crate) commit: Histogram,
    /// Batches of a group.
    pub(crate) batches: Histogram,
    /// The part of a transaction that writes and syncs.
    pub(crate) sync: Histogram,
    /// The part that folds.
    pub(crate) slice: Histogram,
    /// Folds that came to their end.
    pub(crate) folds: Counter,
    /// From the beginning of a copy without what was replaced or removed to its being in place.
    pub(crate) wipe: Histogram,
    pub(crate) wipe_failures: Counter,
    /// 1 while the disk counts as full.
    pub(crate) short: Gauge,
    /// Rows and bytes of the log that are not in the tables.
    pub(crate) log_rows: Gauge,
    pub(crate) log_bytes: Gauge,
}

impl Figures {
    pub(super) fn committed(&self, took: Duration, batches: usize) {
        self.commit.record(took);
        #[expect(clippy::cast_precision_loss, reason = "there is one for each shard at most")]
        self.batches.record(batches as f64);
    }

    pub(super) fn folded(&self, took: Duration, is_whole: bool) {
        self.slice.record(took);
        self.folds.increment(is_whole.into());
    }

    pub(super) fn synced(&self, took: Duration, log: &LogState) {
        self.sync.record(took);
        #[expect(clippy::cast_precision_loss, reason = "a disk ends before 2^52 bytes")]
        let (rows, bytes) = ((log.last - log.folded) as f64, log.bytes as f64);
        self.log_rows.set(rows);
        self.log_bytes.set(bytes);
    }
}
