//! What is kept is bounded, what is lost is told, and who is slow loses nothing that is kept.

use serde_json::{Value, json};

use super::{durable, epoch, expect_events, expect_gap, publish, stat, subscribe};
use crate::harness::{Form, Received, Serve, Ws, encode, eventually, feature};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_nothing_that_is_kept() {
    const EVENTS: u64 = 3_000;
    // Far more than the outbox holds, and than the kernel takes.
    let config = "[outbox]\nframes = 16\n[sessions]\nkept_bytes = 200000000\n\
        [connection]\nwrite_timeout_ms = 600000\n";
    let mut program = Serve::new().config(config).args(&["--shards", "2"]).start().await;
    let http = program.http();
    subscribe(&http, "slow", "s", &durable()).await;
    let mut slow = program.ws("slow").await;
    for first in (1..=EVENTS).step_by(100) {
        let ballast = "x".repeat(16_000);
        let events: Vec<Value> = (first..first + 100)
            .map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"ballast": ballast})))
            .collect();
        let (content_type, body) = encode(Form::Lines, &events);
        http.post("/v1/events", content_type, body).await.expect(202);
    }
    eventually("it is behind", async || (stat(&program, "readers_behind").await == 1).then_some(())).await;
    expect_events(&mut slow, 1..=EVENTS).await;
    slow.assert_quiet().await;
    assert_eq!((stat(&program, "readers_behind").await, stat(&program, "deliveries_dropped").await), (0, 0));
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_bound_the_oldest_are_lost_and_told_to_who_comes_later() {
    let program = Serve::new().config("[sessions]\nkept_frames = 5\n").start().await;
    let http = program.http();
    subscribe(&http, "car", "s", &durable()).await;
    publish(&http, 1, 12).await;
    let mut car = program.ws("car").await;
    expect_gap(&mut car, 1, 7, "overflow").await;
    expect_events(&mut car, 8..=12).await;
    assert_eq!(stat(&program, "deliveries_dropped").await, 7);
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("nearcast_gap_offsets_total{reason=\"overflow\"} 7"), "{metrics}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_one_object_the_latest_is_kept() {
    let program = Serve::new().config("[sessions]\nkept_frames = 3\n").start().await;
    let http = program.http();
    let mut subscription = durable();
    subscription["overflow"] = json!("keep-latest");
    subscribe(&http, "car", "s", &subscription).await;
    for (idx, key) in (1..).zip(["tram", "bus", "bus", "bus", "bus"]) {
        let mut event = feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
        event["key"] = json!(key);
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    }
    let mut car = program.ws("car").await;
    expect_events(&mut car, [1]).await;
    expect_gap(&mut car, 2, 3, "overflow").await;
    expect_events(&mut car, 4..=5).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_it_is_cut_off_for_not_reading_and_comes_back_to_all_of_it() {
    let config = "[outbox]\nframes = 50\n[sessions]\nkept_bytes = 200000000\n\
        [connection]\nwrite_timeout_ms = 600000\n";
    let program = Serve::new().config(config).start().await;
    let http = program.http();
    let mut subscription = durable();
    subscription["overflow"] = json!("disconnect");
    subscribe(&http, "car", "s", &subscription).await;
    let mut car = program.ws("car").await;
    let epoch = epoch(&car);
    let mut published = 0;
    eventually("it is cut off", async || {
        let ballast = "x".repeat(16_000);
        let events: Vec<Value> = (published + 1..=published + 50)
            .map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"ballast": ballast})))
            .collect();
        published += 50;
        let (content_type, body) = encode(Form::Lines, &events);
        http.post("/v1/events", content_type, body).await.expect(202);
        let metrics = http.get("/metrics").await.expect(200).text();
        metrics.contains("nearcast_cut_off_total{cause=\"overflow\"} 1").then_some(())
    })
    .await;
    let mut last = 0;
    let (code, reason) = loop {
        match car.receive().await {
            Received::Frame(frame) => {
                last += 1;
                assert_eq!(frame["offset"], last, "{}", frame["op"]);
            }
            Received::Closed(code, reason) => break (code, reason),
        }
    };
    assert_eq!((code, reason.split(':').next()), (1013, Some("overflow")));
    assert!(last < published, "everything came: the test publishes too little");
    // More is kept than its outbox holds, and it is not cut off for that.
    let mut car = Ws::resume(program.address(), "car", &epoch, last).await;
    expect_events(&mut car, last + 1..=published).await;
    publish(&http, published + 1, 1).await;
    expect_events(&mut car, [published + 1]).await;
    assert_eq!(stat(&program, "deliveries_dropped").await, 0);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_for_long_enough_goes_and_is_told() {
    let program = Serve::new().config("[sessions]\nkept_s = 1\n").start().await;
    let http = program.http();
    subscribe(&http, "car", "s", &durable()).await;
    publish(&http, 1, 3).await;
    eventually("they are gone", async || (stat(&program, "kept_matches").await == 0).then_some(())).await;
    let mut car = program.ws("car").await;
    expect_gap(&mut car, 1, 3, "age").await;
    publish(&http, 4, 1).await;
    expect_events(&mut car, [4]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_room_of_all_clients_is_bounded() {
    let config = "[sessions]\nkept_bytes = 20000\nkept_total_bytes = 20000\n";
    let program = Serve::new().config(config).args(&["--shards", "2"]).start().await;
    let http = program.http();
    for idx in 0..20 {
        subscribe(&http, &format!("car{idx}"), "s", &durable()).await;
    }
    publish(&http, 1, 50).await;
    let stats = http.get("/v1/stats").await.expect(200).json();
    assert!(stats["kept_bytes"].as_u64().is_some_and(|bytes| bytes <= 20_000), "{stats}");
    // Whoever comes is told of every offset.
    for idx in 0..20 {
        let mut car = program.ws(&format!("car{idx}")).await;
        let mut at = 0;
        while at < 50 {
            let frame = car.next().await;
            at = match frame["op"].as_str() {
                Some("gap") => {
                    assert_eq!((&frame["from"], &frame["reason"]), (&json!(at + 1), &json!("overflow")));
                    frame["to"].as_u64().expect("a number")
                }
                _ => {
                    assert_eq!(frame["offset"], at + 1, "{frame}");
                    at + 1
                }
            };
        }
    }
    program.finish().await;
}
