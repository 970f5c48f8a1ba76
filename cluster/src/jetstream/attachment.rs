//! Attachments to a stream: a pull consumer without acknowledgements, which hides nothing of what its server says.
//!
//! The client library's own streams of messages keep reports of consumers that have nothing to send to themselves, and its ordered
//! consumers are made anew without a word, with counts that begin again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::header::{IntoHeaderName, NATS_LAST_CONSUMER, NATS_LAST_STREAM};
use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::context::Context;
use async_nats::jetstream::{self, stream::Stream};
use async_nats::{HeaderMap, Message, StatusCode, Subject, Subscriber};
use futures_util::StreamExt as _;

use super::{stored, unavailable};
use crate::log::{self, ReadError, Sent};

/// An attachment to a stream. It ends where the consumer is gone, and where the connection is another one.
#[derive(Debug)]
pub struct Attachment {
    context: Context,
    consumer: PullConsumer,
    inbox: Subject,
    messages: Subscriber,
    /// How many messages were asked for and have not come.
    asked: usize,
    /// How often the client had connected.
    connects: u64,
}

/// How many messages are asked for at a time, as many as are in memory if they are not received.
const BATCH: usize = 64;
/// How often the consumer says that it has nothing to send: several times within the time for which a stream counts as read to its end.
const REPORT: Duration = Duration::from_millis(500);
/// How long the consumer keeps a request for messages.
const EXPIRES: Duration = Duration::from_secs(30);
/// How long the consumer is there without a request. Longer than its reader waits for it.
const KEPT: Duration = Duration::from_secs(10);

impl Attachment {
    pub(super) async fn new(context: &Context, stream: &Stream, from: u64) -> Result<Self, ReadError> {
        let client = context.client();
        let connects = client.statistics().connects.load(Ordering::Relaxed);
        let inbox = Subject::from(client.new_inbox());
        let messages = client.subscribe(inbox.clone()).await.map_err(unavailable)?;
        let config = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            inactive_threshold: KEPT,
            num_replicas: 1,
            memory_storage: true,
            ..Config::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(unavailable)?;
        let context = context.clone();
        Ok(Self { context, consumer, inbox, messages, asked: 0, connects })
    }

    /// Asks for more in time, so that the consumer need not wait.
    async fn ask(&mut self) -> Option<()> {
        if self.asked <= BATCH / 2 {
            let batch = BatchConfig {
                batch: BATCH,
                expires: Some(EXPIRES),
                idle_heartbeat: REPORT,
                ..BatchConfig::default()
            };
            self.consumer.request_batch(batch, self.inbox.clone()).await.ok()?;
            self.asked += BATCH;
        }
        Some(())
    }

    fn record(&mut self, message: Message) -> Option<Sent> {
        self.asked = self.asked.saturating_sub(1);
        let message = jetstream::Message { message, context: self.context.clone() };
        let (nth, pending, stored) = stored(message).ok()?;
        Some(Sent::Record { nth, pending, stored })
    }
}

impl log::Attachment for Attachment {
    async fn receive(&mut self) -> Option<Sent> {
        loop {
            self.ask().await?;
            let message = self.messages.next().await?;
            let connects = self.context.client().statistics().connects.load(Ordering::Relaxed);
            if connects != self.connects {
                return None;
            }
            let headers = message.headers.as_ref();
            match message.status {
                None | Some(StatusCode::OK) => return self.record(message),
                Some(StatusCode::IDLE_HEARTBEAT) => {
                    let (nth, last) =
                        (number(headers, NATS_LAST_CONSUMER)?, number(headers, NATS_LAST_STREAM)?);
                    return Some(Sent::Idle { nth, last });
                }
                // A request is over before all of its messages have come.
                Some(StatusCode::TIMEOUT) => {
                    let left = usize::try_from(number(headers, "Nats-Pending-Messages")?).ok()?;
                    self.asked = self.asked.saturating_sub(left);
                }
                // Among them that the consumer was deleted, and that nobody knows it.
                Some(_) => return None,
            }
        }
    }
}

fn number(headers: Option<&HeaderMap>, name: impl IntoHeaderName) -> Option<u64> {
    headers?.get(name)?.as_str().parse().ok()
}
