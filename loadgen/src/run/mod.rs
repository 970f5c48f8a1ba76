//! A run: a broker, its clients, a phase or several, and what is said of it.

pub mod capacity;
pub mod program;
mod record;
mod silent;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use matcher::geo::World;

use crate::drive::{Load, Phase, Settings};
use crate::endpoint::Endpoint;
use crate::observe::{self, MetricsAt, Observed, Observer};
use crate::plan::{Client, Plan};
use crate::report::record::Second;
use crate::scenario::{OverName, Scenario};
use crate::wire::cells::Cells;
use crate::wire::mqtt::Mosquitto;
use crate::wire::nats::Nats;
use crate::wire::nearcast::{Nearcast, Over};
use crate::wire::{Common, Wire};
use program::Program;
pub use record::record;

/// Files that are open besides the sockets.
const FILES: u64 = 200;

/// How long the broker may take to say its version.
const STATS_PATIENCE: Duration = Duration::from_secs(10);

/// A side of a peer's cells where nobody has a circle.
const CELL_M: f64 = 1_000.0;

/// What is loaded.
#[derive(Clone, Debug)]
pub struct Target {
    /// Another broker than nearcast.
    pub peer: Option<Peer>,
    /// Where it is.
    pub place: Place,
}

/// Brokers that match topics alone, and do what of a scenario can be told in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// MQTT 3.1.1 at QoS 0; apt-get install mosquitto.
    Mosquitto,
    /// Its core, without streams; apt-get install nats-server.
    Nats,
}

/// Where a broker is.
#[derive(Clone, Debug)]
pub enum Place {
    /// It is there.
    Running(Endpoint),
    /// A program is started for the run.
    Started {
        /// None: the one that is installed.
        program: Option<PathBuf>,
        /// Whether it is spoken to over TLS, with a certificate that is made for the run.
        is_secure: bool,
    },
}

/// A broker with all clients connected.
pub struct Stage {
    /// The load.
    pub load: Load,
    /// Who is there, connected.
    pub clients: Vec<Client>,
    /// Where the broker is.
    pub endpoint: Endpoint,
    /// Its process, where that is known.
    pub pid: Option<u32>,
    /// How it is spoken to.
    pub wire: Arc<dyn Wire>,
    /// Its version, as it says itself.
    pub version: String,
    /// Where it tells of itself.
    metrics: Option<MetricsAt>,
    /// After the load, which is dropped first.
    program: Option<Program>,
}

/// A phase, and what was seen of it from outside.
pub struct Watched {
    /// The phase.
    pub phase: Phase,
    /// When it began.
    pub begun: jiff::Timestamp,
    /// What processes used, and what the broker said of itself.
    pub observed: Observed,
    /// How the broker ended, if it was started for the run and did.
    pub ended: Option<String>,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug)]
pub enum Setup {
    /// Subscriptions of clients without a connection: done, of how many.
    Silent(u64, u64),
    /// Clients that are in, of how many.
    Clients(u64, u64),
}

impl Stage {
    /// Starts the broker if need be, makes subscriptions and connects everybody.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses somebody.
    pub fn set(
        scenario: &Scenario,
        plan: &dyn Plan,
        target: &Target,
        token: Option<&str>,
        mut watch: impl FnMut(Setup),
    ) -> anyhow::Result<Self> {
        let sockets = u64::from(scenario.clients.count) + u64::from(scenario.load.publishers) + FILES;
        let allowed =
            rlimit::increase_nofile_limit(sockets.max(1_024)).context("asking how many files may be open")?;
        ensure!(
            allowed >= sockets,
            "{sockets} sockets and files are needed, and {allowed} may be open: see `ulimit -H -n`"
        );
        let (program, endpoint) = match &target.place {
            Place::Running(endpoint) => (None, endpoint.clone()),
            Place::Started { program, is_secure } => {
                let path = program.as_deref();
                let program = match target.peer {
                    None => Program::nearcast(path, &scenario.broker, *is_secure)?,
                    Some(Peer::Mosquitto) => Program::mosquitto(path)?,
                    Some(Peer::Nats) => Program::nats(path)?,
                };
                let endpoint = program.endpoint.clone();
                (Some(program), endpoint)
            }
        };
        let prefix = &scenario.load.prefix;
        let pid = program.as_ref().map(Program::pid);
        if target.peer.is_none() {
            let silent_count = plan.silent_count();
            silent::install(plan, &endpoint, token, prefix, |done| watch(Setup::Silent(done, silent_count)))?;
        }
        let mut clients = plan.clients();
        clients.iter_mut().for_each(|client| client.name.insert_str(0, prefix));
        let wire = wire(scenario, plan.world(), &clients, target.peer, &endpoint, token);
        let settings = Settings {
            publishers: scenario.load.publishers,
            checked_clients: scenario.load.checked_clients,
            checked_stride: scenario.load.checked_stride,
            prefix: prefix.clone(),
            patience: Duration::from_secs_f64(scenario.run.patience_s),
            delay: scenario.delay_ms().map(Duration::from_millis),
        };
        let watch_clients = |opening: crate::drive::Opening| watch(Setup::Clients(opening.done, opening.of));
        let load =
            Load::open(Arc::clone(&wire), endpoint.clone(), clients.clone(), &settings, watch_clients)?;
        let metrics_at = || MetricsAt { endpoint: endpoint.clone(), token: token.map(str::to_owned) };
        let metrics = target.peer.is_none().then(metrics_at);
        let version = match target.peer {
            None => version(&endpoint, token),
            Some(_) => program.as_ref().and_then(|program| program.version.clone()).unwrap_or_default(),
        };
        Ok(Self { load, clients, endpoint, pid, wire, version, metrics, program })
    }

    /// Carries a plan out whose clients are here; `tell` hears of each second.
    ///
    /// # Errors
    /// When the broker goes away.
    pub fn phase(
        &mut self,
        scenario: &Scenario,
        plan: &dyn Plan,
        mut tell: impl FnMut(&Second) + Send + 'static,
    ) -> anyhow::Result<Watched> {
        let (begun, warmup) = (jiff::Timestamp::now(), Duration::from_secs_f64(scenario.run.warmup_s));
        let watched = observe::Watched { pid: self.pid, metrics: self.metrics.clone() };
        let mut observer = None;
        let phase = self.load.phase(plan.steps(), warmup, |begins, mut watch| {
            let count = move |row: &mut Second| {
                watch.fill(row);
                tell(row);
            };
            observer = Some(Observer::start(&watched, begins, count)?);
            Ok(())
        })?;
        let observed = observer.map(Observer::finish).unwrap_or_default();
        let ended = self.program.as_mut().and_then(Program::ended);
        Ok(Watched { phase, begun, observed, ended })
    }
}

/// What a broker of nearcast says of its version; nothing where it does not.
fn version(endpoint: &Endpoint, token: Option<&str>) -> String {
    endpoint
        .get("/v1/stats", token, STATS_PATIENCE)
        .ok()
        .and_then(|body| serde_json::from_slice::<serde_json::Value>(&body).ok())
        .and_then(|stats| stats["version"].as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// How a target is spoken to.
fn wire(
    scenario: &Scenario,
    world: World,
    clients: &[Client],
    peer: Option<Peer>,
    endpoint: &Endpoint,
    token: Option<&str>,
) -> Arc<dyn Wire> {
    let cells = || {
        let cell_m = if scenario.peer.cell_m > 0.0 { scenario.peer.cell_m } else { radius_m(clients) };
        Cells::new(world, cell_m)
    };
    match peer {
        None => {
            let over = match scenario.load.over {
                OverName::Websocket => Over::WebSocket,
                OverName::Http => Over::Http { batch: scenario.load.batch },
            };
            let common =
                Common { world, host: Arc::clone(&endpoint.authority), token: token.map(Into::into) };
            Arc::new(Nearcast { common, over })
        }
        Some(Peer::Mosquitto) => Arc::new(Mosquitto { cells: cells() }),
        Some(Peer::Nats) => Arc::new(Nats { cells: cells() }),
    }
}

/// The median radius of the circles of those who listen.
fn radius_m(clients: &[Client]) -> f64 {
    let filters = clients.iter().flat_map(|client| &client.wishes).flat_map(|wish| &wish.filters);
    let radii = filters.filter_map(|filter| filter.area.radius());
    let mut radii: Vec<f64> = radii.map(|radius| radius.metres()).filter(|metres| *metres > 0.0).collect();
    radii.sort_by(f64::total_cmp);
    radii.get(radii.len() / 2).copied().unwrap_or(CELL_M)
}
