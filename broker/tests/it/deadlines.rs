//! Events with `deadline_ms`: a gap takes the place of what is not written by then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Http, Serve, eventually, feature};

/// An event that may be delivered for a tenth of a second.
fn urgent(id: &str) -> Value {
    let mut event = feature(id, [9.0, 45.0], json!({}));
    event["deadline_ms"] = json!(100);
    event
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

/// Until the deadlines of what was published so far are over.
async fn deadlines_over() {
    let began = Instant::now();
    eventually("the deadline", async || (began.elapsed() > Duration::from_millis(101)).then_some(())).await;
}

async fn subscribe(http: &Http, document: &Value) {
    http.put("/v1/clients/car/subscriptions/s", document).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_is_not_written_by_the_deadline_is_a_gap() {
    let program = Serve::new().start().await;
    let http = program.http();
    subscribe(&http, &json!({"filters": [{}], "durable": true})).await;
    publish(&http, &urgent("a")).await;
    publish(&http, &urgent("b")).await;
    publish(&http, &feature("c", [9.0, 45.0], json!({}))).await;
    publish(&http, &urgent("d")).await;
    deadlines_over().await;
    let mut sse = program.sse("car").await;
    let gap = |from: u64, to: u64| json!({"from": from, "to": to, "count": to + 1 - from, "reason": "late"});
    let told = |frame: &Value| json!({"from": frame["from"], "to": frame["to"], "count": frame["count"], "reason": frame["reason"]});
    assert_eq!(told(&sse.next().await.frame()), gap(1, 2));
    assert_eq!(sse.next().await.frame()["event"]["id"], "c");
    assert_eq!(told(&sse.next().await.frame()), gap(4, 4));
    // Who reads gets it in time, as it was published.
    let mut event = urgent("e");
    event["deadline_ms"] = json!(60_000);
    publish(&http, &event).await;
    let frame = sse.next().await.frame();
    assert_eq!(
        (&frame["event"]["id"], &frame["event"]["deadline_ms"]),
        (&json!("e"), &json!(60_000)),
        "{frame}"
    );
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("nearcast_gap_offsets_total{reason=\"late\"} 3"), "{metrics}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlines_count_on_while_the_broker_is_away() {
    let data = TempDir::new().expect("a folder");
    let data_path = data.path().join("data").display().to_string();
    let serve = || Serve::new().args(&["--data", &data_path]);
    let program = serve().start().await;
    let http = program.http();
    subscribe(&http, &json!({"filters": [{}], "durable": true})).await;
    publish(&http, &urgent("a")).await;
    let mut event = urgent("b");
    event["deadline_ms"] = json!(600_000);
    publish(&http, &event).await;
    program.kill();
    deadlines_over().await;
    let program = serve().start().await;
    let mut ws = program.ws("car").await;
    let gap = ws.next().await;
    assert_eq!(
        (&gap["op"], &gap["from"], &gap["to"], &gap["reason"]),
        (&json!("gap"), &json!(1), &json!(1), &json!("late"))
    );
    assert_eq!(ws.event().await["event"]["id"], "b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_by_too_late_is_told_and_exits_are_never_too_late() {
    let program = Serve::new().start().await;
    let http = program.http();
    let place = async |at: [f64; 2]| {
        http.put("/v1/clients/car/position", &json!({"coordinates": at})).await.expect(204);
    };
    subscribe(&http, &json!({"filters": [{"area": {"radius_m": 500}}], "on": ["enter", "exit"]})).await;
    let mut ws = program.ws("car").await;
    place([9.0, 45.0]).await;
    let mut event = urgent("a");
    (event["ttl_s"], event["deadline_ms"]) = (json!(600), json!(60_000));
    publish(&http, &event).await;
    assert_eq!(ws.event().await["transition"], "enter");
    event["deadline_ms"] = json!(100);
    (event["id"], event["key"]) = (json!("b"), json!("b"));
    publish(&http, &event).await;
    let first = ws.next().await;
    // On a slow machine it may be too late even for the reader that waits.
    assert!(first["transition"] == "enter" || first["reason"] == "late", "{first}");
    deadlines_over().await;
    place([10.0, 45.0]).await;
    assert_eq!(ws.event().await["transition"], "exit");
    assert_eq!(ws.event().await["transition"], "exit");
    place([9.0, 45.0]).await;
    let told = [ws.next().await, ws.next().await];
    assert_eq!((&told[0]["event"]["id"], &told[1]["reason"]), (&json!("a"), &json!("late")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlines_that_are_none_are_refused() {
    let program = Serve::new().start().await;
    let http = program.http();
    for value in [json!(0), json!(-1), json!("1"), json!(86_400_001), json!([1])] {
        let mut event = urgent("a");
        event["deadline_ms"] = value;
        let refused = http.post("/v1/events", "application/geo+json", event.to_string()).await.problem(400);
        assert_eq!(refused["errors"][0]["pointer"], "/deadline_ms", "{event}: {refused}");
    }
    program.finish().await;
}
