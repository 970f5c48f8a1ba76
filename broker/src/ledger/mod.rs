//! The ledger of a cluster, in a stream of NATS JetStream: a member follows it, and takes over when the active broker is gone.
//!
//! The crate `cluster` has the state machines. Here they are driven: [`member`] follows until this broker is the active one, and [`owner`] appends
//! what the store commits, until another broker is.

mod member;
mod owner;
mod seen;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cluster::jetstream::demands::{DemandError, check};
use cluster::jetstream::{Access, AccessError, JetStream, Members, Options};
use cluster::ledger::Timing;
use tokio_util::sync::CancellationToken;

use crate::config;

pub(crate) use member::follow;
pub(crate) use owner::Ownership;
pub(crate) use seen::Seen;

/// The servers, as far as a member needs them.
struct Cluster {
    log: Arc<JetStream>,
    members: Arc<Members>,
    name: String,
    /// The stream of events, where several brokers are active.
    events: Option<Arc<JetStream>>,
    partitions: u32,
}

/// How often a member says that it is there.
const BEAT: Duration = Duration::from_millis(1_500);
/// How long after a failure the servers are tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Failures between two lines in the log.
const TELL_EVERY: u32 = 10;

/// Why the servers cannot be used.
enum Fault {
    /// It may pass.
    Passing(anyhow::Error),
    /// Somebody has to set something.
    Lasting(anyhow::Error),
}

impl From<AccessError> for Fault {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Away(_) => Self::Passing(error.into()),
            AccessError::Setting(_) | AccessError::Refused(_) => Self::Lasting(error.into()),
        }
    }
}

impl From<DemandError> for Fault {
    fn from(error: DemandError) -> Self {
        match error {
            DemandError::Servers { .. } | DemandError::Gone { .. } | DemandError::NotOpened { .. } => {
                Self::Passing(error.into())
            }
            DemandError::Version { .. }
            | DemandError::SyncInterval { .. }
            | DemandError::SystemAccount { .. }
            | DemandError::MaxPayload { .. }
            | DemandError::Stream { .. }
            | DemandError::Undescribed { .. }
            | DemandError::Partitions { .. } => Self::Lasting(error.into()),
        }
    }
}

impl Cluster {
    /// Connects, and sees whether the servers keep what they acknowledge. Goes on trying while none answers; `None` where it is to stop. The
    /// stream is made for a new member alone: one that has followed a ledger would take an empty one for it.
    ///
    /// # Errors
    /// A setting of the broker or of the servers with which it cannot work.
    async fn open(
        settings: &config::Cluster,
        is_new: bool,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let mut tries = 0;
        loop {
            let tried = shutdown.run_until_cancelled(Self::try_open(settings, is_new)).await;
            match tried {
                None => return Ok(None),
                Some(Ok(cluster)) => return Ok(Some(cluster)),
                Some(Err(Fault::Lasting(error))) => return Err(error.context("cluster.nats")),
                Some(Err(Fault::Passing(error))) => {
                    if tries % TELL_EVERY == 0 {
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "the cluster's NATS servers cannot be used yet; they are tried again each second"
                        );
                    }
                    tries += 1;
                }
            }
            if shutdown.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                return Ok(None);
            }
        }
    }

    async fn try_open(settings: &config::Cluster, is_new: bool) -> Result<Self, Fault> {
        let file = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
        let ca = file(&settings.ca);
        let access = |servers: &str, credentials: &str| Access {
            servers: servers.to_owned(),
            credentials: file(credentials),
            ca: ca.clone(),
        };
        let replicas = settings.replicas;
        let user = access(&settings.nats, &settings.credentials);
        let is_same = settings.system_nats.is_empty() && settings.system_credentials.is_empty();
        let system = if is_same {
            user.clone()
        } else {
            let servers =
                if settings.system_nats.is_empty() { &settings.nats } else { &settings.system_nats };
            access(servers, &settings.system_credentials)
        };
        let asked = check(&system.connect("nearcast, demands").await?, replicas).await;
        match asked {
            // One of them may be down; the stream is there or cannot be made.
            Err(error @ DemandError::Servers { .. }) => {
                tracing::warn!(%error, "not all NATS servers of the cluster answer");
            }
            asked => asked?,
        }
        let client = user.connect("nearcast").await?;
        let name = &settings.name;
        let (mut stream, mut subject) = (format!("{name}-ledger"), format!("{name}.ledger"));
        let mut events = None;
        if settings.is_partitioned() {
            let (stream, subject) = (format!("{name}-events"), format!("{name}.events"));
            let options = Options { stream, subject, replicas, is_to_be_made: true };
            let bytes_max = NonZeroU64::new(settings.events_bytes).unwrap_or(NonZeroU64::MAX);
            let opened = JetStream::open_events(client.clone(), &options, bytes_max, settings.partitions);
            events = Some(Arc::new(opened.await?));
        }
        if settings.is_partitioned() {
            let place = format!("{}-of-{}", settings.partition, settings.partitions);
            stream = format!("{stream}-{place}");
            subject = format!("{subject}.{place}");
        }
        let options = Options { stream, subject, replicas, is_to_be_made: is_new };
        let log = JetStream::open(client.clone(), &options).await?;
        let members =
            Members::open(client, &format!("{name}-members"), replicas, Timing::default().ttl).await;
        let members = members.context("cluster.name").map_err(Fault::Passing)?;
        let seen = members.look().await.context("cluster.name").map_err(Fault::Passing)?;
        if let Some((other, _)) = seen.iter().find(|(other, _)| other.partitions != settings.partitions) {
            // Brokers that have ended are seen for some seconds.
            return Err(Fault::Passing(anyhow::anyhow!(
                "cluster {name} has {} partitions for broker {}, and {} for this one (cluster.partitions)",
                other.partitions,
                other.url,
                settings.partitions
            )));
        }
        Ok(Self {
            log: Arc::new(log),
            members: Arc::new(members),
            name: name.clone(),
            events,
            partitions: settings.partitions,
        })
    }
}
