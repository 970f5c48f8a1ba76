//! Wiping: what was replaced or removed leaves the disk as well.
//!
//! A change goes into the log, a fold takes its outcome into the tables, and the library writes pages anew and leaves the old ones
//! to be used again: so the bytes of an earlier position, or of a client that was forgotten, would stay in the file for as long as
//! it pleases. Some time after a change everything is folded, and all rows are copied into a new file, which takes the place of
//! the old one under its name. What the file system does with the room of the old one is its own matter.
//!
//! A thread copies while commits go on, and rests most of the time. Nothing is folded meanwhile; the rows that the log gets are
//! copied in rounds, and the last few by the writer, which then puts the new file in place.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction};

use super::copy::Copy;
use super::disk::Counted;
use super::error::StoreError;
use super::format::Meta;
use super::shared::{Shared, guarded};
use crate::model::clock;

/// When it is time to wipe, and what is under way.
#[derive(Debug)]
pub(super) struct Wiping {
    settings: Settings,
    /// When it is time; `None` while nothing has changed.
    due: Option<Instant>,
    /// Before then it would take too large a share of the time.
    rests_until: Instant,
    copying: Option<Copying>,
    /// Closes the file that was replaced, and gives its room back.
    retiring: Option<JoinHandle<()>>,
    /// Whether there was no room for the last one, which is told once.
    lacks_room: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// How long after a change it begins; `None`: never.
    pub(super) after: Option<Duration>,
    /// Whether another thread copies. In a simulation nothing happens by itself.
    pub(super) on_thread: bool,
}

/// A copy that is being made.
#[derive(Debug)]
struct Copying {
    begun: Instant,
    round: u32,
    /// Bytes of the log when this round began.
    log_bytes: u64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Running(JoinHandle<Outcome>),
    Done(Outcome),
}

type Outcome = Result<Copy, StoreError>;

/// A copy that has come as far as its snapshot.
pub(super) struct Copied {
    pub(super) outcome: Outcome,
    pub(super) begun: Instant,
    round: u32,
    log_bytes: u64,
}

/// Pause between two looks at whether a thread has ended, or the last reader of the file.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Pause between two looks at whether somebody has let go of a text that is on disk.
const LOOK_IDLE: Duration = Duration::from_secs(1);
/// The rest of a copying thread after a slice, and the pause after a whole copy, as multiples of the time that it took.
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(200);
/// Pause before a new try after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes that the writer copies itself, while others wait for it, and the number of rounds after which it takes more.
const LAST_BYTES: u64 = 256 << 10;
const ROUNDS: u32 = 8;

impl Wiping {
    /// Begins with a file of which nobody knows what was in it.
    pub(super) fn new(settings: Settings, is_empty: bool) -> Self {
        let now = clock::now();
        let mut wiping =
            Self { settings, due: None, rests_until: now, copying: None, retiring: None, lacks_room: false };
        if !is_empty {
            wiping.changed();
        }
        wiping
    }

    /// Something was written.
    pub(super) fn changed(&mut self) {
        if let (None, Some(after)) = (self.due, self.settings.after) {
            self.due = Some(clock::now() + after);
        }
    }

    fn when(&self) -> Option<Instant> {
        self.due.map(|due| due.max(self.rests_until))
    }

    /// Whether it is time to begin. If so, what changes from now on is for the next time.
    pub(super) fn begin(&mut self) -> bool {
        let is_due = self.copying.is_none() && self.when().is_some_and(|when| when <= clock::now());
        if is_due {
            self.due = None;
        }
        is_due
    }

    /// When to look at it again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.settings.after?;
        let now = clock::now();
        if self.copying.is_some() {
            return Some(now + LOOK_EVERY);
        }
        // Who lets go of a text does not wake anybody.
        Some(self.when().unwrap_or(now + LOOK_IDLE).max(now + LOOK_EVERY))
    }

    pub(super) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Begins a copy from a snapshot that has the log up to commit `last`, after a fold.
    pub(super) fn copy(&mut self, shared: &Arc<Shared>, txn: ReadTransaction, last: u64, log_bytes: u64) {
        let (for_work, begun) = (Arc::clone(shared), clock::now());
        let paces = self.settings.on_thread;
        let work = move || {
            guarded(for_work.path(), || {
                let copy = new_copy(&for_work, &txn)?;
                copy_on(&for_work, copy, &txn, last, paces)
            })
        };
        let work = self.start(work);
        self.copying = Some(Copying { begun, round: 1, log_bytes, work });
    }

    /// Goes on with a copy, where the log got much meanwhile. Says whether it is done so.
    pub(super) fn is_far_behind(copied: &Copied, log_bytes: u64) -> bool {
        copied.round < ROUNDS && log_bytes.saturating_sub(copied.log_bytes) > LAST_BYTES
    }

    /// Copies what the log got meanwhile.
    pub(super) fn copy_more(
        &mut self,
        shared: &Arc<Shared>,
        copied: Copied,
        txn: ReadTransaction,
        last: u64,
        log_bytes: u64,
    ) {
        let Copied { outcome, begun, round, .. } = copied;
        let for_work = Arc::clone(shared);
        let work = move || {
            let mut copy = outcome?;
            guarded(for_work.path(), || {
                copy.log(&txn, for_work.path(), last, || for_work.goes_on())?;
                Ok(copy)
            })
        };
        let work = self.start(work);
        self.copying = Some(Copying { begun, round: round + 1, log_bytes, work });
    }

    fn start(&self, work: impl FnOnce() -> Outcome + Send + 'static) -> Work {
        if !self.settings.on_thread {
            return Work::Done(work());
        }
        match thread::Builder::new().name("wipe".to_owned()).spawn(work) {
            Ok(thread) => Work::Running(thread),
            Err(error) => {
                let why = error.to_string();
                Work::Done(Err(StoreError::Io { what: "start a thread for", path: "wipe".into(), why }))
            }
        }
    }

    /// A copy whose thread has ended.
    pub(super) fn copied(&mut self) -> Option<Copied> {
        let is_running = |copying: &Copying| matches!(&copying.work, Work::Running(at) if !at.is_finished());
        if self.copying.as_ref().is_none_or(is_running) {
            return None;
        }
        let Copying { begun, round, log_bytes, work } = self.copying.take()?;
        let outcome = match work {
            Work::Running(thread) => thread.join().unwrap_or(Err(StoreError::Closed)),
            Work::Done(outcome) => outcome,
        };
        Some(Copied { outcome, begun, round, log_bytes })
    }

    /// Lets a file go that another has taken the place of.
    pub(super) fn retire(&mut self, old: Database) {
        let _ = self.retiring.take().map(JoinHandle::join);
        if self.settings.on_thread {
            // Where there can be no thread it is closed here.
            self.retiring = thread::Builder::new().name("retire".to_owned()).spawn(move || drop(old)).ok();
        }
    }

    /// It came to its end, or could not be done now.
    pub(super) fn ended(&mut self, shared: &Shared, begun: Option<Instant>, outcome: Result<(), StoreError>) {
        let (now, figures) = (clock::now(), shared.figures.get());
        let took = begun.map_or(Duration::ZERO, |begun| now - begun);
        self.rests_until = now + took * REST;
        match outcome {
            Ok(()) => {
                self.lacks_room = false;
                if let Some(figures) = figures {
                    figures.wiped(took);
                }
            }
            Err(error) => {
                shared.medium.give_up();
                let is_full = matches!(error, StoreError::Full { .. });
                self.rests_until = self.rests_until.max(now + RETRY);
                self.changed();
                let is_known = std::mem::replace(&mut self.lacks_room, is_full) && is_full;
                if !is_known && !matches!(error, StoreError::Closed) {
                    tracing::warn!(%error, "what was replaced or removed could not be wiped; it is tried again");
                    figures.into_iter().for_each(|figures| figures.wipe_failures.increment(1));
                }
            }
        }
    }

    /// Ends with the store; a copy that is not finished goes.
    pub(super) fn close(&mut self, shared: &Shared) {
        if let Some(Copying { work: Work::Running(thread), .. }) = self.copying.take() {
            let _ = thread.join();
            shared.medium.give_up();
        }
        let _ = self.retiring.take().map(JoinHandle::join);
    }
}

fn new_copy(shared: &Shared, txn: &ReadTransaction) -> Outcome {
    let path = shared.path();
    let Some(meta) = Meta::read(txn, path)? else {
        return Err(StoreError::damaged(path, "there is nothing in it"));
    };
    shared.has_room_for_copy(shared.medium.used_bytes())?;
    let inner =
        shared.medium.begin_anew().map_err(|error| StoreError::io("make a new file for", path, &error))?;
    Copy::begin(Counted { inner, read: Arc::default(), fault: Arc::default() }, path, &meta)
}

fn copy_on(shared: &Shared, mut copy: Copy, txn: &ReadTransaction, last: u64, paces: bool) -> Outcome {
    let mut begun = Instant::now();
    let mut between = || {
        shared.goes_on()?;
        shared.has_room_for_copy(0)?;
        if paces && !shared.is_in_a_hurry.load(Ordering::Relaxed) {
            thread::sleep((begun.elapsed() * REST).min(REST_MAX));
        }
        begun = Instant::now();
        Ok(())
    };
    copy.tables(txn, shared.path(), &mut between)?;
    copy.log(txn, shared.path(), last, between)?;
    Ok(copy)
}
