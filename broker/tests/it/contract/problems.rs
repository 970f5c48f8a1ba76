//! Problems: those that can be provoked from outside are told as the contract says.

use serde_json::{Value, json};

use super::{by_value, list, text, vectors};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Answer, Http, Serve, eventually};

/// Bounds that few requests are enough to reach.
const CONFIG: &str = "[limits]\nsubscriptions_per_client = 1\nsubscription_bytes = 1024\nevents_per_second = 2\nmoves_per_second = 1\n";

async fn send(http: &Http, request: &Value) -> Answer {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        headers.push((name.clone(), text(value).to_owned()));
    }
    if request["token"].is_object() {
        headers.push(("authorization".to_owned(), format!("Bearer {}", ISSUER.sign(&request["token"]))));
    }
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = request["body"].as_str().unwrap_or_default().to_owned();
    http.send_with(text(&request["method"]), text(&request["path"]), None, &headers, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn problems_are_told_as_the_contract_says() {
    let open = Serve::new().config(CONFIG).start().await;
    let tokens = guarded(&ISSUER, &format!("\n{CONFIG}")).0.start().await;
    let problems = vectors("problems");
    let provoked = list(&problems).iter().filter(|vector| vector["broker"].is_string());
    let mut provoked_count = 0;
    for vector in provoked {
        let name = text(&vector["name"]);
        let program = match text(&vector["broker"]) {
            "open" => &open,
            "tokens" => &tokens,
            other => panic!("{name}: there is no broker {other}"),
        };
        let http = Http::without_keeping(program.address());
        // What is about a rate is not refused where this machine has been slow.
        let answer = eventually(name, async || {
            let mut answer = None;
            for request in list(&vector["requests"]) {
                answer = Some(send(&http, request).await);
            }
            answer.filter(|answer| answer.status >= 400)
        })
        .await;
        let expected: Value = serde_json::from_str(text(&vector["body"])).expect("JSON");
        assert_eq!(by_value(&answer.json()), by_value(&expected), "{name}");
        assert_eq!(json!(answer.status), vector["status"], "{name}");
        for (header, value) in vector["headers"].as_object().expect("headers") {
            let found = answer.headers.get(header).and_then(|value| value.to_str().ok());
            assert_eq!(found, value.as_str(), "{name}: {header}");
        }
        provoked_count += 1;
    }
    assert!(provoked_count > 20, "only {provoked_count} are provoked");
    open.finish().await;
    tokens.finish().await;
}
