//! The broker itself, without sockets and threads: its shards are driven step by step, its store writes to a disk in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use matcher::geo::World;

use crate::config::{AuthMode, Config, EngineName, WorldName};
use crate::engines::Engines;
use crate::ingest::feature::FeatureReader;
use crate::ingest::position::PositionReader;
use crate::ingest::subscription::SubscriptionReader;
use crate::ingest::{Behalf, Confinement, Zones};
use crate::model::record::StoredBody;
use crate::sessions::{Disk, Restored, Shared};
use crate::shard::{Dealing, Receiver, Shard, Shards};
use crate::store::inline::{InlineStore, TestDisk};
use crate::store::{Batch, Recovered, StoreError};

use super::plan::Plan;

/// The client that is confined, and the kind of events that it is confined to.
pub(super) const CONFINED: &str = "c1";
pub(super) const CONFINED_TO: u8 = 1;

/// One life of a broker.
pub(super) struct Broker {
    pub(super) shards: Shards,
    pub(super) workers: Vec<(Shard, Receiver)>,
    pub(super) features: FeatureReader,
    pub(super) subscriptions: SubscriptionReader,
    pub(super) positions: PositionReader,
    pub(super) store: InlineStore,
    pub(super) faults: Arc<Faults>,
    pub(super) config: Config,
}

/// Faults on the way to the disk, and counts of the commits that were tried and that came through.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Shards whose commits fail before they reach the disk.
    pub(super) fails: [AtomicBool; 3],
    pub(super) reached: AtomicU64,
    pub(super) written: AtomicU64,
}

/// A shard's way to the disk.
struct Way {
    store: InlineStore,
    shard: usize,
    faults: Arc<Faults>,
}

impl Disk for Way {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        assert!(!batch.is_empty(), "nothing has to be written");
        if self.faults.fails[self.shard].load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        self.faults.reached.fetch_add(1, Ordering::Relaxed);
        let outcome = self.store.commit(batch);
        self.faults.written.fetch_add(outcome.is_ok().into(), Ordering::Relaxed);
        outcome
    }

    fn new_body(&self) -> Arc<StoredBody> {
        self.store.new_body()
    }
}

/// Opens what is on a disk.
pub(super) fn open(disk: &TestDisk, plan: &Plan) -> Result<(InlineStore, Recovered), StoreError> {
    let wipe_every = plan.wipe_every_ms.map(Duration::from_millis);
    InlineStore::open(disk, plan.fold_rows, plan.folds_at_once, wipe_every)
}

/// To what a client is confined; one of them is, in all runs.
pub(super) fn confinement(client: &str) -> Option<Arc<Confinement>> {
    (client == CONFINED).then(|| {
        let text = format!(r#"{{"where":"kind = {CONFINED_TO}"}}"#);
        Arc::new(Confinement::read_again(&text, &Zones::default()).expect("a claim"))
    })
}

/// The behalf of everything: where there are tokens, it is of some tenant.
pub(super) fn behalf(confinement: Option<&Arc<Confinement>>) -> Behalf<'_> {
    Behalf { tenant: Some(""), confinement }
}

pub(super) fn dealing(seed: u64) -> Dealing {
    Dealing::with_seed(seed, foldhash::SharedSeed::global_fixed())
}

impl Broker {
    /// Starts on what was found.
    pub(super) fn start(
        store: InlineStore,
        recovered: Recovered,
        plan: &Plan,
        seed: u64,
    ) -> Result<Self, String> {
        let mut config = Config::default();
        config.server.world = WorldName::Planar;
        // Only tokens confine clients.
        config.auth.mode = AuthMode::Jwt;
        config.server.engine = if plan.scans { EngineName::Scan } else { EngineName::Cells };
        config.server.shards = plan.shards_count;
        config.limits.ttl_s = super::spec::TTL_MS / 1_000;
        config.queue.commands = 10_000;
        config.sessions.kept_frames = plan.bounds.frames;
        config.sessions.kept_bytes = plan.bounds.bytes;
        config.sessions.kept_s = plan.bounds.age_ms / 1_000;
        config.outbox.overflow = plan.bounds.overflow;
        config.outbox.frames = plan.outbox_frames;
        config.sessions.recent_events = plan.recent_events;
        config.store.ack_delay_ms = plan.ack_delay_ms;
        let engines = Engines::find(&config).map_err(|error| error.to_string())?;
        let shared = Shared::new(&config, engines.count());
        let features = FeatureReader::new(World::Planar, &config.limits, 1);
        let restored = Restored::read(recovered, &config, &features, None);
        let restored = restored.map_err(|error| error.to_string())?;
        let faults = Arc::<Faults>::default();
        let disk = |shard| {
            let way = Way { store: store.clone(), shard, faults: Arc::clone(&faults) };
            Some(Box::new(way) as Box<dyn Disk>)
        };
        let (shards, workers) = Shards::make(&config, engines, &shared, disk, restored, dealing(seed));
        let limits = config.limits.clone();
        Ok(Self {
            shards,
            workers,
            features,
            positions: PositionReader::new(World::Planar, &limits),
            subscriptions: SubscriptionReader::new(World::Planar, limits, config.outbox.overflow)
                .with_store(true),
            store,
            faults,
            config,
        })
    }
}
