//! The file of a member of a cluster, as the cluster's ledger makes it. It is made anew whenever the member begins to read, so that it has nothing
//! that the ledger has not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::ledger::State;
use cluster::log::Identity;
use redb::Database;

use super::disk::{Counted, FileMedium};
use super::error::StoreError;
use super::format::{self, Folded, LOG, LogRow, Meta};
use super::lock::{self, Lock};
use super::records::is_whole;
use super::replication::{Entry, Part};
use super::store_file;
use super::tail::NumberedRow;
use crate::config::WorldName;

/// A directory that follows a ledger.
#[derive(Debug)]
pub(crate) struct Replica {
    dir: PathBuf,
    lock: Option<Lock>,
    world: WorldName,
    database: Option<Database>,
    /// Why the file could not be removed, or begun.
    fault: Option<String>,
    /// Bytes of a snapshot that are no whole entry yet.
    bytes: Vec<u8>,
    /// The last commit, and the first bytes of the next one.
    last: u64,
    parts: Vec<u8>,
    parts_count: u32,
    /// Commits that are not in the file yet.
    rows: Vec<NumberedRow>,
    rows_bytes: usize,
    believed_ms: u64,
}

/// Name of the file that says that the ledger went back since this member was the active one.
const WENT_BACK: &str = "went-back";
/// Name of the file that has the last record of the ledger that is known to be there.
const KNOWN: &str = "known";
/// Name of the file by which a directory is known to be a member's.
const MEMBER: &str = "member";
/// Bytes of commits that go into the file at once.
const WRITE_BYTES: usize = 4 << 20;

impl Replica {
    /// Takes a directory, made if it is not there.
    ///
    /// # Errors
    /// A directory that another broker has, or that has the data of a broker that is in no cluster.
    pub(crate) fn take(dir: &Path, world: WorldName) -> Result<(Self, String), StoreError> {
        lock::make_dir(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join(MEMBER);
        let of = |error: io::Error| StoreError::io("read or make", &path, &error);
        let name = match fs::read_to_string(&path) {
            Ok(name) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => name,
            Ok(_) => return Err(StoreError::damaged(&path, "it is not the name of a member")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if super::is_there(&store_file(dir))? {
                    return Err(StoreError::NotOfCluster { dir: dir.to_owned() });
                }
                let name = format!("{:016x}", rand::random::<u64>());
                fs::write(&path, &name).map_err(of)?;
                name
            }
            Err(error) => return Err(of(error)),
        };
        let replica = Self {
            dir: dir.to_owned(),
            lock: Some(lock),
            world,
            database: None,
            fault: None,
            bytes: Vec::new(),
            last: 0,
            parts: Vec::new(),
            parts_count: 0,
            rows: Vec::new(),
            rows_bytes: 0,
            believed_ms: 0,
        };
        Ok((replica, name))
    }

    /// Whether the directory has the file of a ledger that was followed before.
    pub(crate) fn is_there(&self) -> Result<bool, StoreError> {
        super::is_there(&store_file(&self.dir))
    }

    /// Notes that the ledger went back: what was acknowledged is gone, and offsets may be given again. Whenever this member takes over, its
    /// sessions begin new epochs.
    pub(crate) fn note_went_back(dir: &Path) {
        if let Err(error) = fs::write(dir.join(WENT_BACK), "") {
            tracing::error!(%error, "sessions will not begin new epochs, although the ledger went back");
        }
        // What stays makes this member notice once more.
        let _ = fs::remove_file(dir.join(KNOWN));
    }

    /// Notes the last record of the ledger, so that the next process of this member notices that the ledger went back while none ran. It is not
    /// synced: a loss of power may leave an older one.
    pub(crate) fn note_known(dir: &Path, Identity { sequence, crc, .. }: Identity) {
        let new = dir.join(format!("{KNOWN}.new"));
        let noted =
            fs::write(&new, format!("{sequence} {crc}")).and_then(|()| fs::rename(&new, dir.join(KNOWN)));
        if let Err(error) = noted {
            tracing::warn!(%error, "the last record of the cluster's ledger cannot be noted");
        }
    }

    /// What was noted, if anything.
    pub(crate) fn known(dir: &Path) -> Option<Identity> {
        let text = fs::read_to_string(dir.join(KNOWN)).ok()?;
        let (sequence, crc) = text.split_once(' ')?;
        Some(Identity { sequence: sequence.parse().ok()?, time_us: None, crc: crc.parse().ok()? })
    }

    /// Puts everything into the file, and gives the directory's lock to the store that opens it.
    pub(super) fn finish(mut self) -> Result<(PathBuf, Option<Lock>), StoreError> {
        if let Some(fault) = self.fault.take() {
            return Err(StoreError::damaged(&store_file(&self.dir), fault));
        }
        if self.database.is_none() {
            let meta = Meta { is_copy: true, ..Meta::new(self.world) };
            self.begin(&meta)?;
        }
        self.write()?;
        self.database = None;
        Ok((self.dir, self.lock))
    }

    fn begin(&mut self, meta: &Meta) -> Result<(), StoreError> {
        meta.check_world(&self.dir, self.world)?;
        let path = store_file(&self.dir);
        let inner = FileMedium::new(path.clone()).create();
        let inner = inner.map_err(|error| StoreError::io("make", &path, &error))?;
        let backend = Counted { inner, read: Arc::default(), fault: Arc::default() };
        let database = format::open_database(backend, &path)?;
        self.last = meta.folded.number;
        self.in_file(&database, |txn| meta.write(txn))?;
        self.database = Some(database);
        Ok(())
    }

    fn in_file(
        &self,
        database: &Database,
        work: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let done = || {
            let txn = format::begin(database)?;
            work(&txn)?;
            Ok::<_, redb::Error>(txn.commit()?)
        };
        done().map_err(|error| StoreError::of("write", &store_file(&self.dir), error))
    }

    /// Puts the commits that wait into the file.
    fn write(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.rows);
        self.rows_bytes = 0;
        if let Some(database) = self.database.as_ref().filter(|_| !rows.is_empty()) {
            self.in_file(database, |txn| {
                format::insert(txn, &rows)?;
                if self.believed_ms > 0 { format::date(txn, self.believed_ms) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    fn take_part(&mut self, row: &[u8]) -> Result<(), String> {
        let part: Part<'_> = postcard::from_bytes(row).map_err(|error| error.to_string())?;
        let Part { number, index, count, world, dealing, believed_ms, bytes } = part;
        if index == 0 {
            // A commit that was not finished before it is one that failed.
            self.parts.clear();
            self.parts_count = 0;
        }
        if index != self.parts_count {
            // Its beginning was in a snapshot's past: a commit that failed.
            return Ok(());
        }
        self.parts.extend_from_slice(bytes.0);
        self.parts_count += 1;
        if self.parts_count < count {
            return Ok(());
        }
        self.parts_count = 0;
        let row = std::mem::take(&mut self.parts);
        LogRow::unseal(number, &row).map_err(|what| format!("commit {number} {what}"))?;
        if self.database.is_none() {
            let new = Meta::new(self.world);
            let meta = Meta { world: world.to_owned(), dealing, is_copy: true, ..new };
            self.begin(&meta).map_err(|error| error.to_string())?;
        }
        if number != self.last && number != self.last + 1 {
            return Err(format!("commit {number} comes behind commit {}", self.last));
        }
        (self.last, self.believed_ms) = (number, believed_ms);
        self.rows_bytes += row.len();
        self.rows.push((number, row));
        if self.rows_bytes > WRITE_BYTES {
            self.write().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn take_entries(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let (entries, end) = entries(bytes)?;
        let mut entries = entries.as_slice();
        if let Some((Entry::Meta { world, created_ms, dealing, folded, next_body, believed_ms }, rest)) =
            entries.split_first()
        {
            let meta = Meta {
                world: (*world).to_owned(),
                created_ms: (*created_ms).to_owned(),
                dealing: *dealing,
                folded: Folded { number: *folded, next_body: *next_body },
                is_copy: true,
                believed_ms: *believed_ms,
            };
            self.begin(&meta).map_err(|error| error.to_string())?;
            entries = rest;
        }
        if entries.is_empty() {
            return Ok(end);
        }
        let database = self.database.take().ok_or("it does not begin with its description")?;
        let written = self.in_file(&database, |txn| put(txn, entries));
        self.database = Some(database);
        written.map_err(|error| error.to_string())?;
        let last = entries.iter().rev().find_map(|entry| match entry {
            Entry::Log { number, .. } => Some(*number),
            Entry::Meta { .. } | Entry::Row { .. } => None,
        });
        self.last = self.last.max(last.unwrap_or_default());
        Ok(end)
    }
}

/// The whole entries that bytes begin with, and where they end.
fn entries(bytes: &[u8]) -> Result<(Vec<Entry<'_>>, usize), String> {
    let (mut entries, mut end) = (Vec::new(), 0);
    while let Some((length, rest)) = bytes[end..].split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some(entry) = rest.get(..length) else { break };
        let entry: Entry<'_> = postcard::from_bytes(entry).map_err(|error| error.to_string())?;
        let is_right = match &entry {
            Entry::Meta { .. } => true,
            Entry::Row { key, value, .. } => {
                entry.table().is_some_and(|table| is_whole(table, key.0, value.0))
            }
            Entry::Log { number, row } => LogRow::unseal(*number, row.0).is_ok(),
        };
        if !is_right {
            return Err("a record in it does not have its checksum".to_owned());
        }
        entries.push(entry);
        end += 4 + length;
    }
    Ok((entries, end))
}

fn put(txn: &redb::WriteTransaction, entries: &[Entry<'_>]) -> Result<(), redb::Error> {
    for run in entries.chunk_by(|entry, next| entry.table() == next.table()) {
        if let Some(table) = run.first().and_then(Entry::table) {
            let mut rows = txn.open_table(table.rows())?;
            for entry in run {
                if let Entry::Row { key, value, .. } = entry {
                    rows.insert(key.0, value.0)?;
                }
            }
        } else {
            let mut log = txn.open_table(LOG)?;
            for entry in run {
                if let Entry::Log { number, row } = entry {
                    log.insert(number, row.0)?;
                }
            }
        }
    }
    Ok(())
}

impl State for Replica {
    fn apply(&mut self, _number: u64, row: &[u8]) -> Result<(), String> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => self.take_part(row),
        }
    }

    fn clear(&mut self) {
        self.database = None;
        self.fault = match fs::remove_file(store_file(&self.dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Some(format!("the file of before cannot be removed: {error}"))
            }
            _ => None,
        };
        for bytes in [&mut self.bytes, &mut self.parts] {
            bytes.clear();
        }
        self.rows.clear();
        (self.last, self.parts_count, self.rows_bytes, self.believed_ms) = (0, 0, 0, 0);
    }

    fn restore(&mut self, chunk: &[u8]) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.extend_from_slice(chunk);
        let end = self.take_entries(&bytes)?;
        self.bytes = bytes.split_off(end);
        Ok(())
    }
}

/// Whether the ledger went back, and no session has begun a new epoch since.
pub(super) fn went_back(dir: &Path) -> bool {
    dir.join(WENT_BACK).exists()
}

/// All sessions have begun new epochs.
pub(super) fn has_new_epochs(dir: &Path) {
    // What stays makes them begin new ones once more.
    let _ = fs::remove_file(dir.join(WENT_BACK));
}

/// The directory is that of a broker in no cluster from here on.
pub(super) fn leave(dir: &Path) {
    // What stays is only seen by a broker that joins a cluster with it.
    for name in [MEMBER, KNOWN] {
        let _ = fs::remove_file(dir.join(name));
    }
}
