//! `/v1/explain`: why an event comes to a client, or does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use wire::{ExplainedCheck, ExplainedDerivation, Explanation, OnViolation};

use super::body::{self, Bound};
use super::path::{self, Permitted};
use super::{App, error};
use crate::admission::ClientLimiter;
use crate::ingest::explain::{AskedEvent, AskedSubscription, QuestionReader};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::shard::Command;
use crate::situations::Owner;

/// Says why an event comes to a client, or does not.
///
/// Nothing is changed or delivered. Subscription and event may be real or made up for the question.
#[utoipa::path(
    post, path = "/v1/explain", tag = "events",
    request_body = wire::Explain,
    responses(
        (status = 200, description = "Why", body = wire::Explanation),
        (status = 404, description = "There is no such subscription, or no such live event", body = wire::Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Not a question", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let body = body::document(&app, &headers, body, Bound::of_question(&app)).await?;
    let publisher = app.admission.publisher(&principal, &flow);
    let (asked, asker, bytes) = (Arc::clone(&app), Arc::clone(&principal), body.len());
    let read = move || {
        let App { world, features, subscriptions, .. } = &*asked;
        let reader = QuestionReader { world: *world, behalf: asker.behalf(), features, subscriptions };
        reader.parse(body::text(&body)?).map(Box::new)
    };
    let payer = principal.payer();
    let (mut question, _change) = app.admission.read(&publisher, &payer, bytes, read).await?;
    let client = path::client_name_in_document(&app, &principal, &question.client)?;
    let to_itself = principal.is_client(tenant::outside(&client));
    let from = question.position;
    if let AskedSubscription::Told { prepared, .. } = &mut question.subscription
        && (to_itself || from.is_some())
    {
        let laid = app.lay_routes(&client, prepared, from).await;
        laid.map_err(|refusal| refusal.below("/subscription"))?;
    }
    let checks = match &question.event {
        AskedEvent::Told { rehearsed, observed, .. } => {
            app.situations.explain(principal.behalf(), rehearsed, observed).await
        }
        AskedEvent::Live(_) => Vec::new(),
    };
    let asked_id = match &question.event {
        AskedEvent::Live(id) => Some(Arc::clone(id)),
        AskedEvent::Told { .. } => None,
    };
    let explain = |client, reply| Command::Explain { client, question, to_itself, payer, reply };
    let mut answer = app.shards.ask(&client, explain).await??;
    held_back(&mut answer, checks);
    if let Some(id) = asked_id {
        let owner = Owner { behalf: principal.behalf() };
        derived(&mut answer, app.situations.derivation(owner, tenant::outside(&id)));
    }
    Ok(error::json(StatusCode::OK, serde_json::to_string(&answer).unwrap_or_default()))
}

/// Adds how the event was derived from others.
fn derived(answer: &mut Explanation, derivation: Option<ExplainedDerivation>) {
    if let Some(ExplainedDerivation { by, rule, from }) = &derivation {
        let rule = rule.as_ref().map(|rule| format!(", {rule},")).unwrap_or_default();
        let more = if from.len() > NAMED_MAX { " and others" } else { "" };
        let from = from[..from.len().min(NAMED_MAX)].join(", ");
        answer.why.push_str(&format!("; derived by {by}{rule} from {from}{more}"));
    }
    answer.derived = derivation;
}

/// Events that are named in a sentence.
const NAMED_MAX: usize = 3;

/// Adds the checks that the event would break. One that is dropped reaches nobody.
fn held_back(answer: &mut Explanation, checks: Vec<ExplainedCheck>) {
    if let Some(check) = checks.iter().find(|check| check.on_violation == OnViolation::Drop) {
        let bindings = |link: &BTreeMap<String, String>| {
            let bindings: Vec<_> = link.iter().map(|(variable, id)| format!("{variable} = {id}")).collect();
            bindings.join(", ")
        };
        let events: Vec<_> =
            check.links.iter().take(3).map(bindings).filter(|link| !link.is_empty()).collect();
        let events = if events.is_empty() { String::new() } else { format!(": {}", events.join("; ")) };
        answer.matched = false;
        answer.why = format!("held back by check {}{events}", check.check);
    }
    answer.checks = checks;
}
