//! Memory of the device, and memory of the machine that the device can reach.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use bytemuck::Pod;

use crate::device::Device;
use crate::error::DriverError;
use crate::faults::Operation;
use crate::in_flight::InFlight;

/// Every allocation is aligned so, on either backend.
const ALIGNMENT_BYTES: usize = 256;

/// Values in a device's memory. They have no address on the host: copies of a [`Stream`](crate::Stream) bring them.
///
/// Dropping frees the memory and first waits for all work on the device.
#[derive(Debug)]
pub struct Buffer<T> {
    device: Device,
    /// 0 when there are no bytes.
    address: u64,
    len: usize,
    values: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, DriverError> {
        let bytes = bytes_of::<T>(len)?;
        let mut buffer = Self { device: device.clone(), address: 0, len, values: PhantomData };
        if bytes == 0 {
            return Ok(buffer);
        }
        let allocated = device.run(Operation::Allocate, |backend| {
            buffer.address = backend.allocate(bytes)?;
            let (zeroing, words) = (device.zeroing(), bytes.div_ceil(4));
            // SAFETY: the address is of `bytes` bytes, which allocations round up to ALIGNMENT_BYTES, and the buffer frees
            // them only after a wait for the device.
            unsafe { backend.fill(zeroing, buffer.address, words, 0) }?;
            // SAFETY: the stream is the device's own and lives as long.
            unsafe { backend.synchronize_stream(zeroing) }
        });
        allocated.map_err(|error| with_numbers(error, device, bytes))?;
        Ok(buffer)
    }
}

impl<T> Buffer<T> {
    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes of the device's memory its values take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // It was checked when the memory was allocated.
        self.len * size_of::<T>()
    }

    /// The device that the memory belongs to.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where its first value is on the device; 0 when there are no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Where a range begins on the device, and how many bytes it has.
    #[track_caller]
    pub(crate) fn span(&self, range: &Range<usize>) -> (u64, usize) {
        let (offset, bytes) = span::<T>(range, self.len);
        (self.address + offset as u64, bytes)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        let backend = self.device.backend();
        // CUDA waits in its own `free` as well, but nowhere promises it. A device that cannot be waited for is lost and
        // its memory with it.
        if backend.synchronize().is_ok() {
            // SAFETY: the address came from an allocation of as many bytes; no work is left that could use it, for
            // launches and copies borrow the buffer when they are given.
            let _ = unsafe { backend.free(self.address, self.bytes()) };
        }
    }
}

/// Values in page-locked memory of the machine: copies to and from the device overlap with other work, and kernels can
/// address them.
///
/// It remembers the work that was given it. Showing its contents, and dropping it, waits for that: for all that the stream
/// was given until then, unless a wait for the stream or for an [`Event`](crate::Event) has already told that the work is
/// done.
#[derive(Debug)]
pub struct Pinned<T> {
    device: Device,
    /// Dangling when there are no bytes.
    address: NonNull<T>,
    len: usize,
    in_flight: InFlight,
}

// SAFETY: it owns its memory as a boxed slice does, and hands it out by the same borrows.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: as above; `&Pinned` gives no access to the values at all.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Pod> Pinned<T> {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, DriverError> {
        let bytes = bytes_of::<T>(len)?;
        let address = if bytes == 0 {
            NonNull::dangling()
        } else {
            device
                .run(Operation::Other, |backend| backend.allocate_pinned(bytes))
                .map_err(|error| of_the_machine(error, bytes))?
                .cast()
        };
        Ok(Self { device: device.clone(), address, len, in_flight: InFlight::default() })
    }

    /// The values. Waits first for work that still reads or writes them.
    ///
    /// # Errors
    /// [`DriverError`] when that work fails or cannot be waited for.
    pub fn slice(&mut self) -> Result<&[T], DriverError> {
        Ok(self.slice_mut()?)
    }

    /// The values, to change. Waits as [`Pinned::slice`] does.
    ///
    /// # Errors
    /// [`DriverError`] when that work fails or cannot be waited for.
    pub fn slice_mut(&mut self) -> Result<&mut [T], DriverError> {
        self.in_flight.wait(&self.device)?;
        // SAFETY: the memory is ours, holds `len` values (or none, then the pointer dangles well aligned), was zeroed, and
        // any bytes are a `T: Pod`. No work touches it any more, and more can be given only through `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) })
    }
}

impl Pinned<u64> {
    /// The words, to be looked at while work may touch them.
    pub(crate) fn atomic_words(&self) -> &[AtomicU64] {
        // SAFETY: the memory is ours, holds `len` words (or none, then the pointer dangles well aligned) and was zeroed;
        // who has this view never asks for plain references, which take `&mut self`, while it lives; a device writes
        // whole words, or the lower half of a word whose upper half nobody writes, each as another thread's atomic write.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().cast(), self.len) }
    }
}

impl<T> Pinned<T> {
    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes of the machine's memory its values take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // It was checked when the memory was allocated.
        self.len * size_of::<T>()
    }

    /// The device whose streams can be given this memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where its first value is, for the device and the host alike; 0 when there are no bytes.
    pub(crate) fn address(&self) -> u64 {
        if self.bytes() == 0 { 0 } else { self.address.as_ptr().expose_provenance() as u64 }
    }

    /// Where a range begins, and how many bytes it has.
    #[track_caller]
    pub(crate) fn span(&self, range: &Range<usize>) -> (u64, usize) {
        let (offset, bytes) = span::<T>(range, self.len);
        (self.address() + offset as u64, bytes)
    }

    /// The work that touches it, to be marked.
    pub(crate) fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    /// The device that the memory belongs to, and the work that touches it.
    pub(crate) fn parts(&mut self) -> (&Device, &mut InFlight) {
        (&self.device, &mut self.in_flight)
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // What work may still touch is leaked.
        if bytes > 0 && self.in_flight.settle() {
            // SAFETY: the address came from an allocation of as many bytes, and no work touches it any more.
            let _ = unsafe { self.device.backend().free_pinned(self.address.cast(), bytes) };
        }
    }
}

/// Bytes that `len` values take.
fn bytes_of<T: Pod>(len: usize) -> Result<usize, DriverError> {
    const { assert!(align_of::<T>() <= ALIGNMENT_BYTES, "allocations are not aligned further") };
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    bytes.ok_or(DriverError::OutOfMemory { requested_bytes: u64::MAX, free_bytes: 0 })
}

/// The offset and length in bytes of a range of values out of `len`.
#[track_caller]
fn span<T>(range: &Range<usize>, len: usize) -> (usize, usize) {
    assert!(
        range.start <= range.end && range.end <= len,
        "values {} to {} are asked for, and there are {len}",
        range.start,
        range.end
    );
    (range.start * size_of::<T>(), range.len() * size_of::<T>())
}

/// Tells what was asked for and what there was.
fn with_numbers(error: DriverError, device: &Device, bytes: usize) -> DriverError {
    if !matches!(error, DriverError::OutOfMemory { .. }) {
        return error;
    }
    let free_bytes = device.backend().memory().map_or(0, |memory| memory.free_bytes);
    DriverError::OutOfMemory { requested_bytes: bytes as u64, free_bytes }
}

/// Tells that it was not the device's memory.
fn of_the_machine(error: DriverError, bytes: usize) -> DriverError {
    if matches!(error, DriverError::OutOfMemory { .. }) {
        DriverError::OutOfPinnedMemory { requested_bytes: bytes as u64 }
    } else {
        error
    }
}
