//! What a run says: one [`Record`], as JSON, as a summary for a terminal, as a page, and beside others.

pub mod compare;
pub mod html;
pub mod latency;
pub mod progress;
pub mod record;
pub mod summary;
pub mod tardiness;
pub mod timeline;
pub mod verdict;

mod axis;
mod figures;
mod plot;
mod plots;
#[cfg(test)]
mod sample;
mod table;
pub(crate) mod text;

pub use compare::{Comparison, compare};
pub use html::page;
pub use latency::Latency;
pub use progress::Progress;
pub use record::{Check, Record, RecordError};
pub use summary::summary;
pub use timeline::Timeline;
pub use verdict::Verdict;
