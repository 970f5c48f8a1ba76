//! What lasts: where its token may be, and how it ends with it.

use std::time::Duration;

use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::frames::open;
use super::guarded;
use super::tokens::{ISSUER, claims, now_s};
use crate::harness::{Received, Ws, feature, within};

/// A token that ends in so many seconds.
fn short(client: &str, lasts_s: i64) -> String {
    let mut claims = claims(Some(client), "publish subscribe");
    claims["exp"] = json!(now_s() + lasts_s);
    ISSUER.sign(&claims)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browsers_tell_it_in_the_address_or_as_a_subprotocol() {
    let serve =
        guarded(&ISSUER, "").0.env("BROKER__LOG__FILTER", "broker=trace,hyper=debug,axum=debug,tower=debug");
    let program = serve.start().await;
    let (address, token) = (program.address(), ISSUER.token("ann", "publish subscribe"));
    let url = format!("ws://{address}/v1/clients/ann/ws");
    let request = format!("{url}?access_token={token}").into_client_request().expect("a request");
    Ws::open(request, "ann").await.expect("it may").assert_quiet().await;
    let with_protocols = |protocols: String| {
        let mut request = url.as_str().into_client_request().expect("a request");
        request.headers_mut().insert("sec-websocket-protocol", protocols.try_into().expect("a header"));
        request
    };
    // The library refuses an answer that chooses no subprotocol where some were offered.
    let request = with_protocols(format!("nearcast, nearcast.bearer.{token}"));
    Ws::open(request, "ann").await.expect("it may").assert_quiet().await;
    assert_eq!(
        Ws::open(with_protocols("nearcast, nearcast.bearer.a.b.c".to_owned()), "ann").await.err(),
        Some(401)
    );
    let twice =
        format!("{url}?access_token={token}&access_token={token}").into_client_request().expect("a request");
    assert_eq!(Ws::open(twice, "ann").await.err(), Some(400));

    let http = program.http();
    let path = format!("/v1/clients/ann/events?access_token={token}");
    let stream = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client")
        .get(format!("http://{address}{path}"));
    let stream = within("a stream", stream.send()).await.expect("an answer");
    assert_eq!(stream.status(), 200);
    // Nowhere else: addresses are written down in too many places.
    http.get(&format!("/v1/clients/ann/subscriptions?access_token={token}")).await.problem(401);
    http.post(&format!("/v1/events?access_token={token}"), "application/json", "{}").await.problem(401);
    let log = program.log();
    let signature = token.rsplit('.').next().expect("three parts");
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log is told: {log}");
    assert!(!log.contains(signature), "the log has a token:\n{log}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_ends_with_its_token_unless_that_is_renewed() {
    let program = guarded(&ISSUER, "leeway_s = 0\n").0.start().await;
    let mut ends = open(&program, "ann", &short("ann", 10)).await.expect("it may");
    let mut lasts = open(&program, "bob", &short("bob", 10)).await.expect("it may");
    lasts.ok(json!({"op": "auth", "token": short("bob", 3_600)})).await;
    ends.subscribe("all", json!({"filters": [{}]})).await;
    let last = ends.next().await;
    assert_eq!(
        (&last["op"], &last["problem"]["type"]),
        (&json!("problem"), &json!("urn:nearcast:problem:token-expired")),
        "{last}"
    );
    match ends.receive().await {
        Received::Closed(code, reason) => assert_eq!((code, reason.as_str()), (4401, "token expired")),
        Received::Frame(frame) => panic!("{frame}"),
    }
    lasts.subscribe("all", json!({"filters": [{}]})).await;
    lasts.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    lasts.event().await;
    // A renewal may shorten it as well.
    lasts.ok(json!({"op": "auth", "token": short("bob", 1)})).await;
    assert_eq!(lasts.closed().await.0, 4401);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_and_a_long_body_end_with_their_token() {
    let program = guarded(&ISSUER, "leeway_s = 0\n").0.start().await;
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/v1/clients/ann/events", program.address());
    let stream = http.get(&url).bearer_auth(short("ann", 6)).send();
    let stream = within("a stream", stream).await.expect("an answer");
    assert_eq!(stream.status(), 200);
    let text = within("its end", stream.text()).await.expect("an end in order");
    let told = text.split("event: problem\ndata: ").nth(1).unwrap_or_else(|| panic!("no last word: {text}"));
    let problem: serde_json::Value = serde_json::from_str(told.trim_end()).expect("JSON");
    assert_eq!(problem["type"], "urn:nearcast:problem:token-expired", "{text}");

    let event = feature("e", [9.0, 45.0], json!({})).to_string();
    let parts = futures_util::stream::unfold(0, move |index| {
        let line = format!("{event}\n");
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (index < 100).then_some((Ok::<_, std::io::Error>(line), index + 1))
        }
    });
    let request = http
        .post(format!("http://{}/v1/events", program.address()))
        .bearer_auth(short("ann", 2))
        .header("content-type", "application/x-ndjson")
        .body(reqwest::Body::wrap_stream(parts));
    let answer = within("an answer", request.send()).await.expect("an answer");
    assert_eq!(answer.status(), 401);
    let problem: serde_json::Value = within("its body", answer.json()).await.expect("JSON");
    let accepted = problem["accepted"].as_u64().unwrap_or_default();
    assert_eq!(problem["type"], "urn:nearcast:problem:token-expired", "{problem}");
    assert!((1..100).contains(&accepted), "{problem}");
    program.finish().await;
}
