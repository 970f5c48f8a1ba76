//! Sessions that outlive their connections, over real sockets.

mod bounds;
mod copies;
mod directory;
mod exits;
mod readers;
mod restart;

use serde_json::{Value, json};

use crate::harness::{Form, Http, Program, Ws, encode, feature};

/// A subscription to everything, which is kept.
fn durable() -> Value {
    json!({"filters": [{}], "durable": true})
}

/// Publishes events `e<first>` and on.
async fn publish(http: &Http, first: u64, count: u64) {
    let events: Vec<_> =
        (first..first + count).map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({}))).collect();
    let (content_type, body) = encode(Form::Lines, &events);
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer["accepted"], count, "{answer}");
}

async fn subscribe(http: &Http, client: &str, id: &str, subscription: &Value) {
    let answer =
        http.put(&format!("/v1/clients/{client}/subscriptions/{id}"), subscription).await.expect(201);
    assert_eq!(answer.json()["durable"], subscription["durable"].as_bool().unwrap_or_default());
}

/// The next deliveries are these: event `e<offset>` at each offset.
async fn expect_events(reader: &mut Ws, offsets: impl IntoIterator<Item = u64>) {
    for offset in offsets {
        let frame = reader.event().await;
        assert_eq!(frame["offset"], offset, "{frame}");
        assert_eq!(frame["event"]["id"], format!("e{offset}"), "{frame}");
    }
}

/// The next frame is this gap.
async fn expect_gap(reader: &mut Ws, from: u64, to: u64, reason: &str) {
    let count = (to + 1).saturating_sub(from);
    let expected = json!({"op": "gap", "from": from, "to": to, "count": count, "reason": reason});
    assert_eq!(reader.next().await, expected);
}

fn epoch(reader: &Ws) -> String {
    reader.ready["epoch"].as_str().expect("a text").to_owned()
}

async fn stat(program: &Program, name: &str) -> u64 {
    let stats = program.http().get("/v1/stats").await.expect(200).json();
    stats[name].as_u64().unwrap_or_else(|| panic!("no {name} in {stats}"))
}
