//! Settings: where they come from, and what is wrong with them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};
use matcher::area::{CORRIDOR_POSITIONS_MAX, POLYGON_POSITIONS_MAX};
use matcher::condition::text::TEXT_BYTES_MAX;
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
    pub position_bytes: usize,
    pub subscription_bytes: usize,
    pub subscriptions_per_client: usize,
    pub filters_per_subscription: usize,
    pub condition_bytes: usize,
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
    /// Puts the settings together and checks all that can be checked without touching anything.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault found.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let figment = assemble(sources)?;
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
            faults.push(
                "server.engine gpu and clcb are not there yet: this build has no GPU engine".to_owned(),
            );
        }
    }

    fn fault_unless_positive(&self, faults: &mut Vec<String>) {
        let limits = &self.limits;
        let counts = [
            ("limits.body_bytes", limits.body_bytes),
            ("limits.frame_bytes", limits.frame_bytes as u64),
            ("limits.event_bytes", limits.event_bytes as u64),
            ("limits.attributes_per_event", limits.attributes_per_event as u64),
            ("limits.depth", limits.depth as u64),
            ("limits.name_bytes", limits.name_bytes as u64),
            ("limits.text_bytes", limits.text_bytes as u64),
            ("limits.client_name_bytes", limits.client_name_bytes as u64),
            ("limits.position_bytes", limits.position_bytes as u64),
            ("limits.subscription_bytes", limits.subscription_bytes as u64),
            ("limits.subscriptions_per_client", limits.subscriptions_per_client as u64),
            ("limits.filters_per_subscription", limits.filters_per_subscription as u64),
            ("limits.condition_bytes", limits.condition_bytes as u64),
            ("limits.vertices_per_area", limits.vertices_per_area as u64),
            ("limits.connections", limits.connections as u64),
            ("limits.readers_per_client", limits.readers_per_client as u64),
            ("limits.problems_in_a_row", limits.problems_in_a_row.into()),
            ("queue.commands", self.queue.commands as u64),
            ("queue.batch", self.queue.batch as u64),
            ("outbox.frames", self.outbox.frames as u64),
            ("outbox.bytes", self.outbox.bytes as u64),
            ("outbox.answers", self.outbox.answers as u64),
            ("connection.head_timeout_ms", self.connection.head_timeout_ms),
            ("connection.body_timeout_ms", self.connection.body_timeout_ms),
            ("connection.write_timeout_ms", self.connection.write_timeout_ms),
            ("connection.ping_interval_ms", self.connection.ping_interval_ms),
            ("connection.read_buffer_bytes", self.connection.read_buffer_bytes as u64),
            ("connection.write_buffer_bytes", self.connection.write_buffer_bytes as u64),
        ];
        let zeros = counts.iter().filter(|(_, count)| *count == 0);
        faults.extend(zeros.map(|(key, _)| format!("{key} must be 1 or more")));
        let ceilings = [
            ("limits.depth", limits.depth, 100),
            (
                "limits.vertices_per_area",
                limits.vertices_per_area,
                POLYGON_POSITIONS_MAX.min(CORRIDOR_POSITIONS_MAX),
            ),
            ("limits.condition_bytes", limits.condition_bytes, TEXT_BYTES_MAX),
        ];
        let high = ceilings.iter().filter(|(_, value, most)| value > most);
        faults.extend(high.map(|(key, value, most)| format!("{key} {value} is more than {most}")));
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

/// One setting from somewhere.
struct Single {
    origin: String,
    key: String,
    value: Value,
}

impl Provider for Single {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = self
            .key
            .rsplit('.')
            .fold(self.value.clone(), |value, key| Value::from(Dict::from([(key.to_owned(), value)])));
        let dict = nested.into_dict().unwrap_or_default();
        Ok(Map::from([(Profile::Default, dict)]))
    }
}

/// Puts the layers together; keys and types are right then, values may not be.
fn assemble(sources: &Sources) -> Result<Figment, ConfigError> {
    let Sources { file, environment, flags } = sources;
    let mut figment = defaults();
    if let Some(path) = file {
        if !path.is_file() {
            return Err(ConfigError { faults: vec![format!("there is no file {}", path.display())] });
        }
        figment = figment.merge(Toml::file_exact(path));
    }
    for (name, value) in environment {
        let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
        let key = key.to_lowercase().replace("__", ".");
        let value = value.parse().unwrap_or_else(|_| Value::from(value.as_str()));
        figment = figment.merge(Single { origin: format!("environment variable {name}"), key, value });
    }
    for (key, value) in flags {
        figment = figment.merge(Single {
            origin: "command line".to_owned(),
            key: (*key).to_owned(),
            value: value.clone(),
        });
    }
    let faults = unknown_and_mistyped(&figment);
    if faults.is_empty() { Ok(figment) } else { Err(ConfigError { faults }) }
}

/// The settings that are in force, each under its explanation: `config/default.toml` with other values.
///
/// # Errors
/// As [`Config::load`].
pub fn explain(sources: &Sources) -> Result<String, ConfigError> {
    let figment = assemble(sources)?;
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

/// A whole number, 0 or more.
fn natural(value: &Value) -> Option<u128> {
    value.to_u128().or_else(|| u128::try_from(value.to_i128()?).ok())
}

/// A value as TOML writes it.
fn literal(value: &Value) -> Option<String> {
    match value {
        // JSON's texts are TOML's basic strings.
        Value::String(_, text) => serde_json::to_string(text).ok(),
        Value::Bool(_, truth) => Some(truth.to_string()),
        Value::Num(..) => natural(value).map(|number| number.to_string()),
        Value::Char(..) | Value::Empty(..) | Value::Dict(..) | Value::Array(..) => None,
    }
}

fn defaults() -> Figment {
    Figment::from(Toml::string(DEFAULT_TOML))
}

/// Compares what was put together with the defaults, whose keys are all there are. serde would stop at the first.
fn unknown_and_mistyped(figment: &Figment) -> Vec<String> {
    let known =
        defaults().data().ok().and_then(|mut data| data.remove(&Profile::Default)).unwrap_or_default();
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
                    Value::Num(..) => natural(value).is_some(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(flags: Vec<(&'static str, Value)>) -> Sources {
        Sources { flags, ..Sources::default() }
    }

    fn load_with(toml: &str, mut sources: Sources) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nearcast.toml");
        std::fs::write(&path, toml).unwrap();
        sources.file = Some(path);
        Config::load(&sources)
    }

    fn load(toml: &str, flags: Vec<(&'static str, Value)>) -> Result<Config, ConfigError> {
        load_with(toml, sources(flags))
    }

    #[test]
    fn the_defaults_are_complete_and_without_faults() {
        assert_eq!(Config::default().faults(), Vec::<String>::new());
        assert_eq!(Config::default().server.listen, "127.0.0.1:7070");
    }

    #[test]
    fn every_key_is_explained() {
        let mut explained = false;
        for line in DEFAULT_TOML.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(explained, "{line} has no explanation");
            }
            // Keys of a group share the explanation above them.
            explained = line.starts_with('#') || (explained && line.contains(" = "));
        }
    }

    #[test]
    fn later_layers_win() {
        let toml = "[server]\nlisten = \"127.0.0.1:1\"\nshards = 3\n[limits]\ndepth = 9\n";
        let config = load(toml, vec![("server.listen", Value::from("127.0.0.1:2"))]).unwrap();
        assert_eq!(config.server.listen, "127.0.0.1:2");
        assert_eq!((config.server.shards, config.limits.depth), (3, 9));
        assert_eq!(config.queue.commands, Config::default().queue.commands);
    }

    #[test]
    fn the_environment_stands_between_file_and_flags() {
        let variables = [
            ("BROKER__SERVER__LISTEN", "127.0.0.1:2"),
            ("BROKER__SERVER__SHARDS", "4"),
            ("BROKER__LIMITS__BODY_BYTES", "77"),
            ("BROKER", "no setting"),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut sources = sources(vec![("server.shards", Value::from(5_u64))]);
        sources.environment = variables.iter().map(owned).collect();
        let toml = "[server]\nlisten = \"127.0.0.1:1\"\nshards = 3\n";
        let config = load_with(toml, sources.clone()).unwrap();
        assert_eq!(config.server.listen, "127.0.0.1:2");
        assert_eq!((config.server.shards, config.limits.body_bytes), (5, 77));
        sources.environment.push(owned(&("BROKER__SERVER__LISTN", "x")));
        let error = load_with(toml, sources).unwrap_err();
        assert_eq!(
            error.faults,
            ["server.listn is not a setting (in environment variable BROKER__SERVER__LISTN)"]
        );
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let toml = "[server]\nshard = 3\nlisten = 5\n[limit]\na = 1\n[limits]\ndepth = -1\n";
        let faults = load(toml, Vec::new()).unwrap_err().faults;
        assert_eq!(faults.len(), 4, "{faults:?}");
        let toml =
            "[server]\nlisten = \"0.0.0.0:1\"\nengine = \"gpu\"\n[limits]\ndepth = 0\n[tls]\ncert = \"x\"\n";
        let faults = load(toml, Vec::new()).unwrap_err().faults;
        assert_eq!(faults.len(), 4, "{faults:?}");
    }

    #[test]
    fn beyond_loopback_nobody_is_let_in_by_accident() {
        for listen in ["0.0.0.0:7070", "[::]:7070", "192.168.1.4:80"] {
            let flags = |insecure: bool| {
                vec![("server.listen", Value::from(listen)), ("server.insecure", Value::from(insecure))]
            };
            let faults = Config::load(&sources(flags(false))).unwrap_err().faults;
            assert!(faults[0].contains("--insecure"), "{faults:?}");
            assert!(Config::load(&sources(flags(true))).is_ok());
        }
        assert!(Config::load(&sources(vec![("server.listen", Value::from("[::1]:0"))])).is_ok());
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let flags = vec![("server.shards", Value::from(7_u64)), ("server.engine", Value::from("scan"))];
        let shown = explain(&sources(flags)).unwrap();
        let config = load(&shown, Vec::new()).unwrap();
        assert_eq!((config.server.shards, config.server.engine), (7, EngineName::Scan));
        assert_eq!(explain(&Sources::default()).unwrap(), DEFAULT_TOML);
    }
}
