//! A stop drains, tells the sockets and exits 0.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::harness::{Form, Http, Program, Raw, Serve, Sse, Ws, encode, eventually, feature};

const EVENTS_COUNT: usize = 300;

/// Two readers with a subscription to everything.
async fn readers(program: &Program) -> (Ws, Sse) {
    let mut ws = program.ws("socket").await;
    ws.subscribe("s", json!({"filters": [{}]})).await;
    let sse = program.sse("stream").await;
    program.http().put("/v1/clients/stream/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    (ws, sse)
}

fn events() -> Vec<Value> {
    (0..EVENTS_COUNT).map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"n": idx}))).collect()
}

async fn drains_after(signal: &str) {
    let mut program = Serve::new().args(&["--shards", "2"]).start().await;
    let (mut ws, mut sse) = readers(&program).await;
    let mut idle = Raw::connect(program.address()).await;
    let (content_type, body) = encode(Form::Lines, &events());
    let http = program.http();
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer["accepted"], EVENTS_COUNT);
    program.signal(signal);
    // What was acknowledged before the signal is delivered before the end.
    for idx in 0..EVENTS_COUNT {
        assert_eq!(ws.event().await["event"]["id"], format!("e{idx}"), "{signal}");
        assert_eq!(sse.next().await.frame()["event"]["id"], format!("e{idx}"), "{signal}");
    }
    // Each gets its time to come back: few within a second.
    let within_a_second =
        |retry_ms: Option<u64>| retry_ms.is_some_and(|retry_ms| (1..=1002).contains(&retry_ms));
    let retry = ws.next().await;
    assert!(retry["op"] == "retry" && within_a_second(retry["retry_ms"].as_u64()), "{signal}: {retry}");
    let (code, reason) = ws.closed().await;
    assert_eq!(code, 1001, "{signal}: {reason:?}");
    assert!(!reason.is_empty(), "{signal}: a close without a reason");
    assert!(sse.receive().await.is_none(), "{signal}: the stream ends");
    assert!(within_a_second(sse.retry_ms), "{signal}: {:?}", sse.retry_ms);
    idle.rest("an idle connection").await;
    let status = program.exit_status().await;
    assert_eq!(status.code(), Some(0), "{signal}: {status}\n{}", program.log());
    assert!(tokio::net::TcpStream::connect(program.address()).await.is_err(), "{signal}: it still listens");
    assert!(!program.log().contains("panicked"), "{}", program.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_drains_and_exits_0() {
    drains_after("TERM").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigint_drains_and_exits_0() {
    drains_after("INT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_does_not_read_cannot_hold_up_the_end() {
    let config = "[server]\nshutdown_grace_ms = 500\n[connection]\nwrite_timeout_ms = 600000\n";
    let mut program = Serve::new().config(config).start().await;
    let (ws, sse) = readers(&program).await;
    let http = program.http();
    for _ in 0..20 {
        let ballast =
            (0..100).map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"x": "x".repeat(10_000)})));
        let (content_type, body) = encode(Form::Lines, &ballast.collect::<Vec<_>>());
        http.post("/v1/events", content_type, body).await.expect(202);
    }
    let mut unfinished = Raw::connect(program.address()).await;
    unfinished.send(b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\ncontent-type: application/json\r\n\r\n{").await;
    program.signal("TERM");
    let status = program.exit_status().await;
    assert_eq!(status.code(), Some(0), "{status}\n{}", program.log());
    drop((ws, sse));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_drains_is_not_ready() {
    let mut program = Serve::new().start().await;
    let mut asker = Raw::connect(program.address()).await;
    asker.send(b"GET /readyz HTTP/1.1\r\nhost: x\r\n").await;
    let mut ws = program.ws("car").await;
    program.signal("TERM");
    assert_eq!(ws.closed().await.0, 1001);
    asker.send(b"\r\n").await;
    let told = String::from_utf8(asker.rest("the answer").await).expect("text");
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("urn:nearcast:problem:stopping"), "{told}");
    assert_eq!(program.exit_status().await.code(), Some(0), "{}", program.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_under_way_is_told_how_far_it_came() {
    let mut program = Serve::new().start().await;
    let mut watcher = program.ws("watcher").await;
    watcher.subscribe("all", json!({"filters": [{}]})).await;
    let mut batch = Raw::connect(program.address()).await;
    batch.send(b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-type: application/x-ndjson\r\n\r\n").await;
    let lines = [feature("first", [9.0, 45.0], json!({})).to_string(), "{}".to_owned()];
    for line in &lines {
        batch.send(format!("{:x}\r\n{line}\n\r\n", line.len() + 1).as_bytes()).await;
    }
    assert_eq!(watcher.event().await["event"]["id"], "first");
    program.signal("TERM");
    let told = String::from_utf8(batch.rest("the answer").await).expect("text");
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("urn:nearcast:problem:stopping"), "{told}");
    assert!(told.contains("\"accepted\":1"), "{told}");
    assert_eq!(program.exit_status().await.code(), Some(0), "{}", program.log());
}

/// Requests of a client in debt are held back for an hour. A stop has a few seconds.
const DEBTS: &str =
    "[server]\nshutdown_grace_ms = 4000\n[queue]\nwait_ms = 3600000\n[admission]\nengine_ms_per_second = 1\n";

/// How many requests were held back for a debt.
async fn held_count(http: &Http) -> Option<u64> {
    let metrics = http.get("/metrics").await.text();
    metrics.lines().find_map(|line| line.strip_prefix("nearcast_admission_held_total ")?.parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_back_does_not_use_up_the_time_of_readers() {
    let mut program = Serve::new().config(DEBTS).args(&["--shards", "1"]).start().await;
    let mut ws = program.ws("socket").await;
    let mut sse = program.sse("stream").await;
    let http = program.http();
    let lasting = (0..10_000).map(|idx| {
        let mut event = feature(&format!("e{idx}"), [9.0, 45.0], json!({"n": idx}));
        event["ttl_s"] = json!(600);
        event
    });
    let (content_type, body) = encode(Form::Lines, &lasting.collect::<Vec<_>>());
    http.post("/v1/events", content_type, body).await.expect(202);
    // A question takes many milliseconds and one a second may be used: its asker is in debt for longer than this test.
    let long = (0..60).map(|idx| format!("n%20%3C%20-{idx}")).collect::<Vec<_>>().join("%20OR%20");
    let mut askers = Vec::new();
    for call in [&format!("/v1/events?where={long}"), "/v1/stats"] {
        let before = held_count(&http).await;
        eventually("it is held back", async || {
            let mut asker = Raw::connect(program.address()).await;
            asker.send(format!("GET {call} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
            askers.push(asker);
            (held_count(&http).await > before).then_some(())
        })
        .await;
    }
    program.signal("TERM");
    assert_eq!(ws.next().await["op"], "retry");
    assert_eq!(ws.closed().await.0, 1001);
    assert!(sse.receive().await.is_none() && sse.retry_ms.is_some(), "{:?}", sse.retry_ms);
    let mut refused = 0;
    for mut asker in askers {
        refused +=
            usize::from(String::from_utf8_lossy(&asker.rest("an answer").await).contains("problem:stopping"));
    }
    assert!(refused > 0, "a question that is held back is answered");
    assert_eq!(program.exit_status().await.code(), Some(0), "{}", program.log());
}

/// The whole server is a function, which other programs (and the demo) may call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_runs_inside_another_program() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let broker = tokio::spawn(broker::run(listener, broker::Config::default(), shutdown.clone()));
    let mut client = Ws::connect(address, "car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    client.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    assert_eq!(client.event().await["event"]["id"], "e");
    shutdown.cancel();
    let (code, _) = client.closed().await;
    assert_eq!(code, 1001);
    let ended = crate::harness::within("the broker ends", broker).await;
    assert!(ended.expect("no panic").is_ok());
}
