//! The edge: HTTP, WebSocket and server-sent events.

mod attachment;
mod base_map;
mod batch;
pub(crate) mod body;
mod clients;
mod cluster;
mod commands;
mod connection;
mod cursors;
pub(crate) mod encode;
mod error;
mod events;
mod explain;
mod find_routes;
mod forwarded_moves;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handshake;
mod heard;
mod linger;
mod openapi;
mod origin;
mod pages;
mod path;
mod peers;
mod poll_when_woken;
mod positions;
mod publish_batch;
mod push;
mod query;
mod replies;
mod routes;
mod situations;
mod slice;
mod slow_reads;
mod sse;
mod stats;
mod subscriptions;
mod ws;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderValue, Method};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use matcher::geo::World;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use connection::{Sockets, Stream, refuse_connection};
pub(crate) use heard::Heard;
pub(crate) use linger::{Came, Connection, LingeringClose};

use crate::admission::Admission;
use crate::auth::Authenticator;
use crate::base_map::BaseMap;
use crate::budget::Budget;
use crate::config::Config;
use crate::engines::CheckEngines;
use crate::ingest::feature::FeatureReader;
use crate::ingest::position::PositionReader;
use crate::ingest::subscription::SubscriptionReader;
use crate::ledger::Seen;
use crate::limits::Quota;
use crate::metrics::Metrics;
use crate::model::error::{ApiError, quoted};
use crate::outbox::{Bounds, KeptTotal, Outbox};
use crate::push::Push;
use crate::routing::Streets;
use crate::sessions::Shared;
use crate::shard::Shards;
use crate::shutdown::Ending;
use crate::situations::{Host, Situations};
use crate::slow_streets::{self, SlowStreets};
use crate::telemetry::Telemetry;
use cursors::Cursors;
use origin::Origins;
pub(crate) use peers::Peers;

/// State that handlers share.
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) world: World,
    pub(crate) shards: Shards,
    pub(crate) admission: Admission,
    pub(crate) metrics: Arc<Metrics>,
    /// Where events are traced.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) features: Arc<FeatureReader>,
    pub(crate) subscriptions: Arc<SubscriptionReader>,
    pub(crate) situations: Situations,
    pub(crate) positions: PositionReader,
    /// Kept matches over all shards.
    pub(crate) kept: Arc<KeptTotal>,
    /// Accounts of the bytes that are held for connections, clients and tenants.
    pub(crate) budget: Budget,
    /// Connections that read, tenant by tenant.
    pub(crate) reading: Arc<Quota>,
    pub(crate) origins: Origins,
    pub(crate) authenticator: Arc<Authenticator>,
    /// Seals the cursors of questions.
    cursors: Cursors,
    /// The map that the console draws below everything that moves.
    base_map: Option<BaseMap>,
    /// The streets that routes lead through.
    streets: Option<Arc<Streets>>,
    /// Watches for events that slow streets down.
    slow_streets: Option<SlowStreets>,
    /// The sender of push messages.
    push: Option<Arc<Push>>,
    /// The members of the cluster, where the broker is one of them.
    cluster: Option<Arc<Seen>>,
    /// The brokers of its other partitions.
    peers: Option<Arc<Peers>>,
    /// WebSockets, which can be cut off.
    pub(crate) sockets: Sockets,
    /// Connections.
    pub(crate) tasks: TaskTracker,
    /// Requests, whichever way they came.
    pub(crate) requests: TaskTracker,
    /// No more requests.
    pub(crate) stopping: CancellationToken,
    /// Nothing goes on.
    pub(crate) ended: CancellationToken,
    outbox_bounds: Bounds,
    next_connection: AtomicU64,
}

/// What some brokers alone have, and the engines of checks.
pub(crate) type Means =
    (CheckEngines, Option<BaseMap>, Option<Arc<Streets>>, Option<Arc<Seen>>, Option<Arc<Peers>>);

impl App {
    pub(crate) fn new(
        config: Arc<Config>,
        features: FeatureReader,
        shards: Shards,
        shared: Shared,
        authenticator: Arc<Authenticator>,
        (check_engines, base_map, streets, cluster, peers): Means,
        ending: &Ending,
    ) -> Arc<Self> {
        let Ending { tasks, stopping, ended } = ending.clone();
        let Shared { metrics, kept, quotas, budget, telemetry, engine_time, push, wayfinder, .. } = shared;
        let world = World::from(config.server.world);
        let subscriptions = SubscriptionReader::new(world, config.limits.clone(), config.outbox.overflow)
            .with_store(shards.has_store());
        let (features, subscriptions) = (Arc::new(features), Arc::new(subscriptions));
        let host = Host {
            config: Arc::clone(&config),
            shards: shards.clone(),
            features: Arc::clone(&features),
            accepted: Arc::new(features.of_accepted()),
            subscriptions: Arc::clone(&subscriptions),
            metrics: Arc::clone(&metrics),
            check_engines,
            tasks: tasks.clone(),
            runtime: Handle::current(),
        };
        let slow_streets = wayfinder.and_then(|wayfinder| {
            SlowStreets::new(slow_streets::Means {
                config: Arc::clone(&config),
                shards: shards.clone(),
                subscriptions: Arc::clone(&subscriptions),
                wayfinder,
                tasks: tasks.clone(),
                ended: ended.clone(),
                runtime: Handle::current(),
            })
        });
        Arc::new(Self {
            world,
            admission: Admission::new(&config, Box::new(shards.clone()), Arc::clone(&metrics), engine_time),
            shards,
            metrics,
            telemetry,
            features,
            subscriptions,
            situations: Situations::new(host),
            positions: PositionReader::new(world, &config.limits),
            kept,
            budget,
            reading: quotas.connections,
            origins: Origins::new(&config),
            authenticator,
            cursors: Cursors::new(),
            base_map,
            streets,
            slow_streets,
            push,
            cluster,
            peers,
            sockets: Sockets::default(),
            tasks,
            requests: TaskTracker::new(),
            stopping,
            ended,
            outbox_bounds: Bounds::new(&config.outbox),
            next_connection: AtomicU64::new(0),
            config,
        })
    }

    /// An outbox for a new connection of a client's.
    pub(crate) fn outbox(&self, client: &str) -> Arc<Outbox> {
        let outbox = Outbox::new(self.next_connection.fetch_add(1, Ordering::Relaxed), self.outbox_bounds);
        outbox.charge_to(&self.budget.connection(&self.budget.client(client)));
        Arc::new(outbox)
    }

    /// Refuses what comes after the stop began.
    pub(crate) fn refuse_when_stopping(&self) -> Result<(), ApiError> {
        if self.requests.is_closed() { Err(ApiError::Stopping) } else { Ok(()) }
    }
}

/// All routes.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let add = |router: Router<_>, route: routes::Route| router.route(route.path, route.guarded(app));
    routes::all()
        .into_iter()
        .fold(Router::new(), add)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Makes the router that answers before there is an [`App`]: with a refusal that says how far the start has come.
pub(crate) fn meanwhile(refusal: impl Fn() -> ApiError + Clone + Send + Sync + 'static) -> Router {
    let refuse = move || async move { refusal() };
    Router::new()
        .route("/healthz", get(stats::healthz_meanwhile))
        .fallback(refuse)
        .method_not_allowed_fallback(method_not_allowed)
}

async fn not_found(request: Request) -> ApiError {
    ApiError::NotFound(format!("there is no {}", quoted(request.uri().path())))
}

async fn method_not_allowed(path: Option<MatchedPath>, method: Method) -> ApiError {
    let path = path.as_ref().map(MatchedPath::as_str).unwrap_or_default();
    ApiError::MethodNotAllowed { asked: method.to_string(), possible: routes::possible(path) }
}

/// Around every request: pages of elsewhere are refused, a stop waits for its end, and no browser takes the answer for something else than
/// what it says it is.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = answer(&app, request, next).await;
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn answer(app: &App, request: Request, next: Next) -> Response {
    let origin = match app.origins.check(request.uri().path(), request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refusal.into_response(),
    };
    if let Some(origin) = &origin
        && request.method() == Method::OPTIONS
    {
        return origin.preflight(request.headers());
    }
    let token = app.requests.token();
    let mut response = next.run(linger::to_its_end(request)).await;
    drop(token);
    if response.status().is_client_error() || response.status().is_server_error() {
        app.metrics.problems.add(1);
    }
    if let Some(origin) = origin {
        origin.allow(response.headers_mut());
    }
    response
}
