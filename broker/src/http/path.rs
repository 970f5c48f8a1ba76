//! Names in paths.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::App;
use crate::auth::Principal;
use crate::model::error::ApiError;
use crate::model::tenant;

/// The principal of a request.
pub(crate) struct Permitted(pub(crate) Arc<Principal>);

/// The client of `/v1/clients/{client}/..`, for whom the request may act.
pub(crate) struct ClientPath(pub(crate) Arc<str>);

/// The client and the subscription of `/v1/clients/{client}/subscriptions/{id}`. The request may act for the client.
pub(crate) struct SubscriptionPath(pub(crate) Arc<str>, pub(crate) Arc<str>);

/// The event of `/v1/events/{id}`, one of the request's tenant.
pub(crate) struct EventPath(pub(crate) Arc<str>);

/// Checks a client's name: 1 to `limits.client_name_bytes` bytes without control characters.
fn check_client_name(app: &App, name: &str) -> Result<(), ApiError> {
    let limit = app.config.limits.client_name_bytes;
    if name.is_empty() || name.len() > limit {
        return Err(ApiError::BadRequest(format!(
            "a client's name has 1 to {limit} bytes (limits.client_name_bytes), this one has {}",
            name.len()
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(ApiError::BadRequest("a client's name has no control characters".to_owned()));
    }
    Ok(())
}

/// The client that a document names, for whom the request may act.
pub(crate) fn client_name_in_document(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<Arc<str>, ApiError> {
    client_name_in_query(app, principal, name).map_err(|refusal| {
        if let ApiError::BadRequest(detail) = refusal {
            ApiError::invalid("/client", detail)
        } else {
            refusal
        }
    })
}

/// The client that a parameter names, for whom the request may act, and whom this broker serves.
pub(crate) fn client_name_in_query(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<Arc<str>, ApiError> {
    let client = named_client(app, principal, name)?;
    if let Some(seen) = &app.cluster {
        seen.homes().check(&client)?;
    }
    Ok(client)
}

/// The client of a name, for whom the request may act, whichever broker serves it.
pub(super) fn named_client(app: &App, principal: &Principal, name: &str) -> Result<Arc<str>, ApiError> {
    check_client_name(app, name)?;
    principal.check_client(name)?;
    // Behind the check of the token, so that a token of another client is refused alike.
    if tenant::is_own(name) {
        let own = tenant::OWN;
        return Err(ApiError::BadRequest(format!(
            "names that begin with {own:?} are those of the broker's own clients"
        )));
    }
    Ok(principal.inside(name))
}

/// The client that a path names, for whom the request may act.
fn permitted_client(app: &App, parts: &Parts, name: &str) -> Result<Arc<str>, ApiError> {
    check_client_name(app, name)?;
    client_name_in_query(app, principal(parts)?, name)
}

fn principal(parts: &Parts) -> Result<&Arc<Principal>, ApiError> {
    parts.extensions.get().ok_or(ApiError::Internal("nothing has looked at the request's token"))
}

impl FromRequestParts<Arc<App>> for Permitted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        principal(parts).map(|principal| Self(Arc::clone(principal)))
    }
}

impl FromRequestParts<Arc<App>> for ClientPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let Path(name) =
            Path::<String>::from_request_parts(parts, app).await.map_err(|error| unreadable(&error))?;
        Ok(Self(permitted_client(app, parts, &name)?))
    }
}

impl FromRequestParts<Arc<App>> for SubscriptionPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let Path((client, id)) = Path::<(String, String)>::from_request_parts(parts, app)
            .await
            .map_err(|error| unreadable(&error))?;
        let client = permitted_client(app, parts, &client)?;
        app.subscriptions.check_id(&id, "").map_err(|fault| ApiError::BadRequest(fault.detail))?;
        Ok(Self(client, id.into()))
    }
}

impl FromRequestParts<Arc<App>> for EventPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let Path(id) =
            Path::<String>::from_request_parts(parts, app).await.map_err(|error| unreadable(&error))?;
        Ok(Self(principal(parts)?.inside(&id)))
    }
}

pub(super) fn unreadable(error: &axum::extract::rejection::PathRejection) -> ApiError {
    ApiError::BadRequest(error.body_text())
}
