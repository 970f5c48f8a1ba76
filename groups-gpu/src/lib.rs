//! Arc consistency on CUDA devices, after "A constraint network model and parallel arc consistency algorithms based on GPU" (Li, Li and Li,
//! 2017).
//!
//! [`Letter`] has the paper's N-E model, built on the device, and its algorithms AC4GPU and AC4GPU+. [`Bits`] leaves the same values by
//! rows of bits, in rounds that the device ends by itself, and takes many starts of one network at once.
//!
//! The crate builds and starts without CUDA; a device is found at run time.

mod bits;
mod error;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; each launcher has its proof")]
mod launchers;
mod letter;

pub use bits::Bits;
pub use error::Error;
pub use launchers::Kernels;
pub use letter::{Letter, Loops, Method, Pace};
