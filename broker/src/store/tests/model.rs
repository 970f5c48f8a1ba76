//! Random batches, and opening again at random moments.

use std::time::Duration;

use rand::Rng as _;

use super::disk::Disk;
use super::{Memory, Model, Pace, THIN, open, open_at, runs};
use crate::store::Batch;

#[test]
fn what_was_committed_is_read_back() {
    for seed in 0..runs(20, 2_000) {
        let disk = Disk::default();
        let mut memory = Memory::new(seed);
        let (mut store, _) = open(&disk).expect("a new store");
        for step in 0..200 {
            let batch = memory.batch(&store);
            store.commit(&batch).expect("it is committed");
            if memory.random.random_bool(0.2) {
                store.commit(&batch).expect("and once more");
            }
            memory.committed();
            if memory.random.random_bool(0.05) {
                drop(store);
                let (again, recovered) = open(&disk).expect("it opens again");
                assert_eq!(Model::of(&recovered), memory.model, "seed {seed}, step {step}");
                memory.take_up(recovered);
                store = again;
            }
        }
    }
}

#[test]
fn bodies_go_when_nothing_refers_to_them() {
    let disk = Disk::default();
    let mut memory = Memory::new(1);
    // Each fold comes to its end.
    let whole = Pace { slice: Duration::from_secs(60), ..THIN };
    let (mut store, _) = open_at(&disk, whole).expect("a new store");
    for _ in 0..1_000 {
        let batch = memory.batch(&store);
        store.commit(&batch).expect("it is committed");
        memory.committed();
    }
    // What is let go of here goes with the folds after it.
    for round in 0..3 {
        drop(store);
        let (again, recovered) = open_at(&disk, whole).expect("it opens again");
        memory.take_up(recovered);
        store = again;
        for _ in 0..40 {
            let mut batch = Batch::default();
            batch.put_subscription("a", "s", &round.to_string());
            store.commit(&batch).expect("it is committed");
        }
    }
    drop(store);
    let stored = super::directory::bodies_stored(&disk);
    let mut referred: Vec<u64> = memory.model.bodies().collect();
    referred.sort_unstable();
    referred.dedup();
    assert_eq!(stored, referred);
}
