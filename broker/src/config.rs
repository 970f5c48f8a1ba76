//! Settings: where they come from, and what is wrong with them.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Tag, Value};
use figment::{Figment, Profile, Provider};
use matcher::geo::World;
use serde::Deserialize;

/// The settings that are compiled in, with an explanation of each.
pub const DEFAULT_TOML: &str = include_str!("../config/default.toml");

/// What the names of environment variables begin with.
const ENVIRONMENT_PREFIX: &str = "BROKER__";

/// All settings. [`Config::default`] is what `config/default.toml` says, which explains each key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Config {
    pub server: Server,
    pub auth: Auth,
    pub tls: Tls,
    pub store: Store,
    pub limits: Limits,
    pub queue: Queue,
    pub outbox: Outbox,
    pub connection: Connection,
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
}

/// Key `auth.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Anybody may do everything.
    None,
    /// By JSON Web Token.
    Jwt,
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
    pub subscription_bytes: usize,
    pub subscriptions_per_client: usize,
    pub filters_per_subscription: usize,
    pub condition_bytes: usize,
    pub constraints_per_condition: usize,
    pub vertices_per_area: usize,
    pub clients: u64,
    pub connections: usize,
    pub readers_per_client: usize,
    pub events_per_second: u32,
    pub rejected_listed: usize,
    pub problems_in_a_row: u32,
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

/// Section `outbox`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Outbox {
    pub frames: usize,
    pub bytes: usize,
    pub answers: usize,
    pub overflow: OverflowName,
}

/// Key `outbox.overflow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverflowName {
    /// The oldest deliveries are lost, told by a gap.
    DropOldest,
    /// The connection is closed.
    Disconnect,
}

/// Section `connection`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml is the one explanation of each key")]
pub struct Connection {
    pub head_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub write_timeout_ms: u64,
    pub ping_interval_ms: u64,
    pub silence_timeout_ms: u64,
    pub read_buffer_bytes: usize,
    pub write_buffer_bytes: usize,
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
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
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
        defaults().extract().expect("the compiled-in settings are complete, which a test holds")
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

impl Config {
    /// Puts the settings together: defaults, then `file`, then the environment, then `flags` (`section.key` and
    /// value), and checks all that can be checked without touching anything.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault found.
    pub fn load(file: Option<&Path>, flags: Vec<(&'static str, Value)>) -> Result<Self, ConfigError> {
        let figment = assemble(file, flags)?;
        match figment.extract::<Self>() {
            Ok(config) => {
                let faults = config.faults();
                if faults.is_empty() { Ok(config) } else { Err(ConfigError { faults }) }
            }
            Err(error) => Err(ConfigError { faults: error.into_iter().map(|one| one.to_string()).collect() }),
        }
    }

    /// All values that cannot be used.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        match self.server.listen.parse::<SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() && !self.server.insecure => faults.push(format!(
                "server.listen {address} is not a loopback address and nobody would have to say who they are: \
                 add --insecure if that is meant"
            )),
            Ok(_) => {}
            Err(_) => faults.push(format!(
                "server.listen {:?} is not an address with a port, such as 127.0.0.1:7070",
                self.server.listen
            )),
        }
        self.fault_unless_here(&mut faults);
        self.fault_unless_positive(&mut faults);
        if self.connection.silence_timeout_ms <= self.connection.ping_interval_ms {
            faults.push(
                "connection.silence_timeout_ms must be more than connection.ping_interval_ms, or living \
                 connections would be taken for dead"
                    .to_owned(),
            );
        }
        if self.server.shards > 1024 {
            faults.push(format!("server.shards {} is more than 1024", self.server.shards));
        }
        faults
    }

    /// What the protocol has and this build has not yet.
    fn fault_unless_here(&self, faults: &mut Vec<String>) {
        let mut missing = |is_set: bool, key: &str, what: &str| {
            if is_set {
                faults.push(format!("{key} is not there yet: {what}"));
            }
        };
        missing(self.auth.mode == AuthMode::Jwt, "auth.mode jwt", "this build cannot check tokens");
        missing(!self.auth.jwks.is_empty(), "auth.jwks", "this build cannot check tokens");
        missing(!self.tls.cert.is_empty(), "tls.cert", "this build speaks no TLS; put a TLS proxy before it");
        missing(!self.tls.key.is_empty(), "tls.key", "this build speaks no TLS; put a TLS proxy before it");
        missing(!self.store.data.is_empty(), "store.data", "this build keeps nothing on disk");
        missing(self.store.fsync != Fsync::Always, "store.fsync", "this build keeps nothing on disk");
        if matches!(self.server.engine, EngineName::Gpu | EngineName::Clcb) {
            faults.push("server.engine gpu and clcb are not there yet: this build has no GPU engine".to_owned());
        }
    }

    fn fault_unless_positive(&self, faults: &mut Vec<String>) {
        let limits = &self.limits;
        let counts = [
            ("limits.body_bytes", usize::try_from(limits.body_bytes).unwrap_or(usize::MAX)),
            ("limits.frame_bytes", limits.frame_bytes),
            ("limits.event_bytes", limits.event_bytes),
            ("limits.attributes_per_event", limits.attributes_per_event),
            ("limits.depth", limits.depth),
            ("limits.name_bytes", limits.name_bytes),
            ("limits.text_bytes", limits.text_bytes),
            ("limits.client_name_bytes", limits.client_name_bytes),
            ("limits.subscription_bytes", limits.subscription_bytes),
            ("limits.subscriptions_per_client", limits.subscriptions_per_client),
            ("limits.filters_per_subscription", limits.filters_per_subscription),
            ("limits.condition_bytes", limits.condition_bytes),
            ("limits.constraints_per_condition", limits.constraints_per_condition),
            ("limits.vertices_per_area", limits.vertices_per_area),
            ("limits.connections", limits.connections),
            ("limits.readers_per_client", limits.readers_per_client),
            ("limits.problems_in_a_row", limits.problems_in_a_row as usize),
            ("queue.commands", self.queue.commands),
            ("queue.batch", self.queue.batch),
            ("outbox.frames", self.outbox.frames),
            ("outbox.bytes", self.outbox.bytes),
            ("outbox.answers", self.outbox.answers),
            ("connection.head_timeout_ms", self.connection.head_timeout_ms as usize),
            ("connection.body_timeout_ms", self.connection.body_timeout_ms as usize),
            ("connection.write_timeout_ms", self.connection.write_timeout_ms as usize),
            ("connection.ping_interval_ms", self.connection.ping_interval_ms as usize),
            ("connection.read_buffer_bytes", self.connection.read_buffer_bytes),
            ("connection.write_buffer_bytes", self.connection.write_buffer_bytes),
        ];
        let zeros = counts.iter().filter(|(_, count)| *count == 0);
        faults.extend(zeros.map(|(key, _)| format!("{key} must be 1 or more")));
        if limits.depth > 100 {
            faults.push(format!("limits.depth {} is more than 100", limits.depth));
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
        self.server.listen.parse::<SocketAddr>().map(|address| address.ip()).is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// How many engine threads: as set, or one per core.
    #[must_use]
    pub fn shards_count(&self) -> usize {
        match self.server.shards {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        }
    }

    /// How long a stop may take.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_millis(self.server.shutdown_grace_ms)
    }
}

/// Puts the layers together; keys and types are right then, values may not be.
fn assemble(file: Option<&Path>, flags: Vec<(&'static str, Value)>) -> Result<Figment, ConfigError> {
    let mut figment = defaults();
    if let Some(path) = file {
        if !path.is_file() {
            return Err(ConfigError { faults: vec![format!("there is no file {}", path.display())] });
        }
        figment = figment.merge(Toml::file_exact(path));
    }
    figment = figment.merge(Env::prefixed(ENVIRONMENT_PREFIX).split("__"));
    for (key, value) in flags {
        figment = figment.merge(Serialized::default(key, value));
    }
    let faults = unknown_and_mistyped(&figment);
    if faults.is_empty() { Ok(figment) } else { Err(ConfigError { faults }) }
}

/// The settings that are in force, each under its explanation: `config/default.toml` with other values.
///
/// # Errors
/// As [`Config::load`].
pub fn explain(file: Option<&Path>, flags: Vec<(&'static str, Value)>) -> Result<String, ConfigError> {
    let figment = assemble(file, flags)?;
    let mut text = String::new();
    let mut section = "";
    for line in DEFAULT_TOML.lines() {
        let shown = match line.split_once(" = ") {
            Some((key, _)) if !line.starts_with('#') => {
                let value = figment.find_value(&format!("{section}.{key}")).ok();
                value.and_then(|value| Some(format!("{key} = {}", literal(&value)?)))
            }
            _ => None,
        };
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        }
        text.push_str(shown.as_deref().unwrap_or(line));
        text.push('\n');
    }
    Ok(text)
}

/// A value as TOML writes it.
fn literal(value: &Value) -> Option<String> {
    match value {
        // JSON's texts are TOML's basic strings.
        Value::String(_, text) => serde_json::to_string(text).ok(),
        Value::Bool(_, truth) => Some(truth.to_string()),
        Value::Num(..) => value.to_u128().map(|number| number.to_string()),
        Value::Char(..) | Value::Empty(..) | Value::Dict(..) | Value::Array(..) => None,
    }
}

fn defaults() -> Figment {
    Figment::from(Toml::string(DEFAULT_TOML))
}

/// Compares what was put together with the defaults, whose keys are all there are. serde would stop at the first.
fn unknown_and_mistyped(figment: &Figment) -> Vec<String> {
    let known = defaults().data().ok().and_then(|mut data| data.remove(&Profile::Default)).unwrap_or_default();
    let given = match figment.data() {
        Ok(mut data) => data.remove(&Profile::Default).unwrap_or_default(),
        Err(error) => return error.into_iter().map(|one| one.to_string()).collect(),
    };
    let mut faults = Vec::new();
    compare(figment, &known, &given, "", &mut faults);
    faults
}

fn compare(figment: &Figment, known: &Dict, given: &Dict, path: &str, faults: &mut Vec<String>) {
    for (key, value) in given {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (known.get(key), value) {
            (None, _) => faults.push(format!("{path} is not a setting{}", origin(figment, value.tag()))),
            (Some(Value::Dict(_, known)), Value::Dict(_, given)) => {
                compare(figment, known, given, &path, faults);
            }
            (Some(default), value) => {
                let right = match default {
                    Value::String(..) => matches!(value, Value::String(..)),
                    Value::Bool(..) => matches!(value, Value::Bool(..)),
                    Value::Num(..) => value.to_u128().is_some(),
                    Value::Dict(..) => false,
                    Value::Char(..) | Value::Empty(..) | Value::Array(..) => true,
                };
                if !right {
                    let kind = match default {
                        Value::String(..) => "a text",
                        Value::Bool(..) => "true or false",
                        Value::Num(..) => "a whole number, 0 or more",
                        Value::Dict(..) => "a section",
                        Value::Char(..) | Value::Empty(..) | Value::Array(..) => "something else",
                    };
                    faults.push(format!("{path} must be {kind}{}", origin(figment, value.tag())));
                }
            }
        }
    }
}

/// Where a value came from, for the message.
fn origin(figment: &Figment, tag: Tag) -> String {
    figment.get_metadata(tag).map_or_else(String::new, |metadata| match &metadata.source {
        Some(source) => format!(" (in {source})"),
        None => format!(" (in {})", metadata.name),
    })
}
