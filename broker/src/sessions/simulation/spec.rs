//! The events and subscriptions of the simulation: on a line, at whole metres, so that everybody agrees who is how far away.

use std::fmt::Write as _;

use crate::model::delivery::OverflowName;

/// An event.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    /// Which of all events it is.
    pub(super) number: u64,
    pub(super) id: String,
    pub(super) key: Option<String>,
    /// Time for which the event is live, where that was said.
    pub(super) ttl_ms: Option<u64>,
    pub(super) at: i64,
    pub(super) kind: u8,
    /// Bytes of nothing that make it larger.
    pub(super) padding: usize,
}

/// A subscription, as a document says it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) area: Area,
    pub(super) kind: Option<u8>,
    /// The kind that its client is confined to.
    pub(super) confined: Option<u8>,
    /// The transitions that the subscription receives; without them it receives events.
    pub(super) transitions: Option<Transitions>,
    pub(super) durable: bool,
    pub(super) overflow: Option<OverflowName>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Area {
    Following(i64),
    Circle(i64, i64),
    Everywhere,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transitions {
    pub(super) enter: bool,
    pub(super) exit: bool,
    pub(super) initial: bool,
    pub(super) dwell_ms: u64,
}

/// How long an event with a key lives that says nothing of it.
pub(super) const TTL_MS: u64 = 20_000;

impl Event {
    pub(super) fn is_live(&self) -> bool {
        self.key.is_some() || self.ttl_ms.is_some()
    }

    pub(super) fn ttl_ms(&self) -> u64 {
        self.ttl_ms.unwrap_or(TTL_MS)
    }

    /// Name of the object that the event is about.
    pub(super) fn object(&self) -> String {
        match &self.key {
            Some(key) => format!("key:{key}"),
            None => format!("id:{}", self.id),
        }
    }

    /// Text of the event as it is published, with all that the broker would add.
    pub(super) fn text(&self) -> String {
        let Self { number, id, key, ttl_ms, at, kind, padding } = self;
        let mut text = format!(
            r#"{{"type":"Feature","id":"{id}","time":"2026-03-01T07:30:00Z","geometry":{{"type":"Point","coordinates":[{at},0]}},"properties":{{"n":{number},"kind":{kind},"p":"{}"}}"#,
            "x".repeat(*padding)
        );
        if let Some(key) = key {
            write!(text, r#","key":"{key}""#).expect("a text grows");
        }
        if let Some(ttl_ms) = ttl_ms {
            write!(text, r#","ttl_s":{}"#, seconds(*ttl_ms)).expect("a text grows");
        }
        text.push('}');
        text
    }
}

impl Spec {
    pub(super) fn document(&self) -> String {
        let area = match self.area {
            Area::Following(radius) => format!(r#""area":{{"radius_m":{radius}}}"#),
            Area::Circle(at, radius) => format!(r#""area":{{"center":[{at},0],"radius_m":{radius}}}"#),
            Area::Everywhere => String::new(),
        };
        let condition = self.kind.map(|kind| format!(r#""where":"kind = {kind}""#)).unwrap_or_default();
        let comma = if area.is_empty() || condition.is_empty() { "" } else { "," };
        let mut text = format!(r#"{{"filters":[{{{area}{comma}{condition}}}]"#);
        if let Some(Transitions { enter, exit, initial, dwell_ms }) = self.transitions {
            let on = match (enter, exit) {
                (true, true) => r#""enter","exit""#,
                (true, false) => r#""enter""#,
                _ => r#""exit""#,
            };
            let dwell_s = seconds(dwell_ms);
            write!(text, r#","on":[{on}],"initial":{initial},"dwell_s":{dwell_s}"#).expect("a text grows");
        }
        if self.durable {
            text.push_str(r#","durable":true"#);
        }
        if let Some(overflow) = self.overflow {
            let name = match overflow {
                OverflowName::KeepLatest => "keep-latest",
                OverflowName::DropOldest => "drop-oldest",
                OverflowName::Disconnect => "disconnect",
            };
            write!(text, r#","overflow":"{name}""#).expect("a text grows");
        }
        text.push('}');
        text
    }

    /// Whether an event is inside, for a client that is there.
    pub(super) fn holds(&self, client: Option<i64>, event: &Event) -> bool {
        self.takes_kind(event.kind) && self.reaches(client, event.at)
    }

    pub(super) fn takes_kind(&self, kind: u8) -> bool {
        self.kind.into_iter().chain(self.confined).all(|wanted| wanted == kind)
    }

    /// Whether the area holds a place.
    pub(super) fn reaches(&self, client: Option<i64>, place: i64) -> bool {
        match self.area {
            Area::Following(radius) => client.is_some_and(|client| (client - place).abs() <= radius),
            Area::Circle(at, radius) => (at - place).abs() <= radius,
            Area::Everywhere => true,
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}
