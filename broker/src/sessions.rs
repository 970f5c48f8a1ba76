//! The clients of one shard: their subscriptions, their readers, and the offsets of what they get.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
use matcher::event::Event;
use matcher::geo::Position;
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

use crate::census::{Census, Place};
use crate::config::{Limits, OverflowName};
use crate::ingest::feature::Body;
use crate::ingest::subscription::{Prepared, quoted};
use crate::metrics::Metrics;
use crate::outbox::{Delivery, Gap, Names, Outbox};
use crate::refusal::Refusal;

/// The clients of one shard and the engine that matches for them. Owned by the shard's thread; nobody locks it.
pub(crate) struct Sessions {
    engine: Box<dyn Engine>,
    limits: Limits,
    census: Arc<Census>,
    metrics: Arc<Metrics>,
    ids: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    clients: Slots<Client>,
    subscriptions: Slots<Held>,
    rows: MatchRows,
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
    /// The document in its normalised form.
    pub(crate) document: Arc<str>,
}

/// A client that has a position, a subscription or a reader. One without any of them is forgotten.
struct Client {
    name: Arc<str>,
    epoch: Arc<str>,
    /// Of the last delivery.
    offset: u64,
    has_position: bool,
    subscriptions: BTreeMap<Arc<str>, u32>,
    readers: Vec<Arc<Outbox>>,
    _place: Place,
}

/// A subscription.
struct Held {
    client: u32,
    /// Its id as JSON.
    name: Arc<str>,
    document: Arc<str>,
    overflow: Option<OverflowName>,
    /// The connection that it ends with.
    owner: Option<u64>,
}

/// Values under small numbers, which are reused.
struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// A number to [`put`](Self::put) something under; `None` when all are in use.
    fn reserve(&mut self) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            return Some(id);
        }
        let id = u32::try_from(self.values.len()).ok()?;
        self.values.push(None);
        Some(id)
    }

    fn put(&mut self, id: u32, value: T) {
        self.values[id as usize] = Some(value);
    }

    fn insert(&mut self, value: T) -> Option<u32> {
        let id = self.reserve()?;
        self.put(id, value);
        Some(id)
    }

    fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.values.get_mut(id as usize)?.as_mut()
    }

    fn remove(&mut self, id: u32) -> Option<T> {
        let value = self.values.get_mut(id as usize)?.take();
        self.free.push(id);
        value
    }
}

impl Sessions {
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        limits: Limits,
        census: Arc<Census>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            engine,
            limits,
            census,
            metrics,
            ids: HashMap::default(),
            clients: Slots::new(),
            subscriptions: Slots::new(),
            rows: MatchRows::new(),
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
            has_position: false,
            subscriptions: BTreeMap::new(),
            readers: Vec::new(),
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
            !client.has_position && client.subscriptions.is_empty() && client.readers.is_empty()
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
        position: Position,
        place: Option<Place>,
    ) -> Result<(), Refusal> {
        let id = self.enter(name, place)?;
        if let Some(client) = self.clients.get_mut(id) {
            client.has_position = true;
        }
        self.engine.move_client(ClientId(id), Some(position));
        Ok(())
    }

    /// Makes or replaces a subscription.
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
        let Prepared { id, filters, overflow, document } = prepared;
        let held = Held {
            client: client_id,
            name: quoted(&id).into(),
            document: Arc::clone(&document),
            overflow,
            owner,
        };
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
        self.subscriptions.remove(number);
        self.metrics.subscriptions.lower();
        self.metrics.changes.add(1);
    }

    /// The document of a subscription.
    pub(crate) fn document(&self, name: &str, id: &str) -> Option<Arc<str>> {
        let client = self.clients.get(*self.ids.get(name)?)?;
        let held = self.subscriptions.get(*client.subscriptions.get(id)?)?;
        Some(Arc::clone(&held.document))
    }

    /// The documents of all subscriptions of a client, by id.
    pub(crate) fn documents(&self, name: &str) -> Vec<Arc<str>> {
        let client = self.ids.get(name).and_then(|id| self.clients.get(*id));
        let numbers = client.into_iter().flat_map(|client| client.subscriptions.values());
        let held = numbers.filter_map(|number| self.subscriptions.get(*number));
        held.map(|held| Arc::clone(&held.document)).collect()
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
        for reader in client.readers {
            reader.close(1000, "the client was deleted");
        }
        self.metrics.clients.lower();
        true
    }

    /// Ends all connections, each once everything that waits for it is written.
    pub(crate) fn say_goodbye(&mut self) {
        for reader in self.clients.values.iter().flatten().flat_map(|client| &client.readers) {
            reader.close(1001, "the broker is stopping");
        }
    }

    /// What the engine holds.
    pub(crate) fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }

    /// Matches events; [`deliver`](Self::deliver) then deals them out one by one.
    pub(crate) fn match_batch(&mut self, events: &[&Event]) -> Result<(), MatchError> {
        self.rows.clear();
        self.engine.match_batch(events, &mut self.rows)?;
        self.metrics.matches.add(self.rows.pairs_count() as u64);
        Ok(())
    }

    /// Deals the `index`-th event of the batch out: once to each client, with all subscriptions that it satisfies.
    pub(crate) fn deliver(&mut self, index: usize, body: &Arc<Body>) {
        let row = self.rows.row(index);
        if row.is_empty() {
            return;
        }
        let mut pairs = std::mem::take(&mut self.pairs);
        let pair = |id: &SubscriptionId| Some((self.subscriptions.get(id.0)?.client, id.0));
        pairs.extend(row.iter().filter_map(pair));
        pairs.sort_unstable();
        for group in pairs.chunk_by(|a, b| a.0 == b.0) {
            self.deliver_to(group[0].0, group, body);
        }
        pairs.clear();
        self.pairs = pairs;
    }

    fn deliver_to(&mut self, client_id: u32, group: &[(u32, u32)], body: &Arc<Body>) {
        let Some(client) = self.clients.get_mut(client_id) else { return };
        client.offset += 1;
        self.deliveries_count += 1;
        if client.readers.is_empty() {
            self.unread_count += 1;
            return;
        }
        let mut held = group.iter().filter_map(|(_, number)| self.subscriptions.get(*number));
        let (subscriptions, overflow) = if group.len() == 1 {
            let Some(held) = held.next() else { return };
            (Names::One(Arc::clone(&held.name)), held.overflow)
        } else {
            let mut overflow = None;
            let names = held.map(|held| {
                // The strictest wish of them counts.
                if overflow.is_none() || held.overflow == Some(OverflowName::Disconnect) {
                    overflow = held.overflow.or(overflow);
                }
                Arc::clone(&held.name)
            });
            let names = Names::Many(names.collect());
            (names, overflow)
        };
        let delivery = Delivery { offset: client.offset, subscriptions, body: Arc::clone(body), overflow };
        for reader in &client.readers {
            let pushed = reader.push_delivery(delivery.clone());
            self.metrics.dropped.add(pushed.dropped);
            self.metrics.overflowed.add(pushed.cut_off.into());
            if pushed.sleeps {
                self.sleepers.push(Arc::clone(reader));
            }
        }
    }

    /// Ends a batch: wakes the writers that have something to write now.
    pub(crate) fn wake_readers(&mut self) {
        self.metrics.deliveries.add(std::mem::take(&mut self.deliveries_count));
        self.metrics.unread.add(std::mem::take(&mut self.unread_count));
        for sleeper in self.sleepers.drain(..) {
            sleeper.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use matcher::engine::scan::Scan;
    use matcher::geo::World;

    use super::*;
    use crate::config::Config;
    use crate::ingest::feature::FeatureReader;
    use crate::ingest::subscription::SubscriptionReader;
    use crate::outbox::{Bounds, Entry};

    /// Sessions with what it takes to talk to them.
    struct Bench {
        sessions: Sessions,
        features: FeatureReader,
        subscriptions: SubscriptionReader,
        bounds: Bounds,
    }

    impl Bench {
        fn new() -> Self {
            let config = Config::default();
            let limits =
                Limits { subscriptions_per_client: 2, clients: 3, readers_per_client: 1, ..config.limits };
            let engine = Box::new(Scan::new(World::Planar));
            Self {
                sessions: Sessions::new(
                    engine,
                    limits.clone(),
                    Census::new(limits.clients),
                    Arc::new(Metrics::new(1)),
                ),
                features: FeatureReader::new(World::Planar, &limits, 1),
                subscriptions: SubscriptionReader::new(World::Planar, limits, config.outbox.overflow),
                bounds: Bounds::new(&config.outbox),
            }
        }

        fn install(&mut self, client: &str, id: &str, owner: Option<u64>) -> Result<Installed, Refusal> {
            let prepared = self.subscriptions.parse(id, r#"{"filters":[{"area":{"radius_m":5}}]}"#).unwrap();
            self.sessions.install(&client.into(), prepared, owner)
        }

        fn attach(&mut self, client: &str, connection: u64, resume: Resume) -> Arc<Outbox> {
            let outbox = Arc::new(Outbox::new(connection, self.bounds));
            self.sessions.attach(&client.into(), Arc::clone(&outbox), resume).unwrap();
            outbox
        }

        fn move_to(&mut self, client: &str, x: f64) {
            self.try_move(client, x).unwrap();
        }

        fn try_move(&mut self, client: &str, x: f64) -> Result<(), Refusal> {
            let position = World::Planar.position(&[x, 0.0]).unwrap();
            self.sessions.move_client(&client.into(), position, None)
        }

        fn publish(&mut self) {
            let text = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[0,0]}}"#;
            let published = self.features.parse(text).unwrap();
            self.sessions.match_batch(&[&published.event]).unwrap();
            self.sessions.deliver(0, &published.body);
            self.sessions.wake_readers();
        }
    }

    /// What waits in an outbox, in short.
    async fn waiting(outbox: &Outbox) -> Vec<String> {
        // Something always waits once this has been put in.
        outbox.push_answer("end");
        let mut batch = Vec::new();
        outbox.next_batch(&mut batch, usize::MAX).await;
        let shown = batch.into_iter().map(|entry| match entry {
            Entry::Answer(text) => text.split(',').next().unwrap_or_default().to_owned(),
            Entry::Gap(gap) => format!("gap {}-{} {}", gap.from, gap.to, gap.reason),
            Entry::Delivery(Delivery { offset, subscriptions: Names::One(name), .. }) => {
                format!("{offset} {name}")
            }
            Entry::Delivery(Delivery { offset, subscriptions: Names::Many(names), .. }) => {
                format!("{offset} {}", names.join(" "))
            }
        });
        shown.filter(|text| text != "end").collect()
    }

    #[tokio::test]
    async fn an_event_comes_once_with_all_subscriptions_and_offsets_have_no_holes() {
        let mut bench = Bench::new();
        let outbox = bench.attach("a", 1, Resume::Ready);
        bench.install("a", "s1", None).unwrap();
        bench.publish();
        bench.move_to("a", 1.0);
        bench.publish();
        bench.install("a", "s2", None).unwrap();
        bench.publish();
        bench.move_to("a", 100.0);
        bench.publish();
        assert_eq!(waiting(&outbox).await, ["{\"op\":\"ready\"", "1 \"s1\"", "2 \"s1\" \"s2\""]);
    }

    #[tokio::test]
    async fn a_stream_that_goes_on_is_told_what_it_missed() {
        let mut bench = Bench::new();
        bench.install("a", "s1", None).unwrap();
        bench.move_to("a", 0.0);
        let outbox = bench.attach("a", 1, Resume::Fresh);
        bench.publish();
        assert_eq!(waiting(&outbox).await, ["1 \"s1\""]);
        bench.sessions.detach("a", 1);
        bench.publish();
        bench.publish();
        assert_eq!(bench.sessions.metrics.unread.get(), 2);
        let client = bench.sessions.clients.get(0).unwrap();
        let epoch = client.epoch.to_string();
        let after = |offset| Resume::After { epoch: epoch.clone(), offset };
        for (resume, told) in [
            (after(1), vec!["gap 2-3 not-durable"]),
            (after(3), vec![]),
            (after(4), vec!["gap 1-3 epoch"]),
            (Resume::After { epoch: "other".to_owned(), offset: 1 }, vec!["gap 1-3 epoch"]),
        ] {
            let outbox = bench.attach("a", 2, resume);
            assert_eq!(waiting(&outbox).await, told);
            bench.sessions.detach("a", 2);
        }
    }

    #[test]
    fn subscriptions_end_with_the_connection_that_made_them_last() {
        let mut bench = Bench::new();
        bench.attach("a", 1, Resume::Ready);
        assert!(!bench.install("a", "s1", Some(1)).unwrap().replaced);
        assert!(bench.install("a", "s1", None).unwrap().replaced);
        bench.install("a", "s2", Some(1)).unwrap();
        bench.sessions.detach("a", 1);
        assert_eq!(bench.sessions.documents("a").len(), 1);
        assert!(bench.sessions.document("a", "s1").is_some());
        assert!(bench.sessions.remove("a", "s1"));
        assert!(!bench.sessions.remove("a", "s1"));
        // Nothing is known of the client any more.
        assert_eq!(bench.sessions.metrics.clients.get(), 0);
        assert_eq!(bench.sessions.metrics.subscriptions.get(), 0);
    }

    #[test]
    fn limits_are_held() {
        let mut bench = Bench::new();
        bench.install("a", "s1", None).unwrap();
        bench.install("a", "s2", None).unwrap();
        assert!(matches!(bench.install("a", "s3", None), Err(Refusal::Limit { limit: 2, .. })));
        assert!(bench.install("a", "s2", None).unwrap().replaced);
        bench.move_to("b", 0.0);
        bench.move_to("c", 0.0);
        assert!(matches!(bench.try_move("d", 0.0), Err(Refusal::Limit { limit: 3, .. })));
        assert!(matches!(bench.install("e", "s1", None), Err(Refusal::Limit { limit: 3, .. })));
        bench.attach("a", 1, Resume::Fresh);
        let second = Arc::new(Outbox::new(2, bench.bounds));
        assert!(bench.sessions.attach(&"a".into(), second, Resume::Fresh).is_err());
        // A place that was promised is there; whoever is known needs none; one that goes leaves its own.
        bench.sessions.forget("b");
        let place = bench.sessions.census.place().ok();
        assert!(bench.try_move("d", 0.0).is_err());
        bench.move_to("c", 1.0);
        let position = World::Planar.position(&[0.0, 0.0]).unwrap();
        bench.sessions.move_client(&"d".into(), position, place).unwrap();
        bench.sessions.forget("c");
        bench.move_to("e", 0.0);
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_forgotten_client() {
        let mut bench = Bench::new();
        let outbox = bench.attach("a", 1, Resume::Fresh);
        bench.install("a", "s1", Some(1)).unwrap();
        bench.move_to("a", 0.0);
        assert!(bench.sessions.forget("a"));
        assert!(!bench.sessions.forget("a"));
        assert_eq!(outbox.next_batch(&mut Vec::new(), 1).await.unwrap().code, 1000);
        // Another client gets the number and not the position.
        let outbox = bench.attach("b", 2, Resume::Fresh);
        bench.install("b", "s1", None).unwrap();
        bench.publish();
        assert_eq!(waiting(&outbox).await, Vec::<String>::new());
        assert_eq!(bench.sessions.metrics.clients.get(), 1);
    }
}
