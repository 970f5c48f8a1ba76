//! The members of the cluster, as the active broker tells them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::jetstream::{Member, Members};
use tokio::sync::Mutex;
use wire::{ClusterMember, ClusterRole};

use crate::model::error::ApiError;

/// Looks at the members, no more often than they say that they are there.
#[derive(Debug)]
pub(crate) struct Seen {
    members: Arc<Members>,
    me: Member,
    name: String,
    last: Mutex<Option<(Instant, Vec<ClusterMember>)>>,
}

/// How long a look counts.
const FRESH: Duration = Duration::from_secs(1);

impl Seen {
    pub(super) fn new(members: Arc<Members>, me: Member, name: String) -> Self {
        Self { members, me, name, last: Mutex::new(None) }
    }

    /// The cluster's name, and its members by name. Asks NATS once a second at most, and waits a second for it.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where NATS does not answer.
    pub(crate) async fn cluster(&self) -> Result<wire::Cluster, ApiError> {
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|(at, _)| at.elapsed() >= FRESH) {
            let looked = self.members.look().await;
            let seen = looked.map_err(|error| ApiError::NotStored(error.to_string()))?;
            let mut members: Vec<_> = seen.into_iter().map(|(member, _)| self.told(member)).collect();
            members.sort_by(|one, other| one.name.cmp(&other.name));
            *last = Some((Instant::now(), members));
        }
        let members = last.as_ref().map(|(_, members)| members.clone()).unwrap_or_default();
        Ok(wire::Cluster { name: Some(self.name.clone()), members })
    }

    /// Only the active broker answers.
    fn told(&self, member: Member) -> ClusterMember {
        let role = if member.nonce == self.me.nonce { ClusterRole::Active } else { ClusterRole::Standby };
        ClusterMember { name: member.name, url: Some(member.url).filter(|url| !url.is_empty()), role }
    }
}
