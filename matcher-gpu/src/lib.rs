//! Matching on CUDA devices.
//!
//! It builds and starts without CUDA; a device is found at run time or a sentence says why not.

mod auto;
mod clcb;
mod failure;
mod filters;
mod gpu;
mod growth;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; each launcher has its proof")]
mod launchers;
mod numbering;
mod rounding;
mod staging;

pub use auto::{Auto, Report};
pub use clcb::{Clcb, Form, Step, StepTimes};
pub use gpu::Gpu;
