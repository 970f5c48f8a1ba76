//! How the broker is.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use tokio::time::{MissedTickBehavior, interval};
use wire::{Stats, StatsHistory};

use super::path::Permitted;
use super::{App, error};
use crate::metrics::history;
use crate::model::error::ApiError;

/// Whether the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "operation",
    responses(
        (status = 200, description = "It does", body = String),
        (status = 500, description = "An engine's thread has ended, and the broker is about to", body = wire::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    if app.shards.have_failed() {
        return Err(ApiError::Internal("an engine's thread has ended"));
    }
    Ok(healthz_meanwhile().await)
}

/// Replies `/healthz` while the broker takes up what is on disk: the process lives.
pub(crate) async fn healthz_meanwhile() -> &'static str {
    "ok\n"
}

/// Whether requests are carried out.
#[utoipa::path(
    get, path = "/readyz", tag = "operation",
    responses((status = 200, description = "They are", body = String), (status = 503, description = "The broker is starting, stopping or broken, or the disk takes nothing", body = wire::Problem, content_type = "application/problem+json")),
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    app.refuse_when_stopping()?;
    if !app.shards.alive() {
        return Err(ApiError::Internal("an engine's thread has ended"));
    }
    if let Some(why) = app.shards.storage_failure() {
        return Err(ApiError::NotStored(why));
    }
    if app.authenticator.lacks_keys() {
        return Err(ApiError::NoKeys);
    }
    if app.shards.reports().iter().any(|report| report.failure().is_some()) {
        return Ok("ready, without the GPU: it has failed, see /v1/stats\n");
    }
    let is_away = app.authenticator.report().is_issuer_away;
    Ok(if is_away {
        "ready, with the keys of before: their issuer is away, see the log\n"
    } else {
        "ready\n"
    })
}

/// All figures for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, description = "Prometheus text", body = String)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    for (depth, gauge) in app.shards.depths().zip(&app.metrics.queue_depths) {
        #[expect(clippy::cast_precision_loss, reason = "a queue holds a few thousand commands")]
        gauge.set(depth as f64);
    }
    app.metrics.show_live_objects(app.features.live_objects());
    app.metrics.show_engines(app.shards.reports());
    app.metrics.show_kept(app.kept.matches(), app.kept.bytes());
    app.metrics.show_held(&app.budget);
    let keys = app.authenticator.report();
    app.metrics.show_keys([keys.used, keys.unused], keys.age, keys.failures);
    app.metrics.show_admission(app.admission.wait(), app.admission.lag());
    app.metrics.show_feedback(app.admission.tardiness().unwrap_or_default(), app.admission.allowance());
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let mut figures = app.metrics.render();
    app.situations.render(&mut figures);
    ([(CONTENT_TYPE, text)], figures).into_response()
}

/// What the broker holds and has done.
#[utoipa::path(get, path = "/v1/stats", tag = "operation", responses((status = 200, description = "Figures since the start", body = Stats)))]
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Permitted(principal): Permitted,
) -> Result<Response, ApiError> {
    let payer = principal.payer();
    let _paid = app.admission.pay(&payer, principal.confinement.as_ref()).await?;
    let footprint = app.shards.footprint(&payer).await?;
    let (metrics, report) = (&app.metrics, app.shards.report());
    let stats = Stats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine: report.engine().to_owned(),
        engine_why: report.to_string(),
        world: app.config.server.world.name().to_owned(),
        shards: app.shards.count() as u64,
        uptime_s: metrics.started.elapsed().as_secs(),
        connections: metrics.connections.get(),
        websockets: metrics.websockets.get(),
        event_streams: metrics.event_streams.get(),
        clients: metrics.clients.get(),
        subscriptions: metrics.subscriptions.get(),
        live_objects: app.features.live_objects() as u64,
        durable_sessions: metrics.durable_sessions.get(),
        kept_matches: app.kept.matches(),
        kept_bytes: app.kept.bytes(),
        readers_behind: metrics.readers_behind.get(),
        filters: footprint.filters as u64,
        engine_bytes: footprint.bytes as u64,
        queued: app.shards.depths().map(|depth| depth as u64).sum(),
        events: metrics.events.get(),
        events_rejected: metrics.events_rejected.get(),
        matches: metrics.matches.get(),
        deliveries: metrics.deliveries.get(),
        deliveries_unread: metrics.unread.get(),
        deliveries_dropped: metrics.dropped.get(),
        frames_sent: metrics.frames_sent.get(),
        moves: metrics.moves.get(),
    };
    Ok(error::json(StatusCode::OK, serde_json::to_string(&stats).unwrap_or_default()))
}

/// The main figures of the last hour, a point every ten seconds: none in the first ten.
#[utoipa::path(get, path = "/v1/stats/history", tag = "operation", responses((status = 200, description = "Figures of the last hour, column by column", body = StatsHistory)))]
pub(crate) async fn history(State(app): State<Arc<App>>) -> Response {
    error::json(StatusCode::OK, serde_json::to_string(&app.metrics.history.columns()).unwrap_or_default())
}

impl App {
    /// Takes the points of the history for as long as it is polled.
    pub(crate) async fn remember_figures(&self) -> Infallible {
        let mut due = interval(history::STEP);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            self.metrics.remember(self.features.live_objects());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::Engines;
    use crate::http::fuzzing::start_with;
    use crate::ingest::Behalf;
    use crate::shard::Coming;
    use crate::shutdown::Ending;

    #[tokio::test]
    async fn a_broker_without_one_of_its_engines_is_not_healthy() {
        let (app, threads) = start_with(Engines::faulty(1), &Ending::default());
        assert!(healthz(State(Arc::clone(&app))).await.is_ok());
        let text = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]},"properties":{}}"#;
        let event = app.features.parse(Behalf::default(), text).unwrap();
        app.shards.publish(&mut vec![Coming { event, pass: None, receipt: None }]).await.unwrap();
        app.shards.one_ended().await;
        assert!(healthz(State(Arc::clone(&app))).await.is_err() && readyz(State(app)).await.is_err());
        assert!(threads.into_iter().all(|thread| thread.join().is_err()));
    }
}
