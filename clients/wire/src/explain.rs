//! Asking why an event comes to a client, or does not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Feature, OnViolation, Subscription};

/// The question of `POST /v1/explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"client": "car-7", "subscription": {"filters": [{"area": {"radius_m": 500.0}, "where": "severity >= 3"}]}, "event": {"type": "Feature", "geometry": {"type": "Point", "coordinates": [9.19, 45.464]}, "properties": {"severity": 2}}, "position": [9.2, 45.464]})))]
pub struct Explain {
    /// The client.
    pub client: String,
    /// Its subscription.
    pub subscription: AskedSubscription,
    /// The event.
    pub event: AskedEvent,
    /// A place to put in place of the client's position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Vec<f64>>,
}

/// A subscription that is there, or one that is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum AskedSubscription {
    /// The id of one that the client has.
    Id(String),
    /// One that it might have.
    Document(Box<Subscription>),
}

/// An event that is there, or one that is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum AskedEvent {
    /// The id of a live one.
    Id(String),
    /// One that might be published.
    Feature(Box<Feature>),
}

/// The answer of `POST /v1/explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// Whether the event satisfies the subscription now.
    pub matched: bool,
    /// The client.
    pub client: String,
    /// The subscription's id; absent where the question was about a document without one.
    #[serde(default)]
    pub subscription: Option<String>,
    /// The position that was used; absent for a client that has told none.
    #[serde(default)]
    pub position: Option<ExplainedPosition>,
    /// Whether the client has told one that who asks is not shown. The answer is then that of a client without a position.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub position_withheld: bool,
    /// The event.
    pub event: ExplainedEvent,
    /// The event's own area; absent where it has none.
    #[serde(default)]
    pub reach: Option<ExplainedReach>,
    /// Each filter, in the subscription's order.
    pub filters: Vec<ExplainedFilter>,
    /// Whether the event's object is inside of the subscription now, as transitions count it.
    pub inside: bool,
    /// Checks that would hold the event, which is not published yet; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ExplainedCheck>,
    /// How a check or a rule set came to publish the event, while that is among what it found last; absent for other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<ExplainedDerivation>,
    /// All of it in a sentence.
    pub why: String,
}

/// How an event was derived from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedDerivation {
    /// The check or the rule set, such as `rules/traffic`.
    pub by: String,
    /// The rule, by its name or its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Ids of the events that it follows from.
    pub from: Vec<String>,
}

/// A check that the event would break.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedCheck {
    /// Its name.
    pub check: String,
    /// What it would do: mark the event or drop it.
    pub on_violation: OnViolation,
    /// Which events do not fit: variables with ids. Ids that the asker may not see are left out.
    pub links: Vec<BTreeMap<String, String>>,
}

/// The position that was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedPosition {
    /// `[longitude, latitude]`, or `[x, y]` in a planar world.
    pub coordinates: Vec<f64>,
    /// How far off the client said that it may be.
    #[serde(default)]
    pub accuracy_m: Option<f64>,
    /// How long ago it came; absent for one that was given in the question.
    #[serde(default)]
    pub age_s: Option<f64>,
}

/// The event that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedEvent {
    /// Its id; absent for one that has none yet.
    #[serde(default)]
    pub id: Option<Value>,
    /// Whether it is live, or would be.
    pub live: bool,
    /// How much of its life is left; absent for one that is not live.
    #[serde(default)]
    pub expires_in_s: Option<f64>,
}

/// The event's own area, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedReach {
    /// Whether it holds the client; one without a position is not held to it.
    pub holds: bool,
    /// How far the event reaches.
    pub reach_m: f64,
    /// How far away the client is.
    #[serde(default)]
    pub distance_m: Option<f64>,
    /// How far outside the client is.
    #[serde(default)]
    pub metres_outside: Option<f64>,
}

/// What a filter makes of the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedFilter {
    /// Whether it takes it: area and condition both hold.
    pub matched: bool,
    /// Its area.
    pub area: ExplainedArea,
    /// Its condition.
    pub condition: ExplainedCondition,
}

/// What an area makes of the event's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedArea {
    /// What kind of area it is.
    pub form: AreaForm,
    /// Whether it holds the place.
    pub holds: bool,
    /// The distance to the centre, the corridor's line, or the polygon (0 inside of it).
    #[serde(default)]
    pub distance_m: Option<f64>,
    /// The radius of a circle or a corridor.
    #[serde(default)]
    pub radius_m: Option<f64>,
    /// How far outside the place is; absent for an area that follows a client without a position.
    #[serde(default)]
    pub metres_outside: Option<f64>,
    /// The distance that there would be with longitude and latitude exchanged; absent unless the place is far outside, and would be
    /// inside then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_distance_m: Option<f64>,
    /// Whether the client's position is too inaccurate for the area, which then lets nothing in or out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_a_better_fix: bool,
    /// The place of the event among the nearest, where only those count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<ExplainedNearest>,
}

/// The kinds of areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum AreaForm {
    /// Everywhere.
    Everywhere,
    /// A circle around the client.
    Following,
    /// A circle that stays.
    Circle,
    /// A polygon or a multipolygon.
    Polygon,
    /// A corridor.
    Corridor,
    /// A corridor along the best route from the client.
    Route,
}

/// The place of an event among the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedNearest {
    /// How many count.
    pub k: u32,
    /// Which it is, from 1, among the live events that the filter takes; absent for an event that it does not take or
    /// that is not live, where there is nothing to measure from, and far behind those that count.
    #[serde(default)]
    pub rank: Option<u64>,
    /// Whether it is among those that count.
    pub holds: bool,
}

/// What a condition makes of the event's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedCondition {
    /// Its truth; only what is true matches.
    pub truth: Truth,
    /// Its constraints in the order in which they were written, one under a `NOT` with its `NOT`.
    pub constraints: Vec<ExplainedConstraint>,
}

/// What a constraint makes of the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedConstraint {
    /// The constraint as CQL2 text.
    pub constraint: String,
    /// The attribute that it looks at.
    pub attribute: String,
    /// The value that it saw, `null` for an absent attribute. Long texts and arrays are cut.
    #[serde(default)]
    pub value: Value,
    /// Its truth.
    pub truth: Truth,
    /// What is so about the attribute that makes it so, in words.
    pub reason: String,
}

/// The truth values of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be said: the attribute is absent, or the types do not compare.
    Unknown,
}
