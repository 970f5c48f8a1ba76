//! Best routes on CUDA devices: PAP*, after "Anytime algorithms for GPU architectures" (Mangharam and Saba, RTSS 2011, section III).
//!
//! A [`Searcher`] holds graphs on a device and looks for many routes at once. Its searches stop after any round, tell the best routes known by
//! then, and go on from there. An [`Evaluator`] accepts those sequences of kernels that have a result.
//!
//! The crate builds and starts without CUDA; a device is found at run time.

mod error;
mod evaluator;
mod graphs;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; the launcher has its proof")]
mod launchers;
mod levels;
mod pack;
mod searcher;

pub use error::Error;
pub use evaluator::{Evaluator, Kernel, OutOfOrder};
pub use graphs::Tuning;
pub use launchers::Kernels;
pub use levels::LevelRoute;
pub use searcher::{Form, Known, Searcher};
