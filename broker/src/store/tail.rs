//! With `store.fsync = "interval"`: what was acknowledged since the last sync, in a file of its own that is written but
//! not synced. What is written there survives the broker's end, for then it is the system's; in the library's file it
//! would not, as that keeps commits which it does not sync in memory, and may not be left half synced either.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::disk::owners_file;
use super::error::StoreError;
use super::format::LogRow;

/// A row of the log and its number.
pub(super) type NumberedRow = (u64, Vec<u8>);

/// The file: rows of the log, each after its length and number.
#[derive(Debug)]
pub(super) struct Tail {
    file: File,
    path: PathBuf,
    /// Behind the last row that is whole.
    end: u64,
}

/// The contents of a tail.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rows: Vec<NumberedRow>,
    /// Bytes behind them that are no rows. Power was lost before they were synced, a write was cut off in its middle, or
    /// somebody altered the file; which of these cannot be said, and what was acknowledged may be lost with them.
    pub(super) rest_bytes: usize,
}

/// Description of a tail that ends with bytes that are no rows.
pub(super) const CUT: &str =
    "it does not end with a whole commit; the last that were acknowledged before a sync may be lost";

const HEAD_BYTES: usize = 12;

impl Tail {
    /// Opens the file, and says which rows follow on commit `last`.
    pub(super) fn open(path: PathBuf, last: u64) -> Result<(Self, Found), StoreError> {
        let read = || {
            let mut file = owners_file().create(true).truncate(false).open(&path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            io::Result::Ok((file, bytes))
        };
        let (file, bytes) = read().map_err(|error| StoreError::io("open", &path, &error))?;
        let end = bytes.len() as u64;
        Ok((Self { file, path, end }, rows_after(&bytes, last)))
    }

    /// Appends a row. What fails leaves the file as it was, or with half a row at its end, over which the next is written.
    pub(super) fn append(&mut self, number: u64, row: &[u8]) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + row.len());
        let length = u32::try_from(row.len())
            .map_err(|_| StoreError::io("write", &self.path, &io::ErrorKind::FileTooLarge.into()))?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(row);
        let mut write = || {
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.write_all(&bytes)
        };
        if let Err(error) = write() {
            let _ = self.file.set_len(self.end);
            return Err(StoreError::io("write", &self.path, &error));
        }
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Forgets all rows: they are in the log now.
    pub(super) fn clear(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(|error| StoreError::io("cut", &self.path, &error))?;
        self.end = 0;
        Ok(())
    }
}

/// The rows of a tail that follow on commit `last`. Where a row is not whole the tail ends.
pub(super) fn rows_after(mut bytes: &[u8], last: u64) -> Found {
    let mut rows = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let (length, number) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let number = u64::from_le_bytes(number.try_into().unwrap_or_default());
        let Some((row, rest)) = rest.split_at_checked(length) else { break };
        if LogRow::unseal(number, row).is_err() {
            break;
        }
        // Those before are there already, where the end came before the file was cut.
        if number.checked_sub(last) == Some(1 + rows.len() as u64) {
            rows.push((number, row.to_vec()));
        } else if number > last {
            break;
        }
        bytes = rest;
    }
    Found { rows, rest_bytes: bytes.len() }
}

/// Reads the bytes of a tail, without changing it; they are empty where there is none.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io("read", path, &error)),
    }
}
