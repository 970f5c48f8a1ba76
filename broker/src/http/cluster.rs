//! The cluster that the broker is a member of.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::path::{self, Permitted};
use super::{App, error};
use crate::model::error::ApiError;

/// Names the members of the cluster, so that a client knows all addresses, and where a client is served.
///
/// Active brokers answer; a standby refuses this as it refuses everything. A broker in no cluster has no name and no members to tell.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "operation",
    params(("client" = Option<String>, Query, description = "A client: `client_url` says where it is served")),
    responses(
        (status = 200, description = "The members that were seen in the last seconds", body = wire::Cluster),
        (status = 503, description = "NATS does not answer, or the broker is a standby", body = wire::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cluster(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    // Other parameters mean nothing.
    let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "client");
    let client = named.map(|(_, name)| path::named_client(&app, &principal, &name)).transpose()?;
    let cluster = match &app.cluster {
        Some(seen) => seen.cluster(client.as_deref()).await?,
        None => wire::Cluster::default(),
    };
    Ok(error::json(StatusCode::OK, serde_json::to_string(&cluster).unwrap_or_default()))
}
