//! City-scale load: who is where, who waits for what, what happens; and how quickly, and how rightly, a broker tells them.
#![forbid(unsafe_code)]

pub mod check;
pub mod drive;
pub mod endpoint;
pub mod interrupt;
pub mod noise;
pub mod observe;
pub mod plan;
pub mod report;
pub mod run;
pub mod scenario;
mod scheduling;
pub mod traffic;
pub mod wire;
