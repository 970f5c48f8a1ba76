//! Push messages (Web Push, RFC 8030): a phone that sleeps is woken when something is kept for its client and no connection reads.
//!
//! ```text
//! shard ─> target: counts ─> channel ─> courier: takes turns ─> push service ─> browser
//! ```
//!
//! A shard counts, and hands each client over once; everything else happens here. Only clients with a push subscription cost anything.
//! At most `push.queue` clients have a message that waits. Where there are so many, a delivery for a further one is not told unless
//! another comes later; it is kept for the client all the same.

mod courier;
mod key;
mod message;
mod seal;
mod sending;
mod subscription;
mod target;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};

pub(crate) use courier::Courier;
pub(crate) use subscription::PushSubscription;
pub(crate) use target::Subscribed;

use crate::config::Config;
use crate::https_client::{HttpsClient, HttpsError, Trust};
use crate::limits::Quota;
use crate::metrics::Metrics;
use crate::model::error::ApiError;
use key::Key;
use target::Target;

/// The means to send push messages, as far as they are had before there is a data directory.
pub struct PushMeans {
    client: HttpsClient,
    /// The key that the settings name.
    key: Option<Key>,
}

/// Removes a subscription that its push service has ended from a client.
pub(crate) type Forget = Arc<dyn Fn(Arc<str>, Arc<PushSubscription>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The sender of push messages, as shards and requests know it.
pub(crate) struct Push {
    client: HttpsClient,
    key: Key,
    contact: String,
    every: Duration,
    ttl_s: u64,
    sends: usize,
    sends_per_origin: usize,
    /// Places of messages that wait.
    places: Arc<Semaphore>,
    quota: Arc<Quota>,
    queue: mpsc::Sender<Arc<Target>>,
    metrics: Arc<Metrics>,
}

impl PushMeans {
    /// Finds them; `None` where push is off, or where this machine trusts nobody and no setting names certificates. Blocks.
    ///
    /// # Errors
    /// A key, or certificates to know push services by, that the settings name and that cannot be read.
    pub(crate) fn find(config: &Config) -> anyhow::Result<Option<Self>> {
        let settings = &config.push;
        if !settings.enabled {
            return Ok(None);
        }
        let key = (!settings.key.is_empty()).then(|| Key::read(Path::new(&settings.key))).transpose()?;
        let trust = Trust {
            ca: &settings.ca,
            ca_setting: "push.ca",
            is_private_allowed: settings.private_addresses,
            private_setting: "push.private_addresses",
        };
        match HttpsClient::new(trust) {
            Ok(client) => Ok(Some(Self { client, key })),
            Err(why) if settings.ca.is_empty() => {
                tracing::warn!("no push messages are sent: {why}");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Sees that the key of a data directory, if it has one, can be read.
///
/// # Errors
/// Why it cannot.
pub(crate) fn verify_key(data: &Path) -> anyhow::Result<()> {
    Key::verify(data)
}

impl Push {
    /// Makes the sender, and the queue that its courier takes from. Blocks.
    ///
    /// # Errors
    /// A key in the data directory that can be neither read nor made.
    pub(crate) fn new(
        means: PushMeans,
        config: &Config,
        quota: Arc<Quota>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<(Arc<Self>, mpsc::Receiver<Arc<Target>>)> {
        let PushMeans { client, key } = means;
        let settings = &config.push;
        let key = match key {
            Some(key) => key,
            None if config.store.data.is_empty() => Key::passing()?,
            None => Key::of_directory(Path::new(&config.store.data))?,
        };
        let (queue, received) = mpsc::channel(settings.queue);
        let push = Self {
            client,
            key,
            contact: settings.contact.clone(),
            every: Duration::from_secs(settings.every_s),
            ttl_s: settings.ttl_s,
            sends: settings.sends,
            sends_per_origin: settings.sends_per_origin,
            places: Arc::new(Semaphore::new(settings.queue)),
            quota,
            queue,
            metrics,
        };
        Ok((Arc::new(push), received))
    }

    /// Makes the courier, which is to be run.
    pub(crate) fn courier(self: &Arc<Self>, queue: mpsc::Receiver<Arc<Target>>, forget: Forget) -> Courier {
        Courier::new(Arc::clone(self), queue, forget)
    }

    /// The public key as browsers take it.
    pub(crate) fn public_key(&self) -> &str {
        self.key.public()
    }

    /// Refuses a subscription whose push service may not be asked. That is found out again at each message.
    pub(crate) async fn check(&self, subscription: &PushSubscription) -> Result<(), ApiError> {
        let checked = self.client.check(&subscription.endpoint).await;
        checked.map_err(|error: HttpsError| ApiError::invalid("/endpoint", error.to_string()))
    }
}
