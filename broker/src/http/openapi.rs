//! The API as a document, made from the code, and a page for it that needs no network.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use super::error;
use crate::refusal::Refusal;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "nearcast",
        description = "A location-aware, content-based publish/subscribe broker. Clients subscribe with areas that move with them and conditions on attributes; each published event reaches those, and only those, whose area holds its location and whose condition holds for its content.",
        license(name = "Apache-2.0 OR MIT"),
    ),
    paths(
        super::events::publish,
        super::events::revoke,
        super::events::deliveries,
        super::explain::explain,
        super::positions::move_one,
        super::positions::move_many,
        super::subscriptions::put,
        super::subscriptions::get,
        super::subscriptions::list,
        super::subscriptions::delete,
        super::clients::forget,
        super::clients::list,
        super::clients::disconnect,
        super::sse::stream,
        super::ws::upgrade,
        super::figures::stats,
        super::figures::metrics,
        super::figures::healthz,
        super::figures::readyz,
    ),
    components(schemas(wire::ClientFrame, wire::ServerFrame)),
    tags(
        (name = "events", description = "Publishing"),
        (name = "subscriptions", description = "What a client wants"),
        (name = "clients", description = "Where a client is"),
        (name = "delivery", description = "What a client gets"),
        (name = "operation", description = "How the broker is"),
    )
)]
struct Api;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| Api::openapi().to_json().unwrap_or_default());

// Unless told not to, the page sends a public document's address to an outside validator.
static PAGE: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json").validator_url("none")));

/// What the page would call itself, and what it is called.
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
pub(crate) async fn docs_page() -> Result<Response, Refusal> {
    page("index.html")
}

/// A file of the page.
pub(crate) async fn docs(Path(file): Path<String>) -> Result<Response, Refusal> {
    page(&file)
}

fn page(file: &str) -> Result<Response, Refusal> {
    match utoipa_swagger_ui::serve(file, Arc::clone(&PAGE)) {
        Ok(Some(found)) => {
            let kind = HeaderValue::from_str(&found.content_type)
                .unwrap_or(HeaderValue::from_static("application/octet-stream"));
            let mut bytes = found.bytes.into_owned();
            if file == "index.html" {
                bytes = String::from_utf8_lossy(&bytes).replace(FOREIGN_TITLE, TITLE).into_bytes();
            }
            Ok(([(CONTENT_TYPE, kind)], bytes).into_response())
        }
        Ok(None) => Err(Refusal::NotFound(format!("there is no /docs/{file}"))),
        Err(_) => Err(Refusal::Internal("a page of the API could not be made")),
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
            ("/v1/events/{id}", "delete"),
            ("/v1/events/{id}/deliveries", "get"),
            ("/v1/positions", "post"),
            ("/v1/explain", "post"),
            ("/v1/clients", "get"),
            ("/v1/clients/{client}", "delete"),
            ("/v1/clients/{client}/connections", "delete"),
            ("/v1/clients/{client}/position", "put"),
            ("/v1/clients/{client}/subscriptions/{id}", "put"),
            ("/v1/clients/{client}/subscriptions/{id}", "delete"),
            ("/v1/clients/{client}/events", "get"),
            ("/v1/clients/{client}/ws", "get"),
        ] {
            assert!(document["paths"][path][method].is_object(), "{method} {path}");
        }
        assert!(document["components"]["schemas"]["Problem"].is_object());
    }
}
