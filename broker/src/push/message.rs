//! The text of a push message: the names of an event, and nothing of its place.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::seal::TEXT_BYTES_MAX;
use crate::model::clock;
use crate::model::error::excerpt;
use crate::model::event::Body;
use crate::model::tenant;

/// Bytes of a title and of the line below it, at most.
const TITLE_BYTES_MAX: usize = 120;
const LINE_BYTES_MAX: usize = 240;
/// Bytes of an event's id, at most; a longer one is left out.
const ID_BYTES_MAX: usize = 256;
/// The title of an event that says nothing of itself.
const NAMELESS: &str = "nearcast";
/// The page that a message opens.
const PAGE: &str = "/phone";

/// A message as its browser reads it.
#[derive(Serialize)]
struct Text<'a> {
    client: &'a str,
    title: &'a str,
    body: &'a str,
    count: u64,
    event: Option<&'a Value>,
    url: &'a str,
}

/// The part of an event that is read.
#[derive(Default, Deserialize)]
struct Feature {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    ttl_s: Option<f64>,
    #[serde(default)]
    properties: Option<Properties>,
}

/// The attributes that people know an event by.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    title: Value,
    headline: Value,
    name: Value,
    #[serde(rename = "type")]
    kind: Value,
}

/// A message to send.
pub(super) struct Message {
    pub(super) text: Vec<u8>,
    /// Seconds that the push service may keep it.
    pub(super) ttl_s: u64,
}

/// The length of a message: as long as it is, or a short one where that is too long for a push service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Full,
    Short,
}

impl Message {
    /// Makes the message for a client to whom `count` events have come since the last one, this event the last of them. `None` where
    /// its life is over, and where not even the short message is short enough.
    pub(super) fn new(
        client: &str,
        event: &Body,
        count: u64,
        length: Length,
        ttl_s_max: u64,
    ) -> Option<Self> {
        let feature: Feature = serde_json::from_str(&event.text).unwrap_or_default();
        let ttl_s = ttl_s(&feature, event, ttl_s_max)?;
        let client = tenant::outside(client);
        let (title, body) = names(feature.properties.unwrap_or_default());
        let id = feature.id.filter(|id| id.as_str().is_none_or(|id| id.len() <= ID_BYTES_MAX));
        let url = url(client, id.as_ref());
        let full = Text { client, title: &title, body: &body, count, event: id.as_ref(), url: &url };
        let short = Text { client, title: NAMELESS, body: "", count, event: None, url: PAGE };
        let text = |text: &Text<'_>| {
            let text = serde_json::to_vec(text).ok()?;
            (text.len() <= TEXT_BYTES_MAX).then_some(text)
        };
        let text = match length {
            Length::Full => text(&full).or_else(|| text(&short)),
            Length::Short => text(&short),
        };
        Some(Self { text: text?, ttl_s })
    }
}

/// Seconds that are left of the life of an event, at most `ttl_s_max`; `None` where it is over. An event without a life is news for
/// as long as it is kept.
fn ttl_s(feature: &Feature, event: &Body, ttl_s_max: u64) -> Option<u64> {
    let Some(ttl_s) = feature.ttl_s else { return Some(ttl_s_max) };
    let ttl = Duration::try_from_secs_f64(ttl_s).unwrap_or(Duration::MAX);
    let left = ttl.checked_sub(clock::now().saturating_duration_since(event.received))?;
    // One of no seconds would be lost by a phone that sleeps.
    Some(left.as_secs().saturating_add(1).min(ttl_s_max))
}

/// The title and the line below it: the first two texts that differ.
fn names(properties: Properties) -> (String, String) {
    let Properties { title, headline, name, kind } = properties;
    let mut texts = [title, headline, name, kind].into_iter().filter_map(text);
    let title = texts.next().unwrap_or_else(|| NAMELESS.to_owned());
    let line = texts.find(|text| *text != title).unwrap_or_default();
    (excerpt(&title, TITLE_BYTES_MAX).into_owned(), excerpt(&line, LINE_BYTES_MAX).into_owned())
}

/// A value as one line.
fn text(value: Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// The phone page of a client, at an event.
fn url(client: &str, event: Option<&Value>) -> String {
    let mut fragment = form_urlencoded::Serializer::new(String::new());
    fragment.append_pair("client", client);
    if let Some(event) = event {
        let event = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        fragment.append_pair("event", &event);
    }
    format!("{PAGE}#{}", fragment.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::event::ObjectHash;

    fn body(event: &Value) -> Body {
        Body::new(event.to_string().into(), clock::now(), ObjectHash::default())
    }

    fn read(event: &Value, length: Length) -> Value {
        let message = Message::new("\u{1}fleet\u{1}ann b", &body(event), 3, length, 600).unwrap();
        serde_json::from_slice(&message.text).unwrap()
    }

    #[test]
    fn a_message_names_the_event_and_not_its_place() {
        let event = json!({
            "type": "Feature", "id": "e/1", "geometry": {"type": "Point", "coordinates": [9.19, 45.46]},
            "properties": {"type": "accident", "name": "A4\n west", "street": "Via Torino", "title": null},
        });
        let expected = json!({
            "client": "ann b", "title": "A4 west", "body": "accident", "count": 3, "event": "e/1",
            "url": "/phone#client=ann+b&event=e%2F1",
        });
        assert_eq!(read(&event, Length::Full), expected);
        let short = json!({
            "client": "ann b", "title": "nearcast", "body": "", "count": 3, "event": null, "url": "/phone",
        });
        assert_eq!(read(&event, Length::Short), short);
    }

    #[test]
    fn names_are_bounded_whatever_an_event_says() {
        let event = |properties: Value| json!({"type": "Feature", "id": 7, "properties": properties});
        for (properties, title, line) in [
            (json!({"title": "a", "headline": "b", "name": "c"}), "a", "b"),
            (json!({"title": "a", "headline": "a", "type": "c"}), "a", "c"),
            (json!({"title": ["a"], "name": {"de": "b"}, "type": 4}), "4", ""),
            (json!({"title": " \u{7} "}), "nearcast", ""),
            (json!(null), "nearcast", ""),
        ] {
            let read = read(&event(properties), Length::Full);
            assert_eq!((&read["title"], &read["body"]), (&json!(title), &json!(line)), "{read}");
            assert_eq!(read["event"], 7);
        }
        for letter in ["x", "\u{10ffff}", "\""] {
            let long = letter.repeat(60_000);
            let read = read(&json!({"id": long, "properties": {"title": long, "name": "n"}}), Length::Full);
            let title = read["title"].as_str().unwrap();
            assert!(title.len() <= TITLE_BYTES_MAX + '…'.len_utf8() && title.ends_with('…'), "{title}");
            assert_eq!(read["event"], Value::Null);
        }
    }

    #[test]
    fn a_push_service_keeps_it_no_longer_than_the_event_lives() {
        let left = |ttl_s: Value, max| {
            let body = body(&json!({"id": "a", "ttl_s": ttl_s}));
            Message::new("ann", &body, 1, Length::Full, max).map(|message| message.ttl_s)
        };
        assert_eq!(left(json!(null), 600), Some(600));
        assert_eq!(left(json!(0.5), 600), Some(1));
        assert!(matches!(left(json!(60), 600), Some(59..=60)));
        assert_eq!(left(json!(1e300), 600), Some(600));
        let mut old = body(&json!({"id": "a", "ttl_s": 1}));
        let Some(long_ago) = clock::now().checked_sub(Duration::from_secs(2)) else { return };
        old.received = long_ago;
        assert!(Message::new("ann", &old, 1, Length::Full, 600).is_none());
    }

    #[test]
    fn a_client_whose_name_leaves_no_room_gets_nothing() {
        let body = body(&json!({"id": "a"}));
        assert!(Message::new(&"x".repeat(3_000), &body, 1, Length::Full, 600).is_some());
        assert!(Message::new(&"x".repeat(4_000), &body, 1, Length::Full, 600).is_none());
    }
}
