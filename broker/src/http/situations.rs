//! `/v1/checks` and what is like it: situations, which are clients of the broker's own.
//!
//! All kinds have the same calls, so that they are written down once: `calls!` makes those of a kind.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde_json::value::RawValue;

use super::body::{self, Bound};
use super::path::{Permitted, unreadable};
use super::peers::Others;
use super::{App, error};
use crate::auth::Principal;
use crate::model::error::ApiError;
use crate::situations::{Kind, Owner, client_of};

/// The situation of `/v1/{kind}/{name}/..`.
pub(crate) struct SituationPath(String);

impl FromRequestParts<Arc<App>> for SituationPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|Path(name)| Self(name)).map_err(|error| unreadable(&error))
    }
}

fn owner(principal: &Principal) -> Owner<'_> {
    Owner { behalf: principal.behalf() }
}

/// The owner of a situation that this broker serves.
///
/// # Errors
/// Where another broker of the cluster serves it.
fn owner_here<'a>(
    kind: Kind,
    app: &App,
    principal: &'a Principal,
    name: &str,
) -> Result<Owner<'a>, ApiError> {
    let owner = owner(principal);
    // A name that no situation may have is refused here as well as elsewhere.
    if let Some(seen) = app.cluster.as_ref().filter(|_| app.situations.check_name(kind, name).is_ok()) {
        seen.homes().check(&client_of(kind, owner, name))?;
    }
    Ok(owner)
}

async fn put(
    kind: Kind,
    app: &App,
    principal: &Principal,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let owner = owner_here(kind, app, principal, name)?;
    let body = body::document(app, headers, body, Bound::of_situation(app)).await?;
    let (document, has_replaced) = app.situations.put(kind, owner, name, body::text(&body)?).await?;
    let status = if has_replaced { StatusCode::OK } else { StatusCode::CREATED };
    Ok(error::json(status, document))
}

/// The situations of a kind that an owner may know of, of all partitions of a cluster, by name.
async fn list(
    kind: Kind,
    app: &App,
    principal: &Principal,
    others: Others,
    uri: &Uri,
) -> Result<Response, ApiError> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let mut documents = app.situations.list(kind, owner(principal));
    let others = others.get::<Vec<Box<RawValue>>>(uri).await?;
    documents.extend(others.into_iter().flatten().map(|document| document.get().to_owned()));
    documents.sort_by_cached_key(|document| {
        serde_json::from_str(document).map(|Named { name }| name).unwrap_or_default()
    });
    Ok(array(&documents))
}

/// An answer of documents that are JSON already.
fn array(documents: &[impl std::borrow::Borrow<str>]) -> Response {
    error::json(StatusCode::OK, format!("[{}]", documents.join(",")))
}

/// Makes the calls of a kind, with its module, the type of its documents, its tag in the API's document, what one of it is called, and its paths.
macro_rules! calls {
    ($module:ident: $kind:ident, $document:ident, $tag:tt, $noun:tt, [$all:tt, $one:tt, $findings:tt, $pause:tt, $resume:tt]) => {
        #[doc = concat!("Calls of `", $all, "`.")]
        pub(crate) mod $module {
            use std::sync::Arc;

            use axum::body::Body;
            use axum::extract::State;
            use axum::http::{HeaderMap, StatusCode, Uri};
            use axum::response::Response;

            use super::super::path::Permitted;
            use super::super::peers::Others;
            use super::super::{App, error};
            use super::{SituationPath, array, owner_here};
            use crate::model::error::ApiError;
            use crate::situations::Kind;

            /// Makes or replaces one.
            #[utoipa::path(
                put, path = $one, tag = $tag, summary = concat!("Makes or replaces a ", $noun, "."),
                params(("name" = String, Path, description = "Its name")),
                request_body = wire::$document,
                responses(
                    (status = 201, description = "Made; the normalised form", body = wire::$document),
                    (status = 200, description = "Replaced, and empty again; the normalised form", body = wire::$document),
                    (status = "4XX", description = "Not made", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn put(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, ApiError> {
                super::put(Kind::$kind, &app, &principal, &name, &headers, body).await
            }

            /// Shows one in its normalised form, with what it does.
            #[utoipa::path(
                get, path = $one, tag = $tag, summary = concat!("Shows a ", $noun, " in its normalised form, with what it does."),
                params(("name" = String, Path, description = "Its name")),
                responses(
                    (status = 200, description = "The normalised form", body = wire::$document),
                    (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn get(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
            ) -> Result<Response, ApiError> {
                let owner = owner_here(Kind::$kind, &app, &principal, &name)?;
                let document = app.situations.get(Kind::$kind, owner, &name)?;
                Ok(error::json(StatusCode::OK, document))
            }

            /// Shows all of them.
            #[utoipa::path(
                get, path = $all, tag = $tag, summary = concat!("Shows all ", $tag, "."),
                responses((status = 200, description = "All of the tenant, by name", body = Vec<wire::$document>)),
            )]
            pub(crate) async fn list(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                others: Others,
                uri: Uri,
            ) -> Result<Response, ApiError> {
                super::list(Kind::$kind, &app, &principal, others, &uri).await
            }

            /// Shows what one found last.
            #[utoipa::path(
                get, path = $findings, tag = $tag, summary = concat!("Shows what a ", $noun, " found last."),
                params(("name" = String, Path, description = "Its name")),
                responses(
                    (status = 200, description = "The newest 1,000 events that it published, or violations that it marked or dropped, the newest first", body = Vec<wire::Feature>),
                    (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn findings(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
            ) -> Result<Response, ApiError> {
                let owner = owner_here(Kind::$kind, &app, &principal, &name)?;
                Ok(array(&app.situations.findings(Kind::$kind, owner, &name)?))
            }

            /// Stops one until it is resumed.
            #[utoipa::path(
                post, path = $pause, tag = $tag, summary = concat!("Stops a ", $noun, " until it is resumed."),
                params(("name" = String, Path, description = "Its name")),
                responses(
                    (status = 204, description = "Its inputs wait from now on"),
                    (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn pause(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
            ) -> Result<StatusCode, ApiError> {
                let owner = owner_here(Kind::$kind, &app, &principal, &name)?;
                app.situations.pause(Kind::$kind, owner, &name, true).await?;
                Ok(StatusCode::NO_CONTENT)
            }

            /// Lets one go on.
            #[utoipa::path(
                post, path = $resume, tag = $tag, summary = concat!("Lets a ", $noun, " go on."),
                params(("name" = String, Path, description = "Its name")),
                responses(
                    (status = 204, description = "It goes on with the inputs that waited"),
                    (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn resume(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
            ) -> Result<StatusCode, ApiError> {
                let owner = owner_here(Kind::$kind, &app, &principal, &name)?;
                app.situations.pause(Kind::$kind, owner, &name, false).await?;
                Ok(StatusCode::NO_CONTENT)
            }

            /// Ends one.
            #[utoipa::path(
                delete, path = $one, tag = $tag, summary = concat!("Ends a ", $noun, "."),
                params(("name" = String, Path, description = "Its name")),
                responses(
                    (status = 204, description = "Ended"),
                    (status = 404, description = "There is none", body = wire::Problem, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn delete(
                State(app): State<Arc<App>>,
                Permitted(principal): Permitted,
                SituationPath(name): SituationPath,
            ) -> Result<StatusCode, ApiError> {
                app.refuse_when_stopping()?;
                let owner = owner_here(Kind::$kind, &app, &principal, &name)?;
                app.situations.delete(Kind::$kind, owner, &name).await?;
                Ok(StatusCode::NO_CONTENT)
            }
        }
    };
}

/// A name and an object of `/v1/groups/{name}/objects/{object}`.
pub(crate) struct ObjectPath(String, String);

impl FromRequestParts<Arc<App>> for ObjectPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        path.map(|Path((name, object))| Self(name, object)).map_err(|error| unreadable(&error))
    }
}

/// Says why a live object is in groups or in none.
#[utoipa::path(
    get, path = "/v1/groups/{name}/objects/{object}", tag = "groups",
    params(("name" = String, Path, description = "Name of the group definition"), ("object" = String, Path, description = "The object's key, else its id")),
    responses(
        (status = 200, description = "How it stands in each of its roles", body = wire::ExplainedObject),
        (status = 404, description = "There is no such group definition, or it has no such candidate", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn why(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ObjectPath(name, object): ObjectPath,
) -> Result<Response, ApiError> {
    let owner = owner_here(Kind::Groups, &app, &principal, &name)?;
    let explained = app.situations.why(owner, &name, &object).await?;
    Ok(error::json(StatusCode::OK, serde_json::to_string(&explained).unwrap_or_default()))
}

calls!(groups: Groups, GroupDefinition, "groups", "group definition", ["/v1/groups", "/v1/groups/{name}", "/v1/groups/{name}/findings", "/v1/groups/{name}/pause", "/v1/groups/{name}/resume"]);
calls!(rules: Rules, RuleSet, "rules", "rule set", ["/v1/rules", "/v1/rules/{name}", "/v1/rules/{name}/findings", "/v1/rules/{name}/pause", "/v1/rules/{name}/resume"]);
calls!(checks: Checks, Check, "checks", "check", ["/v1/checks", "/v1/checks/{name}", "/v1/checks/{name}/findings", "/v1/checks/{name}/pause", "/v1/checks/{name}/resume"]);
