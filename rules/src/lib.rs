#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod code;
mod compile;
mod machine;
mod program;
mod run;
mod syntax;
mod term;

pub use machine::{Bounds, Error};
pub use program::{Fault, PROGRAM_BYTES_MAX, Program};
pub use run::{Answer, Goal, run};
