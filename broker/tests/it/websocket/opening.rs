//! The request for a WebSocket, and its answer (RFC 6455, 4).

use super::peer::{ACCEPT, Frame, KEY, Peer, request};
use super::{Manner, REQUEST, start};

const LINE: &str = "GET /v1/clients/peer/ws HTTP/1.1";
const CONNECTION: &str = "Connection: Upgrade";
const UPGRADE: &str = "Upgrade: websocket";
const VERSION: &str = "Sec-WebSocket-Version: 13";
const WITH_KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

/// A header of a response's head.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_order_are_granted() {
    let program = start().await;
    assert!(WITH_KEY.ends_with(KEY));
    for (name, headers) in [
        ("the least", vec![CONNECTION, UPGRADE, VERSION, WITH_KEY]),
        ("another order", vec![WITH_KEY, VERSION, UPGRADE, CONNECTION]),
        ("small letters", vec!["connection: upgrade", "upgrade: websocket", VERSION, WITH_KEY]),
        ("large letters", vec!["CONNECTION: UPGRADE", "UPGRADE: WEBSOCKET", VERSION, WITH_KEY]),
        ("as some browsers do", vec!["Connection: keep-alive, Upgrade", UPGRADE, VERSION, WITH_KEY]),
        (
            "compression",
            vec![
                CONNECTION,
                UPGRADE,
                VERSION,
                WITH_KEY,
                "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-webkit-deflate-frame",
            ],
        ),
        ("subprotocols", vec![CONNECTION, UPGRADE, VERSION, WITH_KEY, "Sec-WebSocket-Protocol: soap, wamp"]),
    ] {
        let (head, mut peer) = Peer::ask(program.address(), name, request(LINE, &headers).as_bytes()).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{name}: {head}");
        let told = |name| header(&head, name).map(str::to_ascii_lowercase);
        assert_eq!(told("upgrade").as_deref(), Some("websocket"), "{name}: {head}");
        assert_eq!(told("connection").as_deref(), Some("upgrade"), "{name}: {head}");
        assert_eq!(header(&head, "sec-websocket-accept"), Some(ACCEPT), "{name}: {head}");
        // What is offered and not taken up is not mentioned.
        assert_eq!(header(&head, "sec-websocket-extensions"), None, "{name}: {head}");
        assert_eq!(header(&head, "sec-websocket-protocol"), None, "{name}: {head}");
        peer.expect_ready().await;
        peer.send(&Frame::text(REQUEST).bytes(), Manner::Together).await;
        assert_eq!(peer.text().await, r#"{"op":"pong"}"#, "{name}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_not_in_order_are_refused() {
    let program = start().await;
    for (name, line, status, headers) in [
        ("another version", LINE, 426, vec![CONNECTION, UPGRADE, "Sec-WebSocket-Version: 8", WITH_KEY]),
        ("a later version", LINE, 426, vec![CONNECTION, UPGRADE, "Sec-WebSocket-Version: 14", WITH_KEY]),
        ("no version", LINE, 426, vec![CONNECTION, UPGRADE, WITH_KEY]),
        ("no key", LINE, 400, vec![CONNECTION, UPGRADE, VERSION]),
        ("an empty key", LINE, 400, vec![CONNECTION, UPGRADE, VERSION, "Sec-WebSocket-Key:"]),
        ("a short key", LINE, 400, vec![CONNECTION, UPGRADE, VERSION, "Sec-WebSocket-Key: c2hvcnQ="]),
        (
            "a key that is no base 64",
            LINE,
            400,
            vec![CONNECTION, UPGRADE, VERSION, "Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!=="],
        ),
        ("two keys", LINE, 400, vec![CONNECTION, UPGRADE, VERSION, WITH_KEY, WITH_KEY]),
        ("no connection", LINE, 400, vec![UPGRADE, VERSION, WITH_KEY]),
        ("another connection", LINE, 400, vec!["Connection: close", UPGRADE, VERSION, WITH_KEY]),
        ("no upgrade", LINE, 400, vec![CONNECTION, VERSION, WITH_KEY]),
        ("another upgrade", LINE, 400, vec![CONNECTION, "Upgrade: h2c", VERSION, WITH_KEY]),
        ("a plain request", LINE, 400, vec!["Accept: */*"]),
        (
            "another method",
            "POST /v1/clients/peer/ws HTTP/1.1",
            405,
            vec![CONNECTION, UPGRADE, VERSION, WITH_KEY, "Content-Length: 0"],
        ),
        ("HTTP/1.0", "GET /v1/clients/peer/ws HTTP/1.0", 400, vec![CONNECTION, UPGRADE, VERSION, WITH_KEY]),
    ] {
        let (head, _) = Peer::ask(program.address(), name, request(line, &headers).as_bytes()).await;
        let told = head.split_whitespace().nth(1);
        assert_eq!(told, Some(status.to_string().as_str()), "{name}: {head}");
        assert_eq!(header(&head, "content-type"), Some("application/problem+json"), "{name}: {head}");
        let version = (status == 426).then_some("13");
        assert_eq!(header(&head, "sec-websocket-version"), version, "{name}: {head}");
    }
    program.finish().await;
}

/// A client that is sure of its request may send frames along with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_may_come_along_with_the_request() {
    let program = start().await;
    let request = request(LINE, &[CONNECTION, UPGRADE, VERSION, WITH_KEY]);
    let bytes = [request.as_bytes(), &Frame::text(REQUEST).bytes()].concat();
    let (head, mut peer) = Peer::ask(program.address(), "along", &bytes).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    peer.expect_ready().await;
    assert_eq!(peer.text().await, r#"{"op":"pong"}"#);
    program.finish().await;
}
