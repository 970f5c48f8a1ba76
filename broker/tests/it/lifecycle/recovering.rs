//! A broker that takes up what is on disk says so, and how far it is.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Form, Raw, Serve, encode, eventually, feature};

/// Takes long enough to be read back that it is seen.
const LIVE_EVENTS_COUNT: u64 = 40_000;

fn serve(folder: &TempDir) -> Serve {
    let data = folder.path().join("data");
    Serve::new().args(&["--data", data.to_str().expect("UTF-8")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_how_far_it_is_and_then_serves_all_of_it() {
    let folder = TempDir::new().expect("a folder");
    let program = serve(&folder).start().await;
    for first in (0..LIVE_EVENTS_COUNT).step_by(10_000) {
        let event = |idx| {
            let mut event = feature(&format!("e{idx}"), [9.0, 45.0], json!({"n": idx}));
            event["ttl_s"] = json!(600);
            event
        };
        let (content_type, body) =
            encode(Form::Lines, &(first..first + 10_000).map(event).collect::<Vec<_>>());
        let answer = program.http().post("/v1/events", content_type, body).await.expect(202).json();
        assert_eq!(answer["accepted"], 10_000, "{answer}");
    }
    program.kill();

    let program = serve(&folder).listening().await;
    let http = program.http();
    http.get("/healthz").await.expect(200);
    let mut told = Vec::new();
    eventually("it is ready", async || {
        let answer = http.get("/readyz").await;
        if answer.status == 200 {
            return Some(());
        }
        told.push(answer.problem(503));
        None
    })
    .await;
    assert!(!told.is_empty(), "it was never seen recovering");
    program.says("nearcast listens on ").await;
    let lines = program.log();
    let said = ["nearcast reads ", "nearcast listens on "].map(|begin| {
        lines.lines().position(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {lines}"))
    });
    assert!(said[0] < said[1], "{lines}");
    for problem in told {
        assert_eq!(problem["type"], "urn:nearcast:problem:recovering");
        assert!(problem["phase"].is_string(), "{problem}");
        assert!(problem["done"].as_u64() <= problem["of"].as_u64(), "{problem}");
    }
    let stats = http.get("/v1/stats").await.expect(200).json();
    assert_eq!(stats["live_objects"], LIVE_EVENTS_COUNT, "{stats}");
    program.finish().await;
}

/// A pipe in the place of a file that it reads at the start holds it up there for as long as the test wants.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_but_its_health_waits_and_a_stop_does_not() {
    let folder = TempDir::new().expect("a folder");
    serve(&folder).start().await.finish().await;
    let made = Command::new("mkfifo").arg(folder.path().join("data").join("tail")).status();
    assert!(made.expect("it runs").success());

    let mut program = serve(&folder).listening().await;
    let http = program.http();
    http.get("/healthz").await.expect(200);
    http.send("HEAD", "/healthz", None, "").await.expect(200);
    http.delete("/healthz").await.problem(405);
    for (method, path) in [
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("POST", "/v1/events"),
        ("PUT", "/v1/clients/car/position"),
        ("GET", "/v1/clients/car/events"),
    ] {
        let answer = http.send(method, path, Some("application/json"), "{}").await;
        assert_eq!(answer.problem(503)["type"], "urn:nearcast:problem:recovering", "{method} {path}");
        assert_eq!(answer.headers["retry-after"], "1", "{method} {path}");
    }
    let mut socket = Raw::connect(program.address()).await;
    let upgrade = "GET /v1/clients/car/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.send(upgrade.as_bytes()).await;
    let head = socket.head().await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");

    assert!(!program.log().contains("nearcast listens on "), "it is not ready: {}", program.log());
    program.signal("TERM");
    socket.rest("a connection").await;
    assert_eq!(program.exit_status().await.code(), Some(0), "{}", program.log());
}

/// What cannot be had ends the program before it says that it listens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_had_is_told_and_nothing_else() {
    for data in ["/proc/x", "/dev/null/x"] {
        let (status, log) =
            Serve::new().args(&["--data", data]).try_start().await.err().expect("there is no such folder");
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(
            log.contains(data) && !log.contains("nearcast listens") && !log.contains("nearcast reads"),
            "{log}"
        );
    }
}

/// A start without trouble says where it is and nothing that frightens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_start_says_where_it_is_and_warns_of_nothing() {
    let folder = TempDir::new().expect("a folder");
    for serve in [Serve::new(), serve(&folder)] {
        let program = serve.start().await;
        program.says(&format!("nearcast listens on http://{}", program.address())).await;
        let log = program.log();
        for frightening in ["WARN", "ERROR", "nothing outlives", "nearcast reads"] {
            assert!(!log.contains(frightening), "{frightening}: {log}");
        }
        if nearcast_web::built() {
            program.says(&format!("console: http://{}/", program.address())).await;
        }
        program.finish().await;
    }
}
