//! What cannot be meant is refused, at the member that says it.

use serde_json::{Value, json};

use super::scene::{HOME, circle, start, start_with};
use crate::harness::feature;

/// Demands a fault at a member.
#[track_caller]
fn at(what: &Value, pointer: &str, problem: &Value) {
    assert_eq!(problem["status"], 400, "{what}: {problem}");
    let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("{what}: no errors in {problem}"));
    assert!(errors.iter().any(|error| error["pointer"] == pointer), "{what}: not at {pointer}: {problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_has_a_length_and_an_object_a_name() {
    let (program, mut car) = start_with("[limits]\nttl_s = 100\n").await;
    let http = program.http();
    for (member, value) in [
        ("ttl_s", json!(0)),
        ("ttl_s", json!(-1)),
        ("ttl_s", json!(100.5)),
        ("ttl_s", json!("60")),
        ("key", json!("")),
        ("key", json!(7)),
        ("key", json!("x".repeat(257))),
    ] {
        let mut event = feature("e", HOME, json!({}));
        event[member] = value;
        let pointer = format!("/{member}");
        let answer = http.post("/v1/events", "application/geo+json", event.to_string()).await;
        at(&event, &pointer, &answer.problem(400));
        let told = car.ws.problem(json!({"op": "publish", "event": event})).await;
        at(&event, &format!("/event{pointer}"), &told);
    }
    car.ws.subscribe("s", json!({"filters": [{}]})).await;
    for (id, member, value) in [
        ("least", "ttl_s", json!(0.5)),
        ("most", "ttl_s", json!(100)),
        ("one", "key", json!("x")),
        ("long", "key", json!("x".repeat(256))),
        ("none", "key", json!(null)),
        ("no-ttl", "ttl_s", json!(null)),
    ] {
        let mut event = feature(id, HOME, json!({}));
        event[member] = value;
        car.ws.publish(&event).await;
        assert_eq!(car.next().await, format!("event {id} published s"));
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_sense_together_is_refused() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut refused = vec![
        (json!({"on": ["event", "enter"]}), "/on"),
        (json!({"on": ["exit", "event"]}), "/on"),
        (json!({"on": []}), "/on"),
        (json!({"on": ["leave"]}), "/on"),
        (json!({"initial": true}), "/initial"),
        (json!({"dwell_s": 1}), "/dwell_s"),
        (json!({"hysteresis_m": 1, "on": ["event"]}), "/hysteresis_m"),
        (json!({"on": ["enter"], "initial": "yes"}), "/initial"),
        (json!({"on": ["enter"], "dwell_s": -1}), "/dwell_s"),
        (json!({"on": ["enter"], "dwell_s": "1"}), "/dwell_s"),
        (json!({"on": ["exit"], "hysteresis_m": -0.5}), "/hysteresis_m"),
    ];
    for nearest in [json!(0), json!(-1), json!(1.5), json!(1_001), json!("3"), json!([1])] {
        let area = json!({"radius_m": 500, "nearest": nearest});
        refused.push((json!({"filters": [{"area": area}]}), "/filters/0/area/nearest"));
    }
    for (document, pointer) in refused {
        let document = completed(document);
        at(&document, pointer, &http.put("/v1/clients/car/subscriptions/s", &document).await.problem(400));
        let mut frame = document.clone();
        frame["op"] = json!("subscribe");
        frame["id"] = json!("s");
        at(&document, pointer, &car.ws.problem(frame).await);
        http.get("/v1/clients/car/subscriptions/s").await.problem(404);
    }
    for document in [
        json!({"initial": false, "dwell_s": 0, "hysteresis_m": 0}),
        json!({"initial": null, "dwell_s": null, "hysteresis_m": null, "on": ["event"]}),
        json!({"on": ["enter"], "dwell_s": 0.5, "hysteresis_m": 12.5, "initial": true}),
        json!({"on": ["exit", "enter"]}),
        json!({"filters": [{"area": {"nearest": 1_000}}]}),
        json!({"filters": [{"area": {"radius_m": 5, "nearest": null}}]}),
    ] {
        let document = completed(document);
        let answer = http.put("/v1/clients/car/subscriptions/s", &document).await;
        assert!([200, 201].contains(&answer.status), "{document}: {}", answer.text());
        // The normalised form is a document of the same meaning, so it goes in again.
        let shown = http.get("/v1/clients/car/subscriptions/s").await.expect(200).json();
        for member in ["on", "dwell_s", "hysteresis_m", "initial"] {
            let (given, shown) = (&document[member], &shown[member]);
            let default = given.is_null() || *given == json!(0) || *given == json!(false);
            assert!(default || sorted(given) == sorted(shown), "{member} of {document}: {shown}");
        }
        http.put("/v1/clients/car/subscriptions/s", &shown).await.expect(200);
    }
    program.finish().await;
}

/// With a filter, where it has none.
fn completed(mut document: Value) -> Value {
    if document.get("filters").is_none() {
        document["filters"] = json!([circle(10.0)]);
    }
    document
}

/// The order in which transitions are named means nothing.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(names) = value.as_array_mut() {
        names.sort_by_key(Value::to_string);
    }
    value
}
