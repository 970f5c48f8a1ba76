//! What PROTOCOL has and this build has not is refused in words, never ignored.

use serde_json::{Value, json};

use crate::harness::{Serve, feature, with_problem_shape};

/// Demands that a problem says that the thing is not there yet.
#[track_caller]
fn says_not_yet(what: &str, problem: &Value) {
    let text = problem.to_string();
    assert!(text.contains("not there yet") || text.contains("not implemented"), "{what}: {problem}");
    assert_eq!(problem["status"], 501, "{what}: {problem}");
}

/// Events with members that this build cannot honour.
fn events() -> Vec<(&'static str, Value)> {
    let with = |member: &str, value: Value| {
        let mut event = feature("e", [9.0, 45.0], json!({}));
        event[member] = value;
        event
    };
    vec![("priority alarm", with("priority", json!("alarm")))]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_yet_says_so() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    client.subscribe("everything", json!({"filters": [{}]})).await;
    for (what, event) in events() {
        says_not_yet(
            what,
            &http.post("/v1/events", "application/geo+json", event.to_string()).await.problem(501),
        );
        says_not_yet(what, &client.problem(json!({"op": "publish", "event": event})).await);
        let body = format!("{event}\n");
        let answer = http.post("/v1/events", "application/x-ndjson", body).await.expect(202).json();
        assert_eq!(answer["accepted"], 0, "{what}: {answer}");
        says_not_yet(what, &with_problem_shape(what, answer["rejected"][0]["problem"].clone()));
    }
    client.assert_quiet().await;
    program.finish().await;
}
