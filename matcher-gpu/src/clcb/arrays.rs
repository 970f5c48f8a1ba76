//! The arrays that stay on the device (paper, Fig. 2(a)).

use kernels::clcb::{Constraint, SUBS};

use crate::growth::{grow, grown};
use device::{Buffer, Device, DriverError, Stream};

/// Inverse of the share by which arrays grow: memory is scarcer on a device than copies are slow.
const GROWTH_PART: usize = 32;

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
    /// The value of a filter's counter when its area and all of its constraints hold.
    pub(crate) needed: Buffer<u8>,
    /// The subscription of each filter.
    pub(crate) owner: Buffer<u32>,
    /// The groups' runs of slots.
    pub(crate) constraints: Buffer<Constraint>,
    pub(crate) subs_bv: Buffer<u8>,
    /// SubsCount, and Subs after [`SUBS`] words.
    pub(crate) results: Buffer<u32>,
    /// Counts of Zip in the fast form.
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
        let filters = grown(self.bf.len(), filters, GROWTH_PART);
        grow(stream, &mut self.bf, filters)?;
        grow(stream, &mut self.fpos, filters * self.dimensions as usize)?;
        grow(stream, &mut self.sq_dist, filters)?;
        grow(stream, &mut self.fcount, filters)?;
        grow(stream, &mut self.needed, filters)?;
        grow(stream, &mut self.owner, filters)?;
        let slots = grown(self.constraints.len(), slots, GROWTH_PART);
        grow(stream, &mut self.constraints, slots)?;
        let subscriptions = grown(self.subs_bv.len(), subscriptions, GROWTH_PART);
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
