//! The driver's functions that `cust` links to, defined here and found at run time.
//!
//! Each is a naked function that calls through a slot, so it serves any signature of up to six integer arguments (all the
//! rest of the calling convention passes through untouched; `cuLaunchKernel`, with eleven, has its own). A slot first
//! holds [`no_driver`]; [`load`] puts the function of `libcuda.so.1` there.
//!
//! The answer goes through [`known`]: `cust_raw` types it as an enum of CUDA 11.4, and a code that a later driver has
//! added would be an invalid value of that.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Library;

/// Function in a slot while there is no driver: answers `CUDA_ERROR_NO_DEVICE`.
extern "C" fn no_driver() -> u32 {
    100
}

/// Function in a slot when the driver has no such function: answers `CUDA_ERROR_NOT_SUPPORTED`.
extern "C" fn not_supported() -> u32 {
    801
}

thread_local! {
    static UNKNOWN_CODE: Cell<u32> = const { Cell::new(0) };
}

/// The last code on this thread that was answered as `CUDA_ERROR_UNKNOWN` for being newer than `cust_raw`; 0 when there
/// was none. Asking forgets it.
pub(crate) fn take_unknown_code() -> u32 {
    UNKNOWN_CODE.take()
}

/// The code itself when `cust_raw::cudaError_enum` has it, else `CUDA_ERROR_UNKNOWN`.
extern "C" fn known(code: u32) -> u32 {
    match code {
        0..=8
        | 34
        | 100..=102
        | 200..=202
        | 205..=224
        | 300..=304
        | 400..=401
        | 500
        | 600
        | 700..=705
        | 708..=720
        | 800..=809
        | 900..=911
        | 999 => code,
        newer => {
            UNKNOWN_CODE.set(newer);
            999
        }
    }
}

/// The body of a stub: calls through a slot with what the caller put into registers, then answers by way of `known`.
macro_rules! call_slot {
    ($slot:path) => {
        naked_asm!(
            "sub rsp, 8",
            "call qword ptr [rip + {slot}]",
            "add rsp, 8",
            "mov edi, eax",
            "jmp {known}",
            slot = sym $slot,
            known = sym known,
        )
    };
}

/// The body of a stub like that of `call_slot`, with five more arguments, which the caller put above the return
/// address: each push moves what is left of them under the same offset.
macro_rules! call_slot_with_eleven {
    ($slot:path) => {
        naked_asm!(
            "push qword ptr [rsp + 40]",
            "push qword ptr [rsp + 40]",
            "push qword ptr [rsp + 40]",
            "push qword ptr [rsp + 40]",
            "push qword ptr [rsp + 40]",
            "call qword ptr [rip + {slot}]",
            "add rsp, 40",
            "mov edi, eax",
            "jmp {known}",
            slot = sym $slot,
            known = sym known,
        )
    };
}

/// Where one function is to be found.
struct Slot {
    name: &'static CStr,
    target: &'static AtomicPtr<()>,
}

/// Defines each symbol with its slot, and the table of all.
macro_rules! symbols {
    ($($name:ident)*) => {
        #[expect(non_upper_case_globals, reason = "a slot is called as its function is")]
        mod slots {
            use super::{AtomicPtr, no_driver};

            $(pub(crate) static $name: AtomicPtr<()> = AtomicPtr::new(no_driver as *mut ());)*
            pub(crate) static cuLaunchKernel: AtomicPtr<()> = AtomicPtr::new(no_driver as *mut ());
        }

        $(
            // SAFETY: the name is the driver's own, and nothing else in the program defines it: the driver's library is
            // not linked. The body leaves the arguments where the caller put them, keeps the stack aligned to 16 bytes
            // at the call, and ends in `known` with the answer as its argument.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            extern "C" fn $name() -> u32 {
                call_slot!(slots::$name)
            }
        )*

        static SLOTS: &[Slot] = &[
            $(Slot { name: name(concat!(stringify!($name), "\0")), target: &slots::$name },)*
            Slot { name: c"cuLaunchKernel", target: &slots::cuLaunchKernel },
        ];
    };
}

const fn name(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a symbol's name holds no NUL"),
    }
}

// All that cust 0.3.2 names, and what the room itself calls beside it. With six arguments at most, but cuLinkAddData_v2: its
// two on the stack would not arrive, and nothing links.
symbols! {
    cuGraphInstantiate_v2 cuGraphExecKernelNodeSetParams cuGraphLaunch cuGraphExecDestroy cuStreamBatchMemOp_v2
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayDestroy
    cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxGetApiVersion cuCtxGetCacheConfig cuCtxGetCurrent cuCtxGetDevice cuCtxGetFlags
    cuCtxGetLimit cuCtxGetSharedMemConfig cuCtxGetStreamPriorityRange cuCtxPopCurrent_v2 cuCtxPushCurrent_v2
    cuCtxSetCacheConfig cuCtxSetCurrent cuCtxSetLimit cuCtxSetSharedMemConfig cuCtxSynchronize
    cuDestroyExternalMemory
    cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount cuDeviceGetName cuDeviceGetUuid cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxRetain cuDevicePrimaryCtxSetFlags_v2 cuDeviceTotalMem_v2
    cuDriverGetVersion
    cuEventCreate cuEventDestroy_v2 cuEventElapsedTime cuEventQuery cuEventRecord cuEventSynchronize
    cuExternalMemoryGetMappedBuffer
    cuFuncGetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig
    cuGetErrorName cuGetErrorString
    cuGraphAddKernelNode cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy cuGraphGetEdges cuGraphGetNodes
    cuGraphKernelNodeGetParams cuGraphNodeGetType
    cuImportExternalMemory cuInit
    cuLaunchHostFunc
    cuLinkAddData_v2 cuLinkComplete cuLinkCreate_v2 cuLinkDestroy
    cuMemAdvise cuMemAllocAsync cuMemAllocHost_v2 cuMemAllocManaged cuMemAlloc_v2 cuMemFreeAsync cuMemFreeHost
    cuMemFree_v2 cuMemGetInfo_v2 cuMemPrefetchAsync
    cuMemcpy2D_v2 cuMemcpyAtoH_v2 cuMemcpyDtoDAsync_v2 cuMemcpyDtoD_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoH_v2
    cuMemcpyHtoA_v2 cuMemcpyHtoDAsync_v2 cuMemcpyHtoD_v2
    cuMemsetD16Async cuMemsetD16_v2 cuMemsetD32Async cuMemsetD32_v2 cuMemsetD8Async cuMemsetD8_v2
    cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleUnload
    cuOccupancyAvailableDynamicSMemPerBlock cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxPotentialBlockSize
    cuStreamCreateWithPriority cuStreamDestroy_v2 cuStreamGetFlags cuStreamGetPriority cuStreamSynchronize
    cuStreamWaitEvent
    cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc
    cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
}

// SAFETY: as for the others. The five words that are pushed keep the stack aligned to 16 bytes at the call.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn cuLaunchKernel() -> u32 {
    call_slot_with_eleven!(slots::cuLaunchKernel)
}

/// Finds the driver's library and fills the slots, the first time; later calls answer the same.
///
/// # Errors
/// The loader's words when there is none.
pub(crate) fn load() -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(fill_slots).clone()
}

fn fill_slots() -> Result<(), String> {
    // SAFETY: the library's initialisers are the vendor's and ask for nothing from their caller.
    let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| error.to_string())?;
    for slot in SLOTS {
        // SAFETY: the symbol is a function, and only its address is taken.
        let found = unsafe { library.get::<extern "C" fn()>(slot.name.to_bytes_with_nul()) };
        let target = found.map_or(not_supported as *mut (), |function| *function as *mut ());
        slot.target.store(target, Ordering::Release);
    }
    // The slots hold its addresses for as long as the program runs.
    std::mem::forget(library);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers a code that names the arguments' order when it is right and the stack is aligned.
    extern "C" fn eleven(
        a: u64,
        b: u32,
        c: u32,
        d: u32,
        e: u32,
        f: u32,
        g: u32,
        h: u32,
        i: u64,
        j: u64,
        k: u64,
    ) -> u32 {
        #[repr(align(16))]
        struct Aligned([u8; 16]);
        let aligned = std::hint::black_box(Aligned([0; 16]));
        let in_order = (a, b, c, d, e, f, g, h, i, j, k) == (1, 2, 3, 4, 5, 6, 7, 8, u64::MAX, 10, 11);
        if in_order && (&raw const aligned).addr().is_multiple_of(16) && aligned.0 == [0; 16] {
            719
        } else {
            1
        }
    }

    extern "C" fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u32 {
        if (a, b, c, d, e, f) == (1, 2, 3, 4, 5, u64::MAX) { 226 } else { 1 }
    }

    static SIX: AtomicPtr<()> = AtomicPtr::new(six as *mut ());
    static ELEVEN: AtomicPtr<()> = AtomicPtr::new(eleven as *mut ());

    // SAFETY: as `cuLaunchKernel`.
    #[unsafe(naked)]
    extern "C" fn eleven_stub(
        _: u64,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u64,
        _: u64,
        _: u64,
    ) -> u32 {
        call_slot_with_eleven!(ELEVEN)
    }

    // SAFETY: as the other symbols.
    #[unsafe(naked)]
    extern "C" fn six_stub(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> u32 {
        call_slot!(SIX)
    }

    #[test]
    fn arguments_and_answer_pass_through_a_stub() {
        assert_eq!(six_stub(1, 2, 3, 4, 5, u64::MAX), 999);
        assert_eq!(take_unknown_code(), 226);
        assert_eq!(eleven_stub(1, 2, 3, 4, 5, 6, 7, 8, u64::MAX, 10, 11), 719);
    }

    #[test]
    fn a_code_that_cust_does_not_know_becomes_unknown() {
        assert_eq!(known(0), 0);
        assert_eq!(known(719), 719);
        assert_eq!(take_unknown_code(), 0);
        assert_eq!(known(226), 999);
        assert_eq!(take_unknown_code(), 226);
        assert_eq!(take_unknown_code(), 0);
    }
}
