//! Launches that are started together again and again, as one piece of work: the driver then takes a third of the time.

use std::ffi::c_void;

use crate::backend::{Handle, Outcome, RawLaunch};
use crate::device::Device;
use crate::module::Kernel;
use crate::parameter::{PARAMETERS_MAX, Parameter};

/// A launch of a 1-D grid.
#[derive(Debug)]
pub struct Launch<'p, 'a> {
    /// The kernel that is started.
    pub kernel: &'p Kernel,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// The parameters of the kernel.
    pub parameters: &'p mut [Parameter<'a>],
}

/// Launches that are kept between two times; nothing at first.
///
/// It is told the parameters of every launch, so it never uses the address of memory that is gone.
#[derive(Debug, Default)]
pub struct Graph {
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    device: Device,
    handle: Handle,
    launches: Vec<KeptLaunch>,
}

/// A launch as it was last time.
#[derive(Debug)]
struct KeptLaunch {
    /// Keeps its module loaded.
    kernel: Kernel,
    grid: u32,
    block: u32,
    /// All parameters, one behind the other.
    bytes: Vec<u8>,
}

impl Graph {
    /// The driver's graph of these launches.
    ///
    /// # Safety
    /// The conditions of `Backend::create_graph`.
    pub(crate) unsafe fn prepare(
        &mut self,
        device: &Device,
        launches: &[Launch<'_, '_>],
        pointers: &mut [[*mut c_void; PARAMETERS_MAX]],
    ) -> Outcome<Handle> {
        let mut raw: Vec<RawLaunch<'_>> =
            launches.iter().zip(pointers).map(|(launch, pointers)| raw(launch, pointers)).collect();
        if !self.kept.as_ref().is_some_and(|kept| kept.has_kernels(launches)) {
            self.kept = None;
            // SAFETY: as the caller says.
            let handle = unsafe { device.backend().create_graph(&mut raw) }?;
            let handle = handle.expect("devices that are not the host have graphs");
            let launches = launches.iter().map(KeptLaunch::of).collect();
            self.kept = Some(Kept { device: device.clone(), handle, launches });
            return Ok(handle);
        }
        let kept = self.kept.as_mut().expect("it was just looked at");
        for (index, (held, launch)) in kept.launches.iter_mut().zip(launches).enumerate() {
            if !held.is(launch) {
                // SAFETY: as the caller says; the kernel is the same.
                unsafe { device.backend().update_graph(kept.handle, index, &mut raw[index]) }?;
                held.take_over(launch);
            }
        }
        Ok(kept.handle)
    }
}

impl Kept {
    fn has_kernels(&self, launches: &[Launch<'_, '_>]) -> bool {
        let kernels = self.launches.iter().map(|held| held.kernel.function());
        kernels.eq(launches.iter().map(|launch| launch.kernel.function()))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let backend = self.device.backend();
        // It may still run. A device that cannot be waited for is lost and the graph with it.
        if backend.synchronize().is_ok() {
            // SAFETY: the handle is this value's own and does not run.
            let _ = unsafe { backend.destroy_graph(self.handle) };
        }
    }
}

impl KeptLaunch {
    fn of(launch: &Launch<'_, '_>) -> Self {
        let Launch { kernel, grid, block, .. } = launch;
        let bytes = launch.parameters.iter().flat_map(Parameter::bytes).copied().collect();
        Self { kernel: (*kernel).clone(), grid: *grid, block: *block, bytes }
    }

    fn is(&self, launch: &Launch<'_, '_>) -> bool {
        (self.grid, self.block) == (launch.grid, launch.block)
            && self.bytes.iter().eq(launch.parameters.iter().flat_map(Parameter::bytes))
    }

    /// Takes the grid and the parameters over.
    fn take_over(&mut self, launch: &Launch<'_, '_>) {
        (self.grid, self.block) = (launch.grid, launch.block);
        self.bytes.clear();
        self.bytes.extend(launch.parameters.iter().flat_map(Parameter::bytes));
    }
}

fn raw<'a>(launch: &Launch<'_, '_>, pointers: &'a mut [*mut c_void; PARAMETERS_MAX]) -> RawLaunch<'a> {
    RawLaunch {
        function: launch.kernel.function(),
        grid: launch.grid,
        block: launch.block,
        parameters: &mut pointers[..launch.parameters.len()],
    }
}
