//! A disk in memory that knows what was synced, and fails when it is told to.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::Rng as _;
use rand::rngs::StdRng;
use redb::StorageBackend;

use super::disk::{Medium, Space};

/// A disk; a clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Files by number; those that nobody can reach any more are empty.
    files: Vec<File>,
    /// Number of the file that has the name, and of the file that has it for good.
    named: usize,
    named_synced: usize,
    /// Number of the file that is beside it.
    beside: Option<usize>,
    /// Writes until power is lost.
    power: Option<u64>,
    is_off: bool,
    /// All files together do not become longer than this.
    room: Option<usize>,
    /// Size of the disk, where that is known.
    total_bytes: Option<u64>,
    /// Bytes of it that others take.
    others_bytes: u64,
    /// Bytes that are set aside.
    ballast_bytes: Option<u64>,
    opens: u64,
    syncs: u64,
    replacements: u64,
    /// How often a file was begun beside the one there is.
    copies: u64,
    /// With `n`, one sync of every `n` does nothing.
    lies: Option<u64>,
}

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Since the last sync: where, and what.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// The length was set since then.
    lengths: Vec<usize>,
    /// Numbers of the blocks that were written: what a file is lengthened by takes no room before.
    blocks: BTreeSet<usize>,
}

/// A file on a disk, opened.
#[derive(Debug)]
struct Opened {
    disk: Disk,
    file: usize,
}

const SECTOR_BYTES: usize = 512;
const BLOCK_BYTES: usize = 4_096;

impl File {
    /// Bytes of the disk that it takes.
    fn used(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES) as u64
    }
}

impl State {
    /// A step that changes the disk; the one at which power is lost may be half done.
    fn step(&mut self) -> io::Result<()> {
        self.is_off |= self.power == Some(0);
        self.power = self.power.map(|left| left.saturating_sub(1));
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        if self.is_off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Whether a file may have this length.
    fn fit(&self, file: usize, len: usize) -> io::Result<()> {
        let there = self.files[file].now.len();
        let is_full = self.room.is_some_and(|room| len > there && self.len() - there + len > room);
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn len(&self) -> usize {
        self.files.iter().map(|file| file.now.len()).sum()
    }

    fn free(&self) -> Option<u64> {
        let used: u64 = self.files.iter().map(File::used).sum();
        let taken = used + self.ballast_bytes.unwrap_or_default() + self.others_bytes;
        Some(self.total_bytes?.saturating_sub(taken))
    }

    fn now(&mut self) -> &mut File {
        if self.files.is_empty() {
            self.files.push(File::default());
        }
        &mut self.files[self.named]
    }
}

impl Disk {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let file = File { synced: bytes.clone(), now: bytes, ..File::default() };
        Self(Arc::new(Mutex::new(State { files: vec![file], ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with a disk in hand")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().now().now.clone()
    }

    /// How often it was asked for its file, whether it gave it or not.
    pub(crate) fn opens(&self) -> u64 {
        self.state().opens
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// How often a file was put in the place of another.
    pub(crate) fn replacements(&self) -> u64 {
        self.state().replacements
    }

    /// How often a copy was begun.
    pub(crate) fn copies(&self) -> u64 {
        self.state().copies
    }

    pub(crate) fn lose_power_after(&self, writes: u64) {
        self.state().power = Some(writes);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state().is_off
    }

    pub(crate) fn lie_once_in(&self, syncs: u64) {
        self.state().lies = Some(syncs);
    }

    /// Lets the files become `bytes` bytes longer; `None`: without bound.
    pub(crate) fn leave_room(&self, bytes: Option<usize>) {
        let mut state = self.state();
        state.room = bytes.map(|bytes| state.len() + bytes);
    }

    /// A disk of so many bytes, which tells how many of them are free.
    pub(crate) fn sized(bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(State { total_bytes: Some(bytes), ..State::default() })))
    }

    /// Lets others take all of a sized disk but `bytes` bytes.
    pub(crate) fn leave_free(&self, bytes: u64) {
        let mut state = self.state();
        state.others_bytes = 0;
        state.others_bytes =
            state.free().and_then(|free| free.checked_sub(bytes)).expect("that much is free");
    }

    /// Contents that the file may have after power was lost: everything that was synced, and any of the sectors written since
    /// then.
    pub(crate) fn torn(&self, random: &mut StdRng) -> Vec<u8> {
        let state = self.state();
        let named = if random.random() { state.named } else { state.named_synced };
        let Some(file) = state.files.get(named) else { return Vec::new() };
        let mut bytes = file.synced.clone();
        if let Some(len) = file.lengths.last()
            && random.random()
        {
            bytes.resize(*len, 0);
        }
        let share = random.random_range(0.0..=1.0);
        for (at, data) in &file.unsynced {
            let mut at = *at;
            // Sectors lie where they lie, wherever the write began.
            let mut data = &data[..];
            while !data.is_empty() {
                let count = (SECTOR_BYTES - at % SECTOR_BYTES).min(data.len());
                if random.random_bool(share) {
                    bytes.resize(bytes.len().max(at + count), 0);
                    bytes[at..at + count].copy_from_slice(&data[..count]);
                }
                (at, data) = (at + count, &data[count..]);
            }
        }
        bytes
    }
}

impl Medium for Disk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.state();
        state.opens += 1;
        state.check()?;
        state.now();
        Ok(Box::new(Opened { disk: self.clone(), file: state.named }))
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn has_room(&self) -> io::Result<()> {
        let mut state = self.state();
        let (file, more) = (state.named, state.now().now.len() + 1);
        state.fit(file, more)
    }

    fn begin_anew(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.give_up();
        let mut state = self.state();
        state.check()?;
        state.copies += 1;
        let file = state.files.len();
        state.files.push(File::default());
        state.beside = Some(file);
        Ok(Box::new(Opened { disk: self.clone(), file }))
    }

    fn put_in_place(&self) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step();
        state.named = state.beside.take().expect("one was begun");
        step?;
        state.step()?;
        let named = state.named;
        let old = std::mem::replace(&mut state.named_synced, named);
        state.files[old] = File::default();
        state.replacements += 1;
        Ok(())
    }

    fn give_up(&self) {
        let mut state = self.state();
        if let Some(file) = state.beside.take() {
            state.files[file] = File::default();
        }
    }

    fn space(&self) -> Option<Space> {
        let state = self.state();
        Some(Space { total: state.total_bytes?, free: state.free()? })
    }

    fn used_bytes(&self) -> u64 {
        self.state().now().used()
    }

    fn has_ballast(&self) -> bool {
        self.state().ballast_bytes.is_some()
    }

    fn set_ballast(&self, bytes: u64) -> io::Result<()> {
        self.state().ballast_bytes = Some(bytes);
        Ok(())
    }

    fn drop_ballast(&self) {
        self.state().ballast_bytes = None;
    }
}

impl StorageBackend for Opened {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        state.check()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = state.files[self.file].now.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut state = self.disk.state();
        state.step()?;
        state.fit(self.file, len)?;
        let file = &mut state.files[self.file];
        file.now.resize(len, 0);
        file.lengths.push(len);
        file.blocks.split_off(&len.div_ceil(BLOCK_BYTES));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        state.syncs += 1;
        if state.lies.is_some_and(|lies| state.syncs.is_multiple_of(lies)) {
            return Ok(());
        }
        let File { synced, unsynced, lengths, now, blocks: _ } = &mut state.files[self.file];
        // What was cut off in between is zeros, even where the file is as long again.
        synced.truncate(lengths.iter().copied().min().unwrap_or(usize::MAX));
        synced.resize(now.len(), 0);
        for (at, data) in unsynced.drain(..) {
            let end = now.len().min(at + data.len());
            if let Some(written) = now.get(at..end) {
                synced[at..end].copy_from_slice(written);
            }
        }
        lengths.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let mut state = self.disk.state();
        let step = state.step();
        let end = offset + data.len();
        state.fit(self.file, end)?;
        let file = &mut state.files[self.file];
        file.unsynced.push((offset, data.to_vec()));
        step?;
        let len = file.now.len().max(end);
        file.now.resize(len, 0);
        file.now[offset..end].copy_from_slice(data);
        file.blocks.extend(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES));
        Ok(())
    }
}
