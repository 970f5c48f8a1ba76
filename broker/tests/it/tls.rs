//! TLS 1.3, from outside.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{
    Form, Http, Pair, Program, Raw, Serve, Ws, connect, encode, eventually, feature, run_to_end, within,
};

struct Secured {
    folder: TempDir,
    pair: Arc<Pair>,
    program: Program,
    http: Http,
}

async fn secured(config: &str) -> Secured {
    let folder = TempDir::new().expect("a folder");
    let pair = Arc::new(Pair::new());
    let program = Serve::new().tls(folder.path(), &pair).config(config).start().await;
    let http = Http::trusting(program.address(), &pair);
    Secured { folder, pair, program, http }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_deliveries_go_over_tls() {
    let Secured { pair, program, http, folder: _folder } = secured("").await;
    program.says("nearcast listens on https://127.0.0.1:").await;
    let mut client = Ws::secured(program.address(), "car", &pair).await;
    client.subscribe("s", json!({"filters": [{"area": {"radius_m": 500}}]})).await;
    client.place([9.0, 45.0]).await;
    let events: Vec<_> = (0..500)
        .map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"text": "x".repeat(idx * 20)})))
        .collect();
    let (content_type, body) = encode(Form::Lines, &events);
    assert_eq!(http.post("/v1/events", content_type, body).await.expect(202).json()["accepted"], 500);
    for event in &events {
        let frame = client.event().await;
        assert_eq!(frame["event"]["properties"], event["properties"]);
    }
    client.assert_quiet().await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_http_1_1_over_tls_1_3_is_spoken() {
    let Secured { pair, program, http, folder: _folder } = secured("").await;
    let old = connect(pair.client(&[&rustls::version::TLS12]), program.address()).await;
    let error = old.expect_err("TLS 1.2 is refused").to_string();
    assert!(error.to_lowercase().contains("protocol"), "{error}");
    for (offered, is_taken) in [(&b"http/1.1"[..], true), (b"h2", false)] {
        let mut config = pair.client(rustls::DEFAULT_VERSIONS);
        config.alpn_protocols = vec![offered.to_vec()];
        let made = connect(config, program.address()).await;
        let chosen = made.ok().and_then(|stream| stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec));
        assert_eq!(chosen.is_some_and(|chosen| chosen == offered), is_taken);
    }
    let mut plain = Raw::connect(program.address()).await;
    plain.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let told = plain.rest("a connection without TLS").await;
    assert!(!told.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&told));
    // A client may know before it is counted.
    let all_failed = "nearcast_tls_handshakes_failed_total 3";
    eventually(all_failed, async || http.get("/metrics").await.text().contains(all_failed).then_some(()))
        .await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_shake_hands_holds_nobody_up_and_is_closed() {
    let started = Instant::now();
    let Secured { program, http, folder: _folder, .. } =
        secured("[connection]\nhead_timeout_ms = 2000\n").await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(Raw::connect(program.address()).await);
    }
    for _ in 0..5 {
        http.get("/healthz").await.expect(200);
    }
    for connection in &mut silent {
        connection.rest("a connection that says nothing").await;
    }
    assert!(started.elapsed() >= Duration::from_secs(2), "the others were answered while these were open");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_writes_are_stuck_is_cut_off() {
    let config = "[connection]\nwrite_timeout_ms = 300\n[outbox]\nbytes = 64000000\n";
    let Secured { pair, program, http, folder: _folder } = secured(config).await;
    let mut stalled = Ws::secured(program.address(), "car", &pair).await;
    stalled.subscribe("s", json!({"filters": [{}]})).await;
    eventually("the connection is cut off", async || {
        let events: Vec<_> =
            (0..50).map(|_| feature("e", [9.0, 45.0], json!({"text": "x".repeat(16_000)}))).collect();
        let (content_type, body) = encode(Form::Lines, &events);
        http.post("/v1/events", content_type, body).await.expect(202);
        let metrics = http.get("/metrics").await.expect(200).text();
        metrics.contains("nearcast_cut_off_total{cause=\"stuck-write\"} 1").then_some(())
    })
    .await;
    drop(stalled);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_are_told_so() {
    let Secured { pair, program, folder: _folder, .. } = secured("[limits]\nconnections = 3\n").await;
    let mut connected = Vec::new();
    let told = eventually("all places are taken", async || {
        let mut next = pair.connect(program.address()).await.ok()?;
        next.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
        let mut told = [0; 2_000];
        let count = within("an answer", next.read(&mut told)).await.ok()?;
        connected.push(next);
        let told = String::from_utf8_lossy(&told[..count]).into_owned();
        told.contains("limits.connections").then_some(told)
    })
    .await;
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    assert!((2..=4).contains(&connected.len()), "{} connected", connected.len());
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_taken_and_a_broken_one_is_not() {
    let Secured { folder, pair: first, program, http } = secured("").await;
    let mut reader = Ws::secured(program.address(), "car", &first).await;
    reader.subscribe("s", json!({"filters": [{}]})).await;

    fs::write(folder.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nhalf").expect("written");
    let told = async |count: u64| {
        let line = format!("nearcast_tls_reload_failures_total {count}");
        eventually(&line, async || http.get("/metrics").await.text().contains(&line).then_some(())).await;
    };
    told(1).await;
    program.says("the one before stays").await;
    first.connect(program.address()).await.expect("the first certificate is still there");
    // Its year is 4096, unless it is told another one.
    let ends = async |http: &Http, unix_s: &str| {
        let line = format!("nearcast_tls_certificate_expiry_timestamp_seconds {unix_s}\n");
        eventually(&line, async || http.get("/metrics").await.text().contains(&line).then_some(())).await;
    };
    ends(&http, "67090118400").await;

    let second = Pair::until(2100);
    second.write(folder.path());
    eventually("the second certificate is served", async || {
        second.connect(program.address()).await.ok().map(drop)
    })
    .await;
    first.connect(program.address()).await.expect_err("the first certificate is gone");
    ends(&http, "4102444800").await;

    // One that does not belong to its key, and then no key at all.
    fs::write(folder.path().join("cert.pem"), Pair::new().cert()).expect("written");
    told(2).await;
    fs::remove_file(folder.path().join("key.pem")).expect("removed");
    told(3).await;
    second.connect(program.address()).await.expect("the second certificate is still there");

    // Who was connected stays so.
    reader.publish(&feature("e", [9.0, 45.0], json!({}))).await;
    assert_eq!(reader.event().await["event"]["id"], "e");
    program.finish().await;
}

#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let folder = TempDir::new().expect("a folder");
    Pair::new().write(folder.path());
    let other = Pair::new();
    fs::write(folder.path().join("other.pem"), other.cert()).expect("written");
    fs::write(folder.path().join("empty.pem"), "").expect("written");
    for (cert, key, word) in [
        ("missing.pem", "key.pem", "tls.cert missing.pem"),
        ("empty.pem", "key.pem", "no certificate"),
        ("cert.pem", "missing.pem", "tls.key missing.pem"),
        ("cert.pem", "cert.pem", "tls.key cert.pem"),
        ("other.pem", "key.pem", "tls.cert other.pem and tls.key key.pem"),
        ("cert.pem", "", "tls.cert and tls.key go together"),
    ] {
        let args = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
        let output = run_to_end(&args, &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !told.contains("panicked"), "{cert} {key}: {told}");
        assert!(told.contains(word), "{cert} {key}: {told}");
        assert!(output.stdout.is_empty(), "{cert} {key}: it did not listen");
    }
}
