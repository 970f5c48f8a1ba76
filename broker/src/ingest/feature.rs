//! Events: GeoJSON Features with a point.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use matcher::event::Event;
use matcher::geo::{Position, Radius, World};
use wire::Fault;

use super::attributes::{self, Bounds};
use super::json::{self, Members};
use super::position;
use crate::config::Limits;
use crate::refusal::Refusal;

/// An accepted event: what engines match, and what subscribers get.
#[derive(Debug)]
pub(crate) struct Published {
    /// What engines match.
    pub(crate) event: Event,
    /// What subscribers get.
    pub(crate) body: Arc<Body>,
}

/// An event as it is delivered: the published Feature with `id` and `time`. Made once, shared by all who get it.
#[derive(Debug)]
pub(crate) struct Body {
    /// JSON on one line.
    pub(crate) text: Box<str>,
    /// When the broker had read it.
    pub(crate) received: Instant,
}

/// Reads Features.
pub(crate) struct FeatureReader {
    world: World,
    bounds: Bounds,
    event_bytes: usize,
    /// Begins the ids that this broker makes, so that two runs make different ones.
    id_prefix: u64,
    next_id: AtomicU64,
}

impl FeatureReader {
    pub(crate) fn new(world: World, limits: &Limits, seed: u64) -> Self {
        let bounds = Bounds {
            attributes: limits.attributes_per_event,
            depth: limits.depth,
            name_bytes: limits.name_bytes,
            text_bytes: limits.text_bytes,
        };
        Self { world, bounds, event_bytes: limits.event_bytes, id_prefix: seed, next_id: AtomicU64::new(0) }
    }

    /// The bytes that an event may have.
    pub(crate) fn event_bytes(&self) -> usize {
        self.event_bytes
    }

    /// What an event that is too large is answered.
    pub(crate) fn too_large(&self) -> Refusal {
        Refusal::TooLarge { what: "an event", limit: self.event_bytes as u64, setting: "limits.event_bytes" }
    }

    /// Reads one Feature.
    pub(crate) fn parse(&self, text: &str) -> Result<Published, Refusal> {
        if text.len() > self.event_bytes {
            return Err(self.too_large());
        }
        self.parse_members(text, Members::parse(text)?)
    }

    /// Reads a Feature whose members have been told apart already.
    pub(crate) fn parse_members(&self, text: &str, mut members: Members<'_>) -> Result<Published, Refusal> {
        refuse_what_is_not_there_yet(&members)?;
        let cleaned = without_nulls(&members);
        let text = cleaned.as_deref().unwrap_or(text);
        let mut faults = Vec::new();
        check_kind(&mut members, &mut faults);
        let position = self.geometry(&mut members, &mut faults);
        let reach = self.reach(&mut members, &mut faults);
        let has_id = check_id(&mut members, self.bounds.name_bytes, &mut faults);
        let has_time = match members.take("time") {
            Some(time) => {
                faults.extend(position::time(time, "/time").err());
                true
            }
            None => false,
        };
        let attributes = match members.take("properties") {
            Some(properties) => attributes::flatten(properties, &self.bounds, &mut faults),
            None => Vec::new(),
        };
        for (name, value) in members.rest() {
            attributes::check(value, &json::pointer("", name), &self.bounds, &mut faults);
        }
        match position {
            Some(position) if faults.is_empty() => Ok(Published {
                event: Event { position, attributes, reach },
                body: Arc::new(Body {
                    text: self.complete(text, has_id, has_time),
                    received: Instant::now(),
                }),
            }),
            _ => Err(Refusal::Invalid(faults)),
        }
    }

    fn geometry(&self, members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<Position> {
        let mut fault = |pointer: &str, detail: &str| {
            faults.push(Fault { pointer: pointer.to_owned(), detail: detail.to_owned() });
            None
        };
        let Some(text) = members.take("geometry") else {
            return fault("/geometry", "must be a GeoJSON Point");
        };
        let mut geometry = match Members::parse(text) {
            Ok(geometry) => geometry,
            Err(Refusal::Invalid(found)) => {
                let below = found
                    .into_iter()
                    .map(|fault| Fault { pointer: format!("/geometry{}", fault.pointer), ..fault });
                faults.extend(below);
                return None;
            }
            Err(_) => return fault("/geometry", "must be a GeoJSON Point"),
        };
        if geometry.take("type") != Some("\"Point\"") {
            return fault("/geometry/type", "must be \"Point\": events happen in one place");
        }
        let Some(coordinates) = geometry.take("coordinates") else {
            return fault("/geometry/coordinates", "must be there");
        };
        for (name, value) in geometry.rest() {
            attributes::check(value, &json::pointer("/geometry", name), &self.bounds, faults);
        }
        position::coordinates(self.world, coordinates, "/geometry/coordinates")
            .map_err(|fault| faults.push(fault))
            .ok()
    }

    fn reach(&self, members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<Radius> {
        let text = members.take("reach_m")?;
        let radius = json::read::<f64>(text, "/reach_m", "a number of metres").and_then(|metres| {
            Radius::new(self.world, metres)
                .map_err(|error| Fault { pointer: "/reach_m".to_owned(), detail: error.to_string() })
        });
        radius.map_err(|fault| faults.push(fault)).ok()
    }

    /// The Feature on one line, with what it lacks.
    fn complete(&self, text: &str, has_id: bool, has_time: bool) -> Box<str> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        let mut body = String::with_capacity(text.len() + 96);
        // A frame is one line, and so is the data of a server-sent event.
        if text.bytes().any(|byte| byte == b'\n' || byte == b'\r') {
            push_without_space(&mut body, text);
        } else {
            body.push_str(text);
        }
        if has_id && has_time {
            return body.into_boxed_str();
        }
        body.pop();
        if !has_id {
            let number = self.next_id.fetch_add(1, Ordering::Relaxed);
            body.push_str(&format!(",\"id\":\"n{:012x}-{number:x}\"", self.id_prefix & 0xffff_ffff_ffff));
        }
        if !has_time {
            let now = jiff::Timestamp::now();
            body.push_str(&format!(",\"time\":\"{now:.3}\""));
        }
        body.push('}');
        body.into_boxed_str()
    }
}

/// Members that the protocol has and this build has not: told by name, so that nobody waits for their effect.
fn refuse_what_is_not_there_yet(members: &Members<'_>) -> Result<(), Refusal> {
    for (name, what) in
        [("ttl_s", "an event that stays live (ttl_s)"), ("key", "an object that lives on (key)")]
    {
        if members.get(name).is_some() {
            return Err(Refusal::not_yet(json::pointer("", name), what));
        }
    }
    match members.get("priority") {
        None | Some("\"normal\"") => Ok(()),
        Some("\"alarm\"") => Err(Refusal::not_yet("/priority", "priority alarm")),
        Some(_) => Err(Refusal::invalid("/priority", "must be \"normal\" or \"alarm\"")),
    }
}

fn check_kind(members: &mut Members<'_>, faults: &mut Vec<Fault>) {
    // Nearly always written plainly; with escapes it is the same text.
    let is_feature = |text: &str| {
        text == "\"Feature\"" || serde_json::from_str::<String>(text).is_ok_and(|kind| kind == "Feature")
    };
    if !members.take("type").is_some_and(is_feature) {
        faults.push(Fault { pointer: "/type".to_owned(), detail: "must be \"Feature\"".to_owned() });
    }
    members.take("priority");
}

/// Whether there is an id; GeoJSON has texts and numbers.
fn check_id(members: &mut Members<'_>, name_bytes: usize, faults: &mut Vec<Fault>) -> bool {
    let Some(text) = members.take("id") else { return false };
    let detail = if text.len() > name_bytes {
        Some(format!("may have at most {name_bytes} bytes (limits.name_bytes)"))
    } else if text.starts_with('"') {
        serde_json::from_str::<String>(text).err().map(|error| json::reason(&error))
    } else {
        serde_json::from_str::<f64>(text).err().map(|_| "must be a text or a number".to_owned())
    };
    faults.extend(detail.map(|detail| Fault { pointer: "/id".to_owned(), detail }));
    true
}

/// Appends a JSON text without the space between its tokens.
fn push_without_space(body: &mut String, text: &str) {
    let mut in_text = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_text {
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else {
            in_text = character == '"';
            if matches!(character, ' ' | '\t' | '\n' | '\r') {
                continue;
            }
        }
        body.push(character);
    }
}

/// The Feature without its `"id": null` and `"time": null`, where it has such: the broker's own would stand there
/// a second time.
fn without_nulls(members: &Members<'_>) -> Option<String> {
    let is_null = |name: &str, value: &str| matches!(name, "id" | "time") && value == "null";
    if !members.rest().any(|(name, value)| is_null(name, value)) {
        return None;
    }
    let mut kept = String::new();
    for (name, value) in members.rest().filter(|(name, value)| !is_null(name, value)) {
        kept.push(if kept.is_empty() { '{' } else { ',' });
        kept.push_str(&serde_json::Value::from(name).to_string());
        kept.push(':');
        kept.push_str(value);
    }
    kept.push('}');
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<Published, Refusal> {
        FeatureReader::new(World::Geodetic, &Config::default().limits, 7).parse(text)
    }

    #[track_caller]
    fn faults(text: &str) -> Vec<String> {
        match parse(text) {
            Err(Refusal::Invalid(faults)) => faults.into_iter().map(|fault| fault.pointer).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn feature(members: &str) -> String {
        format!(r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9.1,45.4]}}{members}}}"#)
    }

    #[test]
    fn a_delivered_event_is_the_published_one_with_id_and_time() {
        let text =
            feature(r#","id":"a","time":"2026-03-01T07:30:00Z","properties":{"a":1},"bbox":[1,2,3,4]"#);
        assert_eq!(&*parse(&text).unwrap().body.text, text);
        let made = parse(&feature(r#","id":null,"properties":{}"#)).unwrap().body;
        let made: serde_json::Value = serde_json::from_str(&made.text).unwrap();
        assert!(made["id"].is_string() && made["time"].is_string(), "{made}");
        assert_eq!(made.as_object().unwrap().len(), 5);
    }

    #[test]
    fn a_delivered_event_is_one_line() {
        let text = feature(",\n \"id\": 7,\r\n\"time\":\"2026-03-01T07:30:00Z\", \"note\": \"a \\\" b\"");
        let body = parse(&text).unwrap().body;
        assert!(
            body.text.ends_with(r#","id":7,"time":"2026-03-01T07:30:00Z","note":"a \" b"}"#),
            "{}",
            body.text
        );
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        let text = r#"{"type":"Thing","id":[],"geometry":{"type":"Point","coordinates":[200,0]},
            "time":"now","reach_m":-1,"properties":{"a":1e999},"x":{"y":1e999}}"#;
        assert_eq!(
            faults(text),
            ["/type", "/geometry/coordinates", "/reach_m", "/id", "/time", "/properties/a", "/x/y"]
        );
        assert_eq!(faults(r#"{"type":"Feature","geometry":null}"#), ["/geometry"]);
        assert_eq!(faults(r#"{"type":"Feature","geometry":[1,2]}"#), ["/geometry"]);
        assert_eq!(
            faults(r#"{"type":"Feature","geometry":{"type":"Polygon","coordinates":[]}}"#),
            ["/geometry/type"]
        );
        assert_eq!(faults(&feature(r#","properties":[]"#)), ["/properties"]);
        assert_eq!(faults(&feature(r#","priority":"urgent""#)), ["/priority"]);
        assert_eq!(faults(&feature(r#","properties":{"a":"\ud800"}"#)), ["/properties/a"]);
        assert_eq!(faults(&feature(r#","note":"\ud800""#)), ["/note"]);
    }

    #[test]
    fn what_is_not_there_yet_is_told_by_name() {
        for (members, pointer) in
            [(r#","ttl_s":3"#, "/ttl_s"), (r#","key":"k""#, "/key"), (r#","priority":"alarm""#, "/priority")]
        {
            let Err(Refusal::NotYet { pointer: found, .. }) = parse(&feature(members)) else {
                panic!("{members}")
            };
            assert_eq!(found, pointer);
        }
    }
}
