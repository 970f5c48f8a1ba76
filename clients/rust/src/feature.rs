//! Events as they are published: GeoJSON Features with a point.

use std::{fmt, marker::PhantomData, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        Error as _, IgnoredAny, MapAccess, Visitor,
        value::{MapDeserializer, UnitDeserializer},
    },
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use crate::Coordinates;

/// An event at a place: what is published, and what is delivered. `P` are its attributes, an object; nested ones become names with dots.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Feature<P = Value> {
    /// The place where it happened.
    pub coordinates: Coordinates,
    /// Attributes of the event.
    pub properties: P,
    /// Its name. A session makes one where there is none, so that a publish can be sent again; what is delivered has one.
    pub id: Option<Id>,
    /// When it happened, RFC 3339. The time of arrival where there is none; what is delivered has one.
    pub time: Option<String>,
    /// Seconds for which it stays live.
    pub ttl_s: Option<f64>,
    /// The object that it is about: a newer event of it takes this one's place.
    pub key: Option<String>,
    /// `alarm` or `normal`, which is also what it is without.
    pub priority: Option<String>,
    /// Its own area in metres: clients that are further away do not get it.
    pub reach_m: Option<f64>,
    /// Milliseconds from its arrival within which it may be delivered.
    pub deadline_ms: Option<f64>,
    /// All other members of the Feature; they are passed on.
    pub foreign: Map<String, Value>,
}

/// An event at a place. `properties` are written as JSON has them, an object.
///
/// ```
/// use nearcast_client::event;
/// use serde_json::json;
/// let bus = event([9.19, 45.46], json!({"type": "bus", "line": 94})).key("bus-7").ttl_s(600.0);
/// ```
pub fn event<P>(coordinates: impl Into<Coordinates>, properties: P) -> Feature<P> {
    Feature {
        coordinates: coordinates.into(),
        properties,
        id: None,
        time: None,
        ttl_s: None,
        key: None,
        priority: None,
        reach_m: None,
        deadline_ms: None,
        foreign: Map::new(),
    }
}

impl<P> Feature<P> {
    /// Sets a name of the application's own.
    pub fn id(mut self, id: impl Into<Id>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the time when it happened, as an RFC 3339 text.
    pub fn time(mut self, time: impl Into<String>) -> Self {
        self.time = Some(time.into());
        self
    }

    /// Keeps the event live for this time: clients that come into reach of it later get it then.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.ttl_s(ttl.as_secs_f64())
    }

    /// Keeps the event live for this many seconds.
    pub fn ttl_s(mut self, ttl_s: f64) -> Self {
        self.ttl_s = Some(ttl_s);
        self
    }

    /// About this object: a newer event of it takes this one's place.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Taken when others are refused, and delivered before them. With tokens that needs the scope `alarm`.
    pub fn alarm(mut self) -> Self {
        self.priority = Some("alarm".to_owned());
        self
    }

    /// Clients that are further away do not get it.
    pub fn reach_m(mut self, reach_m: f64) -> Self {
        self.reach_m = Some(reach_m);
        self
    }

    /// Is not delivered later than this many milliseconds after its arrival; a gap of reason `late` takes its place.
    pub fn deadline_ms(mut self, deadline_ms: f64) -> Self {
        self.deadline_ms = Some(deadline_ms);
        self
    }

    /// Origin of an event that the broker published itself; `None` for any other.
    #[must_use]
    pub fn derived(&self) -> Option<Derived> {
        Derived::deserialize(self.foreign.get("derived")?).ok()
    }
}

/// Origin of an event that the broker published itself, for example for a check or a rule set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Derived {
    /// The publisher: `checks/` or `rules/`, and the name of the check or the rule set.
    pub by: String,
    /// Ids of the events that it was made of; empty for a reader who may not see them.
    #[serde(default)]
    pub from: Vec<String>,
    /// One more than the greatest depth of those.
    pub depth: u32,
}

impl<P: Serialize> Serialize for Feature<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(self.id.as_ref(), serializer)
    }
}

/// An event that is written with this id.
pub(crate) struct WithId<'a, P> {
    pub(crate) id: &'a Id,
    pub(crate) feature: &'a Feature<P>,
}

impl<P: Serialize> Serialize for WithId<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.feature.write(Some(self.id), serializer)
    }
}

impl<P: Serialize> Feature<P> {
    fn write<S: Serializer>(&self, id: Option<&Id>, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Point<'a> {
            r#type: &'a str,
            coordinates: Coordinates,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "Feature")?;
        if let Some(id) = id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("geometry", &Point { r#type: "Point", coordinates: self.coordinates })?;
        map.serialize_entry("properties", &self.properties)?;
        if let Some(time) = &self.time {
            map.serialize_entry("time", time)?;
        }
        if let Some(ttl_s) = &self.ttl_s {
            map.serialize_entry("ttl_s", ttl_s)?;
        }
        if let Some(key) = &self.key {
            map.serialize_entry("key", key)?;
        }
        if let Some(priority) = &self.priority {
            map.serialize_entry("priority", priority)?;
        }
        if let Some(reach_m) = &self.reach_m {
            map.serialize_entry("reach_m", reach_m)?;
        }
        if let Some(deadline_ms) = &self.deadline_ms {
            map.serialize_entry("deadline_ms", deadline_ms)?;
        }
        for (name, value) in &self.foreign {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// By hand, for a derived one with `flatten` would copy every member before it looks at it.
impl<'de, P: Deserialize<'de>> Deserialize<'de> for Feature<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<P>(PhantomData<P>);

impl<'de, P: Deserialize<'de>> Visitor<'de> for Members<P> {
    type Value = Feature<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a GeoJSON Feature")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        #[derive(Deserialize)]
        struct Point {
            coordinates: Coordinates,
        }
        let mut coordinates: Option<Coordinates> = None;
        let mut properties: Option<P> = None;
        let mut feature = event([0.0, 0.0], ());
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*name {
                "type" => _ = members.next_value::<IgnoredAny>()?,
                "geometry" => coordinates = Some(members.next_value::<Point>()?.coordinates),
                "properties" => properties = members.next_value()?,
                "id" => feature.id = members.next_value()?,
                "time" => feature.time = members.next_value()?,
                "ttl_s" => feature.ttl_s = members.next_value()?,
                "key" => feature.key = members.next_value()?,
                "priority" => feature.priority = members.next_value()?,
                "reach_m" => feature.reach_m = members.next_value()?,
                "deadline_ms" => feature.deadline_ms = members.next_value()?,
                _ => _ = feature.foreign.insert(name.into_owned(), members.next_value()?),
            }
        }
        let properties = match properties {
            Some(properties) => properties,
            // Properties that are absent or `null` are an object without members, or the `None` of a type that has one.
            None => {
                let empty = MapDeserializer::<_, M::Error>::new(std::iter::empty::<(&str, &str)>());
                P::deserialize(empty)
                    .or_else(|fault| P::deserialize(UnitDeserializer::<M::Error>::new()).map_err(|_| fault))?
            }
        };
        let Feature { id, time, ttl_s, key, priority, reach_m, deadline_ms, foreign, .. } = feature;
        let coordinates = coordinates.ok_or_else(|| M::Error::missing_field("geometry"))?;
        Ok(Feature { coordinates, properties, id, time, ttl_s, key, priority, reach_m, deadline_ms, foreign })
    }
}

/// The name of an event: a text or a number, which count as they read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A text.
    Text(String),
    /// A number.
    Number(serde_json::Number),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Id {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}
