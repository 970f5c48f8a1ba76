//! Checks: constraints on the events of some time, and what becomes of an event that breaks one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Area;

/// A check: sets of recent events, and a formula that has to hold for them; or a preset, which makes both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"preset": "speed", "object": "taxi_id", "max_m_per_s": 55})))]
pub struct Check {
    /// Its name. Given in lists; in a request it is part of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sets of events, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Context>,
    /// What has to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
    /// In the place of contexts and formula: `speed`, `accuracy`, `frozen`, `outside` or `duplicate`, with members of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The time that the sets go by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// What becomes of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_violation: Option<OnViolation>,
    /// What the check does; in answers, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SituationActivity>,
    /// Members of a preset.
    #[serde(flatten)]
    pub preset_members: BTreeMap<String, Value>,
}

/// A set of events: each that satisfies the condition in the area, for some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Context {
    /// Seconds for which an event is in the set.
    pub for_s: f64,
    /// A CQL2 condition, text or JSON; every event when it is absent.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
    /// Where; everywhere when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<Area>,
}

/// A formula over the events of the sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(no_recursion))]
#[serde(untagged)]
pub enum Formula {
    /// A CQL2 condition over the variables: `SPEED(a, b) <= 55`.
    Leaf(String),
    /// It holds for every event of a set.
    Forall {
        /// The variable.
        forall: String,
        /// The set.
        r#in: String,
        /// What has to hold.
        that: Box<Self>,
    },
    /// It holds for an event of a set.
    Exists {
        /// The variable.
        exists: String,
        /// The set.
        r#in: String,
        /// What has to hold.
        that: Box<Self>,
    },
    /// All hold.
    And {
        /// The parts; of none it is true.
        and: Vec<Self>,
    },
    /// One holds.
    Or {
        /// The parts; of none it is false.
        or: Vec<Self>,
    },
    /// Where the first holds, the second does.
    Implies {
        /// The two.
        implies: Vec<Self>,
    },
    /// It does not hold.
    Not {
        /// What does not hold.
        not: Box<Self>,
    },
}

/// The time that the sets of a check go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// When events arrive.
    #[default]
    Arrival,
    /// The `time` of events.
    Event,
}

/// What becomes of a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnViolation {
    /// It is published as an event.
    #[default]
    Tell,
    /// The event that brought it is delivered with the name of the check in `violates`.
    Mark,
    /// The event that brought it is refused to its publisher.
    Drop,
}

/// What a check, a rule set or a group definition does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SituationActivity {
    /// Events that came to it.
    pub inputs: u64,
    /// How often it was evaluated; of a rule set, the facts that were added; of a group definition, the changes of candidates.
    pub evaluations: u64,
    /// Events that it published.
    pub published: u64,
    /// Events that wait for it.
    pub queued: u64,
    /// Microseconds for an event, on average.
    pub mean_us: f64,
    /// Microseconds for an event, which 99 of 100 do not exceed.
    pub p99_us: f64,
    /// The engine at work.
    pub engine: String,
    /// Findings that were not published, events that were refused to their publishers, and facts that were undone.
    pub dropped: u64,
    /// Events that were marked.
    #[serde(default)]
    pub marked: u64,
    /// Events that were to be held until they were evaluated, and went on before.
    #[serde(default)]
    pub passed: u64,
    /// Events whose `time` was more than a minute ahead of their arrival, so that a clock of events left them out.
    #[serde(default)]
    pub ahead: u64,
    /// How often it began anew, for inputs were lost.
    pub restarts: u64,
    /// Constraints in the store of a rule set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<u64>,
    /// Live objects that are candidates of each role of a group definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<BTreeMap<String, u64>>,
    /// Candidates of each role that satisfy the conditions over it alone and are supported: for each role that shares a condition with it
    /// there is such a candidate with which all conditions over both are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistent: Option<BTreeMap<String, u64>>,
    /// Whether it is paused.
    pub paused: bool,
    /// What last went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
