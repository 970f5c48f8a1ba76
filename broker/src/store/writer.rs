//! The one thread that writes: it commits what waits, all of it in one transaction, and folds the log in between.
//!
//! Of ten callers that commit while a sync is under way the next sync serves all. A slice of a fold takes a few
//! milliseconds of a commit while there are commits, and a transaction of its own while there are none: so none waits
//! for more than a slice, and the log does not grow without bound.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, WriteTransaction};

use super::batch::Batch;
use super::disk::{Counted, Fault, Medium};
use super::error::StoreError;
use super::figures::Figures;
use super::fold::{Bodies, Folding};
use super::format::{self, LOG, LogRow};
use super::records::Dropped;
use super::recovery::{self, LogState};
use super::tail::{NumberedRow, Tail};
use crate::clock;

/// What the writer and its callers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) medium: Box<dyn Medium>,
    /// `None` after a failure, until it was opened again. A std mutex: held to begin a transaction.
    pub(super) database: Mutex<Option<Database>>,
    pub(super) dropped: Arc<Dropped>,
    pub(super) next_body: AtomicU64,
    /// Whoever copies ends.
    pub(super) is_closing: AtomicBool,
    pub(super) figures: OnceLock<Figures>,
    pub(super) fault: Arc<Fault>,
}

/// A batch, and who waits for it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) done: SyncSender<Result<(), StoreError>>,
}

/// Runs until all senders of requests are gone.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    requests: Receiver<Request>,
    log: LogState,
    bodies: Bodies,
    folding: Option<Folding>,
    pace: Pace,
    /// Goes with the first commit: what a recovery found that nobody refers to.
    cleanup: Batch,
    lazy: Option<Lazy>,
    /// Whether the last failure was for want of room.
    is_full: bool,
}

/// What is acknowledged before it is synced.
#[derive(Debug)]
pub(super) struct Lazy {
    pub(super) tail: Tail,
    /// Between two syncs.
    pub(super) every: Duration,
    /// Rows that are in the tail alone.
    rows: Vec<NumberedRow>,
    bytes: usize,
    due: Option<Instant>,
    /// Whether the last sync failed: then nothing more is acknowledged.
    is_failing: bool,
}

/// What there is to do next.
enum Next {
    Commit(Request),
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
}

impl Default for Pace {
    fn default() -> Self {
        let (slice, idle_slice) = (Duration::from_millis(1), Duration::from_millis(2));
        Self { bytes: 32 << 20, rows: 16_384, slice, idle_slice }
    }
}

/// Rows that wait for a sync; then it comes early.
const LAZY_BYTES: usize = 8 << 20;
/// Bytes of a group of batches, after which the rest waits for the next.
const GROUP_BYTES: usize = 16 << 20;
/// How long after a failed sync the next one is tried without anybody's asking.
const RETRY: Duration = Duration::from_secs(1);

impl Shared {
    pub(super) fn path(&self) -> &Path {
        self.medium.path()
    }

    pub(super) fn database(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is committed now, as long as the transaction is held.
    pub(super) fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let database = self.database();
        let database = database.as_ref().ok_or_else(|| self.unopened())?;
        database.begin_read().map_err(|error| StoreError::of("read", self.path(), error))
    }

    fn unopened(&self) -> StoreError {
        let why = "it could not be opened again since its last failure".to_owned();
        StoreError::Io { what: "use", path: self.path().to_owned(), why }
    }

    /// Opens the file, which takes as long as reading it does. `read` counts bytes on the way.
    pub(super) fn open(&self, read: Arc<AtomicU64>) -> Result<Database, StoreError> {
        let path = self.path();
        guarded(path, || {
            let inner = self.medium.open().map_err(|error| StoreError::of("open", path, error))?;
            format::open_database(Counted { inner, read, fault: Arc::clone(&self.fault) }, path)
        })
    }
}

/// Does something that may panic in the library, which for a file that somebody altered it says it may: then the file is
/// damaged, and the broker goes on.
pub(super) fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        Err(StoreError::damaged(path, text))
    })
}

impl Lazy {
    pub(super) fn new(tail: Tail, every: Duration) -> Self {
        Self { tail, every, rows: Vec::new(), bytes: 0, due: None, is_failing: false }
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        requests: Receiver<Request>,
        log: LogState,
        bodies: Bodies,
        cleanup: Batch,
        pace: Pace,
    ) -> Self {
        Self { shared, requests, log, bodies, folding: None, pace, cleanup, lazy: None, is_full: false }
    }

    pub(super) fn acknowledge_before_sync(&mut self, lazy: Lazy) {
        self.lazy = Some(lazy);
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
        let due = self.lazy.as_ref().and_then(|lazy| lazy.due);
        let now = Instant::now();
        if due.is_some_and(|due| due <= now) {
            return Next::Sync;
        }
        if self.has_to_fold() {
            return match self.requests.try_recv() {
                Ok(request) => Next::Commit(request),
                Err(TryRecvError::Empty) => Next::Fold,
                Err(TryRecvError::Disconnected) => Next::End,
            };
        }
        match due {
            None => self.requests.recv().map_or(Next::End, Next::Commit),
            Some(due) => match self.requests.recv_timeout(due - now) {
                Ok(request) => Next::Commit(request),
                Err(RecvTimeoutError::Timeout) => Next::Sync,
                Err(RecvTimeoutError::Disconnected) => Next::End,
            },
        }
    }

    pub(super) fn has_to_fold(&self) -> bool {
        let has_to = self.folding.is_some() || (self.lazy.is_none() && self.is_long());
        has_to && self.shared.database().is_some()
    }

    fn is_long(&self) -> bool {
        self.log.bytes > self.pace.bytes || self.log.last - self.log.folded > self.pace.rows
    }

    /// Begins a fold where the log has become long. All that is acknowledged has to be in the log by now: what was let go
    /// of in memory may be referred to there.
    fn begin_fold(&mut self) {
        if self.folding.is_none() && self.is_long() {
            let let_go = std::mem::take(&mut *dropped(&self.shared.dropped));
            self.bodies.let_go(let_go);
            self.folding = Some(Folding::new(&self.log));
        }
    }

    pub(super) fn commit_group(&mut self, first: Request) {
        let mut bytes = first.batch.bytes();
        let mut group = vec![first];
        while bytes < GROUP_BYTES
            && let Ok(request) = self.requests.try_recv()
        {
            bytes += request.batch.bytes();
            group.push(request);
        }
        let begun = Instant::now();
        let outcome = self.commit(&group);
        if let Some(figures) = self.shared.figures.get() {
            figures.committed(begun.elapsed(), group.len());
        }
        for request in group {
            // Who asked may have given up.
            let _ = request.done.send(outcome.clone());
        }
    }

    fn commit(&mut self, group: &[Request]) -> Result<(), StoreError> {
        let medium = &self.shared.medium;
        medium.is_in_place().map_err(|error| StoreError::io("write", medium.path(), &error))?;
        let waiting = self.lazy.as_ref().map_or(0, |lazy| lazy.rows.len() as u64);
        let number = self.log.last + waiting + 1;
        // No body of these batches has a greater one.
        let next_body = self.shared.next_body.load(Ordering::Acquire);
        let batches = std::iter::once(&self.cleanup).chain(group.iter().map(|request| &request.batch));
        let row = LogRow::seal(number, next_body, batches);
        self.put(number, row)?;
        self.log.next_body = next_body;
        self.cleanup = Batch::default();
        group.iter().flat_map(|request| request.batch.bodies()).for_each(|body| body.written());
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
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        lazy.tail.append(number, &row)?;
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

    /// Puts what is only in the tail where it is safe.
    fn sync(&mut self) -> Result<(), StoreError> {
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        let rows = std::mem::take(&mut lazy.rows);
        let outcome = if rows.is_empty() { Ok(()) } else { self.write(&rows, self.pace.slice) };
        let Some(lazy) = &mut self.lazy else { return Ok(()) };
        match outcome.and_then(|()| lazy.tail.clear()) {
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
        let (begun, shared) = (clock::now(), &self.shared);
        let path = shared.path();
        let merged = guarded(path, || {
            let of = |error: redb::Error| StoreError::of("read", path, error);
            let rows = shared.snapshot()?.open_table(LOG).map_err(|error| of(error.into()))?;
            folding.merge(&rows, path, begun + slice)
        });
        if merged.is_err() {
            // With the next commit everything begins anew.
            *shared.database() = None;
            self.folding = None;
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
        self.open_again()?;
        shared.fault.take();
        let outcome = guarded(shared.path(), || self.transact(rows, slice));
        let outcome = outcome.map_err(|told| match shared.fault.take() {
            Some(error) => StoreError::io("write", shared.path(), &error),
            None => told,
        });
        if let Err(error) = &outcome {
            *shared.database() = None;
            self.folding = None;
            self.is_full = matches!(error, StoreError::Full { .. });
        }
        outcome
    }

    fn transact(&mut self, rows: &[NumberedRow], slice: Duration) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let path = shared.path();
        let of = |error: redb::Error| StoreError::of("write", path, error);
        let begun = match &*shared.database() {
            Some(database) => begin(database).map_err(of),
            None => Err(shared.unopened()),
        };
        let txn = begun?;
        let mut log = self.log;
        if !rows.is_empty() {
            insert(&txn, rows).map_err(of)?;
            log.bytes += rows.iter().map(|(_, row)| row.len() as u64).sum::<u64>();
            log.last += rows.len() as u64;
        }
        if self.lazy.is_none() {
            self.begin_fold();
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
        if let Some(figures) = shared.figures.get() {
            figures.synced(begun.elapsed(), &self.log);
        }
        if is_folded {
            self.folding = None;
            self.bodies.folded();
        }
        Ok(())
    }

    /// Opens the file again after a failure, and sees whether all is there that was acknowledged.
    fn open_again(&mut self) -> Result<(), StoreError> {
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

pub(super) fn begin(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut txn = database.begin_write()?;
    // In one phase a bit that flips in the last commit looks like a commit that never was.
    txn.set_two_phase_commit(true);
    Ok(txn)
}

pub(super) fn insert(txn: &WriteTransaction, rows: &[NumberedRow]) -> Result<(), redb::Error> {
    let mut log = txn.open_table(LOG)?;
    for (number, row) in rows {
        // A commit that failed may have happened: what takes its number takes its place.
        log.insert(number, &**row)?;
    }
    Ok(())
}

/// Appends rows to the log of a file that nobody else writes.
pub(super) fn append(database: &Database, path: &Path, rows: &[NumberedRow]) -> Result<(), StoreError> {
    let append = || {
        let txn = begin(database)?;
        insert(&txn, rows)?;
        Ok::<_, redb::Error>(txn.commit()?)
    };
    append().map_err(|error| StoreError::of("write", path, error))
}
