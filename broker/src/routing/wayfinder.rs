//! Finds again where areas along routes lie, beside the shards.
//!
//! ```text
//! shard: a client has left its corridor ─> asks ─> wayfinder: takes turns among tenants ─> tells the shard, by a command
//! ```
//!
//! Each area has one question that waits at most, so that the areas bound the questions. What is told is in force in the order of the
//! shard's commands; until then an area lies where it lay.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use matcher::geo::{Position, Radius};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Lead, Streets};
use crate::ingest::area::RouteTo;
use crate::model::way::Way;

/// Questions that are answered in a row, after which other work has a turn.
const BATCH: usize = 64;

/// Areas that a shard hears of at once when streets have become slow.
const SLOWED_BATCH: usize = 256;

/// Ways that may be gone before the list of them is gone through.
const GONE: usize = 1_024;

/// An area along a route, by its shard, the number of its subscription there, and its number among the routes of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AreaPlace {
    pub(crate) shard: usize,
    pub(crate) subscription: u32,
    pub(crate) route: usize,
}

/// An area that is to be found again.
#[derive(Debug)]
pub(crate) struct RouteAsked {
    pub(crate) tenant: Arc<str>,
    pub(crate) place: AreaPlace,
    /// Number of the question.
    pub(crate) number: u64,
    pub(crate) from: Position,
    pub(crate) to: RouteTo,
    pub(crate) radius: Radius,
    pub(crate) before: Option<Arc<Way>>,
}

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct RouteFound {
    pub(crate) place: AreaPlace,
    pub(crate) number: u64,
    pub(crate) lead: Lead,
    pub(crate) took: Duration,
}

/// A message for a shard.
#[derive(Debug)]
pub(crate) enum RouteNews {
    Found(Box<RouteFound>),
    /// Streets of these areas have become slow.
    Slowed(Vec<AreaPlace>),
}

/// Tells a shard, by its number.
pub(crate) type TellRoutes = Arc<dyn Fn(usize, RouteNews) -> BoxFuture<'static, ()> + Send + Sync>;

/// Where shards ask, and where it is known which areas lie along which streets.
pub(crate) struct Wayfinder {
    pub(crate) streets: Arc<Streets>,
    /// A std mutex: held for a push, or to take some.
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// A std mutex: held to put one in, or to go through all of a tenant.
    ways: Mutex<HashMap<Arc<str>, Ways>>,
}

/// Questions by tenant, and the order in which tenants have their turns.
#[derive(Default)]
struct Waiting {
    of: HashMap<Arc<str>, VecDeque<RouteAsked>>,
    turns: VecDeque<Arc<str>>,
}

/// The ways of a tenant's areas, with those that are gone but still listed.
#[derive(Default)]
struct Ways {
    listed: Vec<(AreaPlace, Weak<Way>)>,
    /// How many were there when the list was gone through last.
    there: usize,
}

impl Wayfinder {
    pub(crate) fn new(streets: Arc<Streets>) -> Arc<Self> {
        let (waiting, wake, ways) = (Mutex::default(), Notify::new(), Mutex::default());
        Arc::new(Self { streets, waiting, wake, ways })
    }

    /// Asks where an area lies. It has no other question that waits.
    pub(crate) fn ask(&self, asked: RouteAsked) {
        self.waiting().push(asked);
        self.wake.notify_one();
    }

    /// Notes along which way an area lies; says whether streets cost what they did when that was found.
    pub(crate) fn note(&self, tenant: &str, place: AreaPlace, way: &Arc<Way>) -> bool {
        let mut all = self.ways();
        if !all.contains_key(tenant) {
            all.insert(tenant.into(), Ways::default());
        }
        if let Some(ways) = all.get_mut(tenant) {
            if ways.listed.len() > 2 * ways.there + GONE {
                ways.clear_up();
            }
            ways.listed.push((place, Arc::downgrade(way)));
        }
        // Under the lock: costs that are put into force after this find the way in the list.
        self.streets.traffic.of(tenant).number == way.costs
    }

    /// The areas that lie along one of some arcs which have become slow.
    fn along(&self, tenant: &str, slow: &BTreeSet<u32>) -> Vec<AreaPlace> {
        // Not under the lock, for which shards would wait. A way that is noted meanwhile was found at the new costs, or is asked for again.
        let Some(mut ways) = self.ways().get_mut(tenant).map(std::mem::take) else { return Vec::new() };
        ways.clear_up();
        let mut is_slow = vec![false; self.streets.graph.arcs_count()];
        slow.iter().for_each(|arc| is_slow[*arc as usize] = true);
        let is_slowed = |way: &Weak<Way>| {
            way.upgrade().is_some_and(|way| way.arcs.iter().any(|arc| is_slow[*arc as usize]))
        };
        let slowed = ways.listed.iter().filter(|(_, way)| is_slowed(way)).map(|(place, _)| *place).collect();
        if let Some(since) = self.ways().get_mut(tenant) {
            since.listed.append(&mut ways.listed);
            since.there += ways.there;
        }
        slowed
    }

    /// Puts into force which arcs are slow for a tenant, and has the areas found again that lie along one which was not before.
    pub(crate) async fn slow_down(
        self: &Arc<Self>,
        tenant: &Arc<str>,
        slow: BTreeSet<u32>,
        factor: f64,
        tell: &TellRoutes,
    ) {
        let (finder, of) = (Arc::clone(self), Arc::clone(tenant));
        let work = move || {
            let more = finder.streets.slow_down(&of, slow, factor);
            if more.is_empty() { Vec::new() } else { finder.along(&of, &more) }
        };
        let Ok(mut concerned) = tokio::task::spawn_blocking(work).await else { return };
        concerned.sort_unstable_by_key(|place| place.shard);
        for places in concerned.chunk_by(|one, two| one.shard == two.shard) {
            for some in places.chunks(SLOWED_BATCH) {
                tell(some[0].shard, RouteNews::Slowed(some.to_vec())).await;
            }
        }
    }

    /// Answers questions until the broker has ended.
    pub(crate) async fn run(self: Arc<Self>, tell: TellRoutes, ended: CancellationToken) {
        let work = async {
            loop {
                let batch = self.waiting().take(BATCH);
                if batch.is_empty() {
                    self.wake.notified().await;
                    continue;
                }
                let finder = Arc::clone(&self);
                let found = self.streets.aside(None, move |_, memories| finder.find(batch, memories)).await;
                for one in found.unwrap_or_default() {
                    tell(one.place.shard, RouteNews::Found(Box::new(one))).await;
                }
            }
        };
        ended.run_until_cancelled(work).await;
    }

    fn find(&self, batch: Vec<RouteAsked>, memories: &mut super::Memories) -> Vec<RouteFound> {
        let one = |asked: RouteAsked| {
            let RouteAsked { tenant, place, number, from, to, radius, before } = asked;
            let began = Instant::now();
            let lead = self.streets.lead(&tenant, &from, to, radius, before.as_deref(), memories);
            RouteFound { place, number, lead, took: began.elapsed() }
        };
        batch.into_iter().map(one).collect()
    }

    // A panic under either lock is impossible but for memory running out.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ways(&self) -> MutexGuard<'_, HashMap<Arc<str>, Ways>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn push(&mut self, asked: RouteAsked) {
        let tenant = Arc::clone(&asked.tenant);
        let of = self.of.entry(Arc::clone(&tenant)).or_default();
        if of.is_empty() {
            self.turns.push_back(tenant);
        }
        of.push_back(asked);
    }

    /// Takes some, one of each tenant in turn.
    fn take(&mut self, count: usize) -> Vec<RouteAsked> {
        let mut taken = Vec::new();
        while taken.len() < count
            && let Some(tenant) = self.turns.pop_front()
        {
            let Some(of) = self.of.get_mut(&tenant) else { continue };
            taken.extend(of.pop_front());
            if of.is_empty() {
                self.of.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
        taken
    }
}

impl Ways {
    fn clear_up(&mut self) {
        self.listed.retain(|(_, way)| way.strong_count() > 0);
        self.there = self.listed.len();
    }
}
