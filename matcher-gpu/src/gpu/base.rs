//! The base: entries sorted by cell. Two of them take turns, so that one is sorted while the other is searched.

use bytemuck::Pod;
use kernels::gpu::{CHUNK, Levels, Place};

use super::table::{GROWTH_PART, Table};
use crate::growth::grown;
use crate::launchers::gpu::GpuKernels;
use device::{Buffer, Device, DriverError, Stream};

/// Buckets at least, a whole number of chunks.
const BUCKETS_MIN: usize = CHUNK;
/// Buckets at most: their offsets should stay in the device's cache.
const BUCKETS_MAX: usize = 1 << 23;

/// Entries in the order of their buckets.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) places: Buffer<Place>,
    pub(crate) masks: Buffer<u32>,
    pub(crate) entries: Buffer<u32>,
    /// Where each bucket begins, and behind the last where that ends.
    pub(crate) offsets: Buffer<u32>,
    /// A power of two, less one.
    pub(crate) buckets_mask: u32,
    /// The levels that have entries, as bits.
    pub(crate) occupied: Buffer<u32>,
    pub(crate) levels: Levels,
    /// Entries with a later stamp have changed since.
    pub(crate) epoch: u32,
}

/// Memory that sorting needs beside the base, kept to be used again.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// The bucket of each entry.
    pub(crate) keys: Buffer<u32>,
    /// Its place in there.
    pub(crate) ranks: Buffer<u32>,
    /// Sum of the counts of each chunk of buckets, and then that of the chunks before.
    pub(crate) sums: Buffer<u32>,
}

impl Base {
    pub(super) fn new(device: &Device, levels: Levels) -> Result<Self, DriverError> {
        Ok(Self {
            places: device.buffer(0)?,
            masks: device.buffer(0)?,
            entries: device.buffer(0)?,
            offsets: device.buffer(BUCKETS_MIN + 1)?,
            buckets_mask: mask(BUCKETS_MIN),
            occupied: device.buffer(1)?,
            levels,
            epoch: 0,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.bytes() + self.masks.bytes() + self.entries.bytes() + self.offsets.bytes()
    }

    fn buckets(&self) -> usize {
        self.buckets_mask as usize + 1
    }
}

fn mask(buckets: usize) -> u32 {
    u32::try_from(buckets - 1).expect("there are fewer than 2^32 buckets")
}

/// Makes a buffer long enough. What it held is gone then.
fn lengthen<T: Pod>(device: &Device, buffer: &mut Buffer<T>, needed: usize) -> Result<(), DriverError> {
    if needed > buffer.len() {
        *buffer = device.buffer(grown(buffer.len(), needed, GROWTH_PART))?;
    }
    Ok(())
}

impl Sorter {
    pub(super) fn new(device: &Device) -> Result<Self, DriverError> {
        Ok(Self { keys: device.buffer(0)?, ranks: device.buffer(0)?, sums: device.buffer(0)? })
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes() + self.ranks.bytes() + self.sums.bytes()
    }

    /// Makes room for a sort of `entries_count` entries, `live` of them there. Allocates, which may wait for the device.
    ///
    /// # Errors
    /// When there is too little memory; nothing is lost then.
    pub(super) fn reserve(
        &mut self,
        device: &Device,
        base: &mut Base,
        entries_count: usize,
        live: usize,
    ) -> Result<(), DriverError> {
        lengthen(device, &mut self.keys, entries_count)?;
        lengthen(device, &mut self.ranks, entries_count)?;
        // Not only for those that are there now: others may come before the device looks.
        lengthen(device, &mut base.places, entries_count)?;
        lengthen(device, &mut base.masks, entries_count)?;
        lengthen(device, &mut base.entries, entries_count)?;
        let buckets = live.next_power_of_two().clamp(BUCKETS_MIN, BUCKETS_MAX);
        if buckets + 1 > base.offsets.len() {
            base.offsets = device.buffer(buckets + 1)?;
        }
        if buckets / CHUNK > self.sums.len() {
            self.sums = device.buffer(buckets / CHUNK)?;
        }
        base.buckets_mask = mask(buckets);
        Ok(())
    }

    /// Sorts the table's entries into a base that has room for them, by its levels and in the stream's order. What
    /// changes meanwhile has a later stamp than its epoch and is not looked for there.
    pub(super) fn sort(
        &self,
        stream: &Stream,
        kernels: &GpuKernels,
        table: &Table,
        base: &Base,
        entries_count: u32,
    ) -> Result<(), DriverError> {
        stream.fill(&base.offsets, 0..base.buckets() + 1, 0)?;
        stream.fill(&base.occupied, 0..1, 0)?;
        kernels.sort(stream, table, self, base, entries_count)
    }
}
