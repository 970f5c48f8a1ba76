//! The set of deliveries equals what an independent brute force computes, over WebSocket and over SSE.

mod brute;
mod clients;
pub(crate) mod conditions;
#[cfg(feature = "gpu")]
mod devices;
pub(crate) mod geometry;
mod plan;
mod seams;
pub(crate) mod taxis;
mod traffic;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::harness::{Door, Form, Serve, encode, feature, soak, within};
use brute::Expected;
use clients::{Client, Got, LAST};
use plan::Plan;
use traffic::Traffic;

/// How many calls are under way at a time while the scene is set.
const CALLS_AT_A_TIME: usize = 32;

/// A machine that is busy with other tests is not to make the broker refuse events.
const PATIENT: &str = "[admission]\ndelay_ms = 60000\n";

/// How much of everything.
struct Scale {
    clients: usize,
    subscriptions: usize,
    events: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_are_exactly_those_of_a_brute_force() {
    // Wide areas bring about a million deliveries.
    let width = if soak() { 4.0 } else { 1.0 };
    let program = Serve::new().config(PATIENT).args(&["--shards", "3"]).start().await;
    replay(&program, Scale { clients: 2_000, subscriptions: 5_000, events: 20_000 }, width).await;
    program.finish().await;
}

async fn replay(door: &Door, scale: Scale, width: f64) {
    let reports = taxis::reports(scale.events);
    let published = reports.iter().map(|report| (report.id(), report.event())).collect::<HashMap<_, _>>();
    let published = Arc::new(published);
    let (steps, brute) = brute::start(scale.clients);
    let connect = (0..scale.clients).map(|idx| Client::connect(door, idx, Arc::clone(&published)));
    let clients = stream::iter(connect).buffered(CALLS_AT_A_TIME).collect::<Vec<_>>().await;
    let plan = Plan::new(20_071_026, width, &reports);
    let mut traffic = Traffic::new(door, &clients, plan, steps, &reports).await;
    traffic.set_the_scene(scale.subscriptions).await;
    traffic.replay(&reports).await;
    let rounds_count = traffic.finish();

    let last = feature(LAST, [0.0, 0.0], json!({"kind": "last"}));
    let (content_type, body) = encode(Form::Feature, &[last]);
    door.http().post("/v1/events", content_type, body).await.expect(202);
    let mut got = Vec::new();
    for client in clients {
        got.push(within("every client gets the last event", client.finish()).await);
    }
    let expected = brute.join().expect("the brute force did not fail");
    println!("{} reports in {rounds_count} rounds", reports.len());
    compare(&expected, &got, reports.len());
}

/// Demands equality of what was delivered and what had to be.
fn compare(expected: &Expected, got: &[Got], events_count: usize) {
    let mut missing = Vec::new();
    for ((client_idx, event), ids) in &expected.deliveries {
        if got[*client_idx].get(event) != Some(ids) {
            missing.push((*client_idx, event, ids, got[*client_idx].get(event)));
        }
    }
    let mut spurious = Vec::new();
    for (client_idx, events) in got.iter().enumerate() {
        for (event, ids) in events {
            let pair = (client_idx, event.clone());
            if !expected.deliveries.contains_key(&pair) && !expected.undecided.contains(&pair) {
                spurious.push((client_idx, event, ids));
            }
        }
    }
    println!(
        "deliveries {}, missing or different {}, spurious {}, too near to a border to tell {}",
        expected.deliveries.len(),
        missing.len(),
        spurious.len(),
        expected.undecided.len()
    );
    assert!(
        missing.is_empty(),
        "{} missing or different, such as {:?}",
        missing.len(),
        &missing[..missing.len().min(5)]
    );
    assert!(
        spurious.is_empty(),
        "{} spurious, such as {:?}",
        spurious.len(),
        &spurious[..spurious.len().min(5)]
    );
    assert!(expected.deliveries.len() > 2 * events_count, "too few deliveries to mean anything");
    assert!(expected.undecided.len() * 10_000 <= expected.deliveries.len(), "too much left undecided");
}
