//! A copy of a store, made from one snapshot of it while it is written to.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use redb::{ReadTransaction, ReadableTable as _};

use super::disk::{FileMedium, sync_dir};
use super::error::StoreError;
use super::format::{self, LOG, LogRow, Meta, open_database};
use super::keys::Table;
use super::lock::{self, Lock, make_dir};
use super::records::is_whole;
use super::recovery::{Contents, last_commit};
use super::writer::{self, Pace, Shared, append, guarded};
use super::{Store, control, store_file, tail, tail_file};

/// A copy that was made: a data directory with which a broker can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backup {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl fmt::Display for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} bytes", self.records, self.bytes)
    }
}

/// A copy that is not finished yet.
pub(super) const PARTIAL: &str = "store.redb.partial";
/// Bytes that are copied in one transaction.
const PART_BYTES: usize = 16 << 20;

/// Copies a data directory into a new one, through the broker that has it if one does.
///
/// # Errors
/// As [`Store::open`] and [`Store::backup`].
pub(crate) fn back_up(dir: &Path, to: &Path) -> Result<Backup, StoreError> {
    let to = std::path::absolute(to).map_err(|error| StoreError::io("name", to, &error))?;
    let file = store_file(dir);
    fs::metadata(&file).map_err(|error| StoreError::io("read", &file, &error))?;
    match Store::open_dir(dir, None, None, Pace::default(), &|_| {}) {
        Ok((store, _)) => store.backup(&to),
        Err(StoreError::InUse { dir, holder }) => control::ask_for_backup(&dir, &to, &holder),
        Err(error) => Err(error.no_copy(&to)),
    }
}

/// Copies what is committed now. Under its name there is a whole copy or none, and where there is none the target is as it was,
/// but for what an earlier one left there that was cut off.
pub(super) fn copy(shared: &Shared, to: &Path) -> Result<Backup, StoreError> {
    free(to)?;
    let made: Vec<_> = to.ancestors().take_while(|dir| !dir.exists()).collect();
    let copied = make_dir(to).and_then(|()| copy_into(shared, to));
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
    let is_leftover = |name: &OsStr| name == lock::NAME || name == PARTIAL;
    let is_taken = match fs::read_dir(to) {
        Ok(mut entries) => entries.any(|entry| entry.is_ok_and(|entry| !is_leftover(&entry.file_name()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(StoreError::io("look into", to, &error)),
    };
    if is_taken { Err(StoreError::Exists { path: to.to_owned() }) } else { Ok(()) }
}

fn copy_into(shared: &Shared, to: &Path) -> Result<Backup, StoreError> {
    let mut lock = Lock::take(to)?;
    // Another one may have been finished meanwhile.
    free(to)?;
    let partial = to.join(PARTIAL);
    let remove = |path: &Path| match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, &error)),
        _ => Ok(()),
    };
    let copied = remove(&partial)
        .and_then(|()| guarded(shared.path(), || write_copy(shared, &partial)))
        .and_then(|records| {
            let bytes = finish(&partial, to).map_err(|error| StoreError::io("write", to, &error))?;
            Ok(Backup { records, bytes })
        });
    match copied {
        Ok(_) => lock.sign(),
        Err(_) => {
            // What is half there is of no use to anybody. What stays all the same is found out when it is opened.
            for path in [partial, store_file(to), to.join(lock::NAME)] {
                let _ = remove(&path);
            }
        }
    }
    copied
}

fn finish(partial: &Path, to: &Path) -> io::Result<u64> {
    let file = store_file(to);
    fs::rename(partial, &file)?;
    sync_dir(to)?;
    to.parent().map_or(Ok(()), sync_dir)?;
    Ok(fs::metadata(file)?.len())
}

/// A new file with the rows of a snapshot: without the pages that are free in the old one. And with what was acknowledged
/// before it was synced.
fn write_copy(shared: &Shared, partial: &PathBuf) -> Result<u64, StoreError> {
    let from = shared.path();
    // Read first: what is put into the log meanwhile is in the snapshot, and is passed over here.
    let tail = from.parent().map_or_else(|| Ok(Vec::new()), |dir| tail::bytes(&tail_file(dir)))?;
    let txn = shared.snapshot()?;
    let Some(meta) = Meta::read(&txn, from)? else {
        return Err(StoreError::damaged(from, "there is nothing in it"));
    };
    let backend = FileMedium::new(partial.clone()).create();
    let backend = backend.map_err(|error| StoreError::io("make", partial, &error))?;
    let database = open_database(
        super::disk::Counted { inner: backend, read: Default::default(), fault: Default::default() },
        partial,
    )?;
    let mut copy = Copy { shared, database, partial, records: 0 };
    let mark = Meta { is_copy: true, ..meta.clone() };
    copy.in_one(|txn| mark.write(txn).map(|()| 0))?;
    copy.log(&txn)?;
    let last = last_commit(&txn, &meta).map_err(|error| StoreError::of("read", from, error))?;
    let rows = tail::rows_after(&tail, last).rows;
    append(&copy.database, partial, &rows)?;
    copy.records += rows.len() as u64;
    for table in Table::ALL {
        copy.table(&txn, table)?;
    }
    Ok(copy.records)
}

/// Makes a copy that is served for the first time a store of its own: its sessions begin new epochs. After the copy was made the
/// original may have given offsets to events that the copy knows nothing of, and here they are given to others: who has come
/// as far there must not go on from there here.
///
/// In one transaction, so that there is no time at which the copy passes for the original.
pub(super) fn take_over(shared: &Shared, contents: &mut Contents) -> Result<(), StoreError> {
    let path = shared.path();
    let batch = contents.begin_epochs();
    let number = contents.log.last + 1;
    let row = LogRow::seal(number, contents.log.next_body, std::iter::once(&batch));
    (contents.log.last, contents.log.bytes) = (number, contents.log.bytes + row.len() as u64);
    let write = |database: &redb::Database| {
        let txn = writer::begin(database)?;
        writer::insert(&txn, &[(number, row)])?;
        format::unmark_copy(&txn)?;
        Ok::<_, redb::Error>(txn.commit()?)
    };
    guarded(path, || match &*shared.database() {
        Some(database) => write(database).map_err(|error| StoreError::of("write", path, error)),
        None => Err(StoreError::Closed),
    })?;
    tracing::info!(path = %path.display(), "this is a copy, served for the first time: its sessions begin new epochs");
    Ok(())
}

struct Copy<'a> {
    shared: &'a Shared,
    database: redb::Database,
    partial: &'a Path,
    records: u64,
}

impl Copy<'_> {
    fn in_one(
        &mut self,
        work: impl FnOnce(&redb::WriteTransaction) -> Result<u64, redb::Error>,
    ) -> Result<(), StoreError> {
        let done = || {
            let txn = self.database.begin_write()?;
            let records = work(&txn)?;
            txn.commit()?;
            Ok::<_, redb::Error>(records)
        };
        self.records += done().map_err(|error| StoreError::of("write", self.partial, error))?;
        if self.shared.is_closing.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) }
    }

    fn log(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let from = self.shared.path();
        let of = |error: redb::Error| StoreError::of("read", from, error);
        let log = txn.open_table(LOG).map_err(|error| of(error.into()))?;
        for row in log.iter().map_err(|error| of(error.into()))? {
            let (number, row) = row.map_err(|error| of(error.into()))?;
            let (number, row) = (number.value(), row.value());
            if let Err(what) = LogRow::unseal(number, row) {
                return Err(StoreError::damaged(from, format!("commit {number} {what}")));
            }
            self.in_one(|txn| {
                txn.open_table(LOG)?.insert(number, row)?;
                Ok(1)
            })?;
        }
        Ok(())
    }

    fn table(&mut self, txn: &ReadTransaction, table: Table) -> Result<(), StoreError> {
        let from = self.shared.path();
        let of = |error: redb::Error| StoreError::of("read", from, error);
        let rows = txn.open_table(table.rows()).map_err(|error| of(error.into()))?;
        let mut rows = rows.iter().map_err(|error| of(error.into()))?;
        loop {
            let (mut part, mut bytes) = (Vec::new(), 0);
            while bytes < PART_BYTES
                && let Some(row) = rows.next()
            {
                let (key, value) = row.map_err(|error| of(error.into()))?;
                if !is_whole(table, key.value(), value.value()) {
                    let what = format!("a record of table {} does not have its checksum", table.name());
                    return Err(StoreError::damaged(from, what));
                }
                bytes += key.value().len() + value.value().len();
                part.push((key, value));
            }
            if part.is_empty() {
                return Ok(());
            }
            self.in_one(|txn| {
                let mut copies = txn.open_table(table.rows())?;
                for (key, value) in &part {
                    copies.insert(key.value(), value.value())?;
                }
                Ok(part.len() as u64)
            })?;
        }
    }
}
