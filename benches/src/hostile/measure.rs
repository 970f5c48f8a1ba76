//! Phases by turns: without harm, with harm to a second broker on the same machine, and with harm to the broker that the others use.
//!
//! What the first and the last differ by is what harm costs on this machine, its own work included, which competes with everybody's for
//! processors; what the last two differ by is what it costs to share a broker with it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::harm::{Harm, Kind, client_name};
use hdrhistogram::Histogram;

use crate::fanout::load::Load;
use crate::fanout::pairs::{Change, Pairs, merged_ms};
use crate::fanout::process::Broker;
use crate::fanout::publisher::Manner;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds of three phases.
    pub rounds: usize,
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
    /// Latencies of the others in microseconds, a phase each: by whom harm was aimed at.
    latency_us: [Vec<Histogram<u64>>; 3],
    /// Requests a second, or bytes of those that trickle.
    requests_per_s: f64,
    /// Resident memory: before any harm, and the greatest with it.
    before_bytes: u64,
    most_bytes: u64,
}

/// Whom harm is aimed at.
#[derive(Clone, Copy, Debug)]
enum Aim {
    Nobody,
    Bystander,
    Broker,
}

/// Between the last connection and a phase.
const CALM: Duration = Duration::from_millis(200);
/// How long the broker may take to be rid of them.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a program may grow by whatever it does: pages that its allocator keeps, and what threads and tables take once.
const SLACK_BYTES: u64 = 48 << 20;

/// Measures a broker under load, whose subscribers are the others, beside one that only harm is aimed at.
///
/// # Errors
/// When the broker misses a delivery, makes one too many, refuses what it should not, or grows beyond its bound.
pub async fn measure(load: &mut Load, bystander: &Broker, kind: Kind, plan: Plan) -> anyhow::Result<Figures> {
    let manner = Manner::OpenLoop { rate: plan.rate };
    // Everything is warm then.
    load.phase(manner, plan.events).await?;
    let http = reqwest::Client::new();
    let before_bytes = load.broker().resident_bytes()?;
    let mut figures = Figures {
        kind,
        plan,
        latency_us: Default::default(),
        requests_per_s: 0.0,
        before_bytes,
        most_bytes: before_bytes,
    };
    let mut order = [Aim::Nobody, Aim::Bystander, Aim::Broker];
    for _ in 0..plan.rounds {
        for aim in order {
            let target = match aim {
                Aim::Nobody => None,
                Aim::Bystander => Some(bystander.address),
                Aim::Broker => Some(load.broker().address),
            };
            let mut harm = None;
            if let Some(target) = target {
                let sockets = stat(&http, target, "websockets").await?;
                let begin = move || Harm::begin(kind, target, plan.clients);
                let begun = tokio::task::spawn_blocking(begin).await?.context("beginning harm")?;
                harm = Some((begun, target, sockets));
                tokio::time::sleep(CALM).await;
            }
            let sent = |harm: &Option<(Harm, _, _)>| harm.as_ref().map_or(0, |(harm, ..)| harm.requests());
            let (began, before) = (Instant::now(), sent(&harm));
            load.phase(manner, plan.events).await?;
            figures.latency_us[aim as usize].push(load.latency_us());
            if matches!(aim, Aim::Broker) {
                let requests = (sent(&harm) - before) as f64;
                figures.requests_per_s += requests / began.elapsed().as_secs_f64() / plan.rounds as f64;
                figures.most_bytes = figures.most_bytes.max(load.broker().resident_bytes()?);
            }
            if let Some((harm, target, sockets)) = harm {
                drop(harm);
                until_alone(&http, target, plan, sockets).await?;
            }
        }
        // Nobody is always behind the same one.
        order.rotate_left(1);
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
async fn until_alone(
    http: &reqwest::Client,
    broker: SocketAddr,
    plan: Plan,
    sockets: u64,
) -> anyhow::Result<()> {
    let asked = Instant::now();
    // Those with lasting subscriptions are few.
    for number in 0..plan.clients.min(10) {
        let url = format!("http://{broker}/v1/clients/{}", client_name(number));
        http.delete(url).send().await?.error_for_status()?;
    }
    while stat(http, broker, "websockets").await? != sockets {
        ensure!(asked.elapsed() < PATIENCE, "connections that were closed are still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(CALM).await;
    Ok(())
}

async fn stat(http: &reqwest::Client, broker: SocketAddr, name: &str) -> anyhow::Result<u64> {
    let stats = http.get(format!("http://{broker}/v1/stats")).send().await?;
    let stats: Value = stats.json().await?;
    stats[name].as_u64().with_context(|| format!("no {name} in {stats}"))
}

impl Figures {
    /// What a line of [`told`](Self::told) is about.
    pub const HEADING: &'static str = "| harm | clients | requests/s | p99 ms without | beside | with | p99 by sharing the machine and the broker | p99 by sharing the broker | in 95 of 100 draws | broker grows by, MB | at most, MB |";

    /// From phases with one aim to those with harm to the broker.
    fn pairs(&self, from: Aim) -> Pairs {
        let [without, with] = [from, Aim::Broker].map(|aim| self.latency_us[aim as usize].clone());
        Pairs { without, with }
    }

    /// By how much the broker may have grown.
    fn bound_bytes(&self) -> u64 {
        self.plan.clients as u64 * self.kind.bound_bytes() + SLACK_BYTES
    }

    /// A line of a Markdown table.
    #[must_use]
    pub fn told(&self) -> String {
        let [without, beside, with] = &self.latency_us;
        let [without, beside, with] = [without, beside, with].map(|phases| merged_ms(phases, 0.99));
        let machine = self.pairs(Aim::Nobody).change(0.99).median;
        let shared = self.pairs(Aim::Bystander).change(0.99);
        format!(
            "| {} | {} | {:.0} | {without:.2} | {beside:.2} | {with:.2} | {:+.1} % | {:+.1} % | {:+.1} to {:+.1} %: {} | {:.1} | {:.1} |",
            self.kind.name(),
            self.plan.clients,
            self.requests_per_s,
            1e2 * machine,
            1e2 * shared.median,
            1e2 * shared.low,
            1e2 * shared.high,
            shared.verdict(),
            self.most_bytes.saturating_sub(self.before_bytes) as f64 / 1e6,
            self.bound_bytes() as f64 / 1e6,
        )
    }

    /// The same for programs, with the figures of each pair.
    #[must_use]
    pub fn document(&self) -> Value {
        let change = |from| {
            let Change { median, low, high, .. } = self.pairs(from).change(0.99);
            json!({"median": median, "low": low, "high": high})
        };
        let p99_us = |aim: Aim| {
            let phases = self.latency_us[aim as usize].iter();
            phases.map(|phase| phase.value_at_quantile(0.99)).collect::<Vec<_>>()
        };
        json!({
            "harm": self.kind.name(),
            "clients": self.plan.clients,
            "events_per_s": self.plan.rate,
            "events_per_phase": self.plan.events,
            "requests_per_s": self.requests_per_s,
            "p99_us": {"without": p99_us(Aim::Nobody), "beside": p99_us(Aim::Bystander), "with": p99_us(Aim::Broker)},
            "p99_change": {"machine_and_broker": change(Aim::Nobody), "broker": change(Aim::Bystander)},
            "resident_bytes": {"before": self.before_bytes, "most": self.most_bytes, "bound": self.before_bytes + self.bound_bytes()},
        })
    }
}
