//! What clients may cost the engines.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Program, Serve, feature, with_problem_shape};

/// Live events that a new subscription is held against.
const LIVE: usize = 5_000;

/// A debt of a millisecond takes a second to pay.
const CONFIG: &str = "[admission]\nengine_ms_per_second = 1\n[queue]\nwait_ms = 50\n";

async fn start(config: &str) -> Program {
    let program = Serve::new().config(config).args(&["--shards", "1"]).start().await;
    let lines: String = (0..LIVE)
        .map(|idx| {
            let mut event = feature(&format!("live-{idx}"), [9.0, 45.0], json!({"a": idx}));
            event["ttl_s"] = json!(600);
            format!("{event}\n")
        })
        .collect();
    let answer = program.http().post("/v1/events", "application/x-ndjson", lines).await;
    assert_eq!(answer.expect(202).json()["accepted"], LIVE);
    program
}

/// A subscription of many filters that is held against all live events, and not satisfied by any.
fn wide() -> Value {
    let filters: Vec<_> = (1..=32).map(|idx| json!({"where": format!("a < -{idx} AND b = {idx}")})).collect();
    json!({"filters": filters})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_costs_too_much_is_refused_and_told_what_does_and_others_feel_nothing() {
    let program = start(CONFIG).await;
    let (http, events) = (program.http(), program.http());
    let mut reader = program.ws("reader").await;
    reader.subscribe("alone", json!({"filters": [{"where": "kind = 'news'"}]})).await;
    http.put("/v1/clients/costly/subscriptions/cheap", &json!({"filters": [{"where": "b = 3"}]})).await;
    let attack = async {
        for _ in 0..10_000 {
            let answer = http.put("/v1/clients/costly/subscriptions/wide", &wide()).await;
            if answer.status == 429 && answer.json()["costliest"][0]["subscription"] == "wide" {
                return answer;
            }
            if answer.status == 429 {
                // The first one may have been charged for more than a millisecond: an engine begins with it.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            assert!([200, 201].contains(&answer.status), "{}", answer.status);
        }
        panic!("what costs an engine all of its time was taken 10000 times");
    };
    let publish = async {
        for idx in 0..50 {
            let event = feature(&format!("news-{idx}"), [9.0, 45.0], json!({"kind": "news"}));
            events.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
        }
    };
    let (refused, ()) = tokio::join!(attack, publish);
    for idx in 0..50 {
        assert_eq!(reader.event().await["event"]["id"], format!("news-{idx}"));
    }

    let wait_s: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=601).contains(&wait_s), "{wait_s}");
    let problem = refused.problem(429);
    assert_eq!(problem["type"], "urn:nearcast:problem:too-costly");
    assert_eq!(
        (&problem["limit"], &problem["setting"]),
        (&json!(1), &json!("admission.engine_ms_per_second"))
    );
    assert_eq!(problem["costliest"][0]["subscription"], "wide", "{problem}");
    assert!(problem["costliest"][0]["engine_ms"].as_u64().is_some_and(|ms| ms > 0), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("wide"), "{problem}");

    // Over a WebSocket it is the same client, and its moves cost, too; others go on.
    let mut socket = program.ws("costly").await;
    for request in [
        json!({"op": "subscribe", "id": "more", "filters": [{"where": "b = 4"}]}),
        json!({"op": "move", "coordinates": [9, 45]}),
    ] {
        let answer = socket.request(request).await;
        let problem = with_problem_shape("subscribe", answer["problem"].clone());
        assert_eq!(problem["type"], "urn:nearcast:problem:too-costly", "{problem}");
    }
    let moves =
        json!([{"client": "costly", "coordinates": [9, 45]}, {"client": "other", "coordinates": [9, 45]}]);
    let answer = http.post("/v1/positions", "application/json", moves.to_string()).await.expect(202).json();
    assert_eq!((&answer["moved"], &answer["rejected"][0]["index"]), (&json!(1), &json!(0)), "{answer}");
    // What makes it cheaper is never held back, nor is a look at it.
    let path = "/v1/clients/costly/subscriptions/wide";
    http.get(path).await.expect(200);
    http.delete(path).await.expect(204);

    let clients = http.get("/v1/clients").await.expect(200).json();
    let of = |name: &str| {
        let clients = clients["clients"].as_array().unwrap();
        clients.iter().find(|one| one["client"] == name).map(|one| one["engine_ms"].as_u64().unwrap())
    };
    assert!(of("costly") > Some(0), "{clients}");
    let text = http.get("/metrics").await.expect(200).text();
    let refusals = text.lines().find_map(|line| {
        line.strip_prefix("nearcast_admission_refused_total{cause=\"cost\"} ")?.parse::<u64>().ok()
    });
    assert!(refusals >= Some(4), "{text}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_debt_is_paid_by_waiting() {
    let program = start("[admission]\nengine_ms_per_second = 500\n[queue]\nwait_ms = 60000\n").await;
    let http = program.http();
    let held = || async {
        let text = http.get("/metrics").await.expect(200).text();
        text.contains("nearcast_admission_held_total") && !text.contains("nearcast_admission_held_total 0\n")
    };
    let mut rounds = 0;
    while !held().await {
        let answer = http.put("/v1/clients/costly/subscriptions/wide", &wide()).await;
        assert!([200, 201].contains(&answer.status), "{}", answer.status);
        rounds += 1;
        assert!(rounds < 20_000, "nothing is held back");
    }
    program.finish().await;
}
