//! The two ends of an event's way through the broker, for those who measure them: its text read, and the frame
//! that a subscriber gets. Nothing else of the way can be reached from outside.

use std::sync::Arc;

use matcher::event::Event;
use matcher::geo::World;
use matcher::live::Cause;
use wire::Problem;

use crate::config::Config;
use crate::http::encode;
use crate::ingest::Behalf;
use crate::ingest::feature::FeatureReader;
use crate::model::delivery::{Delivery, Entry, SubscriptionIds};
use crate::model::event::Published;

/// Reads events as the broker does.
pub struct EventReader(FeatureReader);

impl EventReader {
    /// Makes a reader with the limits of these settings.
    #[must_use]
    pub fn new(world: World, config: &Config) -> Self {
        Self(FeatureReader::new(world, &config.limits, 0))
    }

    /// Reads one Feature.
    ///
    /// # Errors
    /// The problem that a publisher would be answered.
    pub fn read(&self, text: &str) -> Result<AcceptedEvent, Box<Problem>> {
        self.0
            .parse(Behalf::default(), text)
            .map(AcceptedEvent)
            .map_err(|refusal| Box::new(refusal.problem()))
    }
}

/// An event that was read.
#[derive(Debug)]
pub struct AcceptedEvent(Published);

impl AcceptedEvent {
    /// The event as engines match it.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.0.event
    }

    /// The payload of the frame of its delivery to a client with one subscription that it satisfies; the subscription's id
    /// is a JSON text, as sessions keep it.
    #[must_use]
    pub fn frame(&self, offset: u64, subscription: &Arc<str>) -> Vec<u8> {
        let entry = Entry::Delivery(Delivery {
            offset,
            subscriptions: SubscriptionIds::One(Arc::clone(subscription)),
            cause: Cause::Published,
            transition: None,
            body: Arc::clone(&self.0.body),
            overflow: None,
            is_late: false,
            is_ahead: false,
        });
        let mut payload = Vec::with_capacity(encode::payload_bytes(&entry));
        encode::push_payload(&mut payload, &entry);
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_is_delivered() {
        let reader = EventReader::new(World::Geodetic, &Config::default());
        let text = r#"{"type":"Feature","id":"e","time":"2026-01-01T00:00:00Z",
            "geometry":{"type":"Point","coordinates":[9.19,45.46]},"properties":{"speed":3.5}}"#;
        let accepted = reader.read(text).unwrap();
        assert_eq!(accepted.event().attributes.len(), 1);
        let frame = accepted.frame(17, &Arc::from("\"s1\""));
        let frame: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        let published: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(frame["event"], published);
        assert_eq!((&frame["offset"], &frame["subscriptions"][0]), (&17.into(), &"s1".into()));
        assert!(reader.read("{}").is_err());
    }
}
