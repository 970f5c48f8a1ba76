//! Finds again where areas along routes lie, beside the shards.
//!
//! ```text
//! shard: a client has left its corridor ─> asks ─> wayfinder: takes turns among tenants and clients ─> tells the shard, by a command
//! ```
//!
//! Each area has one question that waits at most, and the question of an area that is gone is withdrawn. A client therefore has as many
//! questions as `routes.areas_per_client` permits areas, and none is refused. Tenants have turns, and in the turn of a tenant the next of its clients:
//! for the areas of one subscription, which are laid together. Answers are in force in the order of the shard's commands; until then an
//! area lies where it lay.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use matcher::geo::{Position, Radius};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Lead, Streets};
use crate::ingest::area::RouteTo;
use crate::model::tenant;
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
    /// The client, by its name inside.
    pub(crate) client: Arc<str>,
    pub(crate) place: AreaPlace,
    /// Number of the question, larger than those of the client's earlier ones.
    pub(crate) number: u64,
    pub(crate) from: Position,
    pub(crate) to: RouteTo,
    pub(crate) radius: Radius,
    pub(crate) before: Option<Arc<Way>>,
}

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct RouteFound {
    /// The number of the area among the routes of its subscription.
    pub(crate) route: usize,
    /// Number of the question.
    pub(crate) asked: u64,
    pub(crate) lead: Lead,
}

/// Answers for areas of one subscription.
#[derive(Debug)]
pub(crate) struct RoutesFound {
    /// The number of the subscription in its shard.
    pub(crate) subscription: u32,
    pub(crate) found: Vec<RouteFound>,
    pub(crate) took: Duration,
}

/// A message for a shard.
#[derive(Debug)]
pub(crate) enum RouteNews {
    Found(RoutesFound),
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

/// Questions of each client of each tenant, by their numbers.
#[derive(Default)]
struct Waiting {
    tenants: Turns<Turns<Questions>>,
}

type Questions = BTreeMap<u64, RouteAsked>;

/// Queues, and the order in which they have their turns. Each that is there has a place in the order.
struct Turns<Q> {
    queues: HashMap<Arc<str>, Q>,
    order: VecDeque<Arc<str>>,
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

    /// Takes questions of a client back whose answers are of no use any more.
    pub(crate) fn withdraw(&self, client: &str, numbers: impl IntoIterator<Item = u64>) {
        self.waiting().withdraw(client, numbers);
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
                let found =
                    self.streets.aside(None, move |_, memories, _| finder.find(batch, memories)).await;
                for (shard, found) in found.unwrap_or_default() {
                    tell(shard, RouteNews::Found(found)).await;
                }
            }
        };
        ended.run_until_cancelled(work).await;
    }

    /// Answers questions, those for areas of one subscription together; each answer with the shard that is to have it.
    fn find(&self, batch: Vec<RouteAsked>, memories: &mut super::Memories) -> Vec<(usize, RoutesFound)> {
        let subscription_of = |asked: &RouteAsked| (asked.place.shard, asked.place.subscription);
        let of_one = |some: &[RouteAsked]| {
            let began = Instant::now();
            let (shard, subscription) = subscription_of(&some[0]);
            let one = |asked: &RouteAsked| {
                let RouteAsked { client, place, number, from, to, radius, before } = asked;
                let tenant = tenant::split(client).0;
                let lead = self.streets.lead(tenant, from, *to, *radius, before.as_deref(), memories);
                RouteFound { route: place.route, asked: *number, lead }
            };
            let found = some.iter().map(one).collect();
            (shard, RoutesFound { subscription, found, took: began.elapsed() })
        };
        batch.chunk_by(|one, two| subscription_of(one) == subscription_of(two)).map(of_one).collect()
    }

    /// Answers the questions whose turn it is, at once.
    #[cfg(test)]
    pub(crate) fn answer_some(&self) -> Vec<RoutesFound> {
        let batch = self.waiting().take(BATCH);
        let found = self.streets.with_memories(|memories| self.find(batch, memories));
        found.into_iter().map(|(_, found)| found).collect()
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
        let tenant = tenant::split(&asked.client).0.into();
        let questions = self.tenants.queue(tenant).queue(Arc::clone(&asked.client));
        questions.insert(asked.number, asked);
    }

    fn withdraw(&mut self, client: &str, numbers: impl IntoIterator<Item = u64>) {
        let clients = self.tenants.queues.get_mut(tenant::split(client).0);
        // A queue without questions stays until its turn, and so in its one place in the order.
        if let Some(questions) = clients.and_then(|clients| clients.queues.get_mut(client)) {
            numbers.into_iter().for_each(|number| drop(questions.remove(&number)));
        }
    }

    /// Takes some, as many as are wanted or all.
    fn take(&mut self, count: usize) -> Vec<RouteAsked> {
        let mut taken = Vec::new();
        while taken.len() < count
            && self.tenants.turn(|clients| {
                clients.turn(|questions| {
                    take_of_one(questions, count, &mut taken);
                    !questions.is_empty()
                });
                !clients.order.is_empty()
            })
        {}
        taken
    }
}

/// Takes the first question, and those after it that are for areas of the same subscription, until there are as many as are wanted.
fn take_of_one(questions: &mut Questions, count: usize, taken: &mut Vec<RouteAsked>) {
    let subscription = questions.first_key_value().map(|(_, asked)| asked.place.subscription);
    while taken.len() < count
        && let Some(next) = questions.first_entry()
        && Some(next.get().place.subscription) == subscription
    {
        taken.push(next.remove());
    }
}

impl<Q: Default> Turns<Q> {
    /// The queue of a key: at first empty, and last in the order.
    fn queue(&mut self, key: Arc<str>) -> &mut Q {
        self.queues.entry(key).or_insert_with_key(|key| {
            self.order.push_back(Arc::clone(key));
            Q::default()
        })
    }

    /// Lets the next have its turn, which says whether there is more in its queue; says whether there was one.
    fn turn(&mut self, take: impl FnOnce(&mut Q) -> bool) -> bool {
        let Some(key) = self.order.pop_front() else { return false };
        if self.queues.get_mut(&key).is_some_and(take) {
            self.order.push_back(key);
        } else {
            self.queues.remove(&key);
        }
        true
    }
}

impl<Q> Default for Turns<Q> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new() }
    }
}

impl Ways {
    fn clear_up(&mut self) {
        self.listed.retain(|(_, way)| way.strong_count() > 0);
        self.there = self.listed.len();
    }
}

#[cfg(test)]
mod tests {
    use matcher::geo::World;
    use wire::RouteBy;

    use super::*;

    fn ask(waiting: &mut Waiting, client: &str, subscription: u32, number: u64) {
        let place = AreaPlace { shard: 0, subscription, route: 0 };
        let (client, from) = (client.into(), World::Geodetic.position(&[0.0, 0.0]).unwrap());
        let (to, radius) =
            (RouteTo { to: from, by: RouteBy::Duration }, Radius::new(World::Geodetic, 1.0).unwrap());
        waiting.push(RouteAsked { client, place, number, from, to, radius, before: None });
    }

    /// The clients whose turns come, each with its questions.
    fn turns(waiting: &mut Waiting, count: usize) -> Vec<(String, Vec<u64>)> {
        let taken = waiting.take(count);
        let of_one =
            |some: &[RouteAsked]| (some[0].client.to_string(), some.iter().map(|one| one.number).collect());
        taken.chunk_by(|one, two| one.client == two.client && one.place == two.place).map(of_one).collect()
    }

    #[test]
    fn a_client_with_hundreds_of_questions_holds_nobody_up_for_longer_than_a_turn() {
        let [acme, modest] = ["greedy", "modest"].map(|name| tenant::inside("acme", name));
        for greedy in ["greedy", &*acme] {
            let mut waiting = Waiting::default();
            for (number, subscription) in (1..=640).zip((0..64).cycle()) {
                ask(&mut waiting, greedy, subscription, number);
            }
            waiting.take(64);
            ask(&mut waiting, "modest", 700, 1);
            ask(&mut waiting, &modest, 701, 1);
            let first = turns(&mut waiting, 64);
            let is_early = |client: &str| first.iter().take(3).any(|(name, _)| name == client);
            assert!(is_early("modest") && is_early(&modest), "{first:?}");
        }
    }

    #[test]
    fn a_question_of_no_use_any_more_is_withdrawn_and_gives_nobody_a_second_turn() {
        let mut waiting = Waiting::default();
        ask(&mut waiting, "other", 1, 1);
        for number in 1..=1_000 {
            ask(&mut waiting, "restless", 2, number);
            waiting.withdraw("restless", [number]);
        }
        ask(&mut waiting, "restless", 2, 1_001);
        ask(&mut waiting, "restless", 3, 1_002);
        ask(&mut waiting, "other", 4, 2);
        let named = |name: &str, number: u64| (name.to_owned(), vec![number]);
        let expected =
            [named("other", 1), named("restless", 1_001), named("other", 2), named("restless", 1_002)];
        assert_eq!(turns(&mut waiting, 64), expected);
        assert!(waiting.tenants.order.is_empty() && waiting.tenants.queues.is_empty());
    }
}
