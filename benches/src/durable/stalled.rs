//! A tenth of the sockets never reads: what that does to the others.
//!
//! In one phase of each pair all sockets read, in the other a tenth does not. Before either so much is sent to that tenth
//! that the buffers of a socket that is not read are full, in the kernel and in the broker. Pairs are many and short, with the two
//! phases now in this order and now in that, and are drawn again and again (a bootstrap) to see how far a figure may be off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures_util::SinkExt as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::fanout::load::Load;
use crate::fanout::pairs::{Pairs, merged_ms};
use crate::fanout::publisher::Manner;
use crate::fanout::scenario::Scenario;
use crate::fanout::socket::{self, Socket};

/// Requests under way at once.
const REQUESTS_MAX: usize = 32;
/// Bytes that the broker holds for a connection that is not read, `outbox.bytes`: a small setting, so that it is soon full.
pub const OUTBOX_BYTES: usize = 512 << 10;
/// What is sent to each socket before a phase: more than that and what the kernel takes, less than is kept of a durable
/// session.
const BALLAST_EVENTS: u64 = 40;
const BALLAST_BYTES: usize = 48_000;
/// Events of a request with ballast.
const BALLAST_BATCH: u64 = 8;
/// Bytes of a segment, as over a network. In the 64 KiB of the loopback interface the kernel would take 4 MB for each socket.
const SEGMENT_BYTES: u32 = 1_400;
/// Between that and a phase.
const CALM: Duration = Duration::from_millis(200);
/// How long it may take until the broker notices.
const PATIENCE: Duration = Duration::from_secs(10);
/// Deliveries that a durable reader takes before it acknowledges them.
const ACK_EVERY: u64 = 100;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pairs of phases.
    pub pairs: usize,
    /// Events of a phase.
    pub events: u64,
    /// Events per second.
    pub rate: f64,
    /// Sockets that read in one phase of a pair and not in the other.
    pub stalled: usize,
    /// Whether their subscriptions are durable.
    pub durable: bool,
}

/// What readers that never read did to the others.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Latencies of the others' deliveries.
    pairs: Pairs,
    /// The broker's memory, greatest, where all read and where they do not.
    resident_mb: [f64; 2],
    plan: Plan,
}

/// Measures a broker under load, whose subscribers are the others.
///
/// # Errors
/// When the broker refuses something, misses a delivery, or does not notice that sockets are not read.
pub async fn measure(load: &mut Load, plan: Plan) -> anyhow::Result<Figures> {
    let manner = Manner::OpenLoop { rate: plan.rate };
    // Everything is warm then.
    load.phase(manner, plan.events).await?;
    let mut figures = Figures { pairs: Pairs::default(), resident_mb: [0.0; 2], plan };
    for pair in 0..plan.pairs {
        let order = if pair % 2 == 0 { [true, false] } else { [false, true] };
        for reads in order {
            let sockets = Sockets::connect(load.broker().address, load.scenario(), plan, reads).await?;
            load.phase(manner, plan.events).await?;
            let phases = if reads { &mut figures.pairs.without } else { &mut figures.pairs.with };
            phases.push(load.latency_us());
            let resident_mb = &mut figures.resident_mb[usize::from(!reads)];
            *resident_mb = resident_mb.max(load.broker().resident_bytes()? as f64 / 1e6);
            sockets.leave().await?;
        }
    }
    Ok(figures)
}

/// The tenth, for one phase.
#[derive(Debug)]
struct Sockets {
    broker: SocketAddr,
    plan: Plan,
    http: reqwest::Client,
    /// Connections that are not read.
    stalled: Vec<Socket>,
    /// Tasks that read the other connections.
    readers: JoinSet<anyhow::Result<()>>,
    /// Ballast that came.
    ballast: Arc<AtomicU64>,
    /// What the broker has open, with the others.
    websockets: u64,
}

impl Sockets {
    /// Opens sockets that want what the first subscribers of a scenario want, and fills them.
    async fn connect(
        broker: SocketAddr,
        scenario: &Scenario,
        plan: Plan,
        reads: bool,
    ) -> anyhow::Result<Self> {
        let http = reqwest::Client::new();
        let open = scenario.subscribers.iter().take(plan.stalled).enumerate();
        let open = open.map(async |(number, subscriber)| {
            let near = json!({
                "area": {"center": subscriber.coordinates, "radius_m": scenario.radius_m},
                "where": format!("type = 'accident' AND severity >= {}", subscriber.severity_min),
            });
            let filters = json!([near, {"where": "type = 'ballast'"}]);
            let wish = json!({"filters": filters, "durable": plan.durable, "overflow": "drop-oldest"});
            let url = format!("http://{broker}/v1/clients/{}/subscriptions/near", name(number));
            http.put(url).json(&wish).send().await?.error_for_status()?;
            socket::open_over(connect_from_afar(broker).await?, broker, &name(number)).await
        });
        let opened = stream::iter(open).buffered(REQUESTS_MAX).try_collect::<Vec<_>>().await?;
        let (stalled, readers, ballast) = (Vec::new(), JoinSet::new(), Arc::default());
        let mut sockets = Self { broker, plan, http, stalled, readers, ballast, websockets: 0 };
        sockets.websockets = sockets.stat("websockets").await?;
        if reads {
            for socket in opened {
                sockets.readers.spawn(read(socket, plan.durable, Arc::clone(&sockets.ballast)));
            }
        } else {
            sockets.stalled = opened;
        }
        if let Err(error) = sockets.fill().await {
            sockets.check_readers()?;
            return Err(error);
        }
        tokio::time::sleep(CALM).await;
        Ok(sockets)
    }

    /// Sends so much that the broker cannot get rid of it where nobody reads.
    async fn fill(&self) -> anyhow::Result<()> {
        let dropped_before = self.stat("deliveries_dropped").await?;
        let texts = vec!["x".repeat(BALLAST_BYTES / 4); 4];
        for first in (0..BALLAST_EVENTS / BALLAST_BATCH).map(|batch| batch * BALLAST_BATCH) {
            let events = (first..first + BALLAST_BATCH).map(|number| {
                let event = json!({
                    "type": "Feature", "id": format!("ballast-{number}"),
                    "geometry": {"type": "Point", "coordinates": [9.0, 45.0]},
                    "properties": {"type": "ballast", "texts": texts},
                });
                format!("{event}\n")
            });
            let request = self.http.post(format!("http://{}/v1/events", self.broker));
            let request = request.header("content-type", "application/x-ndjson");
            let answer = request.body(events.collect::<String>()).send().await?.error_for_status()?;
            let answer: serde_json::Value = answer.json().await?;
            ensure!(answer["accepted"] == BALLAST_BATCH, "the broker answered {answer}");
            if self.stalled.is_empty() {
                // No more than a reader's outbox holds.
                let wanted = (first + BALLAST_BATCH) * self.plan.stalled as u64;
                self.until(wanted, async || Ok(self.ballast.load(Relaxed))).await?;
            }
        }
        let (all, at_least) = (self.plan.stalled as u64, BALLAST_EVENTS / 8);
        match (self.stalled.is_empty(), self.plan.durable) {
            (true, _) => Ok(()),
            (false, true) => self.until(all, async || self.stat("readers_behind").await).await,
            (false, false) => {
                let dropped = async || Ok(self.stat("deliveries_dropped").await? - dropped_before);
                self.until(all * at_least, dropped).await
            }
        }
    }

    async fn until(&self, wanted: u64, count: impl AsyncFn() -> anyhow::Result<u64>) -> anyhow::Result<()> {
        let asked = Instant::now();
        while count().await? < wanted {
            ensure!(asked.elapsed() < PATIENCE, "{} where {wanted} were awaited", count().await?);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Checks that all are still there, one that was cut off costs nothing any more, and has the broker forget them.
    async fn leave(mut self) -> anyhow::Result<()> {
        let websockets = self.stat("websockets").await?;
        ensure!(websockets >= self.websockets, "sockets were cut off: {websockets} of {}", self.websockets);
        self.check_readers()?;
        self.readers.abort_all();
        let leave = (0..self.plan.stalled).map(async |number| {
            let url = format!("http://{}/v1/clients/{}", self.broker, name(number));
            self.http.delete(url).send().await?.error_for_status()
        });
        stream::iter(leave).buffered(REQUESTS_MAX).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Says why a reader has ended, if one has.
    fn check_readers(&mut self) -> anyhow::Result<()> {
        match self.readers.try_join_next() {
            Some(ended) => ended?.context("a reader ended"),
            None => Ok(()),
        }
    }

    async fn stat(&self, name: &str) -> anyhow::Result<u64> {
        let stats = self.http.get(format!("http://{}/v1/stats", self.broker)).send().await?;
        let stats: serde_json::Value = stats.json().await?;
        stats[name].as_u64().with_context(|| format!("no {name} in {stats}"))
    }
}

async fn connect_from_afar(broker: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = if broker.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket2::SockRef::from(&socket).set_tcp_mss(SEGMENT_BYTES)?;
    Ok(socket.connect(broker).await?)
}

async fn read(mut socket: Socket, durable: bool, ballast: Arc<AtomicU64>) -> anyhow::Result<()> {
    let mut offset = 0;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        offset += 1;
        let is_ballast = text.len() > BALLAST_BYTES;
        if durable && (is_ballast || offset % ACK_EVERY == 0) {
            socket.send(Message::text(format!(r#"{{"op":"ack","offset":{offset}}}"#))).await?;
        }
        ballast.fetch_add(u64::from(is_ballast), Relaxed);
    }
    bail!("it was cut off")
}

fn name(number: usize) -> String {
    format!("stalled-{number}")
}

impl Figures {
    /// A line of a Markdown table for each kind of phase, and what may be concluded.
    #[must_use]
    pub fn told(&self) -> String {
        let mut text =
            String::from("| sockets that do not read | p50 ms | p99 ms | p99.9 ms | broker, resident MB |\n");
        text += &format!("|{}\n", " --- |".repeat(5));
        let phases = [&self.pairs.without, &self.pairs.with];
        for ((count, phases), resident_mb) in [0, self.plan.stalled].iter().zip(phases).zip(self.resident_mb)
        {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| merged_ms(phases, quantile));
            text += &format!("| {count} | {p50:.2} | {p99:.2} | {p999:.2} | {resident_mb:.1} |\n");
        }
        let change = self.pairs.change(0.99);
        text += &format!(
            "\np99 changes by {:+.1} % with them, the median of {} pairs, between {:+.1} and {:+.1} % in 95 of 100 draws: {}. \
             They may hold {:.0} MB in the broker (`outbox.bytes` each).\n",
            1e2 * change.median,
            self.plan.pairs,
            1e2 * change.low,
            1e2 * change.high,
            change.verdict(),
            (self.plan.stalled * OUTBOX_BYTES) as f64 / 1e6,
        );
        text
    }
}
