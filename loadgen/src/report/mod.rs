//! What a run says: one [`Record`], as JSON.

pub mod latency;
pub mod record;
pub mod timeline;

pub use latency::Latency;
pub use record::Check;
pub use record::{Record, RecordError};
pub use timeline::Timeline;
