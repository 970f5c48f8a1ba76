//! A store without a thread: each caller that commits drives the writer. For simulations and fuzzing, in which nothing
//! happens by itself.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use super::breakable::Disk as TestDisk;
pub(crate) use super::check::Report;
use super::copy::Copy;
use super::recovery;
use super::shared::{Commit, Request, Shared, Snapshot, guarded};
use super::writer::{Pace, Writer};
use super::{Batch, BodyId, Recovered, Shortage, StoreError, StoredBody, check, format, prepare, wiping};
use crate::config::WorldName;
use crate::model::clock;
use crate::sessions;

/// A store whose writer runs where it is asked to; a clone is another handle to it.
#[derive(Clone)]
pub(crate) struct InlineStore(Arc<Mutex<Inline>>);

struct Inline {
    writer: Writer,
    /// Kept, for without senders the writer's queue would count as closed.
    _requests: SyncSender<Request>,
    /// How often it is wiped, and when it is the next time, if there is a commit after the one of the last.
    wipe_every: Option<Duration>,
    wipe_at: Instant,
    wiped: u64,
    wiping: Option<Wiping>,
}

/// How far a wipe has come.
enum Wiping {
    Asked(Receiver<Result<Snapshot, StoreError>>),
    Copied(Box<(Snapshot, Copy)>),
}

impl InlineStore {
    /// Opens the store on a disk. A fold begins at `rows` rows of log, and either does one thing at a time or all at once:
    /// where the clock stands still there is nothing in between.
    pub(crate) fn open(
        disk: &TestDisk,
        rows: u64,
        folds_at_once: bool,
        wipe_every: Option<Duration>,
    ) -> Result<(Self, Recovered), StoreError> {
        let slice = Duration::from_secs(u64::from(folds_at_once));
        let pace = Pace { bytes: 16 << 20, rows, slice, idle_slice: slice, ..Pace::default() };
        let (writer, requests, recovered) =
            prepare(Box::new(disk.clone()), Some(WorldName::Planar), None, pace, &|_| {})?;
        let inline = Inline {
            wiped: writer.log.last,
            writer,
            _requests: requests,
            wipe_every,
            wipe_at: clock::now(),
            wiping: None,
        };
        Ok((Self(Arc::new(Mutex::new(inline))), recovered))
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
        let mut inline = self.inline();
        inline.wipe();
        let writer = &mut inline.writer;
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
        matches!(self.inline().wiping, Some(Wiping::Copied(..)))
    }

    /// Makes the report of `nearcast verify` on the committed data.
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

impl Inline {
    /// Takes the next step of a wipe: commits, folds and failures come in between.
    fn wipe(&mut self) {
        let shared = Arc::clone(&self.writer.shared);
        let is_due = self.wipe_every.is_some() && clock::now() >= self.wipe_at;
        let next = match self.wiping.take() {
            None if is_due && self.writer.log.last > self.wiped && !shared.shortage.is_short() => {
                let (sender, snapshot) = mpsc::sync_channel(1);
                self.wiped = self.writer.log.last;
                self.writer.await_snapshot(sender);
                Some(Wiping::Asked(snapshot))
            }
            None => None,
            Some(Wiping::Asked(asked)) => match asked.try_recv() {
                Ok(Ok(snapshot)) => {
                    let copied = guarded(shared.path(), || wiping::copied(&shared, &snapshot, 0));
                    copied.ok().map(|copy| Wiping::Copied(Box::new((snapshot, copy))))
                }
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => Some(Wiping::Asked(asked)),
            },
            Some(Wiping::Copied(copied)) => {
                let (snapshot, copy) = *copied;
                let replaced = self.writer.replace(copy);
                drop((snapshot, replaced));
                None
            }
        };
        if next.is_none() && is_due {
            shared.medium.give_up();
            self.wipe_at = clock::now() + self.wipe_every.unwrap_or_default();
        }
        self.wiping = next;
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
