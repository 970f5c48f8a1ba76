//! Spans on their way to a collector.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{SpanContext, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::trace::Span;
use crate::config;
use crate::metrics::Metrics;

/// Spans of one request to the collector.
const BATCH_SPANS: usize = 512;
/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// The task that exports.
pub(crate) struct Export {
    task: JoinHandle<()>,
    ended: CancellationToken,
}

impl Export {
    pub(super) fn start(
        settings: &config::Telemetry,
        spans: mpsc::Receiver<Span>,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, ExporterBuildError> {
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", settings.otlp_endpoint.trim_end_matches('/')))
            .build()?;
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        exporter.set_resource(&resource.build());
        let exporting = Exporting {
            exporter,
            scope: InstrumentationScope::builder("nearcast").with_version(env!("CARGO_PKG_VERSION")).build(),
            metrics: Arc::clone(metrics),
            is_failing: false,
        };
        let ended = CancellationToken::new();
        Ok(Self { task: tokio::spawn(exporting.run(spans, ended.clone())), ended })
    }

    /// Exports what still waits, until a deadline. Nothing is recorded any more.
    pub(crate) async fn finish(mut self, deadline: Instant) {
        self.ended.cancel();
        if tokio::time::timeout_at(deadline.into(), &mut self.task).await.is_err() {
            tracing::warn!(
                "the collector of traces did not take all that was left (telemetry.otlp_endpoint)"
            );
            self.task.abort();
        }
    }
}

struct Exporting {
    exporter: SpanExporter,
    scope: InstrumentationScope,
    metrics: Arc<Metrics>,
    /// Whether that was told.
    is_failing: bool,
}

impl Exporting {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>, ended: CancellationToken) {
        let mut batch = Vec::new();
        while let Some(first) = ended.run_until_cancelled(spans.recv()).await.flatten() {
            batch.push(first);
            let gather = async {
                while batch.len() < BATCH_SPANS
                    && let Some(span) = spans.recv().await
                {
                    batch.push(span);
                }
            };
            let _ = tokio::time::timeout(GATHER, ended.run_until_cancelled(gather)).await;
            self.export(&mut batch).await;
        }
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
            if batch.len() == BATCH_SPANS {
                self.export(&mut batch).await;
            }
        }
        self.export(&mut batch).await;
    }

    /// Tries for as long as the exporter does, ten seconds unless its variables say otherwise. What the collector does not
    /// take is lost: keeping it would only lose what comes after it.
    async fn export(&mut self, batch: &mut Vec<Span>) {
        if batch.is_empty() {
            return;
        }
        let count = batch.len() as u64;
        let clocks = (Instant::now(), SystemTime::now());
        let spans = batch.drain(..).map(|span| span.data(&self.scope, clocks)).collect();
        match self.exporter.export(spans).await {
            Ok(()) => {
                self.metrics.spans_exported.add(count);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the collector takes traces again");
                }
            }
            Err(error) => {
                self.metrics.spans_refused.add(count);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "the collector takes no traces (telemetry.otlp_endpoint); they are lost");
                }
            }
        }
    }
}

impl Span {
    /// The span in the exporter's form, by the times that both clocks show now.
    fn data(self, scope: &InstrumentationScope, (now, unix): (Instant, SystemTime)) -> SpanData {
        let at = |instant: Instant| unix.checked_sub(now.saturating_duration_since(instant)).unwrap_or(unix);
        let context = &self.trace.context;
        SpanData {
            span_context: SpanContext::new(
                context.trace_id,
                self.id,
                context.flags,
                false,
                context.trace_state(),
            ),
            parent_span_id: self.parent,
            parent_span_is_remote: self.is_first,
            span_kind: self.kind,
            name: self.name.into(),
            start_time: at(self.started),
            end_time: at(self.ended),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: self.failure.map_or(Status::Unset, Status::error),
            instrumentation_scope: scope.clone(),
        }
    }
}
