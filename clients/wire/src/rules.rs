//! Rule sets: events become facts, rules derive, merge and cancel them, and what they make is published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Area, Clock, SituationActivity};

/// A rule set: a program of Constraint Handling Rules, the facts that it begins with, and what it publishes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "facts": {"report": {"where": "type = 'accident'", "args": ["@id", "@lon", "@lat"], "for_s": 300}},
    "program": "report(_, X1, Y1) \\ report(_, X2, Y2) <=> distance(X1, Y1, X2, Y2) < 100 | true.",
})))]
pub struct RuleSet {
    /// Its name. Given in lists; in a request it is part of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which events become facts, by the name of the constraint.
    pub facts: BTreeMap<String, FactRule>,
    /// The rules, as a text.
    pub program: String,
    /// The time that facts go by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// What is published, by the name of the constraint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub publish: BTreeMap<String, Publication>,
    /// What the rule set does; in answers, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SituationActivity>,
}

/// Which events become a fact: those that satisfy the condition in the area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactRule {
    /// A CQL2 condition, text or JSON; every event when it is absent.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
    /// Where; everywhere when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<Area>,
    /// Its arguments: names of attributes, `@id`, `@lon`, `@lat`, `@time` (Unix seconds) and `@key`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Seconds after which it is taken away; never when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_s: Option<f64>,
}

/// How a constraint is published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Publication {
    /// Which arguments are longitude and latitude, counted from 0; where the event was that brought it when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<[usize; 2]>,
    /// The attributes of the event. `{0}` in a text stands for the first argument, and a text that is nothing else is that argument. The
    /// name of the constraint as `type` when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, Value>>,
    /// The event's key, in which `{0}` stands for the first argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long the event is live, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
}
