//! Every enter, exit and delivery is what a brute force that keeps the whole history says, in the order of the steps
//! that led to it, over WebSocket and over SSE; and what is explained is what is told.

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
    /// After so many steps questions are asked.
    stride: usize,
    /// Of so many clients, every pair with a live object is asked about at the end.
    asked: usize,
}

const SHORT: Scale = Scale { clients: 50, objects: 200, steps: 5_000, stride: 5, asked: 5 };
const LONG: Scale = Scale { clients: 500, objects: 2_000, steps: 200_000, stride: 4, asked: 100 };

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
        for step in 0..scale.steps {
            tx.blocking_send(plan.next()).ok()?;
            if step.is_multiple_of(scale.stride) {
                tx.blocking_send(plan.ask()).ok()?;
            }
        }
        for planned in plan.ask_all(scale.asked) {
            tx.blocking_send(planned).ok()?;
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
    let [no, yes] = driver.answers_counts;
    println!(
        "{scale:?} in {:.1?}: events {events}, enters {enters}, exits {exits}, none missing, none spurious; \
         {missed} deliveries while readers were away; {redrawn_count} steps drawn again for a border; \
         explained as told: {no} not matching, {yes} matching",
        started.elapsed()
    );
    assert!(no > scale.steps / 10 && yes > scale.steps / 20, "too few questions to mean anything");
    for frames in [events, enters, exits, usize::try_from(missed).expect("few")] {
        assert!(frames * 20 > scale.steps, "too few frames to mean anything");
    }
    drop(driver);
    program.finish().await;
}
