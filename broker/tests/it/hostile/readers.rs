//! Readers that are not there any more, and have not said so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{assert_grown_within, deaf_socket, settled};
use crate::harness::{Form, Raw, Serve, encode, eventually, feature};

/// How many of each kind.
const READERS_COUNT: u64 = 10;

/// Bytes of deliveries that may wait for each.
const OUTBOX_BYTES: u64 = 500_000;

/// Bytes of each event's ballast, and how many there are: more than the kernel takes for one connection.
const BALLAST_BYTES: usize = 16_000;
const EVENTS_COUNT: usize = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_are_gone_without_a_word_cost_their_outbox_and_are_cut_off() {
    let config = format!(
        "[outbox]\nbytes = {OUTBOX_BYTES}\n\
         [connection]\nwrite_timeout_ms = 1500\nping_interval_ms = 500\nsilence_timeout_ms = 15000\n"
    );
    let mut program = Serve::new().config(&config).start().await;
    let http = program.http();
    let mut reader = program.ws("reader").await;
    reader.subscribe("s", json!({"filters": [{"where": "kind = 'last'"}]})).await;
    let mut gone = Vec::new();
    for idx in 0..READERS_COUNT {
        for kind in ["ws", "sse"] {
            let client = format!("{kind}-{idx}");
            // By each of them another text goes out, so that nothing is shared.
            let path = format!("/v1/clients/{client}/subscriptions/s");
            http.put(&path, &json!({"filters": [{"where": format!("for = {idx}")}]})).await.expect(201);
            if kind == "ws" {
                gone.push(deaf_socket(&program, &client).await);
            } else {
                let mut raw = Raw::deaf(program.address()).await;
                let request = format!("GET /v1/clients/{client}/events HTTP/1.1\r\nhost: x\r\n\r\n");
                raw.send(request.as_bytes()).await;
                raw.head().await;
                gone.push(raw);
            }
        }
    }
    let before = program.resident_bytes();
    // The events of the others are published while a reader that is there answers pings.
    let publishing = tokio::spawn(async move {
        for start in (0..EVENTS_COUNT).step_by(50) {
            let events = (start..start + 50).flat_map(|idx| {
                (0..READERS_COUNT).map(move |reader| {
                    let properties = json!({"for": reader, "ballast": "x".repeat(BALLAST_BYTES)});
                    feature(&format!("e{idx}-{reader}"), [9.0, 45.0], properties)
                })
            });
            let (content_type, body) = encode(Form::Lines, &events.collect::<Vec<_>>());
            http.post("/v1/events", content_type, body).await.expect(202);
        }
        let last = feature("last", [9.0, 45.0], json!({"kind": "last"}));
        http.post("/v1/events", "application/geo+json", last.to_string()).await.expect(202);
    });
    assert_eq!(reader.event().await["event"]["id"], "last");
    publishing.await.expect("nothing is refused");
    // Besides the outbox one batch is on its way, as large as the buffer for writes and a frame.
    let each = OUTBOX_BYTES + 3 * (65_536 + BALLAST_BYTES as u64);
    assert_grown_within(&program, before, 2 * READERS_COUNT * each);
    let waits = tokio::spawn(async move {
        reader.event().await;
    });
    settled(&program, "those that are gone are cut off", &HashMap::from([("websockets", 1)])).await;
    waits.abort();
    drop(gone);
    program.assert_healthy();
    program.finish().await;
}

/// How many connections break while they are attached.
const BREAKS_COUNT: u64 = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_break_while_they_are_attached_leave_nothing() {
    let mut program = Serve::new().start().await;
    let http = program.http();
    let path = "/v1/clients/phone/subscriptions/s";
    http.put(path, &json!({"filters": [{"where": "kind = 'a'"}]})).await.expect(201);
    for idx in 0..BREAKS_COUNT {
        let mut raw = Raw::connect(program.address()).await;
        let request = if idx % 4 == 0 {
            "GET /v1/clients/phone/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        } else {
            "GET /v1/clients/phone/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
        };
        raw.send(request.as_bytes()).await;
        // Of all the moments in which it could break each is met now and then.
        let breaks_at = Instant::now() + Duration::from_micros(idx);
        while Instant::now() < breaks_at {
            std::hint::spin_loop();
        }
    }
    eventually("the client has no readers", async || {
        let clients = http.get("/v1/clients").await.expect(200).json();
        (clients["clients"][0]["connections"] == 0).then_some(())
    })
    .await;
    let numbers = HashMap::from([("websockets", 0), ("event_streams", 0), ("clients", 1)]);
    settled(&program, "nothing reads", &numbers).await;
    program.sse("phone").await;
    program.assert_healthy();
    program.finish().await;
}
