//! Events as GeoJSON Features.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An event: a GeoJSON Feature with a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [9.19, 45.464]}, "properties": {"type": "accident", "severity": 3}})))]
pub struct Feature {
    /// Always `Feature`.
    #[serde(rename = "type")]
    pub kind: FeatureKind,
    /// A text or a number; the broker makes one when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
    pub id: Option<Value>,
    /// Where it happened.
    pub geometry: PointGeometry,
    /// The attributes. Nested objects flatten with dots, arrays match by any element, `null` is absent.
    #[serde(default)]
    pub properties: Option<Map<String, Value>>,
    /// RFC 3339; the time of arrival when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// For how many seconds the event stays live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
    /// The object that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `normal` or `alarm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The event's own area in metres: clients whose position is further away do not get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_m: Option<f64>,
    /// For how many milliseconds from its arrival it may be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// Whatever else the publisher put there.
    #[serde(flatten)]
    pub foreign: Map<String, Value>,
}

/// `Feature`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum FeatureKind {
    /// The only kind.
    Feature,
}

/// A GeoJSON Point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointGeometry {
    /// Always `Point`.
    #[serde(rename = "type")]
    pub kind: PointKind,
    /// `[longitude, latitude]` or `[longitude, latitude, altitude_m]`; `[x, y]` in a planar world.
    pub coordinates: Vec<f64>,
}

/// `Point`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum PointKind {
    /// The only kind.
    Point,
}

impl Feature {
    /// An event at a place, with attributes.
    #[must_use]
    pub fn at(coordinates: [f64; 2], properties: Map<String, Value>) -> Self {
        Self {
            kind: FeatureKind::Feature,
            id: None,
            geometry: PointGeometry { kind: PointKind::Point, coordinates: coordinates.to_vec() },
            properties: Some(properties),
            time: None,
            ttl_s: None,
            key: None,
            priority: None,
            reach_m: None,
            deadline_ms: None,
            foreign: Map::new(),
        }
    }
}
