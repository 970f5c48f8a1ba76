//! The clients of one shard: their subscriptions, their readers, and the offsets of what they get.

mod activity;
mod allowance;
mod attach;
mod audit;
mod commit;
mod confined;
mod corridors;
mod costs;
mod durable;
mod eviction;
mod explain;
mod explanation;
mod fanout;
mod findings;
mod frontier;
mod goodbye;
mod health;
mod idle;
mod listing;
mod lives_clock;
mod matching;
mod moving;
mod pushing;
mod querying;
mod recovery;
mod slots;
mod subscribing;
mod surveys;
mod tracking;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::engine::{Engine, Footprint, MatchRows};
use matcher::geo::{Position, World};
use matcher::live::{Effect, Fix, Moment, Settings, Survey, Tracker};
use matcher::subscription::ClientId;
use matcher::violated;
use wire::Fault;

use crate::admission::EngineTime;
use crate::budget::{self, Account, Budget, Kind};
use crate::config::{self, InaccurateFixes, Limits};
use crate::event_stream::EventStream;
use crate::ingest::Confinement;
use crate::limits::{ClientLimit, ClientPermit, Quotas};
use crate::metrics::Metrics;
use crate::model::clock::{self, Timeline};
use crate::model::delivery::OverflowName;
use crate::model::error::ApiError;
use crate::model::event::{Published, StreamPlace};
use crate::model::record::DroppedLives;
use crate::model::sent_offsets::SentOffsets;
use crate::model::tenant;
use crate::outbox::{Bounds, DeliveryLog, KeptBounds, KeptTotal, Outbox};
use crate::privacy::Rounding;
use crate::push::{Push, Subscribed};
use crate::routing::Wayfinder;
use crate::store::{StoredFinding, StoredSession};
use crate::telemetry::Telemetry;
use activity::{Activity, Evaluations};
use allowance::{Allowance, Taken};
use audit::Log;
pub(crate) use audit::{Asked, Known, Remembered, Told};
use commit::CommitBuffer;
pub(crate) use commit::{Answer, Disk};
use corridors::{HeldRoute, Routed};
pub(crate) use costs::Payer;
use costs::{Costs, Open, Recent};
use durable::Durable;
use eviction::EvictionOrder;
use fanout::NameLists;
pub(crate) use findings::State;
pub(crate) use health::Health;
use idle::Idle;
use listing::Listing;
pub(crate) use listing::Rank;
use lives_clock::LivesClock;
use matching::Matching;
pub(crate) use moving::Mover;
use querying::Questions;
pub(crate) use querying::{LivePage, LiveQuestion, Located};
use recovery::Unfinished;
pub(crate) use recovery::{Restored, RestoredSituation};
use slots::Slots;
use surveys::weight;
pub(crate) use surveys::{Heavy, HeavyClient};

/// The clients of one shard and the engine that matches for them. Used by the holder of the shard's turn.
pub(crate) struct Sessions {
    engine: Box<dyn Engine>,
    /// Has the subscriptions and positions that the engine has, and the live events.
    tracker: Tracker<Arc<Published>>,
    /// The moment from which the tracker's times count.
    started: Instant,
    /// When what is carried out now began.
    now: Moment,
    /// The time by which lives end.
    lives_clock: LivesClock,
    /// What it says now.
    lives_now: Moment,
    limits: Limits,
    client_limit: Arc<ClientLimit>,
    /// Accounts of the bytes that are held for connections, clients and tenants.
    budget: Budget,
    /// How the live objects stand to all subscriptions of this shard, as it counts for all clients.
    members_held: budget::Held,
    allowance: Allowance,
    metrics: Arc<Metrics>,
    ids: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    clients: Slots<Client>,
    subscriptions: Slots<Held>,
    rows: MatchRows,
    /// The recipients of events.
    log: Log,
    /// Makes numbers of tenants, where there are any.
    partitions: Option<foldhash::quality::RandomState>,
    /// Events that the engine has matched, each with every subscription.
    evaluations: Evaluations,
    /// Effects of the step at hand; kept for its memory.
    effects: Vec<Effect<Arc<Published>>>,
    /// Pairs of client and subscription of one event; kept for its memory.
    pairs: Vec<(u32, u32)>,
    outbox_bounds: Bounds,
    kept_bounds: KeptBounds,
    /// How much is retained for a situation.
    own_kept_bounds: KeptBounds,
    /// Kept matches over all shards.
    kept_total: Arc<KeptTotal>,
    /// When the oldest kept match of each session will have been kept for long enough; one for each durable session at most.
    dates: BTreeSet<(Instant, u32)>,
    /// Clients to forget because nothing is heard of them.
    idle: Idle,
    /// Clients that give way where all room is taken.
    heaviest: EvictionOrder,
    /// Working time of the thread when the step at hand began.
    worked_before: Duration,
    /// The time of the step, `now`, in Unix milliseconds.
    unix_ms: u64,
    timeline: Timeline,
    /// Live events whose lives are shorter by a clock that is in doubt: object, sequence number, and when they are over by it.
    doubtful: Vec<(Arc<str>, u64, u64)>,
    /// Changes that wait for the disk.
    ledger: CommitBuffer,
    /// Whether this shard writes the live events, which all of them have, and takes their records away.
    writes_live: bool,
    /// The place in the stream of events that this shard wants next, in a cluster that has one.
    next: Option<StreamPlace>,
    /// Names this shard among all.
    place: Box<str>,
    /// The last finding of each situation that the stream has brought, by the situation's client.
    findings_read: HashMap<Arc<str>, StoredFinding>,
    /// How far another run had got with the findings of each situation, by its version, until this run is past that.
    dealt: HashMap<Arc<str>, findings::LastDealt>,
    /// Work that another run of the broker did not come to the end of.
    unfinished: Unfinished,
    /// Deliveries of the batch at hand, counted once at its end.
    deliveries_count: u64,
    unread_count: u64,
    /// How others are shown where a client is.
    rounding: Option<Rounding>,
    /// Readers whose writers sleep although something waits for them.
    sleepers: Vec<Arc<Outbox>>,
    /// Whether so much is to be done that nobody is to write in the place of others now.
    is_pressed: bool,
    /// Engine time that clients have cost, over all shards.
    engine_time: Arc<EngineTime>,
    /// The payer of the command at hand.
    payer: Option<Payer>,
    matching: Matching,
    /// Time that it took to hold live events against subscriptions that stand.
    standing: Open,
    /// Listings under way.
    listings: VecDeque<Listing>,
    /// Questions for live events under way.
    queries: Questions,
    /// Clients whose moves are surveyed, over all shards.
    heavy: Arc<Heavy>,
    /// Findings ahead of the command at hand.
    survey: Option<Survey>,
    /// The sender of push messages.
    push: Option<Arc<Push>>,
    /// Finds where areas along routes lie.
    wayfinder: Option<Arc<Wayfinder>>,
    /// Number of the last question to it.
    last_asked: u64,
    /// The number of this shard, and how many there are.
    shard: usize,
    shards_count: usize,
}

/// How long before the process began the tracker's times begin.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

/// State that the sessions of all shards share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) client_limit: Arc<ClientLimit>,
    pub(crate) quotas: Quotas,
    /// Accounts of the bytes that are held for connections, clients and tenants.
    pub(crate) budget: Budget,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) kept: Arc<KeptTotal>,
    pub(crate) health: Arc<Health>,
    pub(crate) dropped_lives: Arc<DroppedLives>,
    /// How many there are. Several commit apart.
    pub(crate) shards_count: usize,
    /// The stream that events go through, in a cluster with several active brokers.
    pub(crate) stream: Option<Arc<EventStream>>,
    /// Where events are traced.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) engine_time: Arc<EngineTime>,
    pub(crate) heavy: Arc<Heavy>,
    /// The sender of push messages.
    pub(crate) push: Option<Arc<Push>>,
    /// Finds where areas along routes lie.
    pub(crate) wayfinder: Option<Arc<Wayfinder>>,
}

impl Shared {
    pub(crate) fn new(config: &config::Config, shards_count: usize) -> Self {
        let metrics = Arc::new(Metrics::new(shards_count));
        let quotas = Quotas::new(config);
        Self {
            client_limit: ClientLimit::new(config.limits.clients, Arc::clone(&quotas.clients)),
            quotas,
            budget: Budget::new(config),
            engine_time: EngineTime::new(config, &metrics),
            heavy: Arc::default(),
            metrics,
            kept: KeptTotal::new(config.sessions.kept_total_bytes as u64),
            health: Arc::default(),
            dropped_lives: Arc::default(),
            shards_count,
            stream: None,
            telemetry: None,
            push: None,
            wayfinder: None,
        }
    }
}

/// How a reader wants to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// A WebSocket. It gets `ready`, whatever it knew before.
    Ready,
    /// An event stream that begins.
    Fresh,
    /// A WebSocket that resumes after an offset of an epoch. It gets `ready`, too.
    ReadyAfter { epoch: String, offset: u64 },
    /// An event stream that goes on after an offset of an epoch.
    After { epoch: String, offset: u64 },
}

/// The place of a new reader in its session.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// Names the session.
    pub(crate) epoch: Arc<str>,
    /// The next delivery has the offset after this one.
    pub(crate) offset: u64,
    /// The number that the client has in its shard as long as it is not deleted.
    pub(crate) number: u32,
    /// Whether the client has subscriptions.
    pub(crate) has_subscriptions: bool,
}

/// The outcome of installing a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// Whether it replaced one of the same id.
    pub(crate) replaced: bool,
    /// The document in its normalised form, with what happened to it: nothing yet.
    pub(crate) document: String,
    /// What is probably not meant so.
    pub(crate) warnings: Vec<Fault>,
}

/// A client that has a position, a subscription, a reader or a push subscription. One without any of them is forgotten.
struct Client {
    name: Arc<str>,
    epoch: Arc<str>,
    /// Offset of the last delivery.
    offset: u64,
    /// Offset of the last delivery that readers may have. A delivery that has to be on disk and is not is held back, and so
    /// is everything after it.
    released: u64,
    /// The step in which what comes to it is held back, as it is for durable sessions always.
    held_step: u64,
    /// Its deliveries, once there is somebody to read them or they are retained.
    log: Option<Arc<DeliveryLog>>,
    /// Where its session is durable.
    durable: Option<Box<Durable>>,
    /// Whether something of it is on disk.
    is_stored: bool,
    /// To what the tokens are confined under which there is anything of it.
    confinement: Option<Arc<Confinement>>,
    /// The confinement as it is on disk.
    stored_confinement: Option<Arc<Confinement>>,
    /// When something last came from it, or its last connection ended.
    heard: Instant,
    /// When it last told a position, in Unix milliseconds.
    positioned_ms: Option<u64>,
    subscriptions: BTreeMap<Arc<str>, u32>,
    /// Constraints of all subscriptions.
    constraints: u64,
    /// How much there is to test for them at each event.
    weight: u64,
    /// Where that is much.
    heavy: Option<HeavyClient>,
    /// Where it has areas along routes.
    routed: Option<Box<Routed>>,
    /// Its connections.
    readers: Vec<Arc<Outbox>>,
    /// Lists of names of the last deliveries.
    lists: NameLists,
    /// Where its readers note what they take, once there is a need.
    recipient: Option<Arc<SentOffsets>>,
    /// Account of the bytes that are held for the client, once something is.
    account: Option<Arc<Account>>,
    costs: Costs,
    /// Where it is sent push messages.
    push: Option<Box<Subscribed>>,
    _permit: ClientPermit,
}

impl Client {
    /// Whether what comes to it is held back, although its session is not durable.
    fn is_held(&self, ledger: &CommitBuffer) -> bool {
        self.released + 1 < self.offset || (self.held_step == ledger.step() && ledger.has_disk())
    }

    /// Its log; one is made where there is none.
    fn log(
        &mut self,
        bounds: Bounds,
        budget: &Budget,
        total: &Arc<KeptTotal>,
        metrics: &Arc<Metrics>,
    ) -> &Arc<DeliveryLog> {
        let account = self.account.get_or_insert_with(|| budget.client(&self.name));
        self.log.get_or_insert_with(|| {
            let held = account.hold_anyway(Kind::Outbox, 0);
            DeliveryLog::new(bounds, self.released, held, Arc::clone(total), Arc::clone(metrics))
        })
    }

    /// How many deliveries are retained for it.
    fn kept_count(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.lock().kept_count())
    }

    fn recipient(&mut self) -> &Arc<SentOffsets> {
        self.recipient.get_or_insert_with(|| SentOffsets::new(Arc::clone(&self.name)))
    }

    fn account(&mut self, budget: &Budget) -> &Arc<Account> {
        self.account.get_or_insert_with(|| budget.client(&self.name))
    }
}

/// A subscription.
struct Held {
    client: u32,
    id: Arc<str>,
    /// The id as JSON.
    name: Arc<str>,
    durable: bool,
    /// Whether it is on disk.
    is_stored: bool,
    document: Arc<str>,
    overflow: Option<OverflowName>,
    /// Whether every event that satisfies it is for it, live or not.
    takes_all: bool,
    /// The connection that it ends with.
    owner: Option<u64>,
    activity: Activity,
    taken: Taken,
    weight: u64,
    cost: Recent,
    /// Its areas along routes.
    routes: Box<[HeldRoute]>,
}

impl Sessions {
    /// Makes the sessions of a shard. The first shard writes the live events. The seed decides which of the long work is
    /// looked into.
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        config: &config::Config,
        shared: &Shared,
        disk: Option<Box<dyn Disk>>,
        index: usize,
        seed: u64,
    ) -> Self {
        let Shared {
            client_limit,
            quotas,
            budget,
            metrics,
            kept,
            health,
            dropped_lives,
            shards_count,
            engine_time,
            heavy,
            push,
            wayfinder,
            ..
        } = shared.clone();
        let config::Sessions { kept_frames, kept_bytes, kept_s, .. } = config.sessions;
        let delay = Duration::from_millis(config.store.ack_delay_ms);
        let limits = config.limits.clone();
        let allowance = Allowance::new(config, &quotas, &budget);
        let log_held = budget.broker().hold_anyway(Kind::DeliveryLog, 0);
        let settings = Settings {
            members_max: limits.members_per_subscription,
            members_per_client: limits.members_per_client,
            holds_inaccurate: config.sessions.inaccurate_fixes == InaccurateFixes::Hold,
        };
        let kept_bounds = KeptBounds {
            frames: kept_frames,
            bytes: kept_bytes,
            age_ms: kept_s.saturating_mul(1_000),
            overflow: config.outbox.overflow,
        };
        let mut tracker = Tracker::new(World::from(config.server.world), settings);
        if shards_count > 1 && disk.is_some() {
            tracker.collect_released();
        }
        Self {
            engine,
            tracker,
            // What was accepted before the process began has a moment as well.
            started: metrics.started.checked_sub(BEFORE).unwrap_or(metrics.started),
            now: Moment::ZERO,
            lives_clock: LivesClock::new(shared.stream.is_some()),
            lives_now: Moment::ZERO,
            limits,
            client_limit,
            members_held: budget.broker().hold_anyway(Kind::Members, 0),
            budget,
            allowance,
            metrics,
            ids: HashMap::default(),
            clients: Slots::new(),
            subscriptions: Slots::new(),
            rows: MatchRows::new(),
            log: Log::new(config.sessions.recent_events, config.sessions.recent_bytes, log_held),
            partitions: config.wants_tokens().then(Default::default),
            evaluations: Evaluations::new(config.wants_tokens()),
            worked_before: Duration::ZERO,
            effects: Vec::new(),
            pairs: Vec::new(),
            outbox_bounds: Bounds::new(&config.outbox),
            kept_bounds,
            own_kept_bounds: KeptBounds {
                frames: config.situations.kept_events,
                bytes: config.situations.kept_bytes,
                // What a situation has not acknowledged it needs, however old that is.
                age_ms: u64::MAX,
                ..kept_bounds
            },
            kept_total: kept,
            dates: BTreeSet::new(),
            idle: Idle::new(config.sessions.idle_s),
            heaviest: EvictionOrder::default(),
            unix_ms: clock::unix_ms(),
            timeline: Timeline::after(None),
            doubtful: Vec::new(),
            writes_live: index == 0 && disk.is_some(),
            next: None,
            place: findings::place(index, shards_count),
            findings_read: HashMap::new(),
            dealt: HashMap::new(),
            unfinished: Unfinished::default(),
            ledger: CommitBuffer::new(disk, delay, health, dropped_lives),
            deliveries_count: 0,
            unread_count: 0,
            rounding: Rounding::of(config),
            sleepers: Vec::new(),
            is_pressed: false,
            engine_time,
            payer: None,
            matching: Matching::new(World::from(config.server.world), seed),
            standing: Open::new(seed),
            listings: VecDeque::new(),
            queries: Questions::default(),
            heavy,
            survey: None,
            push,
            wayfinder,
            last_asked: 0,
            shard: index,
            shards_count,
        }
    }

    /// Where others than the client itself are shown that it is, if anywhere.
    fn shown(&self, fix: &Fix) -> Option<Position> {
        self.rounding.map(|rounding| rounding.round(&fix.position))
    }

    /// The number of a client, which is made known if need be. A new one needs a permit: the one that it brings, or
    /// one that is still free.
    fn enter(&mut self, name: &Arc<str>, permit: Option<ClientPermit>) -> Result<u32, ApiError> {
        if let Some(id) = self.ids.get(name).copied() {
            let now = self.heard_now();
            if let Some(client) = self.clients.get_mut(id) {
                client.heard(now);
            }
            return Ok(id);
        }
        let permit = permit.map_or_else(|| self.client_limit.acquire(name), Ok)?;
        let client = Client {
            name: Arc::clone(name),
            epoch: StoredSession::new_epoch(),
            offset: 0,
            released: 0,
            held_step: 0,
            log: None,
            durable: None,
            is_stored: false,
            confinement: None,
            stored_confinement: None,
            heard: self.heard_now(),
            positioned_ms: None,
            subscriptions: BTreeMap::new(),
            constraints: 0,
            weight: 0,
            heavy: None,
            routed: None,
            readers: Vec::new(),
            lists: NameLists::default(),
            recipient: None,
            account: None,
            costs: Costs::default(),
            push: None,
            _permit: permit,
        };
        let numbers = ApiError::Limit {
            what: "clients in one engine",
            limit: u32::MAX.into(),
            setting: "server.shards",
        };
        let id = self.clients.insert(client).ok_or(numbers)?;
        self.ids.insert(Arc::clone(name), id);
        let (tenant, shown) = tenant::split(name);
        self.tracker.place(ClientId(id), self.partition(tenant));
        self.tracker.bound_members(ClientId(id), !tenant::is_own(shown));
        self.metrics.clients.raise();
        Ok(id)
    }

    /// When what is carried out now came.
    fn heard_now(&self) -> Instant {
        self.started + self.now
    }

    /// Forgets a client that nothing is known of any more.
    fn leave(&mut self, id: u32) {
        let idle = self.clients.get(id).is_some_and(|client| {
            client.positioned_ms.is_none()
                && client.subscriptions.is_empty()
                && client.readers.is_empty()
                && client.durable.is_none()
                && client.push.is_none()
                && client.released == client.offset
        });
        if idle {
            self.charge_open(id, Duration::ZERO);
        }
        if idle && let Some(client) = self.clients.remove(id) {
            self.ids.remove(&client.name);
            if client.is_stored
                && let Some(batch) = self.ledger.record_later()
            {
                batch.forget_client(&client.name);
            }
            self.metrics.clients.lower();
        }
    }

    /// Takes a connection away, and the subscriptions that end with it.
    pub(crate) fn detach(&mut self, name: &str, connection: u64) {
        let now = self.heard_now();
        let Some(&client_id) = self.ids.get(name) else { return };
        let Some(client) = self.clients.get_mut(client_id) else {
            return violated!("a client with a number is there");
        };
        client.heard(now);
        client.readers.retain(|reader| reader.connection != connection);
        if let Some(log) = &client.log {
            log.lock().leave(connection);
        }
        let mut ended = Vec::new();
        client.subscriptions.retain(|_, number| {
            let ends = self.subscriptions.get(*number).is_some_and(|held| held.owner == Some(connection));
            if ends {
                ended.push(*number);
            }
            !ends
        });
        for number in ended {
            self.end(number);
        }
        self.settle(client_id);
    }

    /// Forgets everything of a client; says whether there was something.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        let Some(client_id) = self.ids.remove(name) else { return false };
        self.charge_open(client_id, Duration::ZERO);
        let Some(mut client) = self.clients.remove(client_id) else {
            violated!("a client with a number is there");
            return false;
        };
        self.answer_all(name, client.routed.take());
        if client.released < client.offset {
            self.drop_waiting(client_id);
        }
        for number in client.subscriptions.into_values() {
            self.end(number);
        }
        self.engine.move_client(ClientId(client_id), None);
        // It has no subscription left that this could concern.
        self.tracker.move_client(ClientId(client_id), None, self.lives_now, &mut self.effects);
        for reader in client.readers {
            reader.close(1000, "the client was deleted");
        }
        if let Some(log) = &client.log {
            log.lock().acknowledge_all();
        }
        if let Some(durable) = client.durable {
            self.forget_date(client_id, &durable);
            self.metrics.durable_sessions.lower();
        }
        if client.is_stored
            && let Some(batch) = self.ledger.record()
        {
            batch.forget_client(name);
        }
        self.metrics.clients.lower();
        true
    }

    /// Forgets everything of a client as well, and sees to it that its bytes leave the disk soon.
    pub(crate) fn delete(&mut self, name: &str) -> bool {
        let is_there = self.forget(name);
        if is_there && let Some(batch) = self.ledger.record() {
            batch.wipe_soon();
        }
        is_there
    }

    /// Ends all connections, each once everything that waits for it is written, and tells each when to come back.
    pub(crate) fn say_goodbye(&mut self) {
        let count = self.clients.values().map(|client| client.readers.len()).sum();
        let readers = self.clients.values().flat_map(|client| &client.readers);
        readers
            .zip(goodbye::return_times_ms(count))
            .for_each(|(reader, retry_ms)| reader.close_until(retry_ms));
    }

    /// Counts of the subscriptions and filters that the engine holds, and the bytes that they take.
    pub(crate) fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod durable_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
