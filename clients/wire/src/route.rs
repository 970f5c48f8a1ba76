//! Routes through streets.

use serde::{Deserialize, Serialize};

/// What is to be least on a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RouteBy {
    /// Seconds at the speed limits.
    #[default]
    Duration,
    /// Metres.
    Length,
}

/// Asks for a route: the body of `POST /v1/routes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "from": [9.5209, 47.1415], "to": [9.5102, 47.2201], "deadline_ms": 20, "by": "duration",
})))]
pub struct RouteQuestion {
    /// Longitude and latitude of its beginning.
    pub from: [f64; 2],
    /// Longitude and latitude of its end.
    pub to: [f64; 2],
    /// Milliseconds within which the answer is wanted. Of several questions in one request the least counts for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub deadline_ms: Option<f64>,
    /// The coarsest level that will do, 0 to 3; 3 unless said. Level 0 is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false, maximum = 3))]
    pub coarsest: Option<u8>,
    /// What is to be least.
    #[serde(default)]
    pub by: RouteBy,
}

/// The `type` of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LineStringKind {
    /// A line.
    #[default]
    LineString,
}

/// A GeoJSON LineString.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RouteLine {
    /// `LineString`.
    #[serde(rename = "type")]
    pub kind: LineStringKind,
    /// At least two places, each longitude and latitude.
    pub coordinates: Vec<[f64; 2]>,
}

/// A route: the answer to a [`RouteQuestion`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "route": {"type": "LineString", "coordinates": [[9.5211, 47.1414], [9.5101, 47.2199]]},
    "length_m": 9412.7, "duration_s": 678.2, "level": 0, "score": 6,
})))]
pub struct FoundRoute {
    /// The way, from the node nearest to the beginning to the one nearest to the end.
    pub route: RouteLine,
    /// How long it is.
    pub length_m: f64,
    /// How long it takes at the speed limits.
    pub duration_s: f64,
    /// The level that it was found at: 0 is exact.
    pub level: u8,
    /// What a route of that level is worth: 6, 4, 2 or 1.
    pub score: u32,
}

/// Whether an area along a route lies along a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RouteState {
    /// It does.
    Found,
    /// The client has told no position.
    NoPosition,
    /// The way is being looked for.
    Sought,
    /// There is no street near the client or near the destination.
    OffStreets,
    /// No way leads to the destination.
    Unreachable,
    /// The corridor is larger than `routes.client_bytes` or `routes.tenant_bytes` permits.
    NoRoom,
}

/// The answer to `GET /v1/clients/{client}/routes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientRoutes {
    /// In the order of the subscriptions' ids, and of the filters of each.
    pub routes: Vec<ClientRoute>,
    /// Where the next page begins, as `after`; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next: Option<String>,
}

/// An area along a route as it lies now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "subscription": "way", "filter": 0, "to": [9.5102, 47.2201], "by": "duration", "radius_m": 200.0, "state": "found",
    "route": {"type": "LineString", "coordinates": [[9.5211, 47.1414], [9.5101, 47.2199]]}, "left_m": 8312.4, "left_s": 590.1,
})))]
pub struct ClientRoute {
    /// The subscription whose area it is.
    pub subscription: String,
    /// The index of the filter whose area it is.
    pub filter: usize,
    /// Longitude and latitude of the destination.
    pub to: [f64; 2],
    /// What is least on the way.
    pub by: RouteBy,
    /// The area is what lies within this distance of the way, in metres.
    pub radius_m: f64,
    /// Whether it lies along a way, and if not, for which reason.
    pub state: RouteState,
    /// The reason in words; absent where a way was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub why: Option<String>,
    /// The way; absent where none was found. Of a way with more points the first 10,000, within which the corridor lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub route: Option<RouteLine>,
    /// How far it is to the end of the whole way from the place on it that is nearest to the client, to a tenth of a metre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub left_m: Option<f64>,
    /// How long that takes at what streets cost now, to a tenth of a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub left_s: Option<f64>,
    /// Always `true`: the way from where others are shown the client. Absent where the client itself asks, which gets the way in force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
}
