//! Which work may still touch a piece of memory.
//!
//! Each stream counts what it was given and how much of that is known to be done. A piece of memory remembers, for each
//! stream that was given it, the count at that time; it is free again when that much is known to be done. So after a wait
//! that the caller had to make anyway, looking into memory costs no call of the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{Handle, Outcome};
use crate::device::Device;
use crate::error::DriverError;
use crate::faults::Operation;

/// A stream as its work, its events and the memory in use by it know it.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) device: Device,
    pub(crate) handle: Handle,
    /// How many pieces of work were given. Counted after the work was given, so that a thread that reads a count and
    /// then waits for the stream has waited for all that were counted.
    issued: AtomicU64,
    /// How many of them are known to be done.
    completed: AtomicU64,
}

impl Queue {
    pub(crate) fn new(device: Device, handle: Handle) -> Self {
        Self { device, handle, issued: AtomicU64::new(0), completed: AtomicU64::new(0) }
    }

    /// Counts a piece of work that was just given.
    fn count(&self) -> u64 {
        self.issued.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How many pieces of work were given so far.
    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

    /// Learns that the first `count` pieces of work are done.
    pub(crate) fn complete(&self, count: u64) {
        self.completed.fetch_max(count, Ordering::AcqRel);
    }

    fn has_completed(&self, count: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= count
    }

    /// Waits for all that was given so far, on a lost device too.
    pub(crate) fn finish(&self) -> Outcome<()> {
        let issued = self.issued();
        // SAFETY: the handle is this queue's own and lives as long.
        unsafe { self.device.backend().synchronize_stream(self.handle) }?;
        self.complete(issued);
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: nobody else holds the handle: memory, events and streams keep the queue. CUDA lets go of a stream's
        // resources when its work is done. An error leaks them.
        let _ = unsafe { self.device.backend().destroy_stream(self.handle) };
    }
}

/// The work that may still touch a piece of memory: at most one entry a stream.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    uses: Vec<(Arc<Queue>, u64)>,
}

impl InFlight {
    /// Remembers that work just given to the stream touches the memory.
    pub(crate) fn mark(&mut self, queue: &Arc<Queue>) {
        let count = queue.count();
        match self.uses.iter_mut().find(|(used, _)| Arc::ptr_eq(used, queue)) {
            Some((_, last)) => *last = count,
            None => self.uses.push((Arc::clone(queue), count)),
        }
    }

    /// Waits until no work touches the memory.
    ///
    /// # Errors
    /// [`DriverError`]: then work may still touch it.
    pub(crate) fn wait(&mut self, device: &Device) -> Result<(), DriverError> {
        self.uses.retain(|(queue, count)| !queue.has_completed(*count));
        while let Some((queue, _)) = self.uses.last() {
            device.run(Operation::Other, |_| queue.finish())?;
            self.uses.pop();
        }
        Ok(())
    }

    /// Waits so on a lost device too; says whether the memory is free for certain.
    pub(crate) fn settle(&mut self) -> bool {
        self.uses.retain(|(queue, count)| !queue.has_completed(*count) && queue.finish().is_err());
        self.uses.is_empty()
    }
}
