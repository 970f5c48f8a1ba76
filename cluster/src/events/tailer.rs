//! Reads a stream in order, each record once, and tells what is missing.

use std::ops::Range;
use std::time::Duration;

use super::Timing;
use crate::log::{Identity, Sent};
use crate::record::{Kind, Record, RecordError};

/// Reads a stream from a place on, over attachments of which any may end without a word.
///
/// Each attachment begins with the last record that is known, which is looked at once more: another one there means that the log went
/// back while nothing was heard of it.
#[derive(Debug)]
pub struct Tailer {
    timing: Timing,
    /// The sequence of the next record.
    next: u64,
    /// The record before it, where it was read.
    known: Option<Identity>,
    /// The attachment that is listened to; 0 is none.
    attachment: u64,
    /// How much of what that sent has arrived.
    nth: u64,
    attach_at: Option<Duration>,
    heard_at: Duration,
    /// Everything that was appended before has been read.
    current_at: Option<Duration>,
    missing_since: Option<Duration>,
}

/// A request: to attach to the stream anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Names the attachment. The ones before it are not needed any more.
    pub attachment: u64,
    /// The sequence of the first record to be sent, or of the first that the log has where that is a later one.
    pub from: u64,
}

/// What comes of a message.
#[derive(Clone, Debug)]
pub enum Taken<'a> {
    /// Nothing: it is known already, is none of the current attachment's, or has none before it that it should have.
    Nothing,
    /// The next record.
    Record {
        /// Its sequence.
        sequence: u64,
        /// The record.
        record: Record<'a>,
        /// Sequences before it that the log has dropped unread. Nobody can get them again: clients whose areas are there have a gap. Where
        /// the last record that was read is dropped as well, nothing is left that would show that the log went back before.
        dropped: Option<Range<u64>>,
    },
}

/// Why a stream cannot be read on from where it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The log shows another record than it did, or none where there was one.
    #[error("the log went back: record {sequence} is another one or gone")]
    WentBack {
        /// The sequence of the last record that was read.
        sequence: u64,
    },
    /// A record is damaged, or none of a stream of events.
    #[error("record {sequence}: {error}")]
    Unreadable {
        /// Its sequence.
        sequence: u64,
        /// Why.
        error: RecordError,
    },
}

impl Tailer {
    /// Reads from a sequence on.
    #[must_use]
    pub fn new(next: u64, now: Duration, timing: Timing) -> Self {
        Self {
            timing,
            next,
            known: None,
            attachment: 0,
            nth: 0,
            attach_at: Some(now),
            heard_at: now,
            current_at: None,
            missing_since: None,
        }
    }

    /// Reads what is behind a record that is known to be in the stream and was appended after `since`: nothing that was appended before is
    /// wanted.
    #[must_use]
    pub fn behind(known: Identity, since: Duration, now: Duration, timing: Timing) -> Self {
        let tailer = Self::new(known.sequence + 1, now, timing);
        Self { known: Some(known), current_at: Some(since), ..tailer }
    }

    /// The sequence of the last record that was read, or of the one before the first.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// The last record that was read, where it was looked at.
    #[must_use]
    pub fn known(&self) -> Option<Identity> {
        self.known
    }

    /// A time before which everything that was appended has been read, as far as the replica knew that was read from.
    #[must_use]
    pub fn current_at(&self) -> Option<Duration> {
        self.current_at
    }

    /// The request to attach, if one is due: at first, after [`Tailer::failed`], where something was lost on the way, and after
    /// [`Timing::silence`]. `attachments` counts those of a process.
    pub fn poll(&mut self, now: Duration, attachments: &mut u64) -> Option<Attach> {
        let is_silent = now.saturating_sub(self.heard_at) >= self.timing.silence;
        let is_due = self.attach_at.map_or(is_silent, |at| at <= now);
        is_due.then(|| {
            *attachments += 1;
            (self.attachment, self.nth, self.attach_at, self.heard_at) = (*attachments, 0, None, now);
            Attach { attachment: self.attachment, from: self.known.map_or(self.next, |known| known.sequence) }
        })
    }

    /// An attachment could not be made, or ended.
    pub fn failed(&mut self, now: Duration, attachment: u64) {
        if attachment == self.attachment {
            self.attach_at.get_or_insert(now + self.timing.retry);
        }
    }

    /// Takes what an attachment sent. A hole in the count of its messages was lost on the way and is asked for again; one in the sequences
    /// alone is what the log has dropped.
    ///
    /// # Errors
    /// Any [`Fault`]. Nothing can be read by this tailer from then on.
    pub fn take<'a>(&mut self, now: Duration, attachment: u64, sent: &'a Sent) -> Result<Taken<'a>, Fault> {
        if attachment != self.attachment || self.attach_at.is_some() {
            return Ok(Taken::Nothing);
        }
        self.heard_at = now;
        let (nth, is_at_end) = match sent {
            Sent::Record { nth, .. } if *nth <= self.nth => return Ok(Taken::Nothing),
            Sent::Record { nth, pending, .. } => (nth - 1, *pending == 0),
            Sent::Idle { nth, .. } => (*nth, true),
        };
        if nth != self.nth {
            self.attach_at = Some(now);
            return Ok(Taken::Nothing);
        }
        let taken = match sent {
            Sent::Idle { last, .. } if *last < self.last() => return self.missing(now),
            Sent::Idle { .. } => Taken::Nothing,
            Sent::Record { stored, .. } => {
                self.nth += 1;
                let identity = stored.identity();
                if let Some(known) = self.known.filter(|known| known.sequence == stored.sequence)
                    && !known.is(&identity)
                {
                    return Err(Fault::WentBack { sequence: known.sequence });
                }
                if stored.sequence < self.next {
                    // An answer to an append does not tell the time.
                    self.known = Some(identity).filter(|_| stored.sequence == self.last()).or(self.known);
                    Taken::Nothing
                } else {
                    let sequence = stored.sequence;
                    let record =
                        read(&stored.record).map_err(|error| Fault::Unreadable { sequence, error })?;
                    let dropped = (self.next < sequence).then_some(self.next..sequence);
                    (self.known, self.next) = (Some(identity), sequence + 1);
                    Taken::Record { sequence, record, dropped }
                }
            }
        };
        self.missing_since = None;
        if is_at_end {
            self.current_at = Some(now);
        }
        Ok(taken)
    }

    /// The log's last record is one before ours: its replica is behind, or it went back.
    fn missing(&mut self, now: Duration) -> Result<Taken<'static>, Fault> {
        let missing_since = *self.missing_since.get_or_insert(now);
        if now.saturating_sub(missing_since) >= self.timing.missing {
            return Err(Fault::WentBack { sequence: self.last() });
        }
        Ok(Taken::Nothing)
    }
}

fn read(bytes: &[u8]) -> Result<Record<'_>, RecordError> {
    let record = Record::decode(bytes)?;
    match record.header.kind {
        Kind::Events | Kind::Marker => Ok(record),
        Kind::Rows | Kind::Seal | Kind::Chunk => Err(RecordError::Header { at: 1, found: bytes[1] }),
    }
}
