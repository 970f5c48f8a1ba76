//! A log in a stream of NATS JetStream, and members in a bucket of its key-value store.
//!
//! - Appends expect the *stream's* last sequence, which the stream's leader holds against appends that are under way, too.
//! - Records are read through an ordered consumer of the whole stream, from a sequence on. It is made anew after each
//!   failure, and when it has been silent for long.
//! - A stream of events drops what is old, and is read through an [`Attachment`]: a consumer whose count, pending records and reports the
//!   reader sees, and which is never made anew behind its back.
//! - The first request after the client has connected again is answered as unavailable, and an answer that comes over another
//!   connection than its request went counts as none.
//!
//! [`demands::check`] sees at the start whether the servers keep what they acknowledge.

mod access;
mod attachment;
pub mod demands;
mod members;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{Context, GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::{Client, jetstream};
use futures_util::StreamExt as _;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::log::{Append, AppendError, Appended, Attachable, Bounds, Log, ReadError, Stored};
use crate::record::RECORD_BYTES_MAX;
pub use access::{Access, AccessError};
pub use attachment::Attachment;
use demands::DemandError;
pub use members::{Member, Members, MembersError};

/// A log in a stream.
#[derive(Debug)]
pub struct JetStream {
    context: Context,
    stream: Stream,
    subject: String,
    /// How often the client had connected at the last request.
    connects: AtomicU64,
    /// Held while one reads; appends go on meanwhile.
    tail: Mutex<Option<Tail>>,
}

/// A stream, and where its replicas are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its name, of letters, digits, `-` and `_`.
    pub stream: String,
    /// The subject of its records.
    pub subject: String,
    /// How many servers have it: 1, 3 or 5.
    pub replicas: usize,
    /// Whether it is made where it is not there. One that had a ledger is not: what members have of it would be forgotten.
    pub is_to_be_made: bool,
}

/// A consumer that is at a sequence.
struct Tail {
    messages: pull::Ordered,
    next: u64,
    connects: u64,
    /// Records from `next` on that the stream had when the consumer last said so.
    pending: u64,
    heard_at: Instant,
}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a read waits for a record.
const WAIT: Duration = Duration::from_millis(200);
/// How long a consumer may be silent; then it is made anew, for some go silent for ever.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the stream knows the names of records. Twice as long as a writer retries.
const NAMES_KEPT: Duration = Duration::from_secs(120);
/// How long a stream of events keeps them.
const EVENTS_KEPT: Duration = Duration::from_secs(15 * 60);

impl JetStream {
    /// Opens a stream, or makes it where it may, and sees whether it keeps what it acknowledges.
    ///
    /// # Errors
    /// Any [`DemandError`].
    pub async fn open(client: Client, options: &Options) -> Result<Self, DemandError> {
        Self::open_as(client, options, config(options)).await
    }

    /// Opens a stream of events as [`JetStream::open`] does a ledger. It drops records that are older than 15 minutes, and the oldest where
    /// all together have more than `bytes_max` bytes. Its description tells for how many partitions it was made, which have to be these.
    ///
    /// # Errors
    /// Any [`DemandError`].
    pub async fn open_events(
        client: Client,
        options: &Options,
        bytes_max: NonZeroU64,
        partitions: u32,
    ) -> Result<Self, DemandError> {
        let (discard, max_bytes) = (DiscardPolicy::Old, i64::try_from(bytes_max.get()).unwrap_or(i64::MAX));
        let description = Some(format!("events for {partitions} partitions"));
        let config = Config { discard, max_bytes, max_age: EVENTS_KEPT, description, ..config(options) };
        Self::open_as(client, options, config).await
    }

    async fn open_as(client: Client, options: &Options, config: Config) -> Result<Self, DemandError> {
        demands::check_payload(client.server_info().max_payload)?;
        let connects = client.statistics().connects.load(Ordering::Relaxed);
        let mut context = jetstream::new(client);
        context.set_timeout(TIMEOUT);
        let name = &options.stream;
        let stream = if options.is_to_be_made {
            let stream = context.get_or_create_stream(config.clone()).await;
            stream.map_err(|error| demands::not_opened(name, &error))?
        } else {
            context.get_stream(name).await.map_err(|error| match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.code() == 404 => {
                    DemandError::Gone { stream: name.clone() }
                }
                GetStreamErrorKind::EmptyName
                | GetStreamErrorKind::Request
                | GetStreamErrorKind::InvalidStreamName
                | GetStreamErrorKind::JetStream(_) => demands::not_opened(name, &error),
            })?
        };
        let found = &stream.cached_info().config;
        demands::check_stream(&config, found)?;
        if let (None, Some(wanted)) = (&found.description, config.description) {
            if stream.cached_info().state.last_sequence > 0 {
                return Err(DemandError::Undescribed { stream: name.clone(), wanted });
            }
            let described = Config { description: Some(wanted), ..found.clone() };
            context.update_stream(described).await.map_err(|error| demands::not_opened(name, &error))?;
        }
        let (subject, tail) = (options.subject.clone(), Mutex::default());
        Ok(Self { context, stream, subject, connects: AtomicU64::new(connects), tail })
    }

    /// The number of the connection, where there is one and it is that of the request before.
    fn connection(&self) -> Result<u64, String> {
        let client = self.context.client();
        if client.connection_state() != State::Connected {
            return Err("there is no connection".to_owned());
        }
        let connects = client.statistics().connects.load(Ordering::Relaxed);
        match self.connects.swap(connects, Ordering::Relaxed) {
            known if known == connects => Ok(connects),
            _ => Err("the connection is another one".to_owned()),
        }
    }

    fn is_still(&self, connects: u64) -> bool {
        self.context.client().statistics().connects.load(Ordering::Relaxed) == connects
    }

    /// Leaves the server for any of them: it may be cut off from the others.
    pub async fn reconnect(&self) {
        // A client that has ended has no server to leave.
        let _ = self.context.client().force_reconnect().await;
    }

    async fn tail(&self, from: u64, connects: u64) -> Result<Tail, ReadError> {
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: from };
        let attach = async {
            let config = pull::OrderedConfig { deliver_policy, ..pull::OrderedConfig::default() };
            let consumer = self.stream.create_consumer(config).await.map_err(unavailable)?;
            let pending = consumer.cached_info().num_pending;
            Ok((consumer.messages().await.map_err(unavailable)?, pending))
        };
        let (messages, pending) = timeout(TIMEOUT, attach).await.map_err(unavailable)??;
        Ok(Tail { messages, next: from, connects, pending, heard_at: Instant::now() })
    }

    /// What a jump in the sequences means.
    async fn left_out(&self, from: u64) -> ReadError {
        match self.bounds().await {
            Ok(Bounds { first, .. }) if first > from => ReadError::TooOld { first },
            Ok(_) => unavailable("the consumer left records out"),
            Err(error) => error,
        }
    }
}

impl Log for JetStream {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let Append { expected, id, record } = append;
        let (bytes, bytes_max) = (record.len(), RECORD_BYTES_MAX);
        if bytes > bytes_max {
            return Err(AppendError::TooLarge { bytes, bytes_max });
        }
        let connects = self.connection().map_err(|why| AppendError::Unavailable { why })?;
        let mut publish = PublishMessage::build().message_id(id).payload(record);
        if let Some(expected) = expected {
            publish = publish.expected_last_sequence(expected);
        }
        let sent = async { self.context.send_publish(self.subject.clone(), publish).await?.await };
        match timeout(TIMEOUT, sent).await {
            Err(_) => Err(AppendError::NoAnswer),
            Ok(Ok(_)) if !self.is_still(connects) => Err(AppendError::NoAnswer),
            Ok(Ok(ack)) => Ok(Appended { sequence: ack.sequence, is_duplicate: ack.duplicate }),
            Ok(Err(error)) => Err(match error.kind() {
                PublishErrorKind::WrongLastSequence => AppendError::WrongLast { last: None },
                // Nobody listens: the server says so at once.
                PublishErrorKind::StreamNotFound | PublishErrorKind::MaxAckPending => {
                    AppendError::Unavailable { why: error.to_string() }
                }
                PublishErrorKind::MaxPayloadExceeded => {
                    let bytes_max = self.context.client().server_info().max_payload;
                    AppendError::TooLarge { bytes, bytes_max }
                }
                // Among them that the first try of this record is under way.
                PublishErrorKind::WrongLastMessageId
                | PublishErrorKind::TimedOut
                | PublishErrorKind::BrokenPipe
                | PublishErrorKind::Other => AppendError::NoAnswer,
            }),
        }
    }

    async fn read(&self, from: u64, bytes: usize) -> Result<Vec<Stored>, ReadError> {
        let mut place = self.tail.lock().await;
        // When this future is dropped, so is the consumer, and no record is lost with it.
        let tail = place.take();
        let connects = self.connection().map_err(unavailable)?;
        let is_fit =
            |tail: &Tail| tail.next == from && tail.connects == connects && tail.heard_at.elapsed() < SILENCE;
        let (mut tail, is_new) = match tail.filter(is_fit) {
            Some(tail) => (tail, false),
            None => (self.tail(from, connects).await?, true),
        };
        let (mut records, mut read) = (Vec::new(), 0);
        while (records.len() < 2 || read < bytes) && (records.is_empty() || tail.pending > 0) {
            // A single record where more are pending would say that the log ends with it.
            let is_enough = records.len() >= 2;
            let wait = if tail.pending > 0 { TIMEOUT } else { WAIT };
            let message = match timeout(wait, tail.messages.next()).await {
                Ok(Some(Ok(message))) => message,
                Err(_) if tail.pending == 0 => break,
                // The next read makes the consumer anew, and tells.
                Ok(Some(Err(_)) | None) | Err(_) if is_enough && self.is_still(connects) => {
                    return Ok(records);
                }
                Ok(Some(Err(error))) => return Err(unavailable(error)),
                Ok(None) => return Err(unavailable("the consumer is gone")),
                Err(_) => return Err(unavailable("the consumer is silent, and records are pending")),
            };
            let (_, pending, stored) = stored(message)?;
            if stored.sequence != tail.next {
                return if is_enough { Ok(records) } else { Err(self.left_out(from).await) };
            }
            (tail.next, tail.pending, tail.heard_at) = (tail.next + 1, pending, Instant::now());
            read += stored.record.len();
            records.push(stored);
        }
        // A stream without records does not show where it begins.
        if is_new && records.is_empty() {
            let Bounds { first, .. } = self.bounds().await?;
            if first > from {
                return Err(ReadError::TooOld { first });
            }
        }
        if !self.is_still(connects) {
            return Err(unavailable("the connection is another one"));
        }
        *place = Some(tail);
        Ok(records)
    }

    async fn truncate(&self, before: u64) -> Result<(), ReadError> {
        self.connection().map_err(unavailable)?;
        let purge = async { self.stream.purge().sequence(before).await };
        timeout(TIMEOUT, purge).await.map_err(unavailable)?.map_err(unavailable)?;
        Ok(())
    }

    async fn bounds(&self) -> Result<Bounds, ReadError> {
        let connects = self.context.client().statistics().connects.load(Ordering::Relaxed);
        let info =
            timeout(TIMEOUT, self.stream.get_info()).await.map_err(unavailable)?.map_err(unavailable)?;
        if !self.is_still(connects) {
            return Err(unavailable("the connection is another one"));
        }
        let state = info.state;
        Ok(Bounds { first: state.first_sequence.max(1), last: state.last_sequence })
    }
}

impl Attachable for JetStream {
    type Attachment = Attachment;

    async fn attach(&self, from: u64) -> Result<Attachment, ReadError> {
        let attach = Attachment::new(&self.context, &self.stream, from);
        timeout(TIMEOUT, attach).await.map_err(unavailable)?
    }
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("next", &self.next).finish_non_exhaustive()
    }
}

/// The stream of a ledger.
fn config(options: &Options) -> Config {
    Config {
        name: options.stream.clone(),
        subjects: vec![options.subject.clone()],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: options.replicas,
        duplicate_window: NAMES_KEPT,
        deny_delete: true,
        ..Config::default()
    }
}

/// A record, its number in the consumer, and how many are pending behind it.
fn stored(message: Message) -> Result<(u64, u64, Stored), ReadError> {
    let info = message.info().map_err(unavailable)?;
    let time_us = i64::try_from(info.published.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX);
    let (nth, pending, sequence) = (info.consumer_sequence, info.pending, info.stream_sequence);
    Ok((nth, pending, Stored { sequence, time_us, record: message.message.payload }))
}

fn unavailable(why: impl ToString) -> ReadError {
    ReadError::Unavailable { why: why.to_string() }
}
