//! Subscriptions of a shard's clients: how they are made, replaced and ended.

use std::sync::Arc;

use matcher::area::Area;
use matcher::engine::InstallError;
use matcher::live::Interest;
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher::violated;
use wire::Fault;

use super::activity::Activity;
use super::allowance::Wanted;
use super::costs::Recent;
use super::surveys::weight;
use super::{Held, HeldRoute, Installed, Payer, Sessions};
use crate::ingest::subscription::{Prepared, quoted};
use crate::model::error::ApiError;
use crate::model::problems::{NOWHERE, UNPLACED};

impl Sessions {
    /// Makes or replaces a subscription. What it brings is delivered by [`tell_changes`](Self::tell_changes), for which an
    /// answer that has to come first must not be late.
    pub(crate) fn install(
        &mut self,
        name: &Arc<str>,
        prepared: Prepared,
        owner: Option<u64>,
    ) -> Result<Installed, ApiError> {
        let client_id = self.enter(name, None)?;
        self.paid_by(Payer::Client { id: client_id, subscription: None });
        self.bind(client_id, prepared.confinement.as_ref())?;
        let installed = self.install_for(client_id, prepared, owner);
        self.settle(client_id);
        installed
    }

    fn install_for(
        &mut self,
        client_id: u32,
        prepared: Prepared,
        owner: Option<u64>,
    ) -> Result<Installed, ApiError> {
        self.check_areas(Some(client_id), &prepared.id, prepared.routes.len())?;
        let client = self.clients.get_mut(client_id).ok_or(ApiError::Internal("the client is gone"))?;
        let previous = client.subscriptions.get(&prepared.id).copied();
        let replaced = previous.and_then(|number| self.subscriptions.get(number)).map(|old| &old.taken);
        let bytes = prepared.document.len() + 2 * prepared.id.len();
        let prepared_constraints = prepared.constraints;
        let wanted = Wanted { constraints: prepared_constraints, bytes };
        let taken = self.allowance.take(client, wanted, replaced)?;
        let Prepared { id, filters, nearest, routes, interest, durable, overflow, document, source, .. } =
            prepared;
        let routes = HeldRoute::of(&routes, &filters, client.account(&self.budget))?;
        let source = source.filter(|_| self.ledger.has_disk());
        let warnings = match self.tracker.fix(ClientId(client_id)) {
            Some(_) => Vec::new(),
            None => nowhere(&filters, &routes).into_iter().collect(),
        };
        let mut held = Held {
            client: client_id,
            id: Arc::clone(&id),
            name: quoted(&id).into(),
            durable,
            is_stored: source.is_some(),
            document,
            overflow,
            takes_all: interest == Interest::Events && nearest.iter().all(Option::is_none),
            owner: owner.filter(|_| !durable),
            activity: Activity::since(self.evaluations.of(&client.name)),
            taken,
            weight: weight(&filters, prepared_constraints),
            cost: Recent::default(),
            routes,
        };
        let document = held.shown(client.evaluations(&self.evaluations), self.now);
        let subscription = Subscription { client: ClientId(client_id), filters };
        let full = ApiError::Limit {
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
        if let Some(survey) = self.survey.take() {
            self.tracker.use_survey(survey);
        }
        self.tracker.install(
            SubscriptionId(number),
            subscription,
            nearest,
            interest,
            self.lives_now,
            &mut self.effects,
        );
        let (mut was_durable, mut was_stored, mut routes_before) = (false, false, Box::default());
        let routes_count = held.routes.len();
        let (more, mut less) = (held.weight, 0);
        client.constraints += held.taken.constraints;
        if let Some(old) = self.subscriptions.get_mut(number) {
            (was_durable, was_stored) = (old.durable, old.is_stored);
            routes_before = std::mem::take(&mut old.routes);
            client.constraints -= old.taken.constraints;
            held.taken.replace(std::mem::take(&mut old.taken), wanted);
            held.cost = old.cost;
            less = old.weight;
        }
        self.subscriptions.put(number, held);
        self.payer = Some(Payer::Client { id: client_id, subscription: Some(number) });
        let name = Arc::clone(&client.name);
        client.lists.clear();
        client.subscriptions.insert(Arc::clone(&id), number);
        if previous.is_none() {
            self.metrics.subscriptions.raise();
        }
        self.metrics.changes.add(1);
        self.record_subscription(client_id, &name, &id, source.as_deref(), was_stored);
        self.count_durable(client_id, was_durable, durable);
        self.count_routed(client_id, routes_count, &routes_before);
        self.weigh(client_id, more, less);
        self.note_constraints(number);
        self.begin_routes(number);
        self.answer_moves(client_id);
        if self.ledger.has_disk() {
            self.tracker.record_standings(SubscriptionId(number), durable);
        }
        Ok(Installed { replaced: previous.is_some(), document, warnings })
    }

    /// Writes a subscription, or that it is no more what was written.
    fn record_subscription(
        &mut self,
        client: u32,
        name: &str,
        id: &str,
        source: Option<&str>,
        was_stored: bool,
    ) {
        if source.is_some() {
            self.record_confinement(client);
        }
        let batch = if source.is_some() || was_stored { self.ledger.record() } else { None };
        let Some(batch) = batch else { return };
        match source {
            Some(text) => batch.put_subscription(name, id, text),
            None => batch.remove_subscription(name, id),
        }
        let step = self.ledger.step();
        let Some(client) = self.clients.get_mut(client) else {
            return violated!("a subscription's client is there");
        };
        client.is_stored = true;
        // What it brings comes after the answer, which waits for the disk.
        client.held_step = step;
    }

    /// Keeps count of the durable subscriptions of a client.
    fn count_durable(&mut self, client: u32, was: bool, is: bool) {
        if is {
            self.make_durable(client);
        }
        if let Some(durable) = self.clients.get_mut(client).and_then(|client| client.durable.as_mut()) {
            durable.subscriptions_count += usize::from(is);
            durable.subscriptions_count -= usize::from(was);
        }
    }

    /// Ends a subscription; says whether there was one.
    pub(crate) fn remove(&mut self, name: &str, id: &str) -> bool {
        let now = self.heard_now();
        let Some(&client_id) = self.ids.get(name) else { return false };
        let Some(client) = self.clients.get_mut(client_id) else {
            violated!("a client with a number is there");
            return false;
        };
        client.heard(now);
        let Some(number) = client.subscriptions.remove(id) else { return false };
        let was =
            self.subscriptions.get(number).map_or((false, false), |held| (held.durable, held.is_stored));
        self.end(number);
        self.record_subscription(client_id, name, id, None, was.1);
        self.count_durable(client_id, was.0, false);
        self.settle(client_id);
        true
    }

    pub(super) fn end(&mut self, number: u32) {
        self.engine.remove(SubscriptionId(number));
        self.tracker.remove(SubscriptionId(number));
        self.matching.ended(number);
        let held = self.subscriptions.remove(number);
        // One that is forgotten is gone before its subscriptions.
        if let Some(held) = held
            && let Some(client) = self.clients.get_mut(held.client)
        {
            client.constraints -= held.taken.constraints;
            client.lists.clear();
            self.count_routed(held.client, 0, &held.routes);
            self.weigh(held.client, 0, held.weight);
            self.answer_moves(held.client);
        }
        self.metrics.subscriptions.lower();
        self.metrics.changes.add(1);
    }
}

/// The warning for a client without a position, if one of the areas follows it or a condition depends on where it is.
fn nowhere(filters: &[Filter], routes: &[HeldRoute]) -> Option<Fault> {
    let follows = |index: usize, filter: &Filter| {
        matches!(filter.area, Area::Following(_)) || routes.iter().any(|route| route.filter() == index)
    };
    if let Some(following) = filters.iter().enumerate().position(|(index, filter)| follows(index, filter)) {
        let detail = format!("{}: it is nowhere until the client does", NOWHERE.text);
        return Some(Fault { pointer: format!("/filters/{following}/area"), detail });
    }
    let reading = filters.iter().position(|filter| filter.condition.reads_client())?;
    let detail = format!("{}: what depends on 'me' is unknown until the client does", UNPLACED.text);
    Some(Fault { pointer: format!("/filters/{reading}/where"), detail })
}
