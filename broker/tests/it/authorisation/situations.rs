//! Checks of tenants beside one another.

use serde_json::{Value, json};

use super::confined::{Caller, confined};
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
