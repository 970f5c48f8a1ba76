//! Load in phases: each publishes a number of events in one manner, waits for their deliveries, and checks them.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::process::{self, Broker, Cpu};
use super::publisher::{self, Manner};
use super::scenario::Scenario;
use super::socket::Socket;
use super::subscribers::{self, Kept};
use super::tally::{EVENTS_MAX, Tally, Verdict};

/// Events of a short phase that finds out how many a measured one takes.
const PROBE_EVENTS: u64 = 4_000;
/// How long the last deliveries may take to come without any progress.
const STALL: Duration = Duration::from_secs(10);
/// How long to wait for what should not come.
const LINGER: Duration = Duration::from_millis(300);

/// What a phase took.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Published.
    pub events: u64,
    /// Delivered.
    pub deliveries: u64,
    /// From the first publish to the last delivery.
    pub seconds: f64,
    /// Processor time of the broker.
    pub broker: Cpu,
    /// Processor time of this process.
    pub load: Cpu,
    /// Half of the deliveries were no later than this after they were sent, or should have been.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1,000.
    pub p999_ms: f64,
    /// All.
    pub max_ms: f64,
}

/// A broker, its subscribers, and what all phases share.
#[derive(Debug)]
pub struct Load {
    broker: Broker,
    scenario: Arc<Scenario>,
    tally: Arc<Tally>,
    next_event: u64,
    _readers: JoinSet<anyhow::Result<()>>,
}

impl Load {
    /// Reads all of the subscribers' sockets from now on.
    ///
    /// # Errors
    /// Never in practice: see [`Tally::new`].
    pub fn new(
        broker: Broker,
        scenario: Arc<Scenario>,
        sockets: Vec<Socket>,
        kept: Kept,
    ) -> anyhow::Result<Self> {
        let tally = Arc::new(Tally::new()?);
        let readers = subscribers::listen(sockets, &tally, kept);
        Ok(Self { broker, scenario, tally, next_event: 0, _readers: readers })
    }

    /// The broker under load.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The broker, whose subscribers are gone then.
    #[must_use]
    pub fn into_broker(self) -> Broker {
        self.broker
    }

    /// Who is where.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// As many events as go in about that time, after a probe that also warms everything up.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub async fn saturate(
        &mut self,
        manner: Manner,
        seconds: f64,
        runs: usize,
    ) -> anyhow::Result<Vec<Phase>> {
        let mut probe = self.phase(manner, PROBE_EVENTS).await?;
        probe = self.phase(manner, events_in(seconds / 5.0, probe.events_per_s())).await?;
        let mut phases = Vec::new();
        for _ in 0..runs {
            phases.push(self.phase(manner, events_in(seconds, probe.events_per_s())).await?);
        }
        Ok(phases)
    }

    /// Publishes events, waits for their deliveries, and checks them.
    ///
    /// # Errors
    /// When the broker refuses an event, or a delivery is missing or should not have come.
    pub async fn phase(&mut self, manner: Manner, events: u64) -> anyhow::Result<Phase> {
        let events: Range<u64> = self.next_event..self.next_event + events;
        self.next_event = events.end;
        self.tally.begin(&events);
        let (broker_before, load_before) = (self.broker.cpu()?, process::own_cpu()?);
        let started = Instant::now();
        let address = self.broker.address;
        let (scenario, tally, numbers) =
            (Arc::clone(&self.scenario), Arc::clone(&self.tally), events.clone());
        tokio::task::spawn_blocking(move || publisher::publish(address, manner, &scenario, numbers, &tally))
            .await?
            .with_context(|| format!("publishing {manner:?}"))?;
        let expected = self.scenario.deliveries(events.clone());
        let came = self.wait_for(expected).await;
        let seconds = self.tally.last().saturating_duration_since(started).as_secs_f64();
        let (broker, load) =
            (self.broker.cpu()?.since(broker_before), process::own_cpu()?.since(load_before));
        tokio::time::sleep(LINGER).await;
        let verdict = self.tally.verdict(&self.scenario, events.clone());
        ensure!(
            came && verdict == Verdict::default(),
            "{manner:?}: {} deliveries of {expected}: {verdict:?}",
            self.tally.deliveries()
        );
        let latency_us = self.tally.latency_us();
        let ms = |quantile| latency_us.value_at_quantile(quantile) as f64 / 1_000.0;
        let phase = Phase {
            events: events.end - events.start,
            deliveries: expected,
            seconds,
            broker,
            load,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: latency_us.max() as f64 / 1_000.0,
        };
        eprintln!("{manner:?}: {:.0} events/s, {phase:?}", phase.events_per_s());
        Ok(phase)
    }

    /// Latencies of the last phase in microseconds.
    #[must_use]
    pub fn latency_us(&self) -> Histogram<u64> {
        self.tally.latency_us()
    }

    /// Whether all deliveries came; gives up when none does for a while.
    async fn wait_for(&self, expected: u64) -> bool {
        let mut progress = (self.tally.deliveries(), Instant::now());
        while progress.0 < expected && progress.1.elapsed() < STALL {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let deliveries = self.tally.deliveries();
            if deliveries != progress.0 {
                progress = (deliveries, Instant::now());
            }
        }
        progress.0 >= expected
    }
}

impl Phase {
    /// Events per second.
    #[must_use]
    pub fn events_per_s(&self) -> f64 {
        self.events as f64 / self.seconds
    }

    /// Deliveries per second.
    #[must_use]
    pub fn deliveries_per_s(&self) -> f64 {
        self.deliveries as f64 / self.seconds
    }
}

/// How many events that time takes, as many as one phase can count.
#[must_use]
pub fn events_in(seconds: f64, per_s: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float that is clamped to some millions fits")]
    let events = (seconds * per_s).round().clamp(1.0, EVENTS_MAX as f64) as u64;
    events
}

/// The median, and the least and the largest where there are several.
#[must_use]
pub fn spread(phases: &[Phase], digits: usize, of: impl Fn(&Phase) -> f64 + Copy) -> String {
    let figures = || phases.iter().map(of);
    let median = median(phases, of);
    if phases.len() < 2 {
        return format!("{median:.digits$}");
    }
    let (least, most) = (figures().fold(f64::INFINITY, f64::min), figures().fold(0.0, f64::max));
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

/// The one in the middle; no number where there is none.
#[must_use]
pub fn median(phases: &[Phase], of: impl Fn(&Phase) -> f64) -> f64 {
    let mut figures: Vec<f64> = phases.iter().map(of).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
