//! Clients as a whole.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::App;
use super::path::ClientPath;
use crate::refusal::Refusal;
use crate::shard::Command;

/// Forgets a client: subscriptions and position are gone, connections that read for it are closed.
#[utoipa::path(
    delete, path = "/v1/clients/{client}", tag = "clients",
    params(("client" = String, Path, description = "The client")),
    responses((status = 204, description = "Nothing of it is left, if there was something")),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    ClientPath(client): ClientPath,
) -> Result<StatusCode, Refusal> {
    app.refuse_when_stopping()?;
    app.shards.ask(&client, |client, reply| Command::Forget { client, reply }).await??;
    Ok(StatusCode::NO_CONTENT)
}
