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

/// How long a watch goes on that has lost some of what was live when it began: there is more than is held, and to read it again brings little.
const MUCH_ANEW: Duration = Duration::from_secs(300);

/// What is live is read anew where fewer events than these are left, and there was no room for others.
const ROOM: usize = JAMS / 10 * 9;

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
    /// How often what is live was read.
    reading: u64,
    /// Whether there was no room for some events.
    is_more: bool,
    /// No event is over before that.
    next_end: Option<Instant>,
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
    /// The arcs that it slows down: where it was before, until they are found where it is.
    arcs: Vec<u32>,
    search: Search,
    /// When it is over, where its event has ended.
    ends: Option<Instant>,
    /// The reading in which it came or changed last.
    reading: u64,
}

/// How far the search for the arcs of an event is.
#[derive(Clone, Copy)]
enum Search {
    /// It comes in the order of these numbers.
    Wanted(u64),
    Done,
    /// There are too many arcs: it comes when other events are over.
    NoRoom,
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
            reading: 0,
            is_more: false,
            next_end: None,
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
        self.reading += 1;
        self.is_more = false;
        // What was in force stays so until all is read that is live.
        let mut has_read = false;
        let mut anew = None;
        let mut batch = Vec::new();
        loop {
            if !has_read && outbox.behind() == 0 {
                has_read = true;
                // What did not come again ended meanwhile.
                let Self { jams, reading, .. } = self;
                jams.retain(|_, jam| jam.reading == *reading);
                self.is_changed = true;
            }
            if has_read {
                self.put_into_force().await;
                self.has_read.send_replace(true);
                if self.is_more && self.jams.len() < ROOM {
                    return Ok(());
                }
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
                                anew.get_or_insert_with(|| self.lost(if has_read { ANEW } else { MUCH_ANEW }));
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
    fn lost(&self, after: Duration) -> Instant {
        let tenant = &*self.tenant;
        tracing::warn!(
            tenant,
            "more events slow streets down than are read: some streets are taken for quick or slow that are not"
        );
        Instant::now() + after
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
        if delivery.transition == Some(Transition::Exit) {
            if let Some(jam) = self.jams.get_mut(&object) {
                let ends = Instant::now() + Duration::from_secs(slow.hold_s);
                jam.ends = Some(ends);
                self.next_end = Some(self.next_end.map_or(ends, |next| next.min(ends)));
            }
            return;
        }
        let Ok(Seen { geometry, derived, ttl_s, key }) = serde_json::from_str(&delivery.body.text) else {
            return;
        };
        // An event that is not live is over at once, and replaces none.
        if ttl_s.is_none() && key.is_none() {
            return;
        }
        self.is_changed = true;
        let before = self.jams.remove(&object);
        let at = World::Geodetic.position(geometry.coordinates.get(..2).unwrap_or_default());
        let (true, Ok(at)) = (derived.is_some() || !slow.derived, at) else { return };
        if self.jams.len() >= JAMS {
            self.is_more = true;
            return;
        }
        let (arcs, search) = match before {
            Some(Jam { at: before, arcs, search, .. }) if before == at => (arcs, search),
            // What moves faster than it is looked at has its turn as well.
            Some(Jam { arcs, search: search @ Search::Wanted(_), .. }) => (arcs, search),
            before => (before.map(|jam| jam.arcs).unwrap_or_default(), wanted(&mut self.last_place)),
        };
        self.jams.insert(object, Jam { at, arcs, search, ends: None, reading: self.reading });
    }

    /// When there is something to do, should nothing come.
    fn next(&self) -> Option<Instant> {
        let due = if self.is_changed { Some(Instant::now()) } else { self.next_end };
        due.map(|due| self.in_force.1.map_or(due, |since| due.max(since + EVERY)))
    }

    /// Takes out the events that are over. Costs a look at each.
    fn end(&mut self, now: Instant) {
        let count = self.jams.len();
        self.jams.retain(|_, jam| jam.ends.is_none_or(|ends| ends > now));
        self.next_end = self.jams.values().filter_map(|jam| jam.ends).min();
        if self.jams.len() == count {
            return;
        }
        self.is_changed = true;
        let Self { jams, last_place, .. } = self;
        for jam in jams.values_mut().filter(|jam| matches!(jam.search, Search::NoRoom)) {
            jam.search = wanted(last_place);
        }
    }

    /// Looks for the arcs of events that came, for [`FINDING`] at most; those that are left come next time. Says whether there are any.
    async fn find_arcs(&mut self) -> bool {
        let wanted = |(object, jam): (&ObjectHash, &Jam)| match jam.search {
            Search::Wanted(number) => Some((number, *object, jam.at)),
            Search::Done | Search::NoRoom => None,
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
        let mut held: usize = self.jams.values().map(|jam| jam.arcs.len()).sum();
        let mut left_out = 0_usize;
        for (object, arcs) in found {
            let Some(jam) = self.jams.get_mut(&object) else { continue };
            held -= jam.arcs.len();
            let has_room = held + arcs.len() <= ARCS;
            (jam.arcs, jam.search) =
                if has_room { (arcs, Search::Done) } else { (Vec::new(), Search::NoRoom) };
            held += jam.arcs.len();
            left_out += usize::from(!has_room);
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
        if self.in_force.1.is_some_and(|since| now < since + EVERY) {
            return;
        }
        if self.next_end.is_some_and(|end| end <= now) {
            self.end(now);
        }
        if !self.is_changed {
            return;
        }
        self.in_force.1 = Some(now);
        self.is_changed = self.find_arcs().await;
        let slow: BTreeSet<u32> = self.jams.values().flat_map(|jam| &jam.arcs).copied().collect();
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

/// The search for the arcs of an event that has come to another place.
fn wanted(last_place: &mut u64) -> Search {
    *last_place += 1;
    Search::Wanted(*last_place)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
