//! Who comes back gets what came meanwhile, in order, from wherever it was.

use serde_json::json;
use tokio_tungstenite::tungstenite::Error;

use super::{durable, epoch, expect_events, expect_gap, publish, stat, subscribe};
use crate::harness::{Raw, Serve, Sse, Ws, eventually, feature, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_while_a_client_was_away_is_there_until_it_is_acknowledged() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut car = program.ws("car").await;
    car.subscribe("s", durable()).await;
    publish(&http, 1, 2).await;
    expect_events(&mut car, 1..=2).await;
    drop(car);
    // The subscription did not end with its connection.
    eventually("the socket is gone", async || (stat(&program, "websockets").await == 0).then_some(())).await;
    http.get("/v1/clients/car/subscriptions/s").await.expect(200);
    publish(&http, 3, 3).await;
    assert_eq!((stat(&program, "durable_sessions").await, stat(&program, "kept_matches").await), (1, 5));
    assert!(stat(&program, "kept_bytes").await > 0);
    let mut car = program.ws("car").await;
    assert_eq!(car.ready["offset"], 0);
    expect_events(&mut car, 1..=5).await;
    car.send(&json!({"op": "ack", "offset": 4})).await;
    let problem = car.problem(json!({"op": "ack", "offset": 6})).await;
    assert_eq!((&problem["status"], &problem["errors"][0]["pointer"]), (&json!(400), &json!("/offset")));
    car.assert_quiet().await;
    let mut again = program.ws("car").await;
    assert_eq!(again.ready["offset"], 4);
    expect_events(&mut again, [5]).await;
    assert_eq!(stat(&program, "kept_matches").await, 1);
    // Nothing is left of a client that is deleted.
    http.delete("/v1/clients/car").await.expect(204);
    assert_eq!((stat(&program, "durable_sessions").await, stat(&program, "kept_bytes").await), (0, 0));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_goes_on_wherever_it_says_that_it_was() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let (http, address) = (program.http(), program.address());
    subscribe(&http, "car", "s", &durable()).await;
    publish(&http, 1, 6).await;
    let mut first = program.ws("car").await;
    expect_events(&mut first, 1..=6).await;
    let epoch = epoch(&first);
    for offset in 0..=6 {
        let mut reader = Ws::resume(address, "car", &epoch, offset).await;
        assert_eq!((&reader.ready["offset"], &reader.ready["epoch"]), (&json!(offset), &json!(epoch)));
        expect_events(&mut reader, offset + 1..=6).await;
        reader.assert_quiet().await;
    }
    first.ok(json!({"op": "move", "coordinates": [9.0, 45.0]})).await;
    first.send(&json!({"op": "ack", "offset": 3})).await;
    first.assert_quiet().await;
    let mut early = Ws::resume(address, "car", &epoch, 1).await;
    expect_gap(&mut early, 2, 3, "acknowledged").await;
    expect_events(&mut early, 4..=6).await;
    for (epoch, offset) in [("other", 2), (&*epoch, 7)] {
        let mut stranger = Ws::resume(address, "car", epoch, offset).await;
        assert_eq!(stranger.ready["offset"], 3);
        expect_gap(&mut stranger, 4, 3, "epoch").await;
        expect_events(&mut stranger, 4..=6).await;
    }
    // What comes then comes to all of them, wherever they began.
    publish(&http, 7, 1).await;
    expect_events(&mut early, [7]).await;
    expect_events(&mut first, [7]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_stream_goes_on_after_its_last_event_id_and_has_acknowledged_it() {
    let program = Serve::new().start().await;
    let (http, address) = (program.http(), program.address());
    subscribe(&http, "car", "s", &durable()).await;
    publish(&http, 1, 4).await;
    let mut stream = program.sse("car").await;
    let mut epoch = String::new();
    for offset in 1..=4 {
        let message = stream.next().await;
        let found = message.epoch_and_offset();
        assert_eq!((found.1, &message.frame()["event"]["id"]), (offset, &json!(format!("e{offset}"))));
        epoch = found.0;
    }
    drop(stream);
    publish(&http, 5, 1).await;
    let mut stream = Sse::resume(address, "car", &format!("{epoch}:3")).await;
    for offset in 4..=5 {
        assert_eq!(stream.next().await.epoch_and_offset(), (epoch.clone(), offset));
    }
    assert_eq!(stat(&program, "kept_matches").await, 2);
    let mut fresh = program.sse("car").await;
    assert_eq!(fresh.next().await.epoch_and_offset().1, 4);
    let mut other = Sse::resume(address, "car", "other:2").await;
    let gap = other.next().await.frame();
    assert_eq!((&gap["reason"], &gap["count"]), (&json!("epoch"), &json!(0)));
    assert_eq!(other.next().await.epoch_and_offset().1, 4);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_readable_of_where_it_was_is_refused() {
    let mut program = Serve::new().start().await;
    for after in ["%ff:1", "a1%c3:1", "a1", "a1:-1", "a1:1&resume=a1:1"] {
        let url = format!("ws://{}/v1/clients/car/ws?resume={after}", program.address());
        let refused = within(&url, tokio_tungstenite::connect_async(&url)).await;
        let Err(Error::Http(answer)) = refused else { panic!("{url} is upgraded") };
        assert_eq!(answer.status(), 400, "{url}");
    }
    for after in [&b"\xff:1"[..], b"a1", b"a1:-1"] {
        let mut raw = Raw::connect(program.address()).await;
        let head = [b"GET /v1/clients/car/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: ", after, b"\r\n\r\n"];
        raw.send(&head.concat()).await;
        let answer = raw.head().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{after:?}: {answer}");
    }
    assert_eq!(stat(&program, "clients").await, 0);
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_other_subscriptions_brought_is_told_as_a_gap() {
    let program = Serve::new().start().await;
    let http = program.http();
    let kept = json!({"filters": [{"where": "kind = 'kept'"}], "durable": true});
    subscribe(&http, "car", "kept", &kept).await;
    subscribe(&http, "car", "all", &json!({"filters": [{}]})).await;
    let mut present = program.ws("car").await;
    for (idx, kind) in [(1, "kept"), (2, "not"), (3, "not"), (4, "kept")] {
        let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({"kind": kind}));
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
        let frame = present.event().await;
        let names = if kind == "kept" { json!(["all", "kept"]) } else { json!(["all"]) };
        let mut found = frame["subscriptions"].as_array().expect("an array").clone();
        found.sort_by_key(ToString::to_string);
        assert_eq!((&frame["offset"], json!(found)), (&json!(idx), names));
    }
    let mut late = program.ws("car").await;
    expect_events(&mut late, [1]).await;
    expect_gap(&mut late, 2, 3, "not-durable").await;
    expect_events(&mut late, [4]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_not_durable_tells_what_it_missed() {
    let program = Serve::new().start().await;
    let http = program.http();
    subscribe(&http, "car", "s", &json!({"filters": [{}]})).await;
    let reader = program.ws("car").await;
    let epoch = epoch(&reader);
    drop(reader);
    publish(&http, 1, 3).await;
    let mut again = Ws::resume(program.address(), "car", &epoch, 1).await;
    assert_eq!(again.ready["offset"], 3);
    expect_gap(&mut again, 2, 3, "not-durable").await;
    let mut other = Ws::resume(program.address(), "car", "other", 1).await;
    expect_gap(&mut other, 1, 3, "epoch").await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_drops_and_resumes_again_and_again_misses_nothing() {
    const EVENTS: u64 = 600;
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let (http, address) = (program.http(), program.address());
    subscribe(&http, "car", "s", &durable()).await;
    let publisher = tokio::spawn(async move {
        for first in (1..=EVENTS).step_by(20) {
            publish(&http, first, 20).await;
        }
    });
    let first = program.ws("car").await;
    let (epoch, mut at) = (epoch(&first), 0);
    drop(first);
    while at < EVENTS {
        let mut reader = Ws::resume(address, "car", &epoch, at).await;
        for _ in 0..37.min(EVENTS - at) {
            at += 1;
            expect_events(&mut reader, [at]).await;
        }
    }
    within("the publisher ends", publisher).await.expect("no panic");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lay_along_a_track_is_told_once() {
    let program = Serve::new().start().await;
    let http = program.http();
    let near = json!({"filters": [{"area": {"radius_m": 500}}], "durable": true});
    subscribe(&http, "car", "s", &near).await;
    for (idx, longitude) in [(1, 9.05), (2, 9.5)] {
        let mut event = feature(&format!("e{idx}"), [longitude, 45.0], json!({}));
        event["ttl_s"] = json!(600);
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    }
    let mut car = program.ws("car").await;
    let track = json!({"op": "move", "track": [[9.0, 45.0, 1_700_000_000], [9.1, 45.0, 1_700_000_600]]});
    car.ok(track.clone()).await;
    let frame = car.event().await;
    assert_eq!((&frame["event"]["id"], &frame["cause"]), (&json!("e1"), &json!("moved")));
    car.ok(track).await;
    car.assert_quiet().await;
    program.finish().await;
}
