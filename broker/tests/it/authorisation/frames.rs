//! Every frame by every kind of token.

use serde_json::{Value, json};

use super::guarded;
use super::tokens::{self, ISSUER, claims};
use crate::harness::{Door, Received, Ws, feature};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Opens a socket of a client with a token.
pub(crate) async fn open(door: &Door, client: &str, token: &str) -> Result<Ws, u16> {
    let url = format!("ws://{}/v1/clients/{client}/ws", door.address());
    let mut request = url.into_client_request().expect("a request");
    let header = format!("Bearer {token}").into_bytes().try_into().expect("a header");
    request.headers_mut().insert("authorization", header);
    Ws::open(request, client).await
}

/// Each frame of the document, and the scope that it needs beside the one by which the socket was opened.
fn frames(document: &Value, token: &str) -> Vec<(Value, Option<&'static str>)> {
    let schema = document["components"]["schemas"]["ClientFrame"]["oneOf"].as_array().expect("frames");
    let ops = schema.iter().map(|frame| {
        // One that holds a whole document is put together from parts.
        let parts = frame["allOf"].as_array().map_or(std::slice::from_ref(frame), Vec::as_slice);
        let mut ops = parts.iter().filter_map(|part| part["properties"]["op"]["enum"][0].as_str());
        ops.next().unwrap_or_else(|| panic!("no op: {frame}"))
    });
    let frames = ops.map(|op| match op {
        "subscribe" => (json!({"op": op, "id": "s", "filters": [{}]}), None),
        "unsubscribe" => (json!({"op": op, "id": "s"}), None),
        "move" => (json!({"op": op, "coordinates": [9.0, 45.0]}), None),
        "publish" => (json!({"op": op, "event": feature("e", [9.0, 45.0], json!({}))}), Some("publish")),
        "ack" => (json!({"op": op, "offset": 0}), None),
        "auth" => (json!({"op": op, "token": token}), None),
        "ping" => (json!({"op": op}), None),
        _ => panic!("{op}: say here what it needs"),
    });
    frames.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_its_clients_and_its_frames_need_their_scopes() {
    let program = guarded(&ISSUER, "").0.start().await;
    let document = program.http().get("/openapi.json").await.expect(200).json();
    assert_eq!(open(&program, "ann", "garbage").await.err(), Some(401));
    for (name, token, _) in tokens::bad(&claims(Some("ann"), "publish subscribe admin")) {
        assert_eq!(open(&program, "ann", &token).await.err(), Some(401), "{name}");
    }
    for scope in ["", "publish", "subscribe", "publish subscribe", "admin"] {
        for holder in [Some("ann"), Some("bob"), None] {
            let has = |one: &str| scope.split(' ').any(|name| name == one || name == "admin");
            let token = ISSUER.sign(&claims(holder, scope));
            let opened = open(&program, "ann", &token).await;
            if !has("subscribe") || (holder != Some("ann") && !has("admin")) {
                assert_eq!(opened.err(), Some(403), "{scope:?} of {holder:?}");
                continue;
            }
            let mut socket = opened.expect("it may");
            for (frame, needs) in frames(&document, &token) {
                if needs.is_some_and(|needs| !has(needs)) {
                    let problem = socket.problem(frame.clone()).await;
                    assert_eq!(problem["type"], "urn:nearcast:problem:forbidden", "{frame}: {problem}");
                } else if frame["op"] == "ack" || frame["op"] == "ping" {
                    socket.send(&frame).await;
                } else {
                    socket.ok(frame).await;
                }
            }
            // And it goes on.
            assert_eq!(socket.problem(json!({"op": "nothing"})).await["status"], 400);
        }
    }
    program.finish().await;
}

/// The claim `nearcast` holds for frames as it does for calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_a_confined_socket_are_held_to_its_claim() {
    let program = guarded(&ISSUER, "").0.start().await;
    let document = program.http().get("/openapi.json").await.expect(200).json();
    for scope in ["publish subscribe", "admin"] {
        let mut claims = claims(Some("ann"), scope);
        claims["nearcast"] = json!({"where": "a = 1"});
        let token = ISSUER.sign(&claims);
        let mut socket = open(&program, "ann", &token).await.expect("it may");
        for (frame, _) in frames(&document, &token) {
            if frame["op"] == "publish" {
                let problem = socket.problem(frame).await;
                assert_eq!(problem["type"], "urn:nearcast:problem:forbidden", "{problem}");
            } else if frame["op"] == "ack" || frame["op"] == "ping" {
                socket.send(&frame).await;
            } else {
                socket.ok(frame).await;
            }
        }
        socket.ok(json!({"op": "subscribe", "id": "s", "filters": [{}]})).await;
        let mut root = open(&program, "root", &ISSUER.token("root", "admin")).await.expect("it may");
        for a in [2, 1] {
            root.publish(&feature("e", [9.0, 45.0], json!({"a": a}))).await;
        }
        assert!(matches!(socket.receive().await, Received::Frame(frame) if frame["op"] == "pong"));
        assert_eq!(socket.event().await["event"]["properties"]["a"], 1);
        // A token that is confined otherwise is another one's connection.
        for nearcast in [json!({}), json!({"where": "a = 2"})] {
            claims["nearcast"] = nearcast;
            let frame = json!({"op": "auth", "token": ISSUER.sign(&claims)});
            assert_eq!(socket.problem(frame).await["type"], "urn:nearcast:problem:forbidden");
        }
        drop(socket);
        drop(root);
        crate::harness::eventually("it has gone", async || {
            let stats = reqwest::Client::builder().no_proxy().build().expect("a client");
            let stats = stats.get(format!("http://{}/v1/stats", program.address()));
            let stats = stats.bearer_auth(ISSUER.token("root", "admin")).send().await.expect("an answer");
            let stats: Value = stats.json().await.expect("JSON");
            (stats["websockets"] == 0 && stats["subscriptions"] == 0).then_some(())
        })
        .await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_goes_on_only_by_a_token_of_the_same_client() {
    let program = guarded(&ISSUER, "").0.start().await;
    let mut socket = open(&program, "ann", &ISSUER.token("ann", "publish subscribe")).await.expect("it may");
    let auth = |token: String| json!({"op": "auth", "token": token});
    for (name, token, kind) in tokens::bad(&claims(Some("ann"), "publish subscribe admin")) {
        let problem = socket.problem(auth(token.clone())).await;
        assert_eq!(problem["type"], format!("urn:nearcast:problem:{kind}"), "{name}: {problem}");
        assert!(token.len() < 8 || !problem.to_string().contains(&token), "{name}: {problem}");
    }
    for token in [
        ISSUER.token("bob", "publish subscribe"),
        ISSUER.token("bob", "admin"),
        ISSUER.sign(&claims(None, "publish subscribe")),
        ISSUER.token("ann", "publish"),
        ISSUER.token("ann", ""),
    ] {
        assert_eq!(socket.problem(auth(token)).await["status"], 403);
    }
    for frame in [json!({"op": "auth"}), json!({"op": "auth", "token": 5})] {
        assert_eq!(socket.problem(frame).await["errors"][0]["pointer"], "/token");
    }
    // All that has changed nothing.
    socket.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    socket.ok(auth(ISSUER.token("ann", "subscribe"))).await;
    let problem =
        socket.problem(json!({"op": "publish", "event": feature("e", [9.0, 45.0], json!({}))})).await;
    assert_eq!(problem["status"], 403, "{problem}");
    socket.ok(auth(ISSUER.token("ann", "subscribe publish"))).await;
    socket.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    program.finish().await;
}

/// Without tokens a client that has one to tell is not turned away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_wants_no_tokens_takes_any() {
    let program = crate::harness::Serve::new().start().await;
    let mut socket = open(&program, "ann", "garbage").await.expect("it may");
    socket.ok(json!({"op": "auth", "token": "garbage"})).await;
    socket.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    assert!(matches!(
        { socket.send(&json!({"op": "ping"})).await; socket.receive().await },
        Received::Frame(frame) if frame["op"] == "pong"
    ));
    program.finish().await;
}
