//! Clients as a whole: forgotten, listed, disconnected.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use super::path::{ClientPath, Permitted};
use super::peers::Others;
use super::{App, error};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::sessions::Rank;
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
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    app.shards.ask(&client, |client, reply| Command::Forget { client, reply }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Entries of a page unless `limit` says otherwise, and at most.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// Lists clients, those that are furthest behind first.
///
/// In a cluster they are those of all partitions. Each engine looks at all of its clients for it, some at a time between what else it does.
#[utoipa::path(
    get, path = "/v1/clients", tag = "operation",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many; 100 unless said"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "How they are connected, how far behind, and by setting about where", body = wire::Clients),
        (status = 400, description = "The query is wrong", body = wire::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Questions have cost the engines too much of late", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    others: Others,
    uri: Uri,
) -> Result<Response, ApiError> {
    let (limit, after) = page(uri.query().unwrap_or_default(), Rank::read)?;
    let payer = principal.payer();
    let _paid = app.admission.pay(&payer, principal.confinement.as_ref()).await?;
    let (own, others) = tokio::try_join!(app.shards.list_clients(after, limit, &payer), others.get(&uri))?;
    let clients = Rank::first(others.into_iter().chain([own]), limit);
    Ok(error::json(StatusCode::OK, serde_json::to_string(&clients).unwrap_or_default()))
}

/// Reads `limit` and `after`, a place in some order; other parameters mean nothing.
pub(super) fn page<P>(
    query: &str,
    place: impl Fn(&str) -> Option<P>,
) -> Result<(usize, Option<P>), ApiError> {
    let (mut limit, mut after) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let is_first = match &*name {
            "limit" => {
                let read = value.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
                let wrong = || ApiError::BadRequest(format!("limit must be a number from 1 to {PAGE_MAX}"));
                limit.replace(read.ok_or_else(wrong)?).is_none()
            }
            "after" => {
                let wrong = || ApiError::BadRequest("after must be `next` of the page before".to_owned());
                after.replace(place(&value).ok_or_else(wrong)?).is_none()
            }
            _ => true,
        };
        if !is_first {
            return Err(ApiError::BadRequest(format!("{name} is given twice")));
        }
    }
    Ok((limit.unwrap_or(PAGE), after))
}

/// Ends the connections of a client; what is kept for it stays.
#[utoipa::path(
    delete, path = "/v1/clients/{client}/connections", tag = "operation",
    params(("client" = String, Path, description = "The client")),
    responses((status = 204, description = "It has none of those that it had, or had none")),
)]
pub(crate) async fn disconnect(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    let confinement = principal.confinement.clone();
    let disconnect = |client, reply| Command::Disconnect { client, confinement, reply };
    app.shards.ask(&client, disconnect).await??;
    let (tenant, client) = tenant::split(&client);
    tracing::info!(tenant, client, "disconnected by an operator");
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_limit_and_a_place() {
        let page = |query: &str| super::page(query, Rank::read);
        assert_eq!(page(""), Ok((100, None)));
        assert_eq!(page("limit=1000&x=1&x=2"), Ok((1_000, None)));
        let place = Rank::read("3:4:a b");
        assert_eq!(page("after=3%3A4%3Aa+b&limit=1"), Ok((1, place)));
        for query in ["limit=0", "limit=1001", "limit=-1", "limit=", "limit=1&limit=1", "after=", "after=3"] {
            assert!(matches!(page(query), Err(ApiError::BadRequest(_))), "{query}");
        }
    }
}
