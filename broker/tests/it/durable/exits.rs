//! What exits carry after a broker of several shards was killed while it published.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::subscribe;
use crate::harness::{Form, Program, Serve, encode, feature, soak};

const CLIENTS: usize = 12;
const OBJECTS: usize = 400;

async fn start(folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    Serve::new().args(&["--shards", "3", "--data", data.to_str().expect("UTF-8")]).start().await
}

/// An event of a kind for each object.
fn batch(kind: &str) -> (&'static str, String) {
    let events: Vec<_> = (0..OBJECTS)
        .map(|object| {
            let mut event = feature(&format!("{kind}-{object}"), [9.0, 45.0], json!({"kind": kind}));
            event["key"] = json!(format!("k{object}"));
            event["ttl_s"] = json!(3_600);
            event
        })
        .collect();
    encode(Form::Lines, &events)
}

/// Reads all that is kept for a client up to an event of an id; returns how many exits there were, each right.
async fn read(program: &Program, client: &str, last: &str) -> u64 {
    let mut reader = program.ws(client).await;
    let mut exits_count = 0;
    loop {
        let frame = reader.next().await;
        if frame["op"] != "event" {
            continue;
        }
        let event: &Value = &frame["event"];
        if event["id"] == last {
            reader.send(&json!({"op": "ack", "offset": frame["offset"]})).await;
            return exits_count;
        }
        // The one before it comes again where its acknowledgement was not on disk yet (`store.ack_delay_ms`).
        if event["properties"]["kind"] == "end" {
            continue;
        }
        assert_eq!(event["properties"]["kind"], "public", "{client}: {frame}");
        exits_count += u64::from(frame["transition"] == "exit");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_never_carries_what_the_subscription_does_not_hold_for() {
    let folder = TempDir::new().expect("a folder");
    let mut exits_count = 0;
    let wish = json!({"filters": [{"where": "kind = 'public'"}], "durable": true, "on": ["enter", "exit"]});
    let end = json!({"filters": [{"where": "kind = 'end'"}], "durable": true});
    let mut program = start(&folder).await;
    for client in 0..CLIENTS {
        subscribe(&program.http(), &format!("c{client}"), "doors", &wish).await;
        subscribe(&program.http(), &format!("c{client}"), "end", &end).await;
    }
    for life in 0..if soak() { 60 } else { 8 } {
        let (content_type, body) = batch("public");
        program.http().post("/v1/events", content_type, body).await.expect(202);
        let http = program.http();
        let publisher = tokio::spawn(async move {
            let (content_type, body) = batch("secret");
            http.attempt("POST", "/v1/events", Some(content_type), body).await
        });
        // Each time a little later, in the middle of it.
        for _ in 0..1 + life * 2 {
            program.http().attempt("GET", "/healthz", None, "").await;
        }
        program.kill();
        publisher.await.expect("it does not panic");
        program = start(&folder).await;
        let last = format!("end-{life}");
        let event = feature(&last, [9.0, 45.0], json!({"kind": "end"}));
        program.http().post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
        for client in 0..CLIENTS {
            exits_count += read(&program, &format!("c{client}"), &last).await;
        }
    }
    assert!(exits_count > 0, "too little happened to mean anything");
    program.finish().await;
}
