//! Settings: what there is to set, where it comes from, and what is wrong with it.

mod faults;
pub(crate) mod https;
pub(crate) mod interests;
mod layers;
mod quotas;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use figment::Figment;
use figment::value::Value;
use matcher::geo::World;
use serde::Deserialize;

pub use crate::model::delivery::OverflowName;
pub use layers::explain;
pub(crate) use quotas::{Allotment, Allotments};

/// The settings that are compiled in, with an explanation of each.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Metres to which positions are shown where there is nobody to hide them from.
const ALONE_M: u32 = 1;

/// All settings. [`Config::default`] is what `config/default.toml` says, which explains each key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Config {
    pub server: Server,
    pub auth: Auth,
    pub tls: Tls,
    pub store: Store,
    pub cluster: Cluster,
    pub limits: Limits,
    pub quotas: Quotas,
    pub sessions: Sessions,
    pub situations: Situations,
    pub checks: Checks,
    pub rules: Rules,
    pub groups: Groups,
    pub queue: Queue,
    pub admission: Admission,
    pub outbox: Outbox,
    pub push: Push,
    pub routes: Routes,
    pub connection: Connection,
    pub privacy: Privacy,
    pub console: Console,
    pub telemetry: Telemetry,
    pub log: Log,
}

/// Section `server`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Server {
    pub listen: String,
    pub insecure: bool,
    pub world: WorldName,
    pub engine: EngineName,
    pub shards: usize,
    pub shutdown_grace_ms: u64,
    pub allowed_origins: String,
    pub hosts: String,
}

/// Key `server.world`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WorldName {
    /// WGS 84 degrees.
    Geodetic,
    /// Cartesian metres.
    Planar,
}

/// Key `server.engine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// The best that this machine and build have.
    Auto,
    /// Hierarchical grid on the CPU.
    Cells,
    /// CUDA, in batches.
    Gpu,
    /// CUDA, the paper's algorithm to the letter.
    Clcb,
    /// Every filter, exactly.
    Scan,
}

/// Section `auth`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Auth {
    pub mode: AuthMode,
    pub jwks: String,
    pub issuer: String,
    pub audience: String,
    pub tenant_claim: String,
    pub ca: String,
    pub private_addresses: bool,
    pub zones: String,
    pub leeway_s: u64,
}

/// Key `auth.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Anybody may do everything.
    None,
    /// By JSON Web Token.
    Jwt,
    /// By JSON Web Token, with keys that the issuer publishes.
    Oidc,
}

/// Section `tls`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Tls {
    pub cert: String,
    pub key: String,
}

/// Section `store`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Store {
    pub data: String,
    pub fsync: Fsync,
    pub fsync_ms: u64,
    pub ack_delay_ms: u64,
}

/// Section `cluster`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Cluster {
    pub nats: String,
    pub credentials: String,
    pub system_nats: String,
    pub system_credentials: String,
    pub ca: String,
    pub name: String,
    pub replicas: usize,
    pub url: String,
    pub partition: u32,
    pub partitions: u32,
    pub events_bytes: u64,
}

impl Cluster {
    /// Whether the broker is a member of one.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.nats.is_empty()
    }

    /// Whether several brokers of it are active at the same time, each with the clients of its partition.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        self.is_set() && self.partitions > 1
    }
}

/// Key `store.fsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Fsync {
    /// Before anything is acknowledged.
    Always,
    /// Now and then.
    Interval,
}

/// Section `limits`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Limits {
    pub body_bytes: u64,
    pub frame_bytes: usize,
    pub event_bytes: usize,
    pub attributes_per_event: usize,
    pub depth: usize,
    pub name_bytes: usize,
    pub text_bytes: usize,
    pub client_name_bytes: usize,
    pub position_bytes: usize,
    pub track_bytes: usize,
    pub track_points: usize,
    pub track_m: u64,
    pub subscription_bytes: usize,
    pub subscription_bytes_per_client: usize,
    pub push_subscription_bytes: usize,
    pub subscriptions_per_client: usize,
    pub filters_per_subscription: usize,
    pub condition_bytes: usize,
    pub constraints_per_client: u64,
    pub vertices_per_area: usize,
    pub nearest: u32,
    pub nearest_filters: usize,
    pub members_per_subscription: usize,
    pub members_per_client: usize,
    pub ttl_s: u64,
    pub derived_depth: u32,
    pub live_events: u64,
    pub live_bytes: u64,
    pub page_bytes: u64,
    pub page_bytes_per_client: u64,
    pub clients: u64,
    pub connections: usize,
    pub unheard_per_address: usize,
    pub readers_per_client: usize,
    pub events_per_second: u32,
    pub moves_per_second: u32,
    pub rejected_listed: usize,
    pub rejected_bytes: usize,
    pub problems_in_a_row: u32,
}

/// Section `quotas`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Quotas {
    pub tenant_clients: i64,
    pub tenant_subscriptions: i64,
    pub tenant_constraints: i64,
    pub tenant_live_events: i64,
    pub tenant_live_bytes: i64,
    pub tenant_connections: i64,
    pub tenant_push_messages: i64,
    pub tenant_events_per_second: u32,
    pub tenant_moves_per_second: u32,
    pub tenant_engine_ms_per_second: i64,
}

/// Section `sessions`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Sessions {
    pub inaccurate_fixes: InaccurateFixes,
    pub idle_s: u64,
    pub recent_events: usize,
    pub recent_bytes: usize,
    pub kept_frames: usize,
    pub kept_bytes: usize,
    pub kept_s: u64,
    pub kept_total_bytes: usize,
}

/// Section `situations`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Situations {
    pub threads: usize,
    pub per_tenant: usize,
    pub engine: SituationEngine,
    pub comparisons_max: u64,
    pub comparisons_events_per_s: u32,
    pub findings_per_second: u32,
    pub tenant_findings_per_second: u32,
    pub tenant_state_bytes: usize,
    pub tenant_time_share: f64,
    pub kept_events: usize,
    pub kept_bytes: usize,
}

/// Key `situations.engine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SituationEngine {
    /// The best that this machine and build have.
    Auto,
    /// The processor.
    Cpu,
    /// A device.
    Gpu,
}

/// Section `checks`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Checks {
    pub hold_ms: u64,
}

/// Section `rules`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Rules {
    pub steps: u64,
    pub looks: u64,
    pub words: usize,
    pub constraints: usize,
}

/// Section `groups`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Groups {
    pub candidates: usize,
    pub pairs: usize,
    pub looks: usize,
}

/// Key `sessions.inaccurate_fixes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InaccurateFixes {
    /// They neither let in nor out.
    Hold,
    /// They count as if they were exact.
    Use,
}

/// Section `push`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Push {
    pub enabled: bool,
    pub key: String,
    pub contact: String,
    pub every_s: u64,
    pub ttl_s: u64,
    pub queue: usize,
    pub sends: usize,
    pub sends_per_origin: usize,
    pub ca: String,
    pub private_addresses: bool,
}

/// Section `queue`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Queue {
    pub commands: usize,
    pub wait_ms: u64,
    pub batch: usize,
}

impl Queue {
    /// Commands that an engine takes at once, as set; or for a CPU few, so that the first does not wait for the last; more
    /// where they are committed to a disk, which takes about as long for many; and for a device all that may wait, for that is
    /// what makes it quick.
    #[must_use]
    pub fn batch_of(&self, on_device: bool, on_disk: bool) -> usize {
        match self.batch {
            0 if on_device => self.commands.min(BATCH_ON_DEVICE),
            0 if on_disk => BATCH_ON_DISK,
            0 => BATCH_ON_CPU,
            batch => batch,
        }
    }
}

/// Commands that an engine on the CPU takes at once unless set.
const BATCH_ON_CPU: usize = 512;
/// Commands that an engine on the CPU takes at once, unless set, where its commands are committed to a disk.
const BATCH_ON_DISK: usize = 2_048;
/// Commands that an engine on a device takes at once at most, unless set.
const BATCH_ON_DEVICE: usize = 65_536;

/// Section `admission`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Admission {
    pub delay_ms: u64,
    pub controller: ControllerName,
    pub tardiness: f64,
    pub kp: f64,
    pub ki: f64,
    pub change_bytes_per_second: u32,
    pub engine_ms_per_second: u32,
}

/// Key `admission.controller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControllerName {
    /// A fixed part of the delay is for waiting.
    Fixed,
    /// As much as keeps deliveries in time.
    Pi,
}

/// Section `outbox`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Outbox {
    pub frames: usize,
    pub bytes: usize,
    pub answers: usize,
    pub answer_bytes: usize,
    pub overflow: OverflowName,
}

/// Section `connection`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Connection {
    pub head_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub head_bytes: usize,
    pub body_timeout_ms: u64,
    pub body_bytes_per_second: u64,
    pub write_timeout_ms: u64,
    pub ping_interval_ms: u64,
    pub silence_timeout_ms: u64,
    pub read_buffer_bytes: usize,
    pub write_buffer_bytes: usize,
}

/// Section `privacy`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Privacy {
    pub round_m: i32,
}

/// Section `routes`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Routes {
    pub streets: String,
    pub areas_per_client: usize,
    pub client_bytes: u64,
    pub tenant_bytes: u64,
    pub slow: SlowStreets,
}

/// Section `routes.slow`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct SlowStreets {
    #[serde(rename = "where")]
    pub condition: String,
    pub factor: f64,
    pub radius_m: f64,
    pub derived: bool,
    pub hold_s: u64,
}

/// Section `console`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Console {
    pub base_map: String,
    pub object: String,
    pub interests: String,
    pub notice: String,
}

/// The word for the roads of the demo in place of a path, as key `console.base_map`.
pub(crate) const DEMO_ROADS: &str = "demo";

/// Section `telemetry`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Telemetry {
    pub otlp_endpoint: String,
    pub sample: f64,
    pub service_name: String,
}

/// Section `log`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Log {
    pub filter: String,
    pub format: LogFormat,
}

/// Key `log.format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// Where settings come from, besides the defaults. Later ones win.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A settings file.
    pub file: Option<PathBuf>,
    /// Variables, of which those named `BROKER__SECTION__KEY` count.
    pub environment: Vec<(String, String)>,
    /// `section.key` and value.
    pub flags: Vec<(&'static str, Value)>,
}

/// Everything that is wrong with the settings, told at once.
#[derive(Debug, thiserror::Error)]
#[error("the settings cannot be used:\n  {}", faults.join("\n  "))]
pub struct ConfigError {
    /// One sentence each.
    pub faults: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        layers::defaults().extract().expect("the compiled-in settings are complete, which a test holds")
    }
}

impl WorldName {
    /// Name of the world, as the settings and the protocol have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Geodetic => "geodetic",
            Self::Planar => "planar",
        }
    }
}

impl From<WorldName> for World {
    fn from(name: WorldName) -> Self {
        match name {
            WorldName::Geodetic => Self::Geodetic,
            WorldName::Planar => Self::Planar,
        }
    }
}

impl Limits {
    /// Limits under which nothing of a document is refused that any settings would have let pass. All other limits stay as
    /// set.
    #[must_use]
    pub fn lenient(&self) -> Self {
        Self {
            event_bytes: usize::MAX,
            attributes_per_event: usize::MAX,
            depth: faults::DEPTH_MAX,
            name_bytes: usize::MAX,
            text_bytes: usize::MAX,
            filters_per_subscription: usize::MAX,
            condition_bytes: usize::MAX,
            vertices_per_area: usize::MAX,
            nearest: u32::MAX,
            nearest_filters: usize::MAX,
            ttl_s: faults::TTL_S_MAX,
            ..self.clone()
        }
    }
}

impl Config {
    /// Puts the settings together and checks all that can be checked without touching anything.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault found.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        Self::of(&layers::assemble(sources)?)
    }

    fn of(figment: &Figment) -> Result<Self, ConfigError> {
        match figment.extract::<Self>() {
            Ok(config) => {
                let faults = config.faults();
                if faults.is_empty() { Ok(config) } else { Err(ConfigError { faults }) }
            }
            Err(error) => {
                Err(ConfigError { faults: error.into_iter().map(|one| layers::told(&one)).collect() })
            }
        }
    }

    /// Where to listen.
    ///
    /// # Panics
    /// On settings with faults.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.listen.parse().expect("faults() has been asked")
    }

    /// Whether only this machine can reach the broker.
    #[must_use]
    pub fn on_loopback(&self) -> bool {
        self.server
            .listen
            .parse::<SocketAddr>()
            .map(|address| address.ip())
            .is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// The accuracy in metres with which others see a client's position; 0 where it is not shown at all.
    #[must_use]
    pub fn shown_m(&self) -> u32 {
        let alone = self.on_loopback() && !self.wants_tokens();
        u32::try_from(self.privacy.round_m).unwrap_or(if alone { ALONE_M } else { 0 })
    }

    /// Whether everybody has to say who they are.
    #[must_use]
    pub fn wants_tokens(&self) -> bool {
        self.auth.mode != AuthMode::None
    }

    /// How many engine threads on the CPU: as set, or one for two cores. Devices need one thread for all of them.
    #[must_use]
    pub fn shards_count(&self) -> usize {
        match self.server.shards {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
            count => count,
        }
    }

    /// How long a stop may take.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_millis(self.server.shutdown_grace_ms)
    }
}

/// The settings that a file's text and the environment make, and how they are shown.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn of_text(text: &str, environment: &[(String, String)]) -> Result<(Config, String), ConfigError> {
    use figment::providers::{Format as _, Toml};
    let figment = layers::over(layers::defaults().merge(Toml::string(text)), environment, &[])?;
    Ok((Config::of(&figment)?, layers::explained(&figment)))
}

#[cfg(test)]
mod tests;
