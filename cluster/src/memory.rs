//! A log in the memory of one process, without faults.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::log::{Append, AppendError, Appended, Bounds, Log, ReadError, Stored};
use crate::record::RECORD_BYTES_MAX;

/// A log in memory. A clone is the same log.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    // No section waits for anything.
    records: Arc<Mutex<Records>>,
}

/// The records of a log and the answers to requests, for this log and the simulated one.
#[derive(Debug)]
pub(crate) struct Records {
    records: VecDeque<Stored>,
    /// The sequence of the last record.
    last: u64,
    /// Names of the records that were stored of late, by which duplicates are known.
    names: VecDeque<Name>,
    /// How long a name is known.
    names_kept_us: i64,
}

#[derive(Debug)]
struct Name {
    id: String,
    sequence: u64,
    time_us: i64,
}

/// Names that a log in memory knows; its clock counts appends.
const NAMES_KEPT: i64 = 1_024;

impl Default for Records {
    fn default() -> Self {
        Self::new(NAMES_KEPT)
    }
}

impl Records {
    pub(crate) fn new(names_kept_us: i64) -> Self {
        Self { records: VecDeque::new(), last: 0, names: VecDeque::new(), names_kept_us }
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn first(&self) -> u64 {
        self.records.front().map_or(self.last + 1, |record| record.sequence)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { first: self.first(), last: self.last }
    }

    pub(crate) fn append(&mut self, append: Append, time_us: i64) -> Result<Appended, AppendError> {
        let Append { expected, id, record } = append;
        while self.names.front().is_some_and(|name| name.time_us < time_us - self.names_kept_us) {
            self.names.pop_front();
        }
        if let Some(name) = self.names.iter().rev().find(|name| name.id == id) {
            return Ok(Appended { sequence: name.sequence, is_duplicate: true });
        }
        if expected.is_some_and(|expected| expected != self.last) {
            return Err(AppendError::WrongLast { last: Some(self.last) });
        }
        let (bytes, bytes_max) = (record.len(), RECORD_BYTES_MAX);
        if bytes > bytes_max {
            return Err(AppendError::TooLarge { bytes, bytes_max });
        }
        self.last += 1;
        let sequence = self.last;
        self.names.push_back(Name { id, sequence, time_us });
        self.records.push_back(Stored { sequence, time_us, record });
        Ok(Appended { sequence, is_duplicate: false })
    }

    /// Reads up to the record `last`, which is where a replica ends.
    pub(crate) fn read(&self, from: u64, last: u64, bytes: usize) -> Result<Vec<Stored>, ReadError> {
        let first = self.first();
        // A replica that is behind may not have what begins the log.
        if from < first && (first <= last || last == self.last) {
            return Err(ReadError::TooOld { first });
        }
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut read = 0;
        let has_room = |(idx, stored): &(usize, &Stored)| {
            let has_room = *idx < 2 || read < bytes;
            read += stored.record.len();
            has_room
        };
        let there = self.records.iter().skip(skipped).take_while(|stored| stored.sequence <= last);
        Ok(there.enumerate().take_while(has_room).map(|(_, stored)| stored.clone()).collect())
    }

    pub(crate) fn truncate(&mut self, before: u64) {
        while self.records.front().is_some_and(|record| record.sequence < before) {
            self.records.pop_front();
        }
    }

    /// Takes the last records away.
    pub(crate) fn go_back(&mut self, records: usize) -> Vec<Stored> {
        let gone = self.records.split_off(self.records.len().saturating_sub(records));
        self.last -= gone.len() as u64;
        self.names.retain(|name| name.sequence <= self.last);
        gone.into()
    }
}

impl Memory {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Memory {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let mut records = self.records();
        let time_us = records.last.cast_signed() + 1;
        records.append(append, time_us)
    }

    async fn read(&self, from: u64, bytes: usize) -> Result<Vec<Stored>, ReadError> {
        let records = self.records();
        records.read(from, records.last, bytes)
    }

    async fn truncate(&self, before: u64) -> Result<(), ReadError> {
        self.records().truncate(before);
        Ok(())
    }

    async fn bounds(&self) -> Result<Bounds, ReadError> {
        Ok(self.records().bounds())
    }
}
