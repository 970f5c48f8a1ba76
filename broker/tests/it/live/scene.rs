//! What the tests of live events have in common: places, documents, and a client that tells in short what it is told.

use serde_json::{Value, json};

use crate::harness::{Door, Http, Program, Serve, Ws, feature};

/// Where most of it happens.
pub(crate) const HOME: [f64; 2] = [9.0, 45.0];

/// Metres of a degree of latitude.
const DEGREE_M: f64 = 6_371_008.8 * std::f64::consts::PI / 180.0;

/// So many metres north of home.
pub(crate) fn north(metres: f64) -> [f64; 2] {
    [HOME[0], HOME[1] + metres / DEGREE_M]
}

/// An event that lives for an hour.
pub(crate) fn lasting(id: &str, at: [f64; 2]) -> Value {
    with(feature(id, at, json!({})), "ttl_s", json!(3600))
}

/// What is known of a named object now.
pub(crate) fn keyed(key: &str, id: &str, at: [f64; 2]) -> Value {
    with(feature(id, at, json!({})), "key", json!(key))
}

/// The same with one more member.
pub(crate) fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

/// A subscription to both transitions of one filter.
pub(crate) fn fence(filter: &Value) -> Value {
    json!({"filters": [filter], "on": ["enter", "exit"]})
}

/// A circle around home that stays there.
pub(crate) fn circle(radius_m: f64) -> Value {
    json!({"area": {"center": HOME, "radius_m": radius_m}})
}

/// A circle that follows the client.
pub(crate) fn following(radius_m: f64) -> Value {
    json!({"area": {"radius_m": radius_m}})
}

/// A broker with several shards, and a client at home.
pub(crate) async fn start() -> (Program, Watcher) {
    start_with("").await
}

/// The same with settings.
pub(crate) async fn start_with(config: &str) -> (Program, Watcher) {
    let program = Serve::new().args(&["--shards", "3"]).config(config).start().await;
    let mut car = Watcher::connect(&program, "car").await;
    car.ws.place(HOME).await;
    (program, car)
}

/// Publishes by `POST`.
pub(crate) async fn post(http: &Http, event: &Value) {
    let answer = http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202).json();
    assert_eq!(answer["accepted"], 1, "{answer}");
}

/// Ends live events.
pub(crate) async fn revoke(http: &Http, id: &str) {
    http.delete(&format!("/v1/events/{id}")).await.expect(204);
}

/// A client that knows when it has been told everything: it gets marks of its own, which come after all that was in
/// force when they were published.
pub(crate) struct Watcher {
    pub(crate) ws: Ws,
    name: String,
    marks_count: u32,
    /// Of the last delivery.
    offset: u64,
}

impl Watcher {
    /// Connects a client.
    pub(crate) async fn connect(door: &Door, name: &str) -> Self {
        let mut ws = door.ws(name).await;
        let offset = ws.ready["offset"].as_u64().expect("a number");
        ws.subscribe("mark", json!({"filters": [{"where": format!("mark = '{name}'")}]})).await;
        Self { ws, name: name.to_owned(), marks_count: 0, offset }
    }

    /// All that has been told since the last call, in short and in alphabetic order: what happens at one moment may
    /// be told in any order.
    pub(crate) async fn told(&mut self) -> Vec<String> {
        let frames = self.frames().await;
        let mut told = frames.iter().map(short).collect::<Vec<_>>();
        told.sort();
        told
    }

    /// The same, frame by frame as they came.
    pub(crate) async fn frames(&mut self) -> Vec<Value> {
        self.marks_count += 1;
        let mark = format!("mark-{}", self.marks_count);
        self.ws.publish(&feature(&mark, [0.0, 0.0], json!({"mark": self.name}))).await;
        let mut frames = Vec::new();
        loop {
            let frame = self.frame().await;
            if frame["event"]["id"] == mark {
                return frames;
            }
            frames.push(frame);
        }
    }

    /// What is told next, in short.
    pub(crate) async fn next(&mut self) -> String {
        short(&self.frame().await)
    }

    /// The next event or gap, whose offset must follow the last one.
    pub(crate) async fn frame(&mut self) -> Value {
        let frame = self.ws.next().await;
        let first = if frame["op"] == "gap" { &frame["from"] } else { &frame["offset"] };
        assert_eq!(*first, self.offset + 1, "after {}: {frame}", self.offset);
        self.offset = frame["to"].as_u64().unwrap_or(self.offset + 1);
        frame
    }

    /// Demands that this and nothing else has been told.
    pub(crate) async fn assert_told(&mut self, what: &str, expected: &[&str]) {
        assert_eq!(self.told().await, expected, "{what}");
    }
}

/// A delivery in short: `enter e1 published s+t`, where `event` stands for one that is no transition, and `gap`
/// with its reason for a loss.
pub(crate) fn short(frame: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if frame["op"] == "gap" {
        return format!("gap {} {}", text(&frame["count"]), text(&frame["reason"]));
    }
    assert_eq!(frame["op"], "event", "{frame}");
    let names = frame["subscriptions"].as_array().unwrap_or_else(|| panic!("no names in {frame}"));
    let mut names = names.iter().map(text).collect::<Vec<_>>();
    names.sort();
    let kind = frame.get("transition").map_or_else(|| "event".to_owned(), text);
    format!("{kind} {} {} {}", text(&frame["event"]["id"]), text(&frame["cause"]), names.join("+"))
}
