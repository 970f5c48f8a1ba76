//! A device: where memory, streams and modules come from.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;

use crate::backend::{Backend, Failure, FailureKind, Handle, Outcome};
use crate::error::DriverError;
use crate::faults::{Fault, Faults, Operation};
use crate::memory::{Buffer, Pinned};
use crate::module::LoadedModule;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::probe::Probe;
use crate::shared::SharedWords;
use crate::source::{CompileError, Source};
use crate::stream::{Event, Priority, Stream};

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that can still be allocated, by anyone.
    pub free_bytes: u64,
    /// Bytes that there are.
    pub total_bytes: u64,
}

/// A handle to one device; clones are the same device. Its streams, memory and modules keep it open.
///
/// Things that were made by a device, or by a clone of it, go only with other things of that device.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Box<dyn Backend>,
    name: String,
    faults: Faults,
    /// Where new memory is zeroed, so that this waits for nobody's work.
    zeroing: Handle,
}

impl Device {
    /// Every CUDA device that can run our kernels, never empty. Each call opens them anew: things of one call's devices
    /// do not go with another's.
    ///
    /// # Errors
    /// [`DriverError`] with one sentence that says what is missing.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub fn all() -> Result<Vec<Self>, DriverError> {
        let found = crate::cuda::Cuda::all()?;
        let open = |(backend, name)| {
            let device = Self::open(Box::new(backend), name)?;
            Probe::check(&device)?;
            Ok(device)
        };
        found.into_iter().map(open).collect()
    }

    /// Every CUDA device: none on this platform.
    ///
    /// # Errors
    /// Always [`DriverError::NotBuilt`].
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    pub fn all() -> Result<Vec<Self>, DriverError> {
        Err(DriverError::NotBuilt)
    }

    /// The processor as a device that holds `memory_bytes` bytes: allocations beyond answer `OutOfMemory`.
    #[cfg(feature = "host-kernels")]
    #[must_use]
    pub fn host(memory_bytes: u64) -> Self {
        Self::open(Box::new(crate::host::Host::new(memory_bytes)), "host".to_owned())
            .expect("the host backend makes streams without fail")
    }

    fn open(backend: Box<dyn Backend>, name: String) -> Result<Self, DriverError> {
        let faults = Faults::default();
        let zeroing = backend.create_stream(Priority::Low).map_err(|failure| explain(&faults, failure))?;
        Ok(Self { shared: Arc::new(Shared { backend, name, faults, zeroing }) })
    }

    /// The maker's name for the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether it is the processor itself.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.shared.backend.is_host()
    }

    /// How much memory it has, and how much of that is free now.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn memory(&self) -> Result<Memory, DriverError> {
        self.run(Operation::Other, |backend| backend.memory())
    }

    /// A stream of work.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn stream(&self, priority: Priority) -> Result<Stream, DriverError> {
        Stream::new(self, priority)
    }

    /// Device memory for `len` values, zeroed; none at all is fine. May wait for work on the device.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn buffer<T: Pod>(&self, len: usize) -> Result<Buffer<T>, DriverError> {
        Buffer::new(self, len)
    }

    /// Page-locked memory of the machine for `len` values that the device can address too, zeroed; none at all is fine.
    /// May wait for work on the device.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<Pinned<T>, DriverError> {
        Pinned::new(self, len)
    }

    /// Words that the host and kernels see at the same time, zeroed.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn shared(&self, len: usize) -> Result<SharedWords, DriverError> {
        SharedWords::new(self, len)
    }

    /// Compiles a module for the device; the driver keeps what it compiled between runs.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn module(&self, module: &kernels::Module) -> Result<LoadedModule, DriverError> {
        LoadedModule::new(self, module)
    }

    /// Compiles a source for the device, with the compiler of this machine; the processor as a device takes its C++ compiler. Takes a second, more or
    /// less.
    ///
    /// # Errors
    /// [`CompileError`]
    pub fn compile(&self, source: &Source<'_>) -> Result<LoadedModule, CompileError> {
        LoadedModule::of_source(self, source)
    }

    /// An event that takes the time.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn event(&self) -> Result<Event, DriverError> {
        Event::new(self)
    }

    /// Makes the `after`-th operation from now that the fault concerns fail so: 1, and 0 too, is the next one. For tests of
    /// what callers do then.
    pub fn inject(&self, fault: Fault, after: u32) {
        self.shared.faults.order(fault, after);
    }

    /// Whether both are handles to the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Where new memory is zeroed.
    pub(crate) fn zeroing(&self) -> Handle {
        self.shared.zeroing
    }

    /// The backend itself, for what has to happen on a lost device too: waiting and freeing.
    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.shared.backend
    }

    /// Does an operation, unless a fault is due or the device is lost, and remembers a loss.
    pub(crate) fn run<T>(
        &self,
        operation: Operation,
        action: impl FnOnce(&dyn Backend) -> Outcome<T>,
    ) -> Result<T, DriverError> {
        let faults = &self.shared.faults;
        faults.check()?;
        if let Some(fault) = faults.due(operation) {
            return Err(self.fail(fault));
        }
        action(self.backend()).map_err(|failure| explain(faults, failure))
    }

    /// The error of an ordered fault.
    fn fail(&self, fault: Fault) -> DriverError {
        let faults = &self.shared.faults;
        let reason = "a fault on order".to_owned();
        match fault {
            // The caller that asked for memory puts its own numbers in.
            Fault::OutOfMemory => DriverError::OutOfMemory { requested_bytes: 0, free_bytes: 0 },
            Fault::LaunchFailed => {
                faults.lose(&reason);
                DriverError::LaunchFailed { operation: "launch", reason }
            }
            Fault::NoCompiler => DriverError::Other { operation: "compile", reason },
            Fault::DeviceLost => {
                faults.lose(&reason);
                DriverError::DeviceLost { reason }
            }
        }
    }
}

/// Says what a failure is to a caller, and remembers a loss.
fn explain(faults: &Faults, failure: Failure) -> DriverError {
    let Failure { kind, operation, reason } = failure;
    match kind {
        FailureKind::OutOfMemory => DriverError::OutOfMemory { requested_bytes: 0, free_bytes: 0 },
        FailureKind::NotLaunched => DriverError::LaunchFailed { operation, reason },
        FailureKind::KernelFailed => {
            faults.lose(&format!("{operation}: {reason}"));
            DriverError::LaunchFailed { operation, reason }
        }
        FailureKind::Lost => {
            let reason = format!("{operation}: {reason}");
            faults.lose(&reason);
            DriverError::DeviceLost { reason }
        }
        FailureKind::Other => DriverError::Other { operation, reason },
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the stream is ours alone and holds no work: zeroing ends with a wait. An error leaks it.
        let _ = unsafe { self.backend.destroy_stream(self.zeroing) };
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Device").field("name", &self.shared.name).finish_non_exhaustive()
    }
}
