//! Appends events to a stream, in groups that form while an append is under way.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::Timing;
use crate::log::{Append, AppendError, Appended, Identity};
use crate::record::{Body, Incarnation, ROWS_MAX, encode};

/// Bytes of events in a record; more go into the next one. A single event may be larger.
pub const GROUP_BYTES: usize = 256 << 10;
/// Bytes of an event.
pub const EVENT_BYTES_MAX: usize = 768 << 10;
/// Bytes of events that wait, and of the room that each takes beside its own. More are refused.
pub const WAITING_BYTES_MAX: usize = 16 << 20;

/// A process's side of a stream that many append to.
///
/// One record is under way at a time, so that the order is that of [`Writer::push`] and a record that is appended again overtakes none. A
/// failure of any kind is answered by the same record under the same name, which the log knows: it is there once. Streams have many
/// writers, so that no append expects a last sequence.
#[derive(Debug)]
pub struct Writer {
    incarnation: Incarnation,
    timing: Timing,
    /// The number of the last record.
    number: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    is_marker_wanted: bool,
    flight: Option<Flight>,
    done: VecDeque<Done>,
}

/// What a writer is done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Events, by the publishes that they belong to, in their order.
    Events {
        /// The publish of each.
        publishes: Vec<u64>,
        /// What came of all of them.
        outcome: Outcome,
    },
    /// A marker, and where it is. `None` is one whose fate is unknown.
    Marker(Option<Identity>),
}

/// What came of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the log.
    Acknowledged,
    /// The log did not take it for [`Timing::give_up`]. It is in the log, comes to be, or never is.
    Unknown,
    /// It is not in the log and never is.
    Refused,
}

/// Why an event is not taken. Nothing of it is in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The log has not answered for [`Timing::busy`], or too much waits. Try again later.
    #[error("{waiting_bytes} bytes wait for the log")]
    Busy {
        /// Bytes that wait, as [`WAITING_BYTES_MAX`] counts them.
        waiting_bytes: usize,
    },
    /// No event may be as large.
    #[error("an event has {bytes} bytes, more than {EVENT_BYTES_MAX}")]
    TooLarge {
        /// Bytes of the event.
        bytes: usize,
    },
}

#[derive(Debug)]
struct Waiting {
    publish: u64,
    event: Bytes,
}

/// The record that is under way.
#[derive(Debug)]
struct Flight {
    append: Append,
    load: Load,
    since: Duration,
    step: Step,
}

#[derive(Debug)]
enum Load {
    Events(Vec<u64>),
    Marker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    AppendAt(Duration),
    Appending,
}

impl Writer {
    /// A writer of a process. No two processes have the same incarnation, and no process has two writers of a stream.
    #[must_use]
    pub fn new(incarnation: Incarnation, timing: Timing) -> Self {
        Self {
            incarnation,
            timing,
            number: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_marker_wanted: false,
            flight: None,
            done: VecDeque::new(),
        }
    }

    /// Whether events of these sizes, in bytes, are taken now.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn check(&self, now: Duration, sizes: impl IntoIterator<Item = usize>) -> Result<(), PushError> {
        let mut wanted_bytes = self.waiting_bytes;
        for bytes in sizes {
            if bytes > EVENT_BYTES_MAX {
                return Err(PushError::TooLarge { bytes });
            }
            wanted_bytes += size_of::<Waiting>() + bytes;
        }
        let is_slow = |flight: &Flight| now.saturating_sub(flight.since) > self.timing.busy;
        if wanted_bytes > WAITING_BYTES_MAX || self.flight.as_ref().is_some_and(is_slow) {
            return Err(PushError::Busy { waiting_bytes: self.waiting_bytes });
        }
        Ok(())
    }

    /// Takes an event of a publish, which [`Writer::take_done`] names when its record is done.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn push(&mut self, now: Duration, publish: u64, event: impl Into<Bytes>) -> Result<(), PushError> {
        let event = event.into();
        self.check(now, [event.len()])?;
        self.take(publish, event);
        Ok(())
    }

    /// Takes an event that [`Writer::check`] was asked about.
    pub(super) fn take(&mut self, publish: u64, event: Bytes) {
        let waiting = Waiting { publish, event };
        self.waiting_bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    /// Asks for a marker that is appended after this, ahead of the events that wait. Those that were asked for and not begun are one.
    pub fn mark(&mut self) {
        self.is_marker_wanted = true;
    }

    /// The next append, if one is due. Each has one answer, after a second at the latest.
    pub fn poll(&mut self, now: Duration) -> Option<Append> {
        self.give_up(now);
        if self.flight.is_none() {
            self.flight = self.take_off(now);
        }
        let flight = self.flight.as_mut()?;
        match flight.step {
            Step::AppendAt(at) if at <= now => {
                flight.step = Step::Appending;
                Some(flight.append.clone())
            }
            Step::AppendAt(_) | Step::Appending => None,
        }
    }

    /// Takes the answer to the last append.
    pub fn answer(&mut self, now: Duration, outcome: Result<Appended, AppendError>) {
        let retry_at = now + self.timing.retry;
        let Some(mut flight) = self.flight.take_if(|flight| flight.step == Step::Appending) else { return };
        match outcome {
            Ok(Appended { sequence, .. }) => {
                let crc = crc32fast::hash(&flight.append.record);
                self.finish(
                    flight.load,
                    Outcome::Acknowledged,
                    Some(Identity { sequence, time_us: None, crc }),
                );
            }
            Err(AppendError::TooLarge { .. }) => self.finish(flight.load, Outcome::Refused, None),
            Err(AppendError::NoAnswer | AppendError::Unavailable { .. } | AppendError::WrongLast { .. }) => {
                flight.step = Step::AppendAt(retry_at);
                self.flight = Some(flight);
            }
        }
    }

    /// What it is done with, once.
    pub fn take_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Whether nothing waits, and nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flight.is_none() && self.waiting.is_empty() && !self.is_marker_wanted
    }

    /// Ends a record that is not under way at this moment, so that no answer is taken for another record's.
    fn give_up(&mut self, now: Duration) {
        let is_over = |flight: &mut Flight| {
            flight.step != Step::Appending && now.saturating_sub(flight.since) >= self.timing.give_up
        };
        let Some(flight) = self.flight.take_if(is_over) else { return };
        self.finish(flight.load, Outcome::Unknown, None);
        // They came before the writer was slow, and have waited for nearly as long.
        let publishes: Vec<_> = self.waiting.drain(..).map(|waiting| waiting.publish).collect();
        self.waiting_bytes = 0;
        if !publishes.is_empty() {
            self.done.push_back(Done::Events { publishes, outcome: Outcome::Refused });
        }
    }

    fn finish(&mut self, load: Load, outcome: Outcome, identity: Option<Identity>) {
        self.done.push_back(match load {
            Load::Events(publishes) => Done::Events { publishes, outcome },
            Load::Marker => Done::Marker(identity),
        });
    }

    /// Makes the next record.
    fn take_off(&mut self, now: Duration) -> Option<Flight> {
        let (load, events) = if std::mem::take(&mut self.is_marker_wanted) {
            (Load::Marker, Vec::new())
        } else {
            let (publishes, events) =
                self.group().into_iter().map(|event| (event.publish, event.event)).unzip();
            (Load::Events(publishes), events)
        };
        let body = match &load {
            Load::Marker => Body::Marker,
            Load::Events(_) if events.is_empty() => return None,
            Load::Events(_) => Body::Events(events.iter().map(Bytes::as_ref).collect()),
        };
        self.number += 1;
        // No group is as large as a record may be.
        let Ok(record) = encode(self.incarnation, self.number, 0, &body) else {
            self.finish(load, Outcome::Refused, None);
            return None;
        };
        let append = Append { expected: None, id: format!("{}:{}", self.incarnation, self.number), record };
        Some(Flight { append, load, since: now, step: Step::AppendAt(now) })
    }

    fn group(&mut self) -> Vec<Waiting> {
        let mut bytes = 0;
        let mut group = Vec::new();
        while let Some(waiting) = self.waiting.front() {
            bytes += waiting.event.len();
            if !group.is_empty() && (bytes > GROUP_BYTES || group.len() == ROWS_MAX) {
                break;
            }
            self.waiting_bytes -= waiting.bytes();
            group.extend(self.waiting.pop_front());
        }
        group
    }
}

impl Waiting {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.event.len()
    }
}
