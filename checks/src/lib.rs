#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod checker;
pub mod cost;
pub mod engine;
mod formula;
mod links;
pub mod presets;
mod replay;
mod sets;

pub use check::{
    CONTEXTS_MAX, Check, CheckError, FOR_S_MAX, Fault, NESTING_MAX, Node, PARTS_MAX, VARIABLES_MAX,
};
pub use checker::{Checker, Outcome};
pub use engine::{Engine, Evaluation, Kind};
pub use formula::{Clock, Context, Document, Formula, Quantified};
pub use links::{Binding, Bounds, Link, Overflow};
pub use replay::{Report, replay, replay_with};
pub use sets::{AHEAD_MS_MAX, Arrival, Changes, Held, Removal, Sets, Slot, Step};
