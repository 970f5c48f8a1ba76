//! Matching on CUDA devices.
//!
//! It builds and starts without CUDA; a device is found at run time or a sentence says why not.

#[expect(unsafe_code, reason = "the one room that talks to the driver; every use has its proof")]
pub mod driver;

mod auto;
mod clcb;
mod failure;
mod filters;
mod gpu;
mod growth;
mod numbering;
mod rounding;
mod staging;

pub use auto::{Auto, Report};
pub use clcb::{Clcb, Form, Step, StepTimes};
pub use gpu::Gpu;
