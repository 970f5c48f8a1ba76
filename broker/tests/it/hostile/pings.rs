//! Pings of a client that reads no pongs.

use super::{PROBES_COUNT, assert_grown_within, deaf_socket};
use crate::harness::{Serve, Witness};

/// Far more than fits into all buffers between the two ends.
const SENT_BYTES_MAX: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_no_pongs_is_not_read_from() {
    let config = "[outbox]\nanswers = 64\n[connection]\nwrite_timeout_ms = 2000\n";
    let mut program = Serve::new().config(config).start().await;
    let mut witness = Witness::new(&program).await;
    let before = program.resident_bytes();
    let mut raw = deaf_socket(&program, "car").await;
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0], [b'x'; 125].as_slice()].concat();
    let pings = ping.repeat(1_000);
    let flood = tokio::spawn(async move {
        let mut sent_bytes = 0;
        // Writes wait when the broker reads no more, and fail when it has cut the connection off.
        while sent_bytes < SENT_BYTES_MAX && raw.send(&pings).await {
            sent_bytes += pings.len();
        }
        sent_bytes
    });
    for _ in 0..PROBES_COUNT {
        witness.probe_elsewhere("pings").await;
    }
    let sent_bytes = flood.await.expect("it ends");
    assert!(sent_bytes < SENT_BYTES_MAX, "{sent_bytes} bytes were taken");
    assert_grown_within(&program, before, 1 << 20);
    program.assert_healthy();
    program.finish().await;
}
