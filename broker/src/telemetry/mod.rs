//! Traces of events as OpenTelemetry has them: published, matched by each shard, delivered.
//!
//! Which events: those whose publisher says that they are sampled, and a share of those that came without a context
//! (`telemetry.sample`). What is recorded goes through a bounded queue to a task of its own, so that neither a collector
//! that is away nor one that is slow is felt anywhere else.

mod context;
mod export;
mod trace;

use std::sync::Arc;

use opentelemetry_otlp::ExporterBuildError;
use tokio::sync::mpsc;

use crate::config;
use crate::metrics::Metrics;
use crate::model::event::Carried;
pub(crate) use context::TraceContext;
pub(crate) use export::Export;
use trace::Span;
pub(crate) use trace::{Trace, Writing, matched, trace_of};

/// Spans that wait to be exported. Beyond them the newest are lost, and counted.
const QUEUE_SPANS: usize = 8_192;

/// Decides which events are traced, and takes their spans.
pub(crate) struct Telemetry {
    spans: mpsc::Sender<Span>,
    sample: f64,
    shards_count: usize,
    metrics: Arc<Metrics>,
}

impl Telemetry {
    /// Begins to export what will be recorded; `None` where the settings name no collector.
    ///
    /// # Errors
    /// Variables of the exporter's own (`OTEL_EXPORTER_OTLP_*`) that it cannot use.
    pub(crate) fn start(
        settings: &config::Telemetry,
        shards_count: usize,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<(Arc<Self>, Export)>, ExporterBuildError> {
        if settings.otlp_endpoint.is_empty() {
            return Ok(None);
        }
        let (spans, receiver) = mpsc::channel(QUEUE_SPANS);
        let export = Export::start(settings, receiver, metrics)?;
        let metrics = Arc::clone(metrics);
        Ok(Some((Arc::new(Self { spans, sample: settings.sample, shards_count, metrics }), export)))
    }

    /// Makes the trace that an event carries from here on. `context` is the one that the event came with, if any.
    pub(crate) fn carried(
        telemetry: Option<&Arc<Self>>,
        context: Option<&TraceContext>,
    ) -> Option<Box<Carried>> {
        let recorder = telemetry.filter(|telemetry| match context {
            Some(context) => context.is_sampled(),
            None => rand::random::<f64>() < telemetry.sample,
        });
        match (recorder, context) {
            (Some(telemetry), context) => Some(trace::traced(telemetry, context)),
            (None, Some(context)) => {
                Some(Box::new(Carried { members: context.members(), ..Carried::default() }))
            }
            (None, None) => None,
        }
    }

    /// Takes a span; never waits.
    fn record(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.metrics.spans_unqueued.add(1);
        }
    }
}
