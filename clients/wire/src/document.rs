//! The documents of the HTTP calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Cause, Problem, RouteBy, Transition};

/// What a client wants: every event that satisfies one of the filters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"filters": [{"area": {"radius_m": 500.0}, "where": "severity >= 3"}]})))]
pub struct Subscription {
    /// What the client calls it. Given in answers; in a request it is part of the path or of the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The alternatives, at least one.
    pub filters: Vec<Filter>,
    /// What the subscription brings: events, or enters, exits or both.
    #[serde(default = "default_on", skip_serializing_if = "is_default_on")]
    pub on: Vec<On>,
    /// Whether a new subscription to transitions begins with an enter for each object that is inside already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<bool>,
    /// Seconds for which an object has to stay inside before it enters, in subscriptions to transitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dwell_s: Option<f64>,
    /// Metres that an object has to be outside before it leaves, in subscriptions to transitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hysteresis_m: Option<f64>,
    /// Whether it outlives its connection and matches are kept until acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub durable: bool,
    /// What happens when the client does not keep up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// What has happened to it; in answers to `GET`, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What is probably not meant so; in answers to `PUT`, and not looked at in a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Subscription {
    /// A subscription to the events that satisfy one of the filters.
    #[must_use]
    pub fn of_events(filters: Vec<Filter>) -> Self {
        Self {
            id: None,
            filters,
            on: default_on(),
            initial: None,
            dwell_s: None,
            hysteresis_m: None,
            durable: false,
            overflow: None,
            activity: None,
            warnings: Vec::new(),
        }
    }
}

/// What has happened to a subscription since it was made. Times are RFC 3339, `null` before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Activity {
    /// How often something was evaluated against it.
    pub evaluations: u64,
    /// When that was the last time.
    pub last_evaluation: Option<String>,
    /// How often something satisfied it.
    pub matches: u64,
    /// When that was the last time.
    pub last_match: Option<String>,
    /// Deliveries that it brought.
    pub deliveries: u64,
    /// When the last one was.
    pub last_delivery: Option<String>,
    /// Whether it finds nothing any more, because of what it cost. It does again when it is made anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}

fn default_on() -> Vec<On> {
    vec![On::Event]
}

fn is_default_on(on: &[On]) -> bool {
    on == [On::Event]
}

/// An area and a condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Filter {
    /// Where; everywhere when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<Area>,
    /// A CQL2 condition, text or JSON; every event when it is absent. In answers it is text in disjunctive form.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
}

/// An area of relevance, one of five forms, or everywhere; only so many of the nearest live objects may count in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Area {
    /// A circle that stays.
    Circle {
        /// Its centre.
        center: Vec<f64>,
        /// Its radius in metres.
        radius_m: f64,
        /// How many of the nearest live objects count; all when it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<u32>,
    },
    /// All within a distance of a line.
    Corridor {
        /// A GeoJSON LineString.
        corridor: Value,
        /// The distance in metres.
        radius_m: f64,
        /// How many of the nearest live objects count; all when it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<u32>,
    },
    /// All within a distance of the best route along streets from the client's position, which is found again when the client has left it.
    Route {
        /// Where the route leads.
        route: RouteEnd,
        /// The distance in metres.
        radius_m: f64,
        /// How many of the nearest live objects count; all when it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<u32>,
    },
    /// Polygons.
    Polygon {
        /// A GeoJSON Polygon or MultiPolygon.
        polygon: Value,
        /// How many of the nearest live objects count; all when it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<u32>,
    },
    /// A circle that follows the client's position.
    Following(Following),
    /// Everywhere, but only so many of the nearest live objects.
    Nearest {
        /// How many of them count.
        nearest: u32,
    },
}

/// Where the route of an area leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RouteEnd {
    /// Longitude and latitude; the route ends at the nearest junction or end of a street, within 1 km.
    pub to: Vec<f64>,
    /// What is to be least.
    #[serde(default, skip_serializing_if = "is_by_duration")]
    pub by: RouteBy,
}

fn is_by_duration(by: &RouteBy) -> bool {
    *by == RouteBy::Duration
}

/// A circle that follows the client's position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Following {
    /// Its radius in metres.
    pub radius_m: f64,
    /// How many of the nearest live objects count; all when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<u32>,
}

/// What a subscription brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// Each matching event.
    Event,
    /// A live object comes inside.
    Enter,
    /// A live object is inside no more.
    Exit,
}

/// What happens when a client does not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// The oldest deliveries are lost, and a `gap` tells which.
    DropOldest,
    /// The same, but first those after which a newer one of the same object comes.
    KeepLatest,
    /// The connection is closed.
    Disconnect,
}

/// Where a client is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"coordinates": [9.19, 45.464]})))]
pub struct Position {
    /// `[longitude, latitude]`, with an altitude or without; `[x, y]` in a planar world. Empty where a track has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<f64>,
    /// How it came there, in place of the coordinates: `[longitude, latitude, unix_s]` each, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub track: Vec<[f64; 3]>,
    /// How far off it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_m: Option<f64>,
    /// When it was measured, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// Where some client is: an element of `POST /v1/positions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"client": "car-7", "coordinates": [9.19, 45.464]})))]
pub struct NamedPosition {
    /// The client.
    pub client: String,
    /// Its position.
    #[serde(flatten)]
    pub position: Position,
}

/// The answer to `POST /v1/events`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// Events that every subscription made before now is matched against.
    pub accepted: u64,
    /// Events that were not accepted.
    pub rejected: Vec<Rejected>,
    /// How many more were rejected than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejected_unlisted: u64,
    /// What is probably not meant so in events that were accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// How many more warnings there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warnings_unlisted: u64,
}

/// Something that is probably not meant so, in a request that was carried out all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// Which element of a batch it is about, from 0; absent where there are no elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Where, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is odd there, and what is probably meant.
    pub detail: String,
}

/// The answer to `POST /v1/positions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Moved {
    /// Positions that are in force.
    pub moved: u64,
    /// Positions that were not accepted.
    pub rejected: Vec<Rejected>,
    /// How many more were rejected than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejected_unlisted: u64,
    /// What is probably not meant so in positions that are in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// How many more warnings there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warnings_unlisted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One element of a batch that was not accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rejected {
    /// Which, from 0.
    pub index: u64,
    /// Why.
    pub problem: Problem,
}

/// To whom an event went: the answer to `GET /v1/events/{id}/deliveries`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deliveries {
    /// The event's id, as it was asked for.
    pub id: String,
    /// By client, then by offset. Of several events of this id all.
    pub deliveries: Vec<Delivered>,
    /// How many more there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

impl Deliveries {
    /// All of several parts of the deliveries of one event; `None` where there is no part.
    #[must_use]
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let joined = parts.into_iter().reduce(|mut joined, part| {
            joined.deliveries.extend(part.deliveries);
            joined.omitted += part.omitted;
            joined
        });
        joined.map(|mut joined| {
            joined.deliveries.sort_by(|a, b| (&a.client, a.offset).cmp(&(&b.client, b.offset)));
            joined
        })
    }
}

/// One delivery of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Delivered {
    /// Who it was for.
    pub client: String,
    /// The client's subscriptions that brought it.
    pub subscriptions: Vec<String>,
    /// Its offset in the client's session.
    pub offset: u64,
    /// What brought it.
    pub cause: Cause,
    /// What it told of the event's object, where it told that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<Transition>,
    /// What became of it.
    pub state: DeliveryState,
    /// Where the client was then, as others are shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Vec<f64>>,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// It waits for a connection.
    Waiting,
    /// It was handed to a connection.
    Written,
    /// It was lost: the reader did not keep up, or was gone before it.
    Dropped,
    /// Nobody read for the client.
    Unread,
}

/// What the broker holds and has done since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// The broker's version.
    pub version: String,
    /// The engine that matches: `cells`, `scan`, `auto`, `gpu` or `clcb`.
    pub engine: String,
    /// Why that one, and on what, in a sentence.
    pub engine_why: String,
    /// `geodetic` or `planar`.
    pub world: String,
    /// Engine threads.
    pub shards: u64,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Open TCP connections.
    pub connections: u64,
    /// Open WebSockets.
    pub websockets: u64,
    /// Open event streams.
    pub event_streams: u64,
    /// Clients with a position, a subscription or a reader.
    pub clients: u64,
    /// Subscriptions installed.
    pub subscriptions: u64,
    /// Live objects.
    pub live_objects: u64,
    /// Sessions that outlive their connections.
    pub durable_sessions: u64,
    /// Matches that are kept for them until they are acknowledged.
    pub kept_matches: u64,
    /// Bytes that those take; a text that several clients share counts for each.
    pub kept_bytes: u64,
    /// Readers of such sessions for which more is kept than they have taken.
    pub readers_behind: u64,
    /// Filters in the engines, one for each conjunction.
    pub filters: u64,
    /// Bytes that the engines take.
    pub engine_bytes: u64,
    /// Commands that wait for the engines.
    pub queued: u64,
    /// Events accepted.
    pub events: u64,
    /// Events refused.
    pub events_rejected: u64,
    /// Pairs of event and subscription found.
    pub matches: u64,
    /// Pairs of event and client found: each is one offset of that client.
    pub deliveries: u64,
    /// Deliveries for clients that nobody read for.
    pub deliveries_unread: u64,
    /// Deliveries lost because a reader did not keep up.
    pub deliveries_dropped: u64,
    /// Frames handed to sockets and event streams.
    pub frames_sent: u64,
    /// Positions taken.
    pub moves: u64,
}

/// The cluster that a broker is a member of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cluster {
    /// Its name; absent for a broker in no cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many partitions its clients are in, each with an active broker; absent where one broker serves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// The members that said in the last seconds that they are there, by name.
    pub members: Vec<ClusterMember>,
    /// Where the client is served that was asked for; absent where none was, and while no broker serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_url: Option<String>,
}

/// A broker of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterMember {
    /// Its name, which stays the same over restarts.
    pub name: String,
    /// Where clients reach it; absent where `cluster.url` is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its role.
    pub role: ClusterRole,
    /// Its partition, from 1 on; absent where one broker serves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
}

/// The role of a broker in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClusterRole {
    /// It serves all clients, or those of its partition.
    Active,
    /// It follows the active one, and takes over when that is gone.
    Standby,
}

/// The main figures of the last hour. Each column has one value for each point in time, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatsHistory {
    /// Seconds between two points.
    pub step_s: u64,
    /// When each point was taken, in Unix milliseconds. Rates and percentiles are of the time since the point before.
    pub time_unix_ms: Vec<u64>,
    /// Events accepted, per second.
    pub events_per_s: Vec<f64>,
    /// Pairs of event and client found, per second.
    pub deliveries_per_s: Vec<f64>,
    /// Positions taken, per second.
    pub moves_per_s: Vec<f64>,
    /// Clients with a position, a subscription or a reader.
    pub clients: Vec<u64>,
    /// Live objects.
    pub live_objects: Vec<u64>,
    /// Seconds from an event being read to its being matched, which half of the events took at most; null without events.
    pub queue_p50_s: Vec<Option<f64>>,
    /// The seconds that 99 of 100 events took at most; null without events.
    pub queue_p99_s: Vec<Option<f64>>,
    /// Bytes of memory that the broker occupies (its resident set); null where the system does not tell.
    pub memory_bytes: Vec<Option<u64>>,
}

/// Clients, those that are furthest behind first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Clients {
    /// In the order of `behind`, then of `kept_matches`, most first, then of their names.
    pub clients: Vec<ClientFigures>,
    /// Where the next page begins, as `after`; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How a client is connected, and how far behind it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientFigures {
    /// Its name.
    pub client: String,
    /// Its tenant; absent where that has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// WebSockets and event streams that read for it.
    pub connections: u64,
    /// Its subscriptions.
    pub subscriptions: u64,
    /// Whether its session outlives its connections.
    pub durable: bool,
    /// Deliveries that the connection that is furthest behind has not been given to write.
    pub behind: u64,
    /// Deliveries that wait for its connections.
    pub waiting_frames: u64,
    /// Bytes that wait for them, answers included.
    pub waiting_bytes: u64,
    /// Matches that are kept until it acknowledges them.
    pub kept_matches: u64,
    /// Bytes that the broker holds for it: all of `held`.
    #[serde(default)]
    pub held_bytes: u64,
    /// Bytes by what they are for: `outbox` (what waits for its connections), `answers`, `kept`, `members` (how live objects stand to its
    /// subscriptions) and `documents` (of its subscriptions). What takes nothing is absent, and more kinds may come.
    #[serde(default)]
    pub held: BTreeMap<String, u64>,
    /// Milliseconds that what it asked for has taken its engine, since it is known.
    #[serde(default)]
    pub engine_ms: u64,
    /// Milliseconds since it was last heard over a WebSocket, or since it opened a stream; absent without a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_ms: Option<u64>,
    /// About where it is, `[longitude, latitude]` or `[x, y]`: the middle of a cell of `privacy.round_m`. Absent where that is 0, and of
    /// a client that has told no position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[f64; 2]>,
}
