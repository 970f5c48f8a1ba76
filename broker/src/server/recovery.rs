//! Taking up what outlives the broker, while connections are already answered.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use matcher::geo::World;
use tokio::runtime::Handle;
use tokio::task::JoinHandle as Task;
use tokio_util::sync::CancellationToken;

use super::Resources;
use super::reading::read;
use super::stage::{Stage, Tell};
use crate::config::{self, Config};
use crate::event_stream::{EventStream, Reader};
use crate::http::{App, Peers};
use crate::ingest::feature::FeatureReader;
use crate::ledger::{self, Ownership};
use crate::model::error::{ApiError, STANDBY};
use crate::push::{Forget, Push};
use crate::routing::Wayfinder;
use crate::sessions::{Restored, Sessions, Shared};
use crate::shard::{Command, Shards};
use crate::shutdown::Ending;
use crate::store::{Phase, Progress, Recovered, Store, StoreError};

/// How often it is told how far opening what is on disk has come.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Name of the last phase, in the words of [`Phase::name`].
const RESTORING: &str = "clients restored";

/// Name of the phase in which a broker of a cluster reads what came while its partition had no broker.
const CATCHING_UP: &str = "events of the cluster read";

/// How far it has come.
pub(super) struct Recovery {
    /// A std mutex: held for a copy.
    now: Mutex<ApiError>,
    tell: Tell,
}

/// The broker as it goes on from there.
pub(super) struct TakenUp {
    pub(super) app: Arc<App>,
    pub(super) threads: Vec<JoinHandle<Sessions>>,
    /// The courier of push messages, which goes on until the broker has ended.
    pub(super) courier: Option<Task<()>>,
    /// What finds areas along routes, likewise.
    pub(super) finding: Option<Task<()>>,
    /// What appends to the ledger of a cluster, likewise, and whether this broker may.
    pub(super) owning: Option<Task<()>>,
    pub(super) ownership: Option<Arc<Ownership>>,
    /// What appends to the cluster's stream of events and reads it, likewise.
    pub(super) streaming: Vec<Task<()>>,
}

impl Recovery {
    pub(super) fn new(tell: Tell) -> Arc<Self> {
        let now = ApiError::Recovering { phase: Phase::Verifying.name(), done: 0, of: 0 };
        Arc::new(Self { now: Mutex::new(now), tell })
    }

    /// The refusal that answers requests until the recovery is over.
    pub(super) fn refusal(&self) -> ApiError {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, phase: &'static str, done: u64, of: u64) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = ApiError::Recovering { phase, done, of };
    }

    /// Opens what the settings name, and goes on with all that is there; `None` where it was told to stop before that. Blocks.
    ///
    /// # Errors
    /// Data that is in use by another broker, of another world or version, damaged, or cannot be read or written, and a
    /// system without threads.
    pub(super) fn take_up(
        &self,
        config: &Arc<Config>,
        found: Resources,
        mut shared: Shared,
        ending: &Ending,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<TakenUp>> {
        let Resources { engines, check_engines, authenticator, base_map, streets, push, .. } = found;
        let features = FeatureReader::new(World::from(config.server.world), &config.limits, rand::random())
            .with_zones(authenticator.zones())
            .within(&shared.quotas.live_events, &shared.budget, engines.count());
        let (mut owning, mut ownership, mut events) = (None, None, None);
        let (store, recovered) = if config.cluster.is_set() {
            self.note(STANDBY, 0, 0);
            (self.tell)(Stage::Standby { name: &config.cluster.name });
            let note = |rows| self.note(STANDBY, rows, rows);
            // This thread may block, as carrying out what the ledger has does.
            let followed = Handle::current().block_on(ledger::follow(config, shutdown, note))?;
            let Some((mut owner, replica)) = followed else { return Ok(None) };
            let owned = owner.ownership();
            events = owner.events();
            let rows = owner.rows().context("the ledger has one store")?;
            owning = Some(tokio::spawn(owner.run(ending.ended.clone())));
            let (store, recovered) = self.opened(&config.store.data, Instant::now(), |tell| {
                Store::open_replica(replica, rows, config.server.world, tell)
            })?;
            store.count_in(shared.metrics.store.clone());
            shared.health.watch(store.shortage());
            shared.health.watch_lease(Arc::clone(&owned.lease));
            ownership = Some(owned);
            (Some(store), recovered)
        } else if config.store.data.is_empty() {
            tracing::info!("everything is kept in memory (store.data is empty)");
            (None, Recovered::default())
        } else {
            let (store, recovered) = self.open(&config.store, config.server.world)?;
            store.count_in(shared.metrics.store.clone());
            shared.health.watch(store.shortage());
            (Some(store), recovered)
        };
        if shutdown.is_cancelled() {
            return Ok(None);
        }
        let push = push.map(|means| {
            let (quota, metrics) = (Arc::clone(&shared.quotas.push_messages), Arc::clone(&shared.metrics));
            Push::new(means, config, quota, metrics)
        });
        let (push, waiting) = push.transpose()?.unzip();
        shared.push.clone_from(&push);
        self.note(RESTORING, 0, recovered.clients.len() as u64);
        shared.wayfinder = streets.as_ref().map(|streets| Wayfinder::new(Arc::clone(streets)));
        let mut restored = Restored::read(recovered, config, &features, streets.as_deref())?;
        let mut situations = std::mem::take(&mut restored.situations);
        let routed = std::mem::take(&mut restored.routed);
        if let (Some(store), Some(frontiers)) = (&store, restored.deal_frontiers(engines.count())) {
            store.commit(&frontiers)?;
        }
        let frontier = restored.frontier(engines.count());
        shared.stream = events.as_ref().map(|_| EventStream::new(rand::random()));
        let stream = shared.stream.clone();
        let (shards, threads) = Shards::start(config, engines, &shared, store.as_ref(), restored)?;
        let wayfinder = shared.wayfinder.clone();
        let finding = wayfinder.map(|wayfinder| wayfinder.run(shards.tell_routes(), ending.ended.clone()));
        let finding = finding.map(tokio::spawn);
        let courier = push.zip(waiting).map(|(push, waiting)| push.courier(waiting, forget_in(&shards)));
        let courier = courier.map(|courier| tokio::spawn(courier.run(ending.ended.clone())));
        let seen = ownership.as_ref().map(|owned| Arc::clone(&owned.seen));
        let partitioned = seen.clone().filter(|_| config.cluster.is_partitioned());
        let peers = partitioned.map(|seen| Peers::new(&config.cluster, seen)).transpose()?;
        let app = App::new(
            Arc::clone(config),
            features,
            shards,
            shared,
            authenticator,
            (check_engines, base_map, streets, seen, peers),
            ending,
        );
        let mut streaming = Vec::new();
        if let (Some(stream), Some(events), Some(ownership)) = (stream, events, &ownership) {
            self.note(CATCHING_UP, 0, 0);
            let has_caught_up = CancellationToken::new();
            let reader = Reader::new(Arc::clone(&stream), Arc::clone(&events), frontier);
            let read = read(reader, &app, ownership, has_caught_up.clone(), ending.ended.clone());
            let watch = Arc::clone(&ownership.seen).watch(ending.ended.clone());
            streaming.push(tokio::spawn(stream.append_to(events, ending.ended.clone())));
            streaming.extend([tokio::spawn(read), tokio::spawn(watch)]);
            // What comes to it before is answered when all has been read that was there before: better by another broker.
            Handle::current().block_on(async {
                tokio::select! {
                    () = has_caught_up.cancelled() => {}
                    () = ownership.lost.cancelled() => {}
                    () = shutdown.cancelled() => {}
                }
                // What they found was appended by the broker before this one.
                for situation in &mut situations {
                    let read = app.shards.findings_read(&situation.client, &situation.version).await;
                    (situation.told, situation.told_by_any) = read.unwrap_or_default();
                }
            });
        }
        app.situations.restore(situations);
        let watching = Arc::clone(&app);
        app.tasks.spawn(async move {
            for tenant in routed {
                watching.watch_slow_streets(&tenant).await;
            }
        });
        Ok(Some(TakenUp { app, threads, courier, finding, owning, ownership, streaming }))
    }

    fn open(&self, settings: &config::Store, world: config::WorldName) -> anyhow::Result<(Store, Recovered)> {
        let is_silent = Cell::new(!Store::is_in(Path::new(&settings.data)));
        self.opened(&settings.data, Instant::now(), |tell| {
            Store::open(settings, world, |progress| {
                // Only now, for a directory that cannot be had is never read.
                if !is_silent.replace(true) {
                    (self.tell)(Stage::Recovering { data: &settings.data });
                }
                tell(progress);
            })
        })
    }

    /// Opens a store, and says how far it is.
    fn opened(
        &self,
        path: &str,
        started: Instant,
        open: impl FnOnce(&dyn Fn(Progress)) -> Result<(Store, Recovered), StoreError>,
    ) -> anyhow::Result<(Store, Recovered)> {
        let told = Cell::new(started);
        let (store, recovered) = open(&|Progress { phase, done, of }| {
            self.note(phase.name(), done, of);
            if told.get().elapsed() >= TELL_EVERY {
                told.set(Instant::now());
                tracing::info!(path, phase = phase.name(), done, of, "opening the data");
            }
        })?;
        tracing::info!(
            path,
            clients = recovered.clients.len(),
            subscriptions = recovered.clients.iter().map(|client| client.subscriptions.len()).sum::<usize>(),
            kept_matches = recovered.clients.iter().map(|client| client.kept.len()).sum::<usize>(),
            live_events = recovered.live.len(),
            took_ms = started.elapsed().as_millis(),
            "opened the data"
        );
        Ok((store, recovered))
    }
}

/// How the courier removes a push subscription that is over from its client.
fn forget_in(shards: &Shards) -> Forget {
    let shards = shards.clone();
    Arc::new(move |client, subscription| {
        let shards = shards.clone();
        Box::pin(async move {
            let only = Some(subscription);
            let remove = |client, reply| Command::RemovePush { client, only, confinement: None, reply };
            // Where that is refused, the next message finds it over as well.
            let _ = shards.ask(&client, remove).await;
        })
    })
}
