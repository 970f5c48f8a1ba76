//! Open-loop load: steps are carried out when they are due, whatever the broker does, and latency counts from then.
//!
//! Two threads: the caller's sends, another one reads. Thousands of sockets cost a few hundred bytes each here, and what comes is
//! looked into no further than to the number of its event.

mod heard;
mod journal;
mod line;
mod reader;
mod sender;
mod shared;
mod socket;

pub use heard::{AlarmHeard, Heard, HeardJournal};
pub use journal::SentJournal;
pub use sender::{Load, Opening, Phase, Sent, Settings};
pub use shared::Watch;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A client, by its index.
    Client(u32),
    /// One of those who publish.
    Publisher(u32),
}
