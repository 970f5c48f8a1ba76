//! Folding: what the oldest rows of the log come to goes into the tables, in slices between commits, and the rows go.
//!
//! A crash in between does no harm: the rows are still there, and carrying them out again over what is already done
//! comes to the same, for the last word on a key counts.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

use foldhash::fast::RandomState;
use redb::{ReadableTable, WriteTransaction};

use super::error::StoreError;
use super::format::{Folded, LOG, LogRow};
use super::kept::Kept;
use super::keys::{self, Table};
use super::recovery::{LogState, body_of};
use super::window::{Changes, Point, Window};
use crate::model::clock;

/// The fold at hand.
#[derive(Debug)]
pub(super) struct Folding {
    window: Window,
    /// The row to merge next.
    next: u64,
    last: u64,
    next_body: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Merging,
    Tables,
    Bodies,
    Rows,
}

/// Which bodies are in their table, and how many rows of the tables refer to each. Of what is only in the log nothing is
/// known here. Memory: some 20 bytes a body.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    known: HashMap<u64, Body, RandomState>,
    /// Bodies that nobody in memory refers to any more: they go when no row does either.
    let_go: HashSet<u64, RandomState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Body {
    references: u32,
    is_stored: bool,
}

impl Bodies {
    pub(super) fn refer(&mut self, body: u64) {
        self.known.entry(body).or_default().references += 1;
    }

    pub(super) fn stored(&mut self, body: u64) {
        self.known.entry(body).or_default().is_stored = true;
    }

    /// Takes note of bodies whose last handle went.
    pub(super) fn let_go(&mut self, bodies: impl IntoIterator<Item = u64>) {
        self.let_go.extend(bodies);
    }

    pub(super) fn unrefer(&mut self, body: u64) {
        if let Some(known) = self.known.get_mut(&body) {
            known.references = known.references.saturating_sub(1);
            if known.references == 0 && !known.is_stored {
                self.known.remove(&body);
            }
        }
    }

    /// Bodies that nothing refers to, neither in memory nor on disk.
    fn over(&self) -> Vec<u64> {
        let is_over = |body: &u64| self.known.get(body).is_some_and(|known| known.references == 0);
        self.let_go.iter().copied().filter(is_over).collect()
    }

    pub(super) fn has_let_go(&self) -> bool {
        !self.let_go.is_empty()
    }

    /// Ends a fold: who was let go of and is there still waits for the next.
    pub(super) fn folded(&mut self) {
        self.let_go.retain(|body| self.known.contains_key(body));
    }

    /// Takes over the bodies that were found when the file was opened again.
    pub(super) fn found(&mut self, found: Self) {
        self.known = found.known;
    }
}

impl Folding {
    /// Begins with the rows that are there now. Bodies that were let go of before now go with it.
    pub(super) fn new(log: &LogState) -> Self {
        let (next, last, next_body) = (log.folded + 1, log.last, log.next_body);
        Self { window: Window::default(), next, last, next_body, stage: Stage::Merging }
    }

    /// Does as much as there is time for, as a part of a transaction. Says whether all is done once that is committed;
    /// if it fails, the fold has to begin anew.
    pub(super) fn advance(
        &mut self,
        txn: &WriteTransaction,
        path: &Path,
        bodies: &mut Bodies,
        log: &mut LogState,
        until: Instant,
    ) -> Result<bool, StoreError> {
        let of = |error: redb::Error| StoreError::of("write", path, error);
        let fault =
            |what: &str| StoreError::damaged(path, format!("a record on its way to its table {what}"));
        if self.stage == Stage::Merging {
            let rows = txn.open_table(LOG).map_err(|error| of(error.into()))?;
            if !self.merge(&rows, path, until)? {
                return Ok(false);
            }
        }
        if self.stage == Stage::Tables {
            for table in Table::ALL {
                let mut rows = txn.open_table(table.rows()).map_err(|error| of(error.into()))?;
                let put = if table == Table::Kept {
                    put_kept(&mut rows, &mut self.window.kept, bodies, until)
                } else {
                    put(&mut rows, table, self.window.of_mut(table), bodies, until)
                };
                let done = match put {
                    Ok(done) => done,
                    Err(Broken::Store(error)) => return Err(of(error.into())),
                    Err(Broken::Record(what)) => return Err(fault(what)),
                };
                if !done {
                    return Ok(false);
                }
            }
            self.stage = Stage::Bodies;
        }
        if self.stage == Stage::Bodies {
            let mut rows = txn.open_table(Table::Bodies.rows()).map_err(|error| of(error.into()))?;
            for body in bodies.over() {
                rows.remove(&body.to_be_bytes()[..]).map_err(|error| of(error.into()))?;
                bodies.known.remove(&body);
                if is_past(until) {
                    return Ok(false);
                }
            }
            drop(rows);
            // Before the first row goes, for the first that is there has to follow it.
            let folded = Folded { number: self.last, next_body: self.next_body };
            folded.write(txn).map_err(of)?;
            self.stage = Stage::Rows;
        }
        let mut rows = txn.open_table(LOG).map_err(|error| of(error.into()))?;
        for row in rows.extract_from_if(..=self.last, |_, _| true).map_err(|error| of(error.into()))? {
            let (_, row) = row.map_err(|error| of(error.into()))?;
            log.bytes = log.bytes.saturating_sub(row.value().len() as u64);
            if is_past(until) {
                return Ok(false);
            }
        }
        log.folded = self.last;
        Ok(true)
    }

    /// Whether it only reads for now.
    pub(super) fn is_merging(&self) -> bool {
        self.stage == Stage::Merging
    }

    /// Merges rows of the log as far as there is time; says whether it has all.
    pub(super) fn merge(
        &mut self,
        rows: &impl ReadableTable<u64, &'static [u8]>,
        path: &Path,
        until: Instant,
    ) -> Result<bool, StoreError> {
        let of = |error: redb::Error| StoreError::of("read", path, error);
        while self.next <= self.last {
            if let Some(row) = rows.get(self.next).map_err(|error| of(error.into()))? {
                let fault = |what: &str| StoreError::damaged(path, format!("commit {} {what}", self.next));
                let row = LogRow::unseal(self.next, row.value()).map_err(fault)?;
                self.window.take_in(row.ops).map_err(fault)?;
            }
            self.next += 1;
            if is_past(until) {
                return Ok(false);
            }
        }
        self.stage = Stage::Tables;
        Ok(true)
    }
}

fn is_past(until: Instant) -> bool {
    clock::now() >= until
}

/// Why a change did not come into its table.
pub(super) enum Broken {
    Store(redb::StorageError),
    Record(&'static str),
}

impl From<redb::StorageError> for Broken {
    fn from(error: redb::StorageError) -> Self {
        Self::Store(error)
    }
}

impl From<&'static str> for Broken {
    fn from(what: &'static str) -> Self {
        Self::Record(what)
    }
}

pub(super) type Rows<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

/// Puts kept matches into their table, client by client.
fn put_kept(
    rows: &mut Rows<'_>,
    kept: &mut Kept,
    bodies: &mut Bodies,
    until: Instant,
) -> Result<bool, Broken> {
    while kept.put_next(rows, bodies)? {
        if is_past(until) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts changes into their table, in the order of the keys; what is done is gone from `changes`.
fn put(
    rows: &mut Rows<'_>,
    table: Table,
    changes: &mut Changes,
    bodies: &mut Bodies,
    until: Instant,
) -> Result<bool, Broken> {
    while let Some((from, to)) = changes.ranges.first_key_value() {
        for row in rows.extract_from_if::<&[u8], _>(&**from..&**to, |_, _| true)? {
            let (key, value) = row?;
            if let Some(body) = body_of(table, key.value(), value.value())? {
                bodies.unrefer(body);
            }
            if is_past(until) {
                return Ok(false);
            }
        }
        changes.ranges.pop_first();
    }
    while let Some((key, point)) = changes.points.pop_first() {
        match point {
            Point::Put(value) => insert(rows, table, &key, &value, bodies)?,
            Point::Remove => remove(rows, table, &key, bodies)?,
        }
        if is_past(until) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn insert(
    rows: &mut Rows<'_>,
    table: Table,
    key: &[u8],
    value: &[u8],
    bodies: &mut Bodies,
) -> Result<(), Broken> {
    if table == Table::Bodies
        && let Some(body) = keys::number(key)
    {
        // Kept matches and live events are in their tables by now.
        if bodies.let_go.contains(&body) && !bodies.known.contains_key(&body) {
            return Ok(());
        }
        bodies.stored(body);
    }
    let new = body_of(table, key, value)?;
    let old = match rows.insert(key, value)? {
        Some(old) => body_of(table, key, old.value())?,
        None => None,
    };
    new.into_iter().for_each(|body| bodies.refer(body));
    old.into_iter().for_each(|body| bodies.unrefer(body));
    Ok(())
}

fn remove(rows: &mut Rows<'_>, table: Table, key: &[u8], bodies: &mut Bodies) -> Result<(), Broken> {
    if let Some(old) = rows.remove(key)?
        && let Some(body) = body_of(table, key, old.value())?
    {
        bodies.unrefer(body);
    }
    Ok(())
}
