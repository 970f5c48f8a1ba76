//! What a subscription finds when it is made, changed and made again.

use serde_json::json;

use crate::harness::feature;

use super::scene::{
    HOME, circle, fence, following, keyed, lasting, north, post, short, start, start_with, with,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_subscription_gets_what_lives_after_its_answer() {
    let (program, mut car) = start().await;
    for (id, metres) in [("near", 10.0), ("there", 400.0), ("far", 600.0)] {
        post(&program.http(), &lasting(id, north(metres))).await;
    }
    let subscription = json!({"op": "subscribe", "id": "s", "ref": "r", "filters": [following(500.0)]});
    car.ws.send(&subscription).await;
    let answer = car.ws.next().await;
    assert_eq!(answer, json!({"op": "ok", "ref": "r"}), "the answer comes first");
    car.assert_told("all within", &["event near changed s", "event there changed s"]).await;
    // The same by `PUT`, for a client without position: what does not follow it.
    let mut bus = program.sse("bus").await;
    let http = program.http();
    let both = json!({"filters": [following(500.0), circle(50.0)]});
    http.put("/v1/clients/bus/subscriptions/s", &both).await.expect(201);
    assert_eq!(short(&bus.next().await.frame()), "event near changed s");
    http.put("/v1/clients/bus/position", &json!({"coordinates": north(1_000.0)})).await.expect(204);
    assert_eq!(short(&bus.next().await.frame()), "event far moved s");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_with_me_is_decided_anew_where_the_client_goes() {
    let (program, mut car) = start().await;
    let near = json!({"where": "DISTANCE(event, me) <= 100 * reach"});
    car.ws.subscribe("s", json!({"filters": [near]})).await;
    car.ws.subscribe("f", fence(&near)).await;
    let json_form = json!({"op": "<", "args": [{"op": "lat", "args": [{"property": "event"}]},
        {"op": "lat", "args": [{"property": "me"}]}]});
    car.ws.subscribe("j", json!({"filters": [{"where": json_form}]})).await;
    let mut bus = program.ws("bus").await;
    let warned = bus.request(json!({"op": "subscribe", "id": "s", "filters": [near]})).await;
    let detail = "the condition has 'me', and the client has told no position: what depends on 'me' is unknown until the client does";
    assert_eq!(warned["warnings"], json!([{"pointer": "/filters/0/where", "detail": detail}]));

    let at =
        |id: &str, metres| with(feature(id, north(metres), json!({})), "properties", json!({"reach": 1}));
    post(&program.http(), &at("near", 90.0)).await;
    post(&program.http(), &at("far", 110.0)).await;
    post(&program.http(), &with(at("stays", 300.0), "ttl_s", json!(3600))).await;
    car.assert_told("only the near one", &["event near published s"]).await;
    car.ws.place(north(250.0)).await;
    car.assert_told("it has come", &["enter stays moved f", "event stays moved s"]).await;
    car.ws.place(north(350.0)).await;
    car.assert_told("it is south of it", &["event stays moved j"]).await;
    post(&program.http(), &at("there", 440.0)).await;
    car.ws.place(north(450.0)).await;
    car.assert_told("it has left", &["event there published s", "exit stays moved f"]).await;
    // Nothing has come to the one that is nowhere, until it is somewhere.
    bus.place(north(310.0)).await;
    assert_eq!(short(&bus.next().await), "event stays moved s");

    let http = program.http();
    let question = http.get("/v1/events?where=LON(me)%20%3C%205").await.expect(400).json();
    let told = question["detail"].as_str().unwrap_or_default();
    assert!(told.contains("'me' in this place is not supported"), "{question}");
    let explained = http.get("/v1/clients/bus/subscriptions/s").await.expect(200).json();
    assert_eq!(explained["filters"], json!([near]), "the normal form reads as it was written");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_subscription_gets_only_what_it_has_not_had() {
    let (program, mut car) = start().await;
    for (id, metres) in [("a", 10.0), ("b", 400.0), ("c", 2_000.0)] {
        post(&program.http(), &lasting(id, north(metres))).await;
    }
    let mut subscribe = async |radius_m: f64| {
        car.ws.subscribe("s", json!({"filters": [circle(radius_m)]})).await;
        car.told().await
    };
    assert_eq!(subscribe(100.0).await, ["event a changed s"]);
    assert_eq!(subscribe(500.0).await, ["event b changed s"]);
    assert_eq!(subscribe(100.0).await, [""; 0]);
    assert_eq!(subscribe(5_000.0).await, ["event c changed s"]);
    // Another subscription has a memory of its own, and one that was deleted has none.
    car.ws.subscribe("t", json!({"filters": [circle(100.0)]})).await;
    car.assert_told("another", &["event a changed t"]).await;
    car.ws.ok(json!({"op": "unsubscribe", "id": "s"})).await;
    car.ws.subscribe("s", json!({"filters": [circle(500.0)]})).await;
    car.assert_told("made again", &["event a changed s", "event b changed s"]).await;
    // A condition that begins to hold is a change as well.
    let event = with(lasting("d", HOME), "properties", json!({"n": 2}));
    post(&program.http(), &event).await;
    car.told().await;
    car.ws.subscribe("w", json!({"filters": [{"where": "n = 1"}]})).await;
    car.ws.subscribe("w", json!({"filters": [{"where": "n = 2"}]})).await;
    car.assert_told("now it holds", &["event d changed w"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_of_one_client_share_a_frame() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("a", json!({"filters": [following(500.0)]})).await;
    car.ws.subscribe("b", json!({"filters": [following(400.0), following(300.0)]})).await;
    car.ws.subscribe("c", fence(&following(500.0))).await;
    car.ws.subscribe("d", fence(&following(300.0))).await;
    post(&http, &lasting("e", north(1_000.0))).await;
    car.assert_told("nobody yet", &[]).await;
    car.ws.place(north(550.0)).await;
    car.assert_told("the wide ones", &["enter e moved c", "event e moved a"]).await;
    car.ws.place(north(900.0)).await;
    car.assert_told("the narrow ones", &["enter e moved d", "event e moved b"]).await;
    car.ws.place(HOME).await;
    car.assert_told("both leave at once", &["exit e moved c+d"]).await;
    car.ws.place(north(1_000.0)).await;
    car.assert_told("and come back at once", &["enter e moved c+d"]).await;
    post(&http, &lasting("f", north(1_000.0))).await;
    car.assert_told("published", &["enter f published c+d", "event f published a+b"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_fence_keeps_who_stays() {
    let (program, mut car) = start().await;
    for (id, metres) in [("a", 10.0), ("b", 400.0), ("c", 2_000.0)] {
        post(&program.http(), &lasting(id, north(metres))).await;
    }
    car.ws.subscribe("s", fence(&circle(500.0))).await;
    car.assert_told("silently", &[]).await;
    car.ws.subscribe("s", fence(&circle(5_000.0))).await;
    car.assert_told("wider", &["enter c changed s"]).await;
    car.ws.subscribe("s", with(fence(&circle(100.0)), "initial", json!(true))).await;
    car.assert_told("narrower", &["exit b changed s", "exit c changed s"]).await;
    let elsewhere = json!({"area": {"center": north(2_000.0), "radius_m": 100}});
    car.ws.subscribe("s", fence(&elsewhere)).await;
    car.assert_told("elsewhere", &["enter c changed s", "exit a changed s"]).await;
    // What is asked for may change, too.
    car.ws.subscribe("s", with(fence(&circle(500.0)), "on", json!(["exit"]))).await;
    car.assert_told("only exits", &["exit c changed s"]).await;
    car.ws.subscribe("s", with(fence(&circle(100.0)), "on", json!(["enter"]))).await;
    car.assert_told("only enters", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_events_to_transitions_and_back_is_a_new_beginning() {
    let (program, mut car) = start().await;
    post(&program.http(), &lasting("e", HOME)).await;
    let (events, silent) = (json!({"filters": [circle(10.0)]}), fence(&circle(10.0)));
    let told = with(silent.clone(), "initial", json!(true));
    for (subscription, expected) in [
        (&events, &["event e changed s"][..]),
        (&silent, &[]),
        (&events, &["event e changed s"]),
        (&told, &["enter e changed s"]),
        (&told, &[]),
    ] {
        car.ws.subscribe("s", subscription.clone()).await;
        car.assert_told(&subscription.to_string(), expected).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_fence_begins_with_those_inside_silently_or_told() {
    let (program, mut car) = start().await;
    let http = program.http();
    post(&http, &lasting("a", HOME)).await;
    post(&http, &keyed("b", "b1", north(5.0))).await;
    post(&http, &lasting("far", north(50.0))).await;
    car.ws.subscribe("told", with(fence(&circle(10.0)), "initial", json!(true))).await;
    car.assert_told("told", &["enter a changed told", "enter b1 changed told"]).await;
    car.ws.subscribe("silent", fence(&circle(10.0))).await;
    car.ws.subscribe("false", with(fence(&circle(10.0)), "initial", json!(false))).await;
    car.assert_told("silent", &[]).await;
    // Members they are in either case: a newer event enters nobody, an end is told to all.
    post(&http, &keyed("b", "b2", HOME)).await;
    car.assert_told("still inside", &[]).await;
    post(&http, &keyed("b", "b3", north(50.0))).await;
    car.assert_told("outside", &["exit b2 published false+silent+told"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_remembers_so_many() {
    let (program, mut car) = start_with("[limits]\nmembers_per_subscription = 2\n").await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(100.0))).await;
    for id in ["a", "b"] {
        post(&http, &keyed(id, id, HOME)).await;
    }
    post(&http, &keyed("c", "c1", HOME)).await;
    car.assert_told("one too many", &["enter a published s", "enter b published s", "gap 1 members"]).await;
    // It is no member, so it does not leave either.
    post(&http, &keyed("c", "c2", north(500.0))).await;
    car.assert_told("it was not inside", &[]).await;
    revoke_and_come(&http, &mut car).await;
    program.finish().await;
}

/// At the next occasion there is room.
async fn revoke_and_come(http: &crate::harness::Http, car: &mut super::scene::Watcher) {
    super::scene::revoke(http, "a").await;
    car.assert_told("one leaves", &["exit a revoked s"]).await;
    post(http, &keyed("c", "c3", HOME)).await;
    car.assert_told("there is room", &["enter c3 published s"]).await;
    post(http, &keyed("c", "c4", north(500.0))).await;
    car.assert_told("and it leaves", &["exit c3 published s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_remembered_does_not_come_again_at_the_bound_either() {
    let (program, mut car) = start_with("[limits]\nmembers_per_subscription = 1\n").await;
    car.ws.subscribe("s", json!({"filters": [following(100.0)]})).await;
    post(&program.http(), &lasting("a", HOME)).await;
    post(&program.http(), &lasting("b", HOME)).await;
    car.assert_told("both come", &["event a published s", "event b published s"]).await;
    car.ws.place(north(5_000.0)).await;
    car.ws.place(HOME).await;
    // The second was one too many to remember: it may come again, the first may not.
    let told = car.told().await;
    assert!(told.iter().all(|told| told == "event b moved s"), "{told:?}");
    program.finish().await;
}
