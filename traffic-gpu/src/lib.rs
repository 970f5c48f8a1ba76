//! Traffic of whole countries: AutoMatrix, after "Anytime algorithms for GPU architectures" (Mangharam and Saba, RTSS 2011, section VII).
//!
//! Every vehicle follows the one ahead of it in its lane, and goes by chance or to a destination. Weights of streets follow from the vehicles on them every
//! five seconds, and those that have destinations look for their ways a kilometre ahead.
//!
//! A step is half a second, and is the same in whatever order vehicles take it: each sees the state of the step before, and of those that would enter the
//! same lane one does so. So a [`Processor`] with any number of threads and a [`Device`](device::Device) with a thread for each vehicle, a [`Gpu`], come to the same
//! [`State`] bit by bit.
//!
//! Simplifications: vehicles keep their lane until the end of an arc; junctions have no extent, and ways over a junction that are open at the same time do
//! not cross; a vehicle that finds another one in its lane at the moment it enters stops at the end of its arc; bends slow nobody down.
//!
//! ```
//! use std::sync::Arc;
//! use streets::Country;
//! use traffic_gpu::{Engine, Processor, Roads, Settings};
//!
//! let roads = Arc::new(Roads::of_country(&Country::new(1000, 1), 1)?);
//! let mut traffic = Processor::new(&roads, Settings { vehicles: 500, routed: 5, seed: 1 })?;
//! traffic.advance(20)?;
//! assert!(traffic.state()?.figures().speed_kmh > 5.0);
//! # Ok::<(), traffic_gpu::Error>(())
//! ```

mod error;
mod fleet;
mod gpu;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; the launcher has its proof")]
mod launchers;
mod measure;
mod model;
mod processor;
mod roads;
mod trips;

pub use error::Error;
pub use fleet::{Figures, Settings, State};
pub use gpu::Gpu;
pub use launchers::Kernels;
pub use measure::{Measured, Row, measure};
pub use model::{STEP_S, STEPS_ADAPTED};
pub use processor::Processor;
pub use roads::Roads;

/// Traffic that goes on in steps of half a second.
pub trait Engine {
    /// Lets steps go by.
    ///
    /// # Errors
    /// [`Error::Device`]; vehicles are then anywhere.
    fn advance(&mut self, steps: u32) -> Result<(), Error>;

    /// The state of all vehicles now.
    ///
    /// # Errors
    /// [`Error::Device`]
    fn state(&mut self) -> Result<State, Error>;

    /// How many bytes the traffic and its streets take where they are driven on, without routes.
    fn bytes(&self) -> u64;
}
