//! `/v1/routes`: the best way along streets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use matcher::geo::Position;
use serde::Serialize;
use wire::{Fault, FoundRoute};

use super::body::{self, Bound, Format, Parts};
use super::path::{ClientPath, Permitted};
use super::query::Writing;
use super::{App, clients, query};
use crate::auth::Principal;
use crate::budget::Held;
use crate::ingest::route::RouteQuestion;
use crate::ingest::subscription::{Prepared, RouteArea};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::routing::{AreaAfter, AreasAsked, PageBounds, Streets, least_deadline};
use crate::sessions::Located;
use crate::shard::Command;

/// Questions of one request, at most.
const QUESTIONS_MAX: usize = 1_000;

/// Bytes of a body that are read before room is taken for them.
const HELD_BYTES: usize = 1 << 16;

const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

impl App {
    /// Lays areas along the routes from where the client is, or from another place: before the subscription is installed, so that nobody
    /// waits for that.
    ///
    /// # Errors
    /// Routes that cannot be found, each with its place in the document.
    pub(super) async fn lay_routes(
        &self,
        client: &Arc<str>,
        prepared: &mut Prepared,
        from: Option<Position>,
    ) -> Result<(), ApiError> {
        if prepared.routes.is_empty() {
            return Ok(());
        }
        let Some(streets) = &self.streets else {
            let fault = |route: &RouteArea| Fault {
                pointer: format!("/filters/{}/area/route", route.filter),
                detail: "this broker knows no streets (routes.streets)".to_owned(),
            };
            return Err(ApiError::Invalid(prepared.routes.iter().map(fault).collect()));
        };
        let from = match from {
            Some(from) => Some(from),
            None => {
                let confinement = prepared.confinement.clone();
                let locate = |client, reply| Command::Locate { client, to_itself: true, confinement, reply };
                match self.shards.ask(client, locate).await?? {
                    Located::At { position, .. } => Some(position),
                    Located::Nowhere | Located::Withheld => None,
                }
            }
        };
        let tenant = tenant::split(client).0;
        self.watch_slow_streets(tenant).await;
        let (faults, took) = streets.lay(tenant.into(), from, prepared).await?;
        self.admission.charge(client, took);
        if faults.is_empty() { Ok(()) } else { Err(ApiError::Invalid(faults)) }
    }

    /// Knows which streets are slow for a tenant, from now on.
    pub(crate) async fn watch_slow_streets(&self, tenant: &str) {
        if let Some(slow_streets) = &self.slow_streets {
            slow_streets.watch(tenant).await;
        }
    }

    fn streets(&self) -> Result<&Arc<Streets>, ApiError> {
        self.streets.as_ref().ok_or(ApiError::NoStreets)
    }
}

/// Finds the best way along the streets from one place to another.
///
/// Lines of questions are answered by lines, in their order: a route, or a problem.
#[utoipa::path(
    post, path = "/v1/routes", tag = "routes",
    request_body(content((wire::RouteQuestion = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "The route; of lines a route or a problem each", content((wire::FoundRoute = "application/json"), (String = "application/x-ndjson"))),
        (status = 404, description = "There is no route, or the broker knows no streets", body = wire::Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Not a question", body = wire::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Questions have cost too much of late", body = wire::Problem, content_type = "application/problem+json"),
        (status = 503, description = "Not found in time", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let arrived = Instant::now();
    app.streets()?;
    let limits = &app.config.limits;
    let format = Format::of(&headers)?;
    let single =
        Bound { what: "a question", bytes: limits.position_bytes as u64, setting: "limits.position_bytes" };
    if format == Format::Json {
        let body = body::document(&app, &headers, body, single).await?;
        let question = RouteQuestion::parse(body::text(&body)?)?;
        let mut found = found(&app, &principal, vec![question], arrived).await?;
        let found = text(&found.pop().unwrap_or(Err(ApiError::Late))?);
        let held = vec![query::hold_page(&app, &principal, found.len())?];
        return Ok(written(vec![found], held, HeaderValue::from_static("application/json")));
    }
    let bytes = (QUESTIONS_MAX * limits.position_bytes) as u64;
    let bound = Bound { what: "a body", bytes, setting: "limits.position_bytes" };
    let mut parts = Parts::new(&app, &headers, body, bound)?;
    let (mut body, mut held) = (Vec::new(), Vec::new());
    loop {
        let (part, has_ended) = parts.gather(HELD_BYTES).await?;
        held.push(query::hold_page(&app, &principal, part.len())?);
        body.extend_from_slice(&part);
        if has_ended {
            break;
        }
    }
    let lines = body::text(&body)?.split(['\n', '\u{1e}']).filter(|line| !line.trim().is_empty());
    let question = |line: &str| {
        if line.len() > limits.position_bytes { Err(single.passed()) } else { RouteQuestion::parse(line) }
    };
    let read: Vec<_> = lines.take(QUESTIONS_MAX + 1).map(question).collect();
    if read.len() > QUESTIONS_MAX {
        return Err(ApiError::BadRequest(format!("a request has at most {QUESTIONS_MAX} questions")));
    }
    let questions = read.iter().filter_map(|question| question.as_ref().ok().copied()).collect();
    let found = match found(&app, &principal, questions, arrived).await {
        Err(ApiError::Late) => Vec::new(),
        found => found?,
    };
    let mut found = found.into_iter();
    let told = read.into_iter().map(|question| {
        let answer = question.and_then(|_| found.next().unwrap_or(Err(ApiError::Late)));
        let told = answer.map(|route| text(&route)).and_then(|route| {
            // What is not read has a bound, as pages have it.
            held.push(query::hold_page(&app, &principal, route.len())?);
            Ok(route)
        });
        told.unwrap_or_else(|refusal| text(&refusal.problem()))
    });
    let told = told.collect();
    Ok(written(told, held, LINES))
}

/// Finds routes, when the asker has paid what it owes, and the streets are known that are slow. The least deadline counts for all of that.
async fn found(
    app: &Arc<App>,
    principal: &Principal,
    questions: Vec<RouteQuestion>,
    arrived: Instant,
) -> Result<Vec<Result<FoundRoute, ApiError>>, ApiError> {
    let tenant: Arc<str> = principal.behalf().tenant_name().into();
    let payer = principal.payer();
    let until = least_deadline(&questions).map(|deadline| arrived + deadline);
    let paid = async {
        let paid = app.admission.pay(&payer, principal.confinement.as_ref()).await?;
        app.watch_slow_streets(&tenant).await;
        Ok(paid)
    };
    let _paid = match until {
        Some(until) => tokio::time::timeout_at(until.into(), paid).await.unwrap_or(Err(ApiError::Late)),
        None => paid.await,
    }?;
    app.streets()?.find(tenant, questions, arrived, charge(app, payer)).await
}

/// An answer of lines, which is written as fast as it is read.
fn written(lines: Vec<String>, held: Vec<Held>, content_type: HeaderValue) -> Response {
    let bytes = lines.iter().map(|line| line.len() + 1).sum();
    let (part, tail) = (String::new(), if lines.is_empty() { "" } else { "\n" }.to_owned());
    let elements = lines.into_iter();
    Writing { part, comma: "", separator: "\n", elements, tail, _held: held }
        .into_response(content_type, bytes)
}

/// Tells where the areas along routes of a client lie: to itself those in force; to others, as `privacy.round_m` permits, what they would be from where
/// it is shown.
#[utoipa::path(
    get, path = "/v1/clients/{client}/routes", tag = "routes",
    params(
        ("client" = String, Path, description = "The client"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless said"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page, with one for each area along a route; `next` is absent on the last one", body = wire::ClientRoutes),
        (status = 400, description = "The query is wrong", body = wire::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The token does not permit it, or privacy.round_m keeps from others where the client is", body = wire::Problem, content_type = "application/problem+json"),
        (status = 404, description = "The broker knows no streets", body = wire::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Questions have cost too much of late", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn of_client(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (limit, after) = clients::page(query.as_deref().unwrap_or_default(), AreaAfter::read)?;
    let to_itself = query::asks_for_itself(&principal, tenant::outside(&client))?;
    let payer = principal.payer();
    let _paid = app.admission.pay(&payer, principal.confinement.as_ref()).await?;
    let confinement = principal.confinement.clone();
    // One more, so that it is known whether there are more.
    let asked = AreasAsked { to_itself, after, most: limit + 1 };
    let routes = |client, reply| Command::Routes { client, asked, confinement, reply };
    let (at, areas) = match app.shards.ask(&client, routes).await?? {
        (Located::Withheld, _) => return Err(query::withheld()),
        (Located::Nowhere, areas) => (None, areas),
        (Located::At { position, .. }, areas) => (Some(position), areas),
    };
    let tenant = tenant::split(&client).0.into();
    let bounds = PageBounds { areas: limit, bytes: query::PAGE_BYTES };
    let page = app.streets()?.tell(tenant, at, areas, to_itself, bounds, charge(&app, payer)).await?;
    let next = page.next.map(|next| format!(r#","next":{}"#, text(&next.text()))).unwrap_or_default();
    let (head, tail) = (r#"{"routes":["#.to_owned(), format!("]{next}}}\n"));
    let commas = page.areas.len().saturating_sub(1);
    let bytes = head.len() + page.areas.iter().map(String::len).sum::<usize>() + commas + tail.len();
    let held = query::hold_page(&app, &principal, bytes)?;
    let writing = Writing {
        part: head,
        comma: "",
        separator: ",",
        elements: page.areas.into_iter(),
        tail,
        _held: vec![held],
    };
    Ok(writing.into_response(HeaderValue::from_static("application/json"), bytes))
}

/// Charges somebody for work, also where the answer is not waited for.
fn charge(app: &Arc<App>, payer: Arc<str>) -> impl Fn(Duration) + Clone + Send + 'static {
    let app = Arc::clone(app);
    move |took| app.admission.charge(&payer, took)
}

fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}
