//! Records on disk, as those hold on to them that refer to them. When the last handle has gone, the record may go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Names a body, for good: no other ever gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BodyId(pub(crate) u64);

/// A handle to a body on disk, held wherever something may still refer to the body. When the last handle has gone, the record
/// goes too, once nothing on disk refers to it any more.
#[derive(Debug)]
pub(crate) struct StoredBody {
    id: BodyId,
    /// Whether it is on disk: then nobody needs to write it again.
    is_written: AtomicBool,
    dropped: Arc<Dropped>,
}

/// Bodies whose last handle went. A std mutex: held for a push or a swap.
pub(crate) type Dropped = Mutex<Vec<u64>>;

impl StoredBody {
    pub(crate) fn new(id: BodyId, is_written: bool, dropped: &Arc<Dropped>) -> Arc<Self> {
        Arc::new(Self { id, is_written: AtomicBool::new(is_written), dropped: Arc::clone(dropped) })
    }

    pub(crate) fn id(&self) -> BodyId {
        self.id
    }

    pub(crate) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    pub(crate) fn written(&self) {
        self.is_written.store(true, Ordering::Release);
    }
}

impl Drop for StoredBody {
    fn drop(&mut self) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(self.id.0);
    }
}

/// The record of a live event, which is there for as long as some shard holds the event.
#[derive(Debug)]
pub(crate) struct LiveRecord {
    object: Arc<str>,
    sequence: u64,
    dropped: Arc<DroppedLives>,
}

/// Objects and sequence numbers of live events that no shard holds any more: their records are to go. A std mutex: held for a
/// push or a swap.
pub(crate) type DroppedLives = Mutex<Vec<(Arc<str>, u64)>>;

impl LiveRecord {
    /// The record of the event of that number of an object.
    pub(crate) fn new(object: Arc<str>, sequence: u64, dropped: Arc<DroppedLives>) -> Self {
        Self { object, sequence, dropped }
    }
}

impl Drop for LiveRecord {
    fn drop(&mut self) {
        // A shard that breaks lets go of everything, and all of it is to be there at the next start.
        if !std::thread::panicking() {
            let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            dropped.push((Arc::clone(&self.object), self.sequence));
        }
    }
}
