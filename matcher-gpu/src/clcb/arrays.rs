//! The arrays that stay on the device (paper, Fig. 2(a)).

use bytemuck::Pod;
use kernels::clcb::{Constraint, PAGE};

use crate::driver::{Buffer, Device, DriverError, Stream};

/// Lengths are rounded up to this, so that kernels may read sixteen at a time.
const ROUNDED_TO: usize = 1024;
/// SubsCount and Subs begin so far apart in the results.
pub(crate) const SUBS: usize = 4;

/// Filters, constraints and results. Numbers of filters and subscriptions are below the lengths.
#[derive(Debug)]
pub(crate) struct Arrays {
    /// Floats a centre.
    pub(crate) dimensions: u32,
    pub(crate) bf: Buffer<u32>,
    pub(crate) fpos: Buffer<f32>,
    pub(crate) sq_dist: Buffer<f32>,
    /// A byte for each of four runs.
    pub(crate) fcount: Buffer<u32>,
    /// What a counter reaches when all holds.
    pub(crate) needed: Buffer<u8>,
    /// The subscription of each filter.
    pub(crate) owner: Buffer<u32>,
    /// Pages of the groups.
    pub(crate) constraints: Buffer<Constraint>,
    pub(crate) subs_bv: Buffer<u8>,
    /// SubsCount, and Subs after [`SUBS`] words.
    pub(crate) results: Buffer<u32>,
    /// What Zip counts in the fast form.
    pub(crate) tally: Buffer<u64>,
}

impl Arrays {
    pub(super) fn new(device: &Device, dimensions: u32) -> Result<Self, DriverError> {
        Ok(Self {
            dimensions,
            bf: device.buffer(0)?,
            fpos: device.buffer(0)?,
            sq_dist: device.buffer(0)?,
            fcount: device.buffer(0)?,
            needed: device.buffer(0)?,
            owner: device.buffer(0)?,
            constraints: device.buffer(0)?,
            subs_bv: device.buffer(0)?,
            results: device.buffer(SUBS)?,
            tally: device.buffer(1)?,
        })
    }

    /// Makes room. What is held keeps its place.
    ///
    /// # Errors
    /// When there is too little memory; the arrays are then at least as long as before, each with what it held.
    pub(super) fn reserve(
        &mut self,
        stream: &Stream,
        filters: usize,
        slots: usize,
        subscriptions: usize,
    ) -> Result<(), DriverError> {
        let filters = grown(self.bf.len(), filters);
        grow(stream, &mut self.bf, filters)?;
        grow(stream, &mut self.fpos, filters * self.dimensions as usize)?;
        grow(stream, &mut self.sq_dist, filters)?;
        grow(stream, &mut self.fcount, filters)?;
        grow(stream, &mut self.needed, filters)?;
        grow(stream, &mut self.owner, filters)?;
        let slots = grown(self.constraints.len(), slots);
        grow(stream, &mut self.constraints, slots.next_multiple_of(PAGE))?;
        let subscriptions = grown(self.subs_bv.len(), subscriptions);
        grow(stream, &mut self.subs_bv, subscriptions)?;
        grow(stream, &mut self.results, SUBS + subscriptions)
    }

    /// Bytes of the device's memory.
    pub(super) fn bytes(&self) -> usize {
        self.bf.bytes()
            + self.fpos.bytes()
            + self.sq_dist.bytes()
            + self.fcount.bytes()
            + self.needed.bytes()
            + self.owner.bytes()
            + self.constraints.bytes()
            + self.subs_bv.bytes()
            + self.results.bytes()
    }
}

/// A length that holds `needed`: it grows by an eighth, since memory is scarcer on a device than copies are slow.
fn grown(len: usize, needed: usize) -> usize {
    if needed <= len { len } else { needed.max(len + len / 8).next_multiple_of(ROUNDED_TO) }
}

/// Moves a buffer's contents to a longer one.
pub(crate) fn grow<T: Pod>(stream: &Stream, buffer: &mut Buffer<T>, len: usize) -> Result<(), DriverError> {
    if len <= buffer.len() {
        return Ok(());
    }
    let longer = stream.device().buffer(len)?;
    stream.copy(buffer, 0..buffer.len(), &longer, 0)?;
    // The old one is freed once the copy is done.
    *buffer = longer;
    Ok(())
}
