//! The store, for everything that outlives the broker: records on disk, and nothing of what they mean.
//!
//! A data directory (`store.data`, readable by its owner alone) holds
//!
//! - `store.redb`: all of it, in the format of the library `redb` 4, which checks pages when the file is opened;
//! - `store.new`: what takes its place soon ([`wiping`]);
//! - `tail`, with `store.fsync = "interval"`: what was acknowledged since the last sync ([`tail`]);
//! - `ballast`: room that is set aside, and given up when the disk is full ([`headroom`]);
//! - `push-key.pem`: the key by which push services know the broker, made by room `push`;
//! - `lock`: held by the one broker there may be, with its process id once there is a `store.redb`;
//! - `member`, `went-back`: in a cluster, the name of the member whose directory it is, and whether it has seen the ledger go back ([`replica`]);
//! - `control`: a socket that a running broker takes orders on ([`control`]).
//!
//! `store.redb` is a log with tables behind it. A commit appends one row to table `log`, with all changes of all batches
//! that were waiting, for in a B-tree what costs is the number of pages that are touched. When the log is some
//! megabytes long, what its rows come to goes into the tables ([`keys::Table`]) in the order of their keys
//! ([`fold`]), and what was put and removed meanwhile never gets there. Reading back is the tables and, over them, the
//! rows of the log in their order ([`recovery`]).
//!
//! Matches of an event are one change in the log, with all recipients, and in the tables a row for each client and some of
//! its matches ([`kept`]). The text of an event is written once, whoever refers to it.
//!
//! Each row of the log and each record has a CRC-32 of its own, which covers where it belongs; the library checks pages
//! only when a file is opened. Table `meta` says the format's version and the world; another is refused.
//!
//! A commit is one transaction, in two phases and synced ([`writer`]). One that failed may have happened: its number is
//! given to the next, which takes its place.
//!
//! Replaced and removed data leave the disk when all rows are written into a new file that takes the place of the old one: some
//! time after a client was deleted, and on demand ([`wiping`]).

mod backup;
mod batch;
mod check;
mod control;
mod copy;
mod disk;
mod error;
mod figures;
mod fold;
mod format;
mod headroom;
mod kept;
mod keys;
mod lock;
mod records;
mod recovery;
mod replica;
mod replication;
mod shared;
mod tail;
mod window;
mod wiping;
mod writer;

#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), expect(dead_code, reason = "tests break it in more ways"))]
mod breakable;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod inline;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::config::{self, Fsync, WorldName};
use crate::model::record::{BodyId, StoredBody};

pub(crate) use backup::{PUSH_KEY, back_up};
pub(crate) use batch::Batch;
pub(crate) use check::check;
pub(crate) use copy::Written;
pub(crate) use error::StoreError;
pub(crate) use figures::Figures;
pub(crate) use headroom::{Accepted, Shortage};
pub(crate) use records::{
    Decision, StoredDecisions, StoredFinding, StoredFrontier, StoredLive, StoredMatch, StoredPosition,
    StoredPush, StoredSession, StoredStanding, StoredState,
};
pub(crate) use recovery::{Recovered, RecoveredBody, RecoveredClient, RecoveredMatch};
pub(crate) use replica::Replica;
pub(crate) use replication::{Ledger, SnapshotParts};
pub(crate) use wiping::wipe;

use disk::{Counted, FileMedium, Medium};
use lock::Lock;
use replication::{Replication, SNAPSHOT_BYTES};
use shared::{Commit, Request, Shared, guarded};
use tail::{Found, Tail};
use writer::{Lazy, Pace, Writer};

/// A data directory that this process has. A clone is another handle to it; with the last one what is under way is
/// written and the directory is let go.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// `None` once it is closing.
    requests: Option<SyncSender<Request>>,
    /// The writer's, and the one that wipes.
    threads: Vec<JoinHandle<()>>,
    control: Option<control::Control>,
    /// Goes last.
    _lock: Option<Lock>,
}

/// How far opening has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    pub(crate) done: u64,
    /// About how much there is.
    pub(crate) of: u64,
}

/// The phases of opening a store, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Bytes are compared with their checksums.
    Verifying,
    /// Records are read.
    Reading,
}

/// Callers whose batches wait for the writer beyond those in the group that it commits; further ones wait here.
const REQUESTS_MAX: usize = 1_024;
/// How often it is told how far the verifying has come.
const TELL_EVERY: Duration = Duration::from_millis(200);

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Verifying => "bytes verified",
            Self::Reading => "records read",
        }
    }
}

/// The file with everything in it.
fn store_file(dir: &Path) -> PathBuf {
    dir.join("store.redb")
}

fn tail_file(dir: &Path) -> PathBuf {
    dir.join("tail")
}

impl Store {
    /// Whether there is something in a directory to be read back.
    pub(crate) fn is_in(dir: &Path) -> bool {
        store_file(dir).exists()
    }

    /// Opens the data directory, made if it is not there, and reads back what is in it.
    ///
    /// Cost: the file is read from end to end and its checksums are compared, some seconds for each gigabyte.
    ///
    /// # Errors
    /// A directory that another broker has, that is of another world or version, that is damaged, or that cannot be read
    /// or written.
    pub(crate) fn open(
        settings: &config::Store,
        world: WorldName,
        progress: impl Fn(Progress),
    ) -> Result<(Self, Recovered), StoreError> {
        let dir = Path::new(&settings.data);
        lock::make_dir(dir)?;
        let lazily = (settings.fsync == Fsync::Interval).then_some(Duration::from_millis(settings.fsync_ms));
        Self::open_dir(dir, Some(world), lazily, Pace::default(), &progress)
    }

    fn open_dir(
        dir: &Path,
        world: Option<WorldName>,
        lazily: Option<Duration>,
        pace: Pace,
        progress: &dyn Fn(Progress),
    ) -> Result<(Self, Recovered), StoreError> {
        let mut lock = Lock::take(dir)?;
        let path = store_file(dir);
        if let Some(world) = world
            && !is_there(&path)?
        {
            if let Some(left) = lock.left_in(dir)? {
                return Err(StoreError::Gone { dir: dir.to_owned(), left });
            }
            make(&path, world)?;
        }
        lock.sign();
        let medium = Box::new(FileMedium::new(path));
        let (mut store, recovered) = Self::open_medium(medium, world, Some((dir, lazily)), pace, progress)?;
        store.serve_orders(dir, Some(lock));
        Ok((store, recovered))
    }

    /// Takes orders in a directory that this process has.
    fn serve_orders(&mut self, dir: &Path, lock: Option<Lock>) {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.control = inner
                .requests
                .as_ref()
                .and_then(|requests| control::Control::start(dir, &inner.shared, requests));
            inner._lock = lock;
        }
    }

    /// Opens the data directory of a broker that does not run.
    fn open_stopped(dir: &Path) -> Result<Self, StoreError> {
        let file = store_file(dir);
        std::fs::metadata(&file).map_err(|error| StoreError::io("read", &file, &error))?;
        Self::open_dir(dir, None, None, Pace::default(), &|_| {}).map(|(store, _)| store)
    }

    fn open_medium(
        medium: Box<dyn Medium>,
        world: Option<WorldName>,
        dir: Option<(&Path, Option<Duration>)>,
        pace: Pace,
        progress: &dyn Fn(Progress),
    ) -> Result<(Self, Recovered), StoreError> {
        let prepared = prepare(medium, world, dir, pace, progress)?;
        // Where no broker runs, nothing is deleted, and somebody else sees to what is due.
        Self::start(prepared, pace, world.is_some())
    }

    /// Opens the data directory of a member of a cluster that has become the active one. What is committed from now on is in the
    /// ledger first.
    ///
    /// # Errors
    /// A directory that cannot be read or written.
    pub(crate) fn open_replica(
        replica: Replica,
        ledger: Box<dyn Ledger>,
        world: WorldName,
        progress: impl Fn(Progress),
    ) -> Result<(Self, Recovered), StoreError> {
        Self::open_replica_at(replica, ledger, world, (Pace::default(), SNAPSHOT_BYTES), &progress)
    }

    fn open_replica_at(
        replica: Replica,
        ledger: Box<dyn Ledger>,
        world: WorldName,
        (pace, snapshot_bytes): (Pace, u64),
        progress: &dyn Fn(Progress),
    ) -> Result<(Self, Recovered), StoreError> {
        let (dir, lock) = replica.finish()?;
        let medium = Box::new(FileMedium::new(store_file(&dir)));
        let mut prepared = prepare(medium, None, None, pace, progress)?;
        let (writer, _, recovered) = &mut prepared;
        writer.shared.look_for_room();
        let replication = Replication::new(ledger, world, recovered.dealing, snapshot_bytes);
        writer.acknowledge_before_sync(Lazy::replicated(replication));
        if replica::went_back(&dir) {
            writer.commit_now(recovered.begin_epochs())?;
            replica::has_new_epochs(&dir);
            tracing::warn!("the cluster's ledger went back: its sessions begin new epochs");
        }
        let (mut store, recovered) = Self::start(prepared, pace, true)?;
        store.serve_orders(&dir, lock);
        Ok((store, recovered))
    }

    fn start(
        (mut writer, requests, recovered): Prepared,
        pace: Pace,
        wipes: bool,
    ) -> Result<(Self, Recovered), StoreError> {
        let shared = Arc::clone(&writer.shared);
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(|error| StoreError::io("start a thread for", shared.path(), &error))
        };
        let mut threads = Vec::new();
        if wipes {
            let (deleted, deletions) = mpsc::sync_channel(1);
            writer.deletions = Some(deleted);
            let (shared, requests, owed) = (Arc::clone(&shared), requests.clone(), recovered.owes_wipe);
            let wiping = move || wiping::run(&shared, &requests, &deletions, pace.wipe_after, owed);
            threads.push(start("wipe", Box::new(wiping))?);
        }
        threads.push(start("store", Box::new(move || writer.run()))?);
        let inner = Inner { shared, requests: Some(requests), threads, control: None, _lock: None };
        Ok((Self { inner: Arc::new(inner) }, recovered))
    }

    /// Puts a batch on disk: when this returns it survives a loss of power, or with `store.fsync = "interval"` the
    /// broker's end. All of it or nothing. Blocks; callers that wait at the same time share one write.
    ///
    /// # Errors
    /// Why the batch is not on disk. It stays with the caller, who commits it again later: to commit it twice does no harm.
    /// The fault may pass (a full disk); each call tries anew.
    pub(crate) fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let requests = self.inner.requests.as_ref().ok_or(StoreError::Closed)?;
        let (done, outcome) = mpsc::sync_channel(1);
        requests
            .send(Request::Commit(Commit { batch: batch.clone(), done }))
            .map_err(|_| StoreError::Closed)?;
        outcome.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// A handle for a body that is put with a batch. It is held until that batch, and those in which something refers to
    /// the body, are committed.
    pub(crate) fn new_body(&self) -> Arc<StoredBody> {
        let shared = &self.inner.shared;
        let id = BodyId(shared.next_body.fetch_add(1, Ordering::AcqRel));
        StoredBody::new(id, false, &shared.dropped)
    }

    /// Counts from now on. Once.
    pub(crate) fn count_in(&self, figures: Figures) {
        // Whoever comes later counts what the first counts.
        let _ = self.inner.shared.figures.set(figures);
        self.inner.shared.show_short();
    }

    /// Whether the disk is full, as it changes.
    pub(crate) fn shortage(&self) -> Arc<Shortage> {
        Arc::clone(&self.inner.shared.shortage)
    }

    /// Copies all that is committed now into a new directory, while commits go on.
    pub(crate) fn backup(&self, to: &Path) -> Result<Written, StoreError> {
        let requests = self.inner.requests.as_ref().ok_or(StoreError::Closed)?;
        backup::copy(&self.inner.shared, requests, to)
    }

    /// Writes everything anew, without what was replaced or removed; returns when that is in place.
    fn wipe(&self) -> Result<Written, StoreError> {
        let requests = self.inner.requests.as_ref().ok_or(StoreError::Closed)?;
        wiping::now(&self.inner.shared, requests, 0)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        self.control = None;
        // Who asks for a copy may have a sender of its own.
        self.requests.take().into_iter().for_each(|requests| drop(requests.send(Request::End)));
        // A thread that panicked has said so itself.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A writer that has yet to be run, its queue, and what was found.
type Prepared = (Writer, SyncSender<Request>, Recovered);

/// Opens what is there and reads it back, for a writer that has yet to be run.
fn prepare(
    medium: Box<dyn Medium>,
    world: Option<WorldName>,
    dir: Option<(&Path, Option<Duration>)>,
    pace: Pace,
    progress: &dyn Fn(Progress),
) -> Result<Prepared, StoreError> {
    let shared = Arc::new(Shared::new(medium));
    let pace = Pace { bytes: pace.bytes.min(shared.log_bytes_max()), ..pace };
    // What was being written when the process ended.
    shared.medium.give_up();
    if world.is_some() {
        // On a disk that is full a start needs room as well.
        shared.look_for_room();
    }
    let path = shared.path();
    let database = verified(&shared, progress)?;
    let (meta, mut contents) = guarded(path, || {
        let meta = format::prepare(&database, path, world)?;
        *shared.database() = Some(database);
        let contents = read_back(&shared, &meta, progress)?;
        Ok((meta, contents))
    })?;
    let (requests, waiting) = mpsc::sync_channel(REQUESTS_MAX);
    let mut lazy = None;
    if let Some((dir, lazily)) = dir
        && (lazily.is_some() || tail_file(dir).exists())
    {
        let (mut tail, Found { rows, rest_bytes }) = Tail::open(tail_file(dir), contents.log.last)?;
        if rest_bytes > 0 {
            let path = tail_file(dir);
            tracing::warn!(path = %path.display(), rest_bytes, "{}", tail::CUT);
        }
        if !rows.is_empty() {
            let append = |database: &Option<_>| match database {
                Some(database) => format::append(database, path, &rows),
                None => Err(StoreError::Closed),
            };
            guarded(path, || append(&*shared.database()))?;
            contents = guarded(path, || read_back(&shared, &meta, progress))?;
        }
        tail.clear()?;
        lazy = lazily.map(|every| Lazy::new(tail, every));
    }
    if meta.is_copy && world.is_some() {
        backup::take_over(&shared, &mut contents)?;
    }
    shared.next_body.store(contents.log.next_body, Ordering::Release);
    let (log, references) = (contents.log, std::mem::take(&mut contents.references));
    let (recovered, cleanup) = contents.recover(&shared.dropped);
    if cleanup.dangling_count > 0 {
        let count = cleanup.dangling_count;
        tracing::warn!(path = %path.display(), count, "records refer to what is not there; they are removed");
    }
    let (cleanup, noted_ms) = (cleanup.batch, meta.believed_ms);
    let mut writer = Writer::new(Arc::clone(&shared), waiting, log, references, cleanup, noted_ms, pace);
    if let Some(lazy) = lazy {
        writer.acknowledge_before_sync(lazy);
    }
    Ok((writer, requests, recovered))
}

/// Whether there is something of this name, a link to nowhere included.
fn is_there(path: &Path) -> Result<bool, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("look for", path, &error)),
    }
}

/// Makes a new file. Under its name there is a whole one or none, whenever power is lost.
fn make(path: &Path, world: WorldName) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    let of = |error| StoreError::io("make", path, &error);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of(error)),
        _ => {}
    }
    let inner = FileMedium::new(new.clone()).create().map_err(of)?;
    let backend = Counted { inner, read: Arc::default(), fault: Arc::default() };
    let database = format::open_database(backend, &new)?;
    format::prepare(&database, &new, Some(world))?;
    drop(database);
    std::fs::rename(&new, path).and_then(|()| path.parent().map_or(Ok(()), disk::sync_dir)).map_err(of)
}

/// Opens the file and tells how far it has come meanwhile.
fn verified(shared: &Shared, progress: &dyn Fn(Progress)) -> Result<redb::Database, StoreError> {
    let read = Arc::new(AtomicU64::new(0));
    let of = std::fs::metadata(shared.path()).map_or(0, |file| file.len());
    let tell = |done: u64| progress(Progress { phase: Phase::Verifying, done: done.min(of), of });
    thread::scope(|scope| {
        let (ended, end) = mpsc::sync_channel(0);
        let counter = Arc::clone(&read);
        let opened = scope.spawn(move || {
            let opened = shared.open(counter);
            drop(ended);
            opened
        });
        let _: Result<(), _> = loop {
            match end.recv_timeout(TELL_EVERY) {
                Err(mpsc::RecvTimeoutError::Timeout) => tell(read.load(Ordering::Relaxed)),
                outcome => break outcome,
            }
        };
        tell(of);
        opened.join().unwrap_or(Err(StoreError::Closed))
    })
}

fn read_back(
    shared: &Shared,
    meta: &format::Meta,
    progress: &dyn Fn(Progress),
) -> Result<recovery::Contents, StoreError> {
    let mut tell = |done, of| progress(Progress { phase: Phase::Reading, done, of });
    let mut fault = |what| Err(StoreError::damaged(shared.path(), what));
    recovery::read(&shared.snapshot()?, meta, shared.path(), &mut tell, &mut fault)
}
