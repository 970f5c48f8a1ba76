//! A store without a thread: each caller that commits drives the writer. For simulations and fuzzing, in which nothing
//! happens by itself.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use super::breakable::Disk as TestDisk;
pub(crate) use super::check::Report;
use super::recovery;
use super::shared::{Commit, Request, Shared, Snapshot};
use super::writer::{Pace, Writer};
use super::{Batch, BodyId, Recovered, Shortage, StoreError, StoredBody, check, format, prepare, wiping};
use crate::config::WorldName;
use crate::sessions;

/// A store whose writer runs where it is asked to; a clone is another handle to it.
#[derive(Clone)]
pub(crate) struct InlineStore(Arc<Mutex<Inline>>);

struct Inline {
    writer: Writer,
    /// Kept, for without senders the writer's queue would count as closed.
    _requests: SyncSender<Request>,
}

impl InlineStore {
    /// Opens the store on a disk. A fold begins at `rows` rows of log, and either does one thing at a time or all at once:
    /// where the clock stands still there is nothing in between.
    pub(crate) fn open(
        disk: &TestDisk,
        rows: u64,
        folds_at_once: bool,
        wipe_after: Option<Duration>,
    ) -> Result<(Self, Recovered), StoreError> {
        let slice = Duration::from_secs(u64::from(folds_at_once));
        let wiping = wiping::Settings { after: wipe_after, on_thread: false };
        let pace = Pace { bytes: 16 << 20, rows, slice, idle_slice: slice, wiping };
        let (writer, requests, recovered) =
            prepare(Box::new(disk.clone()), Some(WorldName::Planar), None, pace, &|_| {})?;
        Ok((Self(Arc::new(Mutex::new(Inline { writer, _requests: requests }))), recovered))
    }

    fn inline(&self) -> MutexGuard<'_, Inline> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.inline().writer.shared)
    }

    /// Whether the disk is full, as it changes.
    #[cfg(test)]
    pub(crate) fn shortage(&self) -> Arc<Shortage> {
        Arc::clone(&self.shared().shortage)
    }

    /// Does the writer's work for a time when nobody commits. Returns whether there was any.
    pub(crate) fn idle(&self) -> bool {
        let writer = &mut self.inline().writer;
        writer.wipe();
        writer.make_room();
        let has_to_fold = writer.has_to_fold();
        if has_to_fold {
            // What fails here is told to whoever commits next.
            drop(writer.fold());
        }
        has_to_fold
    }

    /// Whether a copy has been made that is not in its place yet.
    #[cfg(test)]
    pub(crate) fn is_copying(&self) -> bool {
        self.inline().writer.is_copying()
    }

    /// Asks for a snapshot, which comes after a fold.
    pub(super) fn ask_for_snapshot(&self) -> Receiver<Result<Snapshot, StoreError>> {
        let (sender, snapshot) = mpsc::sync_channel(1);
        self.inline().writer.await_snapshot(sender);
        snapshot
    }

    /// Makes the report of `nearcast check` on the committed data.
    pub(crate) fn check(&self) -> Result<Report, StoreError> {
        let shared = self.shared();
        let txn = shared.snapshot()?;
        let mut report = Report::default();
        let meta = format::Meta::read(&txn, shared.path())?.ok_or(StoreError::Closed)?;
        let mut fault = |what| {
            report.tell(what);
            Ok(())
        };
        let contents = recovery::read(&txn, &meta, shared.path(), &mut |_, _| {}, &mut fault)?;
        check::links(&contents, &mut report);
        Ok(report)
    }
}

impl sessions::Disk for InlineStore {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let (done, outcome) = mpsc::sync_channel(1);
        self.inline().writer.commit_group(Commit { batch: batch.clone(), done });
        outcome.recv().unwrap_or(Err(StoreError::Closed))
    }

    fn new_body(&self) -> Arc<StoredBody> {
        let shared = self.shared();
        let id = BodyId(shared.next_body.fetch_add(1, Ordering::AcqRel));
        StoredBody::new(id, false, &shared.dropped)
    }
}
