//! Taking up again what another run of the broker left on disk, and how what the tracker knows is written there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use matcher::geo::World;
use matcher::live::{Announcement, Fix, Moment, Standing, StandingNow};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};
use matcher::violated;

use super::allowance::Wanted;
use super::durable::{Durable, bounds_of};
use super::findings::{RestoredFindings, told_by_all, told_by_any};
use super::lives_clock::{moment_of, unix_ms_of};
use super::{Activity, Client, Held, HeldRoute, Recent, Sessions, weight};
use crate::budget::Kind;
use crate::config::{Config, Limits};
use crate::ingest::feature::{self, FeatureReader};
use crate::ingest::subscription::{Prepared, StoredSituation, SubscriptionReader, quoted};
use crate::ingest::{Behalf, Confinement, Zones};
use crate::model::clock::{self, Timeline};
use crate::model::delivery::{Delivery, GapReason, OverflowName};
use crate::model::event::{Body, Published};
use crate::model::record::BodyId;
use crate::model::tenant;
use crate::outbox::Keep;
use crate::push::PushSubscription;
use crate::routing::Streets;
use crate::store::{
    Recovered, RecoveredBody, RecoveredClient, RecoveredMatch, StoredDecisions, StoredFinding,
    StoredFrontier, StoredPosition, StoredSession, StoredStanding, StoredState,
};

/// The data that were found on disk, read and checked.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) clients: Vec<RestoredClient>,
    /// Live events, for every shard.
    pub(crate) live: Vec<RestoredLive>,
    /// Situations, whose clients are among those.
    pub(crate) situations: Vec<RestoredSituation>,
    /// How far each shard had got with what those found.
    pub(crate) findings: Vec<RestoredFindings>,
    /// The time that follows from the data on disk.
    pub(crate) timeline: Option<Timeline>,
    /// When the run of the broker that left them was seen last, in Unix milliseconds.
    pub(crate) seen_ms: Option<u64>,
    /// By what clients are dealt out among shards.
    pub(crate) dealing: Option<u64>,
    /// How far each shard had read the stream of events.
    pub(crate) frontiers: Vec<(u32, StoredFrontier)>,
    /// The last finding of each situation that it brought, by the shard and the situation's client.
    pub(crate) findings_read: Vec<(u32, Arc<str>, StoredFinding)>,
    /// The tenants of clients that have areas along routes.
    pub(crate) routed: BTreeSet<Box<str>>,
}

/// A live event as it was.
#[derive(Clone)]
pub(crate) struct RestoredLive {
    published: Arc<Published>,
    is_revoked: bool,
    /// Whether there is a newer one of its object.
    is_overtaken: bool,
    /// When it is over by the time of day, while the clock is in doubt.
    doubtful_ms: Option<u64>,
}

/// A situation as it was.
pub(crate) struct RestoredSituation {
    /// Its client, by its name inside.
    pub(crate) client: Arc<str>,
    /// The id of its subscription.
    pub(crate) version: Arc<str>,
    pub(crate) stored: StoredSituation,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) confinement: Option<Arc<Confinement>>,
    /// The number of the last finding that every shard has dealt out.
    pub(crate) told: u64,
    /// The number of the last finding that some shard has dealt out.
    pub(crate) told_by_any: u64,
    /// What it knew, up to some delivery.
    pub(crate) state: Option<StoredState>,
    /// What it did since.
    pub(crate) decisions: StoredDecisions,
}

/// A client as it was.
pub(crate) struct RestoredClient {
    pub(crate) name: Arc<str>,
    session: Option<StoredSession>,
    confinement: Option<Arc<Confinement>>,
    /// Where it was, and when it said so.
    position: Option<(Fix, u64)>,
    push: Option<PushSubscription>,
    subscriptions: Vec<(Prepared, Standings)>,
    kept: Vec<(RecoveredMatch, Arc<Body>)>,
    /// The situation whose client it is.
    situation: Option<RestoredSituation>,
    findings: Option<RestoredFindings>,
}

/// Work that a run of the broker left to the next, which does it first of all.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Objects whose live events were revoked; not everybody was told.
    pub(super) revoked: Vec<Arc<str>>,
    /// Durable subscriptions: events may be live that had not come to them.
    pub(super) subscriptions: Vec<SubscriptionId>,
    /// Clients for whom something is kept: the bounds of that may have been lowered.
    pub(super) kept: Vec<u32>,
}

impl Unfinished {
    pub(super) fn is_empty(&self) -> bool {
        self.revoked.is_empty() && self.subscriptions.is_empty() && self.kept.is_empty()
    }
}

/// How live objects stood to a subscription, by object.
type Standings = Vec<(Arc<str>, StoredStanding)>;

/// Something on disk that cannot be what was written there.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be read back: {why}")]
pub(crate) struct RestoreError {
    what: String,
    why: String,
}

impl Restored {
    /// Reads what was found, by the readers that accepted it, whatever the limits are now.
    pub(crate) fn read(
        recovered: Recovered,
        config: &Config,
        features: &FeatureReader,
        streets: Option<&Streets>,
    ) -> Result<Self, RestoreError> {
        if !config.wants_tokens() {
            refuse_what_tokens_part(&recovered)?;
        }
        let zones = features.zones();
        let mut lenient = config.clone();
        lenient.limits = Limits::lenient(&config.limits);
        let world = World::from(config.server.world);
        let reader = SubscriptionReader::new(world, lenient.limits.clone(), config.outbox.overflow);
        let lenient = FeatureReader::new(world, &lenient.limits, 0).with_zones(zones);
        let mut bodies = HashMap::new();
        let timeline = begin_timeline(recovered.latest_ms);
        let ttl_max = Duration::from_secs(config.limits.ttl_s);
        let overtaken = recovered.overtaken.into_iter().map(|one| (one, true));
        let live = recovered.live.into_iter().map(|one| (one, false)).chain(overtaken);
        let live = live.map(|(one, is_overtaken)| {
            let body = body_of(&mut bodies, config, one.live.body, &one.body);
            let left_ms = one.live.expires_ms.saturating_sub(timeline.ages_ms());
            let doubtful_ms = (timeline.doubt().is_some() && left_ms > 0).then_some(one.live.expires_ms);
            let left = Duration::from_millis(left_ms);
            let mut rehearsed =
                lenient.rehearse(Behalf::default(), &body.text).map_err(|refusal| RestoreError {
                    what: format!("the live event {}", one.live.id),
                    why: refusal.problem().detail.unwrap_or_default(),
                })?;
            // Whatever the clocks say, no life is longer than it was at first.
            let left = left.min(rehearsed.life.as_ref().map_or(ttl_max, |life| life.ttl)).min(ttl_max);
            let over = Duration::from_millis(timeline.ages_ms().saturating_sub(one.live.expires_ms));
            let now = clock::now();
            let expires = now.checked_sub(over).unwrap_or(now) + left;
            if let Some(tenant) = tenant_of(config, &one.live.object) {
                tenant::mark(&mut rehearsed.event, tenant);
            }
            let bytes = body.text.len() + rehearsed.event.bytes();
            let life = features.resume_life(&one.live.object, one.live.id, one.live.sequence, expires, bytes);
            let published = Published::again(rehearsed.event, body, life);
            let is_revoked = one.live.is_revoked;
            Ok(RestoredLive { published: Arc::new(published), is_revoked, is_overtaken, doubtful_ms })
        });
        let live = live.collect::<Result<_, RestoreError>>()?;
        let clients = recovered.clients.into_iter();
        let clients = clients.map(|client| RestoredClient::read(client, config, &reader, zones, &mut bodies));
        let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
        let has_routes = |client: &&RestoredClient| {
            client.subscriptions.iter().any(|(prepared, _)| !prepared.routes.is_empty())
        };
        let routed: BTreeSet<_> =
            clients.iter().filter(has_routes).map(|client| tenant::split(&client.name).0.into()).collect();
        if let Some(streets) = streets {
            clients.iter_mut().for_each(|client| client.lay_routes(streets));
        } else if !routed.is_empty() {
            let clients = clients.iter().filter(has_routes).count();
            tracing::warn!(
                clients,
                "areas along routes hold nothing: the broker knows no streets (routes.streets)"
            );
        }
        let situations = clients.iter_mut().filter_map(|client| client.situation.take()).collect();
        let findings = clients.iter_mut().filter_map(|client| client.findings.take()).collect();
        Ok(Self {
            clients,
            live,
            situations,
            findings,
            timeline: Some(timeline),
            seen_ms: recovered.latest_ms,
            dealing: Some(recovered.dealing),
            frontiers: recovered.frontiers,
            findings_read: recovered.findings,
            routed,
        })
    }
}

impl RestoredClient {
    fn read(
        client: RecoveredClient,
        config: &Config,
        reader: &SubscriptionReader,
        zones: &Zones,
        bodies: &mut HashMap<BodyId, Arc<Body>>,
    ) -> Result<Self, RestoreError> {
        let RecoveredClient {
            name,
            session,
            confinement,
            position,
            push,
            mut state,
            mut decisions,
            subscriptions,
            kept,
        } = client;
        let world = World::from(config.server.world);
        let position = position.map(|stored| fix_of(world, &stored, &name)).transpose()?;
        let confinement = confinement.map(|text| match Confinement::read_again(&text, zones) {
            Ok(confinement) => Ok(Arc::new(confinement)),
            Err(why) => Err(RestoreError { what: format!("what client {name} is confined to"), why }),
        });
        let confinement = confinement.transpose()?;
        let push = push.map(|stored| {
            let of = || RestoreError {
                what: format!("the push subscription of client {name}"),
                why: "it is none".to_owned(),
            };
            PushSubscription::read_again(&stored).ok_or_else(of)
        });
        let push = push.transpose()?;
        let behalf = Behalf { tenant: tenant_of(config, &name), confinement: confinement.as_ref() };
        let (mut situation, mut findings) = (None, None);
        let is_own = tenant::is_own(tenant::outside(&name));
        let subscriptions = subscriptions.into_iter().map(|mut one| {
            let prepared =
                if is_own { reader.parse_own(&one.id, &one.text) } else { reader.parse(&one.id, &one.text) };
            let prepared = prepared.and_then(|prepared| prepared.on_behalf(behalf));
            let prepared = prepared.map_err(|refusal| RestoreError {
                what: format!("the subscription {} of client {name}", one.id),
                why: refusal.problem().detail.unwrap_or_default(),
            })?;
            if let Some(stored) = &prepared.situation {
                let dealt = std::mem::take(&mut one.standings);
                situation = Some(RestoredSituation {
                    client: Arc::clone(&name),
                    version: Arc::clone(&one.id),
                    stored: stored.clone(),
                    tenant: behalf.tenant.map(Arc::from),
                    confinement: behalf.confinement.cloned(),
                    told: told_by_all(&dealt),
                    told_by_any: told_by_any(&dealt),
                    state: state.take_if(|(version, _)| *version == one.id).map(|(_, state)| state),
                    decisions: decisions
                        .take_if(|(version, _)| *version == one.id)
                        .map_or_else(Default::default, |(_, decisions)| decisions),
                });
                findings = Some(RestoredFindings { version: Arc::clone(&one.id), dealt });
            }
            Ok((prepared, one.standings))
        });
        let subscriptions = subscriptions.collect::<Result<_, RestoreError>>()?;
        let kept = kept.into_iter().map(|one| {
            let body = body_of(bodies, config, one.kept.body, &one.body);
            (one, body)
        });
        let kept = kept.collect();
        Ok(Self {
            name: Arc::clone(&name),
            session,
            confinement,
            position,
            push,
            subscriptions,
            kept,
            situation,
            findings,
        })
    }
}

impl RestoredClient {
    /// Finds the routes from where it was, before anything is compared with its areas.
    fn lay_routes(&mut self, streets: &Streets) {
        let Some((fix, _)) = &self.position else { return };
        for (prepared, _) in &mut self.subscriptions {
            streets.lay_again(tenant::split(&self.name).0, &fix.position, prepared);
        }
    }
}

/// The time after what is on disk. The broker is known to have run at `latest_ms`: its commits say that each minute at most, a stop
/// says it, and while something on disk ages it is said at least each quarter of an hour ([`commit`](super::commit)).
///
/// A clock that is ahead of that by less than [`clock::JUMP`] has gone as it should while the broker was away. One that is further
/// ahead is right after a long stop, and wrong otherwise. Nothing on this machine tells the two apart, so that either is doubted:
/// after a long stop some things end ten minutes late, while a wrong clock that is believed at once erases them.
fn begin_timeline(latest_ms: Option<u64>) -> Timeline {
    let (timeline, wall_ms) = (Timeline::after(latest_ms), clock::unix_ms());
    let behind_ms = timeline.unix_ms().saturating_sub(wall_ms);
    if behind_ms > 0 {
        tracing::warn!(
            behind_s = behind_ms / 1_000,
            "the clock is behind what is on disk, so that time goes on from there until the clock has passed it; set the clock, \
             and let the broker start after it was (time-sync.target)"
        );
    }
    if let Some((ahead, _)) = timeline.doubt() {
        tracing::warn!(
            ahead_s = ahead.as_secs(),
            doubt_s = clock::DOUBT.as_secs(),
            "the clock is far ahead of what is on disk; what is over by it is kept for doubt_s, and ends if the clock still \
             says so then"
        );
    }
    timeline
}

/// Refuses data that only tokens keep apart: where nobody needs one, everybody could see all of it.
fn refuse_what_tokens_part(recovered: &Recovered) -> Result<(), RestoreError> {
    let is_of_tenant = |name: &str| !tenant::split(name).0.is_empty();
    let is_parted =
        recovered.clients.iter().any(|client| client.confinement.is_some() || is_of_tenant(&client.name))
            || recovered.live.iter().any(|one| is_of_tenant(&one.live.object));
    if !is_parted {
        return Ok(());
    }
    let why = "some of it is of tenants or of clients that are confined, which only tokens keep apart: without \
               auth.mode = \"jwt\" everybody could see all of it";
    Err(RestoreError { what: "what is in store.data".to_owned(), why: why.to_owned() })
}

/// Tenant of a client or an object; `None` where there is none, and none have to say who they are.
fn tenant_of<'a>(config: &Config, name: &'a str) -> Option<&'a str> {
    let (tenant, _) = tenant::split(name);
    (config.wants_tokens() || !tenant.is_empty()).then_some(tenant)
}

/// The body of an event. To which claim a situation was confined is not on disk, so that all readers who are confined get its findings without
/// ids.
fn body_of(
    bodies: &mut HashMap<BodyId, Arc<Body>>,
    config: &Config,
    id: BodyId,
    found: &RecoveredBody,
) -> Arc<Body> {
    let read = || {
        let mut body = feature::read_back(&found.text, found.received_ms, Arc::clone(&found.stored));
        if config.wants_tokens() {
            body.veil(None);
        }
        Arc::new(body)
    };
    Arc::clone(bodies.entry(id).or_insert_with(read))
}

fn fix_of(world: World, stored: &StoredPosition, client: &str) -> Result<(Fix, u64), RestoreError> {
    let [x, y, _] = stored.coordinates;
    match world.position(&[x, y]) {
        Ok(position) => Ok((Fix { position, accuracy_m: stored.accuracy_m }, stored.received_ms)),
        Err(error) => {
            Err(RestoreError { what: format!("the position of client {client}"), why: error.to_string() })
        }
    }
}

/// A fix as it is written.
pub(super) fn stored_position(fix: &Fix, received_ms: u64) -> StoredPosition {
    let coordinates = [fix.position.x(), fix.position.y(), 0.0];
    StoredPosition { coordinates, accuracy_m: fix.accuracy_m, received_ms }
}

/// A standing as it is written. `now` is the time by both clocks.
pub(super) fn stored_standing(known: StandingNow, now: Moment, unix_ms: u64) -> StoredStanding {
    let waits = match known.standing {
        Standing::Inside => None,
        Standing::Waiting { until, cause } => Some((unix_ms_of(until, now, unix_ms), cause)),
    };
    StoredStanding { sequence: known.sequence, waits }
}

/// Reads a standing. A dwell that waits has no more left than the subscription's dwell, however far the time that counts is
/// behind the time when it was written.
fn standing_of(stored: &StoredStanding, dwell: Duration, now: Moment, unix_ms: u64) -> StandingNow {
    let standing = stored.waits.map_or(Standing::Inside, |(until_ms, cause)| Standing::Waiting {
        until: moment_of(until_ms, now, unix_ms).min(now + dwell),
        cause,
    });
    StandingNow { sequence: stored.sequence, standing }
}

impl Sessions {
    /// Takes up what was left: live events, which every shard has, and the clients of this one. It delivers
    /// nothing; what was due since happens at the first [`advance`](Self::advance).
    pub(crate) fn restore(
        &mut self,
        clients: Vec<RestoredClient>,
        live: &[RestoredLive],
        findings: &[RestoredFindings],
        (timeline, seen_ms): (Option<Timeline>, Option<u64>),
    ) {
        self.restore_findings(findings);
        self.timeline = timeline.unwrap_or(self.timeline);
        self.now = self.moment(clock::now());
        self.unix_ms = self.timeline.unix_ms();
        if let Some(seen_ms) = seen_ms {
            self.lives_clock.read_until(moment_of(seen_ms, self.now, self.timeline.ages_ms()));
        }
        self.lives_now = self.lives_clock.at(self.now);
        for RestoredLive { published, is_revoked, is_overtaken, doubtful_ms } in live {
            let Some(life) = &published.live else {
                violated!("an event that is restored as live is live");
                continue;
            };
            self.ledger.track_record(life);
            if let (Some(expires_ms), false) = (doubtful_ms, is_overtaken) {
                self.doubtful.push((Arc::clone(&life.object), life.sequence, *expires_ms));
            }
            if *is_revoked && !is_overtaken {
                self.unfinished.revoked.push(Arc::clone(&life.object));
            }
            self.tracker.restore_live(Announcement {
                object: Arc::clone(&life.object),
                id: Arc::clone(&life.id),
                sequence: life.sequence,
                expires: self.moment(life.expires),
                partition: self.partition(tenant::of(&published.event)),
                event: Arc::clone(&published.event),
                payload: Arc::clone(published),
            });
        }
        for client in clients {
            self.restore_client(client);
        }
        self.tracker.forget_overtaken();
    }

    fn restore_client(&mut self, restored: RestoredClient) {
        let RestoredClient {
            name,
            session,
            confinement,
            position,
            push,
            subscriptions,
            kept,
            situation: _,
            findings: _,
        } = restored;
        let permit = self.client_limit.acquire_again(&name);
        // There are as many numbers as there ever were.
        let Ok(id) = self.enter(&name, Some(permit)) else {
            return violated!("a client that is restored finds a number");
        };
        if let Some(client) = self.clients.get_mut(id) {
            client.stored_confinement.clone_from(&confinement);
            client.confinement = confinement;
        }
        if let Some((fix, received_ms)) = position {
            self.engine.move_client(ClientId(id), Some(fix.position));
            // Before there are subscriptions, which this could concern.
            self.tracker.move_client(ClientId(id), Some(fix), self.lives_now, &mut self.effects);
            if let Some(client) = self.clients.get_mut(id) {
                client.positioned_ms = Some(received_ms);
                let age = Duration::from_millis(self.unix_ms.saturating_sub(received_ms));
                client.heard = self.idle.restored(clock::now(), age);
            }
        }
        if let Some(push) = push {
            self.restore_push(id, push);
        }
        let durable_count = subscriptions.iter().filter(|(prepared, _)| prepared.durable).count();
        for (prepared, standings) in subscriptions {
            self.restore_subscription(id, prepared, &standings);
        }
        let Some(client) = self.clients.get_mut(id) else {
            return violated!("a client that is restored is there");
        };
        client.is_stored = true;
        // One that had ceased to be durable took offsets that nobody wrote: it is another session now.
        if let Some(session) = session.filter(|_| durable_count > 0 || !kept.is_empty()) {
            self.restore_kept(id, &session, kept);
            let mut durable = Durable::new(session.offset);
            durable.subscriptions_count = durable_count;
            if let Some(client) = self.clients.get_mut(id) {
                if let Some(log) = &client.log {
                    durable.stored_floor = log.lock().floor(session.offset);
                }
                if client.kept_count() > 0 {
                    self.unfinished.kept.push(id);
                }
                client.epoch = Arc::clone(&session.epoch);
                (client.offset, client.released) = (session.offset, session.offset);
                client.durable = Some(Box::new(durable));
                self.metrics.durable_sessions.raise();
            }
            self.date_oldest(id);
        } else if durable_count > 0 {
            // Its subscription and its session are written together.
            self.make_durable(id);
        }
    }

    fn restore_subscription(
        &mut self,
        client_id: u32,
        prepared: Prepared,
        standings: &[(Arc<str>, StoredStanding)],
    ) {
        let Prepared {
            id, filters, nearest, routes, interest, durable, overflow, document, constraints, ..
        } = prepared;
        let account = self.clients.get_mut(client_id).map(|client| Arc::clone(client.account(&self.budget)));
        let routes = account.map(|account| HeldRoute::again(&routes, &filters, &account)).unwrap_or_default();
        let routes_count = routes.len();
        let weight = weight(&filters, constraints);
        let subscription = Subscription { client: ClientId(client_id), filters };
        let Some(number) = self.subscriptions.reserve() else {
            return violated!("a subscription that is restored finds a number");
        };
        if self.engine.install(SubscriptionId(number), &subscription).is_err() {
            tracing::error!(subscription = &*id, "the engine has no room for a subscription that it had");
            self.subscriptions.remove(number);
            return;
        }
        let takes_all = interest == matcher::live::Interest::Events && nearest.iter().all(Option::is_none);
        let dwell = match &interest {
            matcher::live::Interest::Transitions(transitions) => transitions.dwell,
            matcher::live::Interest::Events => Duration::ZERO,
        };
        let ages_ms = self.timeline.ages_ms();
        let known: Vec<_> = standings
            .iter()
            .map(|(object, stored)| (&**object, standing_of(stored, dwell, self.now, ages_ms)))
            .collect();
        let known = durable.then_some(&known[..]);
        self.tracker.restore(SubscriptionId(number), subscription, nearest, interest, durable, known);
        if durable && self.tracker.live_count() > 0 {
            self.unfinished.subscriptions.push(SubscriptionId(number));
        }
        let Some(client) = self.clients.get_mut(client_id) else {
            return violated!("a client that is restored is there");
        };
        let wanted = Wanted { constraints, bytes: document.len() + 2 * id.len() };
        let held = Held {
            client: client_id,
            id: Arc::clone(&id),
            name: quoted(&id).into(),
            durable,
            is_stored: true,
            document,
            overflow,
            takes_all,
            owner: None,
            activity: Activity::since(self.evaluations.of(&client.name)),
            taken: self.allowance.take_again(client, wanted),
            weight,
            cost: Recent::default(),
            routes,
        };
        self.subscriptions.put(number, held);
        self.metrics.subscriptions.raise();
        client.lists.clear();
        client.subscriptions.insert(id, number);
        client.constraints += constraints;
        self.count_routed(client_id, routes_count, &[]);
        self.weigh(client_id, weight, 0);
        self.note_constraints(number);
        self.begin_routes(number);
    }

    /// Restores the retained deliveries, and what became of the offsets between them: up to the last loss they count as lost.
    fn restore_kept(&mut self, id: u32, session: &StoredSession, found: Vec<(RecoveredMatch, Arc<Body>)>) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let held = client.account(&self.budget).hold_anyway(Kind::Kept, 0);
        client.released = session.offset;
        let log = Arc::clone(client.log(self.outbox_bounds, &self.budget, &self.kept_total, &self.metrics));
        let mut log = log.lock();
        log.make_durable(0, held);
        let mut last = session.acknowledged;
        log.acknowledge(last);
        let Some(client) = self.clients.get(id) else { return };
        for (RecoveredMatch { kept: stored, .. }, body) in found {
            if stored.offset <= last {
                continue;
            }
            log.skip_range(last + 1, session.lost.min(stored.offset - 1), GapReason::Overflow);
            last = stored.offset;
            let overflow = self.overflow_of(client, stored.subscriptions.as_slice());
            let delivery = Delivery {
                offset: stored.offset,
                subscriptions: stored.subscriptions,
                cause: stored.cause,
                transition: stored.transition,
                body,
                overflow,
                is_late: true,
                is_ahead: false,
            };
            let bounds = bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds);
            log.restore(delivery, Keep { bounds, at_ms: stored.at_ms });
        }
        log.skip_range(last + 1, session.lost.min(session.offset), GapReason::Overflow);
    }

    /// The strictest wish of the subscriptions of a match for the bound; `None` where none of them has one.
    fn overflow_of(&self, client: &Client, names: &[Arc<str>]) -> Option<OverflowName> {
        let numbers = client.subscriptions.values();
        let held = numbers.filter_map(|number| self.subscriptions.get(*number));
        held.filter(|held| names.contains(&held.name)).filter_map(|held| held.overflow).max()
    }
}

#[cfg(test)]
mod tests {
    use matcher::live::Cause;

    use super::*;

    #[test]
    fn what_waits_has_no_more_left_than_its_dwell() {
        const DWELL: Duration = Duration::from_secs(5);
        let now = Duration::from_secs(60);
        let stored = |until_ms| StoredStanding { sequence: 1, waits: Some((until_ms, Cause::Moved)) };
        let until = |until_ms, unix_ms| match standing_of(&stored(until_ms), DWELL, now, unix_ms).standing {
            Standing::Waiting { until, .. } => Some(until),
            Standing::Inside => None,
        };
        assert_eq!(until(13_000, 10_000), Some(now + Duration::from_secs(3)));
        assert_eq!(until(13_000, 14_000), Some(now - Duration::from_secs(1)));
        // The time that counts is 40 minutes behind the one when it was written.
        assert_eq!(until(2_413_000, 10_000), Some(now + DWELL));
    }
}
