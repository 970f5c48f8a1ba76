//! Pairs of phases, without harm and with it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::harm::{Harm, Kind, client_name};
use crate::fanout::load::Load;
use crate::fanout::pairs::{Change, Pairs, merged_ms};
use crate::fanout::publisher::Manner;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pairs of phases.
    pub pairs: usize,
    /// Events of a phase.
    pub events: u64,
    /// Events per second.
    pub rate: f64,
    /// Clients that mean harm.
    pub clients: usize,
}

/// What one kind of harm did.
#[derive(Clone, Debug)]
pub struct Figures {
    kind: Kind,
    plan: Plan,
    pairs: Pairs,
    /// Requests a second, or bytes of those that trickle.
    requests_per_s: f64,
    /// Resident memory: before any harm, and the greatest with it.
    before_bytes: u64,
    most_bytes: u64,
}

/// Between the last connection and a phase.
const CALM: Duration = Duration::from_millis(200);
/// How long the broker may take to be rid of them.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a program may grow by whatever it does: pages that its allocator keeps, and what threads and tables take once.
const SLACK_BYTES: u64 = 48 << 20;

/// Measures a broker under load, whose subscribers are the others.
///
/// # Errors
/// When the broker misses a delivery, makes one too many, refuses what it should not, or grows beyond its bound.
pub async fn measure(load: &mut Load, kind: Kind, plan: Plan) -> anyhow::Result<Figures> {
    let manner = Manner::OpenLoop { rate: plan.rate };
    // Everything is warm then.
    load.phase(manner, plan.events).await?;
    let (http, broker) = (reqwest::Client::new(), load.broker().address);
    let sockets = stat(&http, load, "websockets").await?;
    let before_bytes = load.broker().resident_bytes()?;
    let mut figures = Figures {
        kind,
        plan,
        pairs: Pairs::default(),
        requests_per_s: 0.0,
        before_bytes,
        most_bytes: before_bytes,
    };
    for pair in 0..plan.pairs {
        let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
        for is_harmful in order {
            if !is_harmful {
                load.phase(manner, plan.events).await?;
                figures.pairs.without.push(load.latency_us());
                continue;
            }
            let begin = move || Harm::begin(kind, broker, plan.clients);
            let harm = tokio::task::spawn_blocking(begin).await?.context("beginning harm")?;
            tokio::time::sleep(CALM).await;
            let (began, sent) = (Instant::now(), harm.requests());
            load.phase(manner, plan.events).await?;
            figures.pairs.with.push(load.latency_us());
            figures.requests_per_s +=
                (harm.requests() - sent) as f64 / began.elapsed().as_secs_f64() / plan.pairs as f64;
            figures.most_bytes = figures.most_bytes.max(load.broker().resident_bytes()?);
            drop(harm);
            until_alone(&http, load, plan, sockets).await?;
        }
    }
    let grown = figures.most_bytes.saturating_sub(figures.before_bytes);
    ensure!(
        grown <= figures.bound_bytes(),
        "{kind:?}: grown by {grown} bytes, {} may be",
        figures.bound_bytes()
    );
    Ok(figures)
}

/// Has the broker forget the clients that meant harm, and waits until it is rid of their connections.
async fn until_alone(http: &reqwest::Client, load: &Load, plan: Plan, sockets: u64) -> anyhow::Result<()> {
    let asked = Instant::now();
    // Those with lasting subscriptions are few.
    for number in 0..plan.clients.min(10) {
        let url = format!("http://{}/v1/clients/{}", load.broker().address, client_name(number));
        http.delete(url).send().await?.error_for_status()?;
    }
    while stat(http, load, "websockets").await? != sockets {
        ensure!(asked.elapsed() < PATIENCE, "connections that were closed are still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(CALM).await;
    Ok(())
}

async fn stat(http: &reqwest::Client, load: &Load, name: &str) -> anyhow::Result<u64> {
    let stats = http.get(format!("http://{}/v1/stats", load.broker().address)).send().await?;
    let stats: Value = stats.json().await?;
    stats[name].as_u64().with_context(|| format!("no {name} in {stats}"))
}

impl Figures {
    /// What a line of [`told`](Self::told) is about.
    pub const HEADING: &'static str = "| harm | clients | requests/s | p99 ms without | with | p50 | p99 changes by | in 95 of 100 draws | broker grows by, MB | at most, MB |";

    /// By how much the broker may have grown.
    fn bound_bytes(&self) -> u64 {
        self.plan.clients as u64 * self.kind.bound_bytes() + SLACK_BYTES
    }

    /// A line of a Markdown table.
    #[must_use]
    pub fn told(&self) -> String {
        let Change { median, low, high, .. } = self.pairs.change(0.99);
        let [without, with] = [&self.pairs.without, &self.pairs.with].map(|phases| merged_ms(phases, 0.99));
        let half = self.pairs.change(0.5).median;
        format!(
            "| {} | {} | {:.0} | {without:.2} | {with:.2} | {:+.1} % | {:+.1} % | {:+.1} to {:+.1} %: {} | {:.1} | {:.1} |",
            self.kind.name(),
            self.plan.clients,
            self.requests_per_s,
            1e2 * half,
            1e2 * median,
            1e2 * low,
            1e2 * high,
            self.pairs.change(0.99).verdict(),
            self.most_bytes.saturating_sub(self.before_bytes) as f64 / 1e6,
            self.bound_bytes() as f64 / 1e6,
        )
    }

    /// The same for programs, with the figures of each pair.
    #[must_use]
    pub fn document(&self) -> Value {
        let Change { median, low, high, .. } = self.pairs.change(0.99);
        let p99_us = |phases: &[hdrhistogram::Histogram<u64>]| {
            phases.iter().map(|phase| phase.value_at_quantile(0.99)).collect::<Vec<_>>()
        };
        json!({
            "harm": self.kind.name(),
            "clients": self.plan.clients,
            "events_per_s": self.plan.rate,
            "events_per_phase": self.plan.events,
            "requests_per_s": self.requests_per_s,
            "p99_us": {"without": p99_us(&self.pairs.without), "with": p99_us(&self.pairs.with)},
            "p99_change": {"median": median, "low": low, "high": high},
            "p50_change": self.pairs.change(0.5).median,
            "resident_bytes": {"before": self.before_bytes, "most": self.most_bytes, "bound": self.before_bytes + self.bound_bytes()},
        })
    }
}
