//! What was answered is there after the broker was killed, and goes on as if nothing had been.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{durable, epoch, expect_events, publish, stat, subscribe};
use crate::harness::{Program, Serve, Ws, feature};

/// A broker on a data directory.
async fn start(folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    Serve::new().args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")]).start().await
}

/// Kills a broker and starts another on its directory.
async fn restart(mut program: Program, folder: &TempDir) -> Program {
    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;
    start(folder).await
}

async fn publish_live(program: &Program, members: Value) {
    let mut event = feature("live", [9.0, 45.0], json!({}));
    for (name, value) in members.as_object().expect("an object") {
        event[name] = value.clone();
    }
    program.http().post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_where_it_was() {
    let folder = TempDir::new().expect("a folder");
    let program = start(&folder).await;
    subscribe(&program.http(), "car", "s", &durable()).await;
    subscribe(&program.http(), "car", "t", &json!({"filters": [{"where": "no = 1"}]})).await;
    publish(&program.http(), 1, 5).await;
    let mut car = program.ws("car").await;
    expect_events(&mut car, 1..=5).await;
    car.subscribe("passing", json!({"filters": [{"where": "no = 1"}]})).await;
    car.send(&json!({"op": "ack", "offset": 2})).await;
    car.place([9.0, 45.0]).await;
    let epoch = epoch(&car);
    let program = restart(program, &folder).await;
    let http = program.http();
    // Of an acknowledgement nobody waits for, a crash may forget; the move that was answered took it along.
    let mut car = program.ws("car").await;
    assert_eq!((&car.ready["epoch"], &car.ready["offset"]), (&json!(epoch), &json!(2)));
    expect_events(&mut car, 3..=5).await;
    publish(&http, 6, 2).await;
    expect_events(&mut car, 6..=7).await;
    let mut resumed = Ws::resume(program.address(), "car", &epoch, 4).await;
    expect_events(&mut resumed, 5..=7).await;
    http.get("/v1/clients/car/subscriptions/t").await.expect(200);
    http.get("/v1/clients/car/subscriptions/passing").await.expect(404);
    let question =
        json!({"client": "car", "subscription": "s", "event": feature("x", [9.0, 45.0], json!({}))});
    let answer = http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json();
    assert_eq!(answer["position"]["coordinates"], json!([9.0, 45.0]));
    // What is deleted stays deleted.
    http.delete("/v1/clients/car").await.expect(204);
    let program = restart(program, &folder).await;
    assert_eq!((stat(&program, "clients").await, stat(&program, "kept_matches").await), (0, 0));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_inside_leaves_after_the_restart_and_nothing_is_told_twice() {
    let folder = TempDir::new().expect("a folder");
    let program = start(&folder).await;
    let near = json!([{"area": {"radius_m": 500}}]);
    let mut car = program.ws("car").await;
    car.place([9.0, 45.0]).await;
    let transitions = json!({"filters": near, "on": ["enter", "exit"], "durable": true});
    subscribe(&program.http(), "car", "doors", &transitions).await;
    subscribe(&program.http(), "car", "events", &json!({"filters": near, "durable": true})).await;
    publish_live(&program, json!({"key": "bus", "ttl_s": 600})).await;
    publish_live(&program, json!({"id": "short", "key": "tram", "ttl_s": 1.5})).await;
    for _ in 0..4 {
        let frame = car.event().await;
        assert_eq!(frame["cause"], "published", "{frame}");
    }
    let epoch = epoch(&car);
    let program = restart(program, &folder).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_600)).await;
    let mut car = Ws::resume(program.address(), "car", &epoch, 4).await;
    let exit = car.event().await;
    assert_eq!((&exit["transition"], &exit["cause"]), (&json!("exit"), &json!("expired")), "{exit}");
    assert_eq!((&exit["event"]["key"], &exit["offset"]), (&json!("tram"), &json!(5)));
    car.place([9.0001, 45.0]).await;
    car.assert_quiet().await;
    assert_eq!(stat(&program, "live_objects").await, 1);
    program.http().delete("/v1/events/live").await.expect(204);
    let exit = car.event().await;
    assert_eq!((&exit["transition"], &exit["cause"]), (&json!("exit"), &json!("revoked")), "{exit}");
    // The end of an event survives, too.
    let program = restart(program, &folder).await;
    assert_eq!(stat(&program, "live_objects").await, 0);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_stop_loses_nothing_either() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    subscribe(&program.http(), "car", "s", &durable()).await;
    for round in 0..3 {
        publish(&program.http(), round * 10 + 1, 10).await;
        program.finish().await;
        program = start(&folder).await;
        assert_eq!(stat(&program, "kept_matches").await, (round + 1) * 10);
    }
    let mut car = program.ws("car").await;
    expect_events(&mut car, 1..=30).await;
    car.send(&json!({"op": "ack", "offset": 30})).await;
    car.assert_quiet().await;
    program.finish().await;
    let program = start(&folder).await;
    assert_eq!(stat(&program, "kept_matches").await, 0);
    program.finish().await;
}
