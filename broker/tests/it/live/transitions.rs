//! Who enters and who leaves, and why.

use serde_json::json;

use super::scene::{
    HOME, Watcher, circle, fence, following, keyed, lasting, north, post, revoke, start, with,
};
use crate::harness::feature;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_enters_and_leaves_because_it_moves() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(100.0))).await;
    let mut walk = async |id: &str, metres: f64| {
        post(&http, &with(keyed("k", id, north(metres)), "properties", json!({"at": metres}))).await;
        car.frames().await
    };
    assert!(walk("k1", 200.0).await.is_empty());
    let frames = walk("k2", 90.0).await;
    let [enter] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&enter["transition"], &enter["cause"]), (&json!("enter"), &json!("published")));
    assert_eq!((&enter["op"], &enter["subscriptions"]), (&json!("event"), &json!(["s"])));
    assert_eq!(enter["event"]["id"], "k2", "an enter carries the event that is inside");
    assert_eq!((&enter["event"]["key"], &enter["event"]["properties"]["at"]), (&json!("k"), &json!(90.0)));
    assert!(walk("k3", 0.0).await.is_empty(), "it stays");
    let frames = walk("k4", 101.0).await;
    let [exit] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&exit["transition"], &exit["cause"]), (&json!("exit"), &json!("published")));
    assert_eq!(exit["event"]["id"], "k3", "an exit carries the last event that was inside");
    assert_eq!(exit["event"]["properties"]["at"], 0.0);
    assert!(walk("k5", 300.0).await.is_empty(), "it is out already");
    assert_eq!(walk("k6", 1.0).await.len(), 1, "and comes back");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_enter_and_leave_because_the_subscriber_moves() {
    let (program, mut car) = start().await;
    car.ws.subscribe("s", fence(&following(100.0))).await;
    post(&program.http(), &lasting("a", north(150.0))).await;
    post(&program.http(), &lasting("b", north(300.0))).await;
    car.assert_told("out of reach", &[]).await;
    for (metres, expected) in [
        (60.0, &["enter a moved s"][..]),
        (100.0, &[]),
        (225.0, &["enter b moved s"]),
        (399.0, &["exit a moved s"]),
        (1_000.0, &["exit b moved s"]),
        (2_000.0, &[]),
        (225.0, &["enter a moved s", "enter b moved s"]),
    ] {
        car.ws.place(north(metres)).await;
        car.assert_told(&format!("{metres} m"), expected).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_that_begins_or_ceases_to_hold_is_a_transition() {
    let (program, mut car) = start().await;
    let http = program.http();
    let filters = json!([{"area": circle(100.0)["area"], "where": "speed > 10"}, {"where": "alarm = TRUE"}]);
    car.ws.subscribe("s", json!({"filters": filters, "on": ["enter", "exit"]})).await;
    for (id, metres, properties, expected) in [
        ("k1", 0.0, json!({"speed": 10}), None),
        ("k2", 0.0, json!({"speed": 11}), Some("enter k2 published s")),
        ("k3", 0.0, json!({"speed": 5, "alarm": true}), None),
        ("k4", 500.0, json!({"alarm": true}), None),
        ("k5", 500.0, json!({"speed": 50}), Some("exit k4 published s")),
        ("k6", 0.0, json!({}), None),
        ("k7", 5_000.0, json!({"alarm": true}), Some("enter k7 published s")),
        ("k8", 0.0, json!({"alarm": "true"}), Some("exit k7 published s")),
    ] {
        post(&http, &with(keyed("k", id, north(metres)), "properties", properties)).await;
        car.assert_told(id, expected.as_slice()).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_may_ask_for_enters_or_exits_alone() {
    let (program, mut car) = start().await;
    let http = program.http();
    for (id, on) in [("in", json!(["enter"])), ("out", json!(["exit"])), ("both", json!(["enter", "exit"]))] {
        car.ws.subscribe(id, with(fence(&circle(100.0)), "on", on)).await;
    }
    post(&http, &keyed("k", "k1", HOME)).await;
    car.assert_told("enter", &["enter k1 published both+in"]).await;
    post(&http, &keyed("k", "k2", north(200.0))).await;
    car.assert_told("exit", &["exit k1 published both+out"]).await;
    post(&http, &keyed("k", "k3", HOME)).await;
    car.assert_told("again", &["enter k3 published both+in"]).await;
    revoke(&http, "k3").await;
    car.assert_told("revoked", &["exit k3 revoked both+out"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_live_neither_enters_nor_leaves() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(100.0))).await;
    car.ws.subscribe("plain", json!({"filters": [circle(100.0)]})).await;
    post(&http, &feature("e", HOME, json!({}))).await;
    car.assert_told("only passing", &["event e published plain"]).await;
    post(&http, &lasting("e", HOME)).await;
    car.assert_told("live", &["enter e published s", "event e published plain"]).await;
    post(&http, &feature("e", north(5_000.0), json!({}))).await;
    car.assert_told("one of the same id that is not", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ending_a_subscription_or_a_client_tells_nothing() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut bus = Watcher::connect(&program, "bus").await;
    bus.ws.subscribe("s", fence(&circle(100.0))).await;
    car.ws.subscribe("s", fence(&circle(100.0))).await;
    post(&http, &lasting("e", HOME)).await;
    car.assert_told("enter", &["enter e published s"]).await;
    car.ws.ok(json!({"op": "unsubscribe", "id": "s"})).await;
    car.assert_told("unsubscribed", &[]).await;
    revoke(&http, "e").await;
    car.assert_told("nobody asks any more", &[]).await;
    bus.assert_told("somebody does", &["enter e published s", "exit e revoked s"]).await;
    post(&http, &lasting("f", HOME)).await;
    http.delete("/v1/clients/bus").await.expect(204);
    assert_eq!(bus.next().await, "enter f published s");
    bus.ws.closed().await;
    // Of the same name, it begins anew: no exit is owed to it.
    let mut bus = Watcher::connect(&program, "bus").await;
    bus.ws.subscribe("s", fence(&circle(100.0))).await;
    revoke(&http, "f").await;
    bus.assert_told("a member from the beginning", &["exit f revoked s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reaches_only_as_far_as_it_says_when_the_client_moves() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut nowhere = Watcher::connect(&program, "nowhere").await;
    for client in [&mut car, &mut nowhere] {
        client.ws.subscribe("s", fence(&json!({}))).await;
        client.ws.subscribe("plain", json!({"filters": [{"where": "mark IS NULL"}]})).await;
    }
    let e = with(lasting("e", north(1_000.0)), "reach_m", json!(400));
    post(&http, &e).await;
    car.assert_told("out of reach", &[]).await;
    nowhere.assert_told("not held to it", &["enter e published s", "event e published plain"]).await;
    for (metres, expected) in [
        (599.9, &[][..]),
        (600.1, &["enter e moved s", "event e moved plain"]),
        (1_399.9, &[]),
        (1_400.1, &["exit e moved s"]),
        (1_000.0, &["enter e moved s"]),
    ] {
        car.ws.place(north(metres)).await;
        car.assert_told(&format!("{metres} m"), expected).await;
    }
    // Who tells a position is held to it from then on.
    nowhere.ws.place(HOME).await;
    nowhere.assert_told("at home", &["exit e moved s"]).await;
    // A newer event may reach less far.
    post(&http, &with(e, "reach_m", json!(0))).await;
    car.assert_told("still there", &["event e published plain"]).await;
    car.ws.place(north(1_001.0)).await;
    car.assert_told("a step aside", &["exit e moved s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_of_a_subscription_are_one_area() {
    let (program, mut car) = start().await;
    let http = program.http();
    let beside = json!({"area": {"center": north(150.0), "radius_m": 100}});
    let filters = json!([circle(100.0), beside]);
    car.ws.subscribe("s", json!({"filters": filters, "on": ["enter", "exit"]})).await;
    for (id, metres, expected) in [
        ("k1", -50.0, Some("enter k1 published s")),
        ("k2", 75.0, None),
        ("k3", 240.0, None),
        ("k4", 251.0, Some("exit k3 published s")),
    ] {
        post(&http, &keyed("k", id, north(metres))).await;
        car.assert_told(id, expected.as_slice()).await;
    }
    program.finish().await;
}
