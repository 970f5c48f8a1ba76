//! Routes through the streets that the settings name, and areas along them that follow their clients.

mod costs;
mod leading;
mod telling;
mod wayfinder;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use matcher::geo::Position;
use routes::{
    BATCH, Cost, Graph, Hierarchy, LEVELS, Level, LevelMemory, Memory, Metric, Nearest, Profile, Route,
    SCORES, Sample, Scheduler, durations_ms, lengths_mm, one_by_one, places,
};
use streets::Network;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::{FoundRoute, LineStringKind, RouteBy, RouteLine};

use crate::config::Config;
use crate::ingest::route::RouteQuestion;
use crate::model::error::ApiError;
use costs::{SlowedCosts, Traffic};
pub(crate) use leading::Lead;
pub(crate) use telling::{AreaAfter, AreaHeld, AreasAsked, PageBounds};
pub(crate) use wayfinder::{
    AreaPlace, RouteAsked, RouteFound, RouteNews, RoutesFound, TellRoutes, Wayfinder,
};

/// Metres from a place to the nearest node, at most.
const SNAP_M: f64 = 1_000.0;

/// Time after which others have a turn.
const SLICE: Duration = Duration::from_millis(5);

/// Routes of each level that are found to know how long one takes.
const PROFILED: u32 = 32;

/// Streets, and what is needed to find routes through them.
#[derive(Debug)]
pub struct Streets {
    network: Network,
    graph: Graph,
    hierarchy: Hierarchy,
    nearest: Nearest,
    by_length: Costs,
    by_duration: Costs,
    /// Streets that are slow.
    traffic: Traffic,
    /// Memory of searches that are not under way.
    memories: Mutex<Vec<Memories>>,
    /// Threads that search at once.
    turns: Arc<Semaphore>,
    /// Requests of many questions that are answered at once.
    batches: Arc<Semaphore>,
}

/// A thread's turn to search.
struct Turn {
    turns: Arc<Semaphore>,
    runtime: Handle,
    permit: Option<OwnedSemaphorePermit>,
    began: Instant,
    /// How long earlier ones have lasted.
    worked: Duration,
}

impl Turn {
    /// Lets those go first that wait meanwhile, where it has lasted for [`SLICE`]. Blocks.
    fn hand_on(&mut self) {
        let lasted = self.began.elapsed();
        if lasted < SLICE {
            return;
        }
        self.worked += lasted;
        self.permit = None;
        self.permit = self.runtime.block_on(Arc::clone(&self.turns).acquire_owned()).ok();
        self.began = Instant::now();
    }

    fn worked(&self) -> Duration {
        self.worked + self.began.elapsed()
    }
}

/// A permit, if there is one until a moment.
async fn in_time(until: Option<Instant>, permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ApiError> {
    let permit = Arc::clone(permits).acquire_owned();
    let permit = match until {
        Some(until) => tokio::time::timeout_at(until.into(), permit).await.map_err(|_| ApiError::Late)?,
        None => permit.await,
    };
    permit.map_err(|_| ApiError::Stopping)
}

/// What arcs cost, and what follows from that.
#[derive(Debug)]
struct Costs {
    of_arcs: Vec<Cost>,
    metric: Metric,
    levels: Vec<Level>,
    profile: Profile,
}

#[derive(Debug, Default)]
struct Memories {
    exact: Memory,
    coarse: LevelMemory,
}

impl Streets {
    /// Reads the streets, if the settings name any. Blocks: some tenths of a second for a city.
    ///
    /// # Errors
    /// Streets that cannot be read, with the place in the file.
    pub fn read(config: &Config) -> anyhow::Result<Option<Arc<Self>>> {
        if config.routes.streets.is_empty() {
            return Ok(None);
        }
        let network = streets::load(Path::new(&config.routes.streets))
            .context("the streets (routes.streets) cannot be read")?;
        if let Some(problem) = &network.census().first_problem {
            let skipped = network.census().skipped;
            tracing::warn!(skipped, problem, "records of the streets make no sense and are left out");
        }
        let graph = Graph::of(&network);
        let hierarchy = Hierarchy::new(&graph, &places(&network));
        let costs = |of_arcs: Vec<Cost>| {
            let metric = hierarchy.customise(&of_arcs);
            let levels = (1..LEVELS).map(|level| Level::new(&hierarchy, &graph, &metric, level)).collect();
            Costs { of_arcs, metric, levels, profile: Profile::default() }
        };
        let (by_length, by_duration) = (costs(lengths_mm(&network)), costs(durations_ms(&network)));
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        let nearest = Nearest::new(&network);
        let memories = Mutex::default();
        let [turns, batches] = [(); 2].map(|()| Arc::new(Semaphore::new(threads)));
        let traffic = Traffic::new(&network);
        let mut streets = Self {
            network,
            graph,
            hierarchy,
            nearest,
            by_length,
            by_duration,
            traffic,
            memories,
            turns,
            batches,
        };
        streets.by_length.profile = streets.profile(RouteBy::Length);
        streets.by_duration.profile = streets.profile(RouteBy::Duration);
        tracing::info!(
            nodes = streets.graph.nodes_count(),
            arcs = streets.graph.arcs_count(),
            "routes lead through {}",
            config.routes.streets
        );
        Ok(Some(Arc::new(streets)))
    }

    /// Finds routes on a thread beside those that serve everybody, and charges for the time that this took. The least deadline, from `arrived` on, counts
    /// for all.
    ///
    /// # Errors
    /// [`ApiError::Late`] where the turn for that does not come in time.
    pub(crate) async fn find(
        self: &Arc<Self>,
        tenant: Arc<str>,
        questions: Vec<RouteQuestion>,
        arrived: Instant,
        charge: impl FnOnce(Duration) + Send + 'static,
    ) -> Result<Vec<Result<FoundRoute, ApiError>>, ApiError> {
        let until = least_deadline(&questions).map(|deadline| arrived + deadline);
        // Requests of many questions wait for each other, so that those of one wait for few.
        let batch = match questions.len() {
            0 | 1 => None,
            _ => Some(in_time(until, &self.batches).await?),
        };
        let found = self.aside(until, move |streets, memories, turn| {
            let _batch = batch;
            let answers = streets.answer(&tenant, &questions, arrived, memories, turn);
            charge(turn.worked());
            answers
        });
        found.await
    }

    /// Does work on a thread beside those that serve everybody, in its turn, or not at all where that does not come until a moment. Work that has begun goes
    /// on, and keeps its turn, where nobody waits for it any more.
    async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        until: Option<Instant>,
        work: impl FnOnce(&Self, &mut Memories, &mut Turn) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = Some(in_time(until, &self.turns).await?);
        let (turns, runtime) = (Arc::clone(&self.turns), Handle::current());
        let mut turn = Turn { turns, runtime, permit, began: Instant::now(), worked: Duration::ZERO };
        let streets = Arc::clone(self);
        let work = move || streets.with_memories(|memories| work(&streets, memories, &mut turn));
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| ApiError::Internal("a search for routes panicked"))
    }

    /// Does work with the memory of searches that is at hand.
    fn with_memories<T>(&self, work: impl FnOnce(&mut Memories) -> T) -> T {
        let lock = || self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let memories = lock().pop();
        let mut memories = memories.unwrap_or_default();
        let done = work(&mut memories);
        lock().push(memories);
        done
    }

    fn answer(
        &self,
        tenant: &str,
        questions: &[RouteQuestion],
        arrived: Instant,
        memories: &mut Memories,
        turn: &mut Turn,
    ) -> Vec<Result<FoundRoute, ApiError>> {
        let deadline = least_deadline(questions);
        let slowed = self.traffic.of(tenant);
        let slowed = slowed.costs.as_ref();
        let mut answers: Vec<_> = questions.iter().map(|_| Err(ApiError::Late)).collect();
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let is_by_length = questions.iter().all(|question| question.by == RouteBy::Length);
        let profile = if is_by_length { &self.by_length.profile } else { &self.by_duration.profile };
        let now_ns = || nanoseconds(arrived.elapsed());
        let find = |number: usize, level: usize| {
            turn.hand_on();
            let question = &questions[number];
            let answer = self.one(question, level.min(question.coarsest), slowed, memories);
            if deadline.is_none_or(|deadline| arrived.elapsed() <= deadline) {
                answers[number] = answer;
            }
        };
        let (sizes, contract_ns) = ((BATCH, 0, questions.len()), deadline.map(nanoseconds));
        Scheduler::Online.run(profile, sizes, contract_ns, now_ns, one_by_one(find));
        answers
    }

    fn one(
        &self,
        question: &RouteQuestion,
        level: usize,
        slowed: Option<&SlowedCosts>,
        memories: &mut Memories,
    ) -> Result<FoundRoute, ApiError> {
        let ends = [self.node("from", &question.from)?, self.node("to", &question.to)?];
        let (level, route) = self.route(question.by, ends, level, slowed, memories).ok_or_else(|| {
            ApiError::NoRoute("no way leads along the streets from the one place to the other".to_owned())
        })?;
        Ok(self.found(level, &route, ends[0], slowed))
    }

    /// The node that is nearest to a place.
    fn node(&self, name: &str, place: &Position) -> Result<u32, ApiError> {
        self.node_near(place).ok_or_else(|| {
            let swapped = self.swapped(place);
            ApiError::NoRoute(format!("there is no street within {SNAP_M} m of {name}{swapped}"))
        })
    }

    /// What to say of a place without streets if there are some where it would be with its numbers in the other order.
    fn swapped(&self, place: &Position) -> String {
        let numbers = [place.y(), place.x()];
        let is_near = |place: Position| self.node_near(&place).is_some();
        if self.network.world().position(&numbers).is_ok_and(is_near) {
            let [longitude, latitude] = numbers;
            return format!(" (longitude comes first: did you mean [{longitude}, {latitude}]?)");
        }
        String::new()
    }

    fn node_near(&self, place: &Position) -> Option<u32> {
        let nearest = self.nearest.to(&self.network, place);
        nearest.filter(|(_, metres)| *metres <= SNAP_M).map(|(node, _)| node)
    }

    /// A route of a level, and the level that it is of: 0 where the level asked for has none, and where some streets are slow.
    fn route(
        &self,
        by: RouteBy,
        ends: [u32; 2],
        level: usize,
        slowed: Option<&SlowedCosts>,
        memories: &mut Memories,
    ) -> Option<(usize, Route)> {
        let [from, to] = ends;
        if let Some(slowed) = slowed {
            let metric = slowed.metric(by);
            return self.hierarchy.route(metric, from, to, &mut memories.exact).map(|route| (0, route));
        }
        let Costs { of_arcs, metric, levels, .. } = match by {
            RouteBy::Length => &self.by_length,
            RouteBy::Duration => &self.by_duration,
        };
        let (made_of, streets) = ((&self.hierarchy, metric), (&self.graph, &**of_arcs));
        let coarse = level.checked_sub(1).map(|place| &levels[place]);
        if let Some(route) =
            coarse.and_then(|level| level.route(made_of, streets, ends, &mut memories.coarse))
        {
            return Some((level, route));
        }
        self.hierarchy.route(metric, from, to, &mut memories.exact).map(|route| (0, route))
    }

    /// The line of a way: the one point of it twice where it ends at the node at which it begins.
    fn line(&self, arcs: &[u32], from: u32) -> Vec<[f64; 2]> {
        let begin = self.network.node_at(from);
        let mut coordinates = vec![begin];
        for arc in arcs {
            coordinates.extend(&self.network.shape(*arc)[1..]);
        }
        if coordinates.len() == 1 {
            coordinates.push(begin);
        }
        coordinates
    }

    fn found(&self, level: usize, route: &Route, from: u32, slowed: Option<&SlowedCosts>) -> FoundRoute {
        let coordinates = self.line(&route.arcs, from);
        let sum = |costs: &[Cost]| route.arcs.iter().map(|arc| costs[*arc as usize]).sum::<Cost>();
        FoundRoute {
            route: RouteLine { kind: LineStringKind::LineString, coordinates },
            length_m: thousandths(sum(&self.by_length.of_arcs)),
            duration_s: thousandths(sum(self.durations_ms(slowed))),
            level: u8::try_from(level).unwrap_or(u8::MAX),
            score: SCORES[level],
        }
    }

    fn durations_ms<'a>(&'a self, slowed: Option<&'a SlowedCosts>) -> &'a [Cost] {
        slowed.map_or(&self.by_duration.of_arcs, |slowed| &slowed.durations_ms)
    }

    /// How long routes of each level take: some across the network.
    fn profile(&self, by: RouteBy) -> Profile {
        let nodes = u32::try_from(self.graph.nodes_count()).unwrap_or(u32::MAX);
        let mut memories = Memories::default();
        let mut profile = Profile::default();
        for level in 0..LEVELS {
            let began = Instant::now();
            for nth in 0..PROFILED {
                // Pairs all over the network, the same ones each time.
                let node = |factor: u32| nth.wrapping_mul(factor) % nodes;
                std::hint::black_box(self.route(
                    by,
                    [node(2_654_435_761), node(805_459_861)],
                    level,
                    None,
                    &mut memories,
                ));
            }
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            profile.note(level, Sample { count: PROFILED as usize, blocks: 1, ns, most_ns: ns, rounds: 0 });
        }
        profile
    }
}

/// The deadline of questions that are answered together, from their arrival on.
pub(crate) fn least_deadline(questions: &[RouteQuestion]) -> Option<Duration> {
    questions.iter().filter_map(|question| question.deadline).min()
}

/// Metres of millimetres, seconds of milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a route is no longer than 2^52 mm or ms")]
fn thousandths(sum: Cost) -> f64 {
    sum as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_turn_that_lasts_is_handed_on_to_those_who_wait() {
        let turns = Arc::new(Semaphore::new(1));
        let permit = Some(in_time(None, &turns).await.expect("it is free"));
        let (runtime, began) = (Handle::current(), Instant::now());
        let mut turn = Turn { turns: Arc::clone(&turns), runtime, permit, began, worked: Duration::ZERO };
        let passing = Some(Instant::now());
        assert!(matches!(in_time(passing, &turns).await, Err(ApiError::Late)));
        let waiter = tokio::spawn(async move { in_time(None, &turns).await.is_ok() });
        let worker = tokio::task::spawn_blocking(move || {
            while !waiter.is_finished() {
                turn.hand_on();
            }
            turn.permit.is_some() && turn.worked() >= SLICE
        });
        let worked = tokio::time::timeout(Duration::from_secs(60), worker).await;
        assert!(worked.expect("it is handed on").expect("no panic"));
    }
}
