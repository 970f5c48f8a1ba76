//! What a run was, on what, and what came of it: one document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::latency::Latency;

/// The version of the document. Members may be added to one; readers pass over those that they do not know.
pub const SCHEMA: u32 = 1;

/// All about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was run.
    pub scenario: Scenario,
    /// Against what.
    pub target: Target,
    /// Where.
    pub machine: Machine,
    /// When it began.
    pub begun: jiff::Timestamp,
    /// Seconds at the start that count in the timeline alone.
    pub warm_up_s: f64,
    /// Seconds that everything else is about.
    pub measured_s: f64,
    /// How many threads the load ran on: as many cores are all that it could have used.
    pub load_threads: u32,
    /// How often what.
    pub totals: Totals,
    /// How long what took, each by one of the names in [`latency`](super::latency) or by its own.
    pub latencies: Vec<Latency>,
    /// Whether the right deliveries came; none where nobody looked.
    pub check: Option<Check>,
    /// The whole run, warm-up included, second by second; longer rows where it was long.
    pub timeline: Vec<Second>,
    /// Where memory and processor time were heading.
    #[serde(default)]
    pub slopes: Slopes,
    /// What happened once.
    #[serde(default)]
    pub milestones: Vec<Milestone>,
    /// The rates that were tried, in this order; none unless a capacity was sought.
    #[serde(default)]
    pub trials: Vec<Trial>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its TOML, with everything that flags and the environment changed.
    pub toml: String,
    /// All randomness comes from it.
    pub seed: u64,
    /// What one should know of it besides, a sentence each.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Its numbers by name, `clients` and `rate` (events a second) among them: what a sweep goes over.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `nearcast`, `mosquitto`, `nats`.
    pub name: String,
    /// As it says itself.
    pub version: String,
    /// Host and port.
    pub address: String,
    /// What of the scenario it does not do, or the load does in its place, a sentence each.
    #[serde(default)]
    pub shortfalls: Vec<String>,
}

/// The machine of the load, and of a target on loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// That this process may use.
    pub cores: u32,
    /// The processor's name; empty where it is not known, and so are the others.
    pub processor: String,
    /// All there is.
    pub memory_bytes: u64,
    /// Its name and version.
    pub kernel: String,
}

/// How often what happened while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Events.
    pub events: Requests,
    /// Moves.
    pub moves: Requests,
    /// Events that came to clients, each counted for each client.
    pub deliveries: u64,
    /// That the load read from its sockets.
    pub bytes_in: u64,
    /// That it wrote to them.
    pub bytes_out: u64,
    /// What went wrong, by kind.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// How often a client was told of a gap.
    pub gaps: u64,
    /// Deliveries that those told to be lost.
    pub gap_deliveries: u64,
    /// Deliveries that a client had had before.
    pub duplicates: u64,
    /// Deliveries that came after one that was due later.
    pub out_of_order: u64,
    /// Deliveries that are missing in a session, and that no gap told of.
    #[serde(default)]
    pub holes: u64,
    /// Connections that were made again.
    pub reconnects: u64,
    /// Requests without an answer, and required deliveries that had not come, when the run stopped waiting.
    pub left_over: u64,
}

/// What became of what was asked of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Due while it was measured.
    pub intended: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that the target said it took. Moves ask for that only when their client is checked.
    pub accepted: u64,
    /// Requests that the target refused, by the reason that it gave.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
}

/// What came, compared with what should have come by the oracle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Clients whose deliveries were all looked at.
    pub clients_checked: u64,
    /// Clients that there were.
    pub clients_count: u64,
    /// Deliveries that had to come to those.
    pub required: u64,
    /// Required ones that came.
    pub came: u64,
    /// Required ones that did not, and that no gap told of.
    pub missing: u64,
    /// Deliveries that should not have come.
    pub spurious: u64,
    /// Deliveries that nobody asked for, of a target that cannot be told exactly what is wanted: the receiver throws them away.
    #[serde(default)]
    pub superfluous: u64,
    /// Deliveries that came again.
    pub duplicates: u64,
    /// Where both answers are right, for a move and an event were under way at once: neither required nor spurious.
    pub ambiguous: u64,
    /// What the errors of told positions cost; none where positions are told as they are.
    #[serde(default)]
    pub truth: Option<Truth>,
    /// Some of what was wrong, in words.
    #[serde(default)]
    pub examples: Vec<String>,
}

/// Deliveries to checked clients of what was published, by where everybody was in truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Deliveries that were due by the truth.
    pub wanted: u64,
    /// Deliveries that were due by the truth and by what was told.
    pub told: u64,
    /// Deliveries that were due by what was told, and not by the truth.
    pub beside: u64,
}

/// A second of the run, or several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// When it ended, in seconds from the start of the run, warm-up included.
    pub at_s: f64,
    /// How long it was. Counts are of all of it.
    pub span_s: f64,
    /// Events that were due.
    pub events_intended: u64,
    /// Events that were sent.
    pub events_sent: u64,
    /// Deliveries that came.
    pub deliveries: u64,
    /// How many of these took longer than the delay that the target has to keep, if it has one.
    #[serde(default)]
    pub late: u64,
    /// Moves that were sent.
    pub moves: u64,
    /// Events and moves that were refused.
    pub refused: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Deliveries that gaps told to be lost.
    pub gap_deliveries: u64,
    /// From when an event was due to its deliveries that came in this second; none without any.
    pub delivery: Option<Percentiles>,
    /// From when a move was due to the answer that it is in force; none without any.
    pub move_in_force: Option<Percentiles>,
    /// What the target used; none where its process cannot be seen.
    pub broker: Option<Usage>,
    /// What the load used.
    pub load: Option<Usage>,
    /// What the target's `/metrics` said, by what was made of it: `sum(nearcast_queue_depth)`, `rate(nearcast_matches_total)`,
    /// `mean(nearcast_batch_events)`.
    #[serde(default)]
    pub scraped: BTreeMap<String, f64>,
}

/// Latencies of a second, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The 99.9th percentile.
    pub p999_us: u64,
    /// The largest.
    pub max_us: u64,
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time by time.
    pub cpu_cores: f64,
    /// Processor time by time of the thread that used most.
    pub busiest_thread_cores: f64,
    /// Its memory, at the end.
    pub resident_bytes: u64,
}

/// Where memory and processor time were heading while it was measured; none where too little was seen to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slopes {
    /// Slope of the target's memory, in MB an hour.
    pub broker_mb: Option<Slope>,
    /// Slope of the target's processor time, in cores an hour.
    pub broker_cores: Option<Slope>,
    /// Slope of the load's own memory, in MB an hour.
    pub load_mb: Option<Slope>,
    /// Slope of the load's own processor time, in cores an hour.
    pub load_cores: Option<Slope>,
}

/// How much more an hour, by least squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// The slope.
    pub per_hour: f64,
    /// Its standard error, as if what is left beside the line were independent from row to row.
    pub error_per_hour: f64,
}

/// Something that happened once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Milestone {
    /// What: "alarm at the last client".
    pub name: String,
    /// How long after whatever began it.
    pub seconds: f64,
}

/// A rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Events a second.
    pub rate: f64,
    /// Median of publish to delivery; 0 where nothing came.
    pub p50_us: u64,
    /// 99 of a hundred took no longer.
    pub p99_us: u64,
    /// Whether the bound was kept.
    pub was_kept: bool,
    /// Why not, or how well.
    pub why: String,
}

/// Why a text is no record of a run.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or another document.
    #[error("not a record of a run: {0}")]
    Malformed(#[from] serde_json::Error),
    /// JSON, but of another program.
    #[error("not a record of a run: it has no `schema`")]
    NoSchema,
    /// Written by another version of the program.
    #[error("the record has schema {found}, this program reads {SCHEMA}: take the version that wrote it")]
    UnknownSchema {
        /// What it says.
        found: u64,
    },
    /// A histogram is damaged.
    #[error("the histogram of \"{name}\" cannot be read: {why}")]
    Histogram {
        /// Name of the latency.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Record {
    /// Reads a document that [`Record::to_json`] wrote.
    ///
    /// # Errors
    /// When it is none, is of another schema, or a histogram in it is damaged.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Version {
            schema: Option<u64>,
        }
        match serde_json::from_str::<Version>(text)?.schema {
            None => return Err(RecordError::NoSchema),
            Some(found) if found != u64::from(SCHEMA) => return Err(RecordError::UnknownSchema { found }),
            Some(_) => {}
        }
        let record: Self = serde_json::from_str(text)?;
        for latency in &record.latencies {
            latency.histogram()?;
        }
        Ok(record)
    }

    /// The document, with the verdict for those who read it by other means; [`Record::from_json`] makes its own.
    ///
    /// # Errors
    /// Never in practice: all names are texts, and a number that is none is written as null.
    pub fn to_json(&self) -> Result<String, RecordError> {
        #[derive(Serialize)]
        struct Document<'record> {
            #[serde(flatten)]
            record: &'record Record,
            verdict: Said,
        }
        #[derive(Serialize)]
        struct Said {
            is_right: bool,
            is_of_target: bool,
            headline: String,
            faults: Vec<String>,
            doubts: Vec<String>,
        }
        let verdict = self.verdict();
        let verdict = Said {
            is_right: verdict.is_right(),
            is_of_target: verdict.is_of_target(),
            headline: verdict.headline(),
            faults: verdict.faults,
            doubts: verdict.doubts,
        };
        Ok(serde_json::to_string_pretty(&Document { record: self, verdict })?)
    }

    /// The latency of that name.
    #[must_use]
    pub fn latency(&self, name: &str) -> Option<&Latency> {
        self.latencies.iter().find(|latency| latency.name == name)
    }
}

impl Requests {
    /// All that was refused.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        sum(&self.refused)
    }
}

impl Totals {
    /// Errors of all kinds.
    #[must_use]
    pub fn errors_count(&self) -> u64 {
        sum(&self.errors)
    }
}

/// A record may say anything.
fn sum(kinds: &BTreeMap<String, u64>) -> u64 {
    kinds.values().fold(0, |sum, number| sum.saturating_add(*number))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_record_survives_its_text() {
        for record in [sample::record(), sample::bad()] {
            let text = record.to_json().unwrap();
            assert_eq!(Record::from_json(&text).unwrap(), record);
            let verdict: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(verdict["verdict"]["is_right"], record.verdict().is_right());
        }
    }

    #[test]
    fn what_is_no_record_of_this_schema_is_refused_and_told_why() {
        let with = |schema: serde_json::Value| {
            let mut document: serde_json::Value =
                serde_json::from_str(&sample::record().to_json().unwrap()).unwrap();
            document["schema"] = schema;
            document.to_string()
        };
        let mut damaged = sample::record();
        damaged.latencies[1].histogram.truncate(30);
        for (text, why) in [
            ("", "not a record of a run: EOF"),
            ("[]", "not a record of a run"),
            ("{}", "it has no `schema`"),
            (r#"{"schema": 1}"#, "missing field `scenario`"),
            (&with(0.into()), "the record has schema 0, this program reads 1"),
            (&with(2.into()), "the record has schema 2, this program reads 1"),
            (&with("new".into()), "not a record of a run"),
            (&damaged.to_json().unwrap(), "the histogram of \"publish to accepted\" cannot be read"),
        ] {
            let error = Record::from_json(text).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        }
        assert!(Record::from_json(&with(1.into())).is_ok());
    }
}
