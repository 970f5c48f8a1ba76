//! Push messages, with a push service and browsers of the test's own.

mod answers;
mod refusals;
mod service;
mod waking;

use serde_json::{Value, json};

use crate::harness::{Door, Http, eventually, feature};

/// A push subscription with keys that are as they should be.
pub(crate) fn document(endpoint: &str) -> Value {
    let point = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    let keys = json!({"p256dh": point, "auth": "BTBZMqHH6r4Tts7J_aSIgg"});
    json!({"endpoint": endpoint, "expirationTime": null, "keys": keys})
}

/// A client that wants every event kept.
async fn durable(http: &Http, client: &str) {
    let subscription = json!({"filters": [{}], "durable": true});
    http.put(&format!("/v1/clients/{client}/subscriptions/all"), &subscription).await.expect(201);
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

async fn publish_named(http: &Http, id: &str) {
    publish(http, &feature(id, [9.0, 45.0], json!({"name": id}))).await;
}

async fn publish_alarm(http: &Http, id: &str) {
    let mut event = feature(id, [9.0, 45.0], json!({"title": id}));
    event["priority"] = json!("alarm");
    publish(http, &event).await;
}

/// Waits until a line is among the figures.
async fn figure(door: &Door, line: &str) {
    eventually(line, async || {
        let figures = door.http().get("/metrics").await.expect(200).text();
        figures.lines().any(|found| found == line).then_some(())
    })
    .await;
}
