//! Full disks, many callers.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng as _;
use tempfile::TempDir;

use super::disk::Disk;
use super::{Memory, Model, Pace, THIN, open, open_at, runs};
use crate::store::shared::{Commit, Request};
use crate::store::writer::RETRY;
use crate::store::{Batch, RecoveredClient, StoreError, StoredPosition, prepare};

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

/// Checks a store with `store.fsync = "interval"`, and a log that is long enough for a fold.
#[test]
fn a_sync_that_fails_is_tried_again_after_a_pause() {
    let (disk, folder) = (Disk::default(), TempDir::new().expect("a folder"));
    let (store, _) = open_at(&disk, Pace::default()).expect("a new store");
    let put = |received_ms| {
        let mut batch = Batch::default();
        batch.put_position("a", &StoredPosition { coordinates: [0.0; 3], accuracy_m: 0.0, received_ms });
        batch
    };
    (0..2 * THIN.rows).for_each(|number| store.commit(&put(number)).expect("it is committed"));
    drop(store);
    let lazily = Some((folder.path(), Some(Duration::from_millis(1))));
    let (writer, requests, _) =
        prepare(Box::new(disk.clone()), None, lazily, THIN, &|_| {}).expect("it opens again");
    let (before, begun) = (disk.opens(), Instant::now());
    disk.lose_power_after(0);
    let (done, outcome) = mpsc::sync_channel(1);
    requests.send(Request::Commit(Commit { batch: put(99), done })).expect("it is taken");
    thread::scope(|scope| {
        scope.spawn(|| writer.run());
        outcome.recv().expect("an answer").expect("it is in the tail");
        while disk.opens() < before + 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not tried again");
            thread::sleep(Duration::from_millis(5));
        }
        // The first fails at once.
        assert!(begun.elapsed() >= RETRY, "twice within {:?}", begun.elapsed());
        requests.send(Request::End).expect("it still runs");
    });
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
