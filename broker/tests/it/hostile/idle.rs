//! Sockets on which nothing happens.

use std::collections::HashMap;

use super::{PROBES_COUNT, assert_grown_within, deaf_socket, settled};
use crate::harness::{Serve, Witness, soak};

/// `connection.read_buffer_bytes`.
const READ_BUFFER_BYTES: u64 = 4_096;

/// What else the broker has for a socket: its task, its outbox while that is empty, its client.
const REST_BYTES: u64 = 12 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sockets_cost_little() {
    let sockets_count = if soak() { 10_000 } else { 200 };
    // As many are open here as there.
    rlimit::increase_nofile_limit(u64::MAX).expect("the limit can be asked");
    let config = format!("[connection]\nread_buffer_bytes = {READ_BUFFER_BYTES}\n");
    let mut program = Serve::new().config(&config).start().await;
    let mut witness = Witness::new(&program).await;
    let before = program.resident_bytes();
    let mut idle = Vec::new();
    for idx in 0..sockets_count {
        idle.push(deaf_socket(&program, &format!("car-{idx}")).await);
    }
    settled(&program, "all are open", &HashMap::from([("websockets", sockets_count + 1)])).await;
    for _ in 0..PROBES_COUNT {
        witness.probe_elsewhere("idle sockets").await;
    }
    assert_grown_within(&program, before, sockets_count * (READ_BUFFER_BYTES + REST_BYTES));
    drop(idle);
    settled(&program, "all are gone", &HashMap::from([("websockets", 1)])).await;
    program.assert_healthy();
    program.finish().await;
}
