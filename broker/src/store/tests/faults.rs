//! Full disks, many callers.

use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng as _;

use super::disk::Disk;
use super::{Memory, Model, open, runs};
use crate::store::{Batch, RecoveredClient, Store, StoreError, StoredPosition};

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    for seed in 0..runs(5, 200) {
        let disk = Disk::default();
        let mut memory = Memory::new(seed);
        let (store, _) = open(&disk).expect("a new store");
        disk.leave_room(Some(memory.random.random_range(0..200_000)));
        for step in 0..2_000 {
            let batch = memory.batch(&store);
            match store.commit(&batch) {
                Ok(()) => {}
                Err(StoreError::Full { .. }) => {
                    // With less to do besides there may be just enough room.
                    let again = store.commit(&batch);
                    let is_right = matches!(again, Ok(()) | Err(StoreError::Full { .. }));
                    assert!(is_right, "seed {seed}, step {step}: {again:?}");
                    disk.leave_room(None);
                    store.commit(&batch).expect("there is room");
                }
                Err(error) => panic!("seed {seed}, step {step}: {error}"),
            }
            memory.committed();
            if step % 50 == 0 {
                disk.leave_room(Some(memory.random.random_range(0..200_000)));
            }
        }
        drop(store);
        disk.leave_room(None);
        let (_store, recovered) = open(&disk).expect("it opens again");
        assert_eq!(Model::of(&recovered), memory.model, "seed {seed}");
    }
}

#[test]
fn callers_that_commit_at_once_share_a_sync() {
    const CALLERS: u64 = 8;
    const COMMITS: u64 = 50;
    let disk = Disk::default();
    let (store, _) = open(&disk).expect("a new store");
    let before = disk.syncs();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                for received_ms in 1..=COMMITS {
                    let mut batch = Batch::default();
                    let position = StoredPosition { coordinates: [0.0; 3], accuracy_m: 0.0, received_ms };
                    batch.put_position(&caller.to_string(), &position);
                    store.commit(&batch).expect("it is committed");
                }
            });
        }
    });
    let syncs = disk.syncs() - before;
    drop(store);
    let (_store, recovered) = open(&disk).expect("it opens again");
    assert_eq!(recovered.clients.len() as u64, CALLERS);
    let last = |client: &RecoveredClient| client.position.as_ref().map(|one| one.received_ms);
    assert!(recovered.clients.iter().all(|client| last(client) == Some(COMMITS)));
    // Two for each commit of its own, and some for the folds.
    assert!(syncs > 0, "nothing was synced");
    println!("{syncs} syncs for {} commits", CALLERS * COMMITS);
}

/// Commits what a condition waits for, which the writer brings about meanwhile.
fn commit_until(
    store: &Store,
    what: &str,
    mut change: impl FnMut(u64, &mut Batch),
    is_so: impl Fn() -> bool,
) {
    let deadline = Instant::now() + Duration::from_secs(60);
    for number in 0.. {
        assert!(Instant::now() < deadline, "{what}");
        let mut batch = Batch::default();
        change(number, &mut batch);
        store.commit(&batch).expect("there is room, or some was set aside");
        if is_so() {
            return;
        }
    }
}

#[test]
fn on_a_full_disk_there_is_room_for_removals_and_they_make_more() {
    let disk = Disk::default().with_reserve(8 << 20);
    let (store, _) = open(&disk).expect("a new store");
    let is_short = store.shortage();
    let is_short = || is_short.load(Ordering::Acquire);
    let client = |number: u64| format!("c{}", number % 500);
    let position = StoredPosition { coordinates: [0.0; 3], accuracy_m: 0.0, received_ms: 1 };
    let text = "x".repeat(20_000);
    for round in 0..3 {
        // As much as has to be free before the reserve is set aside again, and a little.
        disk.leave_room(Some(17 << 20));
        let put = |number: u64, batch: &mut Batch| {
            batch.put_position(&client(number), &position);
            batch.put_subscription(&client(number), &format!("s{}", number / 500), &text);
        };
        commit_until(&store, "it becomes full", put, is_short);
        // Everybody goes, some while room is short, and then there is some again.
        for number in 0..500 {
            let mut batch = Batch::default();
            batch.forget_client(&client(number));
            store.commit(&batch).unwrap_or_else(|error| panic!("round {round}, removal {number}: {error}"));
        }
        let remove = |number: u64, batch: &mut Batch| batch.forget_client(&client(number));
        commit_until(&store, "there is room again", remove, || !is_short());
    }
    drop(store);
    let (_store, recovered) = open(&disk).expect("it opens again");
    assert!(recovered.clients.is_empty());
}
