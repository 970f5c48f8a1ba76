//! Random batches, and opening again at random moments.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;

use super::disk::Disk;
use super::{Memory, Model, Pace, THIN, open, open_at, runs};
use crate::store::format::Meta;
use crate::store::{Batch, Store, StoredLive, StoredStanding, recovery};

#[test]
fn what_was_committed_is_read_back() {
    let mut replacements = 0;
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
        replacements += disk.replacements();
    }
    assert!(replacements > 0, "nothing was wiped");
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

/// More than a row of the table holds, of which the beginning, the end and something between goes, at once and later.
#[test]
fn a_long_session_is_kept_but_for_what_goes() {
    let whole = Pace { slice: Duration::from_secs(60), rows: 2, ..THIN };
    let disk = Disk::default();
    let (mut store, _) = open_at(&disk, whole).expect("a new store");
    let mut memory = Memory::new(1);
    let mut batch = Batch::default();
    for _ in 0..1_000 {
        memory.keep(&store, &mut batch, "a");
    }
    store.commit(&batch).expect("it is committed");
    for (first, last) in
        [(1, 1), (2, 130), (500, 501), (384, 384), (900, 899), (990, 1_100), (600, 900), (1, 200)]
    {
        let mut batch = Batch::default();
        memory.forget(&mut batch, "a", first..=last);
        // Each is folded by itself.
        for _ in 0..4 {
            store.commit(&batch).expect("it is committed");
        }
        memory.committed();
        drop(store);
        let (again, recovered) = open_at(&disk, whole).expect("it opens again");
        assert!(Model::of(&recovered) == memory.model, "without {first} to {last}");
        memory.take_up(recovered);
        store = again;
    }
    assert_eq!(memory.model.kept.len(), 485);
}

/// Checks the two kinds of leftovers. A kill may leave the older event of an object beside the newer one, until the older one
/// has ended: that is nothing special. No kill leaves a record that refers to nothing: such ones are counted.
#[test]
fn only_what_refers_to_nothing_dangles() {
    let overtaken_count = std::cell::Cell::new(0);
    let dangling = |change: &dyn Fn(&mut Memory, &Store, &mut Batch)| {
        let disk = Disk::default();
        let (store, _) = open(&disk).expect("a new store");
        let (mut memory, mut batch) = (Memory::new(1), Batch::default());
        memory.publish(&store, &mut batch, "id:1");
        change(&mut memory, &store, &mut batch);
        store.commit(&batch).expect("it is committed");
        let shared = &store.inner.shared;
        let txn = shared.snapshot().expect("it can be read");
        let meta = Meta::read(&txn, shared.path()).expect("it can be read").expect("it is there");
        let mut fault = |what| panic!("{what}");
        let contents = recovery::read(&txn, &meta, shared.path(), &mut |_, _| {}, &mut fault);
        let (recovered, cleanup) = contents.expect("it can be read").recover(&Arc::default());
        assert_eq!(recovered.live.len(), 1);
        overtaken_count.set(recovered.overtaken.len());
        (cleanup.dangling_count, cleanup.batch.is_empty())
    };
    assert_eq!(dangling(&|_, _, _| {}), (0, true));
    let older = |memory: &mut Memory, _: &Store, batch: &mut Batch| {
        let (live, _) = memory.model.live["id:1"].clone();
        batch.put_live(&StoredLive { sequence: live.sequence + 1, ..live });
    };
    // A shard may not have come to the newer one.
    assert_eq!((dangling(&older), overtaken_count.get()), ((0, true), 1));
    let standing = StoredStanding { sequence: 1, waits: None };
    assert_eq!(dangling(&|_, _, batch| batch.put_standing("a", "none such", "id:1", &standing)), (1, false));
    let without_text = |_: &mut Memory, store: &Store, batch: &mut Batch| {
        let (object, id, body) = ("id:2".into(), "e".into(), store.new_body().id());
        batch.put_live(&StoredLive { object, id, sequence: 9, expires_ms: 9, is_revoked: false, body });
    };
    assert_eq!(dangling(&without_text), (1, false));
}
