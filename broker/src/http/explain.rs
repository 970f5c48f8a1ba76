//! `/v1/explain`: why an event comes to a client, or does not.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, Bound};
use super::path::{self, Permitted};
use super::{App, error};
use crate::admission::ClientLimiter;
use crate::ingest::explain::QuestionReader;
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::shard::Command;

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
    let (question, _change) = app.admission.read(&publisher, &payer, bytes, read).await?;
    let client = path::client_name_in_document(&app, &principal, &question.client)?;
    let to_itself = principal.is_client(tenant::outside(&client));
    let explain = |client, reply| Command::Explain { client, question, to_itself, payer, reply };
    let answer = app.shards.ask(&client, explain).await??;
    Ok(error::json(StatusCode::OK, serde_json::to_string(&answer).unwrap_or_default()))
}
