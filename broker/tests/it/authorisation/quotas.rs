//! What each tenant may have: its own number, whatever others have.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::confined::{Caller, ask_for, confined};
use super::guarded;
use super::tokens::ISSUER;
use crate::harness::{Door, Program, Ws, eventually, feature};

const SETTINGS: &str = "\n[quotas]\ntenant_clients = 3\ntenant_subscriptions = 2\ntenant_constraints = 8\ntenant_live_events = 2\n\
                        tenant_connections = 2\n";

const TENANTS: [&str; 3] = ["acme", "", "umbrella"];

fn admin<'a>(door: &'a Door, tenant: &str) -> Caller<'a> {
    Caller { door, token: confined("root", tenant, "admin", &Value::Null) }
}

#[track_caller]
fn assert_full((status, problem): &(u16, Value), setting: &str, limit: u64) {
    assert_eq!(*status, 409, "{problem}");
    assert_eq!(problem["type"], "urn:nearcast:problem:limit-reached", "{problem}");
    assert_eq!((&problem["setting"], &problem["limit"]), (&json!(setting), &json!(limit)), "{problem}");
}

async fn place(of: &Caller<'_>, client: &str) -> (u16, Value) {
    let path = format!("/v1/clients/{client}/position");
    of.call("PUT", &path, Some(json!({"coordinates": [9.0, 45.0]}))).await
}

async fn subscribe(of: &Caller<'_>, client: &str, id: &str) -> u16 {
    of.call("PUT", &format!("/v1/clients/{client}/subscriptions/{id}"), Some(json!({"filters": [{}]})))
        .await
        .0
}

/// With so many constraints, one of which is that of its tenant.
async fn subscribe_with(of: &Caller<'_>, client: &str, id: &str, constraints: usize) -> (u16, Value) {
    let condition = vec!["a = 1"; constraints - 1].join(" AND ");
    let path = format!("/v1/clients/{client}/subscriptions/{id}");
    of.call("PUT", &path, Some(json!({"filters": [{"where": condition}]}))).await
}

async fn publish(of: &Caller<'_>, key: &str) -> (u16, Value) {
    let mut event = feature(key, [9.0, 45.0], json!({}));
    event["key"] = json!(key);
    of.call("POST", "/v1/events", Some(event)).await
}

/// Each of the tenants in its turn takes all that it may have, and finds it free again when it is given back.
async fn each_has_its_own(door: &Door) {
    for tenant in TENANTS {
        let admin = admin(door, tenant);
        for client in ["a", "b", "c", "a"] {
            assert_eq!(place(&admin, client).await.0, 204, "{tenant} {client}");
        }
        assert_full(&place(&admin, "d").await, "quotas.tenant_clients", 3);
        for (client, id, status) in
            [("a", "s", 201), ("b", "s", 201), ("a", "s", 200), ("a", "t", 409), ("d", "s", 409)]
        {
            assert_eq!(subscribe(&admin, client, id).await, status, "{tenant} {client} {id}");
        }
        let path = "/v1/clients/a/subscriptions/t";
        let refused = admin.call("PUT", path, Some(json!({"filters": [{}]}))).await;
        assert_full(&refused, "quotas.tenant_subscriptions", 2);
        assert_eq!(subscribe_with(&admin, "a", "s", 7).await.0, 200, "{tenant}");
        assert_full(&subscribe_with(&admin, "b", "s", 2).await, "quotas.tenant_constraints", 8);
        assert_eq!(subscribe_with(&admin, "a", "s", 2).await.0, 200, "{tenant}");
        assert_eq!(subscribe_with(&admin, "b", "s", 6).await.0, 200, "{tenant}");
        assert_full(&subscribe_with(&admin, "a", "s", 3).await, "quotas.tenant_constraints", 8);
        for key in ["j", "k", "j"] {
            assert_eq!(publish(&admin, key).await.0, 202, "{tenant} {key}");
        }
        assert_full(&publish(&admin, "l").await, "quotas.tenant_live_events", 2);
        let mut sockets = Vec::new();
        for client in ["a", "b"] {
            let request = ask_for(door, client, &admin.token, "");
            sockets.push(Ws::open(request, client).await.expect("it may"));
        }
        let refused = Ws::open(ask_for(door, "a", &admin.token, ""), "a").await;
        assert_eq!(refused.err(), Some(409), "{tenant}");
        let refused = admin.call("GET", "/v1/clients/a/events", None).await;
        assert_full(&refused, "quotas.tenant_connections", 2);
        // What was given back may be had again.
        drop(sockets.pop());
        eventually("a connection is over", async || {
            Ws::open(ask_for(door, "a", &admin.token, ""), "a").await.ok()
        })
        .await;
        assert_eq!(admin.call("DELETE", "/v1/clients/a/subscriptions/s", None).await.0, 204);
        assert_full(&subscribe_with(&admin, "a", "t", 3).await, "quotas.tenant_constraints", 8);
        assert_eq!(subscribe_with(&admin, "a", "t", 2).await.0, 201);
        assert_eq!(admin.call("DELETE", "/v1/events/k", None).await.0, 204);
        eventually("an object is gone", async || (publish(&admin, "l").await.0 == 202).then_some(())).await;
        assert_eq!(admin.call("DELETE", "/v1/clients/c", None).await.0, 204);
        eventually("a client is gone", async || (place(&admin, "d").await.0 == 204).then_some(())).await;
        assert_full(&place(&admin, "e").await, "quotas.tenant_clients", 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_have_quotas_of_their_own() {
    let program = guarded(&ISSUER, SETTINGS).0.args(&["--shards", "2"]).start().await;
    each_has_its_own(&program).await;
    program.finish().await;
}

async fn on_disk(folder: &TempDir, settings: &str) -> Program {
    let data = folder.path().join("data");
    guarded(&ISSUER, settings).0.args(&["--data", data.to_str().expect("a plain path")]).start().await
}

/// What there was before counts again, also where it is more than may be by now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_there_counts_after_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let program = on_disk(&folder, "").await;
    for tenant in TENANTS {
        for client in ["a", "b", "c", "d"] {
            let admin = admin(&program, tenant);
            assert_eq!(place(&admin, client).await.0, 204);
            assert_eq!(subscribe(&admin, client, "s").await, 201);
            assert_eq!(publish(&admin, client).await.0, 202);
        }
    }
    program.kill();
    let program = on_disk(&folder, SETTINGS).await;
    for tenant in TENANTS {
        let admin = admin(&program, tenant);
        assert_eq!((place(&admin, "a").await.0, subscribe(&admin, "a", "s").await), (204, 200));
        assert_eq!(publish(&admin, "a").await.0, 202);
        for client in ["a", "b"] {
            assert_full(&place(&admin, "e").await, "quotas.tenant_clients", 3);
            assert_eq!(admin.call("DELETE", &format!("/v1/clients/{client}"), None).await.0, 204);
        }
        assert_eq!(place(&admin, "e").await.0, 204);
        assert_eq!(subscribe(&admin, "e", "s").await, 409);
        assert_full(&publish(&admin, "e").await, "quotas.tenant_live_events", 2);
    }
    program.finish().await;
}

/// Subscriptions with more constraints than a client or its tenant may have by now stay, and may be replaced by smaller ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraints_that_were_there_count_after_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let program = on_disk(&folder, "").await;
    for tenant in TENANTS {
        for client in ["a", "b"] {
            assert_eq!(subscribe_with(&admin(&program, tenant), client, "s", 10).await.0, 201);
        }
    }
    program.kill();
    let settings = "\n[limits]\nconstraints_per_client = 5\n[quotas]\ntenant_constraints = 16\n";
    let program = on_disk(&folder, settings).await;
    for tenant in TENANTS {
        let admin = admin(&program, tenant);
        for (id, count) in [("s", 11), ("t", 2)] {
            assert_full(&subscribe_with(&admin, "a", id, count).await, "limits.constraints_per_client", 5);
        }
        assert_full(&subscribe_with(&admin, "c", "s", 2).await, "quotas.tenant_constraints", 16);
        assert_eq!(subscribe_with(&admin, "a", "s", 10).await.0, 200, "{tenant}");
        assert_eq!(subscribe_with(&admin, "a", "s", 9).await.0, 200, "{tenant}");
        assert_eq!(admin.call("DELETE", "/v1/clients/b", None).await.0, 204);
        eventually("a client is gone", async || {
            (subscribe_with(&admin, "c", "s", 5).await.0 == 201).then_some(())
        })
        .await;
        assert_full(&subscribe_with(&admin, "d", "s", 3).await, "quotas.tenant_constraints", 16);
    }
    program.finish().await;
}
