//! Attacks, and the clients that make them: as fast as one thread can be, which is theirs, so that the measurement reads on undisturbed.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::tokens::Tokens;
use super::{connections, costly, floods, held};

/// A kind of harm.
pub struct Attack {
    /// What the command line calls it.
    pub slug: &'static str,
    /// In words.
    pub name: &'static str,
    /// How many clients make it.
    pub clients: Size,
    /// What the broker may hold for each of them by its settings, as they are by default.
    pub bound_bytes: u64,
    /// What it may hold for all of them together besides: what is bounded for a tenant or for the whole broker.
    pub shared_bytes: u64,
    /// Live events of others that it is about, which are there before.
    pub live: Size,
    /// Whose the clients are.
    pub tenant: Tenant,
    /// Prepares the attack and leaves it at work.
    pub(super) begin: fn(Attacker) -> Begun,
}

/// What [`Attack::begin`] returns.
pub(super) type Begun = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// How much of something, when it is measured and when it is only seen to work.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// When it is measured.
    pub full: usize,
    /// In tests.
    pub quick: usize,
}

impl Size {
    pub(super) const NONE: Self = Self { full: 0, quick: 0 };

    pub(super) const fn new(full: usize, quick: usize) -> Self {
        Self { full, quick }
    }

    /// One of both.
    #[must_use]
    pub const fn get(self, quick: bool) -> usize {
        if quick { self.quick } else { self.full }
    }
}

/// Whose clients mean harm, where there are tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenant {
    /// That of the ordinary clients.
    Same,
    /// Another.
    Other,
}

impl Tenant {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "city",
            Self::Other => "elsewhere",
        }
    }
}

impl Attack {
    /// All that there are.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        connections::ATTACKS.iter().chain(floods::ATTACKS).chain(held::ATTACKS).chain(costly::ATTACKS)
    }

    /// The one of that name.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn named(slug: &str) -> Result<&'static Self, String> {
        Self::all().find(|attack| attack.slug == slug).ok_or_else(|| {
            let slugs = Self::all().map(|attack| attack.slug).collect::<Vec<_>>();
            format!("there are {}", slugs.join(", "))
        })
    }

    /// What the broker may hold for all of its clients.
    #[must_use]
    pub fn budget_bytes(&self, quick: bool) -> u64 {
        self.clients.get(quick) as u64 * self.bound_bytes + self.shared_bytes
    }
}

impl fmt::Debug for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug)
    }
}

/// Where a broker is, and how it is talked to.
#[derive(Clone)]
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    tokens: Option<Arc<Tokens>>,
    http: reqwest::Client,
}

impl Door {
    /// Without tokens nobody has to say who they are.
    #[must_use]
    pub fn new(address: SocketAddr, tokens: Option<Arc<Tokens>>) -> Self {
        Self { address, tokens, http: reqwest::Client::builder().no_proxy().build().unwrap_or_default() }
    }

    /// What the header `authorization` has to say for a client.
    #[must_use]
    pub fn authorization(&self, tenant: Tenant, client: &str) -> Option<String> {
        let token = self.tokens.as_ref()?.sign(tenant.name(), client).ok()?;
        Some(format!("Bearer {token}"))
    }

    /// The status of the answer to a request; `None` when there is no answer.
    pub async fn call(
        &self,
        authorization: Option<&str>,
        method: &str,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> Option<u16> {
        let method = method.parse::<reqwest::Method>().ok()?;
        let lines = path == EVENTS;
        let content_type = if lines { "application/x-ndjson" } else { "application/json" };
        let mut request = self.http.request(method, format!("http://{}{path}", self.address));
        request = request.header("content-type", content_type).body(body);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        // Read to its end, and not kept.
        let mut chunks = answer.bytes_stream();
        while let Some(Ok(_)) = chunks.next().await {}
        Some(status)
    }
}

/// Where batches of events go.
pub(super) const EVENTS: &str = "/v1/events";

/// What all clients of an attack have done.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// A client that means harm.
#[derive(Clone)]
pub(super) struct Attacker {
    pub(super) door: Door,
    pub(super) number: usize,
    tenant: Tenant,
    quick: bool,
    counts: Arc<Counts>,
}

impl Attacker {
    /// What it is called.
    pub(super) fn client(&self) -> String {
        format!("harm-{}", self.number)
    }

    pub(super) fn authorization(&self) -> Option<String> {
        self.door.authorization(self.tenant, &self.client())
    }

    /// So many, or few in tests.
    pub(super) fn scaled(&self, full: usize, quick: usize) -> usize {
        Size::new(full, quick).get(self.quick)
    }

    /// Counts requests, or bytes of what trickles.
    pub(super) fn sent(&self, count: u64) {
        self.counts.sent.fetch_add(count, Relaxed);
    }

    /// Counts one that was refused, or cut off.
    pub(super) fn refused(&self) {
        self.counts.refused.fetch_add(1, Relaxed);
    }

    /// Sends a request and waits for its answer. One that is refused does no harm, and is counted.
    pub(super) async fn call(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) {
        let status = self.door.call(self.authorization().as_deref(), method, path, body).await;
        self.sent(1);
        if !status.is_some_and(|status| (200..300).contains(&status)) {
            self.refused();
        }
        if matches!(status, None | Some(429 | 503)) {
            tokio::time::sleep(AFTER_REFUSAL).await;
        }
    }

    /// Makes or replaces a subscription of its own.
    pub(super) async fn subscribe(&self, id: &str, subscription: &Value) {
        let path = format!("/v1/clients/{}/subscriptions/{id}", self.client());
        self.call("PUT", &path, subscription.to_string()).await;
    }

    /// Goes somewhere.
    pub(super) async fn go(&self, coordinates: [f64; 2]) {
        let path = format!("/v1/clients/{}/position", self.client());
        self.call("PUT", &path, json!({"coordinates": coordinates}).to_string()).await;
    }

    /// Publishes events, so many a request.
    pub(super) async fn publish(&self, events: impl Iterator<Item = Value>, at_once: usize) {
        let mut events = events.peekable();
        while events.peek().is_some() {
            let lines = events.by_ref().take(at_once).map(|event| format!("{event}\n"));
            self.call("POST", EVENTS, lines.collect::<String>()).await;
        }
    }
}

/// After 429, 503 or a connection that was refused, so that it is not asked a thousand times a second.
const AFTER_REFUSAL: Duration = Duration::from_millis(20);

/// A live event of the city.
#[must_use]
pub fn live_event(id: &str, number: usize, properties: &Value) -> Value {
    let coordinates = place(number);
    json!({
        "type": "Feature", "id": format!("{id}-{number}"), "ttl_s": 86_400, "properties": properties,
        "geometry": {"type": "Point", "coordinates": coordinates},
    })
}

/// Places in the city, all within 25 km of its middle.
#[must_use]
pub fn place(number: usize) -> [f64; 2] {
    [9.0 + (number % 200) as f64 / 1_000.0, 45.3 + (number / 200 % 200) as f64 / 1_000.0]
}

/// Clients at work; they end when this is dropped.
pub struct Harm {
    runtime: Option<Runtime>,
    counts: Arc<Counts>,
}

/// Clients that begin at once.
const BEGINNING_MAX: usize = 64;
/// How long an attack may prepare; what is left goes on beside what is measured.
const PREPARING: Duration = Duration::from_secs(10);

impl Harm {
    /// Lets the clients of an attack loose. Blocks until all are at work, or some seconds are over.
    ///
    /// # Errors
    /// When there is no thread for them.
    pub fn begin(attack: &'static Attack, door: &Door, quick: bool) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let counts = Arc::new(Counts::default());
        let attacker = |number| Attacker {
            door: door.clone(),
            number,
            tenant: attack.tenant,
            quick,
            counts: Arc::clone(&counts),
        };
        let attackers = (0..attack.clients.get(quick)).map(attacker).collect::<Vec<_>>();
        let begun =
            runtime.spawn(stream::iter(attackers).for_each_concurrent(BEGINNING_MAX, |attacker| async {
                let counts = Arc::clone(&attacker.counts);
                if (attack.begin)(attacker).await.is_err() {
                    counts.failed.fetch_add(1, Relaxed);
                }
            }));
        // What is not over by then goes on: a task is not ended by nobody waiting for it.
        let _ = runtime.block_on(async { tokio::time::timeout(PREPARING, begun).await });
        Ok(Self { runtime: Some(runtime), counts })
    }

    /// Requests, or bytes of those that trickle, that were sent until now.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Relaxed)
    }

    /// Requests that were answered with a refusal.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Relaxed)
    }

    /// Clients that were not let in.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.counts.failed.load(Relaxed)
    }
}

impl Drop for Harm {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
