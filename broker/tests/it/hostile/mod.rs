//! Clients that mean harm: whatever they do, others are answered meanwhile, and the broker holds no more than its settings
//! allow.

mod compressed;
mod echo;
mod floods;
mod heavy;
mod idle;
mod pings;
mod readers;
mod slow;

use std::collections::HashMap;

use serde_json::Value;

use crate::harness::{Program, Raw, eventually};

/// What a program may grow by whatever it does: pages that its allocator keeps, and what threads and tables take once.
const SLACK_BYTES: u64 = 48 << 20;

/// How many probes have to come through while harm is done.
const PROBES_COUNT: u32 = 20;

/// Fails when the program has grown by more than this since.
#[track_caller]
fn assert_grown_within(program: &Program, since_bytes: u64, bound_bytes: u64) {
    let grown_bytes = program.resident_bytes().saturating_sub(since_bytes);
    let most_bytes = bound_bytes + SLACK_BYTES;
    assert!(grown_bytes < most_bytes, "grown by {} KiB, {} KiB at most", grown_bytes >> 10, most_bytes >> 10);
}

/// Waits until these numbers are in the statistics.
async fn settled(program: &Program, what: &str, numbers: &HashMap<&str, u64>) {
    let http = program.http();
    eventually(what, async || {
        let stats = http.get("/v1/stats").await.expect(200).json();
        numbers.iter().all(|(name, number)| stats[name] == *number).then_some(())
    })
    .await;
}

/// A connection that has become a WebSocket of a client's, which reads nothing from now on.
async fn deaf_socket(program: &Program, client: &str) -> Raw {
    let mut raw = Raw::deaf(program.address()).await;
    let request = format!(
        "GET /v1/clients/{client}/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    raw.send(request.as_bytes()).await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    raw
}

/// A text frame as a client sends it.
fn frame(document: &Value) -> Vec<u8> {
    let text = document.to_string().into_bytes();
    let length = u16::try_from(text.len()).expect("floods are of small frames").to_be_bytes();
    // A mask of zeros is one.
    [&[0x81, 0xfe, length[0], length[1], 0, 0, 0, 0], text.as_slice()].concat()
}
