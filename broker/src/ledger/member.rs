//! Follows the ledger until this broker is the active one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::jetstream::Member;
use cluster::ledger::{Answer, ChainError, FollowError, Standby, Status, Timing, Writer};
use cluster::log::Log as _;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::owner::Owner;
use super::{BEAT, Cluster};
use crate::config::{self, Config};
use crate::store::Replica;

/// How often it is looked who is there.
const LOOK: Duration = Duration::from_millis(1_000);
/// How long no look may succeed before another server is tried: as long as a time to live.
const BLIND: Duration = Duration::from_secs(5);
/// How long a standby waits for answers before it asks what is due.
const TICK: Duration = Duration::from_millis(20);

/// Follows the cluster's ledger, and returns when this broker is the active one; `None` where it is to stop before that. `note` gets the
/// number of the last row that was carried out.
///
/// # Errors
/// Settings of the broker or of NATS with which it cannot work, a data directory that cannot be had or written, and a ledger that cannot be read.
pub(crate) async fn follow(
    config: &Config,
    shutdown: &CancellationToken,
    note: impl Fn(u64),
) -> anyhow::Result<Option<(Owner, Replica)>> {
    let dir = Path::new(&config.store.data);
    let (mut replica, member) = Replica::take(dir, config.server.world)?;
    let is_new = !replica.is_there()?;
    let Some(cluster) = Cluster::open(&config.cluster, is_new, shutdown).await? else { return Ok(None) };
    let nonce = rand::random();
    let config::Cluster { url, partition, partitions, .. } = config.cluster.clone();
    let (is_leaving, is_owner) = (false, false);
    let me = Member { name: member.clone(), nonce, url, is_leaving, partition, partitions, is_owner };
    tracing::info!(member, "follows the cluster's ledger, and takes over when no broker is active");
    loop {
        let known = Replica::known(dir);
        let standby = Standby::new(member.clone(), nonce, Timing::default(), replica).expecting(known);
        match Following::begin(&cluster, standby, &me, dir).run(shutdown, &note).await? {
            None => return Ok(None),
            // The ledger has a later snapshot: what was deleted is in the file and not in the ledger. Or it went back.
            Some(Followed::Anew(found)) => replica = found,
            Some(Followed::Owner(writer, replica)) => {
                tracing::info!(member, rows = writer.committed(), "took over: this is the active broker");
                let me = Member { is_owner: true, ..me };
                return Ok(Some((Owner::new(cluster, *writer, me, dir), replica)));
            }
        }
    }
}

enum Followed {
    Owner(Box<Writer>, Replica),
    Anew(Replica),
}

struct Following<'a> {
    cluster: &'a Cluster,
    standby: Standby<Replica>,
    me: &'a Member,
    dir: &'a Path,
    begun: Instant,
    call_tasks: JoinSet<Answer>,
    look_tasks: JoinSet<Looked>,
    was_sealing: bool,
    /// The sequence of the last record that was noted.
    noted: u64,
    /// When a look succeeded, or another server was tried.
    seen_at: Instant,
}

/// The outcome of what is asked from time to time.
enum Looked {
    Beats(Vec<cluster::ledger::Beat>),
    Begin(u64),
    Nothing,
}

impl<'a> Following<'a> {
    fn begin(cluster: &'a Cluster, standby: Standby<Replica>, me: &'a Member, dir: &'a Path) -> Self {
        let (call_tasks, look_tasks) = (JoinSet::new(), JoinSet::new());
        let (begun, noted) = (Instant::now(), Replica::known(dir).map_or(0, |known| known.sequence));
        let (was_sealing, seen_at) = (false, begun);
        Self { cluster, standby, me, dir, begun, call_tasks, look_tasks, was_sealing, noted, seen_at }
    }

    async fn run(
        mut self,
        shutdown: &CancellationToken,
        note: &impl Fn(u64),
    ) -> anyhow::Result<Option<Followed>> {
        let [mut beat, mut look, mut tick] = [BEAT, LOOK, TICK].map(interval);
        for timer in [&mut beat, &mut look, &mut tick] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            match self.standby.status() {
                Status::Following => self.was_sealing = false,
                Status::Sealing => {
                    if !std::mem::replace(&mut self.was_sealing, true) {
                        let owner = self.standby.owner();
                        if self.standby.has_owner_left() {
                            tracing::info!(?owner, "the active broker has left: taking over");
                        } else {
                            tracing::info!(?owner, "the active broker is gone: taking over");
                        }
                    }
                }
                Status::Owner => {
                    let (writer, replica) =
                        self.standby.into_writer().map_err(|_| anyhow::anyhow!("an owner does not write"))?;
                    return Ok(Some(Followed::Owner(Box::new(writer), replica)));
                }
                Status::Failed(error @ FollowError::Chain(ChainError::WentBack { .. })) => {
                    tracing::error!(%error, "begins anew with what the cluster's ledger has");
                    Replica::note_went_back(self.dir);
                    return Ok(Some(Followed::Anew(self.standby.into_state())));
                }
                Status::Failed(error) => {
                    let error = anyhow::Error::new(error.clone());
                    return Err(error.context("the cluster's ledger cannot be followed"));
                }
            }
            while let Some(request) = self.standby.poll(self.begun.elapsed()) {
                let log = Arc::clone(&self.cluster.log);
                self.call_tasks.spawn(async move { request.make(&*log).await });
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ok(None),
                Some(answer) = self.call_tasks.join_next() => {
                    // Carrying out rows writes the file, and this is a thread that may block.
                    self.standby.answer(self.begun.elapsed(), answer?);
                    note(self.standby.applied());
                }
                Some(looked) = self.look_tasks.join_next() => match looked? {
                    Looked::Beats(beats) => {
                        self.seen_at = Instant::now();
                        self.standby.look(self.begun.elapsed(), &beats);
                    }
                    Looked::Begin(first) if self.is_behind(first) => return Ok(Some(Followed::Anew(self.standby.into_state()))),
                    Looked::Begin(_) | Looked::Nothing => {}
                },
                _ = beat.tick() => self.beat(),
                _ = look.tick() => self.look(),
                _ = tick.tick() => {}
            }
        }
    }

    /// Whether the log has been truncated behind the record with which this member began.
    fn is_behind(&self, first: u64) -> bool {
        self.standby.is_whole() && self.standby.status() == Status::Following && first > self.standby.begin()
    }

    fn beat(&mut self) {
        let (members, me) = (Arc::clone(&self.cluster.members), self.me.clone());
        self.look_tasks.spawn(async move {
            // A standby that is not heard of is not missed.
            let _ = members.beat(&me).await;
            Looked::Nothing
        });
    }

    fn look(&mut self) {
        if let Some(last) = self.standby.last().filter(|last| last.sequence > self.noted) {
            self.noted = last.sequence;
            Replica::note_known(self.dir, last);
        }
        let (members, log) = (Arc::clone(&self.cluster.members), Arc::clone(&self.cluster.log));
        if self.seen_at.elapsed() > BLIND {
            self.seen_at = Instant::now();
            let log = Arc::clone(&log);
            self.look_tasks.spawn(async move {
                log.reconnect().await;
                Looked::Nothing
            });
        }
        self.look_tasks.spawn(async move {
            let Ok(seen) = members.look().await else { return Looked::Nothing };
            Looked::Beats(seen.into_iter().map(|(member, count)| member.beat(count)).collect())
        });
        self.look_tasks.spawn(async move {
            log.bounds().await.map_or(Looked::Nothing, |bounds| Looked::Begin(bounds.first))
        });
    }
}
