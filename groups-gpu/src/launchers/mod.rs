//! The launchers of `kernel_groups.cu` and `kernel_groups_letter.cu`.

mod bits;
mod letter;

use device::{Device, DriverError, Kernel};

pub(crate) use bits::{FIRST, Tables};
pub(crate) use letter::{Arrays, Batch, Counts};

/// The kernels, compiled for a device.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    prepare: Kernel,
    round: Kernel,
    tell: Kernel,
    starts: Kernel,
    sums: Kernel,
    sums_before: Kernel,
    scan: Kernel,
    lengths: Kernel,
    nodes: Kernel,
    edges: Kernel,
    count: Kernel,
    domains: Kernel,
    delete: Kernel,
    clear: Kernel,
    count_delete: Kernel,
    clear_domains: Kernel,
    delete_once: Kernel,
    decrement: Kernel,
}

/// Threads of a large grid: a large device is full with these.
const THREADS_MAX: u32 = 1 << 18;

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::GROUPS)?;
        let letter = device.module(&kernels::GROUPS_LETTER)?;
        Ok(Self {
            device: device.clone(),
            prepare: module.kernel("groups_prepare")?,
            round: module.kernel("groups_round")?,
            tell: module.kernel("groups_tell")?,
            starts: module.kernel("groups_starts")?,
            sums: letter.kernel("groups_sums")?,
            sums_before: letter.kernel("groups_sums_before")?,
            scan: letter.kernel("groups_scan")?,
            lengths: letter.kernel("groups_lengths")?,
            nodes: letter.kernel("groups_nodes")?,
            edges: letter.kernel("groups_edges")?,
            count: letter.kernel("groups_count")?,
            domains: letter.kernel("groups_domains")?,
            delete: letter.kernel("groups_delete")?,
            clear: letter.kernel("groups_clear")?,
            count_delete: letter.kernel("groups_count_delete")?,
            clear_domains: letter.kernel("groups_clear_domains")?,
            delete_once: letter.kernel("groups_delete_once")?,
            decrement: letter.kernel("groups_decrement")?,
        })
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Blocks for a number of threads.
    fn grid(&self, threads: u64, block: u32) -> u32 {
        // A host runs the threads of a grid one after another.
        let most = if self.device.is_host() { 1 } else { THREADS_MAX / block };
        u32::try_from(threads.div_ceil(block.into())).map_or(most, |grid| grid.clamp(1, most))
    }
}
