//! `/v1/events`: publishing.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use wire::{Accepted, Fault};

use super::batch::{self, Tally, Work};
use super::body::{self, Format, Parts};
use super::path::{EventPath, Permitted};
use super::peers::Others;
use super::publish_batch::PublishBatch;
use super::{App, error};
use crate::admission::{ClientLimiter, InFlightGuard, Publisher};
use crate::auth::{self, Scope, Scopes};
use crate::ingest::Behalf;
use crate::ingest::feature::may_be_alarm;
use crate::ingest::framing::Elements;
use crate::ingest::json::{Members, Object};
use crate::ingest::scan::Shape;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::event::{Carried, Published};
use crate::model::tenant;
use crate::sessions::Known;
use crate::situations::Judged;
use crate::telemetry::{Telemetry, TraceContext, trace_of};

/// Two events, an event a line.
const LINES: &str = concat!(
    r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9.19,45.464]},"properties":{"severity":3}}"#,
    "\n",
    r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9.2,45.47]},"properties":{"severity":1}}"#,
    "\n",
);
/// One event as a text sequence.
const SEQUENCE: &str = concat!(
    "\u{1e}",
    r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9.19,45.464]},"properties":{"severity":3}}"#,
    "\n",
);

/// Publishes one event or many.
#[utoipa::path(
    post, path = "/v1/events", tag = "events",
    params(
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context: each event that is published goes on with this trace"),
        ("tracestate" = Option<String>, Header, description = "What belongs to it"),
    ),
    request_body(content(
        (wire::Feature = "application/geo+json"),
        (wire::Feature = "application/json"),
        (String = "application/geo+json-seq", example = json!(SEQUENCE)),
        (String = "application/x-ndjson", example = json!(LINES)),
    ), description = "A Feature, a FeatureCollection, a GeoJSON text sequence (RFC 8142) or a Feature a line"),
    responses(
        (status = 202, description = "Matched against every subscription that was acknowledged before", body = Accepted),
        (status = "4XX", description = "Not accepted; of a batch that ends midway `accepted`, `rejected` and `rejected_unlisted` tell what became of its first elements", body = wire::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Faster than limits.events_per_second or the tenant's quota, or more than the broker can do in time", body = wire::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker is starting or stopping, or its disk takes nothing", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn publish(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let mut tally = Tally::default();
    let receipt = app.shards.receipt();
    let context = TraceContext::of_headers(&headers);
    let mut work = Publish {
        app: &app,
        batch: &mut PublishBatch::default(),
        publisher: &app.admission.publisher(&principal, &flow),
        behalf: principal.behalf(),
        scopes: principal.scopes,
        expires: principal.expires,
        is_batch: true,
        receipt: receipt.as_ref(),
        context: context.as_ref(),
        over: "http",
    };
    let published = match Format::of(&headers)? {
        Format::Json => json(&app, &headers, body, &mut work, &mut tally).await,
        format @ (Format::Lines | Format::Sequence) => {
            let limit = app.features.event_bytes();
            batch::records(&app, &headers, body, format, limit, &mut work, &mut tally).await
        }
    };
    if let Err(refusal) = tally.settle(receipt, published).await {
        return Ok(tally.interrupted(&refusal, Publish::DONE));
    }
    let Tally { done, rejected, warnings, .. } = tally;
    let answer = Accepted {
        accepted: done,
        rejected: rejected.entries,
        rejected_unlisted: rejected.unlisted,
        warnings: warnings.entries,
        warnings_unlisted: warnings.unlisted,
    };
    Ok(error::json(StatusCode::ACCEPTED, serde_json::to_string(&answer).unwrap_or_default()))
}

/// Publishing of events, whichever way they come.
pub(crate) struct Publish<'a> {
    pub(crate) app: &'a App,
    /// Events that were taken and are not published.
    pub(crate) batch: &'a mut PublishBatch,
    pub(crate) publisher: &'a Publisher,
    /// The behalf on which the events are published.
    pub(crate) behalf: Behalf<'a>,
    pub(crate) scopes: Scopes,
    /// When the request's token ends, should that be before its body does.
    pub(crate) expires: Option<Instant>,
    /// Whether others come behind it in the same request, so that it can be held back.
    pub(crate) is_batch: bool,
    /// Completion of the request, where its answer waits for something.
    pub(crate) receipt: Option<&'a Arc<Completion>>,
    /// The trace that the request belongs to.
    pub(crate) context: Option<&'a TraceContext>,
    /// Name of the way on which the event came, for spans.
    pub(crate) over: &'static str,
}

impl Work for Publish<'_> {
    const DONE: &'static str = "accepted";

    async fn element(&mut self, _: u64, text: &str) -> Result<Vec<Fault>, ApiError> {
        self.event(Object::scan(Shape::Feature, text)).await
    }

    fn is_due(&self) -> bool {
        self.batch.is_due()
    }

    async fn finish(&mut self) -> Result<(), (usize, ApiError)> {
        let published = self.batch.publish(self.app, self.over).await;
        published.map_err(|refusal| (self.batch.refuse(self.app, self.over, &refusal), refusal))
    }

    fn too_large(&self) -> ApiError {
        self.app.metrics.events_rejected.add(1);
        self.app.features.too_large()
    }
}

impl Publish<'_> {
    /// Takes an event, which is published with the batch. Gives back what is probably not meant so in it.
    pub(super) async fn event(&mut self, event: Object<'_>) -> Result<Vec<Fault>, ApiError> {
        let started = Instant::now();
        let carried = Telemetry::carried(self.app.telemetry.as_ref(), self.context);
        let taken = match self.admit(started, event).await {
            Ok((published, warnings, pass)) => {
                self.judged(&published).await.map(|judged| (published, warnings, pass, judged))
            }
            Err(refusal) => Err(refusal),
        };
        match taken {
            Ok((mut published, warnings, pass, judged)) => {
                let marks = judged.as_ref().map_or(&[][..], |(_, marks)| marks);
                published.carry(marked(carried, marks));
                self.batch.add(published, pass, self.receipt, started, judged.map(|(judged, _)| judged));
                Ok(warnings)
            }
            Err(refusal) => {
                self.app.metrics.events_rejected.add(1);
                if let Some(trace) = trace_of(carried.as_deref()) {
                    trace.published(started, self.over, &Err(refusal.clone()));
                }
                Err(refusal)
            }
        }
    }

    /// Waits for the checks that hold the event, where there are some. Gives back what they are to know of it, and the names of those that mark it.
    async fn judged(&mut self, published: &Published) -> Result<Option<(Judged, Vec<Arc<str>>)>, ApiError> {
        let Some(held) = self.app.situations.hold(self.behalf, published) else { return Ok(None) };
        // What came before does not wait for it.
        self.batch.publish(self.app, self.over).await?;
        held.judged(&self.app.features, self.behalf, published).await.map(Some)
    }

    /// Reads an event that may be published. One that cannot be an alarm is not read before it is known that it is admitted.
    async fn admit(
        &mut self,
        started: Instant,
        event: Object<'_>,
    ) -> Result<(Published, Vec<Fault>, Option<Arc<InFlightGuard>>), ApiError> {
        auth::check_time(self.expires, started)?;
        let is_ordinary = !(self.scopes.allows(Scope::Alarm) && may_be_alarm(&event));
        let mut pass = None;
        if is_ordinary {
            pass = self.admit_ordinary(started).await?;
        }
        let parsing = Instant::now();
        let (published, warnings) = self.app.features.parse_object(self.behalf, event)?;
        self.app.metrics.ingest.record(published.body.received.saturating_duration_since(parsing));
        if published.body.is_alarm {
            self.scopes.require(Scope::Alarm)?;
            pass = Some(self.app.admission.alarm(self.publisher, started));
        } else if !is_ordinary {
            pass = self.admit_ordinary(started).await?;
        }
        Ok((published, warnings, pass))
    }

    async fn admit_ordinary(&mut self, now: Instant) -> Result<Option<Arc<InFlightGuard>>, ApiError> {
        let admission = &self.app.admission;
        if self.is_batch {
            let publisher = self.publisher;
            admission
                .event_of_batch(publisher, now, async || self.batch.publish(self.app, self.over).await)
                .await
        } else {
            admission.event(self.publisher, now)
        }
    }
}

/// What an event carries that some checks mark.
fn marked(carried: Option<Box<Carried>>, marks: &[Arc<str>]) -> Option<Box<Carried>> {
    if marks.is_empty() {
        return carried;
    }
    let mut carried = carried.unwrap_or_default();
    carried.mark(marks);
    Some(carried)
}

/// One JSON document: a Feature, or a FeatureCollection, which is streamed when it is large.
async fn json(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    work: &mut Publish<'_>,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let limit = app.features.event_bytes();
    let mut parts = Parts::of_batch(app, headers, body)?;
    let (head, ended) = parts.gather(limit).await?;
    if !ended {
        return collection(app, head, Some(&mut parts), work, tally).await;
    }
    // All is there: a small document that is malformed somewhere publishes nothing of it.
    let text = body::text(&head)?;
    let members = Members::read(Shape::Feature, text)?;
    members.check_once()?;
    match members.get("type") {
        Some("\"FeatureCollection\"") => collection(app, head, None, work, tally).await,
        _ => {
            work.is_batch = false;
            let warnings = work.event(Object { text, members: Some(members) }).await?;
            tally.warn(&app.config.limits, warnings);
            work.finish().await.map_err(|(_, refusal)| refusal)?;
            tally.done += 1;
            Ok(())
        }
    }
}

async fn collection(
    app: &App,
    head: Bytes,
    parts: Option<&mut Parts>,
    work: &mut Publish<'_>,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let mut elements = Elements::of_collection(app.features.event_bytes());
    batch::elements(app, head, parts, &mut elements, work, tally).await?;
    let members = Members::parse(body::text(elements.skeleton())?)?;
    match (members.get("type"), members.get("features")) {
        (Some("\"FeatureCollection\""), Some("[]")) => Ok(()),
        (Some("\"FeatureCollection\""), _) => {
            Err(ApiError::invalid("/features", "must be an array of Features"))
        }
        (Some("\"Feature\""), _) => Err(app.features.too_large()),
        _ => Err(ApiError::invalid("/type", "must be \"Feature\" or \"FeatureCollection\"")),
    }
}

/// Ends a live event: no client receives it any more, and subscriptions that have it inside get an exit.
#[utoipa::path(
    delete, path = "/v1/events/{id}", tag = "events",
    params(("id" = String, Path, description = "The event's id; of a number, its digits")),
    responses(
        (status = 204, description = "Every live event of this id is over"),
        (status = 404, description = "No event of this id is live", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    EventPath(id): EventPath,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    if app.shards.revoke(&id, principal.confinement.as_ref()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound(format!("no event {} is live", tenant::outside(&id))))
    }
}

/// Says to whom a live or a recent event went, and what became of each delivery.
#[utoipa::path(
    get, path = "/v1/events/{id}/deliveries", tag = "events",
    params(("id" = String, Path, description = "The event's id; of a number, its digits")),
    responses(
        (status = 200, description = "Its deliveries, by client and offset", body = wire::Deliveries),
        (status = 404, description = "No event of this id is live, or is one of the last sessions.recent_events that went to somebody", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn deliveries(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    EventPath(id): EventPath,
    others: Others,
    uri: Uri,
) -> Result<Response, ApiError> {
    let known = principal.confinement.clone().map(|confinement| {
        let app = Arc::clone(&app);
        Arc::new(move |text: &str| app.features.is_within(&confinement, text)) as Known
    });
    let payer = principal.payer();
    let _paid = app.admission.pay(&payer, principal.confinement.as_ref()).await?;
    let (own, others) = tokio::try_join!(app.shards.deliveries(&id, known, &payer), others.get(&uri))?;
    let Some(mut deliveries) = wire::Deliveries::joined(own.into_iter().chain(others)) else {
        let detail = match app.config.sessions.recent_events {
            0 => "nothing is remembered of deliveries (sessions.recent_events is 0)".to_owned(),
            _ => format!("nothing is known of an event {} (sessions.recent_events)", tenant::outside(&id)),
        };
        return Err(ApiError::NotFound(detail));
    };
    if principal.confinement.is_some() {
        deliveries.deliveries.iter_mut().for_each(|delivered| delivered.position = None);
    }
    Ok(error::json(StatusCode::OK, serde_json::to_string(&deliveries).unwrap_or_default()))
}
