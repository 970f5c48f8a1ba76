//! A log: records in one order, with compare-and-append.

use std::future::Future;

use bytes::Bytes;

/// A record to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The sequence of the last record that has to be in the log, 0 for none. `None` appends behind whatever is there.
    pub expected: Option<u64>,
    /// Names this record and no other. A log that has stored it a short while ago answers with the place that it has.
    pub id: String,
    /// The bytes.
    pub record: Bytes,
}

/// The place of a record that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its sequence.
    pub sequence: u64,
    /// Whether it was in the log before.
    pub is_duplicate: bool,
}

/// A record as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Counts from 1 without holes.
    pub sequence: u64,
    /// When the log stored it, in microseconds of the log's own clock.
    pub time_us: i64,
    /// The bytes.
    pub record: Bytes,
}

/// What a record is known by. A log that shows another one at the sequence went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Where it is.
    pub sequence: u64,
    /// [`Stored::time_us`], which an answer to an append does not tell.
    pub time_us: Option<i64>,
    /// CRC-32 of its bytes.
    pub crc: u32,
}

/// The ends of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The sequence of the first record that is left; one more than `last` where none is.
    pub first: u64,
    /// The sequence of the last record, 0 where there never was one.
    pub last: u64,
}

/// What an [`Attachment`] to a log tells its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A record.
    Record {
        /// Counts what the attachment has sent, from 1 on without holes. One that is missing was lost on the way; where only sequences are
        /// missing, the log has dropped them.
        nth: u64,
        /// How many records behind this one the attachment has still to send.
        pending: u64,
        /// The record.
        stored: Stored,
    },
    /// It has nothing to send, which it says from time to time.
    Idle {
        /// How many records it has sent.
        nth: u64,
        /// The log has no record behind this sequence, as far as its replica knows. It may end earlier than that: a consumer of
        /// JetStream tells its own place, which is that before the first record it was asked for at the least.
        last: u64,
    },
}

/// Why a record was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The log's last sequence is another, and the record is not in it by this append. The log may have refused for the
    /// sake of a record that never becomes a part of it: what is true is found by reading.
    #[error("the log's last sequence is another{}", .last.map(|last| format!(", {last}")).unwrap_or_default())]
    WrongLast {
        /// The last sequence, where the log says it.
        last: Option<u64>,
    },
    /// No answer came in time. The record may be in the log, may come to be, or may never be.
    #[error("the log did not answer")]
    NoAnswer,
    /// The log did not take the request: the record is not in it by this append.
    #[error("the log is not available: {why}")]
    Unavailable {
        /// What the log or the connection said.
        why: String,
    },
    /// The log takes no record as large as this one.
    #[error("a record has {bytes} bytes, and the log takes {bytes_max}")]
    TooLarge {
        /// Bytes of the record.
        bytes: usize,
        /// Bytes that the log takes.
        bytes_max: usize,
    },
}

/// Why records were not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The records from there on are not in the log any more.
    #[error("the log begins with {first}")]
    TooOld {
        /// The sequence of the first record that is left.
        first: u64,
    },
    /// The log did not take the request or did not answer.
    #[error("the log is not available: {why}")]
    Unavailable {
        /// What the log or the connection said.
        why: String,
    },
}

/// A log that is shared by its writers and readers. Records are in one order and stay as they are; they are removed from its
/// beginning alone. A record is acknowledged when a majority of the replicas has it.
///
/// The first append, read or truncation over another connection than that of the one before is answered as unavailable:
/// the log may have lost records in between, and its client has to look before it appends. [`Log::bounds`] is neither
/// refused for that nor does it take another request's refusal. An answer to anything but a truncation that comes over
/// another connection than its request went counts as none.
///
/// A log that breaks its promise went back: records that it acknowledged are gone. No single request tells, so this is
/// not an error of a log; [`Chain`](crate::ledger::Chain) finds it by what it knows of earlier records.
pub trait Log {
    /// Appends a record. When the future is dropped, the record may come to be in the log, as after [`AppendError::NoAnswer`].
    fn append(&self, append: Append) -> impl Future<Output = Result<Appended, AppendError>> + Send;

    /// Reads records that follow each other, the first of which has the sequence `from`. Ends behind the record with which
    /// they have `bytes` bytes, though not before the second, or where the replica ends that is asked, which may be
    /// behind. An implementation may wait for a record for a short while before it answers that there is none.
    fn read(&self, from: u64, bytes: usize) -> impl Future<Output = Result<Vec<Stored>, ReadError>> + Send;

    /// Removes all records before the sequence `before`, which may be carried out more than once.
    fn truncate(&self, before: u64) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// The ends of the log, which may be older than what was acknowledged or read.
    fn bounds(&self) -> impl Future<Output = Result<Bounds, ReadError>> + Send;
}

/// A log that attachments can be made to.
pub trait Attachable: Log {
    /// Its attachments.
    type Attachment: Attachment;

    /// Attaches to the log. The first record that is sent has the sequence `from`. It is a later one where the log has dropped that one, and
    /// may be an earlier one where the replica is behind.
    fn attach(&self, from: u64) -> impl Future<Output = Result<Self::Attachment, ReadError>> + Send;
}

/// A consumer that the log's servers keep. Any may go silent, and stay so; its reader attaches anew then.
pub trait Attachment: Send {
    /// The next message, or `None` where the attachment has ended. When the future is dropped, no message is lost.
    fn receive(&mut self) -> impl Future<Output = Option<Sent>> + Send;
}

impl Stored {
    /// What the record is known by.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { sequence: self.sequence, time_us: Some(self.time_us), crc: crc32fast::hash(&self.record) }
    }
}

impl Identity {
    /// Whether a record is the one that is known.
    #[must_use]
    pub fn is(&self, found: &Identity) -> bool {
        let is_time = self.time_us.zip(found.time_us).is_none_or(|(known, found)| known == found);
        self.sequence == found.sequence && self.crc == found.crc && is_time
    }
}
