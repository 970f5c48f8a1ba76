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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_object_of_a_confined_publisher_is_another_candidate_also_after_a_kill() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("a plain path");
    let start = async || guarded(&ISSUER, "").0.args(&["--data", data, "--shards", "2"]).start().await;
    let mut program = start().await;
    let live = |kind: &str, key: &str, metres: f64| {
        let mut event =
            feature(&format!("{key}@{metres}"), [9.0, 45.0 + metres / 111_195.0], json!({"type": kind}));
        event["key"] = json!(key);
        event
    };
    let pickup = json!({
        "roles": {"taxi": {"where": "type = 'taxi'"}, "rider": {"where": "type = 'rider'"}},
        "where": ["DISTANCE(taxi, rider) <= 800"],
    });
    let (path, one) = ("/v1/groups/pickup", json!([{"rider": "r1", "taxi": "t1"}]));
    let stands = async |program: &Door, groups: &Value| {
        let root = admin(program, "acme");
        eventually("two taxis", async || {
            let (_, document) = root.call("GET", path, None).await;
            let activity = &document["activity"];
            (activity["candidates"] == json!({"taxi": 2, "rider": 1}) && document["groups"] == *groups)
                .then_some(activity["published"].clone())
        })
        .await
    };
    let taxis = json!({"where": "type = 'taxi'"});
    {
        let root = admin(&program, "acme");
        assert_eq!(root.call("PUT", path, Some(pickup)).await.0, 201);
        for event in [live("taxi", "t1", 0.0), live("rider", "r1", 0.0)] {
            assert_eq!(root.call("POST", "/v1/events", Some(event)).await.0, 202);
        }
        eventually("their group", async || {
            let (_, document) = root.call("GET", path, None).await;
            (document["groups"] == one && document["activity"]["published"] == 1).then_some(())
        })
        .await;
        let other = Caller { door: &program, token: confined("other", "acme", "publish", &taxis) };
        assert_eq!(other.call("POST", "/v1/events", Some(live("taxi", "t1", 9_000.0))).await.0, 202);
        assert_eq!(stands(&program, &one).await, 1);
        let (status, why) = root.call("GET", "/v1/groups/pickup/objects/t1", None).await;
        assert_eq!(
            (status, &why["groups"], why["roles"].as_array().map(Vec::len)),
            (200, &json!(1), Some(2)),
            "{why}"
        );
    }
    program.signal("KILL");
    program.exit_status().await;
    let program = start().await;
    stands(&program, &one).await;
    // Nearer, it is a member of a group of its own, and goes from that alone.
    let other = Caller { door: &program, token: confined("other", "acme", "publish", &taxis) };
    assert_eq!(other.call("POST", "/v1/events", Some(live("taxi", "t1", 100.0))).await.0, 202);
    stands(&program, &json!([one[0], one[0]])).await;
    assert_eq!(other.call("POST", "/v1/events", Some(live("taxi", "t1", 9_000.0))).await.0, 202);
    stands(&program, &one).await;
}

/// A finding that is live is asked for, and comes to a new subscription, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_events_stay_with_readers_who_may_see_them_where_a_finding_is_live() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("a plain path");
    let start = async || guarded(&ISSUER, "").0.args(&["--data", data]).start().await;
    let mut program = start().await;
    let rules = json!({
        "facts": {"up": {"where": "n = 1", "args": ["@id"]}},
        "program": "up(I) <=> seen(I).",
        "publish": {"seen": {"properties": {"type": "seen"}, "key": "k", "ttl_s": 600}},
    });
    {
        let root = admin(&program, "acme");
        let (status, answer) = root.call("PUT", "/v1/rules/r", Some(rules)).await;
        assert_eq!(status, 201, "{answer}");
        publish(&root, "secret").await;
    }
    for round in ["before", "after"] {
        let door: &Door = &program;
        for (is_confined, claim) in [(false, Value::Null), (true, json!({"where": "type = 'seen'"}))] {
            let client = format!("{round}{is_confined}");
            let token = confined(&client, "acme", "subscribe", &claim);
            let asked = Caller { door, token: token.clone() };
            let event = eventually("the finding is live", async || {
                let (status, page) = asked.call("GET", "/v1/events", None).await;
                assert_eq!(status, 200, "{page}");
                page["features"].get(0).cloned()
            })
            .await;
            let mut socket = open(door, &client, &token).await.expect("a socket");
            socket
                .send(&json!({"op": "subscribe", "id": "s", "filters": [{"where": "type = 'seen'"}]}))
                .await;
            socket.next().await;
            for event in [event, socket.event().await["event"].clone()] {
                assert_eq!(event["derived"]["by"], "rules/r", "{event}");
                assert_eq!(event.to_string().contains("secret"), !is_confined, "{client}: {event}");
            }
        }
        program.finish().await;
        program = start().await;
    }
}
