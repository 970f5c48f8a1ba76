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
use std::sync::atomic::{AtomicU64, Ordering};
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
pub(crate) use entry::{Accepted, Found};
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
    /// The number of the last entry.
    last: AtomicU64,
    /// A std mutex: held for a few pushes, never over an await.
    state: Mutex<State>,
    /// Rung when there is something to append.
    pushed: Notify,
}

struct State {
    writer: Writer,
    /// Entries of this broker that it has not read back, by their numbers, with when they came and their sizes in bytes.
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
        let state = Mutex::new(State { writer, waiting: BTreeMap::new(), waiting_bytes: 0 });
        let (last, pushed) = (AtomicU64::new(0), Notify::new());
        Arc::new(Self { incarnation, begun: Instant::now(), last, state, pushed })
    }

    /// Takes events to be appended, all of them or none. Each receipt has one ticket for each event, which is settled when the event is in the
    /// queues of this broker's engines.
    pub(crate) fn publish(&self, events: &mut Vec<Coming>) -> Result<(), ApiError> {
        let entry = |coming: &Coming| {
            let number = self.next();
            (number, Entry::of(number, &coming.event))
        };
        let entries: Vec<_> = events.iter().map(entry).collect();
        let now = self.begun.elapsed();
        let mut state = self.state();
        state.check(now, entries.iter().map(|(_, entry)| entry.len()))?;
        for (Coming { event, pass, receipt }, (number, entry)) in events.drain(..).zip(entries) {
            let ticket = receipt.as_ref().map(Completion::ticket);
            let waiting = Waiting::Event(Box::new(OwnEvent { event, pass, ticket }));
            state.push(now, number, entry, waiting);
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
        let confinement = confinement.map(|confinement| confinement.text());
        let (number, kind) = (self.next(), EntryKind::Revocation { id, confinement });
        let (entry, now) = (Entry { number, kind }.bytes(), self.begun.elapsed());
        {
            let mut state = self.state();
            state.check(now, std::iter::once(entry.len()))?;
            state.push(now, number, entry, Waiting::Revocation(reply));
        }
        self.pushed.notify_one();
        answer.await.map_err(|_| ApiError::Stopping)?
    }

    /// The number of the next entry. Some are of none that is appended.
    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
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

    /// Takes an entry that [`State::check`] was asked about.
    fn push(&mut self, now: Duration, number: u64, entry: Vec<u8>, waiting: Waiting) {
        self.waiting_bytes += entry.len();
        self.waiting.insert(number, (now, entry.len(), waiting));
        if self.writer.push(now, number, entry).is_err()
            && let Some(waiting) = self.take(number)
        {
            waiting.refuse(ApiError::Storage);
        }
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
            Self::Event(own) => {
                if let Some(ticket) = own.ticket {
                    ticket.settle(Err(refusal));
                }
            }
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
