//! A new file with the rows of a snapshot, and with nothing of what was in the old one before it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableTable as _};

use super::disk::{Counted, Fault};
use super::error::StoreError;
use super::format::{LOG, LogRow, Meta, append, open_database};
use super::keys::Table;
use super::records::is_whole;
use super::tail::NumberedRow;

/// How much was written into a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} bytes", self.records, self.bytes)
    }
}

/// A file that is being written, and that nobody else knows yet.
#[derive(Debug)]
pub(super) struct Copy {
    database: Database,
    fault: Arc<Fault>,
    path: PathBuf,
    /// Rows that are in it.
    pub(super) records: u64,
    /// Up to which commit it has the log.
    last: u64,
}

/// Bytes that are copied in one transaction.
const PART_BYTES: usize = 4 << 20;

impl Copy {
    /// Makes all tables in an empty file.
    pub(super) fn begin(backend: Counted, path: &Path, meta: &Meta) -> Result<Self, StoreError> {
        let (fault, last) = (Arc::clone(&backend.fault), meta.folded.number);
        let database = open_database(backend, path)?;
        let copy = Self { database, fault, path: path.to_owned(), records: 0, last };
        copy.in_one(|txn| meta.write(txn))?;
        Ok(copy)
    }

    /// Copies the rows of all tables, but for the one that says that a wipe is due: nothing of what was removed is in the copy.
    /// `between` is called after each part, and may end it.
    pub(super) fn tables(
        &mut self,
        txn: &ReadTransaction,
        from: &Path,
        mut between: impl FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for table in Table::ALL.into_iter().filter(|table| *table != Table::Wipe) {
            self.table(txn, from, table, &mut between)?;
        }
        Ok(())
    }

    fn table(
        &mut self,
        txn: &ReadTransaction,
        from: &Path,
        table: Table,
        between: &mut impl FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
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
                Ok(())
            })?;
            self.records += part.len() as u64;
            between()?;
        }
    }

    /// Copies the rows of the log that it does not have, up to commit `last`; says how many bytes those were.
    pub(super) fn log(
        &mut self,
        txn: &ReadTransaction,
        from: &Path,
        last: u64,
        mut between: impl FnMut() -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let of = |error: redb::Error| StoreError::of("read", from, error);
        let mut copied = 0;
        let log = txn.open_table(LOG).map_err(|error| of(error.into()))?;
        let mut rows = log.range(self.last + 1..=last).map_err(|error| of(error.into()))?;
        loop {
            let (mut part, mut bytes) = (Vec::<NumberedRow>::new(), 0);
            while bytes < PART_BYTES
                && let Some(row) = rows.next()
            {
                let (number, row) = row.map_err(|error| of(error.into()))?;
                let (number, row) = (number.value(), row.value());
                if let Err(what) = LogRow::unseal(number, row) {
                    return Err(StoreError::damaged(from, format!("commit {number} {what}")));
                }
                bytes += row.len();
                part.push((number, row.to_vec()));
            }
            // In two phases, as a commit is; where there is nothing to append this seals what came before.
            append(&self.database, &self.path, &part).map_err(|error| self.told(error))?;
            self.records += part.len() as u64;
            let Some((number, _)) = part.last() else { break };
            self.last = *number;
            copied += bytes as u64;
            between()?;
        }
        Ok(copied)
    }

    /// Gives the database away to the writer of the copy, with the record of its failures.
    pub(super) fn into_parts(self) -> (Database, Arc<Fault>) {
        (self.database, self.fault)
    }

    fn in_one(
        &self,
        work: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let done = || {
            let txn = self.database.begin_write()?;
            work(&txn)?;
            Ok::<_, redb::Error>(txn.commit()?)
        };
        done().map_err(|error| self.told(StoreError::of("write", &self.path, error)))
    }

    /// Puts the first failure in the place of an error, since the library may not tell it.
    fn told(&self, error: StoreError) -> StoreError {
        self.fault.take().map_or(error, |fault| StoreError::io("write", &self.path, &fault))
    }
}
