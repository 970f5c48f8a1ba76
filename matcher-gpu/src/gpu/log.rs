//! Changes since the base was sorted, in their order: a ring on the device that is scanned whole.

use kernels::gpu::Place;

use device::{Buffer, Device, DriverError};

/// Entries that the ring holds, a power of two.
pub(super) const CAPACITY: u32 = 1 << 16;

/// The ring. An entry that has changed twice is in it twice; the stamp tells which is the last.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) places: Buffer<Place>,
    pub(crate) masks: Buffer<u32>,
    pub(crate) entries: Buffer<u32>,
    pub(crate) stamps: Buffer<u32>,
    /// Counted without an end, modulo 2^32.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Log {
    pub(super) fn new(device: &Device) -> Result<Self, DriverError> {
        let len = CAPACITY as usize;
        Ok(Self {
            places: device.buffer(len)?,
            masks: device.buffer(len)?,
            entries: device.buffer(len)?,
            stamps: device.buffer(len)?,
            start: 0,
            end: 0,
        })
    }

    pub(super) fn len(&self) -> u32 {
        self.end.wrapping_sub(self.start)
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.bytes() + self.masks.bytes() + self.entries.bytes() + self.stamps.bytes()
    }
}
