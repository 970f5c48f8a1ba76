//! Scenarios: TOML files that say who is there, what happens, and how it is measured. Every value can be set by a flag.

pub mod city;
mod field;
mod merge;
mod paper;
mod replay;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use figment::Figment;
use figment::providers::{Format as _, Serialized, Toml};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use rand_distr::{Distribution as _, Exp};
use serde::{Deserialize, Serialize};

pub use city::City;
pub use field::Field;
pub use paper::Paper;
pub use replay::Replay;

use crate::plan::{Act, Plan, Step, Steps};

/// The scenarios that come with the program: name and text.
pub const BUILT_IN: [(&str, &str); 12] = [
    ("paper", include_str!("../../scenarios/paper.toml")),
    ("city", include_str!("../../scenarios/city.toml")),
    ("commute", include_str!("../../scenarios/commute.toml")),
    ("soak", include_str!("../../scenarios/soak.toml")),
    ("replay", include_str!("../../scenarios/replay.toml")),
    ("alarm", include_str!("../../scenarios/alarm.toml")),
    ("storm", include_str!("../../scenarios/storm.toml")),
    ("stadium", include_str!("../../scenarios/stadium.toml")),
    ("standing", include_str!("../../scenarios/standing.toml")),
    ("field", include_str!("../../scenarios/field.toml")),
    ("fanout", include_str!("../../scenarios/fanout.toml")),
    ("spike", include_str!("../../scenarios/spike.toml")),
];

/// A scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called; the file's name where it does not say.
    #[serde(default)]
    pub name: String,
    /// What it is about, in a line.
    #[serde(default)]
    pub about: String,
    /// All chance comes from it.
    #[serde(default = "seed")]
    pub seed: u64,
    /// How long.
    #[serde(default)]
    pub run: Run,
    /// How the load is driven.
    #[serde(default)]
    pub load: LoadSettings,
    /// Who is there.
    #[serde(default)]
    pub clients: Clients,
    /// How they move, where the source does not say so itself.
    #[serde(default)]
    pub moves: Moves,
    /// What happens, where the source does not say so itself.
    #[serde(default)]
    pub events: Events,
    /// When connections break.
    #[serde(default)]
    pub reconnects: Reconnects,
    /// How the broker that is started for the run is set, by its own configuration's keys.
    #[serde(default)]
    pub broker: toml::Table,
    /// What is compared, by a run for each of its values.
    pub versus: Option<Versus>,
    /// How it is put into topics for a broker that matches nothing else.
    #[serde(default)]
    pub peer: PeerSettings,
    /// A made-up town.
    pub field: Option<Field>,
    /// The paper's workload.
    pub paper: Option<Paper>,
    /// A recording.
    pub replay: Option<Replay>,
    /// Traffic on real streets.
    pub city: Option<City>,
    /// Where files are that it names: beside its own.
    #[serde(skip)]
    pub folder: PathBuf,
}

fn seed() -> u64 {
    2012
}

/// How long a run is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Seconds, warm-up included.
    pub duration_s: f64,
    /// Seconds at the start that are in no latency.
    pub warmup_s: f64,
    /// Seconds to wait for what is still to come at the end.
    pub patience_s: f64,
}

impl Default for Run {
    fn default() -> Self {
        Self { duration_s: 30.0, warmup_s: 5.0, patience_s: 20.0 }
    }
}

/// How the load is driven.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSettings {
    /// Connections that publish.
    pub publishers: u32,
    /// How.
    pub over: OverName,
    /// Events of an HTTP request at most.
    pub batch: usize,
    /// Clients whose deliveries are all compared with the oracle.
    pub checked_clients: u32,
    /// Every so many events is.
    pub checked_stride: u64,
    /// Before the names of all clients and of all objects that events are about: loads with different ones can share a broker.
    pub prefix: String,
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            publishers: 1,
            over: OverName::Websocket,
            batch: 1_000,
            checked_clients: 200,
            checked_stride: 1,
            prefix: String::new(),
        }
    }
}

/// How events are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum OverName {
    /// Each in a frame.
    Websocket,
    /// Many in a request.
    Http,
}

/// Who is there.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clients {
    /// Clients with a connection.
    pub count: u32,
    /// More who have subscriptions, made over HTTP, and no connection.
    pub silent: u64,
}

impl Default for Clients {
    fn default() -> Self {
        Self { count: 1_000, silent: 0 }
    }
}

/// How clients move.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// Seconds between two moves of a client; 0: nobody moves.
    pub interval_s: f64,
    /// Metres of a move.
    pub step_m: f64,
}

impl Default for Moves {
    fn default() -> Self {
        Self { interval_s: 1.0, step_m: 14.0 }
    }
}

/// What happens.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Events a second.
    pub rate: f64,
    /// Whether they come by themselves, as a Poisson process, or at even times.
    pub arrival: Arrival,
    /// How long they stay live, in seconds; 0: not at all.
    pub ttl_s: f64,
    /// Bytes of a text that makes them larger.
    pub padding_bytes: u32,
    /// When there is an alarm, in seconds.
    pub alarms_s: Vec<f64>,
    /// When others come, and more of them.
    pub spike: Option<Spike>,
}

impl Default for Events {
    fn default() -> Self {
        let (arrival, alarms_s) = (Arrival::Poisson, Vec::new());
        Self { rate: 500.0, arrival, ttl_s: 0.0, padding_bytes: 0, alarms_s, spike: None }
    }
}

/// From some time on other events come, and more of them.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spike {
    /// When, in seconds.
    pub at_s: f64,
    /// Events a second from then on.
    pub rate: f64,
    /// The least `severity` of those of a town, from 1 to 5: conditions may ask for that, so that more holds.
    #[serde(default = "severity_min")]
    pub severity_min: u8,
}

fn severity_min() -> u8 {
    1
}

/// Values of a setting, each for a run of its own.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Key of the scenario, as `--set` has it.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

/// How events come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Independent of each other.
    Poisson,
    /// One after the other.
    Even,
}

/// When connections break and come back.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reconnects {
    /// When, in seconds.
    pub at_s: Vec<f64>,
    /// The share of the clients whose connection does.
    pub share: f64,
    /// Seconds over which they do.
    pub within_s: f64,
    /// Whether subscriptions are durable, so that nothing is lost by it.
    pub durable: bool,
}

/// How a scenario is put into topics for a broker that matches nothing else.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerSettings {
    /// Metres of a cell's side, each cell being a topic; 0: the median radius of the circles of those who listen.
    pub cell_m: f64,
}

impl Scenario {
    /// A built-in one by its name, or one from a file, with values set by `KEY=VALUE`; later ones win.
    ///
    /// # Errors
    /// Where there is none, a key is unknown or a value cannot be: which, and where.
    pub fn load(name: &str, sets: &[String]) -> anyhow::Result<Self> {
        let text = match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            Some((_, text)) => (*text).to_owned(),
            None => {
                let path = Path::new(name);
                let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                ensure!(
                    path.exists(),
                    "there is no scenario {name}: neither a file, nor one of {}",
                    names.join(", ")
                );
                std::fs::read_to_string(path).with_context(|| format!("reading {name}"))?
            }
        };
        let mut figment = Figment::from(Toml::string(&text));
        for set in sets {
            let (key, value) =
                set.split_once('=').with_context(|| format!("--set {set}: has to be KEY=VALUE"))?;
            figment = figment.merge(Serialized::default(key.trim(), value_of(value.trim())));
        }
        let mut scenario: Self =
            figment.extract().map_err(|error| anyhow::anyhow!("scenario {name}: {}", told(error)))?;
        scenario.folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
        if scenario.name.is_empty() {
            let stem = Path::new(name).file_stem().and_then(std::ffi::OsStr::to_str);
            scenario.name = stem.unwrap_or(name).to_owned();
        }
        scenario.check().with_context(|| format!("scenario {name}"))?;
        Ok(scenario)
    }

    fn check(&self) -> anyhow::Result<()> {
        let Run { duration_s, warmup_s, patience_s } = self.run;
        let times =
            [("run.duration_s", duration_s), ("run.warmup_s", warmup_s), ("run.patience_s", patience_s)];
        let others = [
            ("moves.interval_s", self.moves.interval_s),
            ("moves.step_m", self.moves.step_m),
            ("events.rate", self.events.rate),
            ("events.ttl_s", self.events.ttl_s),
            ("reconnects.share", self.reconnects.share),
            ("reconnects.within_s", self.reconnects.within_s),
            ("peer.cell_m", self.peer.cell_m),
        ];
        for (key, value) in times.into_iter().chain(others) {
            ensure!((0.0..=1e9).contains(&value), "{key} has to be from 0 to 1,000,000,000, not {value}");
        }
        for at_s in self.events.alarms_s.iter().chain(&self.reconnects.at_s) {
            ensure!((0.0..=1e9).contains(at_s), "something happens at {at_s} s, which is no time of a run");
        }
        for at_s in &self.events.alarms_s {
            ensure!(*at_s < duration_s, "events.alarms_s: {at_s} s, and the run ends at {duration_s} s");
        }
        if let Some(Spike { at_s, rate, severity_min }) = self.events.spike {
            ensure!(
                (0.0..duration_s).contains(&at_s),
                "events.spike.at_s: {at_s} s, and the run ends at {duration_s} s"
            );
            ensure!(
                rate > 0.0 && rate <= 1e9,
                "events.spike.rate has to be more than 0 and 1,000,000,000 at most"
            );
            ensure!((1..=5).contains(&severity_min), "events.spike.severity_min has to be from 1 to 5");
        }
        if let Some(versus) = &self.versus {
            ensure!(!versus.values.is_empty(), "versus.values has to have one");
        }
        ensure!(warmup_s < duration_s, "run.warmup_s has to be less than run.duration_s");
        ensure!(self.reconnects.share <= 1.0, "reconnects.share has to be 1 at most");
        ensure!(self.load.publishers > 0, "load.publishers has to be 1 at least");
        let prefix = &self.load.prefix;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        ensure!(
            prefix.len() <= PREFIX_MAX && prefix.chars().all(is_plain),
            "load.prefix has to be {PREFIX_MAX} letters, digits, -, _ and . at most"
        );
        ensure!(self.load.batch > 0, "load.batch has to be 1 at least");
        ensure!(self.load.checked_stride > 0, "load.checked_stride has to be 1 at least");
        ensure!(self.clients.count > 0, "clients.count has to be 1 at least");
        ensure!(
            self.events.padding_bytes <= PADDING_MAX,
            "events.padding_bytes has to be {PADDING_MAX} at most"
        );
        Ok(())
    }

    /// Who is there and what happens.
    ///
    /// # Errors
    /// Where there is no source or more than one, or what it says cannot be.
    pub fn plan(&self) -> anyhow::Result<Box<dyn Plan>> {
        match (&self.field, &self.paper, &self.replay, &self.city) {
            (Some(field), None, None, None) => Ok(Box::new(field::Town::new(self, field)?)),
            (None, Some(paper), None, None) => Ok(Box::new(paper::PaperPlan::new(self, paper)?)),
            (None, None, Some(replay), None) => Ok(Box::new(replay::Recording::new(self, replay)?)),
            (None, None, None, Some(city)) => Ok(Box::new(city::CityPlan::new(self, city)?)),
            _ => bail!("a scenario has one of [field], [paper], [city] and [replay]"),
        }
    }

    /// Milliseconds within which the broker that is started for the run is to write deliveries, if that is set.
    #[must_use]
    pub fn delay_ms(&self) -> Option<u64> {
        let delay_ms = self.broker.get("admission")?.get("delay_ms")?.as_integer()?;
        u64::try_from(delay_ms).ok().filter(|delay_ms| *delay_ms > 0)
    }

    /// How long it is.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.run.duration_s)
    }

    /// It as a file.
    ///
    /// # Errors
    /// Never in practice: all of it came from TOML.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        Ok(toml::to_string(self)?)
    }
}

/// More than a broker takes, in bytes.
const PADDING_MAX: u32 = 4_000_000;

/// What is wrong with which keys, without where that was found in this program.
fn told(error: figment::Error) -> String {
    let tell = |error: figment::Error| match &error.path[..] {
        [] => error.kind.to_string(),
        path => format!("{}: {}", path.join("."), error.kind),
    };
    error.into_iter().map(tell).collect::<Vec<_>>().join("; ")
}

/// Bytes of a prefix: names stay as short as brokers want them.
const PREFIX_MAX: usize = 32;

/// A value as TOML reads it, or else as a text.
fn value_of(text: &str) -> toml::Value {
    let table = format!("value = {text}").parse::<toml::Table>().ok();
    table.and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// When events come; there is no end to them.
fn arrivals(events: &Events, seed: u64) -> Box<dyn Iterator<Item = Duration> + Send> {
    let rate = events.rate;
    if rate <= 0.0 {
        return Box::new(std::iter::empty());
    }
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x5EED);
    let (is_even, spike) = (events.arrival == Arrival::Even, events.spike);
    let mut at_s = 0.0;
    Box::new(std::iter::from_fn(move || {
        let rate = spike.filter(|spike| at_s >= spike.at_s).map_or(rate, |spike| spike.rate);
        at_s += match Exp::new(rate) {
            Ok(gaps) if !is_even => gaps.sample(&mut rng),
            _ => 1.0 / rate,
        };
        Duration::try_from_secs_f64(at_s).ok()
    }))
}

/// Whose connection breaks when. What is to be after the end is not.
fn breaks(reconnects: &Reconnects, clients: u32, seed: u64, duration: Duration) -> Steps {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0xB4EA);
    let mut steps = Vec::new();
    for at_s in &reconnects.at_s {
        for client in 0..clients {
            if rng.random::<f64>() < reconnects.share {
                let at_s = at_s + rng.random::<f64>() * reconnects.within_s;
                steps.push(Step { at: Duration::from_secs_f64(at_s), act: Act::Reconnect { client } });
            }
        }
    }
    steps.sort_by_key(|step| step.at);
    Box::new(steps.into_iter().take_while(move |step| step.at < duration))
}
