//! `nearcast events` and `nearcast position`.

use serde_json::{Value, json};

use super::typed;
use crate::harness::{Serve, feature};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_live_is_shown_to_people_and_programs() {
    let program = Serve::new().start().await;
    let http = program.http();
    let lines: String = (0..1_200)
        .map(|n| {
            let mut event =
                feature(&format!("e{n}"), [9.0 + f64::from(n) / 100_000.0, 45.0], json!({"n": n}));
            (event["ttl_s"], event["time"]) = (json!(600), json!("2026-03-01T07:30:00Z"));
            format!("{event}\n")
        })
        .collect();
    http.post("/v1/events", "application/x-ndjson", lines).await.expect(202);
    let shown = typed(&program, &["events", "--near=9,45,1", "--where", "n < 5"], "").await.with(0);
    assert_eq!(
        shown.out,
        "2026-03-01 07:30:00Z 0.0 m e0 9,45 n=0\n2026-03-01 07:30:00Z 0.8 m e1 9.00001,45 n=1"
    );
    let shown = typed(&program, &["events", "--bbox=8,44,10,46", "--limit", "2", "--json"], "").await.with(0);
    let ids: Vec<Value> =
        shown.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids.len(), 2, "{}", shown.out);
    assert!(shown.err.contains("there are more than 2; --all shows them"), "{}", shown.err);
    let shown = typed(&program, &["events", "--all", "--json"], "").await.with(0);
    assert_eq!((shown.out.lines().count(), shown.err.as_str()), (1_200, ""));
    let shown = typed(&program, &["events", "--client", "ann"], "").await.with(0);
    assert_eq!(shown.out, "");
    let refused = typed(&program, &["events", "--near=45,100,5"], "").await.with(1);
    assert!(refused.err.contains("are they swapped?"), "{}", refused.err);
    typed(&program, &["events", "--bbox=1,2,3"], "").await.with(2);
    typed(&program, &["events", "--limit", "0"], "").await.with(2);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_is_shown_if_there_is_one() {
    let program = Serve::new().start().await;
    let refused = typed(&program, &["position", "ann"], "").await.with(1);
    assert!(refused.err.contains("no position of client ann is known"), "{}", refused.err);
    let there = json!({"coordinates": [9.19, 45.5], "accuracy_m": 12});
    program.http().put("/v1/clients/ann/position", &there).await.expect(204);
    let shown = typed(&program, &["position", "ann"], "").await.with(0);
    assert!(shown.out.starts_with("9.19,45.5 within 12 m at "), "{}", shown.out);
    let shown = typed(&program, &["position", "ann", "--json"], "").await.with(0).json();
    assert_eq!((&shown["coordinates"], &shown["accuracy_m"]), (&json!([9.19, 45.5]), &json!(12.0)));
    program.finish().await;
}
