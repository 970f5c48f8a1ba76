//! The members of the cluster, as the active broker tells them.

use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::jetstream::{Member, Members};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use wire::{ClusterMember, ClusterRole};

use crate::model::error::ApiError;
use xxhash_rust::xxh3::xxh3_64;

/// Looks at the members, no more often than they say that they are there.
#[derive(Debug)]
pub(crate) struct Seen {
    members: Arc<Members>,
    me: Member,
    name: String,
    homes: Homes,
    /// An async mutex: those that ask at the same time wait for one look, which ends within a second.
    last: Mutex<Option<(Instant, Looked)>>,
}

/// Where the clients of each partition are served.
#[derive(Debug)]
pub(crate) struct Homes {
    /// The partition of this broker, from 0 on.
    own: usize,
    /// The addresses of the active brokers, and when each was seen last. A std mutex: held for a copy.
    urls: StdMutex<Vec<Option<(String, Instant)>>>,
}

/// The members by name, or why they are not known.
type Looked = Result<Vec<ClusterMember>, String>;

/// How long an active broker counts as one that is not seen any more: while NATS elects a leader, none can say that it is there.
const REMEMBERED: Duration = Duration::from_secs(10);
/// How long a look counts, also one that failed.
const FRESH: Duration = Duration::from_secs(1);

impl Seen {
    pub(super) fn new(members: Arc<Members>, me: Member, name: String, partitions: u32) -> Self {
        let (own, urls) = (me.partition.saturating_sub(1) as usize, vec![None; partitions as usize]);
        let homes = Homes { own, urls: StdMutex::new(urls) };
        Self { members, me, name, homes, last: Mutex::new(None) }
    }

    /// Where the clients of each partition are served.
    pub(crate) fn homes(&self) -> &Homes {
        &self.homes
    }

    /// Looks each second where the clients of each partition are served, until the broker has ended.
    pub(crate) async fn watch(self: Arc<Self>, ended: CancellationToken) {
        loop {
            // What was seen last counts on while NATS does not answer.
            let _ = self.cluster(None).await;
            if ended.run_until_cancelled(tokio::time::sleep(FRESH)).await.is_none() {
                return;
            }
        }
    }

    /// The cluster's name, its members by name, and where a client is served, by its name inside. Asks NATS once a second at most, and waits a
    /// second for it.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where NATS does not answer.
    pub(crate) async fn cluster(&self, client: Option<&str>) -> Result<wire::Cluster, ApiError> {
        let members = latest(&self.last, async || self.look().await).await.map_err(ApiError::NotStored)?;
        let client_url = client.and_then(|client| self.homes.url_of(client));
        let partitions = self.homes.count();
        Ok(wire::Cluster { name: Some(self.name.clone()), partitions, members, client_url })
    }

    async fn look(&self) -> Looked {
        let seen = self.members.look().await.map_err(|error| error.to_string())?;
        self.homes.note(seen.iter().map(|(member, _)| member));
        let mut members: Vec<_> = seen.into_iter().map(|(member, _)| self.told(member)).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(members)
    }

    /// Only an active broker answers. Of its own partition it is the one.
    fn told(&self, member: Member) -> ClusterMember {
        let is_active = if member.partition == self.me.partition {
            member.nonce == self.me.nonce
        } else {
            member.is_owner
        };
        let role = if is_active { ClusterRole::Active } else { ClusterRole::Standby };
        let partition = self.homes.count().map(|_| member.partition);
        ClusterMember {
            name: member.name,
            url: Some(member.url).filter(|url| !url.is_empty()),
            role,
            partition,
        }
    }
}

impl Homes {
    /// How many partitions there are, if more than one.
    fn count(&self) -> Option<u32> {
        let count = self.urls().len();
        if count > 1 { u32::try_from(count).ok() } else { None }
    }

    fn urls(&self) -> MutexGuard<'_, Vec<Option<(String, Instant)>>> {
        self.urls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note<'a>(&self, members: impl Iterator<Item = &'a Member>) {
        let mut urls = self.urls();
        let count = urls.len();
        // Others do not know this cluster.
        for member in members.filter(|member| member.is_owner && member.partitions as usize == count) {
            if let Some(url) = urls.get_mut(member.partition.saturating_sub(1) as usize) {
                *url = (!member.is_leaving).then(|| (member.url.clone(), Instant::now()));
            }
        }
    }

    /// The partition of a client, by its name inside, from 0 on. All brokers of all versions deal clients out alike.
    fn of(client: &str, count: usize) -> usize {
        usize::try_from(xxh3_64(client.as_bytes()) % count.max(1) as u64).unwrap_or_default()
    }

    /// Where a client is served, by its name inside, if an active broker is known there.
    fn url_of(&self, client: &str) -> Option<String> {
        let urls = self.urls();
        Self::at(&urls, Self::of(client, urls.len()))
    }

    fn at(urls: &[Option<(String, Instant)>], partition: usize) -> Option<String> {
        let (url, seen_at) = urls.get(partition)?.as_ref()?;
        (seen_at.elapsed() < REMEMBERED).then(|| url.clone())
    }

    /// Where the clients of all other partitions are served.
    ///
    /// # Errors
    /// [`ApiError::NotStored`] where no broker is known to serve one.
    pub(crate) fn others(&self) -> Result<Vec<String>, ApiError> {
        let urls = self.urls();
        let others = (0..urls.len()).filter(|partition| *partition != self.own);
        others.map(|partition| Self::at(&urls, partition).ok_or_else(|| unserved(partition))).collect()
    }

    /// Refuses what is about a client that another broker serves, by its name inside.
    ///
    /// # Errors
    /// [`ApiError::Elsewhere`], and [`ApiError::NotStored`] where no broker is known to serve it.
    pub(crate) fn check(&self, client: &str) -> Result<(), ApiError> {
        let urls = self.urls();
        let partition = Self::of(client, urls.len());
        if partition == self.own {
            return Ok(());
        }
        Err(match Self::at(&urls, partition) {
            Some(url) => ApiError::Elsewhere { url },
            None => unserved(partition),
        })
    }
}

/// The refusal where no broker is known to serve a partition, by its number from 0 on.
fn unserved(partition: usize) -> ApiError {
    ApiError::NotStored(format!("no broker serves partition {} of the cluster now", partition + 1))
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

    /// The partitions, of three, of clients `car-0` to `car-5`.
    const DEALT: [usize; 6] = [2, 0, 1, 2, 0, 0];

    fn member(partition: u32, nonce: u64, is_owner: bool) -> Member {
        let (name, url) = (nonce.to_string(), format!("http://{nonce}"));
        Member { name, nonce, url, is_leaving: false, partition, partitions: 3, is_owner }
    }

    #[test]
    fn clients_are_where_the_owner_of_their_partition_was_seen_last() {
        let names = ["car-0", "car-1", "car-2", "car-3", "car-4", "car-5"];
        // Brokers of all versions have to agree.
        assert_eq!(names.map(|name| Homes::of(name, 3)), DEALT);
        let homes = Homes { own: 0, urls: StdMutex::new(vec![None; 3]) };
        let of = |partition| names[DEALT.iter().position(|of| *of == partition).expect("some are there")];
        assert_eq!(homes.check(of(0)), Ok(()));
        assert!(matches!(homes.check(of(1)), Err(ApiError::NotStored(_))));
        homes.note(
            [
                member(2, 7, true),
                member(2, 8, false),
                member(3, 9, true),
                member(9, 1, true),
                Member { partitions: 2, ..member(2, 5, true) },
            ]
            .iter(),
        );
        assert_eq!(homes.check(of(1)), Err(ApiError::Elsewhere { url: "http://7".to_owned() }));
        assert_eq!(homes.url_of(of(2)).as_deref(), Some("http://9"));
        // One that is not seen for a while may be there.
        homes.note([].iter());
        assert_eq!(homes.url_of(of(1)).as_deref(), Some("http://7"));
        homes.note([Member { is_leaving: true, ..member(2, 7, true) }].iter());
        assert_eq!(homes.url_of(of(1)), None);
    }

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
