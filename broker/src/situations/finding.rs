//! What a situation finds, as the event that tells it.

use std::sync::Arc;

use matcher::geo::Position;
use serde_json::{Map, Value, json};

/// Something that was found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Where it is told.
    pub(crate) position: Position,
    /// The `time` of its event, in Unix milliseconds. That of an event that it follows from, so that it moves no event clock.
    pub(crate) time_ms: i64,
    /// The attributes of its event.
    pub(crate) properties: Map<String, Value>,
    /// Ids of the events that it follows from.
    pub(crate) from: Vec<Arc<str>>,
    /// How many times the deepest of them was derived.
    pub(crate) depth: u32,
    /// The number of the input that brought it.
    pub(crate) offset: u64,
    /// The object that its event is about, and for how long it is live.
    pub(crate) key: Option<String>,
    pub(crate) ttl_s: Option<f64>,
    /// The rule that made it.
    pub(crate) rule: Option<Arc<str>>,
}

impl Finding {
    /// The event that tells it. Its id follows from the situation's version and from what number the finding has, so that a finding
    /// that is published once more has the same.
    pub(super) fn event(&self, by: &str, version: &str, number: u64) -> String {
        let mut event = json!({
            "type": "Feature",
            "id": format!("{version}-{number:x}"),
            "geometry": {"type": "Point", "coordinates": [self.position.x(), self.position.y()]},
            "time": jiff::Timestamp::from_millisecond(self.time_ms).ok().map(|time| time.to_string()),
            "properties": self.properties,
            "derived": {"by": by, "from": self.from, "depth": self.depth + 1},
        });
        if let Some(key) = &self.key {
            event["key"] = json!(key);
        }
        if let Some(ttl_s) = self.ttl_s {
            event["ttl_s"] = json!(ttl_s);
        }
        event.to_string()
    }
}
