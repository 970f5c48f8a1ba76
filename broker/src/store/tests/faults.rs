//! Full disks, many callers.

use std::sync::Barrier;
use std::thread;

use rand::Rng as _;

use super::disk::Disk;
use super::{Memory, Model, open, runs};
use crate::store::{Batch, RecoveredClient, StoreError, StoredPosition};

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
