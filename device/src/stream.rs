//! Streams of work on a device, and events that tell how far they are.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytemuck::Pod;

use crate::backend::{Direction, Handle};
use crate::device::Device;
use crate::error::DriverError;
use crate::faults::Operation;
use crate::graph::{Graph, Launch};
use crate::in_flight::Queue;
use crate::memory::{Buffer, Pinned};
use crate::module::Kernel;
use crate::parameter::{PARAMETERS_MAX, Parameter};
use crate::shared::SharedWords;

/// Priority of a stream: the device takes the work of a higher one first when there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Before that of others.
    High,
    /// When others leave room.
    Low,
}

/// Work for a device, done in the order given. Streams do not wait for each other unless told to.
///
/// All but [`Stream::synchronize`] return before the work is done, and an error may be that of earlier work. Dropping
/// waits for what is in flight.
#[derive(Debug)]
pub struct Stream {
    queue: Arc<Queue>,
}

impl Stream {
    pub(crate) fn new(device: &Device, priority: Priority) -> Result<Self, DriverError> {
        let handle = device.run(Operation::Other, |backend| backend.create_stream(priority))?;
        Ok(Self { queue: Arc::new(Queue::new(device.clone(), handle)) })
    }

    /// The device that the stream's work is for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.queue.device
    }

    /// Copies a range of values to the device, to the `at`-th value there and on.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the values are not there, on either side, or belong to another device.
    #[track_caller]
    pub fn upload<T: Pod>(
        &self,
        from: &mut Pinned<T>,
        range: Range<usize>,
        to: &Buffer<T>,
        at: usize,
    ) -> Result<(), DriverError> {
        self.check_device(from.device());
        self.check_device(to.device());
        let (source, bytes) = from.span(&range);
        let (target, _) = to.span(&(at..at + range.len()));
        let copied = self.copy_bytes(Direction::ToDevice, source, target, bytes);
        from.in_flight().mark(&self.queue);
        copied
    }

    /// Copies a range of values from the device, to the `at`-th value of the target and on.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the values are not there, on either side, or belong to another device.
    #[track_caller]
    pub fn download<T: Pod>(
        &self,
        from: &Buffer<T>,
        range: Range<usize>,
        to: &mut Pinned<T>,
        at: usize,
    ) -> Result<(), DriverError> {
        self.check_device(from.device());
        self.check_device(to.device());
        let (source, bytes) = from.span(&range);
        let (target, _) = to.span(&(at..at + range.len()));
        let copied = self.copy_bytes(Direction::ToHost, source, target, bytes);
        to.in_flight().mark(&self.queue);
        copied
    }

    /// Copies a range of values within the device, to the `at`-th value of the target and on.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the values are not there, on either side, overlap, or belong to another device.
    #[track_caller]
    pub fn copy<T: Pod>(
        &self,
        from: &Buffer<T>,
        range: Range<usize>,
        to: &Buffer<T>,
        at: usize,
    ) -> Result<(), DriverError> {
        self.check_device(from.device());
        self.check_device(to.device());
        let (source, bytes) = from.span(&range);
        let (target, _) = to.span(&(at..at + range.len()));
        let overlaps = ptr::eq(from, to) && range.start < at + range.len() && at < range.end;
        assert!(!overlaps, "a copy within a buffer does not overlap itself");
        self.copy_bytes(Direction::WithinDevice, source, target, bytes)
    }

    /// Sets a range of words.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the words are not there or belong to another device.
    #[track_caller]
    pub fn fill(&self, buffer: &Buffer<u32>, range: Range<usize>, value: u32) -> Result<(), DriverError> {
        self.check_device(buffer.device());
        let (address, bytes) = buffer.span(&range);
        self.device().run(Operation::Other, |backend| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the range was checked, buffers are aligned to more than a word, and a buffer is freed only after a
            // wait for the device.
            unsafe { backend.fill(self.queue.handle, address, bytes / size_of::<u32>(), value) }
        })
    }

    /// Starts a 1-D grid of `grid` blocks with `block` threads each; no blocks at all is nothing to do. A debug build waits
    /// for it, so that a kernel that fails is told of at its own launch.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the parameters or the kernel belong to another device, blocks are not whole warps of at most 1,024 threads, or
    /// the grid has 2^32 threads or more.
    ///
    /// # Safety
    /// The parameters are the kernel's: as many, in its order, each of its type. With them the kernel reads and writes
    /// nothing outside the memory that they name. If it writes `Pinned<T>`, any bytes are a `T`, as `Pod` says.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        grid: u32,
        block: u32,
        parameters: &mut [Parameter<'_>],
    ) -> Result<(), DriverError> {
        let mut pointers = self.pointers(kernel, grid, block, parameters);
        let pointers = &mut pointers[..parameters.len()];
        let launched = self.device().run(Operation::Launch, |backend| {
            if grid == 0 {
                return Ok(());
            }
            // SAFETY: the caller vouches for the parameters. Their buffers are freed only after a wait for the device, their
            // pinned memory is marked below before its borrow ends, and the kernel's module waits as buffers do.
            unsafe { backend.launch(self.queue.handle, kernel.function(), grid, block, pointers) }?;
            if cfg!(debug_assertions) { self.queue.finish() } else { Ok(()) }
        });
        for parameter in parameters {
            if let Some(in_flight) = parameter.in_flight() {
                in_flight.mark(&self.queue);
            }
        }
        launched
    }

    /// Starts kernels one after another as one piece of work. What that takes is kept in `graph`; as long as the kernels are
    /// the same, only grids and parameters that have changed are told anew. On the host they are started one by one.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// As [`Stream::launch`], and when a grid is empty.
    ///
    /// # Safety
    /// The conditions of [`Stream::launch`], for each launch.
    pub unsafe fn launch_all(
        &self,
        graph: &mut Graph,
        launches: &mut [Launch<'_, '_>],
    ) -> Result<(), DriverError> {
        if self.device().is_host() {
            for Launch { kernel, grid, block, parameters } in launches {
                // SAFETY: as the caller says.
                unsafe { self.launch(kernel, *grid, *block, parameters) }?;
            }
            return Ok(());
        }
        let mut pointers: Vec<_> = launches
            .iter_mut()
            .map(|launch| {
                assert!(launch.grid > 0, "a graph has no empty launches");
                self.pointers(launch.kernel, launch.grid, launch.block, launch.parameters)
            })
            .collect();
        let launched = self.device().run(Operation::Launch, |backend| {
            // SAFETY: as for `launch`: the caller vouches for the parameters.
            let handle = unsafe { graph.prepare(self.device(), launches, &mut pointers) }?;
            // SAFETY: the graph was just told these parameters, and their memory is freed only after a wait.
            unsafe { backend.launch_graph(handle, self.queue.handle) }?;
            if cfg!(debug_assertions) { self.queue.finish() } else { Ok(()) }
        });
        for parameter in launches.iter_mut().flat_map(|launch| &mut *launch.parameters) {
            if let Some(in_flight) = parameter.in_flight() {
                in_flight.mark(&self.queue);
            }
        }
        launched
    }

    /// Where the parameters of a launch are, once all that can be wrong with it has been looked at.
    fn pointers(
        &self,
        kernel: &Kernel,
        grid: u32,
        block: u32,
        parameters: &mut [Parameter<'_>],
    ) -> [*mut c_void; PARAMETERS_MAX] {
        self.check_device(kernel.device());
        assert!(
            block > 0 && block <= 1024 && block.is_multiple_of(32),
            "{block} threads are no block of warps"
        );
        assert!(grid.checked_mul(block).is_some(), "{grid} blocks of {block} threads are too many");
        assert!(parameters.len() <= PARAMETERS_MAX, "a kernel has at most {PARAMETERS_MAX} parameters");
        let mut pointers = [ptr::null_mut::<c_void>(); PARAMETERS_MAX];
        for (pointer, parameter) in pointers.iter_mut().zip(parameters) {
            if let Some(device) = parameter.device() {
                self.check_device(device);
            }
            *pointer = parameter.pointer();
        }
        pointers
    }

    /// Lets the device write a word that the host looks at, once all is done that was given before.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When there is no such word, or it belongs to another device.
    #[track_caller]
    pub fn tell(&self, shared: &mut SharedWords, index: usize, value: u32) -> Result<(), DriverError> {
        self.write_and_tell(None, shared, index, value)
    }

    /// Writes a few numbers first, without a copy: from the `at`-th of the buffer on.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When there are no such numbers, or they belong to another device.
    #[track_caller]
    pub fn write_and_tell(
        &self,
        written: Option<(&Buffer<f32>, usize, &[f32])>,
        shared: &mut SharedWords,
        index: usize,
        value: u32,
    ) -> Result<(), DriverError> {
        let mut writes = Vec::new();
        if let Some((buffer, at, numbers)) = written {
            self.check_device(buffer.device());
            let (address, _) = buffer.span(&(at..at + numbers.len()));
            let addresses = (address..).step_by(size_of::<f32>());
            writes.extend(addresses.zip(numbers.iter().map(|number| number.to_bits())));
        }
        shared.set_told(&self.queue, self.queue.issued());
        let pinned = shared.pinned();
        self.check_device(pinned.device());
        writes.push((pinned.span(&(index..index + 1)).0, value));
        let told = self.device().run(Operation::Other, |backend| {
            // SAFETY: the ranges were checked; the buffer is freed only after a wait for the device, and the word's memory is
            // marked below.
            unsafe { backend.write(self.queue.handle, &writes) }
        });
        pinned.in_flight().mark(&self.queue);
        told
    }

    /// Marks this point of the stream; an event that was recorded before forgets that.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the event belongs to another device.
    #[track_caller]
    pub fn record(&self, event: &Event) -> Result<(), DriverError> {
        self.check_device(&event.device);
        let mut recorded = event.recorded();
        let issued = self.queue.issued();
        self.device().run(Operation::Other, |backend| {
            // SAFETY: both handles are alive, kept by `event` and `self`.
            unsafe { backend.record_event(event.handle, self.queue.handle) }
        })?;
        *recorded = Some(Recorded { queue: Arc::clone(&self.queue), issued });
        Ok(())
    }

    /// Lets what is given to this stream from now on wait for the event; for none that was never recorded.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the event belongs to another device.
    #[track_caller]
    pub fn wait(&self, event: &Event) -> Result<(), DriverError> {
        self.check_device(&event.device);
        self.device().run(Operation::Other, |backend| {
            // SAFETY: both handles are alive, kept by `event` and `self`.
            unsafe { backend.wait_event(self.queue.handle, event.handle) }
        })
    }

    /// Waits until all that was given is done.
    ///
    /// # Errors
    /// [`DriverError`] of any of that work.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.device().run(Operation::Other, |_| self.queue.finish())
    }

    fn copy_bytes(&self, direction: Direction, from: u64, to: u64, bytes: usize) -> Result<(), DriverError> {
        self.device().run(Operation::Other, |backend| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the callers checked both ranges. Buffers are freed only after a wait for the device; pinned memory is
            // marked by the callers before its borrow ends.
            unsafe { backend.copy(self.queue.handle, direction, from, to, bytes) }
        })
    }

    #[track_caller]
    fn check_device(&self, device: &Device) {
        assert!(self.device().is(device), "a stream works on its own device's memory, kernels and events");
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What fails now has nobody to tell: pinned memory still waits for itself.
        let _ = self.queue.finish();
    }
}

/// A point in a stream that can be waited for, and timed.
pub struct Event {
    device: Device,
    handle: Handle,
    /// Held while the event is recorded or asked, so that what is learned is learned of the right point.
    recorded: Mutex<Option<Recorded>>,
}

/// The work that is known to be done when an event is done.
#[derive(Clone)]
struct Recorded {
    queue: Arc<Queue>,
    /// How much the stream had been given by then.
    issued: u64,
}

impl Event {
    pub(crate) fn new(device: &Device) -> Result<Self, DriverError> {
        let handle = device.run(Operation::Other, |backend| backend.create_event())?;
        Ok(Self { device: device.clone(), handle, recorded: Mutex::new(None) })
    }

    /// Whether the work before it is done; true when it was never recorded.
    ///
    /// # Errors
    /// [`DriverError`] of any work of the device.
    pub fn done(&self) -> Result<bool, DriverError> {
        let recorded = self.recorded();
        self.device.run(Operation::Other, |backend| {
            // SAFETY: the handle is this event's own.
            let done = unsafe { backend.event_done(self.handle) }?;
            if let (true, Some(recorded)) = (done, &*recorded) {
                recorded.queue.complete(recorded.issued);
            }
            Ok(done)
        })
    }

    /// Waits until the work before the event is done. A thread that records the event meanwhile waits too.
    ///
    /// # Errors
    /// [`DriverError`] of any work of the device.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let recorded = self.recorded();
        self.device.run(Operation::Other, |backend| {
            // SAFETY: the handle is this event's own.
            unsafe { backend.synchronize_event(self.handle) }?;
            if let Some(recorded) = &*recorded {
                recorded.queue.complete(recorded.issued);
            }
            Ok(())
        })
    }

    /// How long after `earlier` it was reached, to about half a microsecond. Waits for both.
    ///
    /// # Errors
    /// [`DriverError`], also when one of them was never recorded.
    ///
    /// # Panics
    /// When the two belong to different devices.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration, DriverError> {
        assert!(self.device.is(&earlier.device), "events of two devices have no common clock");
        earlier.synchronize()?;
        self.synchronize()?;
        self.device.run(Operation::Other, |backend| {
            // SAFETY: both handles are alive, kept by the two events.
            unsafe { backend.elapsed(earlier.handle, self.handle) }
        })
    }

    fn recorded(&self) -> MutexGuard<'_, Option<Recorded>> {
        // What it holds is whole at any time.
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is this event's own; CUDA lets an event that work still waits for live on until then.
        let _ = unsafe { self.device.backend().destroy_event(self.handle) };
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Event").field("device", &self.device).finish_non_exhaustive()
    }
}
