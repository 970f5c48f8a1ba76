//! The API as a document, made from the code, and a page for it that needs no network.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use utoipa::openapi::schema::{AnyOfBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{self, ContentBuilder, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{Modify, OpenApi};
use utoipa_swagger_ui::Config;

use super::error;
use super::pages::GUARDS;
use super::routes::{self, Need};
use crate::auth::Scope;
use crate::model::error::ApiError;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "nearcast",
        description = "A location-aware, content-based publish/subscribe broker. Clients subscribe with areas that move with them and conditions on attributes; each published event reaches those, and only those, whose area holds its location and whose condition holds for its content.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT"),
    ),
    servers((url = "/", description = "The broker that the document is of")),
    paths(
        super::events::publish,
        super::query::events,
        super::events::revoke,
        super::events::deliveries,
        super::explain::explain,
        super::find_routes::find,
        super::find_routes::of_client,
        super::positions::move_one,
        super::query::position,
        super::positions::move_many,
        super::subscriptions::put,
        super::subscriptions::get,
        super::subscriptions::list,
        super::subscriptions::delete,
        super::situations::checks::list,
        super::situations::checks::put,
        super::situations::checks::get,
        super::situations::checks::delete,
        super::situations::checks::findings,
        super::situations::checks::pause,
        super::situations::checks::resume,
        super::situations::groups::list,
        super::situations::groups::put,
        super::situations::groups::get,
        super::situations::groups::delete,
        super::situations::groups::findings,
        super::situations::why,
        super::situations::groups::pause,
        super::situations::groups::resume,
        super::situations::rules::list,
        super::situations::rules::put,
        super::situations::rules::get,
        super::situations::rules::delete,
        super::situations::rules::findings,
        super::situations::rules::pause,
        super::situations::rules::resume,
        super::clients::forget,
        super::clients::list,
        super::clients::disconnect,
        super::push::key,
        super::push::put,
        super::push::get,
        super::push::delete,
        super::sse::stream,
        super::ws::upgrade,
        super::cluster::cluster,
        super::stats::stats,
        super::stats::history,
        super::stats::metrics,
        super::stats::healthz,
        super::stats::readyz,
    ),
    components(schemas(wire::ClientFrame, wire::ServerFrame)),
    modifiers(&Refusals, &Areas, &Subscribes),
    tags(
        (name = "events", description = "Publishing"),
        (name = "subscriptions", description = "What a client wants"),
        (name = "checks", description = "Constraints on the events of some time"),
        (name = "groups", description = "Live objects that fit together"),
        (name = "rules", description = "Rules by which events derive, merge and cancel one another"),
        (name = "routes", description = "Ways along streets"),
        (name = "clients", description = "Where a client is"),
        (name = "delivery", description = "What a client gets"),
        (name = "operation", description = "How the broker is"),
    )
)]
struct Api;

/// Adds the refusals that any call may answer besides its own: names in paths, origins and stops are looked at before the
/// call is.
struct Refusals;

impl Modify for Refusals {
    fn modify(&self, api: &mut openapi::OpenApi) {
        for item in api.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                let responses = &mut operation.responses.responses;
                let mut add = |status: &str, description| {
                    responses.entry(status.to_owned()).or_insert_with(|| refusal(description).into());
                };
                add("4XX", "Not answered");
                add("503", "The broker is overloaded, starting or stopping, or its disk takes nothing");
            }
        }
    }
}

/// The members of an area say which form it has, and the first that fits counts: `oneOf`, as which untagged types are
/// described, would refuse a circle that stays, because it also reads as one that follows.
struct Areas;

impl Modify for Areas {
    fn modify(&self, api: &mut openapi::OpenApi) {
        let schemas = &mut api.components.get_or_insert_default().schemas;
        let Some(area) = schemas.get_mut("Area") else { return };
        if let RefOr::T(Schema::OneOf(forms)) = area {
            let mut any = AnyOfBuilder::new().description(forms.description.take());
            for form in std::mem::take(&mut forms.items) {
                any = any.item(form);
            }
            *area = any.into();
        }
    }
}

/// A frame that subscribes has the members of a subscription beside its own. Said by `allOf`, as what is flattened is described,
/// generators of clients cannot make one type of it.
struct Subscribes;

impl Modify for Subscribes {
    fn modify(&self, api: &mut openapi::OpenApi) {
        let schemas = &mut api.components.get_or_insert_default().schemas;
        let Some(RefOr::T(Schema::Object(subscription))) = schemas.get("Subscription").cloned() else {
            return;
        };
        let Some(RefOr::T(Schema::OneOf(frames))) = schemas.get_mut("ClientFrame") else { return };
        for frame in &mut frames.items {
            let RefOr::T(Schema::AllOf(parts)) = frame else { continue };
            let mut whole = subscription.clone();
            (whole.example, whole.description) = (None, parts.description.take());
            for part in &parts.items {
                if let RefOr::T(Schema::Object(part)) = part {
                    let properties = part.properties.iter();
                    whole.properties.extend(properties.map(|(name, schema)| (name.clone(), schema.clone())));
                    whole.required.extend(part.required.iter().cloned());
                }
            }
            // A frame has no path that could tell the id.
            whole.required.push("id".to_owned());
            if let Some(RefOr::T(Schema::Object(id))) = whole.properties.get_mut("id") {
                id.schema_type = Type::String.into();
            }
            *frame = RefOr::T(Schema::Object(whole));
        }
    }
}

fn refusal(description: &str) -> openapi::Response {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(description).content("application/problem+json", problem).build()
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| api().to_json().unwrap_or_default());

/// Name of the security scheme in the document.
const SCHEME: &str = "token";

/// The document, with what each call is called and needs.
fn api() -> openapi::OpenApi {
    let mut api = Api::openapi();
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some("A JSON Web Token, where `auth.mode` is not `none`. Its claim `sub` is the client, `scope` what it may do"))
        .build();
    api.components.get_or_insert_default().add_security_scheme(SCHEME, SecurityScheme::Http(token));
    for route in routes::all() {
        let Some(item) = api.paths.paths.get_mut(route.path) else { continue };
        let operations = [
            (Method::GET, &mut item.get),
            (Method::PUT, &mut item.put),
            (Method::POST, &mut item.post),
            (Method::DELETE, &mut item.delete),
        ];
        let asked = operations.into_iter().find(|(method, _)| *method == route.method);
        let Some(operation) = asked.and_then(|(_, operation)| operation.as_mut()) else { continue };
        operation.operation_id = route.name.map(str::to_owned);
        let scope = match route.need {
            Need::Nothing => {
                operation.security = Some(Vec::new());
                continue;
            }
            Need::Scope(scope) | Need::Stream(scope) => scope,
            Need::Operator => Scope::Admin,
        };
        let scopes = Scope::ALL.into_iter().filter(|one| *one == scope || *one == Scope::Admin);
        operation.security = Some(scopes.map(|one| SecurityRequirement::new(SCHEME, [one.name()])).collect());
        for (status, description) in
            [("401", "No token that counts"), ("403", "The token does not permit it")]
        {
            operation.responses.responses.insert(status.to_owned(), refusal(description).into());
        }
    }
    api
}

// Unless told not to, the page sends a public document's address to an outside validator.
static PAGE: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json").validator_url("none")));

/// Title that the page would have, and the title that it gets.
const FOREIGN_TITLE: &str = "<title>Swagger UI</title>";
const TITLE: &str = "<title>The API of nearcast</title>";

/// The document.
pub(crate) async fn document() -> Response {
    error::json(StatusCode::OK, DOCUMENT.as_str())
}

/// The page's address without its slash, from which its files would not be found.
pub(crate) async fn docs_index() -> Redirect {
    Redirect::permanent("/docs/")
}

/// The page.
pub(crate) async fn docs_page() -> Result<Response, ApiError> {
    page("index.html")
}

/// A file of the page.
pub(crate) async fn docs(Path(file): Path<String>) -> Result<Response, ApiError> {
    page(&file)
}

fn page(file: &str) -> Result<Response, ApiError> {
    match utoipa_swagger_ui::serve(file, Arc::clone(&PAGE)) {
        Ok(Some(found)) => {
            let kind = HeaderValue::from_str(&found.content_type)
                .unwrap_or(HeaderValue::from_static("application/octet-stream"));
            let mut bytes = found.bytes.into_owned();
            if file == "index.html" {
                bytes = String::from_utf8_lossy(&bytes).replace(FOREIGN_TITLE, TITLE).into_bytes();
            }
            Ok(([(CONTENT_TYPE, kind)], GUARDS, bytes).into_response())
        }
        Ok(None) => Err(ApiError::NotFound(format!("there is no /docs/{file}"))),
        Err(_) => Err(ApiError::Internal("a page of the API could not be made")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_every_call_of_the_protocol() {
        let document: serde_json::Value = serde_json::from_str(&DOCUMENT).unwrap();
        for (path, method) in [
            ("/v1/events", "post"),
            ("/v1/events", "get"),
            ("/v1/events/{id}", "delete"),
            ("/v1/events/{id}/deliveries", "get"),
            ("/v1/positions", "post"),
            ("/v1/explain", "post"),
            ("/v1/clients", "get"),
            ("/v1/clients/{client}", "delete"),
            ("/v1/clients/{client}/connections", "delete"),
            ("/v1/clients/{client}/position", "put"),
            ("/v1/clients/{client}/position", "get"),
            ("/v1/clients/{client}/subscriptions/{id}", "put"),
            ("/v1/clients/{client}/subscriptions/{id}", "delete"),
            ("/v1/push", "get"),
            ("/v1/clients/{client}/push", "put"),
            ("/v1/clients/{client}/push", "delete"),
            ("/v1/clients/{client}/events", "get"),
            ("/v1/clients/{client}/ws", "get"),
        ] {
            assert!(document["paths"][path][method].is_object(), "{method} {path}");
        }
        assert!(document["components"]["schemas"]["Problem"].is_object());
    }

    #[test]
    fn the_document_and_the_table_have_the_same_calls() {
        let document: serde_json::Value = serde_json::from_str(&DOCUMENT).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let described = paths.iter().flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(move |(method, call)| (path.clone(), method.clone(), call))
        });
        let described: Vec<_> = described.collect();
        for (path, method, call) in &described {
            let in_table = |route: &&routes::Route| {
                route.path == path && route.method.as_str().eq_ignore_ascii_case(method)
            };
            let route = routes::all()
                .into_iter()
                .find(|route| in_table(&route))
                .unwrap_or_else(|| panic!("{method} {path}"));
            assert_eq!(
                call["security"] == serde_json::json!([]),
                route.need == Need::Nothing,
                "{method} {path}: {call}"
            );
        }
        // Pages are not calls.
        let pages = [
            "/",
            "/phone",
            "/phone/",
            "/phone-worker.js",
            "/assets/{*file}",
            "/pages.json",
            "/base-map.json",
            "/base-map.pmtiles",
            "/base-map/names.json",
            "/base-map/{z}/{x}/{y}",
            "/docs",
            "/docs/",
            "/docs/{*file}",
            "/openapi.json",
        ];
        let calls = routes::all().into_iter().filter(|route| !pages.contains(&route.path));
        let mut names: Vec<_> = calls.map(|route| route.name.expect("a call has a name")).collect();
        assert_eq!(described.len(), names.len());
        let mut told: Vec<_> =
            described.iter().map(|(.., call)| call["operationId"].as_str().unwrap()).collect();
        names.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, names);
        names.dedup();
        assert_eq!(told, names, "each has a name of its own");
    }
}
