//! How long a commit takes: `cargo test --release -p broker --lib store::tests::latency -- --ignored --nocapture`.

use std::time::Instant;

use tempfile::TempDir;

use super::directory::open_in;
use crate::config::Fsync;
use crate::model::delivery::Names;
use crate::store::{Batch, Store, StoredLive, StoredMatch};

/// A publish of some 500 bytes that ten clients keep, the one before of its object replaced and acknowledged.
fn publish(store: &Store, batch: &mut Batch, number: u64, text: &str) -> std::sync::Arc<super::StoredBody> {
    let stored = store.new_body();
    let body = stored.id();
    batch.put_body(&stored, text, number);
    let object = format!("id:{}", number % 20_000).into();
    batch.put_live(&StoredLive {
        object,
        id: "e".into(),
        sequence: number,
        expires_ms: number,
        is_revoked: false,
        body,
    });
    for one in 0..10 {
        let client = format!("client-{}", (number * 7 + one * 101) % 10_000);
        let kept = StoredMatch {
            offset: number,
            subscriptions: Names::One("\"s\"".into()),
            cause: matcher::live::Cause::Published,
            transition: None,
            at_ms: number,
            body,
        };
        batch.keep(&client, &kept);
        if number % 10_000 == one {
            batch.forget_kept(&client, 0..=number);
        }
    }
    stored
}

#[test]
#[ignore = "a measurement"]
fn of_a_batch() {
    let text = "x".repeat(500);
    for fsync in [Fsync::Always, Fsync::Interval] {
        for (size, commits) in [(1, 1_000), (64, 500), (1_024, 100)] {
            let folder = TempDir::new_in(".").expect("a folder");
            let (store, _) = open_in(folder.path(), fsync).expect("a new store");
            let (mut took, mut number, mut handles) = (Vec::new(), 0, std::collections::VecDeque::new());
            let begun = Instant::now();
            for _ in 0..commits {
                let mut batch = Batch::default();
                for _ in 0..size {
                    number += 1;
                    handles.push_back(publish(&store, &mut batch, number, &text));
                }
                let started = Instant::now();
                store.commit(&batch).expect("it is committed");
                took.push(started.elapsed());
                while handles.len() > 20_000 {
                    handles.pop_front();
                }
            }
            let rate = u128::from(number) * 1_000_000 / begun.elapsed().as_micros();
            took.sort();
            let at = |percent: usize| took[(took.len() - 1) * percent / 100];
            println!(
                "{fsync:?}, {size} a commit: p50 {:?}, p99 {:?}, max {:?}, {rate} publishes/s",
                at(50),
                at(99),
                at(100)
            );
            drop(store);
            let started = Instant::now();
            let (_store, recovered) = open_in(folder.path(), fsync).expect("it opens again");
            println!("  opened in {:?}, {} clients", started.elapsed(), recovered.clients.len());
        }
    }
}
