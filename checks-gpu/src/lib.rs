//! Checks on CUDA devices: the engine `gpu`, which is GAIN ("GAIN: GPU-based constraint checking for context consistency") for changes that
//! come one by one, and past it for several at once.
//!
//! It builds and starts without CUDA; a device is found at run time or a sentence says why not. Its answers are those of
//! [`Sequential`](checks::engine::Sequential): what the device cannot decide, the processor does.

mod columns;
mod compile;
mod engine;
mod joined;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; each launcher has its proof")]
mod launchers;
mod leaves;
mod members;
mod memory;
mod tree;

pub use compile::Unfit;
pub use engine::{Figures, Gpu};
pub use launchers::Kernels;
pub use memory::{Granularity, Settings, Transmission};
