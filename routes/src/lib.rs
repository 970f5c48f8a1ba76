//! Best routes through streets whose costs change.
//!
//! A [`Graph`] has nodes and arcs; what its arcs cost is beside it, so that it may change. [`dijkstra()`] defines the right answer.
//! [`Hierarchy`] gives the same answers in microseconds, [`Landmarks`] without any preparation to speak of. A [`PapStar`] runs many searches
//! at once, as a device would. A [`Level`] is a coarser
//! graph, for answers that have to come soon. [`Scheduler`] chooses levels so that many answers come in time and are worth as much as can be.
#![forbid(unsafe_code)]

mod dijkstra;
mod dissection;
mod graph;
mod hierarchy;
mod landmarks;
mod levels;
mod nearest;
mod papstar;
mod profile;
mod schedule;
mod tree;

pub use dijkstra::dijkstra;
pub use graph::{Cost, Graph, Route, UNREACHABLE, durations_ms, length_mm, lengths_mm, places, time_ms};
pub use hierarchy::{Hierarchy, Memory, Metric};
pub use landmarks::{AStar, Landmarks};
pub use levels::{Approach, Between, LEVELS, Level, LevelMemory, SCORES};
pub use nearest::Nearest;
pub use papstar::{Costed, Kernel, OutOfOrder, PapStar, trace};
pub use profile::{Profile, Sample};
pub use schedule::{BATCH, Batch, Scheduler, one_by_one};
pub use tree::Tree;
