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
    /// An async mutex: those that ask at the same time wait for one look, which ends within a second.
    last: Mutex<Option<(Instant, Looked)>>,
}

/// The members by name, or why they are not known.
type Looked = Result<Vec<ClusterMember>, String>;

/// How long a look counts, also one that failed.
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
        let members = latest(&self.last, async || self.look().await).await.map_err(ApiError::NotStored)?;
        Ok(wire::Cluster { name: Some(self.name.clone()), members })
    }

    async fn look(&self) -> Looked {
        let seen = self.members.look().await.map_err(|error| error.to_string())?;
        let mut members: Vec<_> = seen.into_iter().map(|(member, _)| self.told(member)).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(members)
    }

    /// Only the active broker answers.
    fn told(&self, member: Member) -> ClusterMember {
        let role = if member.nonce == self.me.nonce { ClusterRole::Active } else { ClusterRole::Standby };
        ClusterMember { name: member.name, url: Some(member.url).filter(|url| !url.is_empty()), role }
    }
}

/// Looks again where the last look does not count any more.
async fn latest<T: Clone>(last: &Mutex<Option<(Instant, T)>>, look: impl AsyncFnOnce() -> T) -> T {
    let mut last = last.lock().await;
    if let Some((at, found)) = &*last
        && at.elapsed() < FRESH
    {
        return found.clone();
    }
    let found = look().await;
    *last = Some((Instant::now(), found.clone()));
    found
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn many_that_ask_share_a_look_also_where_it_fails() {
        let (last, count) = (Mutex::new(None), Cell::new(0));
        let ask = || {
            latest(&last, async || -> Looked {
                count.set(count.get() + 1);
                tokio::task::yield_now().await;
                Err("NATS is away".to_owned())
            })
        };
        let (one, other) = tokio::join!(ask(), ask());
        assert!(one.is_err() && one == other && ask().await == one);
        assert_eq!(count.get(), 1);
        *last.lock().await = Some((Instant::now().checked_sub(FRESH).unwrap(), one));
        let _ = ask().await;
        assert_eq!(count.get(), 2);
    }
}
