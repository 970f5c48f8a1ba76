//! The GPU engines beside the CPU's, on one growing field of subscriptions.

pub mod field;
pub mod figures;
pub mod sections;
pub mod tick;
