//! What is no HTTP, or stops being it half-way.

use crate::harness::{Program, Raw, Serve, Witness};

/// Short patience, so that the tests need little.
const IMPATIENT: &str = "[connection]\nhead_timeout_ms = 1500\nbody_timeout_ms = 1500\n";

/// The status of a response, `None` when the connection ended without one.
fn status(head: &str) -> Option<u16> {
    head.split_whitespace().nth(1).and_then(|code| code.parse().ok())
}

/// Sends bytes, says whether more will follow, and demands one of these endings; `None` is a closed connection.
async fn check(
    program: &mut Program,
    witness: &mut Witness,
    name: &str,
    bytes: &[u8],
    shut: bool,
    endings: &[Option<u16>],
) {
    let mut raw = Raw::connect(program.address()).await;
    raw.send(bytes).await;
    if shut {
        raw.shut().await;
    }
    let head = raw.head().await;
    assert!(endings.contains(&status(&head)), "{name}: {head:?}");
    witness.probe_elsewhere(name).await;
    program.assert_healthy();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_http() {
    let mut program = Serve::new().config(IMPATIENT).start().await;
    let mut witness = Witness::new(&program).await;
    let post = |headers: &str, body: &str| {
        format!(
            "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/geo+json\r\n{headers}\r\n{body}"
        )
        .into_bytes()
    };
    let long_head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1_000_000)).into_bytes();
    let many_heads = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "x: y\r\n".repeat(10_000)).into_bytes();
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(100_000)).into_bytes();
    for (name, bytes) in [
        ("noise", vec![0xff; 1_000]),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("words", b"hello, broker\r\n\r\n".to_vec()),
        ("an unknown version", b"GET / HTTP/9.9\r\n\r\n".to_vec()),
        ("a negative length", post("content-length: -5\r\n", "")),
        ("a length in words", post("content-length: many\r\n", "")),
        ("two lengths", post("content-length: 5\r\ncontent-length: 6\r\n", "12345")),
        ("chunks that are none", post("transfer-encoding: chunked\r\n", "zz\r\nnothing\r\n")),
        ("a long header", long_head),
        ("many headers", many_heads),
        ("a long path", long_path),
    ] {
        let endings = [None, Some(400), Some(404), Some(414), Some(431), Some(505)];
        check(&mut program, &mut witness, name, &bytes, false, &endings).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_end_too_early_or_never() {
    let mut program = Serve::new().config(IMPATIENT).start().await;
    let mut witness = Witness::new(&program).await;
    for (path, content_type) in [
        ("POST /v1/events", "application/geo+json"),
        ("POST /v1/events", "application/x-ndjson"),
        ("POST /v1/events", "application/geo+json-seq"),
        ("POST /v1/positions", "application/json"),
        ("POST /v1/positions", "application/x-ndjson"),
        ("PUT /v1/clients/car/subscriptions/s", "application/json"),
        ("PUT /v1/clients/car/position", "application/json"),
    ] {
        let head = format!(
            "{path} HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\ncontent-length: 1000\r\n\r\n"
        );
        let bytes = format!("{head}{{\"type\":\"Fea").into_bytes();
        check(&mut program, &mut witness, "a truncated body", &bytes, true, &[None, Some(400)]).await;
        // The rest never comes, though the connection stays: the broker's patience ends.
        check(&mut program, &mut witness, "a slow body", &bytes, false, &[None, Some(408)]).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_on_which_nothing_comes_are_closed() {
    let mut program = Serve::new().config(IMPATIENT).start().await;
    let mut witness = Witness::new(&program).await;
    let mut silent = Vec::new();
    for idx in 0..200 {
        let mut raw = Raw::connect(program.address()).await;
        if idx % 2 == 0 {
            raw.send(b"GET /v1/stats HTTP/1.1\r\nhost:").await;
        }
        silent.push(raw);
    }
    witness.probe_elsewhere("half-open connections").await;
    for mut raw in silent {
        raw.rest("a silent connection").await;
    }
    witness.probe_elsewhere("closed connections").await;
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_after_an_upgrade_ends_that_session_only() {
    let mut program = Serve::new().config(IMPATIENT).start().await;
    let mut witness = Witness::new(&program).await;
    let upgrade =
        b"GET /v1/clients/car/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let long_ping = [&b"\x89\xfe\x01\x00"[..], &[0; 4 + 256]].concat();
    for (name, noise) in [
        ("ones", &[0xff_u8; 4_096][..]),
        ("another request", b"GET / HTTP/1.1\r\n\r\n"),
        ("a frame without a mask", b"\x81\x02{}"),
        ("a frame of 2^62 bytes", b"\x81\xff\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        ("a ping of 256 bytes", &long_ping),
        ("the continuation of nothing", b"\x80\x80\x00\x00\x00\x00"),
    ] {
        let mut raw = Raw::connect(program.address()).await;
        raw.send(upgrade).await;
        let head = raw.head().await;
        assert_eq!(status(&head), Some(101), "{head}");
        raw.send(noise).await;
        raw.rest(name).await;
        witness.probe_elsewhere(name).await;
        program.assert_healthy();
    }
    program.finish().await;
}
