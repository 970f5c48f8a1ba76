//! A disk in memory that knows what was synced, and fails when it is told to.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::Rng as _;
use rand::rngs::StdRng;
use redb::StorageBackend;

use super::disk::Medium;

/// A disk; a clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Since the last sync: where, and what.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// The length was set since then.
    lengths: Vec<usize>,
    /// Writes until power is lost.
    power: Option<u64>,
    is_off: bool,
    /// It does not become longer than this.
    room: Option<usize>,
    syncs: u64,
    /// Of so many syncs one does nothing.
    lies: Option<u64>,
}

const SECTOR_BYTES: usize = 512;

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

    fn fit(&self, len: usize) -> io::Result<()> {
        let is_full = self.room.is_some_and(|room| len > room && len > self.now.len());
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Disk {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let state = State { synced: bytes.clone(), now: bytes, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with a disk in hand")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().now.clone()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
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

    /// It may become so many bytes longer; `None`: without bound.
    pub(crate) fn leave_room(&self, bytes: Option<usize>) {
        let mut state = self.state();
        state.room = bytes.map(|bytes| state.now.len() + bytes);
    }

    /// What may be there after power was lost: what was synced, and of all sectors written since then any.
    pub(crate) fn torn(&self, random: &mut StdRng) -> Vec<u8> {
        let state = self.state();
        let mut bytes = state.synced.clone();
        if let Some(len) = state.lengths.last()
            && random.random()
        {
            bytes.resize(*len, 0);
        }
        let share = random.random_range(0.0..=1.0);
        for (at, data) in &state.unsynced {
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
        self.state().check()?;
        Ok(Box::new(self.clone()))
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn has_room(&self) -> io::Result<()> {
        let state = self.state();
        state.fit(state.now.len() + 1)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        state.check()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = state.now.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut state = self.state();
        state.step()?;
        state.fit(len)?;
        state.now.resize(len, 0);
        state.lengths.push(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.syncs += 1;
        if state.lies.is_some_and(|lies| state.syncs.is_multiple_of(lies)) {
            return Ok(());
        }
        let State { synced, unsynced, lengths, now, .. } = &mut *state;
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
        let mut state = self.state();
        let step = state.step();
        let end = offset + data.len();
        state.fit(end)?;
        state.unsynced.push((offset, data.to_vec()));
        step?;
        let len = state.now.len().max(end);
        state.now.resize(len, 0);
        state.now[offset..end].copy_from_slice(data);
        Ok(())
    }
}
