#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod events;
#[cfg(feature = "jetstream")]
pub mod jetstream;
pub mod ledger;
pub mod log;
pub mod memory;
pub mod record;
pub mod simulated;
