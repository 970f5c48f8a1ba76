//! The stream of events of a cluster with several active brokers: what any of them accepts, all of them match, in one order.
//!
//! A broker appends what it accepts ([`appending`]) and reads all that was appended, its own included ([`reading`]). It answers a publish
//! when it has read the event back: a majority of the servers has it by then, and whatever is sent to this broker afterwards stands behind it in
//! the queues of the engines. A broker that reads a move before it answers it has the move in force for all events that are appended
//! afterwards, for it reads the whole stream: no marker is needed.

mod appending;
mod entry;
mod reading;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::events::{Timing, Writer};
use cluster::record::Incarnation;
use tokio::sync::{Notify, oneshot};

use crate::admission::InFlightGuard;
use crate::ingest::Confinement;
use crate::model::completion::{Completion, CompletionGuard};
use crate::model::error::ApiError;
use crate::model::event::Published;
pub(crate) use entry::Accepted;
use entry::{Entry, EntryKind};
pub(crate) use reading::{Reader, Sink};

/// An event that was taken and comes before the engines.
pub(crate) struct Coming {
    pub(crate) event: Published,
    /// Dropped when the last shard has dealt the event out.
    pub(crate) pass: Option<Arc<InFlightGuard>>,
    /// Every shard then has something to settle of it, where there is one.
    pub(crate) receipt: Option<Arc<Completion>>,
}

/// The stream, for a broker that appends to it.
pub(crate) struct EventStream {
    incarnation: Incarnation,
    begun: Instant,
    /// A std mutex: held for a few pushes, never over an await.
    state: Mutex<State>,
    /// Rung when there is something to append.
    pushed: Notify,
}

struct State {
    writer: Writer,
    /// The number of the last entry.
    last: u64,
    /// Entries of this broker that it has not read back, with when they came and their sizes in bytes.
    waiting: BTreeMap<u64, (Duration, usize, Waiting)>,
    waiting_bytes: usize,
}

/// An entry of this broker that it has not read back.
enum Waiting {
    Event(Box<OwnEvent>),
    Revocation(oneshot::Sender<Result<bool, ApiError>>),
}

struct OwnEvent {
    event: Published,
    pass: Option<Arc<InFlightGuard>>,
    ticket: Option<CompletionGuard>,
}

/// How long an entry is waited for. One that is read later takes effect nevertheless.
const LATE: Duration = Duration::from_secs(30);
/// Bytes of entries that may be on their way through the stream. More are refused.
const WAITING_BYTES_MAX: usize = 64 << 20;

impl EventStream {
    /// The stream for a process: no two have the same nonce.
    pub(crate) fn new(nonce: u64) -> Arc<Self> {
        let incarnation = Incarnation { term: 0, nonce };
        let writer = Writer::new(incarnation, Timing::default());
        let state = State { writer, last: 0, waiting: BTreeMap::new(), waiting_bytes: 0 };
        Arc::new(Self { incarnation, begun: Instant::now(), state: Mutex::new(state), pushed: Notify::new() })
    }

    /// Takes events to be appended, all of them or none. Each receipt has one ticket for each event, which is settled when the event is in the
    /// queues of this broker's engines.
    pub(crate) fn publish(&self, events: &mut Vec<Coming>) -> Result<(), ApiError> {
        let mut state = self.state();
        let first = state.last + 1;
        let entries: Vec<_> =
            (first..).zip(&*events).map(|(number, coming)| Entry::of(number, &coming.event)).collect();
        let now = self.begun.elapsed();
        state.check(now, entries.iter().map(Vec::len))?;
        for (Coming { event, pass, receipt }, entry) in events.drain(..).zip(entries) {
            let ticket = receipt.as_ref().map(Completion::ticket);
            state.push(now, entry, Waiting::Event(Box::new(OwnEvent { event, pass, ticket })))?;
        }
        drop(state);
        self.pushed.notify_one();
        Ok(())
    }

    /// Ends the live events of an id at all brokers, of these those that a confinement holds for; says whether there was one.
    pub(crate) async fn revoke(
        &self,
        id: &str,
        confinement: Option<&Arc<Confinement>>,
    ) -> Result<bool, ApiError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state();
            let confinement = confinement.map(|confinement| confinement.text());
            let kind = EntryKind::Revocation { id, confinement };
            let entry = Entry { number: state.last + 1, kind }.bytes();
            state.push(self.begun.elapsed(), entry, Waiting::Revocation(reply))?;
        }
        self.pushed.notify_one();
        answer.await.map_err(|_| ApiError::Stopping)?
    }

    /// A panic under the lock is impossible but for memory running out.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether entries of these sizes, in bytes, are taken now.
    fn check(&self, now: Duration, sizes: impl Iterator<Item = usize> + Clone) -> Result<(), ApiError> {
        if self.waiting_bytes + sizes.clone().sum::<usize>() > WAITING_BYTES_MAX {
            return Err(ApiError::Overloaded);
        }
        self.writer.check(now, sizes).map_err(|error| {
            ApiError::NotStored(format!("the cluster's stream of events takes nothing now: {error}"))
        })
    }

    /// Takes the next entry, whose number is the one behind the last.
    fn push(&mut self, now: Duration, entry: Vec<u8>, waiting: Waiting) -> Result<(), ApiError> {
        self.check(now, std::iter::once(entry.len()))?;
        self.last += 1;
        self.waiting_bytes += entry.len();
        self.waiting.insert(self.last, (now, entry.len(), waiting));
        // It was asked just now.
        let _ = self.writer.push(now, self.last, entry);
        Ok(())
    }

    /// Takes what waits for an entry out, if it does.
    fn take(&mut self, number: u64) -> Option<Waiting> {
        let (_, bytes, waiting) = self.waiting.remove(&number)?;
        self.waiting_bytes -= bytes;
        Some(waiting)
    }

    /// Takes out the first entry, if it has waited for longer than anything may.
    fn take_late(&mut self, now: Duration) -> Option<Waiting> {
        let (number, (since, ..)) = self.waiting.first_key_value()?;
        let (number, is_late) = (*number, now.saturating_sub(*since) > LATE);
        if is_late { self.take(number) } else { None }
    }
}

impl Waiting {
    /// It is not in the stream, or nobody knows whether it is.
    fn refuse(self, refusal: ApiError) {
        match self {
            Self::Event(own) => drop(own.ticket.map(|ticket| ticket.settle(Err(refusal)))),
            // The asker may be gone.
            Self::Revocation(reply) => drop(reply.send(Err(refusal))),
        }
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}
