//! A copy of a store, made from one snapshot of it while it is written to.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use super::copy::{Copy, Written};
use super::disk::{Counted, FileMedium, sync_dir};
use super::error::StoreError;
use super::format::{self, LogRow, Meta};
use super::lock::{self, Lock, make_dir};
use super::recovery::Contents;
use super::shared::{Request, Shared, guarded};
use super::{Store, control, replica, store_file};

/// A copy that is not finished yet.
pub(super) const PARTIAL: &str = "store.redb.partial";

/// The key by which push services know the broker, where the settings name no other. Push subscriptions count for it alone, so that a
/// copy has it, too.
pub(crate) const PUSH_KEY: &str = "push-key.pem";

/// Copies a data directory into a new one, through the broker that has it if one does.
///
/// # Errors
/// Fails as [`Store::open`] and [`Store::backup`] do.
pub(crate) fn back_up(dir: &Path, to: &Path) -> Result<Written, StoreError> {
    let to = std::path::absolute(to).map_err(|error| StoreError::io("name", to, &error))?;
    match Store::open_stopped(dir) {
        Ok(store) => store.backup(&to),
        Err(StoreError::InUse { dir, holder }) => control::ask_for_backup(&dir, &to, &holder),
        Err(error) => Err(error.no_copy(&to)),
    }
}

/// Copies what is committed now. Under its name there is a whole copy or none, and where there is none the target is as it was,
/// but for what an earlier one left there that was cut off.
pub(super) fn copy(
    shared: &Shared,
    requests: &SyncSender<Request>,
    to: &Path,
) -> Result<Written, StoreError> {
    free(to)?;
    let made: Vec<_> = to.ancestors().take_while(|dir| !dir.exists()).collect();
    let copied = make_dir(to).and_then(|()| copy_into(shared, requests, to));
    if copied.is_err() {
        for dir in made {
            // One that somebody has put something into stays.
            let _ = fs::remove_dir(dir);
        }
    }
    copied.map_err(|error| error.no_copy(to))
}

/// Refuses a target in which there is anything but what a copy left there that was cut off.
fn free(to: &Path) -> Result<(), StoreError> {
    let is_leftover = |name: &OsStr| [lock::NAME, PARTIAL, PUSH_KEY].iter().any(|left| name == *left);
    let is_taken = match fs::read_dir(to) {
        Ok(mut entries) => entries.any(|entry| entry.is_ok_and(|entry| !is_leftover(&entry.file_name()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(StoreError::io("look into", to, &error)),
    };
    if is_taken { Err(StoreError::Exists { path: to.to_owned() }) } else { Ok(()) }
}

fn copy_into(shared: &Shared, requests: &SyncSender<Request>, to: &Path) -> Result<Written, StoreError> {
    let mut lock = Lock::take(to)?;
    // Another one may have been finished meanwhile.
    free(to)?;
    let partial = to.join(PARTIAL);
    let remove = |path: &Path| match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, &error)),
        _ => Ok(()),
    };
    let copied = remove(&partial)
        .and_then(|()| guarded(shared.path(), || write_copy(shared, requests, &partial)))
        .and_then(|records| {
            copy_push_key(shared.path(), to)?;
            let bytes = finish(&partial, to).map_err(|error| StoreError::io("write", to, &error))?;
            Ok(Written { records, bytes })
        });
    match copied {
        Ok(_) => lock.sign(),
        Err(_) => {
            // What is half there is of no use to anybody. What stays all the same is found out when it is opened.
            for path in [partial, store_file(to), to.join(PUSH_KEY), to.join(lock::NAME)] {
                let _ = remove(&path);
            }
        }
    }
    copied
}

/// Copies the key for push messages, with what it permits to whom.
fn copy_push_key(store: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::copy(store.with_file_name(PUSH_KEY), to.join(PUSH_KEY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("copy into", to, &error)),
        _ => Ok(()),
    }
}

fn finish(partial: &Path, to: &Path) -> io::Result<u64> {
    let file = store_file(to);
    fs::rename(partial, &file)?;
    sync_dir(to)?;
    to.parent().map_or(Ok(()), sync_dir)?;
    Ok(fs::metadata(file)?.len())
}

/// A new file with the rows of a snapshot that was folded first: what was replaced or removed before is not in it, nor are the
/// pages that are free in the old one.
fn write_copy(shared: &Shared, requests: &SyncSender<Request>, partial: &Path) -> Result<u64, StoreError> {
    let from = shared.path();
    let _alone = shared.copying();
    let snapshot = shared.folded_snapshot(requests)?;
    let (txn, meta) = (&snapshot.txn, snapshot.meta(from)?);
    let last = shared.last.load(Ordering::Acquire);
    let inner = FileMedium::new(partial.to_owned()).create();
    let inner = inner.map_err(|error| StoreError::io("make", partial, &error))?;
    let backend = Counted { inner, read: Arc::default(), fault: Arc::default() };
    let mut copy = Copy::begin(backend, partial, &Meta { is_copy: true, ..meta })?;
    copy.tables(txn, from, || shared.goes_on())?;
    copy.log(txn, from, last, || shared.goes_on())?;
    Ok(copy.records)
}

/// Makes a copy that is served for the first time a store of its own: its sessions begin new epochs. After the copy was made the
/// original may have given offsets to events that the copy knows nothing of, and here they are given to others: who has come
/// as far there must not go on from there here.
///
/// Does so in one transaction, so that there is no time at which the copy passes for the original.
pub(super) fn take_over(shared: &Shared, contents: &mut Contents) -> Result<(), StoreError> {
    let path = shared.path();
    let batch = contents.begin_epochs();
    let number = contents.log.last + 1;
    let row = LogRow::seal(number, contents.log.next_body, std::iter::once(&batch));
    (contents.log.last, contents.log.bytes) = (number, contents.log.bytes + row.len() as u64);
    let write = |database: &redb::Database| {
        let txn = format::begin(database)?;
        format::insert(&txn, &[(number, row)])?;
        format::unmark_copy(&txn)?;
        Ok::<_, redb::Error>(txn.commit()?)
    };
    guarded(path, || match &*shared.database() {
        Some(database) => write(database).map_err(|error| StoreError::of("write", path, error)),
        None => Err(StoreError::Closed),
    })?;
    path.parent().into_iter().for_each(replica::leave);
    tracing::info!(path = %path.display(), "this is a copy, served for the first time: its sessions begin new epochs");
    Ok(())
}
