//! Streams of events, which many brokers append to and read: one order for all, and no clock in it.
//!
//! - [`Publisher`] appends what a broker takes in, by a [`Writer`] for each stream, and says when a publish is answered.
//! - [`Reader`] is the set of streams that a broker reads by need, with a [`Tailer`] for each, and holds commands (moves and
//!   subscriptions) back until the streams that they need are read.
//!
//! The fence: a broker that is to read a stream appends a *marker* to it and reads from the marker's place on. A command is
//! answered when the markers that it needs are acknowledged and it stands in the queue of the broker's engine. Whatever is sent after the
//! answer is appended behind the markers, so that it is read, and matched behind the command. There is no clock in this, no view of the
//! log's leader, and no count of brokers.
//!
//! The other direction needs one: an event may be matched behind a command that was sent after the event was acknowledged, as far as the
//! reader is behind. [`Timing::stale`] bounds that.
//!
//! As with a [ledger](crate::ledger), these ask for requests by `poll` and are given answers and the time, which is what has gone by since
//! any fixed moment of a clock that only goes forward. Which stream a place belongs to, and which ones an area touches, is the caller's to
//! say. The broker does not use any of this yet.

mod publisher;
mod reader;
mod tailer;
mod writer;

use std::time::Duration;

pub use publisher::Publisher;
pub use reader::{Action, Claim, ClaimError, Decision, Frontier, Reader};
pub use tailer::{Attach, Fault, Tailer, Taken};
pub use writer::{Done, EVENT_BYTES_MAX, GROUP_BYTES, Outcome, PushError, WAITING_BYTES_MAX, Writer};

/// One stream of events, such as that of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub u32);

/// Limits of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long after a failure the next request is made.
    pub retry: Duration,
    /// How long a writer takes events on while an append has no answer.
    pub busy: Duration,
    /// For how long a record is appended again. At most half of the time for which the log knows the names of records: a record that is
    /// appended again behind that would be there twice.
    pub give_up: Duration,
    /// How long a reader may hear nothing, not even that there is nothing, before it attaches anew.
    pub silence: Duration,
    /// How long a record that is known may be missing before the log counts as gone back. Longer than a leader of the log that has lost
    /// its majority takes to notice (10 s in NATS), and than a replica is behind.
    pub missing: Duration,
    /// How long a stream is read that nothing needs.
    pub keep: Duration,
    /// How far behind a stream may be read for a command to be carried out. It bounds how long ago an event can have been acknowledged that
    /// is matched behind a command.
    pub stale: Duration,
    /// How long a command waits before it is refused.
    pub wait: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            retry: Duration::from_millis(100),
            busy: Duration::from_secs(1),
            give_up: Duration::from_secs(60),
            silence: Duration::from_secs(5),
            missing: Duration::from_secs(15),
            keep: Duration::from_secs(60),
            stale: Duration::from_secs(2),
            wait: Duration::from_secs(10),
        }
    }
}
