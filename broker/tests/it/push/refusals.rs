//! Push subscriptions that are refused.

use serde_json::{Value, json};

use super::document;
use crate::authorisation::{ISSUER, claims, guarded};
use crate::harness::Serve;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_push_subscription_is_refused_with_its_place() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut wrong_point = document("https://1.1.1.1/a");
    wrong_point["keys"]["p256dh"] = json!("BAAA");
    let mut wrong_secret = document("https://1.1.1.1/a");
    wrong_secret["keys"]["auth"] = json!("AAAA");
    let mut cases: Vec<(Value, &str)> = vec![
        (document("http://1.1.1.1/a"), "/endpoint"),
        (document("a"), "/endpoint"),
        (wrong_point, "/keys/p256dh"),
        (wrong_secret, "/keys/auth"),
        (json!({"endpoint": "https://1.1.1.1/a"}), "/keys"),
        (json!([]), ""),
    ];
    for inside in [
        "127.0.0.1",
        "127.0.0.1:7070",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        cases.push((document(&format!("https://{inside}/a")), "/endpoint"));
    }
    for (said, pointer) in cases {
        let problem = http.put("/v1/clients/ann/push", &said).await.problem(400);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{said}: {problem}");
    }
    let told = http.put("/v1/clients/ann/push", &document("https://127.0.0.1/a")).await.problem(400);
    assert!(told.to_string().contains("push.private_addresses"), "{told}");
    let mut large = document("https://1.1.1.1/a");
    large["more"] = json!("x".repeat(10_000));
    let told = http.put("/v1/clients/ann/push", &large).await.problem(413);
    assert!(told.to_string().contains("limits.push_subscription_bytes"), "{told}");
    http.get("/v1/clients/ann/push").await.problem(404);
    http.put("/v1/clients/ann/push", &document("https://1.1.1.1/a")).await.expect(201);
    http.put("/v1/clients/ann/push", &document("https://[2606:4700::1111]/a")).await.expect(200);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_push_is_off_every_call_says_so() {
    let program = Serve::new().config("[push]\nenabled = false\n").start().await;
    let http = program.http();
    let answers = [
        http.get("/v1/push").await,
        http.put("/v1/clients/ann/push", &document("https://1.1.1.1/a")).await,
        http.get("/v1/clients/ann/push").await,
        http.delete("/v1/clients/ann/push").await,
    ];
    for answer in answers {
        assert_eq!(answer.problem(404)["type"], "urn:nearcast:problem:no-push");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_woken_where_it_says_itself() {
    let (serve, _) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let http = program.http();
    let token = |client: &str, scope: &str, confined: Option<Value>| {
        let mut claims = claims(Some(client), scope);
        if let Some(confined) = confined {
            claims["nearcast"] = confined;
        }
        format!("Bearer {}", ISSUER.sign(&claims))
    };
    let call = async |method: &str, token: &str| {
        let body = if method == "PUT" { document("https://1.1.1.1/a").to_string() } else { String::new() };
        let headers = [("authorization", token)];
        http.send_with(method, "/v1/clients/ann/push", Some("application/json"), &headers, body).await
    };
    let ann = token("ann", "subscribe", None);
    let confined = token("ann", "subscribe", Some(json!({"where": "a = 1"})));
    for (method, status) in [("PUT", 201), ("GET", 200), ("PUT", 200)] {
        call(method, &ann).await.expect(status);
        call(method, &token("bob", "subscribe", None)).await.problem(403);
        call(method, &token("ann", "publish", None)).await.problem(403);
        // The subscription of a token that may know everything is not for a confined one.
        call(method, &confined).await.problem(403);
    }
    call("DELETE", &token("bob", "subscribe", None)).await.problem(403);
    call("DELETE", &confined).await.problem(403);
    call("GET", &token("ops", "admin", None)).await.expect(200);
    call("DELETE", &token("ops", "admin", None)).await.expect(204);
    call("PUT", &confined).await.expect(201);
    call("PUT", &ann).await.problem(403);
    program.finish().await;
}
