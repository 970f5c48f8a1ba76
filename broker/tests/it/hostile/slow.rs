//! Requests that come a byte at a time.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{PROBES_COUNT, assert_grown_within};
use crate::harness::{Program, Raw, Serve, Witness, within};

/// How many do it at once.
const CLIENTS_COUNT: usize = 100;

/// Between one byte and the next: far less than what is taken for a pause.
const TRICKLE: Duration = Duration::from_millis(20);

/// Opens connections that go on with a byte now and then, for as long as they are let.
fn trickle(program: &Program, head: &'static str) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS_COUNT {
        let address = program.address();
        clients.spawn(async move {
            let mut raw = Raw::connect(address).await;
            raw.send(head.as_bytes()).await;
            while raw.send(b" ").await {
                tokio::time::sleep(TRICKLE).await;
            }
        });
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_trickle_are_cut_off() {
    let mut program = Serve::new().config("[connection]\nhead_timeout_ms = 1000\n").start().await;
    let mut witness = Witness::new(&program).await;
    let before = program.resident_bytes();
    let mut clients = trickle(&program, "GET /v1/stats HTTP/1.1\r\nhost: x\r\nx: ");
    for _ in 0..PROBES_COUNT {
        witness.probe_elsewhere("heads that trickle").await;
    }
    // That bytes come does not prolong the time that a head may take.
    within("all are cut off", async { while clients.join_next().await.is_some() {} }).await;
    assert_grown_within(&program, before, 0);
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_trickle_hold_up_nobody_and_no_stop() {
    let config = "[connection]\nbody_timeout_ms = 30000\n[server]\nshutdown_grace_ms = 500\n";
    let mut program = Serve::new().config(config).start().await;
    let mut witness = Witness::new(&program).await;
    let before = program.resident_bytes();
    let mut clients = JoinSet::new();
    for head in [
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n{",
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n\
         content-length: 100000000\r\n\r\n{",
        "PUT /v1/clients/car/subscriptions/s HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{",
    ] {
        let more = trickle(&program, head);
        clients.spawn(async { drop(more.join_all().await) });
    }
    for _ in 0..PROBES_COUNT {
        witness.probe_elsewhere("bodies that trickle").await;
    }
    assert_grown_within(&program, before, 0);
    program.assert_healthy();
    program.finish().await;
    within("all are cut off", async { while clients.join_next().await.is_some() {} }).await;
}
