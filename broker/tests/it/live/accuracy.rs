//! A fix that is worse than an area neither lets in nor out.

use serde_json::json;

use super::scene::{
    HOME, Watcher, fence, following, keyed, lasting, north, post, revoke, start, start_with, with,
};
use crate::harness::Http;

/// Tells where the client is, and how well it knows that.
async fn place(http: &Http, metres: f64, accuracy_m: f64) {
    let fix = json!({"coordinates": north(metres), "accuracy_m": accuracy_m});
    http.put("/v1/clients/car/position", &fix).await.expect(204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_worse_than_the_radius_moves_nobody() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&following(100.0))).await;
    car.ws.subscribe("wide", fence(&following(500.0))).await;
    car.ws.subscribe("plain", json!({"filters": [following(100.0)]})).await;
    post(&http, &lasting("e", north(1_000.0))).await;
    for (metres, accuracy_m, expected) in [
        // At the border a fix counts: it has to be worse than the radius.
        (950.0, 100.001, &["enter e moved wide", "event e moved plain"][..]),
        (950.0, 100.0, &["enter e moved s"]),
        (3_000.0, 100.001, &["exit e moved wide"]),
        (3_000.0, 600.0, &[]),
        (3_000.0, 100.0, &["exit e moved s"]),
        (950.0, 501.0, &[]),
        (950.0, 0.0, &["enter e moved s+wide"]),
    ] {
        place(&http, metres, accuracy_m).await;
        car.assert_told(&format!("{metres} m, known to {accuracy_m} m"), expected).await;
    }
    // A fix that says nothing of its accuracy is as good as any.
    place(&http, 0.0, 1_000.0).await;
    car.assert_told("held", &[]).await;
    car.ws.place(HOME).await;
    car.assert_told("a fix that can be used", &["exit e moved s+wide"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_fix_is_bad_all_but_the_place_counts() {
    let (program, mut car) = start().await;
    let http = program.http();
    let filter = with(following(100.0), "where", json!("n < 10"));
    car.ws.subscribe("s", fence(&filter)).await;
    let event = |key: &str, id: &str, metres: f64, n: i32| {
        with(keyed(key, id, north(metres)), "properties", json!({"n": n}))
    };
    for key in ["a", "b", "c"] {
        post(&http, &event(key, &format!("{key}1"), 0.0, 1)).await;
    }
    car.assert_told("inside", &["enter a1 published s", "enter b1 published s", "enter c1 published s"])
        .await;
    place(&http, 0.0, 200.0).await;
    post(&http, &event("d", "d1", 0.0, 1)).await;
    car.assert_told("nobody comes in", &[]).await;
    post(&http, &event("a", "a2", 5_000.0, 1)).await;
    car.assert_told("nobody leaves by place", &[]).await;
    post(&http, &event("b", "b2", 0.0, 10)).await;
    car.assert_told("but by its condition", &["exit b1 published s"]).await;
    revoke(&http, "c1").await;
    car.assert_told("or its end", &["exit c1 revoked s"]).await;
    place(&http, 0.0, 10.0).await;
    car.assert_told("then the place counts again", &["enter d1 moved s", "exit a2 moved s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_follow_the_client_does_not_care() {
    let (program, mut car) = start().await;
    let http = program.http();
    place(&http, 0.0, 10_000.0).await;
    let static_and_following = json!([following(100.0), {"area": {"center": HOME, "radius_m": 50}}]);
    car.ws.subscribe("s", json!({"filters": static_and_following, "on": ["enter", "exit"]})).await;
    post(&http, &keyed("k", "k1", north(60.0))).await;
    car.assert_told("the following one lets nobody in", &[]).await;
    post(&http, &keyed("k", "k2", north(40.0))).await;
    car.assert_told("the other one does", &["enter k2 published s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_fixes_can_be_used_all_the_same() {
    let (program, mut car) = start_with("[sessions]\ninaccurate_fixes = \"use\"\n").await;
    let http = program.http();
    car.ws.subscribe("s", fence(&following(100.0))).await;
    post(&http, &lasting("e", north(1_000.0))).await;
    place(&http, 950.0, 5_000.0).await;
    car.assert_told("in", &["enter e moved s"]).await;
    place(&http, 0.0, 5_000.0).await;
    car.assert_told("out", &["exit e moved s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_fixes_at_once_carry_their_accuracy() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut bus = Watcher::connect(&program, "bus").await;
    for client in [&mut car, &mut bus] {
        client.ws.subscribe("s", fence(&following(100.0))).await;
    }
    post(&http, &lasting("e", HOME)).await;
    car.assert_told("at home", &["enter e published s"]).await;
    let fixes = json!([
        {"client": "bus", "coordinates": HOME, "accuracy_m": 101},
        {"client": "car", "coordinates": north(5_000.0), "accuracy_m": 101},
    ]);
    http.post("/v1/positions", "application/json", fixes.to_string()).await.expect(202);
    car.assert_told("held", &[]).await;
    bus.assert_told("held", &[]).await;
    let fixes = fixes.to_string().replace("101", "100");
    http.post("/v1/positions", "application/json", fixes).await.expect(202);
    car.assert_told("used", &["exit e moved s"]).await;
    bus.assert_told("used", &["enter e moved s"]).await;
    program.finish().await;
}
