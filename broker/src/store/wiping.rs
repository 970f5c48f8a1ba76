//! Wiping: what was replaced or removed leaves the disk as well.
//!
//! A change goes into the log, a fold takes its outcome into the tables, and the library writes pages anew and leaves the old ones
//! to be used again: so the bytes of an earlier position, or of a client that was deleted, would stay in the file for as long as
//! it pleases. To wipe is to fold everything, and to copy all rows into a new file, which takes the place of the old one under its
//! name. What the file system does with the room of the old one is its own matter.
//!
//! It is done on demand, and some time after a client was deleted. A row of table `wipe` is put with each deletion and is not
//! copied, so that it is there after a restart as long as the wipe is due.
//!
//! Commits go on meanwhile. Nothing is folded while somebody holds a snapshot; the rows that the log gets are copied in rounds,
//! and the last few by the writer, which then puts the new file in place.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use redb::Database;

use super::Store;
use super::control;
use super::copy::{Copy, Written};
use super::disk::Counted;
use super::error::StoreError;
use super::shared::{Request, Shared, Snapshot, guarded};
use super::writer::Writer;

/// The answer of the writer to a copy that is ready: the file that was replaced, to be closed by somebody who has time.
pub(super) type Replaced = Result<(Written, Database), StoreError>;

/// How long after a client was deleted it is done: one wipe is for all that are deleted meanwhile.
pub(super) const AFTER_DELETION: Duration = Duration::from_secs(300);
/// The rest of a copying thread after a part, as a multiple of the time that it took.
pub(super) const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(200);
/// Least pause before a new try after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes that the writer copies itself, while others wait for it, and the number of rounds after which it takes more.
const LAST_BYTES: u64 = 256 << 10;
const ROUNDS: u32 = 8;

/// Wipes a data directory, through the broker that has it if one does.
///
/// # Errors
/// Fails as [`Store::open`] does, and where there is no room for a second file.
pub(crate) fn wipe(dir: &Path) -> Result<Written, StoreError> {
    match Store::open_stopped(dir) {
        Ok(store) => store.wipe(),
        Err(StoreError::InUse { dir, holder }) => control::ask_to_wipe(&dir, &holder),
        Err(error) => Err(error),
    }
}

/// Wipes some time after each deletion, and at once where one is `owed` already. Runs until the writer has ended.
pub(super) fn run(
    shared: &Shared,
    requests: &SyncSender<Request>,
    deletions: &Receiver<()>,
    after: Duration,
    owed: bool,
) {
    let mut wait = Duration::ZERO;
    if !owed {
        match deletions.recv() {
            Ok(()) => wait = after,
            Err(_) => return,
        }
    }
    while has_waited(deletions, wait) {
        wait = after;
        match now(shared, requests, REST) {
            Ok(_) => {
                if deletions.recv().is_err() {
                    return;
                }
            }
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "what was deleted could not be wiped");
                shared.figures.get().into_iter().for_each(|figures| figures.wipe_failures.increment(1));
                wait = wait.max(RETRY);
            }
        }
    }
}

/// Waits. What is deleted meanwhile goes with the same wipe; says whether the writer still runs.
fn has_waited(deletions: &Receiver<()>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        match deletions.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Wipes now, and rests `rest` times as long as each part of it took.
pub(super) fn now(shared: &Shared, requests: &SyncSender<Request>, rest: u32) -> Result<Written, StoreError> {
    let _alone = shared.copying();
    let begun = Instant::now();
    if shared.shortage.is_short() {
        let why = "the disk is full".to_owned();
        return Err(StoreError::Full { path: shared.path().to_owned(), why });
    }
    let snapshot = shared.folded_snapshot(requests)?;
    let replaced = guarded(shared.path(), || copied(shared, &snapshot, rest)).and_then(|copy| {
        let (done, outcome) = mpsc::sync_channel(1);
        requests.send(Request::Replace(copy, done)).map_err(|_| StoreError::Closed)?;
        outcome.recv().unwrap_or(Err(StoreError::Closed))
    });
    // Closing what was replaced gives its room back, which may take its time.
    match replaced {
        Ok((written, old)) => {
            drop((snapshot, old));
            shared.figures.get().into_iter().for_each(|figures| figures.wipe.record(begun.elapsed()));
            Ok(written)
        }
        Err(error) => {
            shared.medium.give_up();
            Err(error)
        }
    }
}

/// A new file with the rows of a snapshot, and with what the log got meanwhile but for the last of it.
pub(super) fn copied(shared: &Shared, snapshot: &Snapshot, rest: u32) -> Result<Copy, StoreError> {
    let path = shared.path();
    shared.has_room_for_copy(shared.medium.used_bytes())?;
    let inner =
        shared.medium.begin_anew().map_err(|error| StoreError::io("make a new file for", path, &error))?;
    let backend = Counted { inner, read: Arc::default(), fault: Arc::default() };
    let mut copy = Copy::begin(backend, path, &snapshot.meta(path)?)?;
    let mut begun = Instant::now();
    copy.tables(&snapshot.txn, path, || {
        shared.goes_on()?;
        shared.has_room_for_copy(0)?;
        if !shared.is_in_a_hurry.load(Ordering::Relaxed) {
            thread::sleep((begun.elapsed() * rest).min(REST_MAX));
        }
        begun = Instant::now();
        Ok(())
    })?;
    for _ in 0..ROUNDS {
        let last = shared.last.load(Ordering::Acquire);
        if copy.log(&shared.snapshot()?, path, last, || shared.goes_on())? <= LAST_BYTES {
            break;
        }
    }
    Ok(copy)
}

impl Writer {
    /// Puts a copy in the place of the file, with the last rows of the log.
    pub(super) fn replace(&mut self, mut copy: Copy) -> Replaced {
        let shared = Arc::clone(&self.shared);
        let path = shared.path();
        guarded(path, || copy.log(&shared.snapshot()?, path, self.log.last, || Ok(())))?;
        if let Err(error) = shared.medium.put_in_place() {
            // Which of the two it is now is found out when it is opened again.
            *shared.database() = None;
            let error = StoreError::io("replace", path, &error);
            self.give_up_fold(&error);
            return Err(error);
        }
        let written = Written { records: copy.records, bytes: shared.medium.used_bytes() };
        let (database, fault) = copy.into_parts();
        *shared.fault() = fault;
        // What it was when the copy was begun.
        self.noted_ms = 0;
        let old = shared.database().replace(database).ok_or_else(|| shared.unopened())?;
        if let Some(replication) = self.replication() {
            replication.wiped();
        }
        Ok((written, old))
    }
}
