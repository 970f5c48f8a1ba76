//! Updates on their way to a device, a piece at a time.

use bytemuck::Pod;

use device::{Buffer, Device, DriverError, Event, Pinned, Stream};

/// Bytes of a piece: large enough that copies run at full speed, small enough to be page-locked.
const PIECE_BYTES: usize = 1 << 18;

/// Page-locked memory that updates are written to, and the device's memory that they are copied to.
#[derive(Debug)]
pub(crate) struct Staging<T: Pod> {
    /// Two, so that one is filled while the other is copied.
    pinned: [Pinned<T>; 2],
    buffers: [Buffer<T>; 2],
    /// A whole piece is applied. Without these, filling one would wait for the other too.
    applied: [Event; 2],
    turn: usize,
}

impl<T: Pod> Staging<T> {
    pub(crate) fn new(device: &Device) -> Result<Self, DriverError> {
        let len = PIECE_BYTES / size_of::<T>();
        Ok(Self {
            pinned: [device.pinned(len)?, device.pinned(len)?],
            buffers: [device.buffer(len)?, device.buffer(len)?],
            applied: [device.event()?, device.event()?],
            turn: 0,
        })
    }

    /// Copies all items, and after each piece of them calls `apply` with where they are and how many, on the same
    /// stream. A later piece overwrites an earlier one only once that has been applied.
    pub(crate) fn send(
        &mut self,
        stream: &Stream,
        mut items: impl Iterator<Item = T>,
        mut apply: impl FnMut(&Buffer<T>, u32) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        for sent in 0.. {
            if sent > 1 {
                self.applied[self.turn].synchronize()?;
            }
            let pinned = &mut self.pinned[self.turn];
            let buffer = &self.buffers[self.turn];
            let mut count = 0;
            let slots = pinned.slice_mut()?;
            // `zip` would take an item too many.
            while count < slots.len() {
                let Some(item) = items.next() else { break };
                slots[count] = item;
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            let whole = count == slots.len();
            stream.upload(pinned, 0..count, buffer, 0)?;
            #[expect(clippy::cast_possible_truncation, reason = "a piece has fewer than 2^20 items")]
            apply(buffer, count as u32)?;
            if whole {
                stream.record(&self.applied[self.turn])?;
            }
            self.turn ^= 1;
            if !whole {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Bytes of the device's memory.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::bytes).sum()
    }
}
