//! What a check has on its device.

use std::num::NonZeroU32;

use checks::Slot;
use device::{Buffer, Device, DriverError, Pinned, Priority, Stream};
use kernels::checks::{Cell, Change, Decision, Doubt, Event, HEAD, Index, Layout, Unit};

use crate::compile::u32_of;
use crate::launchers::Kernels;

/// What a launch is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// A c-unit.
    #[default]
    Unit,
    /// A node of the formula.
    Node,
}

/// How data go to the device and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transmission {
    /// The host goes on meanwhile.
    #[default]
    Asynchronous,
    /// The host waits for each copy.
    Synchronous,
}

/// How the engine works. The answers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What a launch is about.
    pub granularity: Granularity,
    /// How data go.
    pub transmission: Transmission,
    /// Whether truths of children stay in registers; by the node there are none.
    pub buffering: bool,
    /// Whether a warp goes through the branches of a quantifier where there are few copies, past the paper.
    pub warps: bool,
    /// Whether several changes are taken at once, with joins, where the caller has several, past the paper.
    pub batches: bool,
    /// Threads of a block: 32 to 1,024, in whole warps.
    pub block: NonZeroU32,
    /// Most nodes that a runtime tree may have on the device, of 9 bytes each.
    pub nodes_max: usize,
    /// Most links that the store may have, of 4 bytes for each variable.
    pub links_max: usize,
    /// Most leaves of an evaluation that the processor decides for the device.
    pub doubts_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            granularity: Granularity::Unit,
            transmission: Transmission::Asynchronous,
            buffering: true,
            warps: true,
            batches: true,
            block: NonZeroU32::new(64).expect("not zero"),
            nodes_max: 1 << 28,
            links_max: 1 << 24,
            doubts_max: 1 << 16,
        }
    }
}

/// Buffers, with the staging of what goes to them and comes from them.
pub(crate) struct Memory {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
    pub(crate) events: Buffer<Event>,
    pub(crate) cells: Buffer<Cell>,
    pub(crate) members: Buffer<u32>,
    pub(crate) changes: Buffer<Change>,
    pub(crate) truths: Buffer<u8>,
    pub(crate) index: Buffer<Index>,
    pub(crate) links: Buffer<u32>,
    pub(crate) doubts: Buffer<Doubt>,
    pub(crate) decisions: Buffer<Decision>,
    pub(crate) head: Buffer<u64>,
    events_staged: Pinned<Event>,
    cells_staged: Pinned<Cell>,
    words_staged: Pinned<u32>,
    changes_staged: Pinned<Change>,
    doubts_staged: Pinned<Doubt>,
    decisions_staged: Pinned<Decision>,
    zeros: Pinned<u64>,
    head_staged: Pinned<u64>,
    waits: bool,
}

impl Memory {
    pub(crate) fn new(kernels: &Kernels, settings: &Settings) -> Result<Self, DriverError> {
        let device = kernels.device();
        Ok(Self {
            stream: device.stream(Priority::High)?,
            kernels: kernels.by(settings.block),
            events: device.buffer(0)?,
            cells: device.buffer(0)?,
            members: device.buffer(0)?,
            changes: device.buffer(0)?,
            truths: device.buffer(0)?,
            index: device.buffer(0)?,
            links: device.buffer(0)?,
            doubts: device.buffer(0)?,
            decisions: device.buffer(0)?,
            head: device.buffer(HEAD)?,
            events_staged: device.pinned(0)?,
            cells_staged: device.pinned(0)?,
            words_staged: device.pinned(0)?,
            changes_staged: device.pinned(0)?,
            doubts_staged: device.pinned(0)?,
            decisions_staged: device.pinned(0)?,
            zeros: device.pinned(HEAD)?,
            head_staged: device.pinned(HEAD)?,
            waits: settings.transmission == Transmission::Synchronous,
            device: device.clone(),
        })
    }

    fn wait(&self) -> Result<(), DriverError> {
        if self.waits { self.stream.synchronize() } else { Ok(()) }
    }

    /// Sends events with their cells into consecutive slots.
    pub(crate) fn send_events(
        &mut self,
        at: Slot,
        events: &[Event],
        cells: &[Cell],
    ) -> Result<(), DriverError> {
        let at = at as usize;
        send(&self.stream, &mut self.events_staged, events, &self.events, at)?;
        self.wait()?;
        let at = at * (cells.len() / events.len().max(1));
        send(&self.stream, &mut self.cells_staged, cells, &self.cells, at)?;
        self.wait()
    }

    /// Sends all members of all sets.
    pub(crate) fn send_members(&mut self, members: &[u32]) -> Result<(), DriverError> {
        send(&self.stream, &mut self.words_staged, members, &self.members, 0)?;
        self.wait()
    }

    /// Lets the sets on the device change: `UpdateCtxtSetKer`.
    pub(crate) fn change(
        &mut self,
        changes: &[Change],
        sets: usize,
        capacity: usize,
    ) -> Result<(), DriverError> {
        if changes.is_empty() {
            return Ok(());
        }
        room(&self.device, &mut self.changes, changes.len())?;
        send(&self.stream, &mut self.changes_staged, changes, &self.changes, 0)?;
        self.wait()?;
        let Self { kernels, stream, changes: sent, members, .. } = self;
        kernels.update(stream, sent, u32_of(changes.len()), u32_of(sets), u32_of(capacity), members)
    }

    /// Begins to count anew.
    pub(crate) fn clear_head(&mut self) -> Result<(), DriverError> {
        self.stream.upload(&mut self.zeros, 0..HEAD, &self.head, 0)?;
        self.wait()
    }

    /// What was counted, after all that was given to the device.
    pub(crate) fn read_head(&mut self) -> Result<[u64; HEAD], DriverError> {
        self.stream.download(&self.head, 0..HEAD, &mut self.head_staged, 0)?;
        let mut head = [0; HEAD];
        head.copy_from_slice(self.head_staged.slice()?);
        Ok(head)
    }

    pub(crate) fn read_doubts(&mut self, count: usize) -> Result<&[Doubt], DriverError> {
        if self.doubts_staged.len() < count {
            self.doubts_staged = self.device.pinned(count.next_power_of_two())?;
        }
        self.stream.download(&self.doubts, 0..count, &mut self.doubts_staged, 0)?;
        Ok(&self.doubts_staged.slice()?[..count])
    }

    /// Writes decisions over truths.
    pub(crate) fn decide(&mut self, decisions: &[Decision]) -> Result<(), DriverError> {
        room(&self.device, &mut self.decisions, decisions.len())?;
        send(&self.stream, &mut self.decisions_staged, decisions, &self.decisions, 0)?;
        self.wait()?;
        self.kernels.decide(&self.stream, &self.decisions, u32_of(decisions.len()), &self.truths)
    }

    /// Words of the store of links.
    pub(crate) fn read_links(&mut self, range: std::ops::Range<usize>) -> Result<&[u32], DriverError> {
        if self.words_staged.len() < range.len() {
            self.words_staged = self.device.pinned(range.len().next_power_of_two())?;
        }
        let count = range.len();
        self.stream.download(&self.links, range, &mut self.words_staged, 0)?;
        Ok(&self.words_staged.slice()?[..count])
    }

    /// Makes room for a runtime tree.
    pub(crate) fn room_for_tree(&mut self, size: usize, doubts: usize) -> Result<(), DriverError> {
        room(&self.device, &mut self.truths, size)?;
        room(&self.device, &mut self.index, size)?;
        room(&self.device, &mut self.doubts, doubts)
    }

    /// Makes room for events; what is held keeps its place.
    pub(crate) fn room_for_events(&mut self, slots: usize, columns: usize) -> Result<(), DriverError> {
        grow(&self.stream, &mut self.events, slots)?;
        grow(&self.stream, &mut self.cells, slots * columns)
    }

    pub(crate) fn truth(&self, unit: &Unit, layout: &Layout) -> Result<(), DriverError> {
        self.kernels.truth(self, unit, layout)
    }

    pub(crate) fn link(&self, unit: &Unit, layout: &Layout) -> Result<(), DriverError> {
        self.kernels.links(self, unit, layout)
    }

    /// Bytes of the device's memory.
    pub(crate) fn bytes(&self) -> usize {
        self.events.bytes()
            + self.cells.bytes()
            + self.members.bytes()
            + self.truths.bytes()
            + self.index.bytes()
            + self.links.bytes()
            + self.doubts.bytes()
    }
}

pub(crate) fn send<T: bytemuck::Pod>(
    stream: &Stream,
    staged: &mut Pinned<T>,
    values: &[T],
    to: &Buffer<T>,
    at: usize,
) -> Result<(), DriverError> {
    if staged.len() < values.len() {
        *staged = stream.device().pinned(values.len().next_power_of_two())?;
    }
    staged.slice_mut()?[..values.len()].copy_from_slice(values);
    stream.upload(staged, 0..values.len(), to, at)
}

/// Makes room for as many values; what is held is lost where there was too little.
pub(crate) fn room<T: bytemuck::Pod>(
    device: &Device,
    buffer: &mut Buffer<T>,
    len: usize,
) -> Result<(), DriverError> {
    if buffer.len() < len {
        // Not two of them at a time: they may be large.
        *buffer = device.buffer(0)?;
        *buffer = device.buffer(len.next_power_of_two()).or_else(|_| device.buffer(len))?;
    }
    Ok(())
}

pub(crate) fn grow<T: bytemuck::Pod>(
    stream: &Stream,
    buffer: &mut Buffer<T>,
    len: usize,
) -> Result<(), DriverError> {
    if buffer.len() < len {
        let larger = stream.device().buffer(len.next_power_of_two())?;
        stream.copy(buffer, 0..buffer.len(), &larger, 0)?;
        *buffer = larger;
    }
    Ok(())
}
