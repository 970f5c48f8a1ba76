//! Members of a cluster, in a bucket of the key-value store whose values have a time to live.

use std::time::Duration;

use async_nats::jetstream::kv::{Config, Operation, Store};
use async_nats::jetstream::stream::StorageType;
use async_nats::{Client, jetstream};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::ledger::Beat;

/// A member of a cluster, as it tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, which outlives the process.
    pub name: String,
    /// The random number of its process.
    pub nonce: u64,
    /// Where clients reach it. Empty where nothing was set.
    pub url: String,
    /// It is about to end, and appends nothing any more.
    pub is_leaving: bool,
    /// The partition whose ledger it follows, from 1 on.
    #[serde(default = "first")]
    pub partition: u32,
    /// How many partitions there are by its settings.
    #[serde(default = "first")]
    pub partitions: u32,
    /// Whether it is the owner of that ledger, as far as it knows.
    #[serde(default)]
    pub is_owner: bool,
}

fn first() -> u32 {
    1
}

/// The members that a bucket has.
#[derive(Clone, Debug)]
pub struct Members {
    store: Store,
}

/// Why a member was not noted, or the members not looked at. It says nothing of who is there.
#[derive(Debug, thiserror::Error)]
#[error("the bucket of the members: {why}")]
pub struct MembersError {
    why: String,
}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The first part of a member's key.
const PREFIX: &str = "member.";

impl Member {
    /// A beat of it, as a standby sees it.
    #[must_use]
    pub fn beat(&self, count: u64) -> Beat {
        Beat { nonce: self.nonce, count, is_leaving: self.is_leaving }
    }
}

impl Members {
    /// Opens a bucket, or makes it. Values are in memory and go after `ttl`.
    ///
    /// # Errors
    /// [`MembersError`].
    pub async fn open(
        client: Client,
        bucket: &str,
        replicas: usize,
        ttl: Duration,
    ) -> Result<Self, MembersError> {
        let mut context = jetstream::new(client);
        context.set_timeout(TIMEOUT);
        let config = Config {
            bucket: bucket.to_owned(),
            history: 1,
            max_age: ttl,
            storage: StorageType::Memory,
            num_replicas: replicas,
            ..Config::default()
        };
        Ok(Self { store: context.create_or_update_key_value(config).await.map_err(failed)? })
    }

    /// Says that a member is there, which has to be said again before the time to live is over.
    ///
    /// # Errors
    /// [`MembersError`].
    pub async fn beat(&self, member: &Member) -> Result<(), MembersError> {
        let value = serde_json::to_vec(member).map_err(failed)?;
        let put = self.store.put(format!("{PREFIX}{}", member.name), value.into());
        timeout(TIMEOUT, put).await.map_err(failed)?.map_err(failed)?;
        Ok(())
    }

    /// The members that are there, each with the number of its last beat.
    ///
    /// # Errors
    /// [`MembersError`].
    pub async fn look(&self) -> Result<Vec<(Member, u64)>, MembersError> {
        let look = async {
            let keys: Vec<String> =
                self.store.keys().await.map_err(failed)?.try_collect().await.map_err(failed)?;
            let mut members = Vec::new();
            for key in keys.into_iter().filter(|key| key.starts_with(PREFIX)) {
                let entry = self.store.entry(key).await.map_err(failed)?;
                let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) else { continue };
                // One that cannot be read is of a version that writes it otherwise.
                if let Ok(member) = serde_json::from_slice(&entry.value) {
                    members.push((member, entry.revision));
                }
            }
            Ok(members)
        };
        timeout(TIMEOUT, look).await.map_err(failed)?
    }
}

fn failed(why: impl ToString) -> MembersError {
    MembersError { why: why.to_string() }
}
