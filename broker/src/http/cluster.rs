//! The cluster that the broker is a member of.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{App, error};
use crate::model::error::ApiError;

/// Names the members of the cluster, so that a client knows all addresses.
///
/// The active broker answers; a standby refuses this as it refuses everything. A broker in no cluster has no name and no members to tell.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "operation",
    responses(
        (status = 200, description = "The members that were seen in the last seconds", body = wire::Cluster),
        (status = 503, description = "NATS does not answer, or the broker is a standby", body = wire::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cluster(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let cluster = match &app.cluster {
        Some(seen) => seen.cluster().await?,
        None => wire::Cluster::default(),
    };
    Ok(error::json(StatusCode::OK, serde_json::to_string(&cluster).unwrap_or_default()))
}
