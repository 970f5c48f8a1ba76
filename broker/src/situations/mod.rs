//! Situations: clients of the broker's own, which publish what they find in the events that come to them.
//!
//! A situation has a durable subscription like any other client, and reads its session's deliveries in their order. Its document
//! stands beside that subscription on disk. The state of a check follows from the deliveries that it has not acknowledged, which are
//! those that it still needs, and is built anew from them after a restart. That of a rule set is written from time to time, and it
//! goes on from there with the deliveries behind it ([`runner`]).

mod checks;
mod explain;
mod figures;
mod finding;
mod gate;
mod groups;
mod judging;
mod logic;
mod publishing;
mod questions;
mod rules;
mod runner;
mod series;
mod share;
mod turn;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::engines::CheckEngines;
use crate::ingest::feature::FeatureReader;
use crate::ingest::subscription::{PAUSED, Prepared, SITUATION, SubscriptionReader, quoted};
use crate::ingest::{Behalf, Confinement};
use crate::metrics::Metrics;
use crate::model::clock;
use crate::model::error::ApiError;
use crate::model::event::Published;
use crate::model::tenant;
use crate::sessions::RestoredSituation;
use crate::shard::{Command, Shards};
use figures::Figures;
pub(crate) use finding::Finding;
use gate::Gates;
pub(crate) use gate::{GatePlan, Held, Judged, Verdict};
pub(crate) use logic::{Decided, Input, Logic, Parts, Plan, Standing};
use runner::{Past, Runner};
use series::{Label, Series};
use share::Shares;

/// A kind of situations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Constraints on the events of some time.
    Checks,
    /// Rules by which events derive, merge and cancel one another.
    Rules,
    /// Groups of live objects that fit together.
    Groups,
}

impl Kind {
    /// Name of the kind, as paths and clients have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Checks => "checks",
            Self::Rules => "rules",
            Self::Groups => "groups",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Checks, Self::Rules, Self::Groups].into_iter().find(|kind| kind.name() == name)
    }
}

/// Names a situation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    tenant: Arc<str>,
    name: Arc<str>,
}

/// A situation that is in force.
pub(crate) struct Situation {
    key: Key,
    /// Its client, by its name inside.
    client: Arc<str>,
    /// Names its subscription, which no other document of the same name has had.
    version: Arc<str>,
    /// The tenant of its events; `None` where there are no tenants.
    tenant: Option<Arc<str>>,
    confinement: Option<Arc<Confinement>>,
    plan: Plan,
    figures: Figures,
}

impl Situation {
    /// Name that its events give as their origin.
    fn by(&self) -> String {
        format!("{}/{}", self.key.kind.name(), self.key.name)
    }

    /// The id of the subscription that brings exits.
    fn exits(&self) -> String {
        format!("{}-exits", self.version)
    }

    /// The id of the subscription that brings what is live once more.
    fn again(&self) -> String {
        format!("{}-again", self.version)
    }

    fn behalf(&self) -> Behalf<'_> {
        Behalf { tenant: self.tenant.as_deref(), confinement: self.confinement.as_ref() }
    }

    /// Its document, with what it does.
    fn shown(&self) -> String {
        let Some(members) = self.plan.document.strip_suffix('}') else { return self.plan.document.clone() };
        let activity = serde_json::to_string(&self.figures.activity()).unwrap_or_default();
        let groups = self.figures.groups().map(|groups| format!(r#","groups":{groups}"#)).unwrap_or_default();
        format!(r#"{members},"activity":{activity}{groups}}}"#)
    }
}

/// A situation, and the task that serves it.
struct Served {
    situation: Arc<Situation>,
    /// `None` while it is replaced or deleted.
    runner: Option<Runner>,
    label: Label,
}

/// What situations need of the broker.
pub(crate) struct Host {
    pub(crate) config: Arc<Config>,
    pub(crate) shards: Shards,
    pub(crate) features: Arc<FeatureReader>,
    /// Reads what was delivered, also after limits were lowered.
    pub(crate) accepted: Arc<FeatureReader>,
    pub(crate) subscriptions: Arc<SubscriptionReader>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) check_engines: CheckEngines,
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
}

/// All situations.
pub(crate) struct Situations {
    stage: Arc<Stage>,
    /// A std mutex: held for a look or an insertion, never over an await.
    all: Mutex<BTreeMap<Key, Served>>,
    /// A std mutex: taken while `all` is held, and held for a look or a change.
    series: Mutex<Series>,
    /// One change at a time.
    changes: tokio::sync::Mutex<()>,
}

/// The broker as situations have it, and what they share.
struct Stage {
    host: Host,
    /// Threads that may evaluate at once.
    threads: Semaphore,
    shares: Shares,
    gates: Gates,
    /// Connections of clients count upwards from 0, those of situations downwards from the top.
    next_connection: AtomicU64,
}

/// Owner of a request about situations.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) behalf: Behalf<'a>,
}

impl Stage {
    fn read(&self, kind: Kind, name: &str, text: &str) -> Result<Plan, ApiError> {
        match kind {
            Kind::Checks => checks::read(&self.host, name, text),
            Kind::Rules => rules::read(&self.host, name, text),
            Kind::Groups => groups::read(&self.host, name, text),
        }
    }

    fn connection(&self) -> u64 {
        self.next_connection.fetch_sub(1, Ordering::Relaxed)
    }

    /// The subscriptions that bring its inputs, as they are kept on disk. Exits come first: what leaves right after it came is then told.
    fn subscriptions(&self, situation: &Situation, is_paused: bool) -> Result<Vec<Prepared>, ApiError> {
        let filters = situation.plan.filters.join(",");
        let bounds = r#""durable":true,"overflow":"drop-oldest""#;
        let exits = format!(r#"{{"filters":[{filters}],{bounds},"on":["exit"]}}"#);
        let events = format!(
            r#"{{"filters":[{filters}],{bounds},{}:{},{}:{is_paused}}}"#,
            quoted(SITUATION),
            situation.plan.document,
            quoted(PAUSED),
        );
        let exits = situation.plan.is_about_objects.then(|| self.own(situation, &situation.exits(), &exits));
        exits.into_iter().chain([self.own(situation, &situation.version, &events)]).collect()
    }

    fn own(&self, situation: &Situation, id: &str, text: &str) -> Result<Prepared, ApiError> {
        self.host.subscriptions.parse_own(id, text)?.on_behalf(situation.behalf())
    }

    async fn install(&self, client: &Arc<str>, subscription: Prepared) -> Result<(), ApiError> {
        let install = |client, reply| Command::Install {
            client,
            subscription: Box::new(subscription),
            change: None,
            owner: None,
            answer: None,
            reply,
        };
        self.host.shards.ask(client, install).await?.map(drop)
    }

    /// Has all that is live brought once more, after what was brought before.
    async fn renew(&self, situation: &Situation) -> Result<(), ApiError> {
        // Beside the others, which must not miss anything meanwhile.
        let text = format!(
            r#"{{"filters":[{}],"durable":true,"overflow":"drop-oldest"}}"#,
            situation.plan.filters.join(",")
        );
        let subscription = self.own(situation, &situation.again(), &text)?;
        let (id, confinement) = (Arc::clone(&subscription.id), situation.confinement.clone());
        let remove = |client, reply| Command::Remove { client, id, confinement, reply };
        self.host.shards.ask(&situation.client, remove).await??;
        self.install(&situation.client, subscription).await
    }
}

impl Situations {
    /// Makes the room without situations in it.
    pub(crate) fn new(host: Host) -> Self {
        let threads = match host.config.situations.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
            threads => threads,
        };
        let shares = Shares::new(threads, &host.config.situations);
        let threads = Semaphore::new(threads);
        let gates = Gates::new(Duration::from_millis(host.config.checks.hold_ms));
        let stage =
            Arc::new(Stage { host, threads, shares, gates, next_connection: AtomicU64::new(u64::MAX) });
        Self {
            stage,
            all: Mutex::default(),
            series: Mutex::default(),
            changes: tokio::sync::Mutex::default(),
        }
    }

    /// The gates that hold an event before it is published; mostly none.
    pub(crate) fn hold(&self, behalf: Behalf<'_>, event: &Published) -> Option<Held> {
        if event.body.is_alarm {
            return None;
        }
        self.stage.gates.hold(behalf, &event.event)
    }

    /// Takes up those that were found on disk. One whose document is not understood any more is told, and stays on disk.
    pub(crate) fn restore(&self, found: Vec<RestoredSituation>) {
        for restored in found {
            let RestoredSituation {
                client,
                version,
                stored,
                tenant,
                confinement,
                told,
                told_by_any,
                state,
                decisions,
            } = restored;
            let Some((kind, name)) = kind_and_name(tenant::outside(&client)) else { continue };
            let owner = tenant.as_deref().unwrap_or_default().into();
            let key = Key { kind, tenant: owner, name: name.into() };
            match self.stage.read(kind, name, &stored.document) {
                Ok(plan) => {
                    let figures = Figures::default();
                    figures.pause(stored.is_paused);
                    let situation = Situation { key, client, version, tenant, confinement, plan, figures };
                    self.serve(situation, Past { told, told_by_any, state, decisions });
                }
                Err(refusal) => {
                    let why = refusal.problem().detail;
                    tracing::error!(
                        kind = kind.name(),
                        name,
                        ?why,
                        "a situation on disk cannot be read and is not served"
                    );
                }
            }
        }
    }

    /// A panic under the lock is impossible but for memory running out.
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Served>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic under the lock is impossible but for memory running out.
    fn series(&self) -> MutexGuard<'_, Series> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the figures of all situations as Prometheus text.
    pub(crate) fn render(&self, out: &mut String) {
        let all = self.all();
        let there = all.values().map(|served| (served.label.clone(), served.situation.figures.sums()));
        self.series().render(there, out);
    }

    fn key(kind: Kind, owner: Owner<'_>, name: &str) -> Key {
        Key { kind, tenant: owner.behalf.tenant_name().into(), name: name.into() }
    }

    /// The situation of that name, for an owner that may know of it.
    fn find(&self, kind: Kind, owner: Owner<'_>, name: &str) -> Result<Arc<Situation>, ApiError> {
        let key = Self::key(kind, owner, name);
        let found = self.all().get(&key).map(|served| Arc::clone(&served.situation));
        let situation = found.ok_or_else(|| none(kind, name))?;
        if !may_know(&situation, owner) {
            return Err(confined_otherwise());
        }
        Ok(situation)
    }

    /// Puts a situation in force, in the place of one of the same name. Returns its document, and whether it replaced one.
    pub(crate) async fn put(
        &self,
        kind: Kind,
        owner: Owner<'_>,
        name: &str,
        text: &str,
    ) -> Result<(String, bool), ApiError> {
        self.check_name(kind, name)?;
        // A program takes a while to compile, for which no connection is to wait.
        let (stage, of, document) = (Arc::clone(&self.stage), name.to_owned(), text.to_owned());
        let read = self.stage.host.runtime.spawn_blocking(move || stage.read(kind, &of, &document));
        let plan = read.await.map_err(|_| ApiError::Internal("the reading of a document panicked"))??;
        self.check_cost(&plan)?;
        let _alone = self.changes.lock().await;
        let key = Self::key(kind, owner, name);
        let before = match self.find(kind, owner, name) {
            Ok(situation) => Some(situation),
            Err(ApiError::NotFound(_)) => None,
            Err(refusal) => return Err(refusal),
        };
        if before.is_none() {
            self.check_room(owner)?;
        }
        let situation = Situation {
            client: client_of(kind, owner, name).into(),
            key,
            version: version_behind(before.as_deref().map(|before| &*before.version)),
            tenant: owner.behalf.tenant.map(Arc::from),
            confinement: owner.behalf.confinement.cloned(),
            plan,
            figures: Figures::default(),
        };
        // What is refused leaves the one before it in force.
        let subscriptions = self.stage.subscriptions(&situation, false)?;
        if before.is_some() {
            self.stop(&situation.key).await;
        }
        let is_installed = self.install(&situation.client, subscriptions).await;
        if is_installed.is_err() {
            self.remove(&mut self.all(), &situation.key);
        }
        is_installed?;
        Ok((self.serve(situation, Past::default()).shown(), before.is_some()))
    }

    /// Its document, with what it does.
    pub(crate) fn get(&self, kind: Kind, owner: Owner<'_>, name: &str) -> Result<String, ApiError> {
        Ok(self.find(kind, owner, name)?.shown())
    }

    /// All of a kind that the owner may know of, in the order of their names.
    pub(crate) fn list(&self, kind: Kind, owner: Owner<'_>) -> Vec<String> {
        let first = Self::key(kind, owner, "");
        let is_owners = |key: &Key| key.kind == kind && key.tenant == first.tenant;
        let all = self.all();
        let owners = all
            .range((Bound::Included(&first), Bound::Unbounded))
            .take_while(|(key, _)| is_owners(key))
            .filter(|(_, served)| may_know(&served.situation, owner));
        owners.map(|(key, served)| named(&key.name, &served.situation.shown())).collect()
    }

    /// What it found last, the newest first.
    pub(crate) fn findings(
        &self,
        kind: Kind,
        owner: Owner<'_>,
        name: &str,
    ) -> Result<Vec<Box<str>>, ApiError> {
        Ok(self.find(kind, owner, name)?.figures.findings())
    }

    /// Stops it for a while, or lets it go on. What comes meanwhile waits in its session.
    pub(crate) async fn pause(
        &self,
        kind: Kind,
        owner: Owner<'_>,
        name: &str,
        is_paused: bool,
    ) -> Result<(), ApiError> {
        let _alone = self.changes.lock().await;
        let situation = self.find(kind, owner, name)?;
        if self.stage.host.shards.has_store() {
            for subscription in self.stage.subscriptions(&situation, is_paused)? {
                self.stage.install(&situation.client, subscription).await?;
            }
        }
        situation.figures.pause(is_paused);
        Ok(())
    }

    /// Ends it for good.
    pub(crate) async fn delete(&self, kind: Kind, owner: Owner<'_>, name: &str) -> Result<(), ApiError> {
        let _alone = self.changes.lock().await;
        let situation = self.find(kind, owner, name)?;
        self.stop(&situation.key).await;
        self.remove(&mut self.all(), &situation.key);
        self.forget(&situation.client).await
    }

    /// Gives a situation's client its subscriptions, and no others.
    async fn install(&self, client: &Arc<str>, subscriptions: Vec<Prepared>) -> Result<(), ApiError> {
        // Where the broker died between two subscriptions, the first is there.
        self.forget(client).await?;
        for subscription in subscriptions {
            self.stage.install(client, subscription).await?;
        }
        Ok(())
    }

    /// Serves a situation, in the place of one that was stopped.
    fn serve(&self, situation: Situation, past: Past) -> Arc<Situation> {
        let mut logic = (situation.plan.begin)();
        situation.figures.begins(logic.engine(), logic.stored());
        if let Some(standing) = logic.standing() {
            situation.figures.note_standing(standing);
        }
        let situation = Arc::new(situation);
        let asks = self.stage.gates.open(&situation);
        let runner = Runner::start(&self.stage, &situation, past, asks);
        let mut all = self.all();
        self.remove(&mut all, &situation.key);
        let label = self.series().open(situation.key.kind, &situation.key.name);
        let served = Served { situation: Arc::clone(&situation), runner: Some(runner), label };
        all.insert(situation.key.clone(), served);
        drop(all);
        situation
    }

    /// Waits until nothing is done for it any more. It is still shown.
    async fn stop(&self, key: &Key) {
        let stopped = self.all().get_mut(key).and_then(|served| {
            self.stage.gates.close(&served.situation);
            served.runner.take()
        });
        if let Some(runner) = stopped {
            runner.end().await;
        }
    }

    /// Takes away one that was stopped.
    fn remove(&self, all: &mut BTreeMap<Key, Served>, key: &Key) {
        if let Some(served) = all.remove(key) {
            self.series().close(&served.label, served.situation.figures.sums());
        }
    }

    async fn forget(&self, client: &Arc<str>) -> Result<(), ApiError> {
        let forget = |client, reply| Command::Forget { client, reply };
        self.stage.host.shards.ask(client, forget).await?.map(drop)
    }

    /// Refuses a name that no situation may have.
    pub(crate) fn check_name(&self, kind: Kind, name: &str) -> Result<(), ApiError> {
        let limit = self.stage.host.config.limits.client_name_bytes;
        let bytes = shown_client(kind, name).len();
        if name.is_empty() || bytes > limit || name.chars().any(char::is_control) {
            let detail = format!(
                "a name has 1 to {} bytes (limits.client_name_bytes) without control characters",
                limit.saturating_sub(shown_client(kind, "").len())
            );
            return Err(ApiError::BadRequest(detail));
        }
        Ok(())
    }

    /// Refuses what would take the threads of all others. What is on disk was let in under the settings of its time.
    fn check_cost(&self, plan: &Plan) -> Result<(), ApiError> {
        let settings = &self.stage.host.config.situations;
        let (comparisons, limit, events) =
            (plan.comparisons, settings.comparisons_max, settings.comparisons_events_per_s);
        #[expect(clippy::cast_precision_loss, reason = "beside an estimate")]
        let is_cheap = comparisons <= limit as f64;
        if limit == 0 || is_cheap {
            return Ok(());
        }
        let detail = format!(
            "one event would cost about {comparisons:.1e} comparisons with {events} events a second \
             (situations.comparisons_events_per_s), and may cost {limit} (situations.comparisons_max): quantify over fewer \
             variables, hold events for less time, or join them by ="
        );
        Err(ApiError::invalid("/formula", detail))
    }

    /// Refuses one more than a tenant may have.
    fn check_room(&self, owner: Owner<'_>) -> Result<(), ApiError> {
        let limit = self.stage.host.config.situations.per_tenant;
        let tenant = owner.behalf.tenant_name();
        let count = self.all().keys().filter(|key| *key.tenant == *tenant).count();
        if count < limit {
            return Ok(());
        }
        let (what, setting) = ("checks, rules and groups of one tenant", "situations.per_tenant");
        Err(ApiError::Limit { what, limit: limit as u64, setting })
    }
}

/// A version that no document has had, and that is greater than those before it: of two of one name the findings of the greater count. It has
/// the time in its upper bits, so that this holds where the one before was deleted as well.
fn version_behind(before: Option<&str>) -> Arc<str> {
    let made = clock::unix_ms() << 16 | u64::from(rand::random::<u16>());
    let least = before.and_then(|before| u64::from_str_radix(before, 16).ok()).map_or(0, |number| number + 1);
    format!("{:016x}", made.max(least)).into()
}

/// Name of the client of a situation, by its name inside.
pub(crate) fn client_of(kind: Kind, owner: Owner<'_>, name: &str) -> String {
    tenant::inside(owner.behalf.tenant_name(), &shown_client(kind, name)).into()
}

/// Name of the client of a situation, as it would be shown.
fn shown_client(kind: Kind, name: &str) -> String {
    format!("{}{}/{name}", tenant::OWN, kind.name())
}

fn kind_and_name(client: &str) -> Option<(Kind, &str)> {
    let (kind, name) = client.strip_prefix(tenant::OWN)?.split_once('/')?;
    Some((Kind::of(kind)?, name))
}

/// A document with the name that it stands under.
fn named(name: &str, document: &str) -> String {
    let members = document.strip_prefix('{').unwrap_or_default();
    format!(r#"{{"name":{},{members}"#, quoted(name))
}

/// Whether an owner may know of a situation: without a confinement of all, else of those that are confined alike.
fn may_know(situation: &Situation, owner: Owner<'_>) -> bool {
    owner.behalf.confinement.is_none() || owner.behalf.confinement == situation.confinement.as_ref()
}

fn confined_otherwise() -> ApiError {
    let detail = "it was put under a token that is confined otherwise (claim nearcast)".to_owned();
    ApiError::Forbidden { detail, scope: None }
}

fn none(kind: Kind, name: &str) -> ApiError {
    ApiError::NotFound(format!("there is no {}/{name}", kind.name()))
}
