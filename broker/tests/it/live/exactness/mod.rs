//! Every enter, exit and delivery is what a brute force that keeps the whole history says, in the order of the steps
//! that led to it, over WebSocket and over SSE.

mod driver;
mod oracle;
mod plan;
mod reading;

use std::time::Instant;

use tokio::sync::mpsc;

use crate::harness::{Serve, soak};
use driver::Driver;
use oracle::Kind;
use plan::Plan;

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Scale {
    clients: usize,
    objects: usize,
    steps: usize,
}

const SHORT: Scale = Scale { clients: 50, objects: 200, steps: 5_000 };
const LONG: Scale = Scale { clients: 500, objects: 2_000, steps: 200_000 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_what_is_exactly_what_a_brute_force_says() {
    let scale = if soak() { LONG } else { SHORT };
    let program = Serve::new().args(&["--shards", "3"]).start().await;
    let started = Instant::now();
    let mut driver = Driver::new(&program, scale.clients).await;
    // The plan is made while the broker works, a little ahead of it.
    let (tx, mut rx) = mpsc::channel(256);
    let planning = std::thread::spawn(move || {
        let mut plan = Plan::new(20_071_026, scale);
        let scene = plan.scene();
        for planned in scene {
            tx.blocking_send(planned).ok()?;
        }
        for _ in 0..scale.steps {
            tx.blocking_send(plan.next()).ok()?;
        }
        Some(plan.redrawn_count)
    });
    while let Some(planned) = rx.recv().await {
        driver.take(planned).await;
    }
    let redrawn_count = planning.join().expect("the plan did not fail").expect("all steps were taken");
    driver.finish().await;
    let count = |kind: Kind| driver.clients.iter().map(|client| client.counts[kind as usize]).sum::<usize>();
    let [events, enters, exits] = [Kind::Event, Kind::Enter, Kind::Exit].map(count);
    let missed = driver.clients.iter().map(|client| client.missed_count).sum::<u64>();
    println!(
        "{scale:?} in {:.1?}: events {events}, enters {enters}, exits {exits}, none missing, none spurious; \
         {missed} deliveries while readers were away; {redrawn_count} steps drawn again for a border",
        started.elapsed()
    );
    for frames in [events, enters, exits, usize::try_from(missed).expect("few")] {
        assert!(frames * 20 > scale.steps, "too few frames to mean anything");
    }
    drop(driver);
    program.finish().await;
}
