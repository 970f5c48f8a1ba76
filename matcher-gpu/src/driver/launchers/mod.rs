//! The typed launchers: one for each source of kernels, each the proof that its kernels stay inside what they are given.

mod probe;

pub use probe::Probe;
