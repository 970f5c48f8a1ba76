//! Why an event comes to a client of this shard, or does not. Nothing is changed or delivered.

use std::sync::Arc;

use matcher::area::{Area, Corridor};
use matcher::geo::{Position, World};
use matcher::live::{Account, Fix, Interest, Moment, Prospect, Watch};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};
use matcher::violated;

use super::Sessions;
use super::explanation::{self, Circumstances};
use crate::ingest::Confinement;
use crate::ingest::explain::{AskedEvent, AskedSubscription, Question};
use crate::ingest::feature::{Rehearsed, RehearsedLife};
use crate::ingest::json::{self, Members};
use crate::ingest::subscription::Prepared;
use crate::model::error::ApiError;
use crate::model::event::Published;
use crate::model::tenant;

impl Sessions {
    /// Answers a question about a client: to itself, or to somebody who is shown its position as others are.
    pub(crate) fn explain(
        &self,
        name: &Arc<str>,
        question: Question,
        to_itself: bool,
    ) -> Result<wire::Explanation, ApiError> {
        let id = self.ids.get(name).copied();
        let (fix, position) = self.fix_for(id, question.position, to_itself);
        let position_withheld =
            fix.is_none() && id.is_some_and(|id| self.tracker.fix(ClientId(id)).is_some());
        let told;
        let (subscription, watch, confinement, routes) = match question.subscription {
            AskedSubscription::Held(held) => {
                self.check_confinement(name, question.confinement.as_ref())?;
                let number = id.and_then(|id| self.clients.get(id)?.subscriptions.get(&held).copied());
                let watch = number.and_then(|number| self.tracker.watch(SubscriptionId(number)));
                let routes = number.map(|number| self.routed_filters(number)).unwrap_or_default();
                let none = || {
                    ApiError::NotFound(format!("client {} has no subscription {held}", tenant::outside(name)))
                };
                let confinement = id.and_then(|id| self.clients.get(id)?.confinement.clone());
                let watch = watch.ok_or_else(none)?;
                let is_shown = to_itself || id.is_some_and(|id| self.is_shown_exactly(ClientId(id)));
                let watch = if routes.is_empty() || is_shown {
                    watch
                } else {
                    // How far away the corridor is would say where the client is.
                    told = without_routes(watch, &routes).within(self.partition(tenant::split(name).0));
                    &told
                };
                (Some(held.to_string()), watch, confinement, routes)
            }
            AskedSubscription::Told { id: told_id, prepared } => {
                self.check_areas(id, told_id.as_deref().unwrap_or_default(), prepared.routes.len())?;
                let confinement = prepared.confinement.clone();
                let routes = prepared.routes.iter().map(|route| route.filter).collect();
                told = watch_of(*prepared).within(self.partition(tenant::split(name).0));
                (told_id.map(|id| id.to_string()), &told, confinement, routes)
            }
        };
        let is_outside = |event| confinement.as_ref().is_some_and(|confinement| !confinement.holds(event));
        let (account, event, is_outside) = match question.event {
            AskedEvent::Live(id) => {
                let (account, event, published) =
                    self.live(watch, fix.as_ref(), &id, question.confinement.as_deref())?;
                (account, event, is_outside(&published.event))
            }
            AskedEvent::Told { id, rehearsed, .. } => {
                let (account, event) = self.rehearse(watch, fix.as_ref(), id, &rehearsed);
                (account, event, is_outside(&rehearsed.event))
            }
        };
        let hidden_count = confinement.map_or(0, |confinement| confinement.constraints_count());
        let transitions = match watch.interest() {
            Interest::Events => false,
            Interest::Transitions(_) => true,
        };
        let client = tenant::outside(name).to_owned();
        let circumstances = Circumstances {
            client,
            subscription,
            position,
            position_withheld,
            event,
            transitions,
            routes,
            has_streets: self.wayfinder.is_some(),
            hidden_count,
            is_outside,
        };
        Ok(explanation::answer(account, circumstances))
    }

    /// Where the client is assumed to be, and how that is shown. To others everything is told as it would be for the place that they
    /// are shown: from how many metres an area is away, at three places, they could tell the place itself.
    fn fix_for(
        &self,
        client: Option<u32>,
        instead: Option<Position>,
        to_itself: bool,
    ) -> (Option<Fix>, Option<wire::ExplainedPosition>) {
        let known = client.and_then(|id| Some((self.tracker.fix(ClientId(id))?, self.clients.get(id)?)));
        let told = |position: &Position, accuracy_m, age_s| wire::ExplainedPosition {
            coordinates: vec![position.x(), position.y()],
            accuracy_m,
            age_s,
        };
        match (instead, known) {
            (Some(position), _) => {
                (Some(Fix { position, accuracy_m: 0.0 }), Some(told(&position, None, None)))
            }
            (None, Some((fix, client))) => {
                let shown = if to_itself { Some(fix.position) } else { self.shown(fix) };
                let Some(position) = shown else { return (None, None) };
                let accuracy_m = (fix.accuracy_m > 0.0).then_some(fix.accuracy_m);
                let age_s = client.positioned_ms.map(|at| {
                    std::time::Duration::from_millis(self.unix_ms.saturating_sub(at)).as_secs_f64()
                });
                (Some(Fix { position, ..*fix }), Some(told(&position, accuracy_m, age_s)))
            }
            (None, None) => (None, None),
        }
    }

    fn live(
        &self,
        watch: &Watch,
        fix: Option<&Fix>,
        id: &str,
        confinement: Option<&Confinement>,
    ) -> Result<(Account, wire::ExplainedEvent, &Published), ApiError> {
        let counts = |published: &Arc<Published>| {
            confinement.is_none_or(|confinement| confinement.holds(&published.event))
        };
        let Some(found) = self.tracker.account_of_live(watch, fix, id, counts) else {
            return Err(ApiError::NotFound(format!("no event {} is live", tenant::outside(id))));
        };
        // As it was published: a text or a number.
        let own_id = Members::parse(&found.payload.body.text)?
            .get("id")
            .map(|text| json::read(text, "/id", "a text or a number"))
            .transpose()?;
        let event = lives_for(own_id, Some(found.expires.saturating_sub(self.lives_now)));
        Ok((found.account, event, found.payload))
    }

    fn rehearse(
        &self,
        watch: &Watch,
        fix: Option<&Fix>,
        id: Option<serde_json::Value>,
        rehearsed: &Rehearsed,
    ) -> (Account, wire::ExplainedEvent) {
        let prospect = match &rehearsed.life {
            None => Prospect::Passing,
            Some(RehearsedLife { object, .. }) => Prospect::Live { object: object.as_deref() },
        };
        let account = self.tracker.account_of(watch, fix, &rehearsed.event, prospect);
        (account, lives_for(id, rehearsed.life.as_ref().map(|life| life.ttl)))
    }
}

impl Sessions {
    /// Whether others are shown where exactly a client is.
    fn is_shown_exactly(&self, client: ClientId) -> bool {
        self.tracker.fix(client).is_some_and(|fix| self.shown(fix) == Some(fix.position))
    }

    /// The subscriptions of a client with their areas along routes nowhere; `None` where it has no such areas, or others are shown where it is.
    pub(super) fn watches_without_routes(&self, client: ClientId) -> Option<Arc<[Watch]>> {
        let held = self.clients.get(client.0)?;
        if held.routed.is_none() || self.is_shown_exactly(client) {
            return None;
        }
        let partition = self.partition(tenant::split(&held.name).0);
        let watches = held.subscriptions.values().filter_map(|number| {
            let watch = self.tracker.watch(SubscriptionId(*number))?;
            Some(without_routes(watch, &self.routed_filters(*number)).within(partition))
        });
        Some(watches.collect())
    }
}

/// A subscription whose areas along routes are nowhere.
fn without_routes(watch: &Watch, routes: &[usize]) -> Watch {
    let mut filters = watch.filters().to_vec();
    let Ok(origin) = World::Geodetic.position(&[0.0, 0.0]) else {
        violated!("there is such a place");
        return Watch::new(Subscription { client: ClientId(0), filters }, Vec::new(), *watch.interest());
    };
    let nearest = (0..filters.len()).map(|filter| watch.nearest(filter)).collect();
    for (index, filter) in filters.iter_mut().enumerate() {
        if let (true, Area::Corridor(corridor)) = (routes.contains(&index), &mut filter.area) {
            **corridor = Corridor::nowhere(World::Geodetic, &origin, corridor.radius());
        }
    }
    Watch::new(Subscription { client: ClientId(0), filters }, nearest, *watch.interest())
}

/// A subscription that nobody has made.
fn watch_of(prepared: Prepared) -> Watch {
    let Prepared { filters, nearest, interest, .. } = prepared;
    // Whose it is does not matter: where its client is comes beside it.
    Watch::new(Subscription { client: ClientId(0), filters }, nearest, interest)
}

fn lives_for(id: Option<serde_json::Value>, left: Option<Moment>) -> wire::ExplainedEvent {
    wire::ExplainedEvent { id, live: left.is_some(), expires_in_s: left.map(|left| left.as_secs_f64()) }
}
