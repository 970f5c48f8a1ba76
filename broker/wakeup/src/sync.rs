//! Atomics, locks, time and parking: the standard library's, and those of the model checker in unit tests.

#[cfg(test)]
mod modelled;
#[cfg(not(test))]
mod native;

#[cfg(test)]
pub use modelled::Instant;
#[cfg(test)]
pub(crate) use modelled::*;
#[cfg(not(test))]
pub use native::Instant;
#[cfg(not(test))]
pub(crate) use native::*;
