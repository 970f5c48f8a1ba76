//! Constraint Handling Rules on CUDA devices, after "Parallel Execution of Constraint Handling Rules on a Graphical Processing Unit" (CHR 2012).
//!
//! [`run()`] applies rules in rounds: matches are found by hash joins, claim what they remove, and fire together. `letter` is the paper's scheme,
//! all combinations in nested loops, and [`translate()`] prints the CUDA C that a program becomes by it.
//!
//! Where CUDA's run-time compiler is found, the kernels are compiled with a program; elsewhere they interpret it ([`Form`]).
//!
//! The crate builds and starts without CUDA; a device is found at run time. A device takes rules over numbers and atoms; of what it does not
//! take, [`Refusal`] tells the rule and the reason.

#![expect(clippy::wildcard_enum_match_arm, reason = "a place takes few of the shapes that a term has")]

mod compile;
mod distance;
mod kernels;
#[expect(unsafe_code, reason = "to start a kernel is unsafe; each launcher has its proof")]
mod launchers;
mod letter;
mod memory;
mod run;
mod source;
mod subset;
mod translate;
mod types;

pub use kernels::{Form, Kernels};
pub use letter::{Letter, letter};
pub use run::{Error, Fact, Outcome, run, run_facts};
pub use subset::{Program, Refusal, Value};
pub use translate::translate;
