//! How fast clients and tenants may publish and move.

use serde_json::json;

use crate::authorisation::{ISSUER, claims, guarded, open};
use crate::harness::{Serve, feature, with_problem_shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moving_too_fast_is_told_for_each_client() {
    let program = Serve::new().config("[limits]\nmoves_per_second = 5\n").start().await;
    let mut car = program.ws("car").await;
    let mut refused = 0;
    for _ in 0..60 {
        let answer = car.request(json!({"op": "move", "coordinates": [9.0, 45.0]})).await;
        if answer["op"] == "problem" {
            let problem = with_problem_shape("move", answer["problem"].clone());
            assert_eq!(
                (&problem["status"], &problem["setting"]),
                (&json!(429), &json!("limits.moves_per_second"))
            );
            refused += 1;
        }
    }
    assert!(refused > 0, "60 moves at once were not too fast");
    // Others are not slower for it, and what one of them may not does not end a batch.
    let http = program.http();
    let lines: String = (0..20)
        .map(|idx| format!("{{\"client\":\"car-{}\",\"coordinates\":[9,45]}}\n", idx.min(10)))
        .collect();
    let answer = http.post("/v1/positions", "application/x-ndjson", lines).await.expect(202).json();
    assert!(answer["moved"].as_u64().is_some_and(|moved| moved >= 15), "{answer}");
    assert_eq!(
        answer["moved"].as_u64().unwrap_or(0) + answer["rejected"].as_array().map_or(0, Vec::len) as u64,
        20
    );
    assert_eq!(answer["rejected"][0]["problem"]["type"], "urn:nearcast:problem:too-many-moves", "{answer}");
    let again = http.put("/v1/clients/car-10/position", &json!({"coordinates": [9, 45]})).await;
    assert!(again.status == 204 || again.headers.contains_key("retry-after"), "{}", again.status);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_subscriptions_have_a_rate_that_small_ones_do_not_feel() {
    let config = "[admission]\nchange_bytes_per_second = 10000\n[queue]\nwait_ms = 50\n";
    let program = Serve::new().config(config).start().await;
    let (mut car, mut other) = (program.ws("car").await, program.ws("other").await);
    let condition = vec!["kind LIKE '%a long text that nobody needs%'"; 30].join(" AND ");
    let large = json!({"op": "subscribe", "id": "large", "filters": vec![json!({"where": condition}); 5]});
    let mut taken = 0;
    let refused = loop {
        let answer = car.request(large.clone()).await;
        if answer["op"] == "problem" {
            break answer;
        }
        taken += 1;
    };
    let problem = with_problem_shape("subscribe", refused["problem"].clone());
    assert_eq!(
        (&problem["status"], &problem["type"]),
        (&json!(429), &json!("urn:nearcast:problem:overloaded"))
    );
    assert!(taken > 0, "two seconds' worth may come at once");
    assert_eq!(car.request(json!({"op": "subscribe", "id": "small", "filters": [{}]})).await["op"], "ok");
    assert_eq!(other.request(large.clone()).await["op"], "ok", "who has another connection does not feel it");
    let text = program.http().get("/metrics").await.expect(200).text();
    assert!(text.contains("nearcast_admission_refused_total{cause=\"load\"} 1\n"), "{text}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_says_who_it_is_has_one_rate_over_all_its_connections_and_a_tenant_over_all_its_clients()
 {
    let config = "[limits]\nevents_per_second = 4\n[quotas]\ntenant_events_per_second = 5\n";
    let program = guarded(&ISSUER, config).0.start().await;
    let token = |client: &str, tenant: &str| {
        let mut claims = claims(Some(client), "publish subscribe alarm");
        claims["tenant"] = json!(tenant);
        ISSUER.sign(&claims)
    };
    let mut settings = Vec::new();
    // Four of a client's own, then one of another one of the same tenant, over many connections; some more where they take seconds.
    for client in ["ann", "ann", "bob", "bob"] {
        let mut socket = open(&program, client, &token(client, "acme")).await.expect("it may");
        for idx in 0..15 {
            let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
            let answer = socket.request(json!({"op": "publish", "event": event})).await;
            if answer["op"] == "problem" {
                settings.push(answer["problem"]["setting"].as_str().expect("a setting").to_owned());
            }
        }
        // Alarms are taken even so.
        let mut alarm = feature("alarm", [9.0, 45.0], json!({}));
        alarm["priority"] = json!("alarm");
        socket.ok(json!({"op": "publish", "event": alarm})).await;
    }
    for setting in ["limits.events_per_second", "quotas.tenant_events_per_second"] {
        assert!(settings.iter().any(|one| one == setting), "{setting}: {settings:?}");
    }
    // Another tenant feels nothing of it.
    let mut other = open(&program, "ann", &token("ann", "other")).await.expect("it may");
    other.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    program.finish().await;
}
