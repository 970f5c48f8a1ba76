//! The one table of routes, and what each request has to show. The router is made from it, and so is what the API's document says
//! of tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use super::body::Bound;
use super::error::Elsewhere;
use super::peers::Passed;
use super::situations::{self, checks, groups, rules};
use super::{
    App, Heard, base_map, clients, cluster, events, explain, find_routes, openapi, pages, positions, push,
    query, sse, stats, subscriptions, ws,
};
use crate::auth::{self, Scope, Token, TokenSource};
use crate::model::error::ApiError;

/// The credentials that a request has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: it tells and changes nothing of anybody's.
    Nothing,
    /// A token with this scope.
    Scope(Scope),
    /// A token with this scope, for a stream that a browser keeps open.
    Stream(Scope),
    /// A token with the scope `admin` and without a tenant: it is about all of them together.
    Operator,
}

/// A path and a method.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    pub(crate) need: Need,
    /// Operation id in the API's document, from which generated clients name their functions; `None` for pages.
    pub(crate) name: Option<&'static str>,
    handler: MethodRouter<Arc<App>>,
}

impl Route {
    fn new<H, T>(path: &'static str, method: Method, need: Need, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("a method of HTTP's own");
        Self { path, method, need, name: None, handler: on(filter, handler) }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Its handler behind what looks at tokens. Without that a handler for clients or permits refuses everybody.
    pub(crate) fn guarded(self, app: &Arc<App>) -> MethodRouter<Arc<App>> {
        let (scope, whereabouts) = match self.need {
            Need::Nothing => return self.handler,
            Need::Scope(scope) => (scope, TokenSource::Header),
            Need::Operator => (Scope::Admin, TokenSource::Header),
            Need::Stream(scope) => (scope, TokenSource::HeaderOrAddress),
        };
        let forwards = app.peers.is_some()
            && matches!(self.need, Need::Scope(_))
            && ["{client}", "{name}"].iter().any(|parameter| self.path.contains(parameter));
        let document = forwards.then(|| match self.path {
            POSITION => Bound::of_position(app),
            PUSH => Bound::of_push(app),
            SUBSCRIPTION => Bound::of_subscription(app),
            _ => Bound::of_situation(app),
        });
        let gate = Gate { app: Arc::clone(app), need: self.need, scope, whereabouts, document };
        self.handler.route_layer(middleware::from_fn_with_state(gate, admit))
    }
}

/// Paths of a client's subscriptions, and of one of them.
const CLIENT: &str = "/v1/clients/{client}";
const SUBSCRIPTIONS: &str = "/v1/clients/{client}/subscriptions";
const SUBSCRIPTION: &str = "/v1/clients/{client}/subscriptions/{id}";

/// Path of a client's position.
const POSITION: &str = "/v1/clients/{client}/position";

/// Path of a client's push subscription.
const PUSH: &str = "/v1/clients/{client}/push";

/// All routes.
pub(crate) fn all() -> Vec<Route> {
    use Need::Nothing;
    const PUBLISH: Need = Need::Scope(Scope::Publish);
    const SUBSCRIBE: Need = Need::Scope(Scope::Subscribe);
    const STREAM: Need = Need::Stream(Scope::Subscribe);
    const ADMIN: Need = Need::Scope(Scope::Admin);
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    vec![
        Route::new("/v1/events", post.clone(), PUBLISH, events::publish).named("publish_events"),
        Route::new("/v1/events", get.clone(), SUBSCRIBE, query::events).named("list_events"),
        Route::new("/v1/events/{id}", delete.clone(), PUBLISH, events::revoke).named("delete_event"),
        Route::new("/v1/events/{id}/deliveries", get.clone(), ADMIN, events::deliveries)
            .named("get_deliveries"),
        Route::new("/v1/explain", post.clone(), SUBSCRIBE, explain::explain).named("explain"),
        Route::new("/v1/routes", post.clone(), SUBSCRIBE, find_routes::find).named("find_routes"),
        Route::new("/v1/positions", post.clone(), SUBSCRIBE, positions::move_many).named("move_clients"),
        Route::new("/v1/clients", get.clone(), Need::Operator, clients::list).named("list_clients"),
        Route::new(CLIENT, delete.clone(), SUBSCRIBE, clients::forget).named("delete_client"),
        Route::new("/v1/clients/{client}/connections", delete.clone(), ADMIN, clients::disconnect)
            .named("disconnect_client"),
        Route::new(POSITION, put.clone(), SUBSCRIBE, positions::move_one).named("move_client"),
        Route::new(POSITION, get.clone(), SUBSCRIBE, query::position).named("get_position"),
        Route::new("/v1/clients/{client}/routes", get.clone(), SUBSCRIBE, find_routes::of_client)
            .named("list_client_routes"),
        Route::new(SUBSCRIPTIONS, get.clone(), SUBSCRIBE, subscriptions::list).named("list_subscriptions"),
        Route::new(SUBSCRIPTION, put.clone(), SUBSCRIBE, subscriptions::put).named("put_subscription"),
        Route::new(SUBSCRIPTION, get.clone(), SUBSCRIBE, subscriptions::get).named("get_subscription"),
        Route::new(SUBSCRIPTION, delete.clone(), SUBSCRIBE, subscriptions::delete)
            .named("delete_subscription"),
        Route::new("/v1/push", get.clone(), Nothing, push::key).named("get_push_key"),
        Route::new(PUSH, put.clone(), SUBSCRIBE, push::put).named("put_push"),
        Route::new(PUSH, get.clone(), SUBSCRIBE, push::get).named("get_push"),
        Route::new(PUSH, delete.clone(), SUBSCRIBE, push::delete).named("delete_push"),
        Route::new("/v1/clients/{client}/events", get.clone(), STREAM, sse::stream).named("stream_events"),
        Route::new("/v1/clients/{client}/ws", get.clone(), STREAM, ws::upgrade).named("open_websocket"),
        Route::new("/v1/checks", get.clone(), ADMIN, checks::list).named("list_checks"),
        Route::new("/v1/checks/{name}", put.clone(), ADMIN, checks::put).named("put_check"),
        Route::new("/v1/checks/{name}", get.clone(), ADMIN, checks::get).named("get_check"),
        Route::new("/v1/checks/{name}", delete.clone(), ADMIN, checks::delete).named("delete_check"),
        Route::new("/v1/checks/{name}/findings", get.clone(), ADMIN, checks::findings)
            .named("list_check_findings"),
        Route::new("/v1/checks/{name}/pause", post.clone(), ADMIN, checks::pause).named("pause_check"),
        Route::new("/v1/checks/{name}/resume", post.clone(), ADMIN, checks::resume).named("resume_check"),
        Route::new("/v1/groups", get.clone(), ADMIN, groups::list).named("list_group_definitions"),
        Route::new("/v1/groups/{name}", put.clone(), ADMIN, groups::put).named("put_group_definition"),
        Route::new("/v1/groups/{name}", get.clone(), ADMIN, groups::get).named("get_group_definition"),
        Route::new("/v1/groups/{name}", delete.clone(), ADMIN, groups::delete)
            .named("delete_group_definition"),
        Route::new("/v1/groups/{name}/findings", get.clone(), ADMIN, groups::findings)
            .named("list_group_definition_findings"),
        Route::new("/v1/groups/{name}/objects/{object}", get.clone(), ADMIN, situations::why)
            .named("explain_object"),
        Route::new("/v1/groups/{name}/pause", post.clone(), ADMIN, groups::pause)
            .named("pause_group_definition"),
        Route::new("/v1/groups/{name}/resume", post.clone(), ADMIN, groups::resume)
            .named("resume_group_definition"),
        Route::new("/v1/rules", get.clone(), ADMIN, rules::list).named("list_rule_sets"),
        Route::new("/v1/rules/{name}", put, ADMIN, rules::put).named("put_rule_set"),
        Route::new("/v1/rules/{name}", get.clone(), ADMIN, rules::get).named("get_rule_set"),
        Route::new("/v1/rules/{name}", delete, ADMIN, rules::delete).named("delete_rule_set"),
        Route::new("/v1/rules/{name}/findings", get.clone(), ADMIN, rules::findings)
            .named("list_rule_set_findings"),
        Route::new("/v1/rules/{name}/pause", post.clone(), ADMIN, rules::pause).named("pause_rule_set"),
        Route::new("/v1/rules/{name}/resume", post, ADMIN, rules::resume).named("resume_rule_set"),
        Route::new("/v1/cluster", get.clone(), SUBSCRIBE, cluster::cluster).named("get_cluster"),
        Route::new("/v1/stats", get.clone(), Need::Operator, stats::stats).named("get_stats"),
        Route::new("/v1/stats/history", get.clone(), Need::Operator, stats::history)
            .named("get_stats_history"),
        Route::new("/metrics", get.clone(), Need::Operator, stats::metrics).named("get_metrics"),
        Route::new("/healthz", get.clone(), Nothing, stats::healthz).named("get_health"),
        Route::new("/readyz", get.clone(), Nothing, stats::readyz).named("get_readiness"),
        Route::new("/openapi.json", get.clone(), Nothing, openapi::document),
        Route::new("/docs", get.clone(), Nothing, openapi::docs_index),
        Route::new("/docs/", get.clone(), Nothing, openapi::docs_page),
        Route::new("/docs/{*file}", get.clone(), Nothing, openapi::docs),
        Route::new("/", get.clone(), Nothing, pages::console),
        Route::new("/phone", get.clone(), Nothing, pages::phone),
        Route::new("/phone/", get.clone(), Nothing, pages::phone_without_slash),
        // Beside the page: what a service worker may answer for is below its own address.
        Route::new("/phone-worker.js", get.clone(), Nothing, pages::asset),
        Route::new("/assets/{*file}", get.clone(), Nothing, pages::asset),
        Route::new("/pages.json", get.clone(), Nothing, pages::settings),
        Route::new("/base-map.json", get.clone(), Nothing, base_map::document),
        Route::new("/base-map.pmtiles", get.clone(), Nothing, base_map::archive),
        Route::new("/base-map/names.json", get.clone(), Nothing, base_map::names),
        Route::new("/base-map/{z}/{x}/{y}", get, Nothing, base_map::tile),
    ]
}

/// The methods that a path has, in words, with how to make what people try to post there.
pub(crate) fn possible(path: &str) -> String {
    static METHODS: LazyLock<BTreeMap<&'static str, Vec<String>>> = LazyLock::new(|| {
        let mut methods = BTreeMap::<_, Vec<_>>::new();
        for route in all() {
            methods.entry(route.path).or_default().push(route.method.to_string());
        }
        methods
    });
    let methods = METHODS.get(path).map(|methods| methods.join(", ")).unwrap_or_default();
    match path {
        SUBSCRIPTIONS => format!("{methods} (PUT {SUBSCRIPTION} makes a subscription)"),
        CLIENT => {
            let below = METHODS.keys().filter(|below| below.starts_with("/v1/clients/{client}/"));
            let below = below.copied().collect::<Vec<_>>().join(", ");
            format!("{methods}, which forgets the client (what there is of it is at {below})")
        }
        _ => methods,
    }
}

/// Path and query at another broker, without a token.
pub(super) fn location(url: &str, uri: &Uri) -> String {
    let mut location = [url.trim_end_matches('/'), uri.path()].concat();
    let parameters = uri.query().unwrap_or_default().split('&');
    let kept: Vec<_> = parameters.filter(|one| !one.is_empty() && !auth::is_token(one)).collect();
    if !kept.is_empty() {
        location.push('?');
        location.push_str(&kept.join("&"));
    }
    location
}

/// What is in front of a handler.
#[derive(Clone)]
struct Gate {
    app: Arc<App>,
    need: Need,
    scope: Scope,
    whereabouts: TokenSource,
    /// The bound of the document of a request that is passed on where it is answered elsewhere. Streams are sent there.
    document: Option<Bound>,
}

/// Lets a request in whose token has the scope that it needs, with its principal for the handler.
async fn admit(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let Gate { app, need, scope, whereabouts, document } = gate;
    let token = if app.authenticator.wants_tokens() {
        Token::of(request.headers(), request.uri(), whereabouts)
    } else {
        Ok(None)
    };
    let principal = match token {
        Ok(token) => app.authenticator.authenticate(token).await,
        Err(refusal) => Err(refusal),
    };
    let permitted = principal.and_then(|principal| {
        principal.scopes.require(scope)?;
        if need == Need::Operator {
            principal.check_operator()?;
        }
        Ok(principal)
    });
    match permitted {
        Ok(principal) => {
            if let Some(heard) = request.extensions().get::<Heard>() {
                heard.tell();
            }
            request.extensions_mut().insert(principal);
            if !app.config.cluster.is_partitioned() {
                return next.run(request).await;
            }
            let uri = request.uri().clone();
            let passed = document.and_then(|bound| Some((Passed::of(&app, &mut request)?, bound)));
            let mut response = next.run(request).await;
            let Some(Elsewhere(url)) = response.extensions_mut().remove::<Elsewhere>() else {
                return response;
            };
            let location = location(&url, &uri);
            if let Some((passed, bound)) = passed
                && let Some(answer) = passed.on(&app, &location, bound).await
            {
                return answer.unwrap_or_else(ApiError::into_response);
            }
            if let Ok(location) = HeaderValue::try_from(location) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}
