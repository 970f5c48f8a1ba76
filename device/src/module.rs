//! Compiled modules and their kernels.

use std::sync::Arc;

use crate::backend::Handle;
use crate::device::Device;
use crate::error::DriverError;
use crate::faults::Operation;
use crate::source::{CompileError, NotCompiled, Source};

/// A module, compiled for a device.
#[derive(Clone, Debug)]
pub struct LoadedModule {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    device: Device,
    handle: Handle,
}

/// A kernel of a module, which it keeps loaded. One typed launcher, in the crate that uses it, starts it.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Arc<Shared>,
    function: Handle,
}

impl LoadedModule {
    pub(crate) fn new(device: &Device, module: &kernels::Module) -> Result<Self, DriverError> {
        let handle = device.run(Operation::Other, |backend| backend.load_module(module.ptx))?;
        Ok(Self { shared: Arc::new(Shared { device: device.clone(), handle }) })
    }

    pub(crate) fn of_source(device: &Device, source: &Source<'_>) -> Result<Self, CompileError> {
        let mut refused = None;
        let handle = device.run(Operation::Compile, |backend| match backend.compile(source) {
            Ok(handle) => Ok(Some(handle)),
            Err(NotCompiled::NoCompiler(reason)) => {
                refused = Some(CompileError::NoCompiler { reason });
                Ok(None)
            }
            Err(NotCompiled::Refused(log)) => {
                refused = Some(CompileError::Refused { name: source.name.to_owned(), log });
                Ok(None)
            }
            Err(NotCompiled::Failed(failure)) => Err(failure),
        });
        match (handle, refused) {
            (Ok(Some(handle)), _) => Ok(Self { shared: Arc::new(Shared { device: device.clone(), handle }) }),
            (_, Some(refused)) => Err(refused),
            (Err(DriverError::Other { operation: "compile", reason }), _) => {
                Err(CompileError::NoCompiler { reason })
            }
            (Err(error), _) => Err(error.into()),
            (Ok(None), None) => unreachable!("without a module there is a reason"),
        }
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`DriverError`], also when the module has none of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DriverError> {
        let Shared { device, handle } = &*self.shared;
        let function = device.run(Operation::Other, |backend| {
            // SAFETY: the handle is this module's own, and the kernel keeps the module.
            unsafe { backend.function(*handle, name) }
        })?;
        Ok(Kernel { module: Arc::clone(&self.shared), function })
    }
}

impl Kernel {
    /// The device that the kernel was compiled for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.module.device
    }

    pub(crate) fn function(&self) -> Handle {
        self.function
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let backend = self.device.backend();
        // A kernel of it may still run. A device that cannot be waited for is lost and the module with it.
        if backend.synchronize().is_ok() {
            // SAFETY: the handle is this module's own, no kernel value is left, and none of its kernels runs.
            let _ = unsafe { backend.unload_module(self.handle) };
        }
    }
}
