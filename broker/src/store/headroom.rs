//! Headroom: the part of the disk that is kept free, so that removals can be written when it is full.
//!
//! A disk with less than a reserve free counts as full: what adds to the data is refused before it comes here ([`Shortage`]). Removals are written
//! with the room that is left, and make room in place: the log is folded, the library moves the pages that are in use to the beginning of the
//! file, and cuts off its end. Nothing is written where the file system might refuse in the middle of it: what a transaction that failed has
//! written takes room until the file is cut off, so that a few of those would leave none.
//!
//! Between an event's being accepted and its being on disk the disk may become full. What is accepted and not written yet is therefore
//! bounded by what is free ([`Shortage::accept`]).
//!
//! Others may fill the disk as well. Against that a second reserve is set aside in a file of its own, the ballast, which is removed when the first
//! one is used up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redb::CompactionError;

use super::disk::Space;
use super::error::StoreError;
use super::shared::{Shared, guarded};
use super::writer::Writer;
use crate::model::clock;

/// Whether the disk counts as full, and how much more may be accepted before it does.
#[derive(Debug)]
pub(crate) struct Shortage {
    is_short: AtomicBool,
    /// Bytes that were free when somebody looked last, without the half of the reserve that removals need.
    room: AtomicU64,
    /// Bytes that were accepted and may not be on disk yet.
    accepted: AtomicU64,
}

/// Bytes that count as accepted until it is dropped.
#[derive(Debug)]
pub(crate) struct Accepted {
    shortage: Arc<Shortage>,
    bytes: u64,
}

/// How far the making of room has come.
#[derive(Debug)]
pub(super) struct MakingRoom {
    /// When to look again.
    look_at: Instant,
    /// The log was folded for it.
    pub(super) is_folded: bool,
    /// How the last commit and what was free stood when it was made last: where they stand so still, there is none to make.
    stood: Option<(u64, u64)>,
}

/// The part of the disk that is the reserve, and its bounds in bytes.
const PART: u64 = 16;
const LEAST: u64 = 8 << 20;
const MOST: u64 = 128 << 20;
/// Bytes that the file may grow by for each byte that is written to the log: the library gives a long row twice its length.
const WRITTEN: u64 = 2;

/// Pause after making room, as a multiple of the time that it took: commits wait while room is made, which is to take a small
/// part of the time.
const REST: u32 = 10;
/// The library needs some room to move pages.
const COMPACT_BYTES: u64 = 2 << 20;
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Default for Shortage {
    fn default() -> Self {
        Self { is_short: AtomicBool::new(false), room: AtomicU64::new(u64::MAX), accepted: AtomicU64::new(0) }
    }
}

impl Shortage {
    /// Whether only removals are taken.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// Accepts texts of these sizes, in bytes, as many of them as there is room for; says how many those are. One alone is always
    /// accepted: if it is too much, the disk counts as full before it is written.
    pub(crate) fn accept(self: &Arc<Self>, sizes: impl Iterator<Item = u64>) -> (usize, Accepted) {
        let mut accepted = Accepted { shortage: Arc::clone(self), bytes: 0 };
        (sizes.take_while(|bytes| accepted.add(*bytes)).count(), accepted)
    }
}

impl Accepted {
    fn add(&mut self, bytes: u64) -> bool {
        let Shortage { room, accepted, .. } = &*self.shortage;
        let before = accepted.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || WRITTEN * (before + bytes) <= room.load(Ordering::Relaxed);
        if fits {
            self.bytes += bytes;
        } else {
            accepted.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        self.shortage.accepted.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Space {
    fn reserve(self) -> u64 {
        (self.total / PART).clamp(LEAST, MOST)
    }

    /// Bytes that have to be free to fold a log of so many.
    fn to_fold(self, log_bytes: u64) -> u64 {
        log_bytes + self.reserve() / 16
    }
}

impl Shared {
    /// Looks how much is free, and says so; `None` where that is not known. The ballast goes when little is, and comes back when much is.
    pub(super) fn look_for_room(&self) -> Option<Space> {
        let space = self.medium.space()?;
        let reserve = space.reserve();
        let mut space = self.with_ballast(space, reserve / 2);
        if space.free >= 3 * reserve && !self.medium.has_ballast() && self.medium.set_ballast(reserve).is_ok()
        {
            space = self.medium.space()?;
        }
        self.shortage.room.store(space.free.saturating_sub(reserve / 2), Ordering::Relaxed);
        if !self.shortage.is_short() && space.free < reserve {
            self.say_short(true);
            let (path, free) = (self.path().display(), space.free);
            tracing::error!(%path, free, reserve, "the disk is full: only removals are taken until there is room");
        }
        Some(space)
    }

    /// Gives the ballast up where fewer than `needed` bytes are free; returns the space as it is then.
    fn with_ballast(&self, space: Space, needed: u64) -> Space {
        if space.free >= needed || !self.medium.has_ballast() {
            return space;
        }
        self.medium.drop_ballast();
        tracing::error!(path = %self.path().display(), "the disk is nearly full: what was set aside for removals is in use");
        self.medium.space().unwrap_or(space)
    }

    /// Room was made: ends the shortage if it is enough, for the ballast as well.
    fn end_shortage(&self) {
        let is_enough = |space: Space| space.free >= 2 * space.reserve();
        if self.look_for_room().is_some_and(is_enough) && self.medium.has_ballast() {
            self.say_short(false);
            tracing::info!(path = %self.path().display(), "there is room on the disk again");
        }
    }

    fn say_short(&self, is_short: bool) {
        self.shortage.is_short.store(is_short, Ordering::Release);
        self.show_short();
    }

    /// At how many bytes the log is folded at the latest: while it is, its rows are there twice, and that has to fit into the reserve.
    pub(super) fn log_bytes_max(&self) -> u64 {
        self.medium.space().map_or(u64::MAX, |space| space.reserve() / 4)
    }

    /// Whether so much of the log can be folded now.
    pub(super) fn can_fold(&self, log_bytes: u64) -> bool {
        self.medium.space().is_none_or(|space| space.free >= space.to_fold(log_bytes))
    }

    pub(super) fn show_short(&self) {
        if let Some(figures) = self.figures.get() {
            figures.short.set(f64::from(u8::from(self.shortage.is_short())));
        }
    }

    /// Checks that `bytes` bytes can be written.
    ///
    /// # Errors
    /// They might find no room.
    pub(super) fn has_room_for(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(space) = self.look_for_room() else { return Ok(()) };
        let needed = 2 * bytes + space.reserve() / 8;
        self.has_free(self.with_ballast(space, needed), needed)
    }

    /// Checks that a copy of the file may become `bytes` bytes longer. It leaves the reserve to what is committed meanwhile.
    ///
    /// # Errors
    /// It would come near to filling the disk.
    pub(super) fn has_room_for_copy(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(space) = self.medium.space() else { return Ok(()) };
        self.has_free(space, bytes + 2 * space.reserve())
    }

    fn has_free(&self, space: Space, needed: u64) -> Result<(), StoreError> {
        if space.free >= needed {
            return Ok(());
        }
        let why = format!("{needed} bytes have to be free, and {} are", space.free);
        Err(StoreError::Full { path: self.path().to_owned(), why })
    }
}

impl MakingRoom {
    pub(super) fn new() -> Self {
        Self { look_at: clock::now(), is_folded: false, stood: None }
    }
}

impl Writer {
    /// Where the disk counts as full: sees whether it still does, and makes room of what was removed. Says when to look again.
    pub(super) fn make_room(&mut self) -> Option<Instant> {
        if !self.shared.shortage.is_short() {
            return None;
        }
        let now = clock::now();
        if now < self.making_room.look_at {
            return Some(self.making_room.look_at);
        }
        let log_bytes = self.log.bytes;
        let with_ballast = |space: Space| self.shared.with_ballast(space, space.to_fold(log_bytes));
        let space = self.shared.look_for_room().map(with_ballast);
        let stands = space.map(|space| (self.log.last, space.free));
        // Where no text was let go of there is little to gain, and to move pages would take room.
        let is_same = !self.has_let_go() && !self.making_room.is_folded;
        let is_again = self.making_room.stood == stands && !self.has_just_let_go();
        let is_made = is_same || is_again || self.shared.has_readers();
        if stands.is_some_and(|(_, free)| free < COMPACT_BYTES) {
            // What it cannot finish takes room as well.
            self.making_room.look_at = now + LOOK_EVERY;
            return Some(self.making_room.look_at);
        }
        let is_folded = self.making_room.is_folded || !self.shared.can_fold(log_bytes);
        if is_folded && !is_made {
            self.compact();
        } else if !is_made {
            self.awaiting_next.room = true;
        } else if is_same || is_again {
            // Somebody else may have made some.
            self.shared.end_shortage();
        }
        let ended = clock::now();
        self.making_room.look_at = ended + LOOK_EVERY.max(ended.saturating_duration_since(now) * REST);
        Some(self.making_room.look_at)
    }

    /// All of the log is folded, or cannot be: what was removed is free in the file.
    pub(super) fn folded_for_room(&mut self) {
        self.making_room.is_folded = true;
        self.making_room.look_at = clock::now();
    }

    /// Makes the file as short as what is in it.
    fn compact(&mut self) {
        self.making_room.is_folded = false;
        self.is_full = false;
        let opened = self.open_again();
        let shared = &self.shared;
        let compacted = guarded(shared.path(), || match &mut *shared.database() {
            Some(database) => match database.compact() {
                // Who reads holds what was there when they began.
                Ok(_) | Err(CompactionError::TransactionInProgress) => Ok(()),
                Err(error) => Err(StoreError::of("shorten", shared.path(), error)),
            },
            None => opened,
        });
        if let Err(error) = compacted {
            tracing::warn!(%error, "no room could be made of what was removed");
            *shared.database() = None;
        }
        self.shared.end_shortage();
        self.making_room.stood = self.shared.look_for_room().map(|space| (self.log.last, space.free));
    }
}
