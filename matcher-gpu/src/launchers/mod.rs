//! The typed launchers: one for each source of kernels, each the proof that its kernels stay inside what they are given.

pub(crate) mod clcb;
pub(crate) mod gpu;
