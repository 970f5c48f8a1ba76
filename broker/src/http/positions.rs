//! Positions: of one client, or of many at once.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use wire::{Fault, Moved};

use super::batch::{self, Tally, Work};
use super::body::{self, Bound, Format, Parts};
use super::forwarded_moves::ForwardedMoves;
use super::path::{self, ClientPath, Permitted};
use super::peers::Others;
use super::{App, error};
use crate::admission::{ClientLimiter, Publisher};
use crate::auth::{self, Principal};
use crate::ingest::Behalf;
use crate::ingest::framing::Elements;
use crate::ingest::position::Move;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::shard::Place;

/// Tells where a client is.
#[utoipa::path(
    put, path = "/v1/clients/{client}/position", tag = "clients",
    params(("client" = String, Path, description = "The client")),
    request_body = wire::Position,
    responses(
        (status = 204, description = "In force for every event that is published from now on"),
        (status = "4XX", description = "Not taken", body = wire::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker is overloaded or stopping, or its disk takes nothing", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn move_one(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    app.refuse_when_stopping()?;
    let body = body::document(&app, &headers, body, Bound::of_position(&app)).await?;
    let told = app.positions.parse(body::text(&body)?)?;
    let receipt = app.shards.receipt_of_moves();
    let mover = app.admission.publisher(&principal, &flow);
    move_client(&app, &mover, principal.behalf(), &client, None, told, receipt.as_ref()).await?;
    if let Some(receipt) = receipt {
        receipt.settled().await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Puts a move where everything that is sent afterwards comes behind it. A connection that reads for the client knows its place.
pub(crate) async fn move_client(
    app: &App,
    mover: &Publisher,
    behalf: Behalf<'_>,
    client: &Arc<str>,
    place: Option<Place>,
    told: Move,
    receipt: Option<&Arc<Completion>>,
) -> Result<(), ApiError> {
    if let Some(confinement) = behalf.confinement {
        confinement.check_move(&told)?;
    }
    let turn = app.admission.client_move(mover, client, told.track.is_some()).await?;
    match place {
        Some(place) => app.shards.move_attached(place, client, told, Some(turn), receipt).await?,
        None => app.shards.move_client(client, told, Some(turn), receipt).await?,
    }
    app.metrics.moves.add(1);
    Ok(())
}

/// Two positions, a position a line.
const LINES: &str = concat!(
    r#"{"client":"car-7","coordinates":[9.19,45.464]}"#,
    "\n",
    r#"{"client":"car-8","coordinates":[9.2,45.47]}"#,
    "\n",
);

/// Tells where many clients are.
#[utoipa::path(
    post, path = "/v1/positions", tag = "clients",
    request_body(content((Vec<wire::NamedPosition> = "application/json"), (String = "application/x-ndjson", example = json!(LINES)))),
    responses(
        (status = 202, description = "In force for every event that is published from now on", body = Moved),
        (status = "4XX", description = "Not taken; of a batch that ends midway `moved`, `rejected` and `rejected_unlisted` tell what became of its first elements", body = wire::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker is overloaded or stopping, or its disk takes nothing", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn move_many(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Permitted(principal): Permitted,
    others: Others,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let mut tally = Tally::default();
    let receipt = app.shards.receipt_of_moves();
    let mover = &app.admission.publisher(&principal, &flow);
    let elsewhere = others.forward().map(|forward| ForwardedMoves::new(forward, &app.config.limits));
    let mut work = MoveMany { app: &app, mover, principal: &principal, receipt: receipt.as_ref(), elsewhere };
    let moved = match Format::of(&headers)? {
        Format::Json => array(&app, &headers, body, &mut work, &mut tally).await,
        format @ (Format::Lines | Format::Sequence) => {
            let limit = element_bytes(&app);
            batch::records(&app, &headers, body, format, limit, &mut work, &mut tally).await
        }
    };
    if let Some(elsewhere) = work.elsewhere.take() {
        elsewhere.settle(&app.config.limits, &mut tally).await;
    }
    if let Err(refusal) = tally.settle(receipt, moved).await {
        return Ok(tally.interrupted(&refusal, MoveMany::DONE));
    }
    let Tally { done, rejected, warnings, .. } = tally;
    let answer = Moved {
        moved: done,
        rejected: rejected.entries,
        rejected_unlisted: rejected.unlisted,
        warnings: warnings.entries,
        warnings_unlisted: warnings.unlisted,
    };
    Ok(error::json(StatusCode::ACCEPTED, serde_json::to_string(&answer).unwrap_or_default()))
}

/// The most that one element may have.
fn element_bytes(app: &App) -> usize {
    app.config.limits.position_bytes.max(app.config.limits.track_bytes)
}

async fn array(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    work: &mut MoveMany<'_>,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let mut parts = Parts::of_batch(app, headers, body)?;
    let (head, ended) = parts.gather(app.config.limits.position_bytes).await?;
    if ended {
        // All is there: a small document that is malformed somewhere moves nobody.
        crate::ingest::json::check_syntax(body::text(&head)?)?;
    }
    let mut elements = Elements::of_array(element_bytes(app));
    batch::elements(app, head, Some(&mut parts), &mut elements, work, tally).await
}

struct MoveMany<'a> {
    app: &'a App,
    mover: &'a Publisher,
    principal: &'a Principal,
    receipt: Option<&'a Arc<Completion>>,
    /// Takes the moves of clients that other brokers of a cluster serve.
    elsewhere: Option<ForwardedMoves>,
}

impl Work for MoveMany<'_> {
    const DONE: &'static str = "moved";

    async fn element(&mut self, index: u64, text: &str) -> Result<Vec<Fault>, ApiError> {
        let (client, told, warnings) = self.app.positions.parse_named(text)?;
        auth::check_time(self.principal.expires, Instant::now())?;
        let client = match path::client_name_in_document(self.app, self.principal, &client) {
            Err(ApiError::Elsewhere { url }) if let Some(elsewhere) = &mut self.elsewhere => {
                elsewhere.take(url, index, text).await;
                // That broker says what is wrong with it.
                return Ok(Vec::new());
            }
            client => client?,
        };
        self.app.admission.check_debts(&client)?;
        move_client(self.app, self.mover, self.principal.behalf(), &client, None, told, self.receipt).await?;
        Ok(warnings)
    }

    fn too_large(&self) -> ApiError {
        Bound::of_position(self.app).passed()
    }
}
