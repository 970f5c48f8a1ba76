//! Buffers that grow, with the staging of what goes to them and comes from them.

use crate::device::Device;
use crate::error::DriverError;
use crate::memory::{Buffer, Pinned};
use crate::stream::Stream;
use bytemuck::Pod;

/// Makes room for as many values; what is held is lost where there was too little.
///
/// # Errors
/// [`DriverError`]; the buffer is empty then.
pub fn room<T: Pod>(buffer: &mut Buffer<T>, len: usize) -> Result<(), DriverError> {
    if buffer.len() < len {
        let device = buffer.device().clone();
        // Not two of them at a time: they may be large.
        *buffer = device.buffer(0)?;
        *buffer = device.buffer(len.next_power_of_two()).or_else(|_| device.buffer(len))?;
    }
    Ok(())
}

/// A buffer, and page-locked memory of the machine beside it. Both grow to the next power of two.
#[derive(Debug)]
pub struct Staged<T> {
    /// On the device.
    pub buffer: Buffer<T>,
    pinned: Pinned<T>,
}

impl<T: Pod> Staged<T> {
    /// Both without room.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn new(device: &Device) -> Result<Self, DriverError> {
        Ok(Self { buffer: device.buffer(0)?, pinned: device.pinned(0)? })
    }

    /// Makes room on both sides.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn room(&mut self, len: usize) -> Result<(), DriverError> {
        room(&mut self.buffer, len)?;
        if self.pinned.len() < len {
            self.pinned = self.buffer.device().pinned(len.next_power_of_two())?;
        }
        Ok(())
    }

    /// Sends as many values to the beginning of the buffer; `write` gives them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn send_by(
        &mut self,
        stream: &Stream,
        len: usize,
        write: impl FnOnce(&mut [T]),
    ) -> Result<(), DriverError> {
        self.room(len)?;
        write(&mut self.pinned.slice_mut()?[..len]);
        stream.upload(&mut self.pinned, 0..len, &self.buffer, 0)
    }

    /// Sends values to the beginning of the buffer.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn send(&mut self, stream: &Stream, values: &[T]) -> Result<(), DriverError> {
        self.send_by(stream, values.len(), |staged| staged.copy_from_slice(values))
    }

    /// Sends values to the `at`-th of the buffer and on, which has room for them.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When it has none.
    pub fn send_at(&mut self, stream: &Stream, at: usize, values: &[T]) -> Result<(), DriverError> {
        if self.pinned.len() < values.len() {
            self.pinned = self.buffer.device().pinned(values.len())?;
        }
        self.pinned.slice_mut()?[..values.len()].copy_from_slice(values);
        stream.upload(&mut self.pinned, 0..values.len(), &self.buffer, at)
    }

    /// The first values of the buffer, after all that was given to the stream.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn receive(&mut self, stream: &Stream, len: usize) -> Result<&[T], DriverError> {
        self.room(len)?;
        stream.download(&self.buffer, 0..len, &mut self.pinned, 0)?;
        Ok(&self.pinned.slice()?[..len])
    }
}
