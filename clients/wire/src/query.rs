//! Answers about what is live now, and where a client is.

use serde::{Deserialize, Serialize};

use crate::Feature;

/// Live events: the answer to `GET /v1/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveEvents {
    /// Always `FeatureCollection`.
    #[serde(rename = "type")]
    pub kind: CollectionKind,
    /// How many events the page has.
    #[serde(rename = "numberReturned")]
    pub number_returned: u64,
    /// The events, as deliveries show them.
    pub features: Vec<Feature>,
    /// Where the next page begins, as `after`; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `FeatureCollection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CollectionKind {
    /// The only kind.
    FeatureCollection,
}

/// Where a client is: the answer to `GET /v1/clients/{client}/position`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"coordinates": [9.19, 45.464], "time": "2026-03-01T07:30:00Z"})))]
pub struct ClientPosition {
    /// `[longitude, latitude]`; `[x, y]` in a planar world.
    pub coordinates: Vec<f64>,
    /// How far off it may be, where the client said so; only the client itself is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_m: Option<f64>,
    /// When the broker was told, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}
