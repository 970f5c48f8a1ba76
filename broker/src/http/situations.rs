//! `/v1/checks` and what is like it: situations, which are clients of the broker's own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, Bound};
use super::path::{Permitted, unreadable};
use super::{App, error};
use crate::model::error::ApiError;
use crate::situations::{Kind, Owner};

/// The situation of `/v1/{kind}/{name}/..`.
pub(crate) struct SituationPath(String);

impl FromRequestParts<Arc<App>> for SituationPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|Path(name)| Self(name)).map_err(|error| unreadable(&error))
    }
}

const CHECKS: Kind = Kind::Checks;

/// Makes or replaces a check.
#[utoipa::path(
    put, path = "/v1/checks/{name}", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    request_body = wire::Check,
    responses(
        (status = 201, description = "Made; the normalised form", body = wire::Check),
        (status = 200, description = "Replaced, and empty again; the normalised form", body = wire::Check),
        (status = "4XX", description = "Not made", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put_check(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let body = body::document(&app, &headers, body, Bound::of_subscription(&app)).await?;
    let owner = Owner { behalf: principal.behalf() };
    let (document, has_replaced) = app.situations.put(CHECKS, owner, &name, body::text(&body)?).await?;
    let status = if has_replaced { StatusCode::OK } else { StatusCode::CREATED };
    Ok(error::json(status, document))
}

/// Shows a check in its normalised form, with what it does.
#[utoipa::path(
    get, path = "/v1/checks/{name}", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    responses(
        (status = 200, description = "The normalised form", body = wire::Check),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_check(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
) -> Result<Response, ApiError> {
    let document = app.situations.get(CHECKS, Owner { behalf: principal.behalf() }, &name)?;
    Ok(error::json(StatusCode::OK, document))
}

/// Shows all checks.
#[utoipa::path(
    get, path = "/v1/checks", tag = "checks",
    responses((status = 200, description = "All of the tenant, by name", body = Vec<wire::Check>)),
)]
pub(crate) async fn list_checks(State(app): State<Arc<App>>, Permitted(principal): Permitted) -> Response {
    let documents = app.situations.list(CHECKS, Owner { behalf: principal.behalf() });
    error::json(StatusCode::OK, format!("[{}]", documents.join(",")))
}

/// Shows what a check found last.
#[utoipa::path(
    get, path = "/v1/checks/{name}/findings", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    responses(
        (status = 200, description = "The newest 1,000 events that it published, the newest first", body = Vec<wire::Feature>),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn check_findings(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
) -> Result<Response, ApiError> {
    let findings = app.situations.findings(CHECKS, Owner { behalf: principal.behalf() }, &name)?;
    Ok(error::json(StatusCode::OK, format!("[{}]", findings.join(","))))
}

/// Stops a check until it is resumed.
#[utoipa::path(
    post, path = "/v1/checks/{name}/pause", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    responses(
        (status = 204, description = "Its inputs wait from now on"),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn pause_check(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
) -> Result<StatusCode, ApiError> {
    app.situations.pause(CHECKS, Owner { behalf: principal.behalf() }, &name, true).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a check go on.
#[utoipa::path(
    post, path = "/v1/checks/{name}/resume", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    responses(
        (status = 204, description = "It goes on with the inputs that waited"),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn resume_check(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
) -> Result<StatusCode, ApiError> {
    app.situations.pause(CHECKS, Owner { behalf: principal.behalf() }, &name, false).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a check.
#[utoipa::path(
    delete, path = "/v1/checks/{name}", tag = "checks",
    params(("name" = String, Path, description = "The check")),
    responses(
        (status = 204, description = "Ended"),
        (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete_check(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    SituationPath(name): SituationPath,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    app.situations.delete(CHECKS, Owner { behalf: principal.behalf() }, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
