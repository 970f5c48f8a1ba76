//! Requests without an end, and nobody who reads the answers.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{PROBES_COUNT, assert_grown_within, deaf_socket, frame, settled};
use crate::harness::{Http, Serve, Witness};

/// How many flood at once.
const CLIENTS_COUNT: u64 = 4;

/// Requests that each sends at a time.
const STRIDE: usize = 100;

/// Answers that may wait for each.
const ANSWERS: u64 = 64;

/// Floods with these requests while somebody else is served.
async fn flood(name: &str, requests: impl Fn(usize) -> Value) {
    let config = format!("[outbox]\nanswers = {ANSWERS}\n");
    let mut program = Serve::new().config(&config).start().await;
    let mut witness = Witness::new(&program).await;
    let bytes = (0..STRIDE).flat_map(|idx| frame(&requests(idx))).collect::<Vec<_>>();
    let before = program.resident_bytes();
    let mut clients = JoinSet::new();
    for idx in 0..CLIENTS_COUNT {
        let mut raw = deaf_socket(&program, &format!("car-{idx}")).await;
        let bytes = bytes.clone();
        clients.spawn(async move { while raw.send(&bytes).await {} });
    }
    for _ in 0..PROBES_COUNT {
        witness.probe_elsewhere(name).await;
    }
    // What each has waiting: answers, a buffer full of them on its way, and one full of requests.
    let answer_bytes = 1_024;
    assert_grown_within(&program, before, CLIENTS_COUNT * (ANSWERS * answer_bytes + (1 << 20)));
    assert!(clients.try_join_next().is_none(), "{name}: a flood was cut off");
    clients.shutdown().await;
    let left = HashMap::from([("websockets", 1), ("subscriptions", 1)]);
    settled(&program, "nothing is left of the floods", &left).await;
    witness.probe_elsewhere(name).await;
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_subscriptions_that_come_and_go() {
    let filters = json!([{"area": {"radius_m": 1000}, "where": "speed > 50 AND kind IN ('bus', 'tram')"}]);
    flood("subscriptions", |idx| {
        let id = format!("s{}", idx / 2 % 10);
        if idx % 2 == 0 {
            json!({"op": "subscribe", "ref": idx, "id": id, "filters": filters})
        } else {
            json!({"op": "unsubscribe", "ref": idx, "id": id})
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_moves() {
    flood("moves", |idx| {
        let lon = 9.0 + idx as f64 / 1_000.0;
        match idx % 3 {
            0 => json!({"op": "move", "coordinates": [lon, 45.0]}),
            1 => json!({"op": "move", "ref": idx, "coordinates": [lon, 45.0], "accuracy_m": 10}),
            _ => json!({"op": "move", "track": [[lon, 45.0, 1], [lon + 0.01, 45.0, 2]]}),
        }
    })
    .await;
}

/// A subscription of nearly as many bytes as it may have, all of them conditions.
fn huge_subscription(salt: usize) -> Value {
    // As many alternatives as there may be.
    let alternative = |row: usize| {
        let tests = (0..6).map(|column| format!("name_{salt}_{row}_{column} > {row}"));
        tests.collect::<Vec<_>>().join(" AND ")
    };
    let condition = (0..64).map(alternative).collect::<Vec<_>>().join(" OR ");
    assert!((7_000..8_100).contains(&condition.len()), "{} bytes", condition.len());
    json!({"filters": vec![json!({"where": condition}); 64]})
}

async fn replace_all(http: &Http, salt: usize) {
    for idx in 0..CLIENTS_COUNT {
        let path = format!("/v1/clients/car-{idx}/subscriptions/s");
        let answer = http.put(&path, &huge_subscription(salt)).await;
        assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_huge_conditions() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let empty = program.resident_bytes();
    // Once round first: what stays is replaced afterwards.
    replace_all(&http, 0).await;
    let full = program.resident_bytes();
    for salt in 1..4 {
        replace_all(&http, salt).await;
        witness.probe_elsewhere("huge conditions").await;
    }
    assert_grown_within(&program, full, full.saturating_sub(empty));
    for idx in 0..CLIENTS_COUNT {
        http.delete(&format!("/v1/clients/car-{idx}")).await.expect(204);
    }
    settled(&program, "all are gone", &HashMap::from([("subscriptions", 1)])).await;
    witness.probe_elsewhere("huge conditions").await;
    program.assert_healthy();
    program.finish().await;
}
