//! Copies of a directory: what is in them, and what a broker makes of one.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::directory::{filled, open_in};
use super::disk::Disk;
use super::{Memory, Model, open};
use crate::config::Fsync;
use crate::store::lock::Lock;
use crate::store::{Batch, Store, StoreError, back_up, check, control};

/// Opens a copy as a broker does for the first time. But for the epochs of its sessions it has to be what was copied; these are
/// returned.
#[track_caller]
fn serve(copy: &Path, memory: &Memory) -> (Store, Vec<String>) {
    let (store, recovered) = open_in(copy, Fsync::Always).expect("a broker can start with it");
    let mut model = Model::of(&recovered);
    let mut epochs = Vec::new();
    for (name, session) in &mut model.sessions {
        let before = memory.model.sessions[name].epoch.clone();
        assert_ne!(session.epoch, before, "{name} goes on in the original's session");
        epochs.push(std::mem::replace(&mut session.epoch, before).to_string());
    }
    assert!(!epochs.is_empty(), "there are no sessions to speak of");
    assert_eq!(model, memory.model);
    (store, epochs)
}

#[test]
fn a_copy_is_made_of_a_store_that_runs_and_of_one_that_does_not() {
    let folder = TempDir::new().expect("a folder");
    let (dir, first, second) =
        (folder.path().join("data"), folder.path().join("first"), folder.path().join("second"));
    let memory = filled(&dir, 5);
    back_up(&dir, &first).expect("nobody has it");
    let (store, recovered) = open_in(&dir, Fsync::Always).expect("it opens");
    assert_eq!(Model::of(&recovered), memory.model);
    back_up(&dir, &second).expect("the one that has it copies it");
    let again = back_up(&dir, &second).expect_err("it is there").to_string();
    assert!(again.contains("not overwritten"), "{again}");
    let mut batch = Batch::default();
    batch.put_subscription("later", "s", "{}");
    store.commit(&batch).expect("it goes on");
    for copy in [&first, &second] {
        assert!(check(copy).expect("it can be read").is_whole());
        serve(copy, &memory);
    }
    let nothing = back_up(&folder.path().join("nowhere"), &folder.path().join("third"));
    assert!(nothing.is_err() && !folder.path().join("third").exists());
}

#[test]
fn a_copy_begins_new_epochs_once_when_it_is_served() {
    let folder = TempDir::new().expect("a folder");
    let [dir, copy, of_copy, later] =
        ["data", "copy", "of-copy", "later"].map(|name| folder.path().join(name));
    let memory = filled(&dir, 5);
    back_up(&dir, &copy).expect("nobody has it");
    // Neither a check nor another copy is a broker; and a copy of a copy is one.
    assert!(check(&copy).expect("it can be read").is_whole());
    back_up(&copy, &of_copy).expect("nobody has it");
    let (store, epochs) = serve(&copy, &memory);
    assert_ne!(serve(&of_copy, &memory).1, epochs);
    // It is a store of its own now.
    drop(store);
    assert!(check(&copy).expect("it can be read").is_whole());
    let (_store, recovered) = open_in(&copy, Fsync::Always).expect("it opens again");
    let model = Model::of(&recovered);
    assert!(model.sessions.values().map(|session| session.epoch.to_string()).eq(epochs.iter().cloned()));
    // And so is the original, whose copies are copies of it.
    let (_store, recovered) = open_in(&dir, Fsync::Always).expect("it opens");
    assert_eq!(Model::of(&recovered), memory.model);
    back_up(&copy, &later).expect("the one that has it copies it");
    let (_store, recovered) = open_in(&later, Fsync::Always).expect("it opens");
    let sessions = Model::of(&recovered).sessions;
    assert!(sessions.values().all(|session| !epochs.contains(&session.epoch.to_string())));
}

/// The new epochs and the end of the mark are one commit: a process that ends in the middle leaves a copy.
#[test]
fn a_copy_stays_one_until_its_epochs_are_on_disk() {
    let folder = TempDir::new().expect("a folder");
    let (dir, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let memory = filled(&dir, 7);
    back_up(&dir, &copy).expect("nobody has it");
    let image = fs::read(copy.join("store.redb")).expect("a file");
    let mut cut_count = 0;
    loop {
        let disk = Disk::of(image.clone());
        disk.lose_power_after(cut_count);
        if open(&disk).is_ok() {
            break;
        }
        let torn = disk.torn(&mut StdRng::seed_from_u64(cut_count));
        let (_store, recovered) = open(&Disk::of(torn)).expect("it opens");
        for (name, session) in Model::of(&recovered).sessions {
            assert_ne!(session.epoch, memory.model.sessions[&name].epoch, "{name}, after {cut_count} writes");
        }
        cut_count += 1;
    }
    assert!(cut_count > 1, "nothing was written");
}

#[test]
fn a_copy_that_fails_leaves_its_target_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    let [dir, new, empty] = ["data", "a/new/folder", "empty"].map(|name| folder.path().join(name));
    let memory = filled(&dir, 5);
    fs::create_dir(&empty).expect("a folder");
    let (store, _) = open_in(&dir, Fsync::Always).expect("it opens");
    // Ends a copy after its first part.
    let is_closing = &store.inner.shared.is_closing;
    is_closing.store(true, Ordering::Relaxed);
    for target in [&new, &empty] {
        let told = store.backup(target).expect_err("the store closes");
        assert!(matches!(&told, StoreError::NoCopy { to, .. } if to == target), "{told}");
    }
    assert!(!folder.path().join("a").exists());
    assert_eq!(fs::read_dir(&empty).expect("it stays").count(), 0);
    is_closing.store(false, Ordering::Relaxed);
    for target in [&new, &empty] {
        store.backup(target).expect("nothing is in the way");
        serve(target, &memory);
    }
}

#[test]
fn what_a_copy_left_that_was_cut_off_is_in_nobodys_way() {
    let folder = TempDir::new().expect("a folder");
    let (dir, target) = (folder.path().join("data"), folder.path().join("target"));
    let memory = filled(&dir, 5);
    fs::create_dir(&target).expect("a folder");
    fs::write(target.join("store.redb.partial"), "half of it").expect("it is written");
    let lock = Lock::take(&target).expect("nobody has it");
    let told = back_up(&dir, &target).expect_err("another copy is being made").to_string();
    assert!(told.contains("in use") && target.join("store.redb.partial").exists(), "{told}");
    drop(lock);
    back_up(&dir, &target).expect("nobody makes that one any more");
    serve(&target, &memory);
    // What is not a copy's is left alone.
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("letter"), "dear all").expect("it is written");
    let told = back_up(&dir, &other).expect_err("there is something").to_string();
    assert!(told.contains("not overwritten"), "{told}");
    assert_eq!(fs::read_dir(&other).expect("a folder").count(), 1, "something was put there");
}

#[cfg(unix)]
#[test]
fn who_asks_a_broker_that_ends_is_told_so() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("control")).expect("a folder");
    let listener = UnixListener::bind(folder.path().join("control").join("socket")).expect("a socket");
    let broker = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("somebody asks");
        let mut order = String::new();
        BufReader::new(stream).read_line(&mut order).expect("a line");
    });
    let told = control::ask_for_backup(folder.path(), Path::new("/where/to"), "process 7").map(drop);
    let told = told.expect_err("it says nothing").to_string();
    broker.join().expect("no panic");
    assert!(told.contains("no copy was made in /where/to: process 7") && told.contains("ended"), "{told}");
}
