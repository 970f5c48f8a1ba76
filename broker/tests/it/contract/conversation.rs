//! Frames that the broker writes: all that it can say is in the contract, and nothing is there that it cannot say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{list, publish, text, vectors};
use crate::harness::{Program, Serve, Sse, Ws, eventually, feature};

const HOME: [f64; 2] = [9.0, 45.0];
const AWAY: [f64; 2] = [9.1, 45.0];

/// What is told by names, each of which has to be known to clients.
const NAMED: [&str; 4] = ["op", "cause", "transition", "reason"];

/// The members of an object, each with the type of its value.
type Shape = BTreeMap<String, &'static str>;

fn shape(object: &Value) -> Shape {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "truth value",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let members = object.as_object().unwrap_or_else(|| panic!("not an object: {object}"));
    members.iter().map(|(name, value)| (name.clone(), kind(value))).collect()
}

/// The frames of the vectors, without what only a newer broker would say.
fn contract() -> Vec<Value> {
    let frames = vectors("frames");
    let known = list(&frames["server"]).iter().filter(|vector| vector["newer"] != true);
    let frame = |vector: &Value| {
        let mut frame = vector["expect"].clone();
        let op = frame.as_object_mut().and_then(|members| members.remove("kind")).expect("a kind");
        frame["op"] = op;
        frame
    };
    known.map(frame).collect()
}

fn problems(frames: &[Value]) -> impl Iterator<Item = &Value> {
    frames.iter().filter(|frame| frame["op"] == "problem").map(|frame| &frame["problem"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_broker_says_is_what_the_contract_has() {
    let mut heard = requests().await;
    heard.extend(objects().await);
    heard.extend(losses().await);
    heard.extend(age().await);
    heard.push(deadline().await);
    heard.push(farewell().await);

    let contract = contract();
    let shapes: BTreeSet<_> = contract.iter().map(shape).collect();
    for frame in &heard {
        assert!(shapes.contains(&shape(frame)), "no vector is of this shape: {frame}");
    }
    let shapes: BTreeSet<_> = problems(&contract).map(shape).collect();
    for problem in problems(&heard) {
        assert!(shapes.contains(&shape(problem)), "no vector is of this shape: {problem}");
    }
    for member in NAMED {
        let names = |frames: &[Value]| -> BTreeSet<String> {
            frames.iter().filter_map(|frame| Some(frame.get(member)?.as_str()?.to_owned())).collect()
        };
        assert_eq!(names(&heard), names(&contract), "{member}");
    }
}

/// The last frame of a broker that stops.
async fn farewell() -> Value {
    let program = Serve::new().start().await;
    let mut socket = program.ws("ann").await;
    program.signal("TERM");
    socket.next().await
}

/// Takes the next frames.
async fn take(socket: &mut Ws, count: usize, heard: &mut Vec<Value>) {
    for _ in 0..count {
        heard.push(socket.next().await);
    }
}

fn with(mut event: Value, member: &str, value: Value) -> Value {
    event[member] = value;
    event
}

/// Answers, and events as they are published.
async fn requests() -> Vec<Value> {
    let program = Serve::new().config("[limits]\nsubscriptions_per_client = 2\n").start().await;
    let mut car = program.ws("car").await;
    let mut heard = vec![car.ready.clone()];
    let event = feature("e", HOME, json!({}));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (frame, answers_count) in [
        (json!({"op": "ping"}), 1),
        (json!({"op": "subscribe", "ref": 1, "id": "all", "filters": [{}]}), 1),
        (json!({"op": "subscribe", "ref": "r", "id": "none", "filters": [{"where": "FALSE"}]}), 1),
        (json!({"op": "subscribe", "id": "none", "filters": [{"where": "FALSE"}]}), 1),
        (json!({"op": "subscribe", "ref": 2, "id": "one more", "filters": [{}]}), 1),
        (json!({"op": "subscribe", "ref": 3, "id": "s", "filters": [{"where": "a >"}]}), 1),
        (json!({"op": "unsubscribe", "ref": "r", "id": "unknown"}), 1),
        (json!({"op": "move", "coordinates": [200, 45]}), 1),
        (json!("no frame"), 1),
        (json!({"op": "publish", "ref": 4, "event": event}), 2),
        (json!({"op": "publish", "ref": 5, "event": event, "traceparent": trace}), 2),
        (json!({"op": "publish", "ref": 6, "event": event, "traceparent": trace, "tracestate": "a=1"}), 2),
        (json!({"op": "publish", "ref": 7, "event": with(event.clone(), "priority", json!("alarm"))}), 2),
    ] {
        car.send(&frame).await;
        take(&mut car, answers_count, &mut heard).await;
    }
    car.send_text("{").await;
    take(&mut car, 1, &mut heard).await;
    car.assert_quiet().await;
    program.finish().await;
    heard
}

/// Live events and transitions, by each cause.
async fn objects() -> Vec<Value> {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut heard = Vec::new();

    let mut walker = program.ws("walker").await;
    walker.place(HOME).await;
    publish(&http, &with(feature("near", AWAY, json!({})), "ttl_s", json!(600))).await;
    walker.subscribe("s", json!({"filters": [{"area": {"radius_m": 100}}]})).await;
    walker.place(AWAY).await;
    take(&mut walker, 1, &mut heard).await;
    walker.place(HOME).await;
    publish(&http, &with(feature("far", AWAY, json!({})), "ttl_s", json!(600))).await;
    walker.subscribe("s", json!({"filters": [{"area": {"radius_m": 100_000}}]})).await;
    take(&mut walker, 1, &mut heard).await;

    let mut watcher = program.ws("watcher").await;
    let fence = json!({"filters": [{"area": {"center": HOME, "radius_m": 100}}], "on": ["enter", "exit"]});
    watcher.subscribe("fence", fence).await;
    let bus = |at| with(feature("e", at, json!({})), "key", json!("bus"));
    publish(&http, &bus(HOME)).await;
    publish(&http, &bus(AWAY)).await;
    publish(&http, &with(feature("soon over", HOME, json!({})), "ttl_s", json!(0.1))).await;
    take(&mut watcher, 4, &mut heard).await;
    publish(&http, &with(feature("revoked", HOME, json!({})), "ttl_s", json!(600))).await;
    http.delete("/v1/events/revoked").await.expect(204);
    take(&mut watcher, 2, &mut heard).await;
    let traced = json!({"op": "publish", "event": bus(HOME), "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
    watcher.send(&traced).await;
    take(&mut watcher, 2, &mut heard).await;
    program.finish().await;
    heard
}

async fn durable(program: &Program, client: &str) {
    let subscription = json!({"filters": [{}], "durable": true});
    let path = format!("/v1/clients/{client}/subscriptions/s");
    program.http().put(&path, &subscription).await.expect(201);
}

/// Gaps of each reason but age and deadlines.
async fn losses() -> Vec<Value> {
    let config = "[limits]\nmembers_per_subscription = 1\n[sessions]\nkept_frames = 2\n";
    let program = Serve::new().config(config).start().await;
    let (http, address) = (program.http(), program.address());
    let mut heard = Vec::new();

    durable(&program, "sleeper").await;
    // Nothing is kept for this one, and its position keeps the session.
    http.put("/v1/clients/walker/position", &json!({"coordinates": HOME})).await.expect(204);
    http.put("/v1/clients/walker/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let walker = program.ws("walker").await;
    let epoch = text(&walker.ready["epoch"]).to_owned();
    drop(walker);
    for id in ["a", "b", "c", "d"] {
        publish(&http, &feature(id, HOME, json!({}))).await;
    }
    let mut walker = Ws::resume(address, "walker", &epoch, 0).await;
    take(&mut walker, 1, &mut heard).await;
    let mut stream = Sse::resume(address, "walker", &format!("{epoch}:0")).await;
    publish(&http, &feature("e", HOME, json!({}))).await;
    for _ in 0..2 {
        let message = stream.next().await;
        let frame = message.frame();
        let offset = frame.get("offset").or(frame.get("to")).expect("where it is");
        assert_eq!(
            (message.id.as_str(), json!(message.event)),
            (format!("{epoch}:{offset}").as_str(), frame["op"].clone())
        );
        heard.push(frame);
    }
    let mut sleeper = program.ws("sleeper").await;
    take(&mut sleeper, 3, &mut heard).await;
    sleeper.send(&json!({"op": "ack", "offset": 4})).await;
    sleeper.assert_quiet().await;
    let epoch = text(&sleeper.ready["epoch"]).to_owned();
    for (epoch, offset) in [(epoch.as_str(), 3), ("another", 9)] {
        let mut again = Ws::resume(address, "sleeper", epoch, offset).await;
        take(&mut again, 2, &mut heard).await;
    }

    durable(&program, "alarmed").await;
    publish(&http, &feature("first", HOME, json!({}))).await;
    publish(&http, &with(feature("alarm", HOME, json!({})), "priority", json!("alarm"))).await;
    let mut alarmed = program.ws("alarmed").await;
    take(&mut alarmed, 3, &mut heard).await;

    let mut watcher = program.ws("watcher").await;
    watcher.subscribe("fence", json!({"filters": [{}], "on": ["enter"]})).await;
    for key in ["bus", "tram"] {
        publish(&http, &with(feature(key, HOME, json!({})), "key", json!(key))).await;
    }
    take(&mut watcher, 2, &mut heard).await;
    program.finish().await;
    heard
}

/// A gap of what was not written in time.
async fn deadline() -> Value {
    let program = Serve::new().start().await;
    durable(&program, "sleeper").await;
    publish(&program.http(), &with(feature("urgent", HOME, json!({})), "deadline_ms", json!(1))).await;
    // It may come once to a reader that is quick; it is not acknowledged.
    let gap = eventually("it is too late", async || {
        let frame = program.ws("sleeper").await.next().await;
        (frame["op"] == "gap").then_some(frame)
    })
    .await;
    program.finish().await;
    gap
}

/// A gap of what was kept for long enough.
async fn age() -> Vec<Value> {
    let program = Serve::new().config("[sessions]\nkept_s = 1\n").start().await;
    durable(&program, "sleeper").await;
    publish(&program.http(), &feature("old", HOME, json!({}))).await;
    let gap = eventually("it is too old", async || {
        let frame = program.ws("sleeper").await.next().await;
        (frame["op"] == "gap").then_some(frame)
    })
    .await;
    program.finish().await;
    vec![gap]
}
