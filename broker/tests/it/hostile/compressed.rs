//! Bodies that would be far larger than they look.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::assert_grown_within;
use crate::harness::{Serve, Witness};

/// Nothing is unpacked: a body in any coding is refused before its first byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_bodies_are_refused() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..16 {
        encoder.write_all(&[b' '; 1 << 20]).expect("memory takes it");
    }
    let bomb = encoder.finish().expect("memory takes it");
    assert!(bomb.len() < 1 << 15, "16 MiB are {} bytes", bomb.len());
    let before = program.resident_bytes();
    // A connection each: what of a body is not read closes its own.
    let calls = reqwest::Client::builder().pool_max_idle_per_host(0).no_proxy().build().expect("a client");
    for path in ["POST /v1/events", "POST /v1/positions", "POST /v1/explain", "PUT /v1/clients/car/position"]
    {
        for coding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "x-unknown"] {
            let (method, path) = path.split_once(' ').expect("a method and a path");
            let method = method.parse::<reqwest::Method>().expect("a method");
            let request = calls.request(method, format!("http://{}{path}", program.address()));
            let request =
                request.header("content-type", "application/json").header("content-encoding", coding);
            let answer = request.body(bomb.clone()).send().await.expect("an answer");
            assert_eq!(answer.status(), 415, "{path} in {coding}");
        }
    }
    witness.probe_elsewhere("compressed bodies").await;
    assert_grown_within(&program, before, 0);
    program.assert_healthy();
    program.finish().await;
}
