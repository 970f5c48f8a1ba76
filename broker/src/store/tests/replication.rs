//! Members of a cluster: what a ledger has makes the file that its owner has, from the first row on as from a snapshot.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cluster::ledger::State as _;
use cluster::log::Identity;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tempfile::TempDir;

use super::{Memory, Model, THIN, comes_to, runs};
use crate::config::WorldName;
use crate::store::{Batch, Ledger, Recovered, Replica, SnapshotParts, Store, StoreError, StoredSession};

/// A ledger that keeps all that it ever had.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Records>>);

#[derive(Debug, Default)]
struct Records {
    all: Vec<Record>,
    /// How often it says that it does not know, and knows.
    faults: Option<StdRng>,
}

#[derive(Clone, Debug)]
enum Record {
    Row(Vec<u8>),
    Snapshot(Vec<Vec<u8>>),
}

impl Recorder {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshots_count(&self) -> usize {
        self.records().all.iter().filter(|record| matches!(record, Record::Snapshot(_))).count()
    }

    /// Waits until a snapshot is what it got last.
    fn await_snapshot(&self) {
        let ends = Instant::now() + Duration::from_secs(60);
        while !matches!(self.records().all.last(), Some(Record::Snapshot(_))) {
            assert!(Instant::now() < ends, "there was no snapshot");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// What it has behind the beginning of the last snapshot but some.
    fn behind_snapshot(&self, but: usize) -> Vec<Record> {
        let all = &self.records().all;
        let snapshots: Vec<_> = (0..all.len()).filter(|at| matches!(all[*at], Record::Snapshot(_))).collect();
        all[snapshots[snapshots.len() - 1 - but]..].to_vec()
    }
}

impl Ledger for Recorder {
    fn append(&mut self, parts: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let mut records = self.records();
        let why = "the answer is lost".to_owned();
        let Some(faults) = &mut records.faults else {
            records.all.extend(parts.into_iter().map(Record::Row));
            return Ok(());
        };
        // None of it, a part of it, or all of it.
        let is_told = faults.random_bool(0.9);
        let count = if is_told { parts.len() } else { faults.random_range(0..=parts.len()) };
        records.all.extend(parts.into_iter().take(count).map(Record::Row));
        if is_told { Ok(()) } else { Err(StoreError::Ledger { why }) }
    }

    fn takes_snapshot(&self) -> bool {
        true
    }

    fn snapshot(&mut self, parts: SnapshotParts) {
        let parts = parts.map(|part| part.expect("the file can be read")).collect();
        self.records().all.push(Record::Snapshot(parts));
    }
}

/// A member that has read these records.
fn member(dir: &Path, records: &[Record]) -> Replica {
    let (mut replica, _) = Replica::take(dir, WorldName::Geodetic).expect("a directory");
    replica.clear();
    for (at, record) in records.iter().enumerate() {
        match record {
            Record::Row(row) => replica.apply(0, row).expect("a row"),
            // A member that has the rows needs no snapshot.
            Record::Snapshot(_) if at > 0 => {}
            Record::Snapshot(parts) => {
                parts.iter().for_each(|part| replica.restore(part).expect("a part of a snapshot"));
            }
        }
    }
    replica
}

fn open(replica: Replica, ledger: &Recorder, snapshot_bytes: u64) -> (Store, Recovered) {
    let (world, pace) = (WorldName::Geodetic, (THIN, snapshot_bytes));
    let opened = Store::open_replica_at(replica, Box::new(ledger.clone()), world, pace, &|_| {});
    opened.expect("it opens")
}

fn commit(store: &Store, batch: &Batch) {
    while store.commit(batch).is_err() {}
}

#[test]
fn who_takes_over_has_what_the_owner_had() {
    let mut snapshots_count = 0;
    for seed in 0..runs(6, 200) {
        let (ledger, mut memory) = (Recorder::default(), Memory::new(seed));
        ledger.records().faults = Some(StdRng::seed_from_u64(seed));
        let mut dir = TempDir::new().expect("a folder");
        let (mut store, _) = open(member(dir.path(), &[]), &ledger, 2_000);
        for step in 0..150 {
            let mut batch = memory.batch(&store);
            let is_large = memory.random.random_bool(0.02);
            if is_large {
                // More than a row of the ledger holds.
                let text = "t".repeat(memory.random.random_range(500_000..1_500_000));
                batch.put_subscription("a", "s", &text);
                memory.model.subscriptions.insert(("a".to_owned(), "s".to_owned()), text);
            }
            commit(&store, &batch);
            memory.committed();
            // Such a row makes a snapshot due, which is taken when the writer has nothing else to do.
            if is_large && memory.random.random_bool(0.5) {
                ledger.await_snapshot();
            }
            if memory.random.random_bool(0.05) {
                drop(store);
                let all = ledger.records().all.clone();
                let from_first = TempDir::new().expect("a folder");
                let (_, recovered) = open(member(from_first.path(), &all), &Recorder::default(), u64::MAX);
                assert_eq!(
                    Model::of(&recovered),
                    memory.model,
                    "seed {seed}, step {step}, from the first row"
                );
                let dealing = recovered.dealing;
                let count = ledger.snapshots_count();
                let records = if count == 0 { all } else { ledger.behind_snapshot(usize::from(count > 1)) };
                snapshots_count += count;
                // The other member takes over, in a directory that it had before or in a new one.
                if memory.random.random_bool(0.5) {
                    dir = TempDir::new().expect("a folder");
                }
                let (again, recovered) = open(member(dir.path(), &records), &ledger, 2_000);
                assert_eq!(Model::of(&recovered), memory.model, "seed {seed}, step {step}, from a snapshot");
                assert_eq!(recovered.dealing, dealing);
                memory.take_up(recovered);
                store = again;
            }
        }
    }
    assert!(snapshots_count > 0, "there was no snapshot");
}

#[test]
fn a_client_that_is_deleted_leaves_the_ledger() {
    let (dir, ledger) = (TempDir::new().expect("a folder"), Recorder::default());
    let (store, _) = open(member(dir.path(), &[]), &ledger, u64::MAX);
    let mut batch = Batch::default();
    batch.put_subscription("somebody", "s", "t");
    batch.put_subscription("another", "s", "t");
    commit(&store, &batch);
    batch.clear();
    batch.forget_client("somebody");
    batch.wipe_soon();
    commit(&store, &batch);
    // The log is truncated up to the last but one.
    comes_to("two snapshots", || ledger.snapshots_count() == 2);
    let has = |name: &str| {
        ledger.behind_snapshot(1).iter().any(|record| {
            let bytes = match record {
                Record::Row(row) => row.clone(),
                Record::Snapshot(parts) => parts.concat(),
            };
            bytes.windows(name.len()).any(|found| found == name.as_bytes())
        })
    };
    assert!(!has("somebody") && has("another"));
}

#[test]
fn sessions_begin_new_epochs_when_the_ledger_went_back() {
    let (dir, ledger) = (TempDir::new().expect("a folder"), Recorder::default());
    let (store, _) = open(member(dir.path(), &[]), &ledger, u64::MAX);
    let session = StoredSession { epoch: "e".into(), offset: 3, acknowledged: 1, lost: 0 };
    let mut batch = Batch::default();
    batch.put_session("a", &session);
    commit(&store, &batch);
    drop(store);
    Replica::note_went_back(dir.path());
    let epoch =
        |recovered: &Recovered| recovered.clients[0].session.as_ref().map(|session| session.epoch.clone());
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let all = ledger.records().all.clone();
        let (_, recovered) = open(member(dir.path(), &all), &ledger, u64::MAX);
        epochs.extend(epoch(&recovered));
    }
    assert_ne!(*epochs[0], *"e");
    // Once.
    assert_eq!(epochs[0], epochs[1]);
}

#[test]
fn what_is_known_of_the_ledger_outlives_the_process_until_it_went_back() {
    let dir = TempDir::new().expect("a folder");
    assert_eq!(Replica::known(dir.path()), None);
    let known = Identity { sequence: 7, time_us: None, crc: u32::MAX };
    Replica::note_known(dir.path(), Identity { time_us: Some(1), ..known });
    assert_eq!(Replica::known(dir.path()), Some(known));
    Replica::note_went_back(dir.path());
    assert_eq!(Replica::known(dir.path()), None);
}

#[test]
fn what_a_ledger_has_of_another_world_is_refused() {
    let (dir, ledger) = (TempDir::new().expect("a folder"), Recorder::default());
    let (store, _) = open(member(dir.path(), &[]), &ledger, u64::MAX);
    let mut batch = Batch::default();
    batch.put_subscription("a", "s", "t");
    commit(&store, &batch);
    drop(store);
    let other = TempDir::new().expect("a folder");
    let (mut replica, name) = Replica::take(other.path(), WorldName::Planar).expect("a directory");
    replica.clear();
    let Some(Record::Row(row)) = ledger.records().all.first().cloned() else { panic!("there is no row") };
    let error = replica.apply(1, &row).unwrap_err();
    assert!(error.contains("was made with server.world"), "{error}");
    // It is the same member as long as it has its directory.
    drop(replica);
    let (_, again) = Replica::take(other.path(), WorldName::Planar).expect("a directory");
    assert_eq!(name, again);
}
