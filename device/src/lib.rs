//! Devices, their memory, their streams and the start of kernels: all that is unsafe, behind an interface that is not.
//!
//! # Two backends
//!
//! - **CUDA**, through `cust`. Nothing is linked: `symbols` defines the driver's functions as jumps through slots
//!   and fills those from `libcuda.so.1` when the first device is asked for. A [`Device`] holds its device's primary
//!   context, and each call makes that current on its thread, so values may be used from any thread. Its run-time compiler is found in the
//!   same way, when the first [`Source`] is compiled.
//! - **The host**, with the feature `host-kernels`: kernels compiled as plain C++ run at once on the calling thread, and
//!   the device's memory is ordinary memory. One thing at a time happens on such a device. It is for tests.
//!
//! Both run the same code above the trait `Backend`, launchers included.
//!
//! # Rules
//!
//! - Work is asynchronous and goes to a `Stream`; nothing uses CUDA's default stream, so no stream waits for another
//!   without being told to. Allocation and freeing may wait for the device: keep both off hot paths.
//! - Memory that a device reads or writes is never seen through a reference meanwhile. A `Buffer` has no references at
//!   all. A `Pinned` remembers the streams that were given it and waits for them before it shows its contents or is
//!   freed; to wait for less than a whole stream, record an `Event` and wait for that first.
//! - A kernel is started by its one typed launcher, in the crate that uses it, which checks lengths and owes the proof that
//!   the kernel stays inside its buffers.
//! - A wrong range, a thing of another device and a misshapen grid are mistakes of the program: they panic. All that the
//!   world can do is a [`DriverError`].
//! - After a sticky error (a kernel failed, the device is gone) every operation of that [`Device`] answers
//!   [`DriverError::DeviceLost`]; dropping stays safe.

#![expect(unsafe_code, reason = "the one crate that talks to the driver; every use has its proof")]
#![cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "without CUDA and without `host-kernels` nothing makes a device")
)]

mod backend;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cuda;
mod device;
mod error;
mod faults;
mod graph;
#[cfg(feature = "host-kernels")]
mod host;
mod in_flight;
mod memory;
mod module;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod nvrtc;
mod parameter;
mod probe;
mod shared;
mod source;
mod staged;
mod stream;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod symbols;
#[cfg(all(test, feature = "host-kernels"))]
mod tests;

pub use device::{Device, Memory};
pub use error::DriverError;
pub use faults::Fault;
pub use graph::{Graph, Launch};
pub use memory::{Buffer, Pinned};
pub use module::{Kernel, LoadedModule};
pub use parameter::Parameter;
pub use shared::SharedWords;
pub use source::{CompileError, Source};
pub use staged::{Staged, room};
pub use stream::{Event, Priority, Stream};
