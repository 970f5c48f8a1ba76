//! Every call of the document by every kind of token.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::guarded;
use super::tokens::{self, ISSUER, claims};
use crate::harness::{with_problem_shape, within};

/// What calls need, said here once more: the document is made from the same table as the router.
const NEEDS: &[(&str, &str, &str)] = &[
    ("post", "/v1/events", "publish"),
    ("get", "/v1/events", "subscribe"),
    ("delete", "/v1/events/{id}", "publish"),
    ("get", "/v1/events/{id}/deliveries", "admin"),
    ("post", "/v1/explain", "subscribe"),
    ("post", "/v1/routes", "subscribe"),
    ("post", "/v1/positions", "subscribe"),
    ("get", "/v1/clients", "admin"),
    ("delete", "/v1/clients/{client}", "subscribe"),
    ("delete", "/v1/clients/{client}/connections", "admin"),
    ("put", "/v1/clients/{client}/position", "subscribe"),
    ("get", "/v1/clients/{client}/position", "subscribe"),
    ("get", "/v1/clients/{client}/routes", "subscribe"),
    ("get", "/v1/clients/{client}/subscriptions", "subscribe"),
    ("put", "/v1/clients/{client}/subscriptions/{id}", "subscribe"),
    ("get", "/v1/clients/{client}/subscriptions/{id}", "subscribe"),
    ("delete", "/v1/clients/{client}/subscriptions/{id}", "subscribe"),
    ("get", "/v1/push", ""),
    ("put", "/v1/clients/{client}/push", "subscribe"),
    ("get", "/v1/clients/{client}/push", "subscribe"),
    ("delete", "/v1/clients/{client}/push", "subscribe"),
    ("get", "/v1/clients/{client}/events", "subscribe"),
    ("get", "/v1/clients/{client}/ws", "subscribe"),
    ("get", "/v1/checks", "admin"),
    ("put", "/v1/checks/{name}", "admin"),
    ("get", "/v1/checks/{name}", "admin"),
    ("delete", "/v1/checks/{name}", "admin"),
    ("get", "/v1/checks/{name}/findings", "admin"),
    ("post", "/v1/checks/{name}/pause", "admin"),
    ("post", "/v1/checks/{name}/resume", "admin"),
    ("get", "/v1/groups", "admin"),
    ("put", "/v1/groups/{name}", "admin"),
    ("get", "/v1/groups/{name}", "admin"),
    ("delete", "/v1/groups/{name}", "admin"),
    ("get", "/v1/groups/{name}/findings", "admin"),
    ("get", "/v1/groups/{name}/objects/{object}", "admin"),
    ("post", "/v1/groups/{name}/pause", "admin"),
    ("post", "/v1/groups/{name}/resume", "admin"),
    ("get", "/v1/rules", "admin"),
    ("put", "/v1/rules/{name}", "admin"),
    ("get", "/v1/rules/{name}", "admin"),
    ("delete", "/v1/rules/{name}", "admin"),
    ("get", "/v1/rules/{name}/findings", "admin"),
    ("post", "/v1/rules/{name}/pause", "admin"),
    ("post", "/v1/rules/{name}/resume", "admin"),
    ("get", "/v1/cluster", "subscribe"),
    ("get", "/v1/stats", "admin"),
    ("get", "/v1/stats/history", "admin"),
    ("get", "/metrics", "admin"),
    ("get", "/healthz", ""),
    ("get", "/readyz", ""),
];

/// A call of the document.
struct Call {
    method: String,
    path: String,
    /// The scope that it needs; empty where it needs nothing.
    scope: &'static str,
}

impl Call {
    /// Whether it is in some client's name.
    fn is_somebodys(&self) -> bool {
        self.path.contains("{client}") || self.path == "/v1/explain"
    }

    /// Whether it tells others than the client no more than a setting permits.
    fn is_of_privacy(&self) -> bool {
        self.method == "get"
            && ["/v1/clients/{client}/position", "/v1/clients/{client}/routes"].contains(&&*self.path)
    }

    fn body(&self, client: &str) -> Option<Value> {
        Some(match (self.method.as_str(), self.path.as_str()) {
            ("post", "/v1/events") => crate::harness::feature("e1", [9.0, 45.0], json!({"a": 1})),
            ("post", "/v1/positions") => json!([{"client": client, "coordinates": [9.0, 45.0]}]),
            ("post", "/v1/explain") => json!({"client": client, "subscription": {"filters": [{}]},
                "event": crate::harness::feature("e1", [9.0, 45.0], json!({}))}),
            ("post", "/v1/routes") => json!({"from": [9.0, 45.0], "to": [9.1, 45.0]}),
            ("put", "/v1/clients/{client}/position") => json!({"coordinates": [9.0, 45.0]}),
            ("put", "/v1/clients/{client}/subscriptions/{id}") => json!({"filters": [{}]}),
            ("put", "/v1/clients/{client}/push") => crate::push::document("https://1.1.1.1/a"),
            ("put", "/v1/checks/{name}") => {
                let formula = json!({"forall": "a", "in": "all", "that": "TRUE"});
                json!({"contexts": {"all": {"for_s": 1}}, "formula": formula})
            }
            ("put", "/v1/groups/{name}") => json!({"roles": {"a": {"where": "type = 'a'"}}}),
            ("put", "/v1/rules/{name}") => {
                json!({"facts": {"seen": {"args": ["@id"]}}, "program": "seen(X) \\ seen(X) <=> true."})
            }
            (
                "post",
                "/v1/checks/{name}/pause"
                | "/v1/checks/{name}/resume"
                | "/v1/groups/{name}/pause"
                | "/v1/groups/{name}/resume"
                | "/v1/rules/{name}/pause"
                | "/v1/rules/{name}/resume",
            ) => return None,
            ("post" | "put", path) => panic!("{path}: say here what it is sent"),
            _ => return None,
        })
    }
}

/// What is asked with.
enum Credential<'a> {
    Nothing,
    Bearer(&'a str),
    Other(&'a str),
}

/// Asks; gives the status, the challenge and, where it is a problem, the problem. What is not one may have no end.
async fn ask(address: SocketAddr, call: &Call, client: &str, with: Credential<'_>) -> (u16, String, Value) {
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
    let path = call
        .path
        .replace("{client}", client)
        .replace("{id}", "s1")
        .replace("{name}", "c1")
        .replace("{object}", "o1");
    let method = reqwest::Method::from_bytes(call.method.to_uppercase().as_bytes()).expect("a method");
    let mut request = http.request(method, format!("http://{address}{path}"));
    match with {
        Credential::Nothing => {}
        Credential::Bearer(token) => {
            request = request.header("authorization", format!("Bearer {token}").into_bytes())
        }
        Credential::Other(value) => request = request.header("authorization", value),
    }
    if let Some(body) = call.body(client) {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = within(&path, request.send()).await.expect("an answer");
    let status = answer.status().as_u16();
    let challenge =
        answer.headers().get("www-authenticate").map(|value| value.to_str().expect("ASCII").to_owned());
    let text = if status >= 400 || call.path == "/v1/positions" {
        answer.text().await.expect("a body")
    } else {
        String::new()
    };
    let document = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") };
    (status, challenge.unwrap_or_default(), document)
}

/// All calls that the document has.
async fn calls(http: &crate::harness::Http) -> Vec<Call> {
    let document = http.get("/openapi.json").await.expect(200).json();
    let mut needs: BTreeMap<_, _> =
        NEEDS.iter().map(|(method, path, scope)| ((*method, *path), *scope)).collect();
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let scope = needs.remove(&(method.as_str(), path.as_str()));
            let scope = scope.unwrap_or_else(|| panic!("{method} {path}: say here what it needs"));
            let told: Vec<_> = operation["security"]
                .as_array()
                .expect("security")
                .iter()
                .map(|one| &one["token"][0])
                .collect();
            match scope {
                "" => assert!(told.is_empty(), "{method} {path}: {told:?}"),
                "admin" => assert_eq!(told, ["admin"], "{method} {path}"),
                _ => assert_eq!(told, [scope, "admin"], "{method} {path}"),
            }
            calls.push(Call { method: method.clone(), path: path.clone(), scope });
        }
    }
    assert!(needs.is_empty(), "not in the document: {needs:?}");
    calls
}

#[track_caller]
fn assert_problem(
    what: &str,
    (status, challenge, problem): &(u16, String, Value),
    expected: u16,
    kind: &str,
) {
    assert_eq!(*status, expected, "{what}: {problem}");
    with_problem_shape(what, problem.clone());
    assert_eq!(problem["type"], format!("urn:nearcast:problem:{kind}"), "{what}: {problem}");
    assert_eq!(
        challenge.starts_with("Bearer realm=\"nearcast\""),
        expected == 401 || !challenge.is_empty(),
        "{what}: {challenge}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_that_counts_nothing_is_done() {
    let program = guarded(&ISSUER, "").0.start().await;
    let calls = calls(&program.http()).await;
    let bad = tokens::bad(&claims(Some("ann"), "publish subscribe admin"));
    for call in &calls {
        let what = format!("{} {}", call.method, call.path);
        if call.scope.is_empty() {
            for with in [Credential::Nothing, Credential::Bearer("garbage"), Credential::Other("Basic YTpi")]
            {
                assert_eq!(ask(program.address(), call, "ann", with).await.0, 200, "{what}");
            }
            continue;
        }
        let refused = ask(program.address(), call, "ann", Credential::Nothing).await;
        assert_problem(&what, &refused, 401, "unauthenticated");
        assert_eq!(refused.1, "Bearer realm=\"nearcast\"", "{what}");
        for value in ["Basic YTpi", "Bearer", "Bearer ", "Token x"] {
            let refused = ask(program.address(), call, "ann", Credential::Other(value)).await;
            assert_problem(&format!("{what}: {value}"), &refused, 401, "unauthenticated");
        }
        for (name, token, kind) in &bad {
            let refused = ask(program.address(), call, "ann", Credential::Bearer(token)).await;
            let what = format!("{what}: {name}");
            assert_problem(&what, &refused, 401, kind);
            assert!(refused.1.ends_with("error=\"invalid_token\""), "{what}: {}", refused.1);
            let told = refused.2.to_string();
            assert!(token.len() < 8 || !told.contains(token.as_str()), "{what} tells the token: {told}");
        }
    }
    // Nothing of all that has had an effect.
    let stats = reqwest::Client::builder().no_proxy().build().expect("a client");
    let stats = stats
        .get(format!("http://{}/v1/stats", program.address()))
        .bearer_auth(ISSUER.token("root", "admin"));
    let stats: Value = within("stats", stats.send()).await.expect("an answer").json().await.expect("JSON");
    for figure in
        ["events", "events_rejected", "moves", "clients", "subscriptions", "websockets", "event_streams"]
    {
        assert_eq!(stats[figure], 0, "{figure}: {stats}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_scope_permits_its_calls_and_for_oneself() {
    let program = guarded(&ISSUER, "").0.start().await;
    let calls = calls(&program.http()).await;
    for call in calls.iter().filter(|call| !call.scope.is_empty()) {
        for scope in ["", "openid", "publish", "subscribe", "publish subscribe", "admin", "subscribe admin"] {
            for (holder, id) in [(Some("ann"), "h"), (Some("bob"), "r"), (None, "e")] {
                let token = ISSUER.sign_by(id, &claims(holder, scope));
                let answer = ask(program.address(), call, "ann", Credential::Bearer(&token)).await;
                let what = format!("{} {} by {scope:?} of {holder:?}", call.method, call.path);
                let has = |one: &str| scope.split(' ').any(|name| name == one);
                if !has(call.scope) && !has("admin") {
                    assert_problem(&what, &answer, 403, "forbidden");
                    let challenge = format!("error=\"insufficient_scope\", scope=\"{}\"", call.scope);
                    assert!(answer.1.ends_with(&challenge), "{what}: {}", answer.1);
                } else if call.is_somebodys() && holder != Some("ann") && !has("admin") {
                    assert_problem(&what, &answer, 403, "forbidden");
                } else if call.is_of_privacy() && holder != Some("ann") {
                    // Nobody is shown where others are, unless it is set.
                    assert_problem(&what, &answer, 403, "forbidden");
                } else if call.path == "/v1/positions" {
                    let is_allowed = holder == Some("ann") || has("admin");
                    assert_eq!(
                        (answer.0, &answer.2["moved"]),
                        (202, &json!(u8::from(is_allowed))),
                        "{what}: {}",
                        answer.2
                    );
                    if !is_allowed {
                        assert_eq!(
                            answer.2["rejected"][0]["problem"]["type"], "urn:nearcast:problem:forbidden",
                            "{what}"
                        );
                    }
                } else {
                    assert!(matches!(answer.0, 200..300 | 400 | 404), "{what}: {} {}", answer.0, answer.2);
                    // Only a socket that is asked for as something else.
                    assert_eq!(answer.0 == 400, call.path.ends_with("/ws"), "{what}: {}", answer.2);
                }
            }
        }
    }
    program.finish().await;
}

/// A claim `nearcast` takes away and gives nothing: calls about everything are refused, and what is called is held to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confined_token_permits_less() {
    let program = guarded(&ISSUER, "").0.start().await;
    let calls = calls(&program.http()).await;
    for call in calls.iter().filter(|call| !call.scope.is_empty()) {
        let what = format!("{} {}", call.method, call.path);
        let confined = async |holder: &str, scope: &str, condition: &str| {
            let mut claims = claims(Some(holder), scope);
            claims["nearcast"] = json!({"where": condition});
            ask(program.address(), call, "ann", Credential::Bearer(&ISSUER.sign(&claims))).await
        };
        // The events of these calls have a = 1, or nothing.
        let about_events = call.method == "post" && ["/v1/events", "/v1/explain"].contains(&&*call.path);
        for (scope, condition) in [
            ("publish subscribe", "a = 1"),
            ("publish subscribe", "a = 2"),
            ("admin", "a = 1"),
            ("admin", "a = 2"),
        ] {
            let what = format!("{what} by {scope:?} where {condition}");
            let answer = confined("ann", scope, condition).await;
            let is_operators =
                ["/v1/clients", "/v1/stats", "/v1/stats/history", "/metrics"].contains(&&*call.path);
            let lacks_scope = call.scope == "admin" && scope != "admin";
            let is_outside = about_events && !(call.path == "/v1/events" && condition == "a = 1");
            if lacks_scope || is_operators || is_outside {
                assert_problem(&what, &answer, 403, "forbidden");
            } else {
                assert!(matches!(answer.0, 200..300 | 400 | 404), "{what}: {} {}", answer.0, answer.2);
                assert_eq!(answer.0 == 400, call.path.ends_with("/ws"), "{what}: {}", answer.2);
            }
            if call.is_somebodys() {
                let other = confined("bob", "publish subscribe", condition).await;
                assert_problem(&what, &other, 403, "forbidden");
            }
            // So that the next one is not refused for what this one has left.
            let forget =
                Call { method: "delete".into(), path: "/v1/clients/{client}".into(), scope: "subscribe" };
            let admin = ISSUER.token("root", "admin");
            ask(program.address(), &forget, "ann", Credential::Bearer(&admin)).await;
            for path in ["/v1/checks/{name}", "/v1/groups/{name}", "/v1/rules/{name}"] {
                let end = Call { method: "delete".into(), path: path.into(), scope: "admin" };
                ask(program.address(), &end, "ann", Credential::Bearer(&admin)).await;
            }
        }
    }
    program.finish().await;
}

/// Whether there is such a client, subscription or event, is nobody's business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_does_not_tell_whether_it_is_there() {
    let program = guarded(&ISSUER, "").0.start().await;
    let calls = calls(&program.http()).await;
    let admin = ISSUER.token("root", "admin");
    for call in calls.iter().filter(|call| call.method == "put") {
        let made = ask(program.address(), call, "bob", Credential::Bearer(&admin)).await;
        assert!((200..300).contains(&made.0), "{}: {}", call.path, made.2);
    }
    let token = ISSUER.token("ann", "publish subscribe");
    for call in calls.iter().filter(|call| call.is_somebodys()) {
        let there = ask(program.address(), call, "bob", Credential::Bearer(&token)).await;
        let nowhere = ask(program.address(), call, "zed", Credential::Bearer(&token)).await;
        assert_problem(&call.path, &there, 403, "forbidden");
        assert_eq!(there, nowhere, "{} {}", call.method, call.path);
        assert!(!there.2.to_string().contains("bob"), "{}", there.2);
    }
    program.finish().await;
}
