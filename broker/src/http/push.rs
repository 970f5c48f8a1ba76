//! Where clients are sent push messages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, Bound};
use super::path::{ClientPath, Permitted};
use super::{App, error};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::push::{Push, PushSubscription};
use crate::shard::Command;

impl App {
    /// The sender of push messages, where they are not off.
    fn push(&self) -> Result<&Push, ApiError> {
        self.push.as_deref().ok_or(ApiError::NoPush)
    }
}

/// Gives the key that browsers subscribe to push messages with.
#[utoipa::path(
    get, path = "/v1/push", tag = "delivery",
    responses(
        (status = 200, description = "The key", body = wire::PushKey),
        (status = 404, description = "Push messages are off", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn key(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let public_key = app.push()?.public_key().to_owned();
    Ok(shown(StatusCode::OK, &wire::PushKey { public_key }))
}

/// Makes or replaces the push subscription of a client.
#[utoipa::path(
    put, path = "/v1/clients/{client}/push", tag = "delivery",
    params(("client" = String, Path, description = "The client")),
    request_body = wire::PushSubscription,
    responses(
        (status = 201, description = "Made", body = wire::PushState),
        (status = 200, description = "Replaced", body = wire::PushState),
        (status = "4XX", description = "Not made", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let push = app.push()?;
    let body = body::document(&app, &headers, body, Bound::of_push(&app)).await?;
    let subscription = PushSubscription::parse(body::text(&body)?)?;
    push.check(&subscription).await?;
    let described = wire::PushState {
        endpoint_origin: subscription.origin(),
        since: subscription.since(),
        last_push: None,
        failures: 0,
    };
    let (subscription, confinement) = (Arc::new(subscription), principal.confinement.clone());
    let put = |client, reply| Command::PutPush { client, subscription, confinement, reply };
    let replaced = app.shards.ask(&client, put).await??;
    Ok(shown(if replaced { StatusCode::OK } else { StatusCode::CREATED }, &described))
}

/// Describes the push subscription of a client.
#[utoipa::path(
    get, path = "/v1/clients/{client}/push", tag = "delivery",
    params(("client" = String, Path, description = "The client")),
    responses(
        (status = 200, description = "How it is, without the address that it is", body = wire::PushState),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
) -> Result<Response, ApiError> {
    app.push()?;
    let confinement = principal.confinement.clone();
    let get = |client, reply| Command::GetPush { client, confinement, reply };
    let described = app.shards.ask(&client, get).await??;
    Ok(shown(StatusCode::OK, &described.ok_or_else(|| none(&client))?))
}

/// Removes the push subscription of a client.
#[utoipa::path(
    delete, path = "/v1/clients/{client}/push", tag = "delivery",
    params(("client" = String, Path, description = "The client")),
    responses((status = 204, description = "There is none, or none any more")),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    app.push()?;
    let confinement = principal.confinement.clone();
    let remove = |client, reply| Command::RemovePush { client, only: None, confinement, reply };
    app.shards.ask(&client, remove).await??;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(status: StatusCode, document: &impl serde::Serialize) -> Response {
    error::json(status, serde_json::to_string(document).unwrap_or_default())
}

fn none(client: &str) -> ApiError {
    ApiError::NotFound(format!("client {} has no push subscription", tenant::outside(client)))
}
