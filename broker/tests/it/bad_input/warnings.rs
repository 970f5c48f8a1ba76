//! Requests that are carried out, and of which something is probably not meant so.

use serde_json::{Value, json};

use crate::harness::{Serve, feature};

/// An event with another member.
fn with(member: &str, value: Value) -> Value {
    let mut event = feature("e", [9.0, 45.0], json!({}));
    event[member] = value;
    event
}

fn passed_on(pointer: &str, name: &str, known: &str) -> Value {
    let detail = format!("`{name}` is passed on and means nothing to the broker: did you mean {known}?");
    json!({"pointer": pointer, "detail": detail})
}

/// A warning of a batch.
fn of_element(index: u64, name: &str, known: &str) -> Value {
    let mut warning = passed_on(&format!("/{name}"), name, known);
    warning["index"] = index.into();
    warning
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_with_a_misspelt_member_is_taken_with_a_warning() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    for (name, known) in [("ttl", "ttl_s"), ("priorty", "priority"), ("reach", "reach_m"), ("Key", "key")] {
        let event = with(name, json!(60));
        let answer = http.post("/v1/events", "application/json", event.to_string()).await.expect(202).json();
        let told = json!({"accepted": 1, "rejected": [], "warnings": [of_element(0, name, known)]});
        assert_eq!(answer, told);
        assert_eq!(client.event().await["event"][name], 60, "it is passed on all the same");
        let answer = client.request(json!({"op": "publish", "event": event})).await;
        let told = [passed_on(&format!("/event/{name}"), name, known)];
        assert_eq!((&answer["op"], &answer["warnings"]), (&json!("ok"), &json!(told)));
        client.event().await;
    }
    // What is near nothing is the sender's own.
    for event in [with("bbox", json!([1, 2, 3, 4])), with("source", json!("radar")), with("ttl_s", json!(5))]
    {
        let answer = http.post("/v1/events", "application/json", event.to_string()).await.expect(202).json();
        assert_eq!(answer, json!({"accepted": 1, "rejected": []}), "{event}");
        client.event().await;
        let answer = client.request(json!({"op": "publish", "event": event})).await;
        assert_eq!(answer.get("warnings"), None, "{answer}");
        client.event().await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_of_a_batch_name_the_element_and_have_a_bound() {
    let program = Serve::new().config("[limits]\nrejected_listed = 3\n").start().await;
    let http = program.http();
    let lines = [with("a", json!(1)), json!({}), with("ttl", json!(1)), with("reach", json!(1))];
    let lines = lines.map(|event| format!("{event}\n")).concat();
    let answer = http.post("/v1/events", "application/x-ndjson", lines).await.expect(202).json();
    assert_eq!((&answer["accepted"], &answer["rejected"][0]["index"]), (&json!(3), &json!(1)), "{answer}");
    assert_eq!(answer["warnings"], json!([of_element(2, "ttl", "ttl_s"), of_element(3, "reach", "reach_m")]));

    let features = vec![with("ttl", json!(1)); 10];
    let collection = json!({"type": "FeatureCollection", "features": features}).to_string();
    let answer = http.post("/v1/events", "application/geo+json", collection).await.expect(202).json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(10), &json!([])));
    assert_eq!(answer["warnings"].as_array().map(Vec::len), Some(3), "{answer}");
    assert_eq!(answer["warnings_unlisted"], 7, "{answer}");

    // However many members of one event are wrong.
    let mut event = feature("e", [9.0, 45.0], json!({}));
    for spelling in 0..200 {
        event[format!("ttl{}", "_".repeat(spelling))] = 1.into();
    }
    let answer = http.post("/v1/events", "application/json", event.to_string()).await.expect(202).json();
    let told = answer["warnings"].as_array().map_or(0, Vec::len) as u64;
    assert!(told <= 3 && answer.to_string().len() < 2_000, "{answer}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_of_a_batch_with_a_misspelt_member_is_in_force_with_a_warning() {
    let program = Serve::new().config("[limits]\nrejected_listed = 2\n").start().await;
    let http = program.http();
    let at = |member: &str| {
        let mut position = json!({"client": "car", "coordinates": [9.0, 45.0]});
        position[member] = 12.into();
        position
    };
    let of_element = |index: u64, name: &str, known: &str| {
        let detail = format!("`{name}` is ignored: did you mean {known}?");
        json!({"index": index, "pointer": format!("/{name}"), "detail": detail})
    };
    let array = json!([at("speed"), at("accuracy"), {"client": "car"}, at("Timestamp")]).to_string();
    let answer = http.post("/v1/positions", "application/json", array).await.expect(202).json();
    assert_eq!((&answer["moved"], &answer["rejected"][0]["index"]), (&json!(3), &json!(2)), "{answer}");
    let told = json!([of_element(1, "accuracy", "accuracy_m"), of_element(3, "Timestamp", "time")]);
    assert_eq!(answer["warnings"], told);

    let lines = [at("accuracy"), at("accuracy"), at("accuracy"), at("accuracy_m")];
    let lines = lines.map(|position| format!("{position}\n")).concat();
    let answer = http.post("/v1/positions", "application/x-ndjson", lines).await.expect(202).json();
    assert_eq!((&answer["moved"], &answer["warnings_unlisted"]), (&json!(4), &json!(1)), "{answer}");
    assert_eq!(answer["warnings"].as_array().map(Vec::len), Some(2), "{answer}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_area_around_a_client_that_is_nowhere_is_warned_of() {
    let program = Serve::new().start().await;
    let http = program.http();
    let put = "/v1/clients/ann/subscriptions/s";
    let following = json!({"filters": [{"where": "a = 1"}, {"area": {"radius_m": 500}}]});
    let detail =
        "the area follows the client, which has told no position: it is nowhere until the client does";
    let told = json!([{"pointer": "/filters/1/area", "detail": detail}]);
    let made = http.put(put, &following).await.expect(201).json();
    assert_eq!(made["warnings"], told);
    // What was answered can be sent back, and what is shown later is no warning.
    assert_eq!(http.put(put, &made).await.expect(200).json()["warnings"], told);
    assert_eq!(http.get(put).await.expect(200).json().get("warnings"), None);
    let mut client = program.ws("ann").await;
    let frame = json!({"op": "subscribe", "id": "t", "filters": following["filters"]});
    let answer = client.request(frame.clone()).await;
    assert_eq!((&answer["op"], &answer["warnings"]), (&json!("ok"), &told));

    let still = json!({"filters": [{"area": {"center": [9, 45], "radius_m": 500}}]});
    assert_eq!(http.put(put, &still).await.expect(200).json().get("warnings"), None);
    client.place([9.0, 45.0]).await;
    assert_eq!(http.put(put, &following).await.expect(200).json().get("warnings"), None);
    assert_eq!(client.request(frame).await.get("warnings"), None);
    program.finish().await;
}
