//! Checks of tenants beside one another.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::confined::{Caller, confined};
use super::frames::open;
use super::guarded;
use super::tokens::ISSUER;
use crate::harness::{Door, eventually, feature};

fn admin<'a>(door: &'a Door, tenant: &str) -> Caller<'a> {
    Caller { door, token: confined("root", tenant, "admin publish", &Value::Null) }
}

async fn publish(of: &Caller<'_>, id: &str) {
    let event = feature(id, [9.0, 45.0], json!({"n": 1}));
    assert_eq!(of.call("POST", "/v1/events", Some(event)).await.0, 202, "{id}");
}

async fn activity(of: &Caller<'_>) -> Value {
    let (status, check) = of.call("GET", "/v1/checks/c", None).await;
    assert_eq!(status, 200, "{check}");
    check["activity"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_takes_its_share_of_the_time_waits_and_another_one_does_not() {
    // A second of evaluation is paid for in twelve days, and one thread serves all.
    let settings = "[situations]\nthreads = 1\ntenant_time_share = 0.000001\n";
    let program = guarded(&ISSUER, settings).0.start().await;
    let door: &Door = &program;
    let (busy, calm) = (admin(door, "acme"), admin(door, "umbrella"));
    let formula = json!({"forall": "a", "in": "all", "that": "FALSE"});
    let check = json!({"contexts": {"all": {"where": "n = 1", "for_s": 3600}}, "formula": formula});
    for tenant in [&busy, &calm] {
        let (status, answer) = tenant.call("PUT", "/v1/checks/c", Some(check.clone())).await;
        assert_eq!(status, 201, "{answer}");
    }
    let mut number = 0;
    eventually("a tenant that waits", async || {
        publish(&busy, &format!("e{number}")).await;
        number += 1;
        let problem = activity(&busy).await["problem"].clone();
        problem.as_str().is_some_and(|problem| problem.contains("situations.tenant_time_share")).then_some(())
    })
    .await;
    publish(&calm, "e").await;
    eventually("the finding of the other one", async || {
        (activity(&calm).await["published"] == 1).then_some(())
    })
    .await;
    assert_eq!(activity(&calm).await["problem"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_events_stay_with_readers_who_may_see_them() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("a plain path");
    let program = guarded(&ISSUER, "").0.args(&["--data", data, "--shards", "2"]).start().await;
    let door: &Door = &program;
    let claim = json!({"where": "type = 'violation' OR n = 1"});
    let other = json!({"where": "check = 'c'"});
    let pair = json!({"forall": "b", "in": "all", "that": "a.n <> b.n OR SAME(a, b)"});
    let formula = json!({"forall": "a", "in": "all", "that": pair});
    let check = json!({"contexts": {"all": {"where": "n = 1", "for_s": 3600}}, "formula": formula});
    // One check of nobody in particular, and one of a confined admin.
    for (name, of) in [("c", &Value::Null), ("d", &claim)] {
        let caller = Caller { door, token: confined("root", "acme", "admin", of) };
        let (status, answer) = caller.call("PUT", &format!("/v1/checks/{name}"), Some(check.clone())).await;
        assert_eq!(status, 201, "{answer}");
    }
    let mut readers = Vec::new();
    for (client, of) in [("free", &Value::Null), ("alike", &claim), ("other", &other)] {
        let token = confined(client, "acme", "subscribe", of);
        let mut socket = open(door, client, &token).await.expect("a socket");
        socket.send(&json!({"op": "subscribe", "id": "s", "filters": [{"where": "type = 'violation'"}], "durable": true})).await;
        socket.next().await;
        readers.push((client, token, socket));
    }
    for id in ["e1", "e2"] {
        publish(&admin(door, "acme"), id).await;
    }
    for (client, _, socket) in &mut readers {
        // Two links of each check; the last reader sees those of one check.
        let count = if *client == "other" { 2 } else { 4 };
        for _ in 0..count {
            let event = socket.event().await["event"].clone();
            let is_veiled = match (*client, event["properties"]["check"].as_str()) {
                ("free", _) | ("alike", Some("d")) => false,
                ("alike" | "other", Some("c")) => true,
                _ => panic!("{client}: {event}"),
            };
            assert_eq!(event["properties"].get("bindings").is_none(), is_veiled, "{client}: {event}");
            assert_eq!(event["derived"].get("from").is_none(), is_veiled, "{client}: {event}");
            assert_eq!(event["derived"]["depth"], 1, "{client}: {event}");
            assert_eq!(event.to_string().contains("\"e1\""), !is_veiled, "{client}: {event}");
        }
    }
    // What is retained for a reader is as it was.
    let token = readers.pop().expect("the last reader").1;
    let mut again = open(door, "other", &token).await.expect("a socket");
    let event = again.event().await["event"].clone();
    assert!(event["properties"].get("bindings").is_none() && event["id"].is_string(), "{event}");
    // The list of all that was found is for those who are not confined, or alike.
    let caller = Caller { door, token: confined("root", "acme", "admin", &other) };
    assert_eq!(caller.call("GET", "/v1/checks/c/findings", None).await.0, 403);
}
