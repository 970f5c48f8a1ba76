//! Tests of shards whose disk becomes full.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use matcher::geo::World;

use super::{Coming, Command, Dealing, Receiver, Shard, Shards};
use crate::config::{Config, WorldName};
use crate::engines::Engines;
use crate::ingest::Behalf;
use crate::ingest::feature::FeatureReader;
use crate::ingest::position::PositionReader;
use crate::ingest::subscription::SubscriptionReader;
use crate::model::clock::paused;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::sessions::{Restored, Shared};
use crate::store::inline::{InlineStore, TestDisk};

const DISK_BYTES: u64 = 100 << 20;
/// The part of such a disk that is left to removals.
const RESERVE: u64 = 8 << 20;
/// The shard that writes live events, and the one that comes to events before it.
const WRITER: usize = 0;
const AHEAD: usize = 1;

/// Two shards that take a step when they are told to.
struct Bench {
    disk: TestDisk,
    store: InlineStore,
    shards: Shards,
    workers: Vec<(Shard, Receiver)>,
    config: Config,
    client: Arc<str>,
}

impl Bench {
    fn new() -> Self {
        paused::pause(0);
        let disk = TestDisk::sized(DISK_BYTES);
        let (store, _) = InlineStore::open(&disk, 1 << 20, true, None).expect("a new store");
        let mut config = Config::default();
        config.server.world = WorldName::Planar;
        config.server.shards = 2;
        let engines = Engines::find(&config).expect("there are engines");
        let shared = Shared::new(&config, engines.count());
        shared.health.watch(store.shortage());
        let (shards, workers) = Shards::make(
            &config,
            engines,
            &shared,
            |_| Some(Box::new(store.clone())),
            Restored::default(),
            Dealing::with_seed(1, foldhash::SharedSeed::global_fixed()),
        );
        Self { disk, store, shards, workers, config, client: "a".into() }
    }

    /// Has a shard do all that waits for it.
    fn step(&mut self, index: usize) {
        let (shard, queue) = &mut self.workers[index];
        let mut commands: Vec<_> = std::iter::from_fn(|| queue.take_one()).collect();
        assert!(shard.step(&mut commands).is_continue());
    }

    fn done<T>(&mut self, asked: impl Future<Output = T>) -> T {
        let mut asked = pin!(asked);
        if let Some(done) = asked.as_mut().now_or_never() {
            return done;
        }
        self.step(AHEAD);
        self.step(WRITER);
        asked.now_or_never().expect("it is answered")
    }

    fn install(&mut self, id: &str) -> Result<(), ApiError> {
        let reader =
            SubscriptionReader::new(World::Planar, self.config.limits.clone(), self.config.outbox.overflow);
        let subscription = Box::new(reader.parse(id, r#"{"filters":[{}]}"#).expect("a subscription"));
        let (shards, client) = (self.shards.clone(), Arc::clone(&self.client));
        let install = |client, reply| Command::Install {
            client,
            subscription,
            change: None,
            owner: None,
            answer: None,
            reply,
        };
        self.done(async { shards.ask(&client, install).await? }).map(drop)
    }

    fn remove(&mut self, id: &str) -> Result<bool, ApiError> {
        let (shards, client, id) = (self.shards.clone(), Arc::clone(&self.client), id.into());
        let remove = |client, reply| Command::Remove { client, id, confinement: None, reply };
        self.done(async { shards.ask(&client, remove).await? })
    }

    fn forget(&mut self) -> Result<bool, ApiError> {
        let (shards, client) = (self.shards.clone(), Arc::clone(&self.client));
        self.done(async { shards.ask(&client, |client, reply| Command::Forget { client, reply }).await? })
    }

    fn revoke(&mut self, id: &str) -> Result<bool, ApiError> {
        let shards = self.shards.clone();
        self.done(async { shards.revoke(&id.into(), None).await })
    }

    fn move_client(&mut self) -> Result<(), ApiError> {
        let moved = PositionReader::new(World::Planar, &self.config.limits).parse(r#"{"coordinates":[0,0]}"#);
        let (shards, client, receipt) = (self.shards.clone(), Arc::clone(&self.client), Completion::new());
        self.done(async {
            shards.move_client(&client, moved.expect("a position"), None, Some(&receipt)).await?;
            receipt.settled().await
        })
    }

    fn is_short(&self) -> bool {
        self.store.shortage().is_short()
    }
}

#[test]
fn on_a_full_disk_removals_alone_are_taken() {
    let mut bench = Bench::new();
    bench.install("s").expect("there is room");
    bench.install("t").expect("there is room");
    bench.disk.leave_free(RESERVE - 1);
    bench.move_client().expect("it is not known to be full yet");
    assert!(bench.is_short());
    assert_eq!(bench.install("u"), Err(ApiError::Full));
    assert_eq!(bench.move_client(), Err(ApiError::Full));
    assert_eq!(bench.remove("s"), Ok(true));
    assert_eq!(bench.forget(), Ok(true));
    assert_eq!(bench.remove("t"), Ok(false), "it went with the client");
}

/// The shard that comes to an event first takes it for the one that writes it, which may be far behind: what is taken has to
/// fit on the disk all the same.
#[test]
fn what_is_taken_before_the_disk_is_full_has_room() {
    const LARGE: usize = 16_000;
    let mut bench = Bench::new();
    bench.disk.leave_free(2 * RESERVE);
    bench.move_client().expect("there is room");
    let features = FeatureReader::new(World::Planar, &bench.config.limits, 1);
    let text = "x".repeat(LARGE);
    let coming = |number: usize, receipt: &Arc<Completion>| {
        let properties = format!(r#"{{"a":"{text}","b":"{text}","c":"{text}"}}"#);
        let geometry = r#"{"type":"Point","coordinates":[0,0]}"#;
        let event = format!(
            r#"{{"type":"Feature","id":"{number}","ttl_s":60,"geometry":{geometry},"properties":{properties}}}"#
        );
        let event = features.parse(Behalf::default(), &event).expect("an event");
        Coming { event, pass: None, receipt: Some(Arc::clone(receipt)) }
    };
    let mut taken = 0;
    while !bench.is_short() {
        let receipt = Completion::new();
        let mut events: Vec<_> = (taken..taken + 400).map(|number| coming(number, &receipt)).collect();
        let shards = bench.shards.clone();
        let published = shards.publish(&mut events).now_or_never().expect("the queues have room");
        assert_eq!(published, Err(ApiError::Full), "{} bytes", 400 * 3 * LARGE);
        assert!(events.len() < 400, "one alone is taken");
        taken += 400 - events.len();
        bench.step(AHEAD);
        bench.step(WRITER);
        let settled = receipt.settled().now_or_never().expect("it was written");
        assert!(settled.is_ok() || (bench.is_short() && settled == Err(ApiError::Full)), "{settled:?}");
    }
    assert!((taken * 3 * LARGE) as u64 > RESERVE / 4, "only {taken} were taken");
    assert_eq!(bench.shards.health.check_removal(), Ok(()), "a commit failed");
    assert_eq!(bench.revoke("0"), Ok(true));
}
