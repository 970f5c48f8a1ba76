//! Subscriptions that stay until they are deleted.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, Bound};
use super::path::{ClientPath, Permitted, SubscriptionPath};
use super::{App, error};
use crate::admission::ClientLimiter;
use crate::model::error::ApiError;
use crate::model::{tenant, warning};
use crate::shard::Command;

/// Makes or replaces a subscription.
#[utoipa::path(
    put, path = "/v1/clients/{client}/subscriptions/{id}", tag = "subscriptions",
    params(("client" = String, Path, description = "The client"), ("id" = String, Path, description = "The subscription")),
    request_body = wire::Subscription,
    responses(
        (status = 201, description = "Made; the normalised form", body = wire::Subscription),
        (status = 200, description = "Replaced; the normalised form", body = wire::Subscription),
        (status = "4XX", description = "Not made", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let body = body::document(&app, &headers, body, Bound::of_subscription(&app)).await?;
    let publisher = app.admission.publisher(&principal, &flow);
    let (reader, bytes) = (Arc::clone(&app), body.len());
    let read = move || {
        reader.subscriptions.parse(&id, body::text(&body)?)?.on_behalf(principal.behalf()).map(Box::new)
    };
    let (mut subscription, change) = app.admission.read(&publisher, &client, bytes, read).await?;
    app.lay_routes(&client, &mut subscription, None).await?;
    let install = |client, reply| Command::Install {
        client,
        subscription,
        change: Some(change),
        owner: None,
        answer: None,
        reply,
    };
    let installed = app.shards.ask(&client, install).await??;
    let status = if installed.replaced { StatusCode::OK } else { StatusCode::CREATED };
    Ok(error::json(status, warning::insert(installed.document, &installed.warnings)))
}

/// Shows a subscription in its normalised form.
#[utoipa::path(
    get, path = "/v1/clients/{client}/subscriptions/{id}", tag = "subscriptions",
    params(("client" = String, Path, description = "The client"), ("id" = String, Path, description = "The subscription")),
    responses(
        (status = 200, description = "The normalised form", body = wire::Subscription),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
) -> Result<Response, ApiError> {
    let (asked, confinement) = (Arc::clone(&id), principal.confinement.clone());
    let get = |client, reply| Command::Get { client, id: asked, confinement, reply };
    let document = app.shards.ask(&client, get).await??;
    let document = document.ok_or_else(|| none(&client, &id))?;
    Ok(error::json(StatusCode::OK, document))
}

/// Shows all subscriptions of a client.
#[utoipa::path(
    get, path = "/v1/clients/{client}/subscriptions", tag = "subscriptions",
    params(("client" = String, Path, description = "The client")),
    responses((status = 200, description = "All of them, by id", body = Vec<wire::Subscription>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
) -> Result<Response, ApiError> {
    let _paid = app.admission.pay(&client, principal.confinement.as_ref()).await?;
    let confinement = principal.confinement.clone();
    let list = |client, reply| Command::List { client, confinement, reply };
    let documents = app.shards.ask(&client, list).await??;
    Ok(error::json(StatusCode::OK, format!("[{}]", documents.join(","))))
}

/// Ends a subscription.
#[utoipa::path(
    delete, path = "/v1/clients/{client}/subscriptions/{id}", tag = "subscriptions",
    params(("client" = String, Path, description = "The client"), ("id" = String, Path, description = "The subscription")),
    responses(
        (status = 204, description = "Ended"),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    let (asked, confinement) = (Arc::clone(&id), principal.confinement.clone());
    let remove = |client, reply| Command::Remove { client, id: asked, confinement, reply };
    let removed = app.shards.ask(&client, remove).await??;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(none(&client, &id)) }
}

fn none(client: &str, id: &str) -> ApiError {
    let client = tenant::outside(client);
    ApiError::NotFound(format!("client {client} has no subscription {id}"))
}
