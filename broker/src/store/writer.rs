//! The one thread that writes: it commits what waits, all of it in one transaction, and folds the log in between.
//!
//! If ten callers commit while a sync is under way, the next sync serves all of them. A slice of a fold takes a few
//! milliseconds of a commit while there are commits, and a transaction of its own while there are none. So no caller waits
//! for more than a slice, and the log does not grow without bound.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::ReadableDatabase as _;

use super::batch::Batch;
use super::error::StoreError;
use super::fold::{Bodies, Folding};
use super::format::{self, LOG, LogRow};
use super::headroom::MakingRoom;
use super::recovery::{self, LogState};
use super::replication::Replication;
use super::shared::{Commit, Request, Shared, SnapshotSender, guarded};
use super::tail::{NumberedRow, Tail};
use super::wiping::AFTER_DELETION;
use crate::model::clock;
use crate::model::record::Dropped;

/// The waits for a fold: making room, snapshots.
#[derive(Debug, Default)]
pub(super) struct Awaiting {
    pub(super) room: bool,
    /// The ledger of a cluster, for a snapshot.
    pub(super) ledger: bool,
    snapshots: Vec<SnapshotSender>,
}

/// Runs until all senders of requests are gone.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    requests: Receiver<Request>,
    pub(super) log: LogState,
    bodies: Bodies,
    folding: Option<Folding>,
    /// Waits for the fold under way, and for the next one.
    awaiting: Awaiting,
    pub(super) awaiting_next: Awaiting,
    /// Told of commits that delete a client; where it has not seen the last one yet, this one is not told.
    pub(super) deletions: Option<SyncSender<()>>,
    pub(super) making_room: MakingRoom,
    pace: Pace,
    /// Goes with the first commit: what a recovery found that nobody refers to.
    cleanup: Batch,
    lazy: Option<Lazy>,
    is_ending: bool,
    /// Whether the last failure was for want of room.
    pub(super) is_full: bool,
    /// The time as the last batch said it, and as it is on disk.
    believed_ms: u64,
    pub(super) noted_ms: u64,
}

/// The state that acknowledgements before the sync need.
#[derive(Debug)]
pub(super) struct Lazy {
    keeper: Keeper,
    /// Between two syncs.
    pub(super) every: Duration,
    /// Rows that the keeper alone has.
    rows: Vec<NumberedRow>,
    bytes: usize,
    due: Option<Instant>,
    /// Whether the last sync failed: then nothing more is acknowledged.
    is_failing: bool,
}

/// The keeper of changes that are acknowledged before the file is synced.
#[derive(Debug)]
enum Keeper {
    Tail(Tail),
    Ledger(Replication),
}

/// The next task of the writer.
enum Next {
    Commit(Commit),
    Sync,
    Fold,
    End,
}

/// When a fold begins, and how much of it is done at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes and rows in the log at which it begins. Larger, and more is put and removed again without ever reaching a
    /// table; smaller, and less has to be carried out again at a start.
    pub(super) bytes: u64,
    pub(super) rows: u64,
    /// How long a slice takes within a commit, and where nobody waits.
    pub(super) slice: Duration,
    pub(super) idle_slice: Duration,
    /// How long after a deletion everything is wiped.
    pub(super) wipe_after: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (slice, idle_slice) = (Duration::from_millis(1), Duration::from_millis(2));
        Self { bytes: 32 << 20, rows: 16_384, slice, idle_slice, wipe_after: AFTER_DELETION }
    }
}

/// Rows that wait for a sync; then it comes early. What is written at once has to fit into the least reserve twice.
const LAZY_BYTES: usize = 2 << 20;
/// Bytes of a group of batches, after which the rest waits for the next.
const GROUP_BYTES: usize = 1 << 20;
/// The time on disk is changed by as much at once: it is a page of its own.
const DATE_EVERY_MS: u64 = 60_000;
/// How long after a failed sync the next one is tried without anybody's asking.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Between two syncs in a cluster, where the file is made anew at a start.
const REPLICA_EVERY: Duration = Duration::from_secs(1);
/// How long after a snapshot for the ledger was not possible it is tried again.
const LEDGER_EVERY: Duration = Duration::from_millis(100);

impl Awaiting {
    fn is_empty(&self) -> bool {
        !self.room && !self.ledger && self.snapshots.is_empty()
    }
}

impl Lazy {
    pub(super) fn new(tail: Tail, every: Duration) -> Self {
        Self::kept_by(Keeper::Tail(tail), every)
    }

    /// What is acknowledged is in a cluster's ledger.
    pub(super) fn replicated(replication: Replication) -> Self {
        Self::kept_by(Keeper::Ledger(replication), REPLICA_EVERY)
    }

    fn kept_by(keeper: Keeper, every: Duration) -> Self {
        Self { keeper, every, rows: Vec::new(), bytes: 0, due: None, is_failing: false }
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        requests: Receiver<Request>,
        log: LogState,
        bodies: Bodies,
        cleanup: Batch,
        noted_ms: Option<u64>,
        pace: Pace,
    ) -> Self {
        let noted_ms = noted_ms.unwrap_or_default();
        shared.last.store(log.last, Ordering::Release);
        Self {
            shared,
            requests,
            log,
            bodies,
            folding: None,
            awaiting: Awaiting::default(),
            awaiting_next: Awaiting::default(),
            deletions: None,
            making_room: MakingRoom::new(),
            pace,
            cleanup,
            lazy: None,
            is_ending: false,
            is_full: false,
            believed_ms: noted_ms,
            noted_ms,
        }
    }

    pub(super) fn acknowledge_before_sync(&mut self, lazy: Lazy) {
        self.lazy = Some(lazy);
    }

    pub(super) fn replication(&mut self) -> Option<&mut Replication> {
        match &mut self.lazy.as_mut()?.keeper {
            Keeper::Ledger(replication) => Some(replication),
            Keeper::Tail(_) => None,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Next::Commit(first) => self.commit_group(first),
                Next::Sync => self.sync_in_time(),
                // What fails here is told to whoever commits next.
                Next::Fold => drop(self.fold()),
                Next::End => break,
            }
        }
        self.sync_in_time();
        *self.shared.database() = None;
    }

    fn next(&mut self) -> Next {
        loop {
            if self.is_ending {
                return Next::End;
            }
            self.shared.is_in_a_hurry.store(self.is_long(), Ordering::Relaxed);
            let is_snapshot_due = self.snapshot_ledger();
            let looks_at =
                self.make_room().into_iter().chain(is_snapshot_due.then(|| Instant::now() + LEDGER_EVERY));
            let due = self.lazy.as_ref().and_then(|lazy| lazy.due);
            let now = Instant::now();
            // All that is acknowledged has to be in the log before a fold begins; where that fails, a fold waits for the next try.
            let may_sync = self.lazy.as_ref().is_some_and(|lazy| !lazy.is_failing);
            if due.is_some_and(|due| due <= now) || (may_sync && self.wants_fold()) {
                return Next::Sync;
            }
            let received = if self.has_to_fold() {
                match self.requests.try_recv() {
                    Err(TryRecvError::Empty) => return Next::Fold,
                    received => received.map_err(|_| RecvTimeoutError::Disconnected),
                }
            } else {
                match due.into_iter().chain(looks_at).min() {
                    None => self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(until) => self.requests.recv_timeout(until.saturating_duration_since(now)),
                }
            };
            match received {
                Ok(Request::Commit(commit)) => return Next::Commit(commit),
                Ok(Request::Snapshot(sender)) => self.await_snapshot(sender),
                Ok(Request::Replace(copy, done)) => drop(done.send(self.replace(copy))),
                Ok(Request::End) => self.is_ending = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Next::End,
            }
        }
    }

    /// Commits before anybody else does.
    pub(super) fn commit_now(&mut self, batch: Batch) -> Result<(), StoreError> {
        let (done, _) = mpsc::sync_channel(1);
        self.commit(&[Commit { batch, done }])
    }

    /// Commits by itself what a recovery found that nobody refers to.
    pub(super) fn clean_up(&mut self) {
        if !self.cleanup.is_empty() {
            // What fails here is told to whoever commits next, with which it goes.
            drop(self.commit(&[]));
        }
    }

    /// Answers with a snapshot after the next fold.
    pub(super) fn await_snapshot(&mut self, sender: SnapshotSender) {
        self.clean_up();
        match self.open_again() {
            Ok(()) => self.awaiting_next.snapshots.push(sender),
            Err(error) => drop(sender.send(Err(error))),
        }
    }

    pub(super) fn has_to_fold(&self) -> bool {
        let has_to = self.folding.is_some() || (self.lazy.is_none() && self.wants_fold());
        has_to && self.shared.database().is_some()
    }

    /// Whether a fold should begin. None does while the file is copied, for what it takes from the log would not be in the copy.
    fn wants_fold(&self) -> bool {
        let wants = self.is_long() || !self.awaiting_next.is_empty();
        wants && self.folding.is_none() && !self.shared.has_readers() && self.shared.can_fold(self.log.bytes)
    }

    pub(super) fn is_long(&self) -> bool {
        self.log.bytes > self.pace.bytes || self.log.last - self.log.folded > self.pace.rows
    }

    /// Whether texts were let go of that the next fold may remove.
    pub(super) fn has_let_go(&self) -> bool {
        self.bodies.has_let_go() || self.has_just_let_go()
    }

    /// Whether some were let go of since the last fold began.
    pub(super) fn has_just_let_go(&self) -> bool {
        !dropped(&self.shared.dropped).is_empty()
    }

    /// Begins a fold where there has to be one. All that is acknowledged has to be in the log by now: what was let go of in
    /// memory may be referred to there.
    fn begin_fold(&mut self) {
        if self.wants_fold() {
            let let_go = std::mem::take(&mut *dropped(&self.shared.dropped));
            self.bodies.let_go(let_go);
            self.folding = Some(Folding::new(&self.log));
            self.awaiting = std::mem::take(&mut self.awaiting_next);
        }
    }

    /// A fold has come to its end: who waited for it goes on.
    fn folded(&mut self) {
        self.folding = None;
        self.bodies.folded();
        let Awaiting { room, ledger, snapshots } = std::mem::take(&mut self.awaiting);
        if room {
            self.folded_for_room();
        }
        if let Some(replication) = self.replication().filter(|_| ledger) {
            replication.folded();
        }
        for sender in snapshots {
            // Who asked may have given up.
            let _ = sender.send(self.shared.long_snapshot());
        }
    }

    /// Folds what there is, for a snapshot that the ledger gets.
    pub(super) fn fold_for_ledger(&mut self) {
        self.awaiting_next.ledger |= !self.awaiting.ledger;
    }

    /// Gives up the fold at hand, and everything that waits for one, since they cannot go on.
    pub(super) fn give_up_fold(&mut self, error: &StoreError) {
        self.folding = None;
        for Awaiting { room, ledger: _, snapshots } in
            [std::mem::take(&mut self.awaiting), std::mem::take(&mut self.awaiting_next)]
        {
            if room {
                self.folded_for_room();
            }
            for sender in snapshots {
                let _ = sender.send(Err(error.clone()));
            }
        }
    }

    pub(super) fn commit_group(&mut self, first: Commit) {
        let mut bytes = first.batch.bytes();
        let mut group = vec![first];
        while bytes < GROUP_BYTES
            && let Ok(request) = self.requests.try_recv()
        {
            match request {
                Request::Commit(commit) => {
                    bytes += commit.batch.bytes();
                    group.push(commit);
                }
                Request::Snapshot(sender) => self.await_snapshot(sender),
                Request::Replace(copy, done) => drop(done.send(self.replace(copy))),
                Request::End => self.is_ending = true,
            }
        }
        let begun = Instant::now();
        let outcome = self.commit(&group);
        if let Some(figures) = self.shared.figures.get() {
            figures.committed(begun.elapsed(), group.len());
        }
        if outcome.is_ok() && group.iter().any(|commit| commit.batch.is_wiped_soon) {
            self.deletions.as_ref().map(|deletions| deletions.try_send(()));
        }
        for commit in group {
            let _ = commit.done.send(outcome.clone());
        }
    }

    fn commit(&mut self, group: &[Commit]) -> Result<(), StoreError> {
        let medium = &self.shared.medium;
        medium.is_in_place().map_err(|error| StoreError::io("write", medium.path(), &error))?;
        let waiting = self.lazy.as_ref().map_or(0, |lazy| lazy.rows.len() as u64);
        let number = self.log.last + waiting + 1;
        // No body of these batches has a greater one.
        let next_body = self.shared.next_body.load(Ordering::Acquire);
        let batches = std::iter::once(&self.cleanup).chain(group.iter().map(|commit| &commit.batch));
        let row = LogRow::seal(number, next_body, batches);
        let believed_ms = group.iter().rev().find_map(|commit| commit.batch.believed_ms);
        self.believed_ms = believed_ms.unwrap_or(self.believed_ms);
        self.put(number, row)?;
        self.log.next_body = next_body;
        self.cleanup = Batch::default();
        group.iter().flat_map(|commit| commit.batch.bodies()).for_each(|body| body.written());
        Ok(())
    }

    fn put(&mut self, number: u64, row: Vec<u8>) -> Result<(), StoreError> {
        let is_failing = match &mut self.lazy {
            None => return self.write(&[(number, row)], self.pace.slice),
            Some(lazy) => lazy.is_failing,
        };
        if is_failing {
            self.sync()?;
        }
        self.shared.has_room_for(row.len() as u64)?;
        let believed_ms = self.believed_ms;
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        match &mut lazy.keeper {
            Keeper::Tail(tail) => tail.append(number, &row)?,
            Keeper::Ledger(replication) => replication.append(number, believed_ms, &row)?,
        }
        lazy.bytes += row.len();
        lazy.rows.push((number, row));
        lazy.due.get_or_insert_with(|| Instant::now() + lazy.every);
        if lazy.bytes > LAZY_BYTES {
            lazy.due = Some(Instant::now());
        }
        Ok(())
    }

    fn sync_in_time(&mut self) {
        if let Err(error) = self.sync() {
            tracing::error!(%error, "what was acknowledged is not synced; nothing more is until it is");
        }
    }

    /// Puts what only the keeper has into the file.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        let rows = std::mem::take(&mut lazy.rows);
        let outcome = if rows.is_empty() { Ok(()) } else { self.write(&rows, self.pace.slice) };
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        let cleared = outcome.and_then(|()| match &mut lazy.keeper {
            Keeper::Tail(tail) => tail.clear(),
            Keeper::Ledger(_) => Ok(()),
        });
        match cleared {
            Ok(()) => {
                (lazy.bytes, lazy.due, lazy.is_failing) = (0, None, false);
                self.begin_fold();
            }
            Err(error) => {
                // In the log or not: written again under its number it is there once.
                if self.log.last < rows.first().map_or(0, |(number, _)| *number) {
                    lazy.rows = rows;
                }
                (lazy.due, lazy.is_failing) = (Some(Instant::now() + RETRY), true);
                self.give_up_fold(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A slice of a fold while nobody commits. What only reads needs no transaction that is synced.
    pub(super) fn fold(&mut self) -> Result<(), StoreError> {
        let slice = self.pace.idle_slice;
        let Some(folding) = self.folding.as_mut().filter(|folding| folding.is_merging()) else {
            return self.write(&[], slice);
        };
        let (begun, shared) = (clock::now(), Arc::clone(&self.shared));
        let path = shared.path();
        let merged = guarded(path, || {
            let of = |error: redb::Error| StoreError::of("read", path, error);
            let rows = shared.snapshot()?.open_table(LOG).map_err(|error| of(error.into()))?;
            folding.merge(&rows, path, begun + slice)
        });
        if let Err(error) = &merged {
            // With the next commit everything begins anew.
            *shared.database() = None;
            self.give_up_fold(error);
        }
        if let Some(figures) = shared.figures.get() {
            figures.folded(begun.elapsed(), false);
        }
        merged.map(drop)
    }

    /// One transaction: rows for the log, and a slice of the fold if there is one to do. After a failure nothing is known
    /// of it until the file was opened again.
    fn write(&mut self, rows: &[NumberedRow], slice: Duration) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let bytes = rows.iter().map(|(_, row)| row.len() as u64).sum();
        if let Err(error) = shared.has_room_for(bytes) {
            self.give_up_fold(&error);
            return Err(error);
        }
        if self.folding.is_some() && !shared.can_fold(self.log.bytes + 2 * bytes) {
            self.give_up_fold(&StoreError::Full {
                path: shared.path().to_owned(),
                why: "a fold takes too much".to_owned(),
            });
        }
        self.open_again()?;
        shared.fault().take();
        let outcome = guarded(shared.path(), || self.transact(rows, slice));
        let outcome = outcome.map_err(|told| match shared.fault().take() {
            Some(error) => StoreError::io("write", shared.path(), &error),
            None => told,
        });
        if let Err(error) = &outcome {
            *shared.database() = None;
            self.give_up_fold(error);
            self.is_full = matches!(error, StoreError::Full { .. });
        }
        outcome
    }

    fn transact(&mut self, rows: &[NumberedRow], slice: Duration) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let path = shared.path();
        let of = |error: redb::Error| StoreError::of("write", path, error);
        let begun = match &*shared.database() {
            Some(database) => format::begin(database).map_err(of),
            None => Err(shared.unopened()),
        };
        let txn = begun?;
        let mut log = self.log;
        if !rows.is_empty() {
            format::insert(&txn, rows).map_err(of)?;
            log.bytes += rows.iter().map(|(_, row)| row.len() as u64).sum::<u64>();
            log.last += rows.len() as u64;
        }
        if self.lazy.is_none() {
            self.begin_fold();
        }
        let is_dated = self.believed_ms.abs_diff(self.noted_ms) >= DATE_EVERY_MS;
        if is_dated {
            format::date(&txn, self.believed_ms).map_err(of)?;
        }
        let mut is_folded = false;
        if let Some(folding) = &mut self.folding {
            // The further behind, the longer the slices.
            let slice =
                slice * u32::try_from(self.log.bytes / self.pace.bytes).unwrap_or(u32::MAX).clamp(1, 50);
            let begun = clock::now();
            is_folded = folding.advance(&txn, path, &mut self.bodies, &mut log, begun + slice)?;
            if let Some(figures) = shared.figures.get() {
                figures.folded(begun.elapsed(), is_folded);
            }
        }
        let begun = Instant::now();
        txn.commit().map_err(|error| of(error.into()))?;
        self.log = log;
        shared.last.store(log.last, Ordering::Release);
        if is_dated {
            self.noted_ms = self.believed_ms;
        }
        if let Some(figures) = shared.figures.get() {
            figures.synced(begun.elapsed(), &self.log);
        }
        if is_folded {
            self.folded();
        }
        Ok(())
    }

    /// Opens the file again after a failure, and sees whether all is there that was acknowledged.
    pub(super) fn open_again(&mut self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        if shared.database().is_some() {
            return Ok(());
        }
        let path = shared.path();
        if self.is_full {
            shared.medium.has_room().map_err(|error| StoreError::io("write", path, &error))?;
        }
        let database = shared.open(Arc::default())?;
        let (log, bodies) = guarded(path, || {
            let meta = format::prepare(&database, path, None)?;
            let txn = database.begin_read().map_err(|error| StoreError::of("read", path, error))?;
            let mut fault = |what| Err(StoreError::damaged(path, what));
            let contents = recovery::read(&txn, &meta, path, &mut |_, _| {}, &mut fault)?;
            Ok((contents.log, contents.references))
        })?;
        // The one that failed may be there.
        if log.last < self.log.last {
            let what = format!("commit {} was there, and the last is {} now", self.log.last, log.last);
            return Err(StoreError::damaged(path, what));
        }
        // Only what was acknowledged is folded; the rest is written over.
        self.log = LogState { last: self.log.last, ..log };
        self.bodies.found(bodies);
        *shared.database() = Some(database);
        Ok(())
    }
}

fn dropped(dropped: &Dropped) -> MutexGuard<'_, Vec<u64>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
}
