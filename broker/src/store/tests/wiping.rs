//! Tests of wiping: replaced and removed data are in no file any more, and nothing else is missing.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::directory::open_in;
use super::disk::Disk;
use super::{Memory, Model, Pace, THIN, comes_to, open_at, runs};
use crate::config::{Fsync, WorldName};
use crate::sessions;
use crate::store::inline::InlineStore;
use crate::store::{Batch, Recovered, Store, StoreError, StoredPosition, back_up, check, wipe};

/// Opens a store that folds as usual.
fn open(
    dir: &Path,
    lazily: Option<Duration>,
    wipe_after: Duration,
) -> Result<(Store, Recovered), StoreError> {
    let pace = Pace { wipe_after, ..Pace::default() };
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
        // Nobody writes into the ballast, which is large.
        if path.is_file() && !path.ends_with("ballast") {
            let file = fs::read(path).expect("a file");
            count += file.windows(bytes.len()).filter(|window| *window == bytes).count();
        }
    }
    count
}

fn places_of(dir: &Path, longitude: f64) -> usize {
    places(dir, &longitude.to_le_bytes())
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|found| found == text.as_bytes())
}

/// Later than a test ends.
const LATER: Duration = Duration::from_secs(3_600);
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

fn delete(store: &Store, client: &str) {
    commit(store, |batch| {
        batch.forget_client(client);
        batch.wipe_soon();
    });
}

#[test]
fn what_was_replaced_or_deleted_is_in_no_file() {
    for lazily in [None, Some(Duration::from_millis(5))] {
        let folder = TempDir::new().expect("a folder");
        let dir = folder.path();
        let (store, _) = open(dir, lazily, Duration::ZERO).expect("a new store");
        furnish(&store);
        delete(&store, "leaver");
        comes_to("what was deleted is in no file", || is_clean(dir));
        drop(store);
        // Of who is not deleted the last position stays, and no other.
        assert!(is_clean(dir) && places_of(dir, LAST) == 1);
        is_whole(dir);
    }
}

#[test]
fn no_deletion_is_forgotten_in_a_restart() {
    for lazily in [None, Some(LATER)] {
        let folder = TempDir::new().expect("a folder");
        let dir = folder.path();
        let (store, _) = open(dir, lazily, LATER).expect("a new store");
        furnish(&store);
        delete(&store, "leaver");
        drop(store);
        assert!(!is_clean(dir), "the other tests see nothing");
        let (store, recovered) = open(dir, lazily, LATER).expect("it opens");
        assert!(recovered.owes_wipe);
        comes_to("what was deleted in an earlier life is in no file", || is_clean(dir));
        drop(store);
        let (store, recovered) = open(dir, lazily, LATER).expect("it opens");
        assert!(!recovered.owes_wipe, "it would be done at each start");
        drop(store);
        is_whole(dir);
    }
}

#[test]
fn one_wipe_is_for_all_that_are_deleted_meanwhile() {
    let disk = Disk::default();
    let open = || open_at(&disk, Pace { wipe_after: LATER, ..THIN }).expect("it opens");
    let clients: Vec<_> = (0..10).map(|number| format!("client-{number}")).collect();
    let (store, _) = open();
    for client in &clients {
        commit(&store, |batch| batch.put_position(client, &position(LAST)));
    }
    clients.iter().for_each(|client| delete(&store, client));
    drop(store);
    let (store, _) = open();
    comes_to("it is wiped", || disk.replacements() == 1);
    assert!(clients.iter().all(|client| !holds(&disk.bytes(), client)));
    drop((store, open()));
    assert_eq!(disk.replacements(), 1);
}

/// A client that is deleted when the copy is made already is in the copy, and so is the note that it has to go.
#[test]
fn what_is_deleted_during_a_wipe_goes_with_the_next() {
    let disk = Disk::default();
    let (store, _) = InlineStore::open(&disk, 1 << 20, true, Some(Duration::ZERO)).expect("a new store");
    let put = |change: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        change(&mut batch);
        sessions::Disk::commit(&store, &batch).expect("it is committed");
    };
    let delete = |client| {
        put(&|batch| {
            batch.forget_client(client);
            batch.wipe_soon();
        });
    };
    for client in ["leaver-1", "leaver-2"] {
        put(&|batch| batch.put_position(client, &position(LAST)));
    }
    delete("leaver-1");
    comes_to("it is copied", || {
        store.idle();
        store.is_copying()
    });
    delete("leaver-2");
    store.idle();
    assert_eq!(disk.replacements(), 1);
    drop(store);
    assert!(!holds(&disk.bytes(), "leaver-1") && holds(&disk.bytes(), "leaver-2"));
    let pace = Pace { wipe_after: LATER, ..THIN };
    let opened = Store::open_medium(Box::new(disk.clone()), Some(WorldName::Planar), None, pace, &|_| {});
    let (_store, recovered) = opened.expect("it opens");
    assert!(recovered.owes_wipe && recovered.clients.is_empty());
    comes_to("the second is gone as well", || !holds(&disk.bytes(), "leaver-2"));
}

/// Power is lost at each write of a wipe in turn: nothing else is lost with it, and it is done at the next start.
#[test]
fn a_wipe_that_is_cut_off_is_done_at_the_next_start() {
    let pace = Pace { wipe_after: LATER, ..Pace::default() };
    let opened = |disk: &Disk| open_at(disk, pace).expect("it opens");
    let before = Disk::default();
    let (store, _) = opened(&before);
    furnish(&store);
    let image = before.bytes();
    drop(store);
    let mut cut_count = 0;
    loop {
        let disk = Disk::of(image.clone());
        let (store, _) = opened(&disk);
        delete(&store, "leaver");
        disk.lose_power_after(cut_count);
        let wiped = store.wipe();
        drop(store);
        let torn = disk.torn(&mut StdRng::seed_from_u64(cut_count));
        let had = holds(&torn, "MARK-OF");
        let disk = Disk::of(torn);
        let (store, recovered) = opened(&disk);
        assert!(wiped.is_err() || !had, "after {cut_count} writes");
        assert!(!had || recovered.owes_wipe, "after {cut_count} writes it is forgotten");
        let model = Model::of(&recovered);
        assert_eq!(model.positions["walker"].coordinates[0].to_bits(), LAST.to_bits());
        assert_eq!(model.subscriptions.keys().map(|(client, _)| client).collect::<Vec<_>>(), ["stayer"]);
        comes_to("the wipe is done", || !holds(&disk.bytes(), "MARK-OF"));
        drop(store);
        if wiped.is_ok() {
            break;
        }
        cut_count += 1;
    }
    assert!(cut_count > 10, "a wipe takes more than {cut_count} writes");
}

#[test]
fn on_demand_nothing_of_what_was_forgotten_stays() {
    let folder = TempDir::new().expect("a folder");
    for is_running in [true, false] {
        let dir = folder.path().join(is_running.to_string());
        fs::create_dir(&dir).expect("a folder");
        let (store, _) = open(&dir, None, LATER).expect("a new store");
        furnish(&store);
        commit(&store, |batch| batch.forget_client("leaver"));
        let store = is_running.then_some(store);
        assert!(!is_clean(&dir), "the test sees nothing");
        let written = wipe(&dir).expect("it is written anew");
        // Position and subscription.
        assert_eq!(written.records, 2);
        assert!(is_clean(&dir), "running: {is_running}");
        drop(store);
        is_whole(&dir);
    }
}

#[test]
fn a_copy_has_nothing_of_what_was_forgotten_before() {
    let folder = TempDir::new().expect("a folder");
    let [dir, running, stopped] = ["data", "running", "stopped"].map(|name| folder.path().join(name));
    fs::create_dir(&dir).expect("a folder");
    let (store, _) = open(&dir, None, LATER).expect("a new store");
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
    let opened = Store::open_dir(&dir, Some(WorldName::Geodetic), None, THIN, &|_| {});
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
        let (opened, recovered) = open_in(&copy, Fsync::Always).expect("it opens");
        let marked = Model::of(&recovered).subscriptions.into_keys().filter(|(client, _)| client == "marked");
        assert!(marked.map(|(_, id)| id).eq((0..=round).map(|round| format!("{round:03}"))));
        drop(opened);
        fs::remove_dir_all(&copy).expect("it is ours");
    }
    drop(store);
    memory.model.subscriptions.extend(
        (0..runs(10, 200)).map(|round| (("marked".to_owned(), format!("{round:03}")), "{}".to_owned())),
    );
    let (_store, recovered) = open_in(&dir, Fsync::Always).expect("it opens again");
    assert_eq!(Model::of(&recovered), memory.model);
}

/// The file is opened again meanwhile, and what was committed is in its log.
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
    comes_to("it is copied", || {
        store.idle();
        store.is_copying()
    });
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
    let (store, _) = open_at(&disk, Pace { wipe_after: LATER, ..THIN }).expect("a new store");
    commit(&store, |batch| batch.put_position("walker", &position(EARLIER[0])));
    commit(&store, |batch| batch.put_position("walker", &position(LAST)));
    disk.leave_room(Some(0));
    let told = store.wipe().expect_err("there is no room");
    assert!(matches!(told, StoreError::Full { .. }), "{told}");
    disk.leave_room(None);
    store.wipe().expect("there is room");
    let is_there = |longitude: f64| disk.bytes().windows(8).any(|window| window == longitude.to_le_bytes());
    assert!(is_there(LAST) && !is_there(EARLIER[0]));
}
