//! Appends rows to a ledger for as long as nobody else does.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::{Answer, Request, Timing};
use crate::log::{Append, AppendError, Appended, Identity, ReadError, Stored};
use crate::record::{Body, Chunk, Incarnation, ROWS_MAX, RecordError, encode};

/// Bytes of rows in a record; more go into the next one. A single row may be larger.
const GROUP_BYTES: usize = 256 << 10;
/// Bytes of a row, or of a part of a snapshot.
pub const ROW_BYTES_MAX: usize = 768 << 10;
/// Bytes of rows that wait, and of the room that each takes beside its own. More are refused.
pub const WAITING_BYTES_MAX: usize = 16 << 20;

/// The one that appends to a ledger, from its seal on.
///
/// One record is under way at a time, with all rows that waited when it was made. After a failure of any kind the writer first
/// reads, from the last record that is known to be its own: what it finds there decides whether the record is committed, has to be
/// appended again, or never can be. So neither a lost answer nor a forgotten name of a record does any harm. The first record of
/// somebody else that it finds is its end, for ever.
pub struct Writer {
    member: String,
    incarnation: Incarnation,
    timing: Timing,
    /// The last record that is committed.
    last: Identity,
    /// The last row that is committed, and the last that was pushed.
    committed: u64,
    pushed: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    flight: Option<Flight>,
    snapshot: Option<Snapshot>,
    /// Why the last snapshot was given up, if so.
    snapshot_fault: Option<String>,
    /// From where on the log has the rows that the last complete snapshot does not have.
    snapshot_start: Option<u64>,
    /// Up to where the log is to be truncated.
    truncation: Option<u64>,
    is_truncating: bool,
    /// Whether a request failed that was no append: the log may be another by now.
    has_to_look: bool,
    end: Option<End>,
}

/// Why a writer appends nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Another owner has begun. The rows that waited are not in the ledger. Those of the record under way may be, where the log was
    /// truncated behind them before the writer looked; the next owner knows.
    #[error("another owner has begun, at record {sequence}")]
    Fenced {
        /// The first record that is another's.
        sequence: u64,
    },
    /// The log shows another record than was acknowledged, or none: what was committed may be gone.
    #[error("the log went back: record {} is another one or gone", .known.sequence)]
    WentBack {
        /// The record that was acknowledged.
        known: Identity,
    },
    /// A row waited for longer than [`Timing::give_up`]. It may be in the ledger or not.
    #[error("the log has not taken a row for too long")]
    GaveUp,
    /// The log takes no record as large as this.
    #[error("{0}")]
    Refused(#[source] RefusedRecord),
}

/// A record that no log takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRecord {
    /// It cannot be made.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The log refused it.
    #[error(transparent)]
    Log(#[from] AppendError),
}

/// Why a row is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The writer has ended.
    #[error(transparent)]
    Ended(End),
    /// The log has not answered for a while, or too much waits. Try again later.
    #[error("{waiting_bytes} bytes wait for the log")]
    Busy {
        /// Bytes that wait, as [`WAITING_BYTES_MAX`] counts them.
        waiting_bytes: usize,
    },
    /// No row may be as large.
    #[error("a row has {bytes} bytes, more than {ROW_BYTES_MAX}")]
    TooLarge {
        /// Bytes of the row.
        bytes: usize,
    },
}

/// Why a snapshot is not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The writer has ended.
    #[error(transparent)]
    Ended(End),
    /// One is being written.
    #[error("a snapshot is being written")]
    UnderWay,
    /// It is not the state after the last row that is committed.
    #[error("a snapshot after row {row}, where row {committed} is the last that is committed")]
    OtherRow {
        /// The row after which it is the state.
        row: u64,
        /// The last row that is committed.
        committed: u64,
    },
}

/// Parts of a snapshot.
type Chunks = Box<dyn Iterator<Item = Result<Vec<u8>, String>> + Send>;

#[derive(Debug)]
struct Waiting {
    row: Vec<u8>,
    since: Duration,
}

impl Waiting {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.row.len()
    }
}

/// The record that is under way.
#[derive(Debug)]
struct Flight {
    append: Append,
    crc: u32,
    load: Load,
    since: Duration,
    step: Step,
    missing_since: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Rows(u64),
    Chunk,
    LastChunk,
}

/// What comes next for the record that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Append,
    Appending,
    LookAt(Duration),
    Looking,
}

struct Snapshot {
    row: u64,
    start: u64,
    index: u32,
    /// The next part, and those behind it: a part is known to be the last when it is written.
    next: Vec<u8>,
    chunks: Chunks,
    /// Whether rows go first this time: they and a snapshot take turns.
    is_rows_turn: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("incarnation", &self.incarnation)
            .field("last", &self.last)
            .field("committed", &self.committed)
            .field("pushed", &self.pushed)
            .field("flight", &self.flight)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(
        member: String,
        incarnation: Incarnation,
        last: Identity,
        rows: u64,
        snapshot_start: Option<u64>,
        timing: Timing,
    ) -> Self {
        Self {
            member,
            incarnation,
            timing,
            last,
            committed: rows,
            pushed: rows,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flight: None,
            snapshot: None,
            snapshot_fault: None,
            snapshot_start,
            truncation: None,
            is_truncating: false,
            has_to_look: false,
            end: None,
        }
    }

    /// The incarnation whose rows it writes.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The last row that is committed. All before it are.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// The last record that is committed.
    #[must_use]
    pub fn last(&self) -> Identity {
        self.last
    }

    /// Why it appends nothing any more, if so. It never does again.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Takes a row, and returns its number. It is committed when [`Writer::committed`] has come to it.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn push(&mut self, now: Duration, row: Vec<u8>) -> Result<u64, PushError> {
        if let Some(end) = &self.end {
            return Err(PushError::Ended(end.clone()));
        }
        let bytes = row.len();
        if bytes > ROW_BYTES_MAX {
            return Err(PushError::TooLarge { bytes });
        }
        let waiting_bytes = self.waiting_bytes;
        let is_slow = |flight: &Flight| now.saturating_sub(flight.since) > self.timing.busy;
        let waiting = Waiting { row, since: now };
        if waiting_bytes + waiting.bytes() > WAITING_BYTES_MAX || self.flight.as_ref().is_some_and(is_slow) {
            return Err(PushError::Busy { waiting_bytes });
        }
        self.waiting_bytes += waiting.bytes();
        self.pushed += 1;
        self.waiting.push_back(waiting);
        Ok(self.pushed)
    }

    /// Begins a snapshot: `chunks` are the state after `row`, the last row that is committed, in parts of at most [`ROW_BYTES_MAX`]
    /// bytes. Its parts and rows take turns. When all are committed, the log is truncated up to the snapshot before. A part that is an
    /// error ends it, and what the ledger has of it is passed over: [`Writer::take_snapshot_fault`].
    ///
    /// # Errors
    /// Any [`SnapshotError`].
    pub fn snapshot(
        &mut self,
        row: u64,
        mut chunks: impl Iterator<Item = Result<Vec<u8>, String>> + Send + 'static,
    ) -> Result<(), SnapshotError> {
        if let Some(end) = &self.end {
            return Err(SnapshotError::Ended(end.clone()));
        }
        if self.snapshot.is_some() {
            return Err(SnapshotError::UnderWay);
        }
        if row != self.committed {
            return Err(SnapshotError::OtherRow { row, committed: self.committed });
        }
        let start = self.last.sequence + 1;
        let next = match chunks.next().unwrap_or(Ok(Vec::new())) {
            Ok(next) => next,
            Err(fault) => {
                self.snapshot_fault = Some(fault);
                return Ok(());
            }
        };
        let chunks = Box::new(chunks);
        self.snapshot = Some(Snapshot { row, start, index: 0, next, chunks, is_rows_turn: false });
        Ok(())
    }

    /// Why the last snapshot was given up, once.
    pub fn take_snapshot_fault(&mut self) -> Option<String> {
        self.snapshot_fault.take()
    }

    /// Whether nothing waits, and nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flight.is_none() && self.waiting.is_empty() && self.snapshot.is_none()
    }

    /// Whether a snapshot is being written.
    #[must_use]
    pub fn is_writing_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The next request, if one is due.
    pub fn poll(&mut self, now: Duration) -> Option<Request> {
        self.give_up(now);
        if self.end.is_some() {
            return None;
        }
        if let Some(before) = self.truncation.filter(|_| !self.is_truncating) {
            self.is_truncating = true;
            return Some(Request::Truncate { before });
        }
        if self.flight.is_none() {
            self.flight = self.take_off(now);
        }
        let last = self.last.sequence;
        let flight = self.flight.as_mut()?;
        if flight.step == Step::Append && self.has_to_look {
            flight.step = Step::LookAt(now);
        }
        match flight.step {
            // The truncation may be the request that finds the connection to be another one.
            Step::Append if self.is_truncating => None,
            Step::Append => {
                flight.step = Step::Appending;
                Some(Request::Append(flight.append.clone()))
            }
            Step::LookAt(at) if at <= now => {
                flight.step = Step::Looking;
                Some(Request::Read { from: last, bytes: 0 })
            }
            Step::Appending | Step::LookAt(_) | Step::Looking => None,
        }
    }

    /// Takes the answer to a request.
    pub fn answer(&mut self, now: Duration, answer: Answer) {
        match answer {
            Answer::Append(outcome) => self.appended(now, outcome),
            Answer::Read(outcome) => self.looked(now, outcome),
            Answer::Truncate(outcome) => {
                // Where it failed, the next snapshot makes up for it.
                (self.truncation, self.is_truncating) = (None, false);
                self.has_to_look |= outcome.is_err();
            }
        }
    }

    fn give_up(&mut self, now: Duration) {
        let since =
            [self.flight.as_ref().map(|flight| flight.since), self.waiting.front().map(|row| row.since)];
        let since = since.into_iter().flatten().min();
        if self.end.is_none() && since.is_some_and(|since| now.saturating_sub(since) >= self.timing.give_up) {
            self.end = Some(End::GaveUp);
        }
    }

    /// Makes the next record.
    fn take_off(&mut self, now: Duration) -> Option<Flight> {
        let is_rows_turn = self.snapshot.as_ref().is_none_or(|snapshot| snapshot.is_rows_turn);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.is_rows_turn = !is_rows_turn;
        }
        let has_rows = !self.waiting.is_empty();
        let made = match &mut self.snapshot {
            Some(snapshot) if !(is_rows_turn && has_rows) => {
                let bytes = std::mem::take(&mut snapshot.next);
                let following = match snapshot.chunks.next().transpose() {
                    Ok(following) => following,
                    Err(fault) => {
                        (self.snapshot, self.snapshot_fault) = (None, Some(fault));
                        return None;
                    }
                };
                let chunk = Chunk {
                    member: &self.member,
                    row: snapshot.row,
                    start: snapshot.start,
                    index: snapshot.index,
                    is_last: following.is_none(),
                    bytes: &bytes,
                };
                snapshot.index += 1;
                let is_last = chunk.is_last;
                snapshot.next = following.unwrap_or_default();
                let record = encode(self.incarnation, self.committed + 1, self.last.crc, &Body::Chunk(chunk));
                record.map(|record| (record, if is_last { Load::LastChunk } else { Load::Chunk }, now))
            }
            _ if !has_rows => return None,
            _ => {
                let since = self.waiting.front().map_or(now, |waiting| waiting.since);
                let rows = self.group();
                let slices = rows.iter().map(Vec::as_slice).collect();
                let record = encode(self.incarnation, self.committed + 1, self.last.crc, &Body::Rows(slices));
                record.map(|record| (record, Load::Rows(rows.len() as u64), since))
            }
        };
        let (record, load, since) = match made {
            Ok(made) => made,
            Err(error) => {
                self.end = Some(End::Refused(error.into()));
                return None;
            }
        };
        let expected = self.last.sequence;
        let crc = crc32fast::hash(&record);
        let append =
            Append { expected: Some(expected), id: format!("{}:{expected}", self.incarnation), record };
        Some(Flight { append, crc, load, since, step: Step::Append, missing_since: None })
    }

    fn group(&mut self) -> Vec<Vec<u8>> {
        let mut bytes = 0;
        let mut group = Vec::new();
        while let Some(waiting) = self.waiting.front() {
            bytes += waiting.row.len();
            if !group.is_empty() && (bytes > GROUP_BYTES || group.len() == ROWS_MAX) {
                break;
            }
            self.waiting_bytes -= waiting.bytes();
            group.extend(self.waiting.pop_front().map(|waiting| waiting.row));
        }
        group
    }

    fn appended(&mut self, now: Duration, outcome: Result<Appended, AppendError>) {
        let retry = now + self.timing.retry;
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.step == Step::Appending) else {
            return;
        };
        flight.step = match outcome {
            Ok(appended) if appended.sequence == self.last.sequence + 1 => return self.commit(None),
            Err(error @ AppendError::TooLarge { .. }) => {
                self.end.get_or_insert(End::Refused(error.into()));
                return;
            }
            Err(AppendError::WrongLast { .. } | AppendError::NoAnswer | AppendError::Unavailable { .. })
            | Ok(_) => Step::LookAt(retry),
        };
    }

    /// What is behind the last record that is known to be its own?
    fn looked(&mut self, now: Duration, outcome: Result<Vec<Stored>, ReadError>) {
        let retry = now + self.timing.retry;
        let known = self.last;
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.step == Step::Looking) else { return };
        flight.step = Step::LookAt(retry);
        match outcome {
            Err(ReadError::Unavailable { .. }) => flight.missing_since = None,
            // Nobody but another owner truncates as far. The record under way may have been there.
            Err(ReadError::TooOld { first }) => {
                self.end.get_or_insert(End::Fenced { sequence: first });
            }
            Ok(records) => match records.as_slice() {
                [] => {
                    let missing_since = *flight.missing_since.get_or_insert(now);
                    if now.saturating_sub(missing_since) >= self.timing.missing {
                        self.end.get_or_insert(End::WentBack { known });
                    }
                }
                [own, ..] if !known.is(&own.identity()) => {
                    self.end.get_or_insert(End::WentBack { known });
                }
                [_] => {
                    (flight.step, flight.missing_since) = (Step::Append, None);
                    self.has_to_look = false;
                }
                [_, next, ..] if next.identity().crc == flight.crc => self.commit(Some(next.time_us)),
                [_, next, ..] => {
                    self.end.get_or_insert(End::Fenced { sequence: next.sequence });
                }
            },
        }
    }

    fn commit(&mut self, time_us: Option<i64>) {
        let Some(flight) = self.flight.take() else { return };
        self.last = Identity { sequence: self.last.sequence + 1, time_us, crc: flight.crc };
        match flight.load {
            Load::Rows(count) => self.committed += count,
            Load::Chunk => {}
            Load::LastChunk => {
                let start = self.snapshot.take().map(|snapshot| snapshot.start);
                self.truncation = std::mem::replace(&mut self.snapshot_start, start);
            }
        }
    }
}
