//! A ledger in a log: one writer at a time, and standbys that follow it and take over.
//!
//! [`Standby`] and [`Writer`] ask for requests and are given answers and the time. They know neither sockets nor clocks:
//!
//! 1. `poll` says which [`Request`] is to be made next. It is asked until it says none, and again after each answer, each
//!    row that is pushed, and from time to time (some milliseconds).
//! 2. Requests are made by [`Request::make`], all of them at the same time, and each has one answer.
//! 3. `answer` takes it.
//!
//! Times are those that have gone by since any fixed moment of a clock that only goes forward.

mod chain;
mod follower;
mod membership;
mod standby;
mod writer;

use std::time::Duration;

pub use chain::{Chain, ChainError, Owner};
pub use follower::{FollowError, State};
pub use membership::{Beat, Watch};
pub use standby::{Standby, Status};
pub use writer::{End, PushError, ROW_BYTES_MAX, RefusedRecord, SnapshotError, WAITING_BYTES_MAX, Writer};

use crate::log::{Append, AppendError, Appended, Log, ReadError, Stored};

/// A request to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// [`Log::append`].
    Append(Append),
    /// [`Log::read`].
    Read {
        /// The sequence to begin with.
        from: u64,
        /// After how many bytes to end.
        bytes: usize,
    },
    /// [`Log::truncate`].
    Truncate {
        /// The sequence of the first record that stays.
        before: u64,
    },
}

/// The log's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Request::Append`].
    Append(Result<Appended, AppendError>),
    /// To [`Request::Read`].
    Read(Result<Vec<Stored>, ReadError>),
    /// To [`Request::Truncate`].
    Truncate(Result<(), ReadError>),
}

/// Limits of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For how long a beat says that a member is there.
    pub ttl: Duration,
    /// How long after that it is taken for gone.
    pub grace: Duration,
    /// How long a standby waits after it has read to the end of the log.
    pub follow: Duration,
    /// How long after a failure the next request is made.
    pub retry: Duration,
    /// How long a writer takes rows on while an append has no answer.
    pub busy: Duration,
    /// How long a row waits for the log; then its fate is unknown and its writer ends. Below half of the time for which the
    /// log knows the names of records.
    pub give_up: Duration,
    /// How long a record that is known may be missing before the log counts as gone back. Longer than a leader of the log that has
    /// lost its majority takes to notice (10 s in NATS), and than a replica is behind.
    pub missing: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(5),
            grace: Duration::from_secs(2),
            follow: Duration::from_millis(20),
            retry: Duration::from_millis(100),
            busy: Duration::from_secs(1),
            give_up: Duration::from_secs(60),
            missing: Duration::from_secs(15),
        }
    }
}

/// Bytes that a standby reads at a time.
const READ_BYTES: usize = 4 << 20;

impl Request {
    /// Makes the request.
    pub async fn make(self, log: &impl Log) -> Answer {
        match self {
            Self::Append(append) => Answer::Append(log.append(append).await),
            Self::Read { from, bytes } => Answer::Read(log.read(from, bytes).await),
            Self::Truncate { before } => Answer::Truncate(log.truncate(before).await),
        }
    }
}
