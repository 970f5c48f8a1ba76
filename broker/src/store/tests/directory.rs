//! Directories: what is made there, who may have them, checks.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use redb::{ReadableDatabase as _, ReadableTable as _};
use tempfile::TempDir;

use super::disk::Disk;
use super::{Memory, Model};
use crate::config::{self, Fsync, WorldName};
use crate::store::disk::Medium as _;
use crate::store::{Batch, Recovered, Store, StoreError, StoredSession, StoredStanding, check, format, keys};

pub(super) fn settings(dir: &Path, fsync: Fsync) -> config::Store {
    let data = dir.to_str().expect("a path in UTF-8").to_owned();
    config::Store { data, fsync, fsync_ms: 20, ack_delay_ms: 1 }
}

pub(super) fn open_in(dir: &Path, fsync: Fsync) -> Result<(Store, Recovered), StoreError> {
    Store::open(&settings(dir, fsync), WorldName::Geodetic, |_| {})
}

/// The numbers of the bodies in their table.
pub(super) fn bodies_stored(disk: &Disk) -> Vec<u64> {
    let backend = crate::store::disk::Counted {
        inner: disk.open().expect("it opens"),
        read: std::sync::Arc::default(),
        fault: Default::default(),
    };
    let database = crate::store::format::open_database(backend, Path::new("memory")).expect("it opens");
    let txn = database.begin_read().expect("it can be read");
    let rows = txn.open_table(keys::Table::Bodies.rows()).expect("there is a table");
    let number = |key: &[u8]| keys::number(key).expect("a number");
    rows.iter().expect("rows").map(|row| number(row.expect("a row").0.value())).collect()
}

pub(super) fn filled(dir: &Path, seed: u64) -> Memory {
    let (store, _) = open_in(dir, Fsync::Always).expect("a new store");
    let mut memory = Memory::new(seed);
    for _ in 0..30 {
        store.commit(&memory.batch(&store)).expect("it is committed");
        memory.committed();
    }
    memory
}

#[test]
fn what_is_made_is_the_owners_alone() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().join("a").join("b");
    let (_store, recovered) = open_in(&dir, Fsync::Interval).expect("a new store");
    assert!(recovered.clients.is_empty() && recovered.live.is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        for file in ["store.redb", "tail", "lock"] {
            assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
        }
        assert_eq!(mode(&dir.join("control")), 0o700);
    }
}

#[test]
fn one_broker_has_a_directory() {
    let folder = TempDir::new().expect("a folder");
    let (store, _) = open_in(folder.path(), Fsync::Always).expect("a new store");
    let second = open_in(folder.path(), Fsync::Always).map(drop).expect_err("it is taken").to_string();
    assert!(second.contains(&format!("process {}", std::process::id())), "{second}");
    let checked = check(folder.path()).expect_err("it is taken").to_string();
    assert!(checked.contains("in use"), "{checked}");
    drop(store);
    open_in(folder.path(), Fsync::Always).expect("it is free again");
}

#[test]
fn another_world_and_another_format_are_refused() {
    let folder = TempDir::new().expect("a folder");
    drop(open_in(folder.path(), Fsync::Always).expect("a new store"));
    let other = Store::open(&settings(folder.path(), Fsync::Always), WorldName::Planar, |_| {});
    let told = other.map(drop).expect_err("another world").to_string();
    assert!(told.contains("geodetic") && told.contains("planar"), "{told}");
    let file = folder.path().join("store.redb");
    let meta = redb::TableDefinition::<&str, &str>::new("meta");
    for other in ["3", "99"] {
        let database = redb::Database::open(&file).expect("it opens");
        let txn = database.begin_write().expect("a transaction");
        txn.open_table(meta).expect("there is a table").insert("format", other).expect("it is written");
        txn.commit().expect("it is committed");
        drop(database);
        let told = open_in(folder.path(), Fsync::Always).map(drop).expect_err("another format").to_string();
        for part in [&format!("format {other}"), &format!("format {}", format::FORMAT), "use the version"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(check(folder.path()).is_err_and(|error| error.to_string() == told));
    }
    fs::write(&file, b"something else altogether, and long enough to be looked at").expect("it is written");
    let told = open_in(folder.path(), Fsync::Always).map(drop).expect_err("no store").to_string();
    assert!(told.contains("store.redb") && told.contains("nearcast verify"), "{told}");
}

/// Format 5 had every table but the one of states, and did not say how clients are dealt out.
#[test]
fn a_file_of_the_format_before_is_taken_up() {
    let folder = TempDir::new().expect("a folder");
    let model = filled(folder.path(), 4).model;
    let file = folder.path().join("store.redb");
    let database = redb::Database::open(&file).expect("it opens");
    let txn = database.begin_write().expect("a transaction");
    let meta = redb::TableDefinition::<&str, &str>::new("meta");
    let mut rows = txn.open_table(meta).expect("there is a table");
    rows.insert("format", "5").expect("it is written");
    rows.remove("dealing").expect("it is removed");
    drop(rows);
    assert!(txn.delete_table(keys::Table::States.rows()).expect("it is deleted"));
    txn.commit().expect("it is committed");
    drop(database);
    assert!(check(folder.path()).expect("it can be read").is_whole());
    let (store, recovered) = open_in(folder.path(), Fsync::Always).expect("it opens");
    assert_eq!(Model::of(&recovered), model);
    drop(store);
    let (_, again) = open_in(folder.path(), Fsync::Always).expect("it opens again");
    assert_eq!(again.dealing, recovered.dealing, "clients come to the shards that they were in");
}

#[test]
fn opening_tells_how_far_it_has_come() {
    let folder = TempDir::new().expect("a folder");
    filled(folder.path(), 4);
    let told = RefCell::new(Vec::new());
    let settings = settings(folder.path(), Fsync::Always);
    let opened = Store::open(&settings, WorldName::Geodetic, |progress| told.borrow_mut().push(progress));
    drop(opened.expect("it opens"));
    let told = told.into_inner();
    assert!(told.iter().all(|progress| progress.done <= progress.of), "{told:?}");
    assert!(told.iter().any(|progress| progress.of > 0 && progress.done == progress.of), "{told:?}");
}

#[test]
fn what_is_not_synced_yet_is_there_after_a_stop() {
    let folder = TempDir::new().expect("a folder");
    let mut memory = Memory::new(8);
    let (mut store, _) = open_in(folder.path(), Fsync::Interval).expect("a new store");
    for round in 0..20 {
        for _ in 0..20 {
            store.commit(&memory.batch(&store)).expect("it is committed");
            memory.committed();
        }
        drop(store);
        let (again, recovered) = open_in(folder.path(), Fsync::Interval).expect("it opens again");
        assert_eq!(Model::of(&recovered), memory.model, "round {round}");
        memory.take_up(recovered);
        store = again;
    }
}

#[test]
fn a_check_says_what_is_wrong_and_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path();
    filled(dir, 6);
    let report = check(dir).expect("it can be read");
    assert!(report.is_whole(), "{report}");
    let (store, _) = open_in(dir, Fsync::Always).expect("it opens");
    let mut memory = Memory::new(9);
    let mut batch = Batch::default();
    memory.keep(&store, &mut batch, "somebody");
    batch.put_session("somebody", &StoredSession { epoch: "e".into(), offset: 0, acknowledged: 99, lost: 0 });
    batch.put_standing("a", "none such", "id:1", &StoredStanding { sequence: 1, waits: None });
    store.commit(&batch).expect("it is committed");
    drop(store);
    let listed = || {
        let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = entries
            .filter(|path| path.is_file())
            .map(|path| (fs::read(&path).expect("a file"), path))
            .collect();
        files.sort();
        files
    };
    let before = listed();
    let report = check(dir).expect("it can be read");
    let text = report.to_string();
    assert!(!report.is_whole());
    assert!(
        text.contains("acknowledged 99, and its session ends at 1") && text.contains("none such"),
        "{text}"
    );
    assert!(before == listed(), "it was changed");
    assert!(matches!(check(&dir.join("nowhere")), Err(StoreError::Io { .. })));
}

#[test]
fn a_check_sees_what_was_altered() {
    let folder = TempDir::new().expect("a folder");
    let (store, _) = open_in(folder.path(), Fsync::Always).expect("a new store");
    let mut batch = Batch::default();
    batch.put_subscription("a", "s", "this is what was written");
    store.commit(&batch).expect("it is committed");
    drop(store);
    let file = folder.path().join("store.redb");
    let mut bytes = fs::read(&file).expect("a file");
    let mut found = 0;
    for at in 0..bytes.len() - 24 {
        if &bytes[at..at + 24] == b"this is what was written" {
            bytes[at] ^= 1;
            found += 1;
        }
    }
    assert!(found > 0, "it was not written");
    fs::write(&file, bytes).expect("it is written");
    let report = check(folder.path()).expect("it can be read");
    assert!(!report.is_whole(), "{report}");
    let told = open_in(folder.path(), Fsync::Always).map(drop).expect_err("it is damaged");
    assert!(matches!(told, StoreError::Damaged { .. }), "{told}");
}

#[test]
fn an_empty_file_is_not_taken_for_a_new_store() {
    let folder = TempDir::new().expect("a folder");
    filled(folder.path(), 6);
    let file = folder.path().join("store.redb");
    fs::write(&file, b"").expect("it is written");
    let told = open_in(folder.path(), Fsync::Always).map(drop).expect_err("there is nothing in it");
    assert!(matches!(told, StoreError::Damaged { .. }) && told.to_string().contains("empty"), "{told}");
    assert!(!check(folder.path()).expect("it can be read").is_whole());
    assert_eq!(fs::metadata(&file).expect("a file").len(), 0, "something was made of it");
}

#[test]
fn a_directory_that_has_lost_its_store_is_not_taken_for_a_new_one() {
    for fsync in [Fsync::Always, Fsync::Interval] {
        let folder = TempDir::new().expect("a folder");
        let refused = |left: &str| {
            let told = open_in(folder.path(), fsync).map(drop).expect_err("it has lost its store");
            assert!(matches!(told, StoreError::Gone { left: found, .. } if found == left), "{left}: {told}");
            assert!(!folder.path().join("store.redb").exists(), "one was made");
        };
        drop(open_in(folder.path(), fsync).expect("a new store"));
        fs::remove_file(folder.path().join("store.redb")).expect("it is there");
        refused("lock");
        fs::remove_file(folder.path().join("lock")).expect("it is there");
        if fsync == Fsync::Interval {
            refused("tail");
            fs::remove_file(folder.path().join("tail")).expect("it is there");
        }
        if cfg!(unix) {
            refused("control");
            fs::remove_dir(folder.path().join("control")).expect("it is there");
        }
        // Nor is half a copy.
        fs::write(folder.path().join("store.redb.partial"), "half of it").expect("it is written");
        refused("store.redb.partial");
    }
}

#[test]
fn a_first_start_that_was_cut_off_is_done_again() {
    let folder = TempDir::new().expect("a folder");
    // All that is there before the file gets its name.
    fs::write(folder.path().join("lock"), "").expect("it is written");
    fs::write(folder.path().join("store.new"), "half of it").expect("it is written");
    drop(open_in(folder.path(), Fsync::Interval).expect("a new store"));
    assert_eq!(fs::read_to_string(folder.path().join("lock")).expect("text"), std::process::id().to_string());
}

/// Data that are written into a file without a name are lost with the process.
#[cfg(unix)]
#[test]
fn nothing_is_committed_to_a_file_that_was_taken_away() {
    for fsync in [Fsync::Always, Fsync::Interval] {
        let folder = TempDir::new().expect("a folder");
        let (dir, away) = (folder.path().join("data"), folder.path().join("away"));
        let (store, _) = open_in(&dir, fsync).expect("a new store");
        let mut memory = Memory::new(3);
        store.commit(&memory.batch(&store)).expect("it is committed");
        memory.committed();
        // Who is refused asks again.
        let batch = memory.batch(&store);
        let refused = |why: &str| {
            let told = store.commit(&batch).expect_err("nobody would find it").to_string();
            assert!(told.contains(why), "{told}");
        };
        fs::rename(&dir, &away).expect("it is moved");
        refused("taken away");
        fs::create_dir(&dir).expect("a folder");
        refused("taken away");
        fs::copy(away.join("store.redb"), dir.join("store.redb")).expect("it is copied");
        refused("another file");
        fs::remove_dir_all(&dir).expect("it is there");
        fs::rename(&away, &dir).expect("it is moved");
        store.commit(&batch).expect("it is in its place again");
        memory.committed();
        drop(store);
        let (_store, recovered) = open_in(&dir, fsync).expect("it opens again");
        assert_eq!(Model::of(&recovered), memory.model);
    }
}

#[cfg(unix)]
#[test]
fn a_store_whose_directory_is_another_ones_ends_without_it() {
    let folder = TempDir::new().expect("a folder");
    let (dir, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (first, _) = open_in(&dir, Fsync::Always).expect("a new store");
    fs::rename(&dir, folder.path().join("away")).expect("it is moved");
    let (_second, _) = open_in(&dir, Fsync::Always).expect("a new store");
    drop(first);
    crate::store::back_up(&dir, &copy).expect("the second still listens");
}
