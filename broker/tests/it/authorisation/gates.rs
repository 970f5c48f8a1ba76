//! Checks that drop events: those of their owner, and of nobody else.

use serde_json::{Value, json};

use super::confined::{Caller, confined};
use super::guarded;
use super::tokens::ISSUER;
use crate::harness::{Program, feature};

fn caller<'a>(program: &'a Program, tenant: &str, scope: &str, claim: &Value) -> Caller<'a> {
    Caller { door: program, token: confined("root", tenant, scope, claim) }
}

fn calm() -> Value {
    json!({"where": "severity < 3"})
}

/// No event of a severity comes together with one of another.
fn never(first: u8, second: u8) -> Value {
    let pair = format!("NOT (a.severity = {first} AND b.severity = {second})");
    let inner = json!({"forall": "b", "in": "all", "that": pair});
    json!({"contexts": {"all": {"for_s": 3600}}, "formula": {"forall": "a", "in": "all", "that": inner}, "on_violation": "drop"})
}

async fn publish(of: &Caller<'_>, id: &str, severity: u8) -> (u16, Value) {
    of.call("POST", "/v1/events", Some(feature(id, [9.0, 45.0], json!({"severity": severity})))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_holds_only_what_its_owner_would_receive() {
    let program = guarded(&ISSUER, "\n[checks]\nhold_ms = 60000\n").0.start().await;
    let acme = caller(&program, "acme", "admin", &Value::Null);
    let other = caller(&program, "umbrella", "admin", &Value::Null);
    let ann = caller(&program, "acme", "admin", &calm());
    assert_eq!(ann.call("PUT", "/v1/checks/calm", Some(never(1, 1))).await.0, 201);
    // Its owner would not receive these.
    assert_eq!(publish(&other, "o1", 1).await.0, 202);
    assert_eq!(acme.call("PUT", "/v1/checks/four", Some(never(4, 2))).await.0, 201);
    assert_eq!(publish(&acme, "e4", 4).await.0, 202);
    let (status, problem) = publish(&acme, "e1", 1).await;
    assert_eq!((status, &problem["check"]), (422, &json!("calm")), "{problem}");
    // An event that the publisher may not see is not named.
    let (status, problem) = publish(&ann, "e2", 2).await;
    assert_eq!((status, &problem["links"]), (422, &json!([{"b": "e2"}])), "{problem}");
    let (status, problem) = publish(&acme, "e2", 2).await;
    assert_eq!((status, &problem["links"]), (422, &json!([{"a": "e4", "b": "e2"}])), "{problem}");
    let (status, shown) = acme.call("GET", "/v1/checks/calm", None).await;
    assert_eq!((status, &shown["activity"]["evaluations"]), (200, &json!(3)), "{shown}");
    program.finish().await;
}
