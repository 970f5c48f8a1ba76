//! Figures: counted once, shown as Prometheus text and as `/v1/stats`.

mod histogram;
pub(crate) mod history;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::budget::{Budget, Kind};
use crate::engines::Report;
use crate::model::clock;
use crate::model::delivery::GapReason;
use crate::store::Figures;
pub(crate) use histogram::Histogram;
use history::{History, Reading};

/// Everything that the broker counts. Each broker has its own, so that several in one process do not mix.
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    pub(crate) started: Instant,
    pub(crate) events: Tally,
    pub(crate) events_rejected: Tally,
    pub(crate) alarms: Tally,
    pub(crate) refused_load: Tally,
    pub(crate) refused_rate: Tally,
    pub(crate) refused_cost: Tally,
    /// Microseconds.
    pub(crate) engine_charged: Tally,
    pub(crate) held_for_cost: Tally,
    pub(crate) suspended: Tally,
    admission_wait: Gauge,
    runtime_lag: Gauge,
    stream_lag: Gauge,
    pub(crate) stream_events: Tally,
    admission_tardiness: Gauge,
    admission_allowance: Gauge,
    pub(crate) matches: Tally,
    pub(crate) deliveries: Tally,
    pub(crate) unread: Tally,
    pub(crate) dropped: Tally,
    pub(crate) frames_sent: Tally,
    pub(crate) moves: Tally,
    pub(crate) changes: Tally,
    pub(crate) stuck: Tally,
    pub(crate) silent: Tally,
    pub(crate) overflowed: Tally,
    pub(crate) connections_refused: Tally,
    pub(crate) problems: Tally,
    invariant_violations: Counter,
    pub(crate) handshakes_failed: Tally,
    pub(crate) tls_failures: Tally,
    tls_expiry: Gauge,
    keys: Gauge,
    keys_unused: Gauge,
    keys_age: Gauge,
    keys_failures: Counter,
    pub(crate) connections: Mark,
    pub(crate) websockets: Mark,
    pub(crate) event_streams: Mark,
    pub(crate) clients: Mark,
    pub(crate) clients_idle: Tally,
    pub(crate) subscriptions: Mark,
    pub(crate) durable_sessions: Mark,
    pub(crate) readers_behind: Mark,
    kept_matches: Gauge,
    kept_bytes: Gauge,
    held_bytes: [Gauge; Kind::ALL.len()],
    pub(crate) gaps: Gaps,
    pub(crate) store_failures: Tally,
    pub(crate) store: Figures,
    pub(crate) spans_exported: Tally,
    pub(crate) spans_unqueued: Tally,
    pub(crate) spans_refused: Tally,
    pub(crate) push_subscriptions: Mark,
    pub(crate) push_waiting: Mark,
    pub(crate) push_sent: Tally,
    pub(crate) push_failures: Tally,
    pub(crate) push_unqueued: Tally,
    pub(crate) push_dropped: Tally,
    pub(crate) push_over: Tally,
    pub(crate) push_gone: Tally,
    pub(crate) routes_found: Tally,
    pub(crate) routes_refused: Tally,
    live_objects: Gauge,
    pub(crate) queue_depths: Vec<Gauge>,
    pub(crate) ingest: Histogram,
    pub(crate) queue_wait: Histogram,
    pub(crate) match_batch: Histogram,
    pub(crate) batch_events: Histogram,
    devices_in_use: Gauge,
    devices_lost: Counter,
    device_events: Counter,
    pub(crate) writer_wait: Histogram,
    pub(crate) write: Histogram,
    pub(crate) publish_to_write: Histogram,
    /// The main figures of the last hour.
    pub(crate) history: History,
}

/// A number that only grows.
pub(crate) struct Tally {
    counter: Counter,
    value: AtomicU64,
}

/// A number that goes up and down.
pub(crate) struct Mark {
    gauge: Gauge,
    value: AtomicU64,
}

/// Keeps a mark one higher while it lives.
pub(crate) struct Raised {
    metrics: Arc<Metrics>,
    which: fn(&Metrics) -> &Mark,
}

/// Losses that were told, by reason.
pub(crate) struct Gaps([Tally; GapReason::ALL.len()]);

impl Gaps {
    pub(crate) fn of(&self, reason: GapReason) -> &Tally {
        &self.0[reason as usize]
    }
}

impl Tally {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.counter.increment(count);
            self.value.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Mark {
    pub(crate) fn raise(&self) {
        self.gauge.increment(1.0);
        self.value.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lower(&self) {
        self.gauge.decrement(1.0);
        self.value.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Raised {
    pub(crate) fn new(metrics: &Arc<Metrics>, which: fn(&Metrics) -> &Mark) -> Self {
        which(metrics).raise();
        Self { metrics: Arc::clone(metrics), which }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        (self.which)(&self.metrics).lower();
    }
}

/// Upper ends of the buckets of times, in seconds: from a microsecond to ten seconds.
static SECONDS_BUCKETS: [f64; 22] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0,
];

/// Upper ends of the buckets of batch sizes.
static BATCH_BUCKETS: [f64; 14] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0];

impl Metrics {
    pub(crate) fn new(shards_count: usize) -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(Matcher::Suffix("_batches".to_owned()), &BATCH_BUCKETS)
            })
            .expect("there are buckets")
            .build_recorder();
        let names = Names(&recorder);
        let times = |name, text| Histogram::new(name, text, &SECONDS_BUCKETS);
        let dropped = "Deliveries lost, by cause.";
        let refused = "Events, moves, changes and questions that were not admitted, by cause: more load than can be done in time, a rate, or what their client or tenant had cost.";
        let cut_off = "Connections that the broker ended, by cause.";
        let spans_lost = "Spans that the collector did not get, by cause.";
        let unpushed = "Push messages that were given up, by cause.";
        let queue = "Commands that wait for an engine.";
        let depth =
            |shard: usize| names.gauge("nearcast_queue_depth", queue, &[("shard", shard.to_string())]);
        Self {
            handle: recorder.handle(),
            started: clock::now(),
            events: names.tally("nearcast_events_total", "Events accepted.", &[]),
            events_rejected: names.tally("nearcast_events_rejected_total", "Events refused.", &[]),
            alarms: names.tally("nearcast_alarms_total", "Alarms among the accepted events.", &[]),
            refused_load: names.tally("nearcast_admission_refused_total", refused, &[("cause", "load")]),
            refused_rate: names.tally("nearcast_admission_refused_total", refused, &[("cause", "rate")]),
            refused_cost: names.tally("nearcast_admission_refused_total", refused, &[("cause", "cost")]),
            engine_charged: names.tally(
                "nearcast_engine_charged_microseconds_total",
                "Time of engines that was charged to clients.",
                &[],
            ),
            held_for_cost: names.tally(
                "nearcast_admission_held_total",
                "Commands that had to wait, or were refused, because of what their client or tenant had cost.",
                &[],
            ),
            admission_wait: names.gauge(
                "nearcast_admission_wait_seconds",
                "How long an event that comes now waits for an engine, by estimate.",
                NO_LABELS,
            ),
            runtime_lag: names.gauge(
                "nearcast_runtime_lag_seconds",
                "How much later than due a task gets its turn.",
                NO_LABELS,
            ),
            stream_lag: names.gauge(
                "nearcast_stream_lag_seconds",
                "How long ago a broker of the cluster had accepted the event that was read last.",
                NO_LABELS,
            ),
            stream_events: names.tally(
                "nearcast_stream_events_total",
                "Events read from the cluster's stream.",
                &[],
            ),
            admission_tardiness: names.gauge(
                "nearcast_admission_tardiness_ratio",
                "The longest time of late from reading an event until its deliveries were on their way, as a share of admission.delay_ms; 0 where admission.controller is fixed.",
                NO_LABELS,
            ),
            admission_allowance: names.gauge(
                "nearcast_admission_allowance_seconds",
                "How long an event may wait for an engine.",
                NO_LABELS,
            ),
            suspended: names.tally(
                "nearcast_subscriptions_suspended_total",
                "Subscriptions that find nothing any more because of what they cost by the events of others.",
                &[],
            ),
            matches: names.tally("nearcast_matches_total", "Pairs of event and subscription.", &[]),
            deliveries: names.tally("nearcast_deliveries_total", "Pairs of event and client.", &[]),
            unread: names.tally("nearcast_drops_total", dropped, &[("cause", "no-reader")]),
            dropped: names.tally("nearcast_drops_total", dropped, &[("cause", "overflow")]),
            frames_sent: names.tally("nearcast_frames_sent_total", "Frames written to connections.", &[]),
            moves: names.tally("nearcast_moves_total", "Positions taken.", &[]),
            changes: names.tally("nearcast_subscription_changes_total", "Subscriptions made or ended.", &[]),
            stuck: names.tally("nearcast_cut_off_total", cut_off, &[("cause", "stuck-write")]),
            silent: names.tally("nearcast_cut_off_total", cut_off, &[("cause", "silence")]),
            overflowed: names.tally("nearcast_cut_off_total", cut_off, &[("cause", "overflow")]),
            connections_refused: names.tally("nearcast_cut_off_total", cut_off, &[("cause", "too-many")]),
            problems: names.tally("nearcast_problems_total", "Requests answered with a problem.", &[]),
            invariant_violations: names.counter(
                "nearcast_invariant_violations_total",
                "States that the broker's own code rules out and that it found all the same: faults of the broker.",
                &[],
            ),
            handshakes_failed: names.tally(
                "nearcast_tls_handshakes_failed_total",
                "Connections that did not come to speak TLS.",
                &[],
            ),
            tls_failures: names.tally(
                "nearcast_tls_reload_failures_total",
                "New certificates that could not be used.",
                &[],
            ),
            tls_expiry: names.gauge(
                "nearcast_tls_certificate_expiry_timestamp_seconds",
                "When the certificate ends, as Unix time; 0 without one.",
                NO_LABELS,
            ),
            keys: names.gauge("nearcast_auth_keys", "Keys that tokens are checked with.", NO_LABELS),
            keys_unused: names.gauge(
                "nearcast_auth_keys_unused",
                "Keys beside those that are of no use here: of another kind, for something else, or too weak.",
                NO_LABELS,
            ),
            keys_age: names.gauge(
                "nearcast_auth_keys_age_seconds",
                "Time since the keys were fetched from their issuer; 0 for those of a file.",
                NO_LABELS,
            ),
            keys_failures: names.counter(
                "nearcast_auth_keys_failures_total",
                "Times that newer keys could not be had from the issuer or the file.",
                NO_LABELS,
            ),
            connections: names.mark("nearcast_connections", "Open TCP connections."),
            websockets: names.mark("nearcast_websockets", "Open WebSockets."),
            event_streams: names.mark("nearcast_event_streams", "Open event streams."),
            clients_idle: names.tally(
                "nearcast_clients_forgotten_total",
                "Clients that were forgotten because nothing was heard of them for sessions.idle_s.",
                &[],
            ),
            clients: names.mark("nearcast_clients", "Clients that are known."),
            subscriptions: names.mark("nearcast_subscriptions", "Subscriptions installed."),
            durable_sessions: names
                .mark("nearcast_durable_sessions", "Sessions that outlive their connections."),
            readers_behind: names.mark(
                "nearcast_readers_behind",
                "Readers of durable sessions for which more is kept than they have taken.",
            ),
            kept_matches: names.gauge("nearcast_kept_matches", "Matches kept until acknowledged.", NO_LABELS),
            kept_bytes: names.gauge(
                "nearcast_kept_bytes",
                "What those take; a text that several clients share counts for each.",
                NO_LABELS,
            ),
            held_bytes: Kind::ALL.map(|kind| {
                let held = "Bytes held for clients, by what for.";
                names.gauge("nearcast_held_bytes", held, &[("kind", kind.name())])
            }),
            gaps: Gaps(GapReason::ALL.map(|reason| {
                let told = "Offsets told to readers as lost, by reason.";
                names.tally("nearcast_gap_offsets_total", told, &[("reason", reason.text())])
            })),
            store_failures: names.tally("nearcast_store_failures_total", "Commits that failed.", &[]),
            store: Figures {
                commit: names.seconds("nearcast_store_commit_seconds", "Putting a group of batches on disk."),
                batches: names
                    .histogram("nearcast_store_commit_batches", "Batches that were put on disk together."),
                sync: names.seconds("nearcast_store_sync_seconds", "Writing and syncing one transaction."),
                slice: names
                    .seconds("nearcast_store_fold_seconds", "One slice of folding the log into tables."),
                folds: names.counter(
                    "nearcast_store_folds_total",
                    "Folds of the log into tables.",
                    NO_LABELS,
                ),
                wipe: names.seconds(
                    "nearcast_store_wipe_seconds",
                    "Writing the data anew, without what was replaced or removed.",
                ),
                short: names.gauge(
                    "nearcast_store_short",
                    "1 while the disk is full and only removals are taken.",
                    NO_LABELS,
                ),
                wipe_failures: names.counter(
                    "nearcast_store_wipe_failures_total",
                    "Times that it could not be written anew.",
                    NO_LABELS,
                ),
                log_rows: names.gauge(
                    "nearcast_store_log_rows",
                    "Commits that are not in tables yet.",
                    NO_LABELS,
                ),
                log_bytes: names.gauge("nearcast_store_log_bytes", "What those take on disk.", NO_LABELS),
            },
            spans_exported: names.tally(
                "nearcast_spans_exported_total",
                "Spans that the collector took.",
                &[],
            ),
            spans_unqueued: names.tally("nearcast_spans_lost_total", spans_lost, &[("cause", "queue")]),
            spans_refused: names.tally("nearcast_spans_lost_total", spans_lost, &[("cause", "collector")]),
            push_subscriptions: names.mark("nearcast_push_subscriptions", "Clients that are sent push messages."),
            push_waiting: names.mark("nearcast_push_waiting", "Clients whose push message waits or is under way."),
            push_sent: names.tally(
                "nearcast_push_sent_total",
                "Push messages that push services have taken.",
                &[],
            ),
            push_failures: names.tally(
                "nearcast_push_failures_total",
                "Tries to send a push message that failed.",
                &[],
            ),
            push_unqueued: names.tally("nearcast_push_dropped_total", unpushed, &[("cause", "queue")]),
            push_dropped: names.tally("nearcast_push_dropped_total", unpushed, &[("cause", "refused")]),
            push_over: names.tally("nearcast_push_dropped_total", unpushed, &[("cause", "over")]),
            push_gone: names.tally(
                "nearcast_push_subscriptions_ended_total",
                "Push subscriptions that their push service has ended.",
                &[],
            ),
            routes_found: names.tally(
                "nearcast_route_areas_moved_total",
                "Areas along routes that were put elsewhere.",
                &[],
            ),
            routes_refused: names.tally(
                "nearcast_route_areas_refused_total",
                "Areas along routes that found no room (routes.client_bytes, routes.tenant_bytes) and are nowhere.",
                &[],
            ),
            live_objects: names.gauge("nearcast_live_objects", "Live objects.", NO_LABELS),
            queue_depths: (0..shards_count).map(depth).collect(),
            ingest: times("nearcast_ingest_seconds", "Reading and checking an event."),
            queue_wait: times(
                "nearcast_queue_seconds",
                "From an event being read to its batch being matched.",
            ),
            match_batch: times("nearcast_match_seconds", "Matching and dealing out a batch."),
            batch_events: Histogram::new(
                "nearcast_batch_events",
                "Events matched in a batch.",
                &BATCH_BUCKETS,
            ),
            devices_in_use: names.gauge("nearcast_gpu_in_use", "Engines that use a GPU.", NO_LABELS),
            devices_lost: names.counter(
                "nearcast_gpu_failures_total",
                "Engines that have given a GPU up because it failed.",
                NO_LABELS,
            ),
            device_events: names.counter(
                "nearcast_gpu_events_total",
                "Events matched on a GPU; each engine counts its own.",
                NO_LABELS,
            ),
            writer_wait: times(
                "nearcast_writer_wait_seconds",
                "From a connection's writer being woken to its turn.",
            ),
            write: times("nearcast_write_seconds", "Writing what waits for a connection."),
            publish_to_write: times(
                "nearcast_publish_to_write_seconds",
                "From an event being read to its being written.",
            ),
            history: History::default(),
        }
    }

    /// Takes over when the certificate ends.
    pub(crate) fn show_certificate_expiry(&self, unix_s: Option<u64>) {
        #[expect(clippy::cast_precision_loss, reason = "no certificate has a year of more than four digits")]
        self.tls_expiry.set(unix_s.unwrap_or_default() as f64);
    }

    /// Takes over the keys that tokens are checked with, and those that are of no use; how old they are; how often newer ones could
    /// not be had.
    pub(crate) fn show_keys(&self, counts: [usize; 2], age: Duration, failures: u64) {
        for (gauge, count) in [&self.keys, &self.keys_unused].into_iter().zip(counts) {
            #[expect(clippy::cast_precision_loss, reason = "there is a megabyte of them at most")]
            gauge.set(count as f64);
        }
        self.keys_age.set(age.as_secs_f64());
        self.keys_failures.absolute(failures);
    }

    /// Takes over how many objects are live.
    pub(crate) fn show_live_objects(&self, count: usize) {
        #[expect(clippy::cast_precision_loss, reason = "there are a billion at most")]
        self.live_objects.set(count as f64);
    }

    /// Takes over what the admission goes by.
    pub(crate) fn show_admission(&self, wait: Duration, lag: Duration) {
        self.admission_wait.set(wait.as_secs_f64());
        self.runtime_lag.set(lag.as_secs_f64());
    }

    /// Takes over how far behind the cluster's stream of events is read.
    pub(crate) fn show_stream_lag(&self, lag: Duration) {
        self.stream_lag.set(lag.as_secs_f64());
    }

    /// Takes over what steers the admission, and what it has come to.
    pub(crate) fn show_feedback(&self, tardiness: f64, allowance: Duration) {
        self.admission_tardiness.set(tardiness);
        self.admission_allowance.set(allowance.as_secs_f64());
    }

    /// Takes over how much is kept.
    pub(crate) fn show_kept(&self, matches: u64, bytes: u64) {
        #[expect(clippy::cast_precision_loss, reason = "memory ends before 2^52 bytes")]
        let (matches, bytes) = (matches as f64, bytes as f64);
        self.kept_matches.set(matches);
        self.kept_bytes.set(bytes);
    }

    /// Takes over what is held for all clients.
    pub(crate) fn show_held(&self, budget: &Budget) {
        for (kind, gauge) in Kind::ALL.into_iter().zip(&self.held_bytes) {
            #[expect(clippy::cast_precision_loss, reason = "memory ends before 2^52 bytes")]
            gauge.set(budget.broker().bytes(kind) as f64);
        }
    }

    /// Takes over what the engines say of themselves.
    pub(crate) fn show_engines(&self, reports: &[Report]) {
        let count = |is: fn(&Report) -> bool| reports.iter().filter(|report| is(report)).count();
        #[expect(clippy::cast_precision_loss, reason = "there are a thousand shards at most")]
        self.devices_in_use.set(count(Report::has_device) as f64);
        self.devices_lost.absolute(count(|report| report.failure().is_some()) as u64);
        self.device_events.absolute(reports.iter().map(Report::device_events).sum());
    }

    /// Puts the figures of now into the history.
    pub(crate) fn remember(&self, live_objects: usize) {
        let reading = Reading {
            at: clock::now(),
            unix_ms: clock::unix_ms(),
            events: self.events.get(),
            deliveries: self.deliveries.get(),
            moves: self.moves.get(),
            clients: self.clients.get(),
            live_objects: live_objects as u64,
            queue_waits: self.queue_wait.counts(),
            memory_bytes: history::memory_bytes(),
        };
        self.history.add(reading, &self.queue_wait);
    }

    /// All figures as Prometheus text.
    pub(crate) fn render(&self) -> String {
        self.invariant_violations.absolute(matcher::invariant::violations());
        let mut text = self.handle.render();
        let Self {
            ingest, queue_wait, match_batch, batch_events, writer_wait, write, publish_to_write, ..
        } = self;
        for histogram in [ingest, queue_wait, match_batch, batch_events, writer_wait, write, publish_to_write]
        {
            histogram.render(&mut text);
        }
        text
    }

    /// Folds what the histograms gathered; without it they grow until somebody looks.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Registers figures by name.
struct Names<'r>(&'r PrometheusRecorder);

const METADATA: Metadata<'static> = Metadata::new("nearcast", Level::INFO, None);

impl Names<'_> {
    fn key(name: &'static str, labels: &[(&'static str, impl AsRef<str>)]) -> Key {
        let label =
            |(name, value): &(&'static str, _)| Label::new(*name, AsRef::<str>::as_ref(value).to_owned());
        Key::from_parts(name, labels.iter().map(label).collect::<Vec<_>>())
    }

    fn tally(
        &self,
        name: &'static str,
        text: &'static str,
        labels: &[(&'static str, &'static str)],
    ) -> Tally {
        Tally { counter: self.counter(name, text, labels), value: AtomicU64::new(0) }
    }

    fn counter(
        &self,
        name: &'static str,
        text: &'static str,
        labels: &[(&'static str, &'static str)],
    ) -> Counter {
        self.0.describe_counter(KeyName::from_const_str(name), None, text.into());
        let counter = self.0.register_counter(&Self::key(name, labels), &METADATA);
        counter.increment(0);
        counter
    }

    fn gauge(
        &self,
        name: &'static str,
        text: &'static str,
        labels: &[(&'static str, impl AsRef<str>)],
    ) -> Gauge {
        self.0.describe_gauge(KeyName::from_const_str(name), None, text.into());
        self.0.register_gauge(&Self::key(name, labels), &METADATA)
    }

    fn mark(&self, name: &'static str, text: &'static str) -> Mark {
        Mark { gauge: self.gauge(name, text, NO_LABELS), value: AtomicU64::new(0) }
    }

    fn seconds(&self, name: &'static str, text: &'static str) -> metrics::Histogram {
        self.0.describe_histogram(KeyName::from_const_str(name), Some(Unit::Seconds), text.into());
        self.0.register_histogram(&Self::key(name, NO_LABELS), &METADATA)
    }

    fn histogram(&self, name: &'static str, text: &'static str) -> metrics::Histogram {
        self.0.describe_histogram(KeyName::from_const_str(name), None, text.into());
        self.0.register_histogram(&Self::key(name, NO_LABELS), &METADATA)
    }
}

const NO_LABELS: &[(&str, &str)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_by_name_and_do_not_mix() {
        let metrics = Arc::new(Metrics::new(2));
        metrics.events.add(3);
        metrics.unread.add(1);
        metrics.ingest.record(3e-6);
        let raised = Raised::new(&metrics, |metrics| &metrics.websockets);
        let text = metrics.render();
        for line in [
            "nearcast_events_total 3",
            "nearcast_drops_total{cause=\"no-reader\"} 1",
            "nearcast_drops_total{cause=\"overflow\"} 0",
            "nearcast_ingest_seconds_bucket{le=\"0.000005\"} 1",
            "nearcast_websockets 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        drop(raised);
        assert_eq!(metrics.websockets.get(), 0);
        assert_eq!(Metrics::new(1).events.get(), 0);
    }

    #[test]
    fn a_violated_invariant_is_counted() {
        matcher::invariant::counted(|| matcher::violated!("a test has no faults"));
        let text = Metrics::new(1).render();
        let line = text.lines().find_map(|line| line.strip_prefix("nearcast_invariant_violations_total "));
        assert!(line.is_some_and(|count| count.parse::<u64>().unwrap() >= 1), "{text}");
    }
}
