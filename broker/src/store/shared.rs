//! State that the writer and its callers share, and the requests to the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use redb::{Database, ReadTransaction, ReadableDatabase as _};

use super::batch::Batch;
use super::copy::Copy;
use super::disk::{Counted, Fault, Medium};
use super::error::StoreError;
use super::figures::Figures;
use super::format::{self, Meta};
use super::headroom::Shortage;
use super::wiping::Replaced;
use crate::model::record::Dropped;

/// State that the writer and its callers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) medium: Box<dyn Medium>,
    /// `None` after a failure, until it was opened again. A std mutex: held to begin a transaction.
    pub(super) database: Mutex<Option<Database>>,
    pub(super) dropped: Arc<Dropped>,
    pub(super) next_body: AtomicU64,
    /// The number of the last commit that is known to be on disk.
    pub(super) last: AtomicU64,
    /// Tells copying threads to end.
    pub(super) is_closing: AtomicBool,
    /// Tells copying threads not to rest.
    pub(super) is_in_a_hurry: AtomicBool,
    pub(super) figures: OnceLock<Figures>,
    pub(super) shortage: Arc<Shortage>,
    /// Fault of the file that is open. A std mutex: held to clone a handle.
    fault: Mutex<Arc<Fault>>,
    /// Cloned with each snapshot.
    readers: Arc<()>,
    /// A std mutex: held by a backup and by a wipe from beginning to end, by threads that do nothing else.
    copying: Mutex<()>,
}

/// A request to the writer.
#[derive(Debug)]
pub(super) enum Request {
    Commit(Commit),
    /// To give a snapshot of the data that are committed now, after all data that were replaced or removed before are out of
    /// the file.
    Snapshot(SnapshotSender),
    /// To put a copy in the place of the file.
    Replace(Copy, SyncSender<Replaced>),
    /// To end, where others could still ask.
    End,
}

/// A batch, and the caller that waits for it.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) batch: Batch,
    pub(super) done: SyncSender<Result<(), StoreError>>,
}

pub(super) type SnapshotSender = SyncSender<Result<Snapshot, StoreError>>;

/// A transaction that reads. While there is one nothing is folded: what is not in it is in the log.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) txn: ReadTransaction,
    _reader: Arc<()>,
}

impl Shared {
    pub(super) fn new(medium: Box<dyn Medium>) -> Self {
        Self {
            medium,
            database: Mutex::new(None),
            dropped: Arc::default(),
            next_body: AtomicU64::new(0),
            last: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            is_in_a_hurry: AtomicBool::new(false),
            figures: OnceLock::new(),
            shortage: Arc::default(),
            fault: Mutex::default(),
            readers: Arc::default(),
            copying: Mutex::default(),
        }
    }

    /// Checks that a copying thread may go on.
    ///
    /// # Errors
    /// The store is closing.
    pub(super) fn goes_on(&self) -> Result<(), StoreError> {
        if self.is_closing.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) }
    }

    pub(super) fn fault(&self) -> MutexGuard<'_, Arc<Fault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self) -> &Path {
        self.medium.path()
    }

    pub(super) fn database(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other backup and no other wipe is under way, and keeps others from beginning.
    pub(super) fn copying(&self) -> MutexGuard<'_, ()> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the writer for a snapshot of what is committed now, from which a fold has removed what was replaced or removed before.
    pub(super) fn folded_snapshot(&self, requests: &SyncSender<Request>) -> Result<Snapshot, StoreError> {
        let (sender, folded) = mpsc::sync_channel(1);
        requests.send(Request::Snapshot(sender)).map_err(|_| StoreError::Closed)?;
        loop {
            match folded.recv_timeout(LOOK_EVERY) {
                Ok(snapshot) => return snapshot,
                Err(RecvTimeoutError::Timeout) => self.goes_on()?,
                Err(RecvTimeoutError::Disconnected) => return Err(StoreError::Closed),
            }
        }
    }

    /// A snapshot that keeps what comes later in the log.
    pub(super) fn long_snapshot(&self) -> Result<Snapshot, StoreError> {
        Ok(Snapshot { txn: self.snapshot()?, _reader: Arc::clone(&self.readers) })
    }

    /// Whether somebody has one.
    pub(super) fn has_readers(&self) -> bool {
        Arc::strong_count(&self.readers) > 1
    }

    /// All that is committed now, as long as the transaction is held.
    pub(super) fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let database = self.database();
        let database = database.as_ref().ok_or_else(|| self.unopened())?;
        database.begin_read().map_err(|error| StoreError::of("read", self.path(), error))
    }

    pub(super) fn unopened(&self) -> StoreError {
        let why = "it could not be opened again since its last failure".to_owned();
        StoreError::Io { what: "use", path: self.path().to_owned(), why }
    }

    /// Opens the file, which takes as long as reading it does. `read` counts bytes on the way.
    pub(super) fn open(&self, read: Arc<AtomicU64>) -> Result<Database, StoreError> {
        let path = self.path();
        guarded(path, || {
            let inner = self.medium.open().map_err(|error| StoreError::of("open", path, error))?;
            format::open_database(Counted { inner, read, fault: Arc::clone(&self.fault()) }, path)
        })
    }
}

impl Snapshot {
    /// The description of the file.
    pub(super) fn meta(&self, path: &Path) -> Result<Meta, StoreError> {
        Meta::read(&self.txn, path)?.ok_or_else(|| StoreError::damaged(path, "there is nothing in it"))
    }
}

/// Pause between two looks at whether the store closes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Does something that may panic in the library, which for a file that somebody altered it says it may: then the file is
/// damaged, and the broker goes on.
pub(super) fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        Err(StoreError::damaged(path, text))
    })
}
