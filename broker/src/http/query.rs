//! Questions for what is there now: live events, and where a client is.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use matcher::live::Place;

use super::path::{self, ClientPath, Permitted};
use super::{App, error};
use crate::admission::ClientLimiter;
use crate::auth::Principal;
use crate::budget::{Held, Kind};
use crate::ingest::Confinement;
use crate::ingest::query::LiveQuery;
use crate::model::error::ApiError;
use crate::model::event;
use crate::model::{clock, tenant};
use crate::sessions::{LiveQuestion, Located};
use crate::shard::Command;

/// Bytes that the elements of a page have at most, but for the first, which is always there.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// Bytes of a page that are written at once. The rest is where the live events are, until the asker has read so far.
const PART_BYTES: usize = 65_536;

const GEO_JSON: HeaderValue = HeaderValue::from_static("application/geo+json");

/// Lists live events: in a rectangle, near to a place, of some content, or those that a client's subscriptions take.
///
/// An engine looks for them, some at a time between what else it does. With `near` the nearest come first. In any case an event that
/// stays live is on one page, whatever comes and goes between two pages.
#[utoipa::path(
    get, path = "/v1/events", tag = "events",
    params(
        ("bbox" = Option<String>, Query, description = "west,south,east,north in degrees; a west beyond east crosses the antimeridian. The least x, the least y, the largest x and the largest y in a planar world"),
        ("near" = Option<String>, Query, description = "longitude,latitude,metres: a circle in place of a rectangle. x,y,metres in a planar world"),
        ("where" = Option<String>, Query, description = "A condition, CQL2 text"),
        ("client" = Option<String>, Query, description = "A client: only what matches one of its subscriptions where it is now"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless said"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page; `next` is absent on the last one", body = wire::LiveEvents, content_type = "application/geo+json"),
        (status = 400, description = "The query is wrong", body = wire::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Questions have cost the engines too much of late", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let stopping = app.stopping.clone();
    // Whatever it waits for: a stop has no time for it, and the engine drops a question of which nobody waits for the answer.
    let page =
        stopping.run_until_cancelled(page(&app, &flow, &principal, query.as_deref().unwrap_or_default()));
    page.await.unwrap_or(Err(ApiError::Stopping))
}

/// The page that an address asks for.
async fn page(
    app: &App,
    flow: &Arc<ClientLimiter>,
    principal: &Principal,
    query: &str,
) -> Result<Response, ApiError> {
    let asked = LiveQuery::read(app.world, &app.config.limits, query)?;
    let named = asked.client.as_deref();
    let client = named.map(|name| path::client_name_in_query(app, principal, name)).transpose()?;
    let payer = principal.payer();
    // The client's shard knows its subscriptions, and all shards know the live events.
    let own = app.shards.index_of(client.as_ref().unwrap_or(&payer));
    let tenant = principal.tenant.clone().unwrap_or_default();
    let text = format!("{tenant}\0\0{}", asked.text);
    let (shard, after) = match &asked.after {
        Some(cursor) => app.cursors.open(&text, cursor).map(|(shard, place)| (shard, Some(place)))?,
        None => (own, None),
    };
    let publisher = app.admission.publisher(principal, flow);
    let told = asked.condition;
    let (condition, change) =
        app.admission.read(&publisher, &payer, told.bytes(), move || told.read()).await?;
    let page = app
        .shards
        .query(
            shard,
            LiveQuestion {
                tenant,
                within: asked.within,
                condition,
                client: client.map(|client| {
                    let to_itself = principal.is_client(tenant::outside(&client));
                    (client, to_itself)
                }),
                confinement: principal.confinement.clone(),
                after,
                most: asked.limit,
                payer,
            },
            change,
        )
        .await?;
    let confinement = principal.confinement.as_deref().map(Confinement::text);
    let seen = page.events.iter().map(|(place, published)| (*place, published.body.seen_by(confinement)));
    let seen: Vec<_> = seen.map(|(place, body)| (place, Arc::clone(body))).collect();
    let (count, bytes, last) = fitting(&seen, page.next);
    let next = match last {
        Some(place) => format!(r#","next":"{}""#, app.cursors.seal(&text, shard, place)?),
        None => String::new(),
    };
    let head = format!(r#"{{"type":"FeatureCollection","numberReturned":{count},"features":["#);
    let tail = format!("]{next}}}\n");
    let bytes = head.len() + bytes + tail.len();
    let held = hold_page(app, principal, bytes)?;
    let events = seen.into_iter().take(count).map(|(_, body)| EventText(body));
    let writing =
        Writing { part: head, comma: "", separator: ",", elements: events, tail, _held: vec![held] };
    Ok(writing.into_response(GEO_JSON, bytes))
}

/// The text of an event.
struct EventText(Arc<event::Body>);

impl AsRef<str> for EventText {
    fn as_ref(&self) -> &str {
        &self.0.text
    }
}

/// How many events of a page there is room for, their bytes with commas between, and the last place if there are more.
fn fitting(events: &[(Place, Arc<event::Body>)], next: Option<Place>) -> (usize, usize, Option<Place>) {
    let (mut bytes, mut last) = (0, None);
    for (count, (place, body)) in events.iter().enumerate() {
        let more = body.text.len() + usize::from(count > 0);
        if count > 0 && bytes + more > PAGE_BYTES {
            return (count, bytes, last);
        }
        bytes += more;
        last = Some(*place);
    }
    (events.len(), bytes, next)
}

/// Holds the bytes of a page until it has been read.
pub(super) fn hold_page(app: &App, principal: &Principal, bytes: usize) -> Result<Held, ApiError> {
    // An account for each client, or where nobody says who they are, for all of these: a connection has one page at a time.
    let account = match &principal.client {
        Some(_) => app.budget.client(&principal.payer()),
        None => app.budget.tenant(principal.tenant.as_deref().unwrap_or_default()),
    };
    account.hold(Kind::Pages, bytes as u64).map_err(unread)
}

/// The refusal of a page for which there is no room until others have been read.
fn unread(refusal: ApiError) -> ApiError {
    if let ApiError::Limit { what, limit, setting } = refusal {
        return ApiError::Unread { what, limit, setting };
    }
    refusal
}

/// A page that is being written, as fast as it is read.
pub(super) struct Writing<E> {
    /// What is written next, before further elements.
    pub(super) part: String,
    /// What stands before the next element: nothing before the first.
    pub(super) comma: &'static str,
    /// What stands between elements.
    pub(super) separator: &'static str,
    pub(super) elements: E,
    pub(super) tail: String,
    /// All bytes of the page: events that are over meanwhile are there for it alone.
    pub(super) _held: Vec<Held>,
}

impl<E: Iterator<Item: AsRef<str>> + Send + 'static> Writing<E> {
    pub(super) fn into_response(self, content_type: HeaderValue, bytes: usize) -> Response {
        let parts =
            stream::unfold(self, async |mut writing| Some((Ok::<_, Infallible>(writing.part()?), writing)));
        ([(CONTENT_TYPE, content_type), (CONTENT_LENGTH, bytes.into())], Body::from_stream(parts))
            .into_response()
    }

    /// The next bytes; none at the end.
    fn part(&mut self) -> Option<Bytes> {
        while self.part.len() < PART_BYTES {
            let Some(element) = self.elements.next() else {
                self.part.push_str(&std::mem::take(&mut self.tail));
                break;
            };
            self.part.push_str(std::mem::replace(&mut self.comma, self.separator));
            self.part.push_str(element.as_ref());
        }
        let part = std::mem::take(&mut self.part);
        (!part.is_empty()).then(|| part.into())
    }
}

/// Tells where a client is: itself exactly, others as `privacy.round_m` permits.
#[utoipa::path(
    get, path = "/v1/clients/{client}/position", tag = "clients",
    params(("client" = String, Path, description = "The client")),
    responses(
        (status = 200, description = "Where it is", body = wire::ClientPosition),
        (status = 403, description = "The token does not permit it, or privacy.round_m keeps it from others", body = wire::Problem, content_type = "application/problem+json"),
        (status = 404, description = "It has told no position", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn position(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
) -> Result<Response, ApiError> {
    let name = tenant::outside(&client);
    let to_itself = asks_for_itself(&principal, name)?;
    let confinement = principal.confinement.clone();
    let locate = |client, reply| Command::Locate { client, to_itself, confinement, reply };
    let (position, accuracy_m, told_ms) = match app.shards.ask(&client, locate).await?? {
        Located::At { position, accuracy_m, told_ms } => (position, accuracy_m, told_ms),
        Located::Nowhere => return Err(ApiError::NotFound(format!("no position of client {name} is known"))),
        Located::Withheld => return Err(withheld()),
    };
    let told = wire::ClientPosition {
        coordinates: vec![position.x(), position.y()],
        accuracy_m,
        time: told_ms.map(clock::rfc3339),
    };
    Ok(error::json(StatusCode::OK, serde_json::to_string(&told).unwrap_or_default()))
}

/// Whether it is the client itself that asks where it is; somebody else may unless it is confined.
pub(super) fn asks_for_itself(principal: &Principal, name: &str) -> Result<bool, ApiError> {
    let to_itself = principal.is_client(name);
    if !to_itself && principal.confinement.is_some() {
        return Err(forbidden("a token that is confined (claim nearcast) is not shown where others are"));
    }
    Ok(to_itself)
}

/// The answer where a client is that is shown to nobody.
pub(super) fn withheld() -> ApiError {
    forbidden("nobody is shown where others are (privacy.round_m is 0)")
}

fn forbidden(detail: &str) -> ApiError {
    ApiError::Forbidden { detail: detail.to_owned(), scope: None }
}
