//! The clients of one shard: their subscriptions, their readers, and the offsets of what they get.

mod activity;
mod dealing;
mod deliveries;
mod explain;
mod live;
mod slots;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use matcher::engine::{Engine, Footprint, InstallError, MatchRows};
use matcher::geo::World;
use matcher::live::{Effect, Fix, Interest, Moment, Settings, Tracker};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

use crate::census::{Census, Place};
use crate::config::{self, InaccurateFixes, Limits, OverflowName};
use crate::ingest::feature::Published;
use crate::ingest::subscription::{Prepared, quoted};
use crate::metrics::Metrics;
use crate::outbox::{Gap, Outbox};
use crate::recipient::Recipient;
use crate::refusal::Refusal;
use activity::{Activity, Happened};
use deliveries::Log;
pub(crate) use deliveries::Told;
use slots::Slots;

/// The clients of one shard and the engine that matches for them. Owned by the shard's thread; nobody locks it.
pub(crate) struct Sessions {
    engine: Box<dyn Engine>,
    /// Has the subscriptions and positions that the engine has, and the live events.
    tracker: Tracker<Arc<Published>>,
    /// What the tracker's times count from.
    started: Instant,
    /// When what is carried out now began.
    now: Moment,
    limits: Limits,
    census: Arc<Census>,
    metrics: Arc<Metrics>,
    ids: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    clients: Slots<Client>,
    subscriptions: Slots<Held>,
    rows: MatchRows,
    /// To whom events went.
    log: Log,
    /// Events that the engine has matched, each held against every subscription.
    evaluations: Happened,
    /// Of the step at hand, kept for its memory.
    effects: Vec<Effect<Arc<Published>>>,
    /// Pairs of client and subscription of one event; kept for its memory.
    pairs: Vec<(u32, u32)>,
    /// Of the batch at hand, counted once at its end.
    deliveries_count: u64,
    unread_count: u64,
    /// Readers whose writers sleep although something waits for them.
    sleepers: Vec<Arc<Outbox>>,
}

/// How a reader wants to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// A WebSocket: it is told `ready`, whatever it knew before.
    Ready,
    /// An event stream that begins.
    Fresh,
    /// An event stream that goes on after an offset of an epoch.
    After { epoch: String, offset: u64 },
}

/// What a reader has to know.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// Names the session.
    pub(crate) epoch: Arc<str>,
    /// The next delivery has the offset after this one.
    pub(crate) offset: u64,
}

/// What installing did.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// Whether it replaced one of the same id.
    pub(crate) replaced: bool,
    /// The document in its normalised form, with what happened to it: nothing yet.
    pub(crate) document: String,
}

/// A client that has a position, a subscription or a reader. One without any of them is forgotten.
struct Client {
    name: Arc<str>,
    epoch: Arc<str>,
    /// Of the last delivery.
    offset: u64,
    /// When it last told a position.
    positioned: Option<Moment>,
    subscriptions: BTreeMap<Arc<str>, u32>,
    readers: Vec<Arc<Outbox>>,
    /// Where its readers note what they take, once there is a need.
    recipient: Option<Arc<Recipient>>,
    _place: Place,
}

impl Client {
    fn recipient(&mut self) -> &Arc<Recipient> {
        self.recipient.get_or_insert_with(|| Recipient::new(Arc::clone(&self.name)))
    }
}

/// A subscription.
struct Held {
    client: u32,
    /// Its id as JSON.
    name: Arc<str>,
    document: Arc<str>,
    overflow: Option<OverflowName>,
    /// Whether every event that satisfies it is for it, live or not.
    takes_all: bool,
    /// The connection that it ends with.
    owner: Option<u64>,
    activity: Activity,
}

impl Held {
    /// Its document, with what happened to it.
    fn shown(&self, evaluations: &Happened, now: Moment) -> String {
        self.activity.shown_in(&self.document, evaluations, (now, jiff::Timestamp::now()))
    }
}

impl Sessions {
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        config: &config::Config,
        census: Arc<Census>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let limits = config.limits.clone();
        let settings = Settings {
            members_max: limits.members_per_subscription,
            holds_inaccurate: config.sessions.inaccurate_fixes == InaccurateFixes::Hold,
        };
        Self {
            engine,
            tracker: Tracker::new(World::from(config.server.world), settings),
            started: metrics.started,
            now: Moment::ZERO,
            limits,
            census,
            metrics,
            ids: HashMap::default(),
            clients: Slots::new(),
            subscriptions: Slots::new(),
            rows: MatchRows::new(),
            log: Log::new(config.sessions.recent_events),
            evaluations: Happened::default(),
            effects: Vec::new(),
            pairs: Vec::new(),
            deliveries_count: 0,
            unread_count: 0,
            sleepers: Vec::new(),
        }
    }

    /// The number of a client, which is made known if need be. A new one needs a place: the one that it brings, or
    /// one that is still free.
    fn enter(&mut self, name: &Arc<str>, place: Option<Place>) -> Result<u32, Refusal> {
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        let place = place.map_or_else(|| self.census.place(), Ok)?;
        let client = Client {
            name: Arc::clone(name),
            epoch: format!("{:016x}", rand::random::<u64>()).into(),
            offset: 0,
            positioned: None,
            subscriptions: BTreeMap::new(),
            readers: Vec::new(),
            recipient: None,
            _place: place,
        };
        let numbers = Refusal::Limit {
            what: "clients in one engine",
            limit: u32::MAX.into(),
            setting: "server.shards",
        };
        let id = self.clients.insert(client).ok_or(numbers)?;
        self.ids.insert(Arc::clone(name), id);
        self.metrics.clients.raise();
        Ok(id)
    }

    /// Forgets a client that nothing is known of any more.
    fn leave(&mut self, id: u32) {
        let idle = self.clients.get(id).is_some_and(|client| {
            client.positioned.is_none() && client.subscriptions.is_empty() && client.readers.is_empty()
        });
        if idle && let Some(client) = self.clients.remove(id) {
            self.ids.remove(&client.name);
            self.metrics.clients.lower();
        }
    }

    /// Tells where a client is. A new one fails only without a place.
    pub(crate) fn move_client(
        &mut self,
        name: &Arc<str>,
        fix: Fix,
        place: Option<Place>,
    ) -> Result<(), Refusal> {
        let id = self.enter(name, place)?;
        if let Some(client) = self.clients.get_mut(id) {
            client.positioned = Some(self.now);
        }
        self.engine.move_client(ClientId(id), Some(fix.position));
        self.tracker.move_client(ClientId(id), Some(fix), self.now, &mut self.effects);
        self.deal();
        self.wake_readers();
        Ok(())
    }

    /// Makes or replaces a subscription. What it brings is told by [`tell_changes`](Self::tell_changes), for which an
    /// answer that has to come first must not be late.
    pub(crate) fn install(
        &mut self,
        name: &Arc<str>,
        prepared: Prepared,
        owner: Option<u64>,
    ) -> Result<Installed, Refusal> {
        let client_id = self.enter(name, None)?;
        let installed = self.install_for(client_id, prepared, owner);
        self.leave(client_id);
        installed
    }

    fn install_for(
        &mut self,
        client_id: u32,
        prepared: Prepared,
        owner: Option<u64>,
    ) -> Result<Installed, Refusal> {
        let client = self.clients.get_mut(client_id).ok_or(Refusal::Internal("the client is gone"))?;
        let limit = self.limits.subscriptions_per_client;
        let previous = client.subscriptions.get(&prepared.id).copied();
        if previous.is_none() && client.subscriptions.len() >= limit {
            let setting = "limits.subscriptions_per_client";
            return Err(Refusal::Limit {
                what: "subscriptions for one client",
                limit: limit as u64,
                setting,
            });
        }
        let Prepared { id, filters, nearest, interest, overflow, document } = prepared;
        let held = Held {
            client: client_id,
            name: quoted(&id).into(),
            document,
            overflow,
            takes_all: interest == Interest::Events && nearest.iter().all(Option::is_none),
            owner,
            activity: Activity::since(&self.evaluations),
        };
        let document = held.shown(&self.evaluations, self.now);
        let subscription = Subscription { client: ClientId(client_id), filters };
        let full = Refusal::Limit {
            what: "filters in one engine",
            limit: u32::MAX.into(),
            setting: "server.shards",
        };
        let number = previous.or_else(|| self.subscriptions.reserve()).ok_or(full.clone())?;
        if let Err(InstallError::Full { .. }) = self.engine.install(SubscriptionId(number), &subscription) {
            if previous.is_none() {
                self.subscriptions.remove(number);
            }
            return Err(full);
        }
        self.tracker.install(
            SubscriptionId(number),
            subscription,
            nearest,
            interest,
            self.now,
            &mut self.effects,
        );
        self.subscriptions.put(number, held);
        client.subscriptions.insert(id, number);
        if previous.is_none() {
            self.metrics.subscriptions.raise();
        }
        self.metrics.changes.add(1);
        Ok(Installed { replaced: previous.is_some(), document })
    }

    /// Ends a subscription; says whether there was one.
    pub(crate) fn remove(&mut self, name: &str, id: &str) -> bool {
        let Some(&client_id) = self.ids.get(name) else { return false };
        let Some(client) = self.clients.get_mut(client_id) else { return false };
        let Some(number) = client.subscriptions.remove(id) else { return false };
        self.end(number);
        self.leave(client_id);
        true
    }

    fn end(&mut self, number: u32) {
        self.engine.remove(SubscriptionId(number));
        self.tracker.remove(SubscriptionId(number));
        self.subscriptions.remove(number);
        self.metrics.subscriptions.lower();
        self.metrics.changes.add(1);
    }

    /// The document of a subscription, with what happened to it.
    pub(crate) fn document(&self, name: &str, id: &str) -> Option<String> {
        let client = self.clients.get(*self.ids.get(name)?)?;
        let held = self.subscriptions.get(*client.subscriptions.get(id)?)?;
        Some(held.shown(&self.evaluations, self.now))
    }

    /// The documents of all subscriptions of a client, by id.
    pub(crate) fn documents(&self, name: &str) -> Vec<String> {
        let client = self.ids.get(name).and_then(|id| self.clients.get(*id));
        let numbers = client.into_iter().flat_map(|client| client.subscriptions.values());
        let held = numbers.filter_map(|number| self.subscriptions.get(*number));
        held.map(|held| held.shown(&self.evaluations, self.now)).collect()
    }

    /// Lets a connection read for a client. What it is told first stands before every delivery.
    pub(crate) fn attach(
        &mut self,
        name: &Arc<str>,
        outbox: Arc<Outbox>,
        resume: Resume,
    ) -> Result<Attached, Refusal> {
        let limit = self.limits.readers_per_client;
        let id = self.enter(name, None)?;
        let client = self.clients.get_mut(id).ok_or(Refusal::Internal("the client is gone"))?;
        if client.readers.len() >= limit {
            let setting = "limits.readers_per_client";
            return Err(Refusal::Limit {
                what: "connections that read for one client",
                limit: limit as u64,
                setting,
            });
        }
        let attached = Attached { epoch: Arc::clone(&client.epoch), offset: client.offset };
        match resume {
            Resume::Ready => outbox.push_answer(format!(
                r#"{{"op":"ready","client":{},"epoch":"{}","offset":{}}}"#,
                quoted(name),
                client.epoch,
                client.offset
            )),
            Resume::Fresh => {}
            Resume::After { epoch, offset } if *epoch == *client.epoch && offset <= client.offset => {
                if offset < client.offset {
                    outbox.push_gap(Gap { from: offset + 1, to: client.offset, reason: "not-durable" });
                }
            }
            Resume::After { .. } => outbox.push_gap(Gap { from: 1, to: client.offset, reason: "epoch" }),
        }
        if self.log.is_kept() {
            outbox.note_for(Arc::clone(client.recipient()));
        }
        client.readers.push(outbox);
        Ok(attached)
    }

    /// Takes a connection away, and the subscriptions that end with it.
    pub(crate) fn detach(&mut self, name: &str, connection: u64) {
        let Some(&client_id) = self.ids.get(name) else { return };
        let Some(client) = self.clients.get_mut(client_id) else { return };
        client.readers.retain(|reader| reader.connection != connection);
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
        self.leave(client_id);
    }

    /// Forgets everything of a client; says whether there was something.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        let Some(client_id) = self.ids.remove(name) else { return false };
        let Some(client) = self.clients.remove(client_id) else { return false };
        for number in client.subscriptions.into_values() {
            self.end(number);
        }
        self.engine.move_client(ClientId(client_id), None);
        // It has no subscription left that this could concern.
        self.tracker.move_client(ClientId(client_id), None, self.now, &mut self.effects);
        for reader in client.readers {
            reader.close(1000, "the client was deleted");
        }
        self.metrics.clients.lower();
        true
    }

    /// Ends all connections, each once everything that waits for it is written.
    pub(crate) fn say_goodbye(&mut self) {
        for reader in self.clients.values().flat_map(|client| &client.readers) {
            reader.close(1001, "the broker is stopping");
        }
    }

    /// What the engine holds.
    pub(crate) fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }
}

#[cfg(test)]
mod tests;
