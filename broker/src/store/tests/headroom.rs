//! Tests of the headroom: what is taken and what is refused as a disk fills up, and how it gets room again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::disk::Disk;
use super::{THIN, comes_to, open_at};
use crate::model::clock::paused;
use crate::sessions::Disk as _;
use crate::store::inline::InlineStore;
use crate::store::{Batch, Figures, StoreError, StoredBody, StoredLive, StoredPosition};

/// A disk whose reserve is the least.
const DISK_BYTES: u64 = 100 << 20;
const RESERVE: u64 = 8 << 20;
/// The bytes of a live event.
const TEXT_BYTES: usize = 100_000;
/// Looks of the writer after which everything that follows from a change has happened.
const LOOKS: usize = 100;

/// A store on such a disk, at a time that goes on when it is told to.
struct Bench {
    disk: Disk,
    store: InlineStore,
    live: Vec<Arc<StoredBody>>,
}

impl Bench {
    fn new() -> Self {
        paused::pause(0);
        let disk = Disk::sized(DISK_BYTES);
        let (store, _) = InlineStore::open(&disk, 1 << 20, true, None).expect("a new store");
        Self { disk, store, live: Vec::new() }
    }

    fn is_short(&self) -> bool {
        self.store.shortage().is_short()
    }

    fn has_ballast(&self) -> bool {
        self.store.shared().medium.has_ballast()
    }

    fn commit(&self, change: impl FnOnce(&mut Batch)) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        change(&mut batch);
        self.store.commit(&batch)
    }

    /// Commits a few bytes while others leave so many free.
    fn move_with(&self, free: u64) -> Result<(), StoreError> {
        self.disk.leave_free(free);
        let position = StoredPosition { coordinates: [0.0; 3], accuracy_m: 0.0, received_ms: 1 };
        self.commit(|batch| batch.put_position("a", &position))
    }

    /// Publishes another live event.
    fn publish(&mut self) {
        let (stored, sequence) = (self.store.new_body(), self.live.len() as u64);
        let body = stored.id();
        let object = sequence.to_string().into();
        let live = StoredLive { object, id: "e".into(), sequence, expires_ms: 9, is_revoked: false, body };
        let written = self.commit(|batch| {
            batch.put_body(&stored, &"x".repeat(TEXT_BYTES), 7);
            batch.put_live(&live);
        });
        written.expect("it is not full before it says so");
        self.live.push(stored);
    }

    fn publish_until_short(&mut self) {
        while !self.is_short() {
            self.publish();
        }
    }

    fn revoke(&mut self) {
        let stored = self.live.pop().expect("there is one");
        let sequence = self.live.len() as u64;
        let removed = self.commit(|batch| batch.remove_live(&sequence.to_string(), sequence));
        removed.expect("removals are taken");
        drop(stored);
    }

    /// Lets time pass, for what happens by itself.
    fn wait(&self) {
        for _ in 0..LOOKS {
            paused::pass(Duration::from_secs(1));
            while self.store.idle() {}
        }
    }
}

#[test]
fn the_shortage_begins_below_the_reserve() {
    let bench = Bench::new();
    assert!(bench.has_ballast());
    bench.move_with(RESERVE).expect("there is room");
    assert!(!bench.is_short());
    bench.move_with(RESERVE - 1).expect("what is on its way is written");
    assert!(bench.is_short() && bench.has_ballast());
}

#[test]
fn the_ballast_goes_below_half_of_the_reserve() {
    let bench = Bench::new();
    bench.move_with(RESERVE / 2).expect("there is room");
    assert!(bench.has_ballast());
    bench.move_with(RESERVE / 2 - 1).expect("there is room");
    assert!(!bench.has_ballast());
}

/// What is written takes twice its bytes at most; an eighth of the reserve stays.
#[test]
fn what_might_find_no_room_is_refused_and_the_file_is_not_touched() {
    let bench = Bench::new();
    // What the ballast gives up is enough.
    bench.move_with(RESERVE / 8).expect("there is room");
    assert!(!bench.has_ballast());
    let before = (bench.disk.bytes(), bench.disk.syncs(), bench.disk.opens());
    for free in [0, RESERVE / 8, RESERVE / 8 + 1] {
        assert!(matches!(bench.move_with(free), Err(StoreError::Full { .. })), "{free} bytes were free");
    }
    assert!(before == (bench.disk.bytes(), bench.disk.syncs(), bench.disk.opens()), "something was written");
    bench.move_with(RESERVE / 4).expect("there is room");
    assert_eq!(before.2, bench.disk.opens(), "it was read again");
}

#[test]
fn removals_make_room_and_end_the_shortage() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.publish_until_short();
        let (taken, length) = (bench.live.len(), bench.disk.bytes().len());
        // The reserve, the ballast and pages that are half full are not for events.
        assert!((taken * TEXT_BYTES) as u64 > DISK_BYTES / 4, "{taken} events fit");
        bench.wait();
        assert!(bench.is_short() && bench.live.len() == taken, "nobody has made room");
        (0..taken).for_each(|_| bench.revoke());
        bench.wait();
        assert!(!bench.is_short() && bench.has_ballast());
        assert!(bench.disk.bytes().len() < length / 4, "{} of {length} bytes", bench.disk.bytes().len());
    }
}

#[test]
fn room_that_others_make_ends_the_shortage_as_well() {
    let bench = Bench::new();
    bench.move_with(RESERVE - 1).expect("it is written");
    bench.disk.leave_free(2 * RESERVE - 1);
    bench.wait();
    assert!(bench.is_short(), "it would soon be short again");
    bench.disk.leave_free(2 * RESERVE);
    bench.wait();
    assert!(!bench.is_short());
}

/// The figures of a store of which only the failed wipes are looked at.
fn figures(wipe_failures: &Arc<AtomicU64>) -> Figures {
    let histogram = Histogram::noop;
    Figures {
        commit: histogram(),
        batches: histogram(),
        sync: histogram(),
        slice: histogram(),
        folds: Counter::noop(),
        wipe: histogram(),
        wipe_failures: Counter::from_arc(Arc::clone(wipe_failures)),
        short: Gauge::noop(),
        log_rows: Gauge::noop(),
        log_bytes: Gauge::noop(),
    }
}

/// A copy leaves twice the reserve. What is due stays due.
#[test]
fn a_copy_is_not_begun_without_room() {
    let disk = Disk::sized(DISK_BYTES);
    let (store, _) = open_at(&disk, THIN).expect("a new store");
    let failures = Arc::<AtomicU64>::default();
    store.count_in(figures(&failures));
    let position = StoredPosition { coordinates: [0.0; 3], accuracy_m: 0.0, received_ms: 1 };
    let mut batch = Batch::default();
    batch.put_position("leaver", &position);
    store.commit(&batch).expect("there is room");
    disk.leave_free(2 * RESERVE);
    assert!(matches!(store.wipe(), Err(StoreError::Full { .. })));
    let mut batch = Batch::default();
    batch.forget_client("leaver");
    batch.wipe_soon();
    store.commit(&batch).expect("nothing else is refused for it");
    comes_to("it is tried", || failures.load(Ordering::Relaxed) > 0);
    assert_eq!((disk.copies(), store.shortage().is_short()), (0, false));
    disk.leave_free(4 * RESERVE);
    comes_to("it is tried again", || disk.replacements() > 0);
}
