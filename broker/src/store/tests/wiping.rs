//! Tests of wiping: replaced and removed data are in no file any more, and nothing else is missing.

use std::fs;
use std::path::Path;
use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::directory::open_in;
use super::disk::Disk;
use super::{Memory, Model, Pace, THIN, open_at, runs};
use crate::config::{Fsync, WorldName};
use crate::sessions;
use crate::store::format::Meta;
use crate::store::inline::InlineStore;
use crate::store::wiping::Settings;
use crate::store::{Batch, Recovered, Store, StoreError, StoredPosition, back_up, check};

/// Settings by which a broker wipes as soon as it may; it folds as usual.
const AT_ONCE: Settings = Settings { after: Some(Duration::ZERO), on_thread: true };

fn open(dir: &Path, lazily: Option<Duration>, wiping: Settings) -> Result<(Store, Recovered), StoreError> {
    let pace = Pace { wiping, ..Pace::default() };
    Store::open_dir(dir, Some(WorldName::Geodetic), lazily, pace, &|_| {})
}

fn position(longitude: f64) -> StoredPosition {
    StoredPosition { coordinates: [longitude, 44.0, 0.0], accuracy_m: 0.0, received_ms: 1 }
}

fn commit(store: &Store, change: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::default();
    change(&mut batch);
    store.commit(&batch).expect("it is committed");
}

/// Number of places in a directory's files where these bytes stand.
fn places(dir: &Path, bytes: &[u8]) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let file = fs::read(path).expect("a file");
            count += file.windows(bytes.len()).filter(|window| *window == bytes).count();
        }
    }
    count
}

fn places_of(dir: &Path, longitude: f64) -> usize {
    places(dir, &longitude.to_le_bytes())
}

#[track_caller]
fn comes_to(dir: &Path, what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now();
    while !is_so() {
        assert!(patience.elapsed() < Duration::from_secs(60), "{what} in {}", dir.display());
        thread::sleep(Duration::from_millis(5));
    }
}

const EARLIER: [f64; 3] = [7.123_456_701, 7.123_456_702, 7.123_456_703];
const LAST: f64 = 7.123_456_789;
const MARK: &str = "severity = 'MARK-OF-THE-FORGOTTEN'";

/// A client that moves, one that is forgotten, and a few that stay.
fn furnish(store: &Store) {
    for longitude in EARLIER {
        commit(store, |batch| batch.put_position("walker", &position(longitude)));
        commit(store, |batch| batch.put_position("leaver", &position(-longitude)));
    }
    commit(store, |batch| batch.put_position("walker", &position(LAST)));
    commit(store, |batch| batch.put_subscription("leaver", "s", MARK));
    commit(store, |batch| batch.put_subscription("stayer", "s", "severity = 'other'"));
}

fn is_clean(dir: &Path) -> bool {
    let is_gone = |bytes: &[u8]| places(dir, bytes) == 0;
    EARLIER.iter().all(|longitude| places_of(dir, *longitude) == 0 && places_of(dir, -longitude) == 0)
        && is_gone(b"leaver")
        && is_gone(b"MARK-OF")
}

#[track_caller]
fn is_whole(dir: &Path) {
    assert!(check(dir).expect("it can be read").is_whole());
    let (_store, recovered) = open_in(dir, Fsync::Always).expect("it opens");
    let model = Model::of(&recovered);
    assert_eq!(model.positions.keys().collect::<Vec<_>>(), ["walker"]);
    assert_eq!(model.positions["walker"].coordinates[0].to_bits(), LAST.to_bits());
    assert_eq!(model.subscriptions.keys().map(|(client, _)| client).collect::<Vec<_>>(), ["stayer"]);
}

#[test]
fn what_was_replaced_or_forgotten_is_in_no_file() {
    for lazily in [None, Some(Duration::from_millis(5))] {
        let folder = TempDir::new().expect("a folder");
        let dir = folder.path();
        let (store, _) = open(dir, lazily, AT_ONCE).expect("a new store");
        furnish(&store);
        // Of who is not forgotten the last position stays, and no other.
        comes_to(dir, "earlier positions", || {
            EARLIER.iter().all(|longitude| places_of(dir, *longitude) == 0)
        });
        assert_eq!((places_of(dir, LAST), places(dir, b"leaver") > 0), (1, true));
        commit(&store, |batch| batch.forget_client("leaver"));
        comes_to(dir, "what was forgotten", || is_clean(dir));
        drop(store);
        assert!(is_clean(dir) && places_of(dir, LAST) == 1);
        is_whole(dir);
    }
}

#[test]
fn without_it_the_bytes_stay() {
    let folder = TempDir::new().expect("a folder");
    let never = Settings { after: None, ..AT_ONCE };
    let (store, _) = open(folder.path(), None, never).expect("a new store");
    furnish(&store);
    commit(&store, |batch| batch.forget_client("leaver"));
    drop(store);
    assert!(!is_clean(folder.path()), "the other tests see nothing");
    // What is there at a start is not known, and is wiped in time.
    let (_store, _) = open(folder.path(), None, AT_ONCE).expect("it opens");
    comes_to(folder.path(), "what an earlier life left", || is_clean(folder.path()));
}

#[test]
fn a_copy_has_nothing_of_what_was_forgotten_before() {
    let folder = TempDir::new().expect("a folder");
    let [dir, running, stopped] = ["data", "running", "stopped"].map(|name| folder.path().join(name));
    fs::create_dir(&dir).expect("a folder");
    let never = Settings { after: None, ..AT_ONCE };
    let (store, _) = open(&dir, None, never).expect("a new store");
    furnish(&store);
    commit(&store, |batch| batch.forget_client("leaver"));
    store.backup(&running).expect("a copy");
    drop(store);
    back_up(&dir, &stopped).expect("a copy");
    for copy in [&running, &stopped] {
        assert!(is_clean(copy), "something is in {}", copy.display());
        is_whole(copy);
    }
}

/// Copies and wipes get in each other's way in every order, and commits go on meanwhile.
#[test]
fn copies_are_made_while_it_wipes() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().join("data");
    fs::create_dir(&dir).expect("a folder");
    let pace = Pace { wiping: AT_ONCE, ..THIN };
    let opened = Store::open_dir(&dir, Some(WorldName::Geodetic), None, pace, &|_| {});
    let (store, _) = opened.expect("a new store");
    let mut memory = Memory::new(11);
    for round in 0..runs(10, 200) {
        let copy = folder.path().join(round.to_string());
        commit(&store, |batch| batch.put_subscription("marked", &format!("{round:03}"), "{}"));
        thread::scope(|scope| {
            let copying = scope.spawn(|| store.backup(&copy));
            for _ in 0..20 {
                let batch = memory.batch(&store);
                store.commit(&batch).expect("it is committed");
                memory.committed();
            }
            copying.join().expect("no panic").expect("a copy");
        });
        assert!(check(&copy).expect("it can be read").is_whole());
        // What was committed before it was asked for.
        let (_copy, recovered) = open_in(&copy, Fsync::Always).expect("it opens");
        let marked = Model::of(&recovered).subscriptions.into_keys().filter(|(client, _)| client == "marked");
        assert!(marked.map(|(_, id)| id).eq((0..=round).map(|round| format!("{round:03}"))));
        fs::remove_dir_all(&copy).expect("it is ours");
    }
    drop(store);
    memory.model.subscriptions.extend(
        (0..runs(10, 200)).map(|round| (("marked".to_owned(), format!("{round:03}")), "{}".to_owned())),
    );
    let (_store, recovered) = open_in(&dir, Fsync::Always).expect("it opens again");
    assert_eq!(Model::of(&recovered), memory.model);
}

/// A wipe that falls due while a snapshot is being folded for its reader comes after that reader: a file that is replaced is closed.
#[test]
fn a_file_is_not_replaced_under_its_reader() {
    let disk = Disk::default();
    let (store, _) = InlineStore::open(&disk, 1 << 20, false, Some(Duration::ZERO)).expect("a new store");
    let put = |longitude| {
        let mut batch = Batch::default();
        batch.put_position("walker", &position(longitude));
        sessions::Disk::commit(&store, &batch).expect("it is committed");
    };
    put(EARLIER[0]);
    let asked = store.ask_for_snapshot();
    // Begins the fold that the snapshot waits for; then the wipe is due.
    put(LAST);
    let mut idle_count = 0;
    let snapshot = loop {
        store.idle();
        match asked.try_recv() {
            Ok(snapshot) => break snapshot.expect("it can be read"),
            Err(TryRecvError::Empty) => idle_count += 1,
            Err(TryRecvError::Disconnected) => panic!("nobody answers"),
        }
    };
    assert!(idle_count > 0, "the fold was over before the wipe was due");
    while store.idle() {}
    assert_eq!(disk.replacements(), 0);
    Meta::read(&snapshot.txn, Path::new("memory")).expect("the file is open").expect("it has one");
    drop(snapshot);
    let patience = Instant::now();
    while disk.replacements() == 0 {
        assert!(patience.elapsed() < Duration::from_secs(60), "it is not wiped");
        store.idle();
    }
}

/// A change while one is being folded makes the next wipe due: that one failing is nothing to the copy of the first.
#[test]
fn a_copy_outlives_a_commit_that_fails() {
    let disk = Disk::default();
    let (store, _) = InlineStore::open(&disk, 1 << 20, false, Some(Duration::ZERO)).expect("a new store");
    let put = |text: &str| {
        let mut batch = Batch::default();
        batch.put_subscription("stayer", "s", text);
        sessions::Disk::commit(&store, &batch)
    };
    put("{}").expect("it is committed");
    assert!(store.idle(), "nothing is folded");
    put("{}").expect("it is committed");
    let patience = Instant::now();
    while !store.is_copying() {
        assert!(patience.elapsed() < Duration::from_secs(60), "it is not copied");
        store.idle();
    }
    disk.leave_room(Some(0));
    assert!(matches!(put(&"x".repeat(1 << 20)), Err(StoreError::Full { .. })));
    disk.leave_room(None);
    put("{}").expect("there is room");
    store.idle();
    assert_eq!(disk.replacements(), 1);
}

/// A full disk does not keep a store from taking what there is room for, nor from wiping later.
#[test]
fn without_room_it_waits() {
    let disk = Disk::default();
    let (store, _) = open_at(&disk, Pace { wiping: AT_ONCE, ..Pace::default() }).expect("a new store");
    disk.leave_room(Some(0));
    for step in 0..50 {
        let mut batch = Batch::default();
        batch.put_position("walker", &position(EARLIER[0] + f64::from(step)));
        // There may be room for some.
        let _ = store.commit(&batch);
    }
    disk.leave_room(None);
    let had = disk.replacements();
    commit(&store, |batch| batch.put_position("walker", &position(LAST)));
    let is_there = |longitude: f64| disk.bytes().windows(8).any(|window| window == longitude.to_le_bytes());
    let patience = Instant::now();
    while disk.replacements() == had || is_there(EARLIER[0]) {
        assert!(patience.elapsed() < Duration::from_secs(60), "it is not wiped");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(is_there(LAST));
}
