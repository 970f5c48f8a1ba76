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
use crate::admission::Flow;
use crate::model::error::Refusal;
use crate::model::tenant;
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
    Extension(flow): Extension<Arc<Flow>>,
    Permitted(permit): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    app.refuse_when_stopping()?;
    let body = body::document(&app, &headers, body, Bound::of_subscription(&app)).await?;
    let publisher = app.admission.publisher(&permit, &flow);
    let (reader, bytes) = (Arc::clone(&app), body.len());
    let read =
        move || reader.subscriptions.parse(&id, body::text(&body)?)?.on_behalf(permit.behalf()).map(Box::new);
    let (subscription, change) = app.admission.read(&publisher, &client, bytes, read).await?;
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
    Ok(error::json(status, installed.document))
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
    Permitted(permit): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
) -> Result<Response, Refusal> {
    let (asked, confinement) = (Arc::clone(&id), permit.confinement.clone());
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
    Permitted(permit): Permitted,
    ClientPath(client): ClientPath,
) -> Result<Response, Refusal> {
    let _paid = app.admission.pay(&client, permit.confinement.as_ref()).await?;
    let confinement = permit.confinement.clone();
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
    Permitted(permit): Permitted,
    SubscriptionPath(client, id): SubscriptionPath,
) -> Result<StatusCode, Refusal> {
    app.refuse_when_stopping()?;
    let (asked, confinement) = (Arc::clone(&id), permit.confinement.clone());
    let remove = |client, reply| Command::Remove { client, id: asked, confinement, reply };
    let removed = app.shards.ask(&client, remove).await??;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(none(&client, &id)) }
}

fn none(client: &str, id: &str) -> Refusal {
    let client = tenant::outside(client);
    Refusal::NotFound(format!("client {client} has no subscription {id}"))
}
