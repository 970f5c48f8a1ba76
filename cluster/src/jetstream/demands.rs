//! What NATS has to be set to, so that it keeps what it acknowledges.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::stream::Config;
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::time::timeout;

use crate::record::RECORD_BYTES_MAX;

/// Version of the server from which on appends that expect a last sequence are compared with those under way
/// (nats-io/nats-server#6194), and streams may be asked for it.
pub const VERSION_MIN: (u64, u64) = (2, 12);

/// What has to be set otherwise. The message says where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// A server is too old.
    #[error("NATS server {server} has version {found}: install 2.12 or newer")]
    Version {
        /// The server.
        server: String,
        /// Its version.
        found: String,
    },
    /// A server acknowledges what a loss of power takes away.
    #[error(
        "NATS server {server} syncs every {found:?}, so that a loss of power takes away what it acknowledged: \
         set `sync_interval: always` in its block `jetstream`"
    )]
    SyncInterval {
        /// The server.
        server: String,
        /// The time for which acknowledged records are not synced.
        found: Duration,
    },
    /// There are fewer servers with JetStream than a stream has replicas.
    #[error(
        "{found} NATS servers with JetStream answered and {wanted} replicas are asked for: add servers, or set fewer replicas"
    )]
    Servers {
        /// How many answered.
        found: usize,
        /// How many there have to be.
        wanted: usize,
    },
    /// The system account cannot be asked, so that nothing is known of how servers sync.
    #[error(
        "NATS servers do not say how they sync: give credentials of a user of the system account ({why})"
    )]
    SystemAccount {
        /// What the server said.
        why: String,
    },
    /// Messages may not be as large as a record.
    #[error("NATS takes messages of {found} bytes: set `max_payload: 1MB` or more")]
    MaxPayload {
        /// The greatest size of a message in bytes.
        found: usize,
    },
    /// A stream is there already and is set otherwise.
    #[error(
        "stream {stream} has `{setting}: {found}`: set it to {wanted}, with `nats stream edit` or by another name of the stream"
    )]
    Stream {
        /// The stream.
        stream: String,
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it has to be.
        wanted: String,
    },
    /// The stream has had records, and does not tell for how many partitions it was made.
    #[error(
        "stream {stream} has no description, so that nobody knows with how many partitions the cluster began: if this broker has the right number, \
         give the stream the description {wanted:?}"
    )]
    Undescribed {
        /// The stream.
        stream: String,
        /// What it would be made for.
        wanted: String,
    },
    /// The stream was made for another number of partitions.
    #[error(
        "stream {stream} has {found}, and this broker wants {wanted}: the number of partitions stays as it was when the cluster began"
    )]
    Partitions {
        /// The stream.
        stream: String,
        /// What it was made for.
        found: String,
        /// What the broker wants it for.
        wanted: String,
    },
    /// The stream is not there, and [`Options::is_to_be_made`](super::Options::is_to_be_made) says that it was.
    #[error(
        "stream {stream} is not there any more, and a new one would be empty: restore it, or begin anew with an empty data directory"
    )]
    Gone {
        /// The stream.
        stream: String,
    },
    /// The stream can neither be opened nor made.
    #[error("stream {stream} cannot be opened: {why}")]
    NotOpened {
        /// The stream.
        stream: String,
        /// What the server said.
        why: String,
    },
}

/// How a server of the system account answers `$SYS.REQ.SERVER.PING.JSZ`.
#[derive(Debug, Deserialize)]
struct Answer {
    server: Server,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
struct Server {
    name: String,
    ver: String,
}

#[derive(Debug, Deserialize)]
struct Data {
    #[serde(default)]
    disabled: bool,
    config: Option<Store>,
    meta_cluster: Option<Cluster>,
}

#[derive(Debug, Deserialize)]
struct Store {
    #[serde(default)]
    sync_always: bool,
    /// In nanoseconds.
    #[serde(default)]
    sync_interval: u64,
}

#[derive(Debug, Deserialize)]
struct Cluster {
    cluster_size: usize,
}

/// How long servers may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Asks all servers for their version and how they sync. `system` is connected as a user of the system account.
///
/// # Errors
/// The first [`DemandError`] that is found, server by server in the order of their names.
pub async fn check(system: &Client, replicas: usize) -> Result<(), DemandError> {
    let mut answers = ask(system).await.map_err(|why| DemandError::SystemAccount { why })?;
    answers.sort_by(|a, b| a.server.name.cmp(&b.server.name));
    let mut found = 0;
    for Answer { server, data } in answers {
        let Some(config) = data.filter(|data| !data.disabled).and_then(|data| data.config) else { continue };
        found += 1;
        if version(&server.ver).is_none_or(|version| version < VERSION_MIN) {
            return Err(DemandError::Version { server: server.name, found: server.ver });
        }
        if !config.sync_always {
            let found = Duration::from_nanos(config.sync_interval);
            return Err(DemandError::SyncInterval { server: server.name, found });
        }
    }
    if found < replicas { Err(DemandError::Servers { found, wanted: replicas }) } else { Ok(()) }
}

/// The answers of as many servers as there are, or of those that answer in time.
async fn ask(system: &Client) -> Result<Vec<Answer>, String> {
    let inbox = system.new_inbox();
    let mut replies = system.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
    let question = r#"{"config":true}"#.into();
    let asked = system.publish_with_reply("$SYS.REQ.SERVER.PING.JSZ", inbox, question).await;
    asked.map_err(|error| error.to_string())?;
    let (mut answers, mut servers) = (Vec::<Answer>::new(), usize::MAX);
    while answers.len() < servers
        && let Ok(Some(reply)) = timeout(TIMEOUT, replies.next()).await
    {
        if reply.status.is_some() {
            return Err("nobody answers `$SYS.REQ.SERVER.PING.JSZ`".to_owned());
        }
        let answer: Answer = serde_json::from_slice(&reply.payload).map_err(|error| error.to_string())?;
        let size = answer.data.as_ref().and_then(|data| data.meta_cluster.as_ref());
        servers = size.map_or(servers, |cluster| cluster.cluster_size);
        answers.push(answer);
    }
    if answers.is_empty() { Err("no server answers".to_owned()) } else { Ok(answers) }
}

fn version(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.split(['.', '-']).map(|part| part.parse().ok());
    parts.next().flatten().zip(parts.next().flatten())
}

pub(super) fn check_payload(found: usize) -> Result<(), DemandError> {
    // A record and the headers of NATS.
    if found < RECORD_BYTES_MAX + 1_024 { Err(DemandError::MaxPayload { found }) } else { Ok(()) }
}

pub(super) fn not_opened(stream: &str, why: &dyn std::fmt::Display) -> DemandError {
    DemandError::NotOpened { stream: stream.to_owned(), why: why.to_string() }
}

/// Sees whether a stream that was there keeps records as they are, and for as long as they are wanted.
pub(super) fn check_stream(wanted: &Config, found: &Config) -> Result<(), DemandError> {
    let stream = wanted.name.clone();
    let settings = [
        ("subjects", format!("{:?}", found.subjects), format!("{:?}", wanted.subjects)),
        ("retention", format!("{:?}", found.retention), format!("{:?}", wanted.retention)),
        ("discard", format!("{:?}", found.discard), format!("{:?}", wanted.discard)),
        ("storage", format!("{:?}", found.storage), format!("{:?}", wanted.storage)),
        ("num_replicas", found.num_replicas.to_string(), wanted.num_replicas.to_string()),
        ("max_age", format!("{:?}", found.max_age), format!("{:?}", wanted.max_age)),
        ("max_msgs_per_subject", found.max_messages_per_subject.max(0).to_string(), "0".to_owned()),
        ("deny_purge", found.deny_purge.to_string(), "false".to_owned()),
        ("allow_rollup_hdrs", found.allow_rollup.to_string(), "false".to_owned()),
    ];
    // A ledger that is full takes no more, whatever its size.
    let bytes = |config: &Config| config.max_bytes.max(0).to_string();
    let size = (wanted.max_bytes > 0).then(|| ("max_bytes", bytes(found), bytes(wanted)));
    if let Some((found, wanted)) = found.description.clone().zip(wanted.description.clone())
        && found != wanted
    {
        return Err(DemandError::Partitions { stream, found, wanted });
    }
    let other = settings.into_iter().chain(size).find(|(_, found, wanted)| found != wanted);
    let short = || {
        let (found, wanted) = (found.duplicate_window, wanted.duplicate_window);
        (found < wanted).then(|| ("duplicate_window", format!("{found:?}"), format!("{wanted:?} or more")))
    };
    match other.or_else(short) {
        None => Ok(()),
        Some((setting, found, wanted)) => Err(DemandError::Stream { stream, setting, found, wanted }),
    }
}
