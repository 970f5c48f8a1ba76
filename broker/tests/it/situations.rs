//! Bounds of what situations take.

use serde_json::{Value, json};

use crate::harness::{Form, Http, Serve, encode, eventually, feature};

async fn publish_all(http: &Http, events: &[Value]) {
    let (kind, body) = encode(Form::Lines, events);
    http.post("/v1/events", kind, body).await.expect(202);
}

async fn activity(http: &Http, check: &str) -> Value {
    http.get(&format!("/v1/checks/{check}")).await.expect(200).json()["activity"].clone()
}

/// Whatever comes is wrong, but for what was found.
fn never() -> Value {
    json!({
        "contexts": {"all": {"where": "n >= 0", "for_s": 3600}},
        "formula": {"forall": "a", "in": "all", "that": "FALSE"},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_of_all_checks_of_a_tenant_are_bounded_together() {
    let settings = "[situations]\nfindings_per_second = 0\ntenant_findings_per_second = 5\n";
    let program = Serve::new().config(settings).start().await;
    let http = program.http();
    let checks = ["one", "two"];
    for check in checks {
        http.put(&format!("/v1/checks/{check}"), &never()).await.expect(201);
    }
    let events: Vec<_> = (0..200).map(|n| feature(&format!("e{n}"), [9.0, 45.0], json!({"n": n}))).collect();
    publish_all(&http, &events).await;
    let mut dropped = Vec::new();
    for check in checks {
        let settled = eventually("all findings", async || {
            let activity = activity(&http, check).await;
            let count = |name: &str| activity[name].as_u64().expect("a number");
            (count("published") + count("dropped") == 200).then_some(activity.clone())
        })
        .await;
        let problem = settled["problem"].as_str().unwrap_or_default();
        if problem.contains("situations.tenant_findings_per_second") {
            dropped.push(check);
        }
    }
    assert!(!dropped.is_empty(), "no check has passed the bound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_knows_too_much_begins_anew_and_a_small_one_does_not() {
    let program = Serve::new().config("[situations]\ntenant_state_bytes = 400000\n").start().await;
    let http = program.http();
    let holds = |condition: &str, formula: Value| json!({"contexts": {"all": {"where": condition, "for_s": 3600}}, "formula": formula});
    let large = holds("n >= 0", json!({"forall": "a", "in": "all", "that": "a.n >= 0"}));
    let same = json!({"forall": "b", "in": "all", "that": "a.m = b.m"});
    let small = holds("m >= 0", json!({"forall": "a", "in": "all", "that": same}));
    http.put("/v1/checks/large", &large).await.expect(201);
    http.put("/v1/checks/small", &small).await.expect(201);
    publish_all(&http, &[feature("first", [9.0, 45.0], json!({"m": 1}))]).await;
    let mut number = 0;
    let passed = eventually("a check that begins anew", async || {
        let event = |n: u32| feature(&format!("e{n}"), [9.0, 45.0], json!({"n": n}));
        publish_all(&http, &(number..number + 100).map(event).collect::<Vec<_>>()).await;
        number += 100;
        let activity = activity(&http, "large").await;
        (activity["restarts"] != 0).then_some(activity)
    })
    .await;
    let problem = passed["problem"].as_str().expect("a problem");
    assert!(problem.contains("400000 (situations.tenant_state_bytes)"), "{problem}");
    // The other one of the tenant knows what it knew.
    publish_all(&http, &[feature("second", [9.0, 45.0], json!({"m": 2}))]).await;
    let small = eventually("both directions", async || {
        let activity = activity(&http, "small").await;
        (activity["published"] == 2).then_some(activity)
    })
    .await;
    assert_eq!((&small["restarts"], &small["problem"]), (&json!(0), &Value::Null), "{small}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_slower_than_its_input_begins_anew_and_holds_up_nobody() {
    let settings = "[situations]\nthreads = 2\nkept_events = 200\ncomparisons_max = 0\n";
    let program = Serve::new().config(settings).start().await;
    let http = program.http();
    let triple = ["a", "b", "c"].iter().rev().fold(
        json!("a.n + b.n < c.n + 100000"),
        |that, variable| json!({"forall": variable, "in": "all", "that": that}),
    );
    let slow = json!({"contexts": {"all": {"where": "n >= 0", "for_s": 3600}}, "formula": triple});
    http.put("/v1/checks/slow", &slow).await.expect(201);
    let mut quick = never();
    quick["contexts"]["all"] = json!({"where": "n >= 0 AND n % 500 = 0", "for_s": 3600});
    http.put("/v1/checks/quick", &quick).await.expect(201);
    let mut reader = program.ws("reader").await;
    reader.subscribe("s", json!({"filters": [{"where": "n >= 0"}]})).await;
    let events: Vec<_> =
        (0..3_000).map(|n| feature(&format!("e{n}"), [9.0, 45.0], json!({"n": n}))).collect();
    for some in events.chunks(300) {
        publish_all(&http, some).await;
        for event in some {
            assert_eq!(reader.event().await["event"]["id"], event["id"]);
        }
    }
    eventually("its findings", async || (activity(&http, "quick").await["published"] == 6).then_some(()))
        .await;
    let told = eventually("that it began anew", async || {
        let activity = activity(&http, "slow").await;
        (activity["restarts"].as_u64() > Some(0)).then_some(activity)
    })
    .await;
    assert!(told["problem"].as_str().is_some_and(|problem| problem.contains("inputs were lost")), "{told}");
    assert_eq!(activity(&http, "quick").await["restarts"], 0);
}
