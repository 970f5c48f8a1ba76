//! The parts of the file besides the tables of [`keys`](super::keys): the log, and the description of the file.

use std::collections::HashSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use redb::{
    Database, ReadTransaction, ReadableDatabase as _, TableDefinition, TableHandle as _, WriteTransaction,
};

use super::batch::Batch;
use super::error::StoreError;
use super::keys::Table;
use super::tail::NumberedRow;
use crate::config::WorldName;

/// Version of all of this, and the only one that is read; a file of the one before becomes one of this. Whoever changes what is written counts it up.
pub(super) const FORMAT: u32 = 6;
/// The version before, which has no table of states, and deals clients out anew at each start.
const FORMAT_BEFORE: &str = "5";

/// Commit number -> [`LogRow`].
pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
/// `format`, `world`, `created_ms`; `dealing`: how clients are dealt out among shards; `folded`: the last commit that is in the tables, and the next body's number then; `copy`: in
/// a copy, until a broker serves it; `believed_ms`: the time of some commit, which the log says of none.
const META: TableDefinition<'static, &str, &str> = TableDefinition::new("meta");

const DEALING: &str = "dealing";
const COPY: &str = "copy";
const BELIEVED_MS: &str = "believed_ms";

/// Pages that are kept in memory. Reading is done at the start; folding touches what it comes by.
const CACHE_BYTES: usize = 32 << 20;

/// The description of a file, as the file has it.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub(super) world: String,
    pub(super) created_ms: String,
    /// Clients are dealt out among shards by it, so that each start deals them out alike.
    pub(super) dealing: u64,
    pub(super) folded: Folded,
    /// Whether it was copied from another and no broker has served it yet.
    pub(super) is_copy: bool,
    /// The time of the last commit that said it, as far as its broker believed the clock.
    pub(super) believed_ms: Option<u64>,
}

/// Up to where the log is in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) number: u64,
    pub(super) next_body: u64,
}

/// A row of the log: what one group of batches changes, at once.
#[derive(Debug)]
pub(super) struct LogRow<'a> {
    pub(super) next_body: u64,
    pub(super) ops: &'a [u8],
}

/// Opens a file of the library's, makes one where there is nothing, and reads all of it to see whether it is whole.
pub(super) fn open_database(backend: impl redb::StorageBackend, path: &Path) -> Result<Database, StoreError> {
    redb::Builder::new()
        .set_cache_size(CACHE_BYTES)
        .set_check_integrity_on_open(true)
        .create_with_backend(backend)
        .map_err(|error| StoreError::of("open", path, error))
}

impl Meta {
    pub(super) fn new(world: WorldName) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            world: world.name().to_owned(),
            created_ms: created.as_millis().to_string(),
            dealing: rand::random(),
            folded: Folded::default(),
            is_copy: false,
            believed_ms: None,
        }
    }

    /// Reads the description from the file; `None` in a new one.
    pub(super) fn read(txn: &ReadTransaction, path: &Path) -> Result<Option<Self>, StoreError> {
        let of = |error: redb::Error| StoreError::of("read", path, error);
        if txn.list_tables().map_err(|error| of(error.into()))?.next().is_none() {
            return Ok(None);
        }
        let table = txn.open_table(META).map_err(|error| of(error.into()))?;
        let text = |key: &str| match table.get(key) {
            Ok(Some(value)) => Ok(value.value().to_owned()),
            Ok(None) => Err(StoreError::damaged(path, format!("it does not say its {key}"))),
            Err(error) => Err(of(error.into())),
        };
        let found = text("format")?;
        if found != FORMAT.to_string() {
            return Err(StoreError::OtherFormat { path: path.to_owned(), found, known: FORMAT });
        }
        let folded = text("folded")?;
        let folded = Folded::parse(&folded).ok_or_else(|| {
            StoreError::damaged(path, format!("{folded:?} is not up to where it is folded"))
        })?;
        let dealing = text(DEALING)?.parse();
        let dealing =
            dealing.map_err(|_| StoreError::damaged(path, "its dealing is no number".to_owned()))?;
        let is_copy = table.get(COPY).map_err(|error| of(error.into()))?.is_some();
        let believed_ms = table.get(BELIEVED_MS).map_err(|error| of(error.into()))?;
        let believed_ms = believed_ms.and_then(|text| text.value().parse().ok());
        let (world, created_ms) = (text("world")?, text("created_ms")?);
        Ok(Some(Self { world, created_ms, dealing, folded, is_copy, believed_ms }))
    }

    pub(super) fn check_world(&self, path: &Path, world: WorldName) -> Result<(), StoreError> {
        let wanted = world.name();
        if self.world == wanted {
            return Ok(());
        }
        Err(StoreError::OtherWorld {
            path: path.to_owned(),
            found: self.world.clone(),
            wanted: wanted.to_owned(),
        })
    }

    /// Makes all tables of a new file.
    pub(super) fn write(&self, txn: &WriteTransaction) -> Result<(), redb::Error> {
        let mut table = txn.open_table(META)?;
        table.insert("format", &*FORMAT.to_string())?;
        table.insert("world", &*self.world)?;
        table.insert("created_ms", &*self.created_ms)?;
        table.insert(DEALING, &*self.dealing.to_string())?;
        if self.is_copy {
            table.insert(COPY, "")?;
        }
        if let Some(believed_ms) = self.believed_ms {
            table.insert(BELIEVED_MS, &*believed_ms.to_string())?;
        }
        drop(table);
        self.folded.write(txn)?;
        txn.open_table(LOG)?;
        for table in Table::ALL {
            txn.open_table(table.rows())?;
        }
        Ok(())
    }
}

/// Makes a file of the version before one of this version, and adds the tables that this version has for clusters alone.
pub(super) fn upgrade(database: &Database, path: &Path) -> Result<(), StoreError> {
    let is_older = || {
        let txn = database.begin_read()?;
        if txn.list_tables()?.next().is_none() {
            return Ok::<_, redb::Error>(false);
        }
        let meta = txn.open_table(META)?;
        Ok(meta.get("format")?.is_some_and(|format| format.value() == FORMAT_BEFORE))
    };
    let of_clusters = [Table::Frontiers, Table::Findings];
    let lacks_some = || {
        let txn = database.begin_read()?;
        let there: Vec<_> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
        let is_there = |table: &Table| there.iter().any(|name| *name == table.name());
        Ok::<_, redb::Error>(!there.is_empty() && !of_clusters.iter().all(is_there))
    };
    if lacks_some().map_err(|error| StoreError::of("read", path, error))? {
        let add = || {
            let txn = begin(database)?;
            for table in of_clusters {
                txn.open_table(table.rows())?;
            }
            Ok::<_, redb::Error>(txn.commit()?)
        };
        add().map_err(|error| StoreError::of("write", path, error))?;
    }
    let upgrade = || {
        let txn = begin(database)?;
        txn.open_table(Table::States.rows())?;
        let mut meta = txn.open_table(META)?;
        meta.insert("format", &*FORMAT.to_string())?;
        meta.insert(DEALING, &*rand::random::<u64>().to_string())?;
        drop(meta);
        Ok::<_, redb::Error>(txn.commit()?)
    };
    if is_older().map_err(|error| StoreError::of("read", path, error))? {
        upgrade().map_err(|error| StoreError::of("write", path, error))?;
    }
    Ok(())
}

/// A copy is a store like others from here on.
pub(super) fn unmark_copy(txn: &WriteTransaction) -> Result<(), redb::Error> {
    txn.open_table(META)?.remove(COPY)?;
    Ok(())
}

/// Notes the time.
pub(super) fn date(txn: &WriteTransaction, believed_ms: u64) -> Result<(), redb::Error> {
    txn.open_table(META)?.insert(BELIEVED_MS, &*believed_ms.to_string())?;
    Ok(())
}

impl Folded {
    fn parse(text: &str) -> Option<Self> {
        let (number, next_body) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, next_body: next_body.parse().ok()? })
    }

    pub(super) fn write(self, txn: &WriteTransaction) -> Result<(), redb::Error> {
        let Self { number, next_body } = self;
        txn.open_table(META)?.insert("folded", &*format!("{number} {next_body}"))?;
        Ok(())
    }
}

/// Reads what a file says about itself, or makes it so where it is new.
pub(super) fn prepare(
    database: &Database,
    path: &Path,
    world: Option<WorldName>,
) -> Result<Meta, StoreError> {
    let of = |error: redb::Error| StoreError::of("write", path, error);
    upgrade(database, path)?;
    let txn = database.begin_read().map_err(|error| of(error.into()))?;
    match (Meta::read(&txn, path)?, world) {
        (Some(meta), world) => {
            if let Some(world) = world {
                meta.check_world(path, world)?;
            }
            Ok(meta)
        }
        (None, None) => Err(StoreError::damaged(path, "there is nothing in it")),
        (None, Some(world)) => {
            let meta = Meta::new(world);
            let mut txn = database.begin_write().map_err(|error| of(error.into()))?;
            txn.set_two_phase_commit(true);
            meta.write(&txn).map_err(of)?;
            txn.commit().map_err(|error| of(error.into()))?;
            Ok(meta)
        }
    }
}

impl<'a> LogRow<'a> {
    /// The row as it is written under its number: a CRC-32 over the number and what follows, the next body's number,
    /// and the changes.
    pub(super) fn seal<'b>(number: u64, next_body: u64, batches: impl Iterator<Item = &'b Batch>) -> Vec<u8> {
        let mut row = vec![0; 4];
        row.extend_from_slice(&next_body.to_le_bytes());
        let mut bodies = HashSet::new();
        batches.for_each(|batch| batch.write_to(&mut row, &mut bodies));
        let crc = crc(number, &row[4..]);
        row[..4].copy_from_slice(&crc);
        row
    }

    pub(super) fn unseal(number: u64, row: &'a [u8]) -> Result<Self, &'static str> {
        let Some((sum, rest)) = row.split_first_chunk::<4>() else { return Err("is cut off") };
        if *sum != crc(number, rest) {
            return Err("does not have the checksum that was written with it");
        }
        let Some((next_body, ops)) = rest.split_first_chunk::<8>() else { return Err("is cut off") };
        Ok(Self { next_body: u64::from_le_bytes(*next_body), ops })
    }
}

pub(super) fn crc(number: u64, rest: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_be_bytes());
    hasher.update(rest);
    hasher.finalize().to_le_bytes()
}

pub(super) fn begin(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut txn = database.begin_write()?;
    // In one phase a bit that flips in the last commit looks like a commit that never was.
    txn.set_two_phase_commit(true);
    Ok(txn)
}

pub(super) fn insert(txn: &WriteTransaction, rows: &[NumberedRow]) -> Result<(), redb::Error> {
    let mut log = txn.open_table(LOG)?;
    for (number, row) in rows {
        // A commit that failed may have happened: what takes its number takes its place.
        log.insert(number, &**row)?;
    }
    Ok(())
}

/// Appends rows to the log of a file that nobody else writes.
pub(super) fn append(database: &Database, path: &Path, rows: &[NumberedRow]) -> Result<(), StoreError> {
    let append = || {
        let txn = begin(database)?;
        insert(&txn, rows)?;
        Ok::<_, redb::Error>(txn.commit()?)
    };
    append().map_err(|error| StoreError::of("write", path, error))
}
