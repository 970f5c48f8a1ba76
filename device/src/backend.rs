//! The interface of backends, in terms of addresses and numbers. Everything above is written once, over this.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

use crate::device::Memory;
use crate::source::{NotCompiled, Source};
use crate::stream::Priority;

/// A backend's name for a stream, event, module or function of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(pub(crate) usize);

/// Where bytes are copied from and to. Host addresses are of memory from [`Backend::allocate_pinned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
    WithinDevice,
}

/// An operation that failed, before the device decides what that means for it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) operation: &'static str,
    pub(crate) reason: String,
}

/// Kind of a failure, which decides what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Too little memory; nothing else happened.
    OutOfMemory,
    /// A kernel could not be started; the device goes on.
    NotLaunched,
    /// A kernel stopped halfway; nothing works from now on.
    KernelFailed,
    /// Nothing works from now on.
    Lost,
    /// Anything else.
    Other,
}

/// A launch of a 1-D grid, as backends take it.
#[derive(Debug)]
pub(crate) struct RawLaunch<'a> {
    pub(crate) function: Handle,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    /// Each points to an argument and is read at once.
    pub(crate) parameters: &'a mut [*mut c_void],
}

/// Result of an operation of a backend.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// A device's operations. Any thread may call any of them at any time.
///
/// The common safety contract of the unsafe ones: each handle is of the named kind, was made by this backend and has not
/// been destroyed; each device address lies, with as many bytes as are named, in memory allocated by this backend
/// and not freed; and that holds until the work has been done, that is, until `synchronize_stream` of its stream, or
/// `synchronize_event` of an event recorded after it, has returned.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// Whether this is the processor itself.
    fn is_host(&self) -> bool;
    fn memory(&self) -> Outcome<Memory>;

    /// Waits for all work on the device.
    fn synchronize(&self) -> Outcome<()>;

    /// Memory of the device, aligned to 256 bytes, of unknown contents. `bytes` is not 0.
    fn allocate(&self, bytes: usize) -> Outcome<u64>;
    /// # Safety
    /// The common contract; `address` came from `allocate(bytes)`, and no work still uses it.
    unsafe fn free(&self, address: u64, bytes: usize) -> Outcome<()>;

    /// Page-locked memory of the machine that the device addresses as the host does, aligned to 256 bytes, zeroed.
    /// `bytes` is not 0.
    fn allocate_pinned(&self, bytes: usize) -> Outcome<NonNull<u8>>;
    /// # Safety
    /// `address` came from `allocate_pinned(bytes)`; nothing uses it any more, on the host or on the device.
    unsafe fn free_pinned(&self, address: NonNull<u8>, bytes: usize) -> Outcome<()>;

    fn create_stream(&self, priority: Priority) -> Outcome<Handle>;
    /// # Safety
    /// The common contract.
    unsafe fn destroy_stream(&self, stream: Handle) -> Outcome<()>;
    /// # Safety
    /// The common contract.
    unsafe fn synchronize_stream(&self, stream: Handle) -> Outcome<()>;

    /// Copies `bytes` later, in the stream's order. The two ranges do not overlap.
    ///
    /// # Safety
    /// The common contract; a pinned range is not read or written by the host meanwhile.
    unsafe fn copy(
        &self,
        stream: Handle,
        direction: Direction,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Outcome<()>;
    /// Sets `words` words of 32 bits later, in the stream's order.
    ///
    /// # Safety
    /// The common contract; `address` is a multiple of 4.
    unsafe fn fill(&self, stream: Handle, address: u64, words: usize, value: u32) -> Outcome<()>;
    /// Starts a 1-D grid later, in the stream's order. `parameters[i]` points to the i-th argument and is read at once.
    ///
    /// # Safety
    /// The common contract; there are as many parameters as the kernel has, each of its type, and the kernel reads and
    /// writes only memory of this backend, within bounds, that stays allocated and unused by the host meanwhile.
    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        grid: u32,
        block: u32,
        parameters: &mut [*mut c_void],
    ) -> Outcome<()>;

    /// Writes words later, in their order and the stream's; each is seen by all after what was written before it.
    ///
    /// # Safety
    /// The common contract; addresses are multiples of 4.
    unsafe fn write(&self, stream: Handle, writes: &[(u64, u32)]) -> Outcome<()>;

    /// Launches in a row as one piece of work, to be started again and again; none on the host.
    ///
    /// # Safety
    /// Functions and parameters as for [`Backend::launch`]; the memory has to be there while the graph runs.
    unsafe fn create_graph(&self, launches: &mut [RawLaunch<'_>]) -> Outcome<Option<Handle>>;
    /// Gives one of the launches another grid or other parameters.
    ///
    /// # Safety
    /// As for [`Backend::create_graph`]; the launch is of the same function.
    unsafe fn update_graph(&self, graph: Handle, index: usize, launch: &mut RawLaunch<'_>) -> Outcome<()>;
    /// Starts the launches later, in the stream's order.
    ///
    /// # Safety
    /// The common contract, for the memory that the launches name.
    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Outcome<()>;
    /// # Safety
    /// The common contract; it does not run.
    unsafe fn destroy_graph(&self, graph: Handle) -> Outcome<()>;

    fn create_event(&self) -> Outcome<Handle>;
    /// # Safety
    /// The common contract.
    unsafe fn destroy_event(&self, event: Handle) -> Outcome<()>;
    /// # Safety
    /// The common contract.
    unsafe fn record_event(&self, event: Handle, stream: Handle) -> Outcome<()>;
    /// Whether what the event was recorded after is done.
    ///
    /// # Safety
    /// The common contract.
    unsafe fn event_done(&self, event: Handle) -> Outcome<bool>;
    /// # Safety
    /// The common contract.
    unsafe fn synchronize_event(&self, event: Handle) -> Outcome<()>;
    /// Later work of the stream waits for the event.
    ///
    /// # Safety
    /// The common contract.
    unsafe fn wait_event(&self, stream: Handle, event: Handle) -> Outcome<()>;
    /// The time between two events that are both done.
    ///
    /// # Safety
    /// The common contract.
    unsafe fn elapsed(&self, earlier: Handle, later: Handle) -> Outcome<Duration>;

    fn load_module(&self, ptx: &str) -> Outcome<Handle>;
    /// Compiles a source and loads what it becomes.
    fn compile(&self, source: &Source<'_>) -> Result<Handle, NotCompiled>;
    /// # Safety
    /// The common contract; no work still runs a function of it.
    unsafe fn unload_module(&self, module: Handle) -> Outcome<()>;
    /// # Safety
    /// The common contract. The function lives as long as the module.
    unsafe fn function(&self, module: Handle, name: &str) -> Outcome<Handle>;
}
