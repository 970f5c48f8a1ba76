//! Reads what all brokers have appended, and puts it before the engines in its order.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::events::{Attach, Fault, Tailer, Taken, Timing};
use cluster::log::{Attachable, Attachment as _, Bounds, Identity};
use cluster::record::{Body, Record};
use tokio_util::sync::CancellationToken;

use super::entry::{Accepted, Entry, EntryKind, Found};
use super::{Coming, EventStream, OwnEvent, Waiting};
use crate::model::error::ApiError;
use crate::model::event::{Frontier, Placed, Published};

/// Where events come to.
pub(crate) trait Sink: Send + Sync {
    /// Reads an event that another broker accepted, or this one in an earlier life; with the situation that found it, if one did.
    fn read(&self, accepted: &Accepted<'_>, found: Option<&Found<'_>>) -> Result<Published, ApiError>;

    /// Puts events before the engines, in their order; waits as long as there is no room.
    fn take(&self, events: &mut Vec<Coming>) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// All has been taken that was in the stream when its reading began.
    fn has_caught_up(&self);

    /// Nothing more was in the stream at a time.
    fn at_end(&self, at: Instant) -> impl Future<Output = ()> + Send;

    /// Ends the live events of an id that came before a place; says whether there was one.
    fn revoke(
        &self,
        id: &str,
        confinement: Option<&str>,
        place: Placed,
    ) -> impl Future<Output = Result<bool, ApiError>> + Send;
}

/// Reads the stream.
pub(crate) struct Reader<L> {
    stream: Arc<EventStream>,
    log: Arc<L>,
    /// How far it was read before, if it was.
    frontier: Option<Frontier>,
    begun: Instant,
}

/// Why a broker cannot read on. Its sessions begin new epochs: something may be missing that nobody can tell any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadFault {
    /// The stream is another one, or damaged.
    #[error("the cluster's stream of events: {0}")]
    Stream(#[from] Fault),
    /// The broker was away for longer than the stream keeps events.
    #[error("the cluster's stream of events dropped records {first} to {last} before this broker read them")]
    Dropped {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
}

/// How long an attachment is listened to before it is looked whether it is silent.
const LISTEN: Duration = Duration::from_millis(500);
/// Pause after a failure.
const RETRY: Duration = Duration::from_millis(100);

impl<L: Attachable> Reader<L> {
    /// Reads on from where it was read to, or from the first record that is there.
    pub(crate) fn new(stream: Arc<EventStream>, log: Arc<L>, frontier: Option<Frontier>) -> Self {
        Self { stream, log, frontier, begun: Instant::now() }
    }

    /// Reads until the broker has ended.
    ///
    /// # Errors
    /// [`ReadFault`].
    pub(crate) async fn run(self, sink: impl Sink, ended: CancellationToken) -> Result<(), ReadFault> {
        ended.run_until_cancelled(self.read(sink)).await.unwrap_or(Ok(()))
    }

    async fn read(self, sink: impl Sink) -> Result<(), ReadFault> {
        let (mut tailer, last) = self.begin().await?;
        let mut attachments = 0;
        let mut attached = None;
        let mut has_caught_up = false;
        loop {
            // The end may never come as long as others publish.
            if !has_caught_up && last <= tailer.last() {
                sink.has_caught_up();
                has_caught_up = true;
            }
            let now = self.begun.elapsed();
            if let Some(Attach { attachment, from }) = tailer.poll(now, &mut attachments) {
                attached = match self.log.attach(from).await {
                    Ok(made) => Some((attachment, made)),
                    Err(error) => {
                        tracing::debug!(%error, "the cluster's stream of events cannot be attached to yet");
                        tailer.failed(self.begun.elapsed(), attachment);
                        None
                    }
                };
            }
            let Some((attachment, listened)) = &mut attached else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            let attachment = *attachment;
            match tokio::time::timeout(LISTEN, listened.receive()).await {
                Err(_) => {}
                Ok(None) => {
                    tailer.failed(self.begun.elapsed(), attachment);
                    attached = None;
                }
                Ok(Some(sent)) => {
                    let now = self.begun.elapsed();
                    match tailer.take(now, attachment, &sent)? {
                        Taken::Nothing if tailer.current_at() == Some(now) => {
                            if let Some(at) = self.end(tailer.last()).await {
                                sink.at_end(at).await;
                            }
                        }
                        Taken::Nothing => {}
                        Taken::Record { sequence, record, dropped } => {
                            if let Some(dropped) = dropped {
                                let (first, last) = (dropped.start, dropped.end - 1);
                                return Err(ReadFault::Dropped { first, last });
                            }
                            let crc = tailer.known().map_or(0, |known| known.crc);
                            self.take(sequence, crc, &record, &sink).await;
                        }
                    }
                }
            }
        }
    }

    /// What reads on, and the last record that was there when it began. A stream that ends before what was read went back.
    async fn begin(&self) -> Result<(Tailer, u64), ReadFault> {
        let timing = Timing::default();
        loop {
            if let Ok(Bounds { first, last }) = self.log.bounds().await {
                let now = self.begun.elapsed();
                let Some(Frontier { next, sequence, crc }) = self.frontier else {
                    return Ok((Tailer::new(first, now, timing), last));
                };
                if sequence <= last {
                    let known = Identity { sequence, time_us: None, crc };
                    // The record that was read last is looked at once more, unless some of it is wanted.
                    let tailer = if next.sequence() > sequence {
                        Tailer::behind(known, Duration::ZERO, now, timing)
                    } else {
                        Tailer::new(sequence, now, timing)
                    };
                    return Ok((tailer, last));
                }
                if now >= timing.missing {
                    return Err(Fault::WentBack { sequence }.into());
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// A time up to which nothing but what was read came into the stream, if that is so now. It is asked for: what an attachment said may
    /// have waited for this process to go on.
    async fn end(&self, last_read: u64) -> Option<Instant> {
        let at = Instant::now();
        let bounds = tokio::time::timeout(LISTEN, self.log.bounds()).await.ok()?.ok()?;
        (bounds.last <= last_read).then_some(at)
    }

    async fn take(&self, sequence: u64, crc: u32, record: &Record<'_>, sink: &impl Sink) {
        let entries = match record.body() {
            Ok(Body::Events(entries)) => entries,
            Ok(_) => return,
            Err(error) => {
                tracing::error!(sequence, %error, "a record of the stream of events cannot be read: it is left out");
                return;
            }
        };
        let is_own = record.header.incarnation == self.stream.incarnation;
        let mut events = Vec::new();
        let mut tickets = Vec::new();
        for (index, bytes) in entries.iter().enumerate() {
            let place = Placed::new(sequence, crc, index, entries.len());
            let Ok(entry) = postcard::from_bytes::<Entry<'_>>(bytes) else {
                tracing::error!(
                    sequence,
                    index,
                    "an entry of the stream of events cannot be read: it is left out"
                );
                continue;
            };
            let waiting = if is_own { self.stream.state().take(entry.number) } else { None };
            match (entry.kind, waiting) {
                (EntryKind::Event(_) | EntryKind::Finding { .. }, Some(Waiting::Event(own))) => {
                    let OwnEvent { event, pass, ticket } = *own;
                    events.push(Coming { event: event.placed(place), pass, receipt: None });
                    tickets.extend(ticket);
                }
                (EntryKind::Event(accepted), _) => {
                    events.extend(other(sink, &accepted, None, place));
                }
                (EntryKind::Finding { accepted, found }, _) => {
                    events.extend(other(sink, &accepted, Some(&found), place));
                }
                (EntryKind::Revocation { id, confinement }, waiting) => {
                    put(sink, &mut events).await;
                    let done = revoke(sink, id, confinement, place).await;
                    if let Some(Waiting::Revocation(reply)) = waiting {
                        // The asker may be gone.
                        drop(reply.send(done));
                    }
                }
            }
        }
        put(sink, &mut events).await;
        tickets.into_iter().for_each(|ticket| ticket.settle(Ok(())));
    }
}

/// An event of another broker.
fn other(
    sink: &impl Sink,
    accepted: &Accepted<'_>,
    found: Option<&Found<'_>>,
    place: Placed,
) -> Option<Coming> {
    match sink.read(accepted, found) {
        Ok(event) => Some(Coming { event: event.placed(place), pass: None, receipt: None }),
        Err(error) => {
            tracing::error!(?place, ?error, "an event of another broker cannot be read: it is left out");
            None
        }
    }
}

/// Puts events before the engines, however long that takes: to leave one out would be to lose it.
async fn put(sink: &impl Sink, events: &mut Vec<Coming>) {
    while !events.is_empty() {
        match sink.take(events).await {
            Ok(()) | Err(ApiError::Stopping) => return,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Ends live events, however long that takes.
async fn revoke(
    sink: &impl Sink,
    id: &str,
    confinement: Option<&str>,
    place: Placed,
) -> Result<bool, ApiError> {
    loop {
        match sink.revoke(id, confinement, place).await {
            done @ (Ok(_) | Err(ApiError::Stopping)) => return done,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}
