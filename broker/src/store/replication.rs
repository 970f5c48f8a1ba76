//! A store in a cluster: a commit is durable when the cluster's ledger has it, and the file is a copy of the ledger's end.
//!
//! A row of the log goes to the ledger in parts, for the ledger takes no row as large as a row of the log may be. Each part says to
//! which commit it belongs and what a file has to know of itself, so that a member that begins with the first row needs nothing else. A commit
//! whose number a later one has failed, as in the file, and the later one takes its place.
//!
//! A snapshot is the file's description and its rows, one after the other, as a run of bytes that is cut into parts of one size.

use std::fmt::Debug;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::batch::Bytes;
use super::error::StoreError;
use super::format::{LOG, LogRow};
use super::keys::Table;
use super::records::is_whole;
use super::shared::{Shared, Snapshot};
use super::writer::Writer;
use crate::config::WorldName;

/// Where rows go in a cluster.
pub(crate) trait Ledger: Debug + Send {
    /// Appends parts one behind the other. When it returns, the cluster has them for ever, or it is not known whether it has.
    ///
    /// # Errors
    /// Why they are not known to be there. To append them again later does no harm.
    fn append(&mut self, parts: Vec<Vec<u8>>) -> Result<(), StoreError>;

    /// Whether a snapshot may begin: none is being written, and no row is under way.
    fn takes_snapshot(&self) -> bool;

    /// Begins to write the state after the last row that was appended, and the log is truncated up to the snapshot before.
    fn snapshot(&mut self, parts: SnapshotParts);
}

/// A ledger and what has to become of it.
#[derive(Debug)]
pub(super) struct Replication {
    ledger: Box<dyn Ledger>,
    world: &'static str,
    dealing: u64,
    /// Bytes of rows since the last snapshot.
    bytes: u64,
    snapshot_bytes: u64,
    /// Snapshots that are due. After a deletion there are two, for the ledger is truncated up to the last but one.
    due: u8,
    /// Whether what was removed is out of the tables since the last one became due.
    is_folded: bool,
}

/// A part of a row of the log.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Part<'a> {
    pub(super) number: u64,
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) world: &'a str,
    pub(super) dealing: u64,
    pub(super) believed_ms: u64,
    #[serde(borrow)]
    pub(super) bytes: Bytes<'a>,
}

/// An entry of a snapshot, behind its length as four bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Entry<'a> {
    Meta {
        world: &'a str,
        created_ms: &'a str,
        dealing: u64,
        folded: u64,
        next_body: u64,
        believed_ms: Option<u64>,
    },
    Row {
        table: u8,
        #[serde(borrow)]
        key: Bytes<'a>,
        value: Bytes<'a>,
    },
    Log {
        number: u64,
        #[serde(borrow)]
        row: Bytes<'a>,
    },
}

impl Entry<'_> {
    /// The table of a row.
    pub(super) fn table(&self) -> Option<Table> {
        match self {
            Self::Row { table, .. } => Table::numbered(*table),
            Self::Meta { .. } | Self::Log { .. } => None,
        }
    }
}

/// Bytes of a part of a row or of a snapshot. The ledger takes 768 KiB.
const PART_BYTES: usize = 512 << 10;
/// Bytes of rows after which the ledger gets a snapshot, so that a new member does not read for long.
pub(super) const SNAPSHOT_BYTES: u64 = 64 << 20;
/// Snapshots after which nothing of what was removed before is in the ledger.
const TO_WIPE: u8 = 2;

impl Replication {
    pub(super) fn new(ledger: Box<dyn Ledger>, world: WorldName, dealing: u64, snapshot_bytes: u64) -> Self {
        Self { ledger, world: world.name(), dealing, bytes: 0, snapshot_bytes, due: 0, is_folded: false }
    }

    pub(super) fn append(&mut self, number: u64, believed_ms: u64, row: &[u8]) -> Result<(), StoreError> {
        let count = u32::try_from(row.len().div_ceil(PART_BYTES)).unwrap_or(u32::MAX);
        let parts = (0..).zip(row.chunks(PART_BYTES)).map(|(index, bytes)| {
            let (world, dealing) = (self.world, self.dealing);
            let bytes = Bytes(bytes);
            encoded(&Part { number, index, count, world, dealing, believed_ms, bytes })
        });
        self.ledger.append(parts.collect())?;
        self.bytes += row.len() as u64;
        if self.bytes > self.snapshot_bytes {
            self.wants(1);
        }
        Ok(())
    }

    fn wants(&mut self, count: u8) {
        self.is_folded &= self.due >= count;
        self.due = self.due.max(count);
    }

    /// What was deleted is out of the file and has to leave the ledger.
    pub(super) fn wiped(&mut self) {
        self.wants(TO_WIPE);
    }

    /// A fold that was begun for a snapshot is done.
    pub(super) fn folded(&mut self) {
        self.is_folded = true;
    }
}

impl Writer {
    /// Gives the ledger a snapshot where one is due. Says whether one is due still.
    pub(super) fn snapshot_ledger(&mut self) -> bool {
        let Some(replication) = self.replication().filter(|replication| replication.due > 0) else {
            return false;
        };
        if !replication.ledger.takes_snapshot() {
            return true;
        }
        if !replication.is_folded {
            self.fold_for_ledger();
            return true;
        }
        // Whatever is committed is in the file then, and nothing is committed meanwhile.
        if let Err(error) = self.sync() {
            tracing::warn!(%error, "the ledger gets no snapshot until what was acknowledged is in the file");
            return true;
        }
        let shared = Arc::clone(&self.shared);
        let parts = shared.long_snapshot().and_then(|snapshot| SnapshotParts::begin(snapshot, &shared));
        let Some(replication) = self.replication() else { return false };
        match parts {
            Ok(parts) => {
                replication.ledger.snapshot(parts);
                (replication.bytes, replication.due) = (0, replication.due - 1);
            }
            Err(error) => tracing::warn!(%error, "the ledger gets no snapshot"),
        }
        replication.is_folded = replication.due > 0 && replication.is_folded;
        replication.due > 0
    }
}

/// The parts of a snapshot, read while they are asked for.
#[derive(Debug)]
pub(crate) struct SnapshotParts {
    snapshot: Snapshot,
    path: PathBuf,
    place: Place,
    bytes: Vec<u8>,
}

/// What is read next.
#[derive(Clone, Debug)]
enum Place {
    /// The rows of a table behind a key.
    Table(usize, Option<Vec<u8>>),
    /// The rows of the log behind a commit.
    Log(u64),
    End,
}

impl SnapshotParts {
    fn begin(snapshot: Snapshot, shared: &Shared) -> Result<Self, StoreError> {
        let path = shared.path().to_owned();
        let meta = snapshot.meta(&path)?;
        let mut bytes = Vec::new();
        push(
            &Entry::Meta {
                world: &meta.world,
                created_ms: &meta.created_ms,
                dealing: meta.dealing,
                folded: meta.folded.number,
                next_body: meta.folded.next_body,
                believed_ms: meta.believed_ms,
            },
            &mut bytes,
        );
        Ok(Self { snapshot, path, place: Place::Table(0, None), bytes })
    }

    fn read(&mut self) -> Result<(), StoreError> {
        let of = |error: redb::Error| StoreError::of("read", &self.path, error);
        let damaged = |what: &str| Err(StoreError::damaged(&self.path, what));
        let (txn, bytes) = (&self.snapshot.txn, &mut self.bytes);
        self.place = match self.place.clone() {
            Place::Table(index, behind) => {
                let Some(table) = Table::ALL.get(index).copied() else {
                    self.place = Place::Log(0);
                    return Ok(());
                };
                let rows = txn.open_table(table.rows()).map_err(|error| of(error.into()))?;
                let from = behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let rows = rows.range::<&[u8]>((from, Bound::Unbounded)).map_err(|error| of(error.into()))?;
                let mut next = Place::Table(index + 1, None);
                for row in rows {
                    let (key, value) = row.map_err(|error| of(error.into()))?;
                    let (key, value) = (key.value(), value.value());
                    if !is_whole(table, key, value) {
                        return damaged("a record does not have its checksum");
                    }
                    push(&Entry::Row { table: table as u8, key: Bytes(key), value: Bytes(value) }, bytes);
                    if bytes.len() > PART_BYTES {
                        next = Place::Table(index, Some(key.to_vec()));
                        break;
                    }
                }
                next
            }
            Place::Log(behind) => {
                let log = txn.open_table(LOG).map_err(|error| of(error.into()))?;
                let rows = log.range(behind + 1..).map_err(|error| of(error.into()))?;
                let mut next = Place::End;
                for row in rows {
                    let (number, row) = row.map_err(|error| of(error.into()))?;
                    let (number, row) = (number.value(), row.value());
                    if LogRow::unseal(number, row).is_err() {
                        return damaged("a commit does not have its checksum");
                    }
                    push(&Entry::Log { number, row: Bytes(row) }, bytes);
                    if bytes.len() > PART_BYTES {
                        next = Place::Log(number);
                        break;
                    }
                }
                next
            }
            Place::End => Place::End,
        };
        Ok(())
    }
}

impl Iterator for SnapshotParts {
    type Item = Result<Vec<u8>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.bytes.len() < PART_BYTES && !matches!(self.place, Place::End) {
            if let Err(error) = self.read() {
                return Some(Err(error.to_string()));
            }
        }
        let rest = self.bytes.split_off(self.bytes.len().min(PART_BYTES));
        let part = std::mem::replace(&mut self.bytes, rest);
        (!part.is_empty()).then_some(Ok(part))
    }
}

fn encoded(part: &Part<'_>) -> Vec<u8> {
    postcard::to_stdvec(part).expect("a vector takes everything, and all lengths are known")
}

fn push(entry: &Entry<'_>, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    postcard::to_io(entry, &mut *bytes).expect("a vector takes everything, and all lengths are known");
    let length = u32::try_from(bytes.len() - at - 4).unwrap_or(u32::MAX);
    bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
}
