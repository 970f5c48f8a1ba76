//! Streets that are slow while an event says so (`routes.slow`): routes of the event's tenant take them as longer by a factor, and areas
//! that lie along one which has become slow are found again.
//!
//! A client of the broker's own watches the events of each tenant that asks for routes. It reads what comes and what ends, and has new costs
//! put into force, at most once in [`EVERY`].

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use matcher::geo::{Position, Radius, World};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::ingest::Behalf;
use crate::ingest::json::Members;
use crate::ingest::subscription::SubscriptionReader;
use crate::model::delivery::{Delivery, Entry, Transition};
use crate::model::error::ApiError;
use crate::model::event::ObjectHash;
use crate::model::tenant;
use crate::outbox::{Bounds, Outbox};
use crate::routing::Wayfinder;
use crate::sessions::Resume;
use crate::shard::{Command, Shards};

/// The client that watches for a tenant.
const CLIENT: &str = "~routes/slow";

/// How often new costs are put into force for a tenant, at most. They take milliseconds for a city, and some tenths of a second for a country.
const EVERY: Duration = Duration::from_secs(1);

/// Events of a tenant that slow streets down, at most; further ones do not.
const JAMS: usize = 20_000;

/// Arcs of the events of a tenant that are slow, at most, each as often as events slow it down.
const ARCS: usize = 2_000_000;

/// How long arcs are looked for in [`EVERY`], at most: a tenant whose events come in great numbers, with a great radius, takes a tenth of a core.
const FINDING: Duration = Duration::from_millis(100);

/// Bytes that are read at once.
const BATCH_BYTES: usize = 262_144;

/// Frames and bytes that may wait to be read: what is live comes at once when a watch begins. Texts of live events are those of the live events.
const WAITING: (usize, usize) = (4 * JAMS, 128 << 20);

/// How long to wait before something that the broker refused is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long a watch that has lost something goes on before it reads anew what is live.
const ANEW: Duration = Duration::from_secs(10);

/// What the watch needs of the broker.
pub(crate) struct Means {
    pub(crate) config: Arc<Config>,
    pub(crate) shards: Shards,
    pub(crate) subscriptions: Arc<SubscriptionReader>,
    pub(crate) wayfinder: Arc<Wayfinder>,
    pub(crate) tasks: TaskTracker,
    pub(crate) ended: CancellationToken,
    pub(crate) runtime: Handle,
}

/// The watch over all tenants that ask for routes.
pub(crate) struct SlowStreets {
    means: Arc<Means>,
    /// Whether each tenant's watch has read what was there when it began. A std mutex: held for a look or an insertion.
    watched: Mutex<HashMap<Arc<str>, watch::Receiver<bool>>>,
}

/// The watch for one tenant.
struct Watch {
    means: Arc<Means>,
    tenant: Arc<str>,
    jams: HashMap<ObjectHash, Jam>,
    /// Number of the last event that is at another place than before.
    last_place: u64,
    /// Whether arcs may be slow that are not in force, or the other way round.
    is_changed: bool,
    /// The arcs that are slow as they are in force, and when that was looked at last.
    in_force: (BTreeSet<u32>, Option<Instant>),
    has_read: watch::Sender<bool>,
    connection: u64,
}

/// An event that slows streets down.
struct Jam {
    at: Position,
    arcs: Arcs,
    /// When it is over, where its event has ended.
    ends: Option<Instant>,
}

/// The arcs that an event slows down.
enum Arcs {
    /// They are not looked for as yet; in the order of these numbers they will be.
    Wanted(u64),
    Found(Vec<u32>),
}

/// An event, as far as it matters here.
#[derive(Deserialize)]
struct Seen<'a> {
    geometry: Place,
    #[serde(borrow)]
    derived: Option<&'a RawValue>,
    ttl_s: Option<f64>,
    #[serde(borrow)]
    key: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Place {
    coordinates: Vec<f64>,
}

impl SlowStreets {
    /// Makes the watch; `None` where no event slows streets down.
    pub(crate) fn new(means: Means) -> Option<Self> {
        let is_wanted = !means.config.routes.slow.condition.is_empty();
        is_wanted.then(|| Self { means: Arc::new(means), watched: Mutex::default() })
    }

    /// Watches the events of a tenant from now on, and waits until those are known that are live already, for `queue.wait_ms` at most.
    pub(crate) async fn watch(&self, tenant: &str) {
        let mut has_read = {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.get(tenant).cloned().unwrap_or_else(|| {
                let (has_read, seen) = watch::channel(false);
                let tenant: Arc<str> = tenant.into();
                watched.insert(Arc::clone(&tenant), seen.clone());
                self.begin(tenant, has_read);
                seen
            })
        };
        // One that has ended has seen the broker stop. One that is refused tries again; meanwhile no street is slow.
        let wait = Duration::from_millis(self.means.config.queue.wait_ms);
        let _ = tokio::time::timeout(wait, has_read.wait_for(|has_read| *has_read)).await;
    }

    fn begin(&self, tenant: Arc<str>, has_read: watch::Sender<bool>) {
        let means = Arc::clone(&self.means);
        let watch = Watch {
            means: Arc::clone(&means),
            tenant,
            jams: HashMap::new(),
            last_place: 0,
            is_changed: false,
            in_force: (BTreeSet::new(), None),
            has_read,
            connection: 0,
        };
        let ended = means.ended.clone();
        let run = async move {
            ended.run_until_cancelled_owned(watch.run()).await;
        };
        means.tasks.spawn_on(run, &means.runtime);
    }
}

impl Watch {
    async fn run(mut self) {
        loop {
            match self.read().await {
                Err(ApiError::Stopping) => return,
                Ok(()) => {}
                Err(refusal) => tracing::warn!(?refusal, "events that slow streets down cannot be read"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Reads what is live and what comes. Where something was lost, that is for [`ANEW`] at most, since what ended meanwhile is not known.
    async fn read(&mut self) -> Result<(), ApiError> {
        let means = Arc::clone(&self.means);
        let client: Arc<str> = tenant::inside(&self.tenant, CLIENT).into();
        self.connection += 1;
        let bounds = Bounds::new(&means.config.outbox).in_order().at_least(WAITING.0, WAITING.1);
        let outbox = Arc::new(Outbox::new(self.connection, bounds));
        let attached = Arc::clone(&outbox);
        let attach = |client, reply| Command::Attach {
            client,
            outbox: attached,
            resume: Resume::Fresh,
            confinement: None,
            reply,
        };
        means.shards.ask(&client, attach).await??;
        let read = self.read_from(&client, &outbox).await;
        means.shards.detach(&client, self.connection).await;
        read
    }

    async fn read_from(&mut self, client: &Arc<str>, outbox: &Arc<Outbox>) -> Result<(), ApiError> {
        // Exits come first: what leaves right after it came is then told.
        for on in ["exit", "event"] {
            self.install(client, outbox, on).await?;
        }
        // What they brought is there once something else was answered.
        let list = |client, reply| Command::List { client, confinement: None, reply };
        self.means.shards.ask(client, list).await??;
        self.jams.clear();
        self.is_changed = true;
        // What was in force stays so until all is read that is live.
        let mut has_read = false;
        let mut anew = None;
        let mut batch = Vec::new();
        loop {
            has_read |= outbox.behind() == 0;
            if has_read {
                self.put_into_force().await;
                self.has_read.send_replace(true);
            }
            let next = if has_read { self.next() } else { None };
            tokio::select! {
                ended = outbox.next_batch(&mut batch, BATCH_BYTES) => {
                    if let Some(close) = ended {
                        return if close.code == 1013 { Ok(()) } else { Err(ApiError::Stopping) };
                    }
                    for entry in batch.drain(..) {
                        match entry {
                            Entry::Delivery(delivery) => self.take(&delivery),
                            Entry::Gap(_) => {
                                anew.get_or_insert_with(|| self.lost());
                            }
                            Entry::Answer(_) => {}
                        }
                    }
                }
                () = sleep_until(next) => {}
                () = sleep_until(anew) => return Ok(()),
            }
        }
    }

    /// Tells that events were not read; says when what is live is read anew.
    fn lost(&self) -> Instant {
        let tenant = &*self.tenant;
        tracing::warn!(
            tenant,
            "more events slow streets down than are read: some streets are taken for quick or slow that are not"
        );
        Instant::now() + ANEW
    }

    async fn install(&self, client: &Arc<str>, outbox: &Arc<Outbox>, on: &str) -> Result<(), ApiError> {
        let Means { config, subscriptions, shards, .. } = &*self.means;
        let document = json!({"filters": [{"where": config.routes.slow.condition}], "on": [on]}).to_string();
        let has_tenants = config.wants_tokens() || !self.tenant.is_empty();
        let behalf = Behalf { tenant: has_tenants.then_some(&*self.tenant), confinement: None };
        let subscription = subscriptions.parse_members(on, Members::parse(&document)?)?.on_behalf(behalf)?;
        let owner = Some(Arc::clone(outbox));
        let install = |client, reply| Command::Install {
            client,
            subscription: Box::new(subscription),
            change: None,
            owner,
            answer: None,
            reply,
        };
        shards.ask(client, install).await?.map(drop)
    }

    /// Notes that an event is there, or is over.
    fn take(&mut self, delivery: &Delivery) {
        let slow = &self.means.config.routes.slow;
        let object = delivery.body.object;
        self.is_changed = true;
        if delivery.transition == Some(Transition::Exit) {
            if let Some(jam) = self.jams.get_mut(&object) {
                jam.ends = Some(Instant::now() + Duration::from_secs(slow.hold_s));
            }
            return;
        }
        let Ok(Seen { geometry, derived, ttl_s, key }) = serde_json::from_str(&delivery.body.text) else {
            return;
        };
        // An event that is not live is over at once.
        let counts = (ttl_s.is_some() || key.is_some()) && (derived.is_some() || !slow.derived);
        let at = World::Geodetic.position(geometry.coordinates.get(..2).unwrap_or_default());
        let (true, Ok(at)) = (counts, at) else {
            self.jams.remove(&object);
            return;
        };
        let before = self.jams.remove(&object);
        if self.jams.len() >= JAMS {
            return;
        }
        let arcs = match before {
            Some(Jam { at: before, arcs, .. }) if before == at => arcs,
            // What moves faster than it is looked at has its turn as well.
            Some(Jam { arcs: Arcs::Wanted(number), .. }) => Arcs::Wanted(number),
            _ => {
                self.last_place += 1;
                Arcs::Wanted(self.last_place)
            }
        };
        self.jams.insert(object, Jam { at, arcs, ends: None });
    }

    /// When there is something to do, should nothing come.
    fn next(&self) -> Option<Instant> {
        let ends = self.jams.values().filter_map(|jam| jam.ends).min();
        let due = self.is_changed.then(|| self.in_force.1.map_or_else(Instant::now, |since| since + EVERY));
        ends.into_iter().chain(due).min()
    }

    /// Looks for the arcs of events that came, for [`FINDING`] at most; those that are left come next time. Says whether there are any.
    async fn find_arcs(&mut self) -> bool {
        let wanted = |(object, jam): (&ObjectHash, &Jam)| match jam.arcs {
            Arcs::Wanted(number) => Some((number, *object, jam.at)),
            Arcs::Found(_) => None,
        };
        let mut wanted: Vec<_> = self.jams.iter().filter_map(wanted).collect();
        wanted.sort_unstable_by_key(|(number, ..)| *number);
        let count = wanted.len();
        let Means { config, wayfinder, .. } = &*self.means;
        // Settings with another radius are refused at the start.
        let Ok(radius) = Radius::new(World::Geodetic, config.routes.slow.radius_m) else { return false };
        let finder = Arc::clone(wayfinder);
        let find = move || {
            let began = Instant::now();
            let places = wanted.into_iter().take_while(|_| began.elapsed() < FINDING);
            places.map(|(_, object, at)| (object, finder.streets.arcs_near(&at, radius))).collect::<Vec<_>>()
        };
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        let is_rest = found.len() < count;
        let mut held: usize = self.jams.values().map(|jam| jam.found().len()).sum();
        let mut left_out = 0_usize;
        for (object, mut arcs) in found {
            let Some(jam) = self.jams.get_mut(&object) else { continue };
            if held + arcs.len() > ARCS {
                left_out += 1;
                arcs = Vec::new();
            }
            held += arcs.len();
            jam.arcs = Arcs::Found(arcs);
        }
        if left_out > 0 {
            let tenant = &*self.tenant;
            tracing::warn!(
                tenant,
                left_out,
                "events slow down more streets than are held, and slow none down"
            );
        }
        is_rest
    }

    /// Puts new costs into force, unless that was done only now.
    async fn put_into_force(&mut self) {
        let now = Instant::now();
        let count = self.jams.len();
        self.jams.retain(|_, jam| jam.ends.is_none_or(|ends| ends > now));
        self.is_changed |= self.jams.len() < count;
        if !self.is_changed || self.in_force.1.is_some_and(|since| now < since + EVERY) {
            return;
        }
        self.in_force.1 = Some(now);
        self.is_changed = self.find_arcs().await;
        let slow: BTreeSet<u32> = self.jams.values().flat_map(Jam::found).copied().collect();
        if slow == self.in_force.0 {
            return;
        }
        let Means { config, wayfinder, shards, .. } = &*self.means;
        tracing::debug!(tenant = &*self.tenant, arcs = slow.len(), "streets are slow");
        wayfinder
            .slow_down(&self.tenant, slow.clone(), config.routes.slow.factor, &shards.tell_routes())
            .await;
        self.in_force.0 = slow;
    }
}

impl Jam {
    fn found(&self) -> &[u32] {
        match &self.arcs {
            Arcs::Wanted(_) => &[],
            Arcs::Found(arcs) => arcs,
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
