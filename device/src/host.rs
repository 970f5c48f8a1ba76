//! The backend of the processor itself: kernels compiled as plain C++, run at once.
//!
//! One thing at a time happens on such a device, so two threads never touch its memory together. Every handle stands for
//! something that needs no keeping, but for functions and the times of events.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::path::{Path, PathBuf};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::{Backend, Direction, Failure, FailureKind, Handle, Outcome, RawLaunch};
use crate::device::Memory;
use crate::source::{NotCompiled, Source};
use crate::stream::Priority;

/// Alignment of allocations, as on a CUDA device.
const ALIGNMENT_BYTES: usize = 256;

/// The handle of the kernels that the crate `kernels` links.
const BUILT_IN: usize = 0;

/// A kernel with its loop over all threads.
type Entry = unsafe extern "C" fn(grid: u32, block: u32, parameters: *mut *mut c_void);

// SAFETY: kernels/build/host.rs writes this function, with this signature, into the library that the crate `kernels` links.
unsafe extern "C" {
    /// The kernel of that name, which ends in a NUL.
    fn nearcast_host_kernel(name: *const c_char) -> Option<Entry>;
}

/// A device made of ordinary memory.
#[derive(Debug)]
pub(crate) struct Host {
    memory_bytes: u64,
    /// Held while memory is touched or a kernel runs, which is all that a device does.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: u64,
    entries: Vec<Entry>,
    /// Sources that were compiled; the handle of the first is 1.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    compiled: Vec<libloading::Library>,
    /// When each event was recorded.
    events: HashMap<usize, Option<Instant>>,
    events_made: usize,
}

impl Host {
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, state: Mutex::new(State::default()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What it holds is whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Host {
    fn is_host(&self) -> bool {
        true
    }

    fn memory(&self) -> Outcome<Memory> {
        let free_bytes = self.memory_bytes - self.state().used_bytes;
        Ok(Memory { free_bytes, total_bytes: self.memory_bytes })
    }

    fn synchronize(&self) -> Outcome<()> {
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Outcome<u64> {
        let layout = layout(bytes)?;
        let mut state = self.state();
        let used_bytes = state.used_bytes + layout.size() as u64;
        if used_bytes > self.memory_bytes {
            return Err(out_of_memory());
        }
        let address = allocate(layout)?;
        state.used_bytes = used_bytes;
        Ok(address.as_ptr().expose_provenance() as u64)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Outcome<()> {
        let layout = layout(bytes)?;
        let mut state = self.state();
        // SAFETY: the caller vouches that the address came from `allocate(bytes)` and is used no more.
        unsafe { dealloc(place(address), layout) };
        state.used_bytes -= layout.size() as u64;
        Ok(())
    }

    fn allocate_pinned(&self, bytes: usize) -> Outcome<NonNull<u8>> {
        allocate(layout(bytes)?)
    }

    unsafe fn free_pinned(&self, address: NonNull<u8>, bytes: usize) -> Outcome<()> {
        let layout = layout(bytes)?;
        // SAFETY: the caller vouches that the address came from `allocate_pinned(bytes)` and is used no more.
        unsafe { dealloc(address.as_ptr(), layout) };
        Ok(())
    }

    fn create_stream(&self, _priority: Priority) -> Outcome<Handle> {
        Ok(Handle(0))
    }

    unsafe fn destroy_stream(&self, _stream: Handle) -> Outcome<()> {
        Ok(())
    }

    unsafe fn synchronize_stream(&self, _stream: Handle) -> Outcome<()> {
        Ok(())
    }

    unsafe fn copy(
        &self,
        _stream: Handle,
        _direction: Direction,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Outcome<()> {
        let _alone = self.state();
        // SAFETY: the caller vouches for both ranges, of which no references exist, and that they do not overlap.
        unsafe { ptr::copy_nonoverlapping(place(from), place(to), bytes) };
        Ok(())
    }

    unsafe fn fill(&self, _stream: Handle, address: u64, words: usize, value: u32) -> Outcome<()> {
        let _alone = self.state();
        // SAFETY: the caller vouches for the range and its alignment; it was zeroed when it was allocated, and nothing else
        // touches the device's memory meanwhile.
        let range = unsafe { std::slice::from_raw_parts_mut(place(address).cast::<u32>(), words) };
        range.fill(value);
        Ok(())
    }

    unsafe fn launch(
        &self,
        _stream: Handle,
        function: Handle,
        grid: u32,
        block: u32,
        parameters: &mut [*mut c_void],
    ) -> Outcome<()> {
        let state = self.state();
        let entry = state.entries[function.0];
        // SAFETY: the caller vouches for the parameters and for what the kernel does with them; nothing else touches the
        // device's memory meanwhile.
        unsafe { entry(grid, block, parameters.as_mut_ptr()) };
        Ok(())
    }

    unsafe fn write(&self, _stream: Handle, writes: &[(u64, u32)]) -> Outcome<()> {
        let _alone = self.state();
        for (address, value) in writes {
            // SAFETY: the caller vouches for the address; whoever looks at the word does so atomically.
            let word = unsafe { AtomicU32::from_ptr(place(*address).cast()) };
            word.store(*value, Ordering::Release);
        }
        Ok(())
    }

    unsafe fn create_graph(&self, _launches: &mut [RawLaunch<'_>]) -> Outcome<Option<Handle>> {
        Ok(None)
    }

    unsafe fn update_graph(&self, _: Handle, _: usize, _: &mut RawLaunch<'_>) -> Outcome<()> {
        unreachable!("there are no graphs here")
    }

    unsafe fn launch_graph(&self, _graph: Handle, _stream: Handle) -> Outcome<()> {
        unreachable!("there are no graphs here")
    }

    unsafe fn destroy_graph(&self, _graph: Handle) -> Outcome<()> {
        unreachable!("there are no graphs here")
    }

    fn create_event(&self) -> Outcome<Handle> {
        let mut state = self.state();
        let event = state.events_made;
        state.events_made += 1;
        state.events.insert(event, None);
        Ok(Handle(event))
    }

    unsafe fn destroy_event(&self, event: Handle) -> Outcome<()> {
        self.state().events.remove(&event.0);
        Ok(())
    }

    unsafe fn record_event(&self, event: Handle, _stream: Handle) -> Outcome<()> {
        self.state().events.insert(event.0, Some(Instant::now()));
        Ok(())
    }

    unsafe fn event_done(&self, _event: Handle) -> Outcome<bool> {
        Ok(true)
    }

    unsafe fn synchronize_event(&self, _event: Handle) -> Outcome<()> {
        Ok(())
    }

    unsafe fn wait_event(&self, _stream: Handle, _event: Handle) -> Outcome<()> {
        Ok(())
    }

    unsafe fn elapsed(&self, earlier: Handle, later: Handle) -> Outcome<Duration> {
        let state = self.state();
        let time = |event: Handle| state.events.get(&event.0).copied().flatten();
        match (time(earlier), time(later)) {
            (Some(earlier), Some(later)) => Ok(later.saturating_duration_since(earlier)),
            _ => Err(failure("elapsed", "an event was never recorded")),
        }
    }

    fn load_module(&self, _ptx: &str) -> Outcome<Handle> {
        Ok(Handle(BUILT_IN))
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn compile(&self, source: &Source<'_>) -> Result<Handle, NotCompiled> {
        let folder = tempfile::tempdir().map_err(|error| NotCompiled::NoCompiler(error.to_string()))?;
        let file = compile_to(folder.path(), source)?;
        // SAFETY: the library was just made of kernels; it has no initialisers.
        let library = unsafe { libloading::Library::new(file) };
        let library = library.map_err(|error| NotCompiled::Refused(error.to_string()))?;
        let compiled = &mut self.state().compiled;
        compiled.push(library);
        Ok(Handle(compiled.len()))
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn compile(&self, _: &Source<'_>) -> Result<Handle, NotCompiled> {
        Err(NotCompiled::NoCompiler("this build loads no libraries".to_owned()))
    }

    unsafe fn unload_module(&self, _module: Handle) -> Outcome<()> {
        Ok(())
    }

    unsafe fn function(&self, module: Handle, name: &str) -> Outcome<Handle> {
        let mut state = self.state();
        let entry = if module.0 == BUILT_IN {
            let terminated = CString::new(name).expect("a kernel's name is an identifier");
            // SAFETY: the name ends in a NUL.
            unsafe { nearcast_host_kernel(terminated.as_ptr()) }
        } else {
            state.compiled_entry(module.0 - 1, name)
        };
        let entry = entry.ok_or_else(|| failure("function", &format!("there is no kernel {name}")))?;
        state.entries.push(entry);
        Ok(Handle(state.entries.len() - 1))
    }
}

impl State {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn compiled_entry(&self, module: usize, name: &str) -> Option<Entry> {
        // SAFETY: `HOST_ENTRY` defines functions of these names with this type, and the library is never closed before the backend.
        let found = unsafe { self.compiled[module].get::<Entry>(format!("host_{name}\0").as_bytes()) };
        found.ok().map(|entry| *entry)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn compiled_entry(&self, _: usize, _: &str) -> Option<Entry> {
        None
    }
}

/// Compiles a source as plain C++, to a library in the folder.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn compile_to(folder: &Path, source: &Source<'_>) -> Result<PathBuf, NotCompiled> {
    let (file, library) = (folder.join(source.name), folder.join("kernels.so"));
    let texts = source.headers.iter().map(|(name, text)| (folder.join(name), *text));
    for (path, text) in texts.chain([(file.clone(), source.text)]) {
        std::fs::write(path, text).map_err(|error| NotCompiled::NoCompiler(error.to_string()))?;
    }
    let mut command = Command::new("c++");
    // As kernels/build/host.rs has them.
    command.args([
        "-std=c++17",
        "-O1",
        "-fPIC",
        "-shared",
        "-fno-exceptions",
        "-fno-rtti",
        "-ffp-contract=off",
    ]);
    command.args(source.defines.iter().map(|name| format!("-D{name}")));
    command.arg("-I").arg(folder).arg("-o").arg(&library).args(["-x", "c++"]).arg(&file);
    let output = command.output().map_err(|error| NotCompiled::NoCompiler(format!("c++: {error}")))?;
    if output.status.success() {
        Ok(library)
    } else {
        Err(NotCompiled::Refused(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

fn layout(bytes: usize) -> Outcome<Layout> {
    let rounded = bytes.checked_next_multiple_of(ALIGNMENT_BYTES).ok_or_else(out_of_memory)?;
    Layout::from_size_align(rounded, ALIGNMENT_BYTES).map_err(|_| out_of_memory())
}

fn allocate(layout: Layout) -> Outcome<NonNull<u8>> {
    debug_assert!(layout.size() > 0, "nothing is never allocated");
    // SAFETY: the layout is not empty: callers ask for some bytes.
    NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(out_of_memory)
}

/// Memory by its address.
fn place(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(usize::try_from(address).expect("an address of this machine"))
}

fn out_of_memory() -> Failure {
    Failure {
        kind: FailureKind::OutOfMemory,
        operation: "allocate",
        reason: "the memory is used up".to_owned(),
    }
}

fn failure(operation: &'static str, reason: &str) -> Failure {
    Failure { kind: FailureKind::Other, operation, reason: reason.to_owned() }
}
