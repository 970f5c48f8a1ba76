//! Groups: live objects, one for each role, that fit together.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Area, SituationActivity};

/// A group definition: roles, conditions between them, and which groups are reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "roles": {"taxi": {"where": "type = 'taxi' AND free = TRUE"}, "rider": {"where": "type = 'rider'"}},
    "where": ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
    "order": "DISTANCE(taxi, rider)",
})))]
pub struct GroupDefinition {
    /// Its name. Given in lists; in a request it is part of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which live objects may take a role, by its name, 1 to 8. A group is reported at the place of its object of the first role.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Role>))]
    pub roles: IndexMap<String, Role>,
    /// Conditions, each over one or two roles; all have to hold.
    #[serde(rename = "where", default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Reported groups, 1 to 1,000: the first by `order`. 100 when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// A term by whose number groups are ranked, ascending; then, or when it is absent, the names of the objects, role by role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// What it does; in answers, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SituationActivity>,
    /// The reported groups now, in their order: the object of each role. In answers, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<BTreeMap<String, String>>>,
}

/// Why an object is in groups or in none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedObject {
    /// The object.
    pub object: String,
    /// Reported groups and have it.
    pub groups: u64,
    /// How it stands in each of its roles, in their order.
    pub roles: Vec<ExplainedRole>,
    /// Why, in a sentence.
    pub why: String,
}

/// How an object stands in one of its roles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedRole {
    /// The role.
    pub role: String,
    /// Conditions over the role alone that are not true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Whether it satisfies these and has a partner in each role that shares a condition with its own, which is consistent, too.
    pub consistent: bool,
    /// One for each role that shares a condition with its own.
    pub partners: Vec<ExplainedPartners>,
}

/// What is left of another role's candidates beside an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExplainedPartners {
    /// The other role.
    pub role: String,
    /// Its candidates.
    pub candidates: u64,
    /// How many of them each condition over it alone and over both roles leaves by itself.
    pub left: Vec<ConditionLeaves>,
    /// How many all of these leave.
    pub fitting: u64,
    /// How many of those are consistent.
    pub consistent: u64,
}

/// How many candidates a condition leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConditionLeaves {
    /// The condition.
    #[serde(rename = "where")]
    pub condition: String,
    /// The number.
    pub candidates: u64,
}

/// Which live objects may take a role: those that satisfy the condition in the area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Role {
    /// A CQL2 condition, text or JSON; every live object when it is absent.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
    /// Where; everywhere when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<Area>,
}
