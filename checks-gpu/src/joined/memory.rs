//! What a check has on its device for batches.

use device::{Buffer, Device, DriverError, Pinned, Priority, Stream};
use kernels::checks_joined::{Decision, Doubt, Entry, Item, Member};

use crate::launchers::Kernels;
use crate::memory::{Settings, grow, room, send};

/// What a batch came to.
pub(crate) struct Counted {
    /// States of the whole check.
    pub(crate) root: Vec<u64>,
    /// Links that came or went.
    pub(crate) told: Vec<u64>,
}

/// Buffers, with the staging of what goes to them and comes from them.
pub(crate) struct Memory {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
    pub(crate) rows: Buffer<u64>,
    pub(crate) events: Buffer<u64>,
    pub(crate) cells: Buffer<u64>,
    pub(crate) keys: Buffer<u64>,
    pub(crate) members: Buffer<Member>,
    pub(crate) buckets: Buffer<u32>,
    pub(crate) cursors: Buffer<u32>,
    pub(crate) items: Buffer<Item>,
    pub(crate) entries: Buffer<Entry>,
    /// Two to a word of 64 states.
    pub(crate) any: Buffer<u32>,
    pub(crate) words: Buffer<u64>,
    pub(crate) doubts: Buffer<Doubt>,
    pub(crate) decisions: Buffer<Decision>,
    pub(crate) told: Buffer<u64>,
    pub(crate) head: Buffer<u64>,
    words_staged: Pinned<u64>,
    members_staged: Pinned<Member>,
    doubts_staged: Pinned<Doubt>,
    decisions_staged: Pinned<Decision>,
    entry_staged: Pinned<Entry>,
    head_sent: Pinned<u64>,
    head_staged: Pinned<u64>,
    root_staged: Pinned<u64>,
    told_staged: Pinned<u64>,
    any_staged: Pinned<u32>,
}

impl Memory {
    pub(crate) fn new(kernels: &Kernels, settings: &Settings, head: usize) -> Result<Self, DriverError> {
        let device = kernels.device();
        Ok(Self {
            stream: device.stream(Priority::High)?,
            kernels: kernels.by(settings.block),
            rows: device.buffer(0)?,
            events: device.buffer(0)?,
            cells: device.buffer(0)?,
            keys: device.buffer(0)?,
            members: device.buffer(0)?,
            buckets: device.buffer(0)?,
            cursors: device.buffer(0)?,
            items: device.buffer(0)?,
            entries: device.buffer(0)?,
            any: device.buffer(0)?,
            words: device.buffer(0)?,
            doubts: device.buffer(0)?,
            decisions: device.buffer(0)?,
            told: device.buffer(0)?,
            head: device.buffer(head)?,
            words_staged: device.pinned(0)?,
            members_staged: device.pinned(0)?,
            doubts_staged: device.pinned(0)?,
            decisions_staged: device.pinned(0)?,
            entry_staged: device.pinned(0)?,
            head_sent: device.pinned(head)?,
            head_staged: device.pinned(head)?,
            root_staged: device.pinned(0)?,
            told_staged: device.pinned(0)?,
            any_staged: device.pinned(0)?,
            device: device.clone(),
        })
    }

    /// Makes room for events by slot; what is held keeps its place.
    pub(crate) fn room_for_events(
        &mut self,
        slots: usize,
        columns: usize,
        keys: usize,
    ) -> Result<(), DriverError> {
        grow(&self.stream, &mut self.events, slots * 6)?;
        grow(&self.stream, &mut self.cells, slots * 2 * columns)?;
        grow(&self.stream, &mut self.keys, slots * keys)
    }

    pub(crate) fn send_rows(&mut self, rows: &[u64]) -> Result<(), DriverError> {
        room(&self.device, &mut self.rows, rows.len())?;
        send(&self.stream, &mut self.words_staged, rows, &self.rows, 0)
    }

    pub(crate) fn send_members(&mut self, members: &[Member]) -> Result<(), DriverError> {
        room(&self.device, &mut self.members, members.len())?;
        send(&self.stream, &mut self.members_staged, members, &self.members, 0)
    }

    /// Makes room for the entries of nodes.
    pub(crate) fn room_for_entries(&mut self, entries: usize, chunks: usize) -> Result<(), DriverError> {
        room(&self.device, &mut self.entries, entries)?;
        room(&self.device, &mut self.any, 2 * entries * chunks)?;
        room(&self.device, &mut self.words, entries * chunks)
    }

    pub(crate) fn send_head(&mut self, head: &[u64]) -> Result<(), DriverError> {
        send(&self.stream, &mut self.head_sent, head, &self.head, 0)
    }

    /// Puts the root's entry, which is there in all states, in its place.
    pub(crate) fn send_root(&mut self, at: usize) -> Result<(), DriverError> {
        let root = Entry { parent: 0, slot: 0, from: 0, to: u32::MAX, leaves: 0 };
        send(&self.stream, &mut self.entry_staged, &[root], &self.entries, at)
    }

    /// What was counted, after all that was given to the device.
    pub(crate) fn read_head(&mut self) -> Result<Vec<u64>, DriverError> {
        let len = self.head.len();
        self.stream.download(&self.head, 0..len, &mut self.head_staged, 0)?;
        Ok(self.head_staged.slice()?.to_vec())
    }

    pub(crate) fn read_doubts(&mut self, count: usize) -> Result<&[Doubt], DriverError> {
        if self.doubts_staged.len() < count {
            self.doubts_staged = self.device.pinned(count.next_power_of_two())?;
        }
        self.stream.download(&self.doubts, 0..count, &mut self.doubts_staged, 0)?;
        Ok(&self.doubts_staged.slice()?[..count])
    }

    pub(crate) fn decide(&mut self, decisions: &[Decision]) -> Result<(), DriverError> {
        room(&self.device, &mut self.decisions, decisions.len())?;
        send(&self.stream, &mut self.decisions_staged, decisions, &self.decisions, 0)?;
        self.kernels.joined_decide(self, decisions.len())
    }

    /// What was counted, words of the root and the first of the links that came or went, in one wait.
    pub(crate) fn read_result(
        &mut self,
        root: std::ops::Range<usize>,
        told: usize,
    ) -> Result<(Vec<u64>, Counted), DriverError> {
        let (chunks, head) = (root.len(), self.head.len());
        if self.root_staged.len() < chunks {
            self.root_staged = self.device.pinned(chunks.next_power_of_two())?;
        }
        if self.told_staged.len() < told {
            self.told_staged = self.device.pinned(told.next_power_of_two())?;
        }
        self.stream.download(&self.head, 0..head, &mut self.head_staged, 0)?;
        self.stream.download(&self.words, root, &mut self.root_staged, 0)?;
        self.stream.download(&self.told, 0..told, &mut self.told_staged, 0)?;
        let head = self.head_staged.slice()?.to_vec();
        let root = self.root_staged.slice()?[..chunks].to_vec();
        Ok((head, Counted { root, told: self.told_staged.slice()?[..told].to_vec() }))
    }

    pub(crate) fn read_entries(&mut self, at: usize, count: usize) -> Result<Vec<Entry>, DriverError> {
        fetch(&self.stream, &self.entries, at, count, &mut self.entry_staged)
    }

    pub(crate) fn read_words(&mut self, at: usize, count: usize) -> Result<Vec<u64>, DriverError> {
        fetch(&self.stream, &self.words, at, count, &mut self.root_staged)
    }

    pub(crate) fn read_any(&mut self, at: usize, count: usize) -> Result<Vec<u64>, DriverError> {
        let halves = fetch(&self.stream, &self.any, 2 * at, 2 * count, &mut self.any_staged)?;
        Ok(halves.chunks_exact(2).map(|half| u64::from(half[0]) | u64::from(half[1]) << 32).collect())
    }

    /// Bytes of the device's memory.
    pub(crate) fn bytes(&self) -> usize {
        let words = [&self.rows, &self.events, &self.cells, &self.keys, &self.words, &self.told, &self.head];
        words.into_iter().map(Buffer::bytes).sum::<usize>()
            + [&self.buckets, &self.cursors, &self.any].into_iter().map(Buffer::bytes).sum::<usize>()
            + self.members.bytes()
            + self.items.bytes()
            + self.entries.bytes()
            + self.doubts.bytes()
            + self.decisions.bytes()
    }
}

fn fetch<T: bytemuck::Pod>(
    stream: &Stream,
    from: &Buffer<T>,
    at: usize,
    count: usize,
    staged: &mut Pinned<T>,
) -> Result<Vec<T>, DriverError> {
    if staged.len() < count {
        *staged = stream.device().pinned(count.next_power_of_two())?;
    }
    stream.download(from, at..at + count, staged, 0)?;
    Ok(staged.slice()?[..count].to_vec())
}
