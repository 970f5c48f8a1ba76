//! The backend of CUDA devices.
//!
//! `cust` finds the devices and holds their primary contexts. Streams, events and memory are the driver's own handles:
//! `cust` makes streams that wait for the default stream, and its events are used up by a wait.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::time::Duration;

use cust::context::{Context, CurrentContext};
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::sys::{self, CUresult};
use cust::{CudaApiVersion, CudaFlags};

use crate::backend::{Backend, Direction, Failure, FailureKind, Handle, Outcome, RawLaunch};
use crate::device::Memory;
use crate::error::DriverError;
use crate::nvrtc;
use crate::source::{NotCompiled, Source};
use crate::stream::Priority;
use crate::symbols;

/// `CU_STREAM_NON_BLOCKING`: the stream and the default stream do not wait for each other.
const NON_BLOCKING: u32 = 1;
/// The driver rounds up to as much anyway; done here, a fill in whole words stays inside.
const GRANULE_BYTES: usize = 256;
const JIT_LOG_BYTES: usize = 8192;

unsafe extern "C" {
    /// The second version, which needs no permission; newer than `cust_raw`.
    fn cuStreamBatchMemOp_v2(
        stream: sys::CUstream,
        count: u32,
        operations: *mut WriteOperation,
        flags: u32,
    ) -> CUresult;
}

/// Operations that one call takes.
const WRITES_MAX: usize = 256;

/// `CUstreamBatchMemOpParams` where it says to write a word, as wide as the union.
#[repr(C)]
struct WriteOperation {
    operation: u32,
    address: u64,
    value: u64,
    flags: u32,
    alias: u64,
    unused: u64,
}

const _: () = assert!(size_of::<WriteOperation>() == 48, "as in cuda.h");

impl WriteOperation {
    fn of((address, value): &(u64, u32)) -> Self {
        /// `CU_STREAM_MEM_OP_WRITE_VALUE_32`.
        const WRITE_32: u32 = 2;
        let (address, value) = (*address, u64::from(*value));
        Self { operation: WRITE_32, address, value, flags: 0, alias: 0, unused: 0 }
    }
}

/// A row of launches, and what runs it.
struct Graph {
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.exec.is_null() {
            // SAFETY: the handle is ours; who drops a graph knows that it does not run. An error leaks it.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
        // SAFETY: as above.
        let _ = unsafe { sys::cuGraphDestroy(self.graph) };
    }
}

fn node_parameters(launch: &mut RawLaunch<'_>) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: pointer(launch.function),
        gridDimX: launch.grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: launch.block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: launch.parameters.as_mut_ptr(),
        extra: ptr::null_mut(),
    }
}

/// One device, by its primary context.
pub(crate) struct Cuda {
    context: Context,
    /// The compute capability, which machine code is made for.
    capability: (u32, u32),
    /// Numbers that CUDA gives the first and the last priority here.
    priority_first: i32,
    priority_last: i32,
}

impl Cuda {
    /// Every device that can run our kernels, with its name; never empty.
    pub(crate) fn all() -> Result<Vec<(Self, String)>, DriverError> {
        symbols::load().map_err(|reason| DriverError::NoDriver { reason })?;
        cust::init(CudaFlags::empty()).map_err(|error| unavailable("cuInit", error))?;
        check_version()?;
        let devices =
            cust::device::Device::devices().map_err(|error| unavailable("cuDeviceGetCount", error))?;
        let mut found = Vec::new();
        let mut too_old = None;
        for device in devices {
            let device = device.map_err(|error| unavailable("cuDeviceGet", error))?;
            let name = device.name().map_err(|error| unavailable("cuDeviceGetName", error))?;
            let capability = (
                attribute(device, DeviceAttribute::ComputeCapabilityMajor)?,
                attribute(device, DeviceAttribute::ComputeCapabilityMinor)?,
            );
            if capability < kernels::COMPUTE_CAPABILITY_MIN {
                too_old = too_old.max(Some((capability, name)));
            } else {
                found.push((Self::open(device, capability)?, name));
            }
        }
        match too_old {
            _ if !found.is_empty() => Ok(found),
            None => Err(DriverError::NoDevice),
            Some((capability, name)) => Err(DriverError::DeviceTooOld {
                name,
                found: version(capability),
                needed: version(kernels::COMPUTE_CAPABILITY_MIN),
            }),
        }
    }

    fn open(device: cust::device::Device, capability: (u32, u32)) -> Result<Self, DriverError> {
        let context = Context::new(device).map_err(|error| unavailable("cuDevicePrimaryCtxRetain", error))?;
        CurrentContext::set_current(&context).map_err(|error| unavailable("cuCtxSetCurrent", error))?;
        let priorities = CurrentContext::get_stream_priority_range()
            .map_err(|error| unavailable("cuCtxGetStreamPriorityRange", error))?;
        Ok(Self { context, capability, priority_first: priorities.greatest, priority_last: priorities.least })
    }

    /// Loads PTX that ends in a NUL, or machine code.
    fn load(&self, image: &[u8]) -> Outcome<Handle> {
        self.enter()?;
        let mut log = vec![0_u8; JIT_LOG_BYTES];
        let mut options = [
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes a number where others take a pointer.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(JIT_LOG_BYTES - 1)];
        let mut module = ptr::null_mut();
        let (image, count) = (image.as_ptr().cast(), 2);
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        // SAFETY: the image is a text that ends in a NUL, or machine code that knows its length; as the log, it outlives the call; the options are two, each with its value, and
        // the log keeps a NUL behind what may be written.
        let loaded = unsafe { sys::cuModuleLoadDataEx(&raw mut module, image, count, options, values) };
        check("cuModuleLoadDataEx", loaded).map_err(|mut failure| {
            if let Ok(log) = CStr::from_bytes_until_nul(&log)
                && !log.is_empty()
            {
                failure.reason = format!("{}: {}", failure.reason, log.to_string_lossy().trim());
            }
            failure
        })?;
        Ok(handle(module))
    }

    /// Makes the context this thread's. Costs some tens of nanoseconds when it already is.
    fn enter(&self) -> Outcome<()> {
        CurrentContext::set_current(&self.context).map_err(|error| refused("cuCtxSetCurrent", error))
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cuda").finish_non_exhaustive()
    }
}

impl Backend for Cuda {
    fn is_host(&self) -> bool {
        false
    }

    fn memory(&self) -> Outcome<Memory> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to places for a size.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok(Memory { free_bytes: free as u64, total_bytes: total as u64 })
    }

    fn synchronize(&self) -> Outcome<()> {
        self.enter()?;
        // SAFETY: asks for nothing but the current context.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    fn allocate(&self, bytes: usize) -> Outcome<u64> {
        self.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is to a place for an address.
        let allocated =
            unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.next_multiple_of(GRANULE_BYTES)) };
        check("cuMemAlloc", allocated)?;
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _bytes: usize) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches that it came from `allocate` and is used no more.
        check("cuMemFree", unsafe { sys::cuMemFree_v2(address) })
    }

    fn allocate_pinned(&self, bytes: usize) -> Outcome<NonNull<u8>> {
        self.enter()?;
        let mut address = ptr::null_mut();
        // SAFETY: the pointer is to a place for a pointer.
        check("cuMemAllocHost", unsafe { sys::cuMemAllocHost_v2(&raw mut address, bytes) })?;
        let address = NonNull::new(address.cast::<u8>()).ok_or_else(|| Failure {
            kind: FailureKind::Other,
            operation: "cuMemAllocHost",
            reason: "the driver gave no address".to_owned(),
        })?;
        // SAFETY: the driver has just given these bytes, to be written by the host.
        unsafe { address.write_bytes(0, bytes) };
        Ok(address)
    }

    unsafe fn free_pinned(&self, address: NonNull<u8>, _bytes: usize) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches that it came from `allocate_pinned` and is used no more.
        check("cuMemFreeHost", unsafe { sys::cuMemFreeHost(address.as_ptr().cast()) })
    }

    fn create_stream(&self, priority: Priority) -> Outcome<Handle> {
        self.enter()?;
        let priority = match priority {
            Priority::High => self.priority_first,
            Priority::Low => self.priority_last,
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the pointer is to a place for a handle.
        let created = unsafe { sys::cuStreamCreateWithPriority(&raw mut stream, NON_BLOCKING, priority) };
        check("cuStreamCreateWithPriority", created)?;
        Ok(handle(stream))
    }

    unsafe fn destroy_stream(&self, stream: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle.
        check("cuStreamDestroy", unsafe { sys::cuStreamDestroy_v2(pointer(stream)) })
    }

    unsafe fn synchronize_stream(&self, stream: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(pointer(stream)) })
    }

    unsafe fn copy(
        &self,
        stream: Handle,
        direction: Direction,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Outcome<()> {
        self.enter()?;
        let stream = pointer(stream);
        match direction {
            Direction::ToDevice => {
                // SAFETY: the caller vouches for the handle, for both ranges and for how long they stay.
                let copied = unsafe { sys::cuMemcpyHtoDAsync_v2(to, host(from), bytes, stream) };
                check("cuMemcpyHtoDAsync", copied)
            }
            Direction::ToHost => {
                // SAFETY: as above.
                let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(host(to), from, bytes, stream) };
                check("cuMemcpyDtoHAsync", copied)
            }
            Direction::WithinDevice => {
                // SAFETY: as above.
                let copied = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
                check("cuMemcpyDtoDAsync", copied)
            }
        }
    }

    unsafe fn fill(&self, stream: Handle, address: u64, words: usize, value: u32) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle, the range, its alignment and how long it stays.
        check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(address, value, words, pointer(stream)) })
    }

    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        grid: u32,
        block: u32,
        parameters: &mut [*mut c_void],
    ) -> Outcome<()> {
        self.enter()?;
        let (stream, function) = (pointer(stream), pointer(function));
        let (parameters, extra) = (parameters.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the caller vouches for the handles, for the parameters and for what the kernel does with them.
        let launched =
            unsafe { sys::cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, extra) };
        check("cuLaunchKernel", launched)
    }

    unsafe fn write(&self, stream: Handle, writes: &[(u64, u32)]) -> Outcome<()> {
        self.enter()?;
        let mut operations: Vec<WriteOperation> = writes.iter().map(WriteOperation::of).collect();
        for operations in operations.chunks_mut(WRITES_MAX) {
            let count = u32::try_from(operations.len()).expect("a chunk is small");
            // SAFETY: the operations are as many; the caller vouches for the stream and the addresses.
            let written =
                unsafe { cuStreamBatchMemOp_v2(pointer(stream), count, operations.as_mut_ptr(), 0) };
            check("cuStreamBatchMemOp", written)?;
        }
        Ok(())
    }

    unsafe fn create_graph(&self, launches: &mut [RawLaunch<'_>]) -> Outcome<Option<Handle>> {
        self.enter()?;
        let mut graph = Graph { graph: ptr::null_mut(), exec: ptr::null_mut(), nodes: Vec::new() };
        // SAFETY: the pointer is to a place for a handle.
        check("cuGraphCreate", unsafe { sys::cuGraphCreate(&raw mut graph.graph, 0) })?;
        for launch in launches {
            let (parameters, mut node) = (node_parameters(launch), ptr::null_mut());
            let before = graph.nodes.last().map_or(ptr::null(), ptr::from_ref);
            let befores = usize::from(!before.is_null());
            // SAFETY: the graph is the one made above, the node before is its last, and the caller vouches for the function
            // and its parameters, which are read now.
            let added = unsafe {
                sys::cuGraphAddKernelNode(&raw mut node, graph.graph, before, befores, &raw const parameters)
            };
            check("cuGraphAddKernelNode", added)?;
            graph.nodes.push(node);
        }
        let (exec, error_node) = (&raw mut graph.exec, ptr::null_mut());
        // SAFETY: the graph is the one made above; nobody wants the log.
        let made = unsafe { sys::cuGraphInstantiate_v2(exec, graph.graph, error_node, ptr::null_mut(), 0) };
        check("cuGraphInstantiate", made)?;
        Ok(Some(Handle(Box::into_raw(Box::new(graph)).expose_provenance())))
    }

    unsafe fn update_graph(&self, graph: Handle, index: usize, launch: &mut RawLaunch<'_>) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle, which `create_graph` made of a box.
        let graph = unsafe { &*ptr::with_exposed_provenance::<Graph>(graph.0) };
        let parameters = node_parameters(launch);
        // SAFETY: the node is the graph's, and the caller vouches for the parameters, which are read now.
        let set = unsafe {
            sys::cuGraphExecKernelNodeSetParams(graph.exec, graph.nodes[index], &raw const parameters)
        };
        check("cuGraphExecKernelNodeSetParams", set)
    }

    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle, which `create_graph` made of a box.
        let graph = unsafe { &*ptr::with_exposed_provenance::<Graph>(graph.0) };
        // SAFETY: the caller vouches for the stream and for the memory that the launches name.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.exec, pointer(stream)) })
    }

    unsafe fn destroy_graph(&self, graph: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle, which `create_graph` made of a box, and gives it up.
        drop(unsafe { Box::from_raw(ptr::with_exposed_provenance_mut::<Graph>(graph.0)) });
        Ok(())
    }

    fn create_event(&self) -> Outcome<Handle> {
        self.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: the pointer is to a place for a handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, 0) })?;
        Ok(handle(event))
    }

    unsafe fn destroy_event(&self, event: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle.
        check("cuEventDestroy", unsafe { sys::cuEventDestroy_v2(pointer(event)) })
    }

    unsafe fn record_event(&self, event: Handle, stream: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handles.
        check("cuEventRecord", unsafe { sys::cuEventRecord(pointer(event), pointer(stream)) })
    }

    unsafe fn event_done(&self, event: Handle) -> Outcome<bool> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle.
        let answer = unsafe { sys::cuEventQuery(pointer(event)) };
        if answer == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("cuEventQuery", answer)?;
        Ok(true)
    }

    unsafe fn synchronize_event(&self, event: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(pointer(event)) })
    }

    unsafe fn wait_event(&self, stream: Handle, event: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handles; there are no flags.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(pointer(stream), pointer(event), 0) })
    }

    unsafe fn elapsed(&self, earlier: Handle, later: Handle) -> Outcome<Duration> {
        self.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: the caller vouches for the handles; the pointer is to a place for a float.
        let asked =
            unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, pointer(earlier), pointer(later)) };
        check("cuEventElapsedTime", asked)?;
        // Negative when `earlier` was the later one.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    fn load_module(&self, ptx: &str) -> Outcome<Handle> {
        let image = CString::new(ptx).expect("PTX is text");
        self.load(image.as_bytes_with_nul())
    }

    fn compile(&self, source: &Source<'_>) -> Result<Handle, NotCompiled> {
        Ok(self.load(&nvrtc::compile(source, self.capability)?)?)
    }

    unsafe fn unload_module(&self, module: Handle) -> Outcome<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the handle and that none of its kernels runs.
        check("cuModuleUnload", unsafe { sys::cuModuleUnload(pointer(module)) })
    }

    unsafe fn function(&self, module: Handle, name: &str) -> Outcome<Handle> {
        self.enter()?;
        let name = CString::new(name).expect("a kernel's name is an identifier");
        let mut function = ptr::null_mut();
        // SAFETY: the caller vouches for the handle; the name ends in a NUL; the pointer is to a place for a handle.
        let found = unsafe { sys::cuModuleGetFunction(&raw mut function, pointer(module), name.as_ptr()) };
        check("cuModuleGetFunction", found)?;
        Ok(handle(function))
    }
}

fn handle<T>(pointer: *mut T) -> Handle {
    Handle(pointer.expose_provenance())
}

fn pointer<T>(handle: Handle) -> *mut T {
    ptr::with_exposed_provenance_mut(handle.0)
}

/// Pinned memory by its address.
fn host(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(address).expect("addresses have 64 bits here"))
}

fn attribute(device: cust::device::Device, attribute: DeviceAttribute) -> Result<u32, DriverError> {
    let value =
        device.get_attribute(attribute).map_err(|error| unavailable("cuDeviceGetAttribute", error))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// A version or a capability as people write it.
fn version((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// Whether the driver reads our PTX.
fn check_version() -> Result<(), DriverError> {
    let found = CudaApiVersion::get().map_err(|error| unavailable("cuDriverGetVersion", error))?;
    let part = |number: i32| u32::try_from(number).unwrap_or(0);
    let found = (part(found.major()), part(found.minor()));
    if found < kernels::CUDA_VERSION_MIN {
        return Err(DriverError::DriverTooOld {
            found: version(found),
            needed: version(kernels::CUDA_VERSION_MIN),
        });
    }
    Ok(())
}

/// The error of an operation before there is a device.
fn unavailable(operation: &'static str, error: CudaError) -> DriverError {
    if error == CudaError::NoDevice {
        return DriverError::NoDevice;
    }
    DriverError::Other { operation, reason: newer_code().unwrap_or_else(|| format!("{error:?}")) }
}

/// An error that `cust` reports, on a device that is open.
fn refused(operation: &'static str, error: CudaError) -> Failure {
    let reason = newer_code().unwrap_or_else(|| format!("{error:?}"));
    Failure { kind: kind(error as u32), operation, reason }
}

fn check(operation: &'static str, answer: CUresult) -> Outcome<()> {
    if answer == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let reason = newer_code().unwrap_or_else(|| describe(answer));
    Err(Failure { kind: kind(answer as u32), operation, reason })
}

/// Kind of the failure that a code means for a device that is open. The numbers are those of `CUresult` in CUDA's
/// `cuda.h`.
fn kind(code: u32) -> FailureKind {
    match code {
        2 => FailureKind::OutOfMemory,
        // Too many resources for a block, too large a cooperative grid.
        701 | 720 => FailureKind::NotLaunched,
        // Illegal address, time-out, assertion, and the hardware's own complaints about a kernel.
        700 | 702 | 710 | 714..=719 => FailureKind::KernelFailed,
        // The driver is shutting down, uncorrectable memory or link errors, a destroyed context; the unknown and newer codes
        // are of that kind too.
        4 | 214 | 220 | 709 | 999 => FailureKind::Lost,
        _ => FailureKind::Other,
    }
}

/// Names the code that was too new for `cust_raw`, when the last answer was such.
fn newer_code() -> Option<String> {
    match symbols::take_unknown_code() {
        0 => None,
        code => Some(format!("CUDA error {code}, newer than this program")),
    }
}

/// CUDA's words and name for an answer.
fn describe(answer: CUresult) -> String {
    let (mut text, mut name) = (ptr::null(), ptr::null());
    // SAFETY: the pointer is to a place for a pointer.
    let told = unsafe { sys::cuGetErrorString(answer, &raw mut text) };
    // SAFETY: as above.
    let named = unsafe { sys::cuGetErrorName(answer, &raw mut name) };
    if told != CUresult::CUDA_SUCCESS || named != CUresult::CUDA_SUCCESS {
        return format!("CUDA error {}", answer as u32);
    }
    // SAFETY: the driver gave a constant text that ends in a NUL.
    let text = unsafe { CStr::from_ptr(text) };
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(name) };
    format!("{} ({})", text.to_string_lossy(), name.to_string_lossy())
}
