//! Conditions: the broker takes each, shows it as the contract says, and matches what it says by it.

use serde_json::{Value, json};

use super::{list, text, vectors};
use crate::harness::{Http, Serve, feature};

/// Makes a subscription to a condition, and returns how the broker shows it.
async fn normalised(http: &Http, id: &str, condition: &Value) -> Value {
    let subscription = json!({"filters": [{"where": condition}]});
    let answer = http.put(&format!("/v1/clients/car/subscriptions/{id}"), &subscription).await;
    assert!([200, 201].contains(&answer.status), "{condition}: {}", answer.text());
    answer.json()["filters"][0]["where"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_are_shown_and_match_as_the_contract_says() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let conditions = vectors("conditions");
    for (idx, vector) in list(&conditions).iter().enumerate() {
        let id = idx.to_string();
        assert_eq!(normalised(&http, &id, &vector["text"]).await, vector["normal"], "{vector}");
        assert_eq!(normalised(&http, &id, &vector["normal"]).await, vector["normal"], "{vector}");
        normalised(&http, &id, &vector["text"]).await;
    }
    // So that each event comes, and who is not named is known not to have matched.
    http.put("/v1/clients/car/subscriptions/all", &json!({"filters": [{}]})).await.expect(201);
    let mut car = program.ws("car").await;
    for (idx, vector) in list(&conditions).iter().enumerate() {
        let id = json!(idx.to_string());
        for event in list(&vector["events"]) {
            let published = feature("e", [9.0, 45.0], event["properties"].clone());
            let question = json!({"client": "car", "subscription": id, "event": published});
            let explained =
                http.post("/v1/explain", "application/json", question.to_string()).await.expect(200);
            let explained = explained.json();
            assert_eq!(
                explained["matched"],
                event["matches"],
                "{}, {event}: {explained}",
                text(&vector["name"])
            );

            http.post("/v1/events", "application/geo+json", published.to_string()).await.expect(202);
            let delivery = car.event().await;
            let matches = list(&delivery["subscriptions"]).contains(&id);
            assert_eq!(matches, event["matches"], "{}, {event}: {delivery}", text(&vector["name"]));
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn areas_are_taken_and_shown_as_they_were_told() {
    let program = Serve::new().start().await;
    let http = program.http();
    for vector in list(&vectors("areas")) {
        let filter = if vector["area"].is_null() { json!({}) } else { json!({"area": vector["area"]}) };
        let subscription = json!({"filters": [filter]});
        let answer = http.put("/v1/clients/car/subscriptions/s", &subscription).await;
        assert!([200, 201].contains(&answer.status), "{vector}: {}", answer.text());
        assert_eq!(super::by_value(&answer.json()["filters"][0]), super::by_value(&filter), "{vector}");
    }
    program.finish().await;
}
