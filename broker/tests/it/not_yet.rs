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

/// Subscriptions with members that this build cannot honour.
fn subscriptions() -> Vec<(&'static str, Value)> {
    let with = |member: &str, value: Value| {
        let mut subscription = json!({"filters": [{}]});
        subscription[member] = value;
        subscription
    };
    vec![("durable", with("durable", json!(true))), ("keep-latest", with("overflow", json!("keep-latest")))]
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
    for (what, subscription) in subscriptions() {
        let path = "/v1/clients/car/subscriptions/s";
        says_not_yet(what, &http.put(path, &subscription).await.problem(501));
        let mut frame = subscription;
        frame["op"] = json!("subscribe");
        frame["id"] = json!("s");
        says_not_yet(what, &client.problem(frame).await);
        http.get(path).await.expect(404);
    }
    let track = json!({"op": "move", "track": [[9.0, 45.0, 1_700_000_000]]});
    says_not_yet("track", &client.problem(track).await);
    client.assert_quiet().await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_cannot_be_resumed_yet() {
    let program = Serve::new().start().await;
    // Before the upgrade, where a client still gets a document.
    let url = format!("ws://{}/v1/clients/car/ws?resume=e1:17", program.address());
    match tokio_tungstenite::connect_async(url).await {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            assert_eq!(response.status(), 501);
            let body = response.body().as_deref().unwrap_or_default();
            let problem = serde_json::from_slice(body).expect("a problem document");
            says_not_yet("resume", &with_problem_shape("resume", problem));
        }
        other => panic!("a session was resumed that nobody kept: {other:?}"),
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_are_not_there_yet_say_so() {
    let folder = tempfile::TempDir::new().expect("a folder");
    for args in
        [["--auth", "jwt"], ["--jwks", "keys.json"], ["--tls-cert", "cert.pem"], ["--data", "somewhere"]]
    {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(args);
        let output = crate::harness::run_to_end(&all, &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?}: {told}");
        assert!(told.contains("not there yet"), "{args:?}: {told}");
    }
}
