#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(clippy::wildcard_enum_match_arm, reason = "a place asks a term for few of its kinds")]

mod code;
mod compile;
mod machine;
mod program;
mod run;
mod session;
mod syntax;
mod term;
pub mod view;

pub use machine::{BadSnapshot, Bounds, Error, ORIGINS_MAX, Setting};
pub use program::{ARGUMENTS_MAX, Fault, PROGRAM_BYTES_MAX, Program, Wrong};
pub use run::{Answer, Goal, run};
pub use session::{Fact, Kind, Session, Taken, Value};
