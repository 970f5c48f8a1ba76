//! An enter that waits. The broker's clock is the real one, so these tests compare what comes with what has to come
//! before or after it, and demand of the clock only that nothing is early.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scene::{
    HOME, Watcher, circle, fence, following, keyed, lasting, north, post, revoke, start, with,
};
use crate::harness::Http;

/// How long objects have to stay.
const DWELL_S: f64 = 0.4;

fn dwelling(filter: &Value) -> Value {
    with(fence(filter), "dwell_s", json!(DWELL_S))
}

/// Demands that an enter comes, and that it waited since the given moment.
async fn enters(car: &mut Watcher, what: &str, since: Instant) {
    assert_eq!(car.next().await, what);
    assert!(since.elapsed() >= Duration::from_secs_f64(DWELL_S), "{what}: too early");
}

/// Lets something happen until it took less than a dwell: on a machine that is too slow an object really did stay.
async fn quickly<T>(mut happen: impl AsyncFnMut(u32) -> T) -> T {
    for attempt in 0.. {
        let started = Instant::now();
        let outcome = happen(attempt).await;
        if started.elapsed() < Duration::from_secs_f64(DWELL_S) {
            return outcome;
        }
    }
    unreachable!("there are many numbers")
}

async fn put(http: &Http, key: &str, id: &str, metres: f64) {
    post(http, &keyed(key, id, north(metres))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_stays_enters_when_it_has_stayed() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", dwelling(&circle(100.0))).await;
    let since = Instant::now();
    put(&http, "k", "k1", 0.0).await;
    enters(&mut car, "enter k1 published s", since).await;
    put(&http, "k", "k2", 200.0).await;
    car.assert_told("exits do not wait", &["exit k1 published s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_leaves_before_never_was_there() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", dwelling(&circle(100.0))).await;
    let passing = quickly(async |attempt| {
        let key = format!("passing-{attempt}");
        put(&http, &key, "in", 0.0).await;
        put(&http, &key, "out", 200.0).await;
        key
    })
    .await;
    let revoked = quickly(async |attempt| {
        let id = format!("revoked-{attempt}");
        post(&http, &lasting(&id, HOME)).await;
        revoke(&http, &id).await;
        id
    })
    .await;
    let expired = with(lasting("expired", HOME), "ttl_s", json!(DWELL_S / 2.0));
    post(&http, &expired).await;
    // This one enters when all of them would have.
    post(&http, &lasting("stays", HOME)).await;
    loop {
        let frame = car.frame().await;
        let event = &frame["event"];
        if event["id"] == "stays" {
            break;
        }
        // Only of attempts that were too slow anything is told.
        let of = [&event["key"], &event["id"]];
        assert!(
            of.iter().all(|name| **name != passing && **name != revoked && **name != "expired"),
            "{frame}"
        );
    }
    car.assert_told("and that is all", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_break_begins_the_wait_anew_and_a_newer_event_inside_does_not() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", dwelling(&circle(100.0))).await;
    let (broken, since) = quickly(async |attempt| {
        let key = format!("broken-{attempt}");
        put(&http, &key, "b1", 0.0).await;
        put(&http, &key, "b2", 200.0).await;
        (key, Instant::now())
    })
    .await;
    put(&http, &broken, "b3", 50.0).await;
    let frame = loop {
        let frame = car.frame().await;
        if frame["event"]["key"] == broken {
            break frame;
        }
    };
    assert_eq!((&frame["transition"], &frame["event"]["id"]), (&json!("enter"), &json!("b3")), "{frame}");
    assert!(since.elapsed() >= Duration::from_secs_f64(DWELL_S), "{frame}: too early");
    // Newer events while it waits: it enters with the last, at its own time and before one that came later.
    let last = quickly(async |attempt| {
        let key = format!("walks-{attempt}");
        put(&http, &key, "w1", 0.0).await;
        // What is published together comes at one instant, and would enter in the order of the newest events.
        car.frames().await;
        put(&http, &key, "w2", 10.0).await;
        post(&http, &lasting(&format!("later-{attempt}"), HOME)).await;
        put(&http, &key, "w3", 20.0).await;
        attempt
    })
    .await;
    let mut told = Vec::new();
    while told.last() != Some(&format!("enter later-{last} published s")) {
        told.push(car.next().await);
    }
    let expected = ["enter w3 published s".to_owned(), format!("enter later-{last} published s")];
    assert_eq!(told[told.len() - 2..], expected, "{told:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enter_that_waited_has_the_cause_that_began_it() {
    let (program, mut car) = start().await;
    let http = program.http();
    post(&http, &lasting("e", north(1_000.0))).await;
    car.ws.subscribe("moved", dwelling(&following(100.0))).await;
    let since = Instant::now();
    car.ws.place(north(950.0)).await;
    enters(&mut car, "enter e moved moved", since).await;
    let since = Instant::now();
    let initial = with(dwelling(&following(100.0)), "initial", json!(true));
    car.ws.subscribe("initial", initial).await;
    enters(&mut car, "enter e changed initial", since).await;
    // Without being told, a new subscription has its members from the beginning.
    car.ws.subscribe("silent", dwelling(&following(100.0))).await;
    // Of a changed one, who comes in waits, and who was inside stays.
    let since = Instant::now();
    post(&http, &lasting("f", north(1_200.0))).await;
    car.ws.subscribe("moved", dwelling(&following(500.0))).await;
    enters(&mut car, "enter f changed moved", since).await;
    revoke(&http, "e").await;
    let told = car.told().await;
    assert_eq!(told, ["exit e revoked initial+moved+silent"]);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_takes_no_hysteresis() {
    let (program, mut car) = start().await;
    let http = program.http();
    let subscription = with(dwelling(&circle(100.0)), "hysteresis_m", json!(50));
    car.ws.subscribe("s", subscription).await;
    // In the band it is not inside, so it did not stay.
    let (key, since) = quickly(async |attempt| {
        let key = format!("k-{attempt}");
        put(&http, &key, "in", 0.0).await;
        put(&http, &key, "band", 120.0).await;
        (key, Instant::now())
    })
    .await;
    put(&http, &key, "back", 0.0).await;
    loop {
        let frame = car.frame().await;
        if frame["event"]["key"] == key {
            assert_eq!(frame["event"]["id"], "back", "{frame}");
            break;
        }
    }
    assert!(since.elapsed() >= Duration::from_secs_f64(DWELL_S), "too early");
    // Inside it is a member, and has the band.
    put(&http, &key, "band", 120.0).await;
    car.assert_told("in the band", &[]).await;
    put(&http, &key, "out", 151.0).await;
    let told = car.told().await;
    assert_eq!(told, ["exit band published s"]);
    program.finish().await;
}
