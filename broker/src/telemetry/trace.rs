//! The trace of one event: what it carries on its way, and the spans that are recorded of it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use matcher::live::Cause;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, SpanKind, TraceFlags, TraceId};

use super::{Telemetry, TraceContext};
use crate::model::clock;
use crate::model::delivery::{Delivery, Entry, Transition};
use crate::model::error::ApiError;
use crate::model::event::{Body, Carried};

/// Deliveries of one event that have a span each, those that are written first. An event may have as many recipients as there
/// are clients; how many it had, `nearcast_deliveries_total` and the number of matches in each shard's span tell.
const DELIVER_SPANS_MAX: u32 = 16;

/// The trace of an event of which spans are recorded.
pub(crate) struct Trace {
    telemetry: Arc<Telemetry>,
    /// Context of the span `publish`, which is what subscribers get.
    pub(super) context: TraceContext,
    /// The publisher's span; invalid where there is none.
    publisher: SpanId,
    /// The parts of the shards, by the shard's number.
    legs: Box<[Leg]>,
    deliver_spans: AtomicU32,
}

/// The part of one shard in a trace.
struct Leg {
    /// Id of the leg's span `match`.
    span_id: SpanId,
    matched: OnceLock<Instant>,
}

/// A span of a trace: one activity, from its start to its end.
pub(crate) struct Span {
    pub(super) trace: Arc<Trace>,
    pub(super) name: &'static str,
    pub(super) kind: SpanKind,
    pub(super) id: SpanId,
    pub(super) parent: SpanId,
    /// Whether the parent is another program's.
    pub(super) is_first: bool,
    pub(super) started: Instant,
    pub(super) ended: Instant,
    pub(super) attributes: Vec<KeyValue>,
    /// Code of the problem, if the activity has failed.
    pub(super) failure: Option<&'static str>,
}

/// A trace that goes on here, or begins.
pub(super) fn traced(telemetry: &Arc<Telemetry>, context: Option<&TraceContext>) -> Box<Carried> {
    let publisher = context.map_or(SpanId::INVALID, |context| context.span_id);
    let context = match context {
        Some(context) => TraceContext { span_id: new_span_id(), ..context.clone() },
        None => TraceContext {
            // At random it is as good as never 0, which would be none.
            trace_id: TraceId::from(rand::random::<u128>().max(1)),
            span_id: new_span_id(),
            flags: TraceFlags::SAMPLED,
            state: None,
        },
    };
    let leg = |_| Leg { span_id: new_span_id(), matched: OnceLock::new() };
    let trace = Trace {
        telemetry: Arc::clone(telemetry),
        publisher,
        legs: (0..telemetry.shards_count).map(leg).collect(),
        deliver_spans: AtomicU32::new(0),
        context,
    };
    Box::new(Carried { members: trace.context.members(), trace: Some(Arc::new(trace)), ..Carried::default() })
}

/// The trace of an event of which spans are recorded.
pub(crate) fn trace_of(carried: Option<&Carried>) -> Option<Arc<Trace>> {
    Arc::clone(carried?.trace.as_ref()?).downcast().ok()
}

impl Trace {
    /// The event was read, checked and put into the queues, or refused.
    pub(crate) fn published(
        self: &Arc<Self>,
        started: Instant,
        over: &'static str,
        outcome: &Result<(), ApiError>,
    ) {
        self.record(Span {
            trace: Arc::clone(self),
            name: "publish",
            kind: SpanKind::Server,
            id: self.context.span_id,
            parent: self.publisher,
            is_first: true,
            started,
            ended: clock::now(),
            attributes: vec![KeyValue::new("nearcast.transport", over)],
            failure: outcome.as_ref().err().map(ApiError::code),
        });
    }

    fn matched(
        self: &Arc<Self>,
        shard: usize,
        times: [Instant; 3],
        batch_events: usize,
        matches: Option<usize>,
    ) {
        let Some(leg) = self.legs.get(shard) else { return };
        let [received, started, ended] = times;
        // Before anything is dealt out, so that whoever delivers it knows.
        let _ = leg.matched.set(ended);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let mut attributes = vec![
            KeyValue::new("nearcast.shard", number(shard)),
            KeyValue::new("nearcast.queue_s", started.saturating_duration_since(received).as_secs_f64()),
            KeyValue::new("nearcast.batch_events", number(batch_events)),
        ];
        attributes.extend(matches.map(|count| KeyValue::new("nearcast.matches", number(count))));
        self.record(Span {
            trace: Arc::clone(self),
            name: "match",
            kind: SpanKind::Internal,
            id: leg.span_id,
            parent: self.context.span_id,
            is_first: false,
            started,
            ended,
            attributes,
            failure: matches.is_none().then_some("internal"),
        });
    }

    fn delivered(self: &Arc<Self>, shard: usize, over: &'static str, ended: Instant) {
        let Some(leg) = self.legs.get(shard) else { return };
        let Some(started) = leg.matched.get().copied() else { return };
        if self.deliver_spans.fetch_add(1, Ordering::Relaxed) >= DELIVER_SPANS_MAX {
            return;
        }
        self.record(Span {
            trace: Arc::clone(self),
            name: "deliver",
            kind: SpanKind::Producer,
            id: new_span_id(),
            parent: leg.span_id,
            is_first: false,
            started,
            ended,
            attributes: vec![KeyValue::new("nearcast.transport", over)],
            failure: None,
        });
    }

    fn record(&self, span: Span) {
        self.telemetry.record(span);
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("context", &self.context).finish_non_exhaustive()
    }
}

fn new_span_id() -> SpanId {
    SpanId::from(rand::random::<u64>().max(1))
}

/// A shard has matched events from `started` until now: tells of those that are traced, with how many pairs it found of the
/// `index`-th one; none where matching failed.
pub(crate) fn matched<'a>(
    shard: usize,
    started: Instant,
    events: impl ExactSizeIterator<Item = &'a Body>,
    matches: impl Fn(usize) -> Option<usize>,
) {
    let (ended, batch_events) = (clock::now(), events.len());
    for (index, body) in events.enumerate() {
        if let Some(trace) = trace_of(body.carried.as_deref()) {
            trace.matched(shard, [body.received, started, ended], batch_events, matches(index));
        }
    }
}

/// The traced events among what is about to be written. Only what their being published brought: what a subscriber came by
/// later, or was kept for it, is as old as it is, and an exit tells of an earlier event than the one that brought it.
pub(crate) struct Writing(Vec<Arc<Trace>>);

impl Writing {
    pub(crate) fn of(telemetry: Option<&Arc<Telemetry>>, batch: &[Entry]) -> Self {
        if telemetry.is_none() {
            return Self(Vec::new());
        }
        let traced = batch.iter().filter_map(|entry| match entry {
            Entry::Delivery(Delivery {
                cause: Cause::Published, transition, is_late: false, body, ..
            }) if *transition != Some(Transition::Exit) => trace_of(body.carried.as_deref()),
            Entry::Delivery(_) | Entry::Answer(_) | Entry::Gap(_) => None,
        });
        Self(traced.collect())
    }

    /// It is written, to a client of the shard.
    pub(crate) fn done(self, shard_of: impl FnOnce() -> usize, over: &'static str) {
        if self.0.is_empty() {
            return;
        }
        let (shard, ended) = (shard_of(), clock::now());
        for trace in self.0 {
            trace.delivered(shard, over, ended);
        }
    }
}
