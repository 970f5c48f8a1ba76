//! The device's table: every entry by number, where the lists of clients begin, and all constraints.

use kernels::gpu::{Constraint, NONE, Place};

use crate::growth::{grow, grown};
use device::{Buffer, Device, DriverError, Stream};

/// Inverse of the share by which arrays grow.
pub(super) const GROWTH_PART: usize = 4;

/// Numbers of entries, clients and constraints are below the lengths.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) places: Buffer<Place>,
    pub(crate) masks: Buffer<u32>,
    pub(crate) subscriptions: Buffer<u32>,
    /// The first constraint of each.
    pub(crate) starts: Buffer<u32>,
    pub(crate) kinds: Buffer<u32>,
    /// When each changed last, in flushes.
    pub(crate) stamps: Buffer<u32>,
    /// The next that follows the same client.
    pub(crate) next: Buffer<u32>,
    pub(crate) heads: Buffer<u32>,
    pub(crate) constraints: Buffer<Constraint>,
}

impl Table {
    pub(super) fn new(device: &Device) -> Result<Self, DriverError> {
        Ok(Self {
            places: device.buffer(0)?,
            masks: device.buffer(0)?,
            subscriptions: device.buffer(0)?,
            starts: device.buffer(0)?,
            kinds: device.buffer(0)?,
            stamps: device.buffer(0)?,
            next: device.buffer(0)?,
            heads: device.buffer(0)?,
            constraints: device.buffer(0)?,
        })
    }

    /// Makes room. What is held keeps its place.
    ///
    /// # Errors
    /// When there is too little memory; the arrays are then at least as long as before, each with what it held.
    pub(super) fn reserve(
        &mut self,
        stream: &Stream,
        entries: usize,
        clients: usize,
        constraints: usize,
    ) -> Result<(), DriverError> {
        let entries = grown(self.places.len(), entries, GROWTH_PART);
        grow(stream, &mut self.masks, entries)?;
        grow(stream, &mut self.subscriptions, entries)?;
        grow(stream, &mut self.starts, entries)?;
        grow(stream, &mut self.kinds, entries)?;
        grow(stream, &mut self.stamps, entries)?;
        grow(stream, &mut self.next, entries)?;
        // The last, since its length is the one that is asked.
        grow(stream, &mut self.places, entries)?;
        let held = self.heads.len();
        let clients = grown(held, clients, GROWTH_PART);
        grow(stream, &mut self.heads, clients)?;
        stream.fill(&self.heads, held..clients.max(held), NONE)?;
        let constraints = grown(self.constraints.len(), constraints, GROWTH_PART);
        grow(stream, &mut self.constraints, constraints)
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.bytes()
            + self.masks.bytes()
            + self.subscriptions.bytes()
            + self.starts.bytes()
            + self.kinds.bytes()
            + self.stamps.bytes()
            + self.next.bytes()
            + self.heads.bytes()
            + self.constraints.bytes()
    }
}
