//! How much is retained for sessions that are durable, and how much for all of them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::model::delivery::OverflowName;

/// How much is retained for one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBounds {
    pub(crate) frames: usize,
    pub(crate) bytes: usize,
    /// Time for which a delivery is retained, in milliseconds.
    pub(crate) age_ms: u64,
    /// Policy for losses at the bound where no subscription has one.
    pub(crate) overflow: OverflowName,
}

/// Totals of the retained deliveries of all clients of all shards.
#[derive(Debug)]
pub(crate) struct KeptTotal {
    limit: u64,
    matches: AtomicU64,
    bytes: AtomicU64,
    /// Bytes of the sessions that were restored at the start.
    restored_bytes: AtomicU64,
    /// Whether it was full, and has not been a tenth empty since.
    is_full: AtomicBool,
}

impl KeptTotal {
    /// Makes the totals, with room for `limit` bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let [matches, bytes, restored_bytes] = [0; 3].map(AtomicU64::new);
        Arc::new(Self { limit, matches, bytes, restored_bytes, is_full: AtomicBool::new(false) })
    }

    /// How many deliveries are retained.
    pub(crate) fn matches(&self) -> u64 {
        self.matches.load(Ordering::Relaxed)
    }

    /// Bytes of all retained deliveries. A text that several clients share counts for each of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there is room for `bytes` bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.has_room_without(0, bytes)
    }

    /// Whether there is room for the bytes once some others are given back.
    pub(super) fn has_room_without(&self, given_back: usize, bytes: usize) -> bool {
        (self.bytes() + bytes as u64).saturating_sub(given_back as u64) <= self.limit
    }

    /// Notes that it is full. Says `true` once each time that it becomes full.
    pub(crate) fn is_full_anew(&self) -> bool {
        !self.is_full.swap(true, Ordering::Relaxed)
    }

    /// Takes room for one more delivery, if there is any.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.limit);
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.matches.fetch_add(taken.into(), Ordering::Relaxed);
        taken
    }

    /// Takes room for a delivery that is on disk already.
    pub(super) fn take_again(&self, bytes: u64) {
        self.matches.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.restored_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How much of its `bytes` a restored session may keep: where all of them took more than there is room for, each gives
    /// up the same part.
    pub(super) fn share(&self, bytes: usize) -> usize {
        let all = u128::from(self.restored_bytes.load(Ordering::Relaxed).max(self.limit).max(1));
        let share = bytes as u128 * u128::from(self.limit) / all;
        usize::try_from(share).expect("no more than the bytes")
    }

    pub(super) fn give_back(&self, matches: u64, bytes: u64) {
        self.matches.fetch_sub(matches, Ordering::Relaxed);
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before - bytes < self.limit / 10 * 9 && self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}
