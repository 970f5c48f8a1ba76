//! Areas along routes: each lies along the way that was best when it was found, and is found again, beside the shard, when its client has left
//! it or when a street on it has become slow. Until then it lies where it lay.
//!
//! A client with such areas has its moves waited for: one that leaves an area is answered when the area is in force that was found for it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use matcher::area::{Area, Corridor};
use matcher::geo::{Radius, World};
use matcher::live::Cause;
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher::violated;

use super::commit::Answer;
use super::{Located, Payer, Sessions};
use crate::budget::{Account, Held, Kind};
use crate::ingest::area::RouteTo;
use crate::ingest::subscription::RouteArea;
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::model::way::Way;
use crate::routing::{AreaHeld, AreaPlace, AreasAsked, Lead, RouteAsked, RouteFound, RoutesFound};

/// Bytes of an area besides its line, with the question for it.
const AREA_BYTES: usize = 512;

/// Moves of a client that wait for its areas, at most; further ones are answered before.
const WAITING: usize = 256;

/// An area along a route.
pub(super) struct HeldRoute {
    /// The filter whose area it is.
    filter: usize,
    to: RouteTo,
    radius: Radius,
    /// Where it lies, once that was looked for.
    way: Option<Arc<Way>>,
    question: Option<Question>,
    held: Held,
}

/// A question for where an area lies.
struct Question {
    number: u64,
    cause: Cause,
}

/// A client that has areas along routes.
#[derive(Default)]
pub(super) struct Routed {
    /// How many such areas it has.
    areas_count: usize,
    /// How often it has moved since it had the first.
    moves: u64,
    /// The last move before each question that has no answer yet, by the question's number: the oldest comes first.
    asked: BTreeMap<u64, u64>,
    /// Answers to moves, by their numbers, that wait until the areas are in force which were found for them.
    waiting: Vec<(u64, Answer)>,
}

impl HeldRoute {
    /// The areas of a subscription as they were laid, charged to an account that has room for them.
    ///
    /// # Errors
    /// A limit that is reached.
    pub(super) fn of(
        routes: &[RouteArea],
        filters: &[Filter],
        account: &Arc<Account>,
    ) -> Result<Box<[Self]>, ApiError> {
        let charged = |route: &RouteArea| {
            let bytes =
                filters.get(route.filter).map_or(0, |filter| bytes_of(&filter.area, route.way.as_deref()));
            Ok(Self::new(route, account.hold(Kind::Routes, bytes)?))
        };
        routes.iter().map(charged).collect()
    }

    /// The areas of a subscription that was there before the broker began.
    pub(super) fn again(routes: &[RouteArea], filters: &[Filter], account: &Arc<Account>) -> Box<[Self]> {
        let charged = |route: &RouteArea| {
            let bytes =
                filters.get(route.filter).map_or(0, |filter| bytes_of(&filter.area, route.way.as_deref()));
            Self::new(route, account.hold_anyway(Kind::Routes, bytes))
        };
        routes.iter().map(charged).collect()
    }

    fn new(route: &RouteArea, held: Held) -> Self {
        let RouteArea { filter, to, radius, way } = route.clone();
        Self { filter, to, radius, way, question: None, held }
    }

    /// The filter whose area it is.
    pub(super) fn filter(&self) -> usize {
        self.filter
    }
}

fn bytes_of(area: &Area, way: Option<&Way>) -> u64 {
    let line = if let Area::Corridor(corridor) = area { corridor.bytes() } else { 0 };
    let arcs = way.map_or(0, |way| size_of_val(&*way.arcs));
    (AREA_BYTES + line + arcs) as u64
}

fn is_nowhere(area: &Area) -> bool {
    if let Area::Corridor(corridor) = area { corridor.is_nowhere() } else { true }
}

impl Routed {
    /// Whether the client has such areas still.
    pub(super) fn is_needed(&self) -> bool {
        self.areas_count > 0
    }
}

impl Sessions {
    /// Checks that a client may have a subscription with as many areas along routes, in place of the one of that id.
    pub(super) fn check_areas(&self, client: Option<u32>, id: &str, wanted: usize) -> Result<(), ApiError> {
        let client = client.and_then(|id| self.clients.get(id));
        let replaced = client.and_then(|client| self.subscriptions.get(*client.subscriptions.get(id)?));
        let all = client.and_then(|client| client.routed.as_ref()).map_or(0, |routed| routed.areas_count);
        self.allowance.check_areas(all, replaced.map_or(0, |held| held.routes.len()), wanted)
    }

    /// Counts the areas along routes of a client that come with a subscription, and those that go: their questions are withdrawn.
    pub(super) fn count_routed(&mut self, client: u32, come: usize, gone: &[HeldRoute]) {
        let Some(client) = self.clients.get_mut(client).filter(|_| come > 0 || !gone.is_empty()) else {
            return;
        };
        let routed = client.routed.get_or_insert_default();
        routed.areas_count = (routed.areas_count + come) - gone.len();
        let questions = gone.iter().filter_map(|route| Some(route.question.as_ref()?.number));
        let withdrawn: Vec<_> = questions.filter(|number| routed.asked.remove(number).is_some()).collect();
        if let Some(wayfinder) = self.wayfinder.as_ref().filter(|_| !withdrawn.is_empty()) {
            wayfinder.withdraw(&client.name, withdrawn);
        }
    }

    /// A subscription has come into force: notes where its areas lie, and asks for those that lie elsewhere by now.
    pub(super) fn begin_routes(&mut self, number: u32) {
        let routes_count = self.subscriptions.get(number).map_or(0, |held| held.routes.len());
        for route in 0..routes_count {
            self.note_way(number, route, Cause::Changed);
            self.look_for(number, route, Cause::Changed);
        }
    }

    /// Asks for those of a client's areas that it has left by its last move.
    pub(super) fn follow_routes(&mut self, client_id: u32) {
        let Some(client) = self.clients.get_mut(client_id) else { return };
        let Some(routed) = &mut client.routed else { return };
        routed.moves += 1;
        let has_routes =
            |number: &u32| self.subscriptions.get(*number).is_some_and(|held| !held.routes.is_empty());
        let numbers: Vec<_> = client.subscriptions.values().copied().filter(has_routes).collect();
        for number in numbers {
            let routes_count = self.subscriptions.get(number).map_or(0, |held| held.routes.len());
            for route in 0..routes_count {
                self.look_for(number, route, Cause::Moved);
            }
        }
    }

    /// Streets of areas have become slow.
    pub(crate) fn streets_slowed(&mut self, places: &[AreaPlace]) {
        for place in places {
            self.ask_way(place.subscription, place.route, Cause::Changed);
        }
    }

    /// Asks where an area lies if its client is outside of it.
    fn look_for(&mut self, number: u32, route: usize, cause: Cause) {
        let Some((held, watch)) =
            self.subscriptions.get(number).zip(self.tracker.watch(SubscriptionId(number)))
        else {
            return;
        };
        let Some(route_held) = held.routes.get(route) else { return };
        let Some(fix) = self.tracker.fix(ClientId(held.client)) else { return };
        let area = watch.filters().get(route_held.filter).map(|filter| &filter.area);
        if area.is_some_and(|area| !area.holds(World::Geodetic, None, &fix.position)) {
            self.ask_way(number, route, cause);
        }
    }

    /// Asks where an area lies, unless that is asked already.
    fn ask_way(&mut self, number: u32, route: usize, cause: Cause) {
        let Some(wayfinder) = &self.wayfinder else { return };
        let Some(held) = self.subscriptions.get_mut(number) else { return };
        let Some(client) = self.clients.get_mut(held.client) else {
            return violated!("a subscription's client is there");
        };
        let Some(fix) = self.tracker.fix(ClientId(held.client)) else { return };
        let Some(held) = held.routes.get_mut(route).filter(|route| route.question.is_none()) else { return };
        self.last_asked += 1;
        let routed = client.routed.get_or_insert_default();
        routed.asked.insert(self.last_asked, routed.moves);
        held.question = Some(Question { number: self.last_asked, cause });
        wayfinder.ask(RouteAsked {
            client: Arc::clone(&client.name),
            place: AreaPlace { shard: self.shard, subscription: number, route },
            number: self.last_asked,
            from: fix.position,
            to: held.to,
            radius: held.radius,
            before: held.way.clone(),
        });
    }

    /// Puts areas of a subscription where they were found to lie, but for those whose question is of no use any more.
    pub(crate) fn routes_found(&mut self, RoutesFound { subscription: number, found, .. }: RoutesFound) {
        let Some(client_id) = self.subscriptions.get(number).map(|held| held.client) else { return };
        self.paid_by(Payer::Client { id: client_id, subscription: Some(number) });
        let (mut answered, mut moved, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for RouteFound { route, asked, lead } in found {
            let Some(held) = self.subscriptions.get_mut(number).and_then(|held| held.routes.get_mut(route))
            else {
                continue;
            };
            let Some(question) = held.question.take_if(|question| question.number == asked) else { continue };
            let routed = self.clients.get_mut(client_id).and_then(|client| client.routed.as_mut());
            let before = routed.and_then(|routed| routed.asked.remove(&asked)).unwrap_or_default();
            answered.push((route, question.cause, before));
            let laid = if question.cause == Cause::Moved { &mut moved } else { &mut changed };
            match lead {
                Lead::Same(way) => held.way = Some(Arc::new(way)),
                Lead::Along(way, corridor) => laid.push((route, way, Some(corridor))),
                Lead::Nowhere(way) => laid.push((route, way, None)),
            }
        }
        self.lay(number, moved, Cause::Moved);
        self.lay(number, changed, Cause::Changed);
        for (route, cause, before) in answered {
            self.note_way(number, route, cause);
            if self.moves_of(client_id) > before {
                self.look_for(number, route, Cause::Moved);
            }
        }
        self.answer_moves(client_id);
    }

    /// Puts areas of a subscription along ways, or nowhere. All of them at once: the engine takes subscriptions as a whole.
    fn lay(&mut self, number: u32, areas: Vec<(usize, Way, Option<Corridor>)>, cause: Cause) {
        let Some(watch) = self.tracker.watch(SubscriptionId(number)).filter(|_| !areas.is_empty()) else {
            return;
        };
        let mut filters = watch.filters().to_vec();
        let Some(held) = self.subscriptions.get_mut(number) else { return };
        let client = ClientId(held.client);
        let laid_count = areas.len() as u64;
        for (route, mut way, corridor) in areas {
            let Some(held) = held.routes.get_mut(route) else { continue };
            let nowhere =
                || Area::Corridor(Box::new(Corridor::nowhere(World::Geodetic, &held.to.to, held.radius)));
            let mut area = corridor.map_or_else(nowhere, |corridor| Area::Corridor(Box::new(corridor)));
            if let Err(refusal) = held.held.resize(bytes_of(&area, Some(&way))) {
                tracing::debug!(?refusal, "an area along a route has no room");
                self.metrics.routes_refused.add(1);
                area = nowhere();
                way.arcs = Box::default();
                held.held.shrink(bytes_of(&area, Some(&way)));
            }
            held.way = Some(Arc::new(way));
            if let Some(filter) = filters.get_mut(held.filter) {
                filter.area = area;
            }
        }
        let subscription = Subscription { client, filters };
        if self.engine.install(SubscriptionId(number), &subscription).is_err() {
            // They are where they were.
            tracing::error!("the engine has no room for areas along routes");
            return;
        }
        let Subscription { filters, .. } = subscription;
        self.tracker.replace_filters(
            SubscriptionId(number),
            filters,
            cause,
            self.lives_now,
            &mut self.effects,
        );
        self.metrics.routes_found.add(laid_count);
        self.tell_changes();
    }

    /// Notes along which way an area lies, and asks again where streets cost something else by now.
    fn note_way(&mut self, number: u32, route: usize, cause: Cause) {
        let Some(wayfinder) = self.wayfinder.clone() else { return };
        let Some(held) = self.subscriptions.get(number) else { return };
        let Some(way) = held.routes.get(route).and_then(|route| route.way.as_ref()) else { return };
        let Some(client) = self.clients.get(held.client) else { return };
        let place = AreaPlace { shard: self.shard, subscription: number, route };
        if !wayfinder.note(tenant::split(&client.name).0, place, way) {
            self.ask_way(number, route, cause);
        }
    }

    /// Where a client is, to itself or to somebody else, and some of its areas in the order of the subscriptions' ids.
    pub(crate) fn areas_along_routes(&self, name: &str, asked: &AreasAsked) -> (Located, Vec<AreaHeld>) {
        let client = self.ids.get(name).and_then(|id| self.clients.get(*id));
        let after = asked.after.as_ref();
        let from = after.map_or(Bound::Unbounded, |after| Bound::Included(&*after.subscription));
        let subscriptions =
            client.map(|client| client.subscriptions.range::<str, _>((from, Bound::Unbounded)));
        let subscriptions = subscriptions.into_iter().flatten();
        let areas = subscriptions.flat_map(|(id, number)| {
            let routes = self.subscriptions.get(*number).map(|held| &*held.routes).unwrap_or_default();
            let watch = self.tracker.watch(SubscriptionId(*number));
            let area = move |filter: usize| watch.and_then(|watch| watch.filters().get(filter));
            routes.iter().map(move |route| AreaHeld {
                subscription: Arc::clone(id),
                filter: route.filter,
                to: route.to,
                radius: route.radius,
                way: route.way.clone(),
                is_laid: area(route.filter).is_some_and(|filter| !is_nowhere(&filter.area)),
            })
        });
        let areas = areas.filter(|area| after.is_none_or(|after| after.is_before(area)));
        (self.locate(name, asked.to_itself), areas.take(asked.most).collect())
    }

    fn moves_of(&self, client: u32) -> u64 {
        let client = self.clients.get(client);
        client.and_then(|client| client.routed.as_ref()).map_or(0, |routed| routed.moves)
    }

    /// Answers a move when the areas are in force that were found for it.
    pub(crate) fn answer_move(&mut self, client: &str, answer: Answer) {
        let id = self.ids.get(client).copied();
        let routed = id.and_then(|id| self.clients.get_mut(id)?.routed.as_mut());
        match routed {
            Some(routed) if !routed.asked.is_empty() && routed.waiting.len() < WAITING => {
                routed.waiting.push((routed.moves, answer));
            }
            _ => self.answer(answer),
        }
    }

    /// Answers the moves of a client that have nothing to wait for any more.
    pub(super) fn answer_moves(&mut self, client_id: u32) {
        let routed = self.clients.get_mut(client_id).and_then(|client| client.routed.as_mut());
        let Some(routed) = routed.filter(|routed| !routed.waiting.is_empty()) else { return };
        let oldest = routed.asked.first_key_value().map(|(_, before)| *before);
        let ends = routed.waiting.partition_point(|(moves, _)| oldest.is_none_or(|before| *moves < before));
        let answers: Vec<_> = routed.waiting.drain(..ends).map(|(_, answer)| answer).collect();
        self.answer_safely(answers);
    }

    /// Answers the moves of a client that is gone, and withdraws its questions.
    pub(super) fn answer_all(&mut self, client: &str, routed: Option<Box<Routed>>) {
        let Some(routed) = routed else { return };
        if let Some(wayfinder) = self.wayfinder.as_ref().filter(|_| !routed.asked.is_empty()) {
            wayfinder.withdraw(client, routed.asked.into_keys());
        }
        self.answer_safely(routed.waiting.into_iter().map(|(_, answer)| answer).collect());
    }

    /// Answers moves of earlier steps, which may not be on disk yet.
    fn answer_safely(&mut self, answers: Vec<Answer>) {
        if !answers.is_empty() {
            let _ = self.ledger.record();
        }
        answers.into_iter().for_each(|answer| self.answer(answer));
    }

    /// The filters of a subscription whose areas lie along routes.
    pub(super) fn routed_filters(&self, number: u32) -> Vec<usize> {
        let held = self.subscriptions.get(number);
        held.map(|held| held.routes.iter().map(HeldRoute::filter).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
    use matcher::event::Event;
    use matcher::geo::Position;
    use matcher::live::Fix;
    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::super::{Mover, Shared};
    use super::*;
    use crate::config::Config;
    use crate::ingest::subscription::SubscriptionReader;
    use crate::routing::{Streets, Wayfinder};

    /// Counts what is installed, and matches nothing.
    struct Counting(Arc<AtomicUsize>);

    impl Engine for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn install(&mut self, _: SubscriptionId, _: &Subscription) -> Result<(), InstallError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn remove(&mut self, _: SubscriptionId) -> bool {
            true
        }

        fn move_client(&mut self, _: ClientId, _: Option<Position>) {}

        fn match_batch(&mut self, _: &[&Event], _: &mut MatchRows) -> Result<(), MatchError> {
            Ok(())
        }

        fn footprint(&self) -> Footprint {
            Footprint::default()
        }
    }

    struct Bench {
        sessions: Sessions,
        wayfinder: Arc<Wayfinder>,
        subscriptions: SubscriptionReader,
        installs: Arc<AtomicUsize>,
        _streets: TempDir,
    }

    impl Bench {
        /// One street, of a kilometre.
        fn new() -> Self {
            let streets = TempDir::new().unwrap();
            for (name, text) in [
                ("nodes.csv", "node,lat,lon\n1,0,0\n2,0,0.01\n"),
                ("edges.csv", "from,to,length_mm,oneway,highway,maxspeed\n1,2,1000000,0,primary,50\n"),
            ] {
                std::fs::write(streets.path().join(name), text).unwrap();
            }
            let mut config = Config::default();
            config.routes.streets = streets.path().display().to_string();
            let wayfinder = Wayfinder::new(Streets::read(&config).unwrap().unwrap());
            let mut shared = Shared::new(&config, 1);
            shared.wayfinder = Some(Arc::clone(&wayfinder));
            let installs = Arc::<AtomicUsize>::default();
            let engine = Box::new(Counting(Arc::clone(&installs)));
            let sessions = Sessions::new(engine, &config, &shared, None, 0, 1);
            let subscriptions =
                SubscriptionReader::new(World::Geodetic, config.limits.clone(), config.outbox.overflow);
            Self { sessions, wayfinder, subscriptions, installs, _streets: streets }
        }

        fn install(&mut self, id: &str, areas: usize) {
            let area = serde_json::json!({"area": {"route": {"to": [0.01, 0.0]}, "radius_m": 10}});
            let document = serde_json::json!({"filters": vec![area; areas]}).to_string();
            let prepared = self.subscriptions.parse(id, &document).unwrap();
            self.sessions.install(&"car".into(), prepared, None).unwrap();
        }

        fn move_to(&mut self, x: f64) {
            let fix = Fix { position: World::Geodetic.position(&[x, 0.0]).unwrap(), accuracy_m: 0.0 };
            self.sessions.move_client(&"car".into(), Mover::Named(None), fix, None).unwrap();
            self.sessions.answer_move("car", Answer::Changed(oneshot::channel().0));
        }

        fn routed(&self) -> &Routed {
            self.sessions.clients.get(self.sessions.ids["car"]).unwrap().routed.as_ref().unwrap()
        }

        /// Lets the wayfinder find some; says how many areas were found, and how often something was installed for that.
        fn find(&mut self) -> (usize, usize) {
            let before = self.installs.load(Ordering::Relaxed);
            let found = self.wayfinder.answer_some();
            let areas_count = found.iter().map(|some| some.found.len()).sum();
            found.into_iter().for_each(|some| self.sessions.routes_found(some));
            (areas_count, self.installs.load(Ordering::Relaxed) - before)
        }
    }

    #[test]
    fn areas_of_a_subscription_are_laid_together_and_the_move_is_answered_after_the_last() {
        let mut bench = Bench::new();
        bench.install("one", 60);
        bench.install("two", 60);
        bench.move_to(0.0);
        assert_eq!((bench.routed().asked.len(), bench.routed().waiting.len()), (120, 1));
        let found: Vec<_> = (0..3).map(|_| bench.find()).collect();
        // The second is laid as far as there is room in a batch, and then the rest.
        assert_eq!(found, [(64, 2), (56, 1), (0, 0)]);
        assert_eq!((bench.routed().asked.len(), bench.routed().waiting.len()), (0, 0));
    }

    #[test]
    fn questions_of_areas_that_are_gone_are_withdrawn_and_hold_no_move_up() {
        let mut bench = Bench::new();
        bench.install("one", 5);
        bench.install("two", 5);
        bench.move_to(0.0);
        bench.install("one", 2);
        bench.sessions.remove("car", "two");
        // The two that came since are asked for, as the client is outside of them.
        assert_eq!((bench.routed().asked.len(), bench.routed().areas_count), (2, 2));
        assert_eq!((bench.find(), bench.routed().waiting.len()), ((2, 1), 0));
        bench.move_to(0.1);
        bench.sessions.forget("car");
        assert_eq!(bench.find(), (0, 0));
    }
}
