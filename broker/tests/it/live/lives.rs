//! Which events are live, what replaces what, and how a life ends.

use std::time::{Duration, Instant};

use serde_json::json;

use super::scene::{
    HOME, Watcher, circle, fence, following, keyed, lasting, north, post, revoke, start, start_with, with,
};
use crate::harness::{Form, Serve, encode, feature, with_problem_shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_event_comes_to_who_moves_into_its_reach_and_only_once() {
    let (program, mut car) = start().await;
    car.ws.subscribe("s", json!({"filters": [following(500.0)]})).await;
    let event = with(lasting("e", north(1_000.0)), "properties", json!({"type": "works", "n": [1, null]}));
    post(&program.http(), &event).await;
    post(&program.http(), &feature("over", north(1_000.0), json!({}))).await;
    car.assert_told("too far away", &[]).await;
    car.ws.place(north(499.0)).await;
    car.assert_told("a metre short", &[]).await;
    car.ws.place(north(501.0)).await;
    let frame = car.frame().await;
    assert_eq!((&frame["cause"], &frame["subscriptions"]), (&json!("moved"), &json!(["s"])));
    assert!(frame.get("transition").is_none(), "{frame}");
    for (member, value) in event.as_object().expect("an object") {
        assert_eq!(frame["event"][member], *value, "{member} of {frame}");
    }
    car.ws.place(HOME).await;
    car.ws.place(north(900.0)).await;
    car.assert_told("it was there before", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_when_it_was_published_does_not_come_again() {
    let (program, mut car) = start().await;
    car.ws.subscribe("s", json!({"filters": [following(500.0)]})).await;
    post(&program.http(), &lasting("e", HOME)).await;
    car.assert_told("published", &["event e published s"]).await;
    for metres in [10.0, 5_000.0, 0.0] {
        car.ws.place(north(metres)).await;
    }
    car.assert_told("moved", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_event_of_an_object_is_a_new_event_and_ends_the_older() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", json!({"filters": [following(500.0)]})).await;
    post(&http, &keyed("cam", "a1", HOME)).await;
    post(&http, &keyed("cam", "a2", HOME)).await;
    car.assert_told("both", &["event a1 published s", "event a2 published s"]).await;
    post(&http, &keyed("cam", "a3", north(1_000.0))).await;
    post(&http, &keyed("cam", "a4", north(1_010.0))).await;
    car.ws.place(north(1_000.0)).await;
    car.assert_told("the last one alone", &["event a4 moved s"]).await;
    // The same by id.
    post(&http, &with(lasting("e", HOME), "properties", json!({"n": 1}))).await;
    post(&http, &with(lasting("e", north(2_000.0)), "properties", json!({"n": 2}))).await;
    car.ws.place(HOME).await;
    car.assert_told("nothing is left at home", &[]).await;
    car.ws.place(north(2_000.0)).await;
    let frame = car.frame().await;
    assert_eq!((&frame["event"]["id"], &frame["event"]["properties"]["n"]), (&json!("e"), &json!(2)));
    car.assert_told("and that was all", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_ids_are_two_name_spaces_and_what_is_not_live_ends_nothing() {
    let (program, mut car) = start().await;
    let http = program.http();
    post(&http, &lasting("x", HOME)).await;
    post(&http, &keyed("x", "of-a-key", HOME)).await;
    post(&http, &keyed("y", "x", HOME)).await;
    // Not live, so it neither replaces nor stays.
    post(&http, &feature("x", HOME, json!({"n": 1}))).await;
    // An id counts as it reads.
    post(&http, &with(lasting("", HOME), "id", json!(17))).await;
    post(&http, &lasting("17", HOME)).await;
    post(&http, &with(lasting("", HOME), "id", json!(17.0))).await;
    car.ws.subscribe("s", json!({"filters": [circle(10.0)]})).await;
    let told = car.told().await;
    let all = ["event 17 changed s", "event 17.0 changed s", "event of-a-key changed s"];
    assert_eq!(told, [&all[..], &["event x changed s", "event x changed s"]].concat());
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_the_broker_names_lives_too() {
    let (program, mut car) = start().await;
    let mut event = lasting("", HOME);
    event.as_object_mut().expect("an object").remove("id");
    post(&program.http(), &event).await;
    post(&program.http(), &event).await;
    car.ws.subscribe("s", fence(&circle(10.0))).await;
    car.ws.subscribe("t", json!({"filters": [circle(10.0)]})).await;
    let frames = car.frames().await;
    let ids = frames.iter().map(|frame| frame["event"]["id"].as_str().expect("a text")).collect::<Vec<_>>();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{frames:?}");
    let id = ids[0].to_owned();
    revoke(&program.http(), &id).await;
    car.assert_told("by the name that the broker gave", &[&format!("exit {id} revoked s")]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_event_is_over_for_everybody() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut bus = Watcher::connect(&program, "bus").await;
    for client in [&mut car, &mut bus] {
        client.ws.subscribe("s", fence(&circle(10.0))).await;
    }
    bus.ws.subscribe("plain", json!({"filters": [circle(10.0)]})).await;
    for event in [lasting("e", HOME), keyed("a", "many", HOME), keyed("b", "many", HOME)] {
        post(&http, &event).await;
    }
    post(&http, &with(lasting("", HOME), "id", json!(17))).await;
    let (_, _) = (car.told().await, bus.told().await);
    http.delete("/v1/events/nothing").await.problem(404);
    // One that was only passing is not there any more, nor is one that was replaced.
    post(&http, &feature("passing", HOME, json!({}))).await;
    http.delete("/v1/events/passing").await.problem(404);
    assert_eq!(bus.told().await, ["event passing published plain"]);
    for (id, expected) in [
        ("e", &["exit e revoked s"][..]),
        ("many", &["exit many revoked s", "exit many revoked s"]),
        ("17", &["exit 17 revoked s"]),
    ] {
        revoke(&http, id).await;
        car.assert_told(id, expected).await;
        bus.assert_told(id, expected).await;
        http.delete(&format!("/v1/events/{id}")).await.problem(404);
    }
    // Nothing is left for those who come, and the same id may live again.
    bus.ws.subscribe("late", json!({"filters": [circle(10.0)]})).await;
    bus.assert_told("late", &[]).await;
    post(&http, &lasting("e", HOME)).await;
    car.assert_told("again", &["enter e published s"]).await;
    bus.assert_told("again", &["enter e published s", "event e published late+plain"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_of_a_replaced_event_is_over() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(10.0))).await;
    post(&http, &keyed("a", "old", HOME)).await;
    post(&http, &keyed("a", "new", HOME)).await;
    http.delete("/v1/events/old").await.problem(404);
    car.assert_told("still there", &["enter old published s"]).await;
    revoke(&http, "new").await;
    car.assert_told("now it is over", &["exit new revoked s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_ends_when_its_time_is_over_and_not_before() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(10.0))).await;
    car.ws.subscribe("plain", json!({"filters": [circle(10.0)]})).await;
    for (id, ttl_s) in [("short", 0.25), ("longer", 0.5)] {
        let published = Instant::now();
        // When it happened does not matter: life counts from arrival.
        let event = with(lasting(id, HOME), "ttl_s", json!(ttl_s));
        post(&http, &with(event, "time", json!("2001-01-01T00:00:00Z"))).await;
        let mut told = [car.next().await, car.next().await];
        told.sort();
        assert_eq!(told, [format!("enter {id} published s"), format!("event {id} published plain")]);
        assert_eq!(car.next().await, format!("exit {id} expired s"));
        assert!(published.elapsed() >= Duration::from_secs_f64(ttl_s), "{id} left too early");
        http.delete(&format!("/v1/events/{id}")).await.problem(404);
    }
    let initial = with(fence(&circle(10.0)), "initial", json!(true));
    car.ws.subscribe("late", initial).await;
    car.assert_told("nothing is left", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_event_has_a_life_of_its_own() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(10.0))).await;
    let short = |event| with(event, "ttl_s", json!(0.3));
    // The short life of the first is no more when the other, which began later, is over.
    let events = [short(keyed("a", "a1", HOME)), keyed("a", "a2", HOME), short(lasting("b", HOME))];
    let (content_type, body) = encode(Form::Collection, &events);
    http.post("/v1/events", content_type, body).await.expect(202);
    assert_eq!(car.next().await, "enter a1 published s");
    assert_eq!(car.next().await, "enter b published s");
    assert_eq!(car.next().await, "exit b expired s");
    car.assert_told("the newer one stays", &[]).await;
    // And the other way round.
    post(&http, &short(keyed("a", "a3", HOME))).await;
    assert_eq!(car.next().await, "exit a3 expired s");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_objects_live_at_once() {
    let (program, mut car) = start_with("[limits]\nlive_events = 2\n").await;
    let http = program.http();
    post(&http, &lasting("a", HOME)).await;
    post(&http, &keyed("b", "b1", HOME)).await;
    let third = lasting("c", HOME);
    let told = http.post("/v1/events", "application/geo+json", third.to_string()).await.problem(409);
    assert!(told["type"].as_str().is_some_and(|kind| kind.ends_with("limit-reached")), "{told}");
    assert_eq!((&told["setting"], &told["limit"]), (&json!("limits.live_events"), &json!(2)));
    assert_eq!(car.ws.problem(json!({"op": "publish", "event": third})).await["status"], 409);
    let (content_type, body) =
        encode(Form::Lines, &[third.clone(), keyed("b", "b2", HOME), feature("over", HOME, json!({}))]);
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!((&answer["accepted"], &answer["rejected"][0]["index"]), (&json!(2), &json!(0)), "{answer}");
    with_problem_shape("a batch", answer["rejected"][0]["problem"].clone());
    // One that goes makes room.
    revoke(&http, "a").await;
    post(&http, &third).await;
    car.ws.subscribe("s", json!({"filters": [circle(10.0)]})).await;
    car.assert_told("those that live", &["event b2 changed s", "event c changed s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_shards_agree_whether_an_event_lives_that_was_published_while_it_was_revoked() {
    let program = Serve::new().args(&["--shards", "3"]).start().await;
    let http = program.http();
    for name in 0..12 {
        let path = format!("/v1/clients/c{name}/subscriptions/s");
        http.put(&path, &json!({"filters": [{}], "on": ["enter", "exit"]})).await.expect(201);
    }
    for round in 0..20 {
        let racing = (0..4).map(|racer| {
            let http = program.http();
            tokio::spawn(async move {
                for _ in 0..25 {
                    if racer % 2 == 0 {
                        post(&http, &lasting("x", HOME)).await;
                    } else {
                        http.delete("/v1/events/x").await;
                    }
                }
            })
        });
        for racer in racing.collect::<Vec<_>>() {
            racer.await.expect("it raced");
        }
        let mut lives = std::collections::BTreeSet::new();
        for name in 0..12 {
            let question = json!({"client": format!("c{name}"), "subscription": "s", "event": "x"});
            let answer = http.post("/v1/explain", "application/json", question.to_string()).await;
            lives.insert(answer.status);
        }
        assert_eq!(lives.len(), 1, "round {round}: {lives:?}");
    }
    program.finish().await;
}
