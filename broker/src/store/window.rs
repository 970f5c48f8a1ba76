//! A run of log rows, merged: what they come to for each key.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::batch::Op;
use super::kept::Kept;
use super::keys::Table;

/// The result of a run of rows. Memory: everything that is put and not removed again, once.
#[derive(Debug, Default)]
pub(super) struct Window {
    tables: [Changes; Table::ALL.len()],
    pub(super) kept: Kept,
}

/// Changes of one table: first the ranges go, then the points count.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) points: BTreeMap<Box<[u8]>, Point>,
    /// First key -> the one behind the last. They do not touch.
    pub(super) ranges: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

/// The change of one key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Point {
    Put(Box<[u8]>),
    Remove,
}

impl Window {
    pub(super) fn of(&self, table: Table) -> &Changes {
        &self.tables[table as usize]
    }

    pub(super) fn of_mut(&mut self, table: Table) -> &mut Changes {
        &mut self.tables[table as usize]
    }

    /// Takes in the changes of a row; the error says what is wrong with them.
    pub(super) fn take_in(&mut self, mut ops: &[u8]) -> Result<(), &'static str> {
        let known = |table: u8| Table::numbered(table).ok_or("names a table that there is not");
        let mut matched = None;
        while !ops.is_empty() {
            let (op, rest) = postcard::take_from_bytes(ops).map_err(|_| "cannot be read")?;
            ops = rest;
            match op {
                Op::Put { table, key, value } => {
                    self.of_mut(known(table)?).points.insert(key.0.into(), Point::Put(value.0.into()));
                }
                Op::Remove { table, key } => self.of_mut(known(table)?).remove(key.0),
                Op::RemoveRange { table, from, to } => self.of_mut(known(table)?).remove_range(from.0, to.0),
                Op::Matched(one) => matched = Some(self.kept.matched(one)),
                Op::Keep { client, offset, subscriptions } => {
                    let matched = matched.ok_or("does not say what is kept")?;
                    self.kept.keep(client, offset, subscriptions, matched);
                }
                Op::Forget { client, first, last } => self.kept.forget(client, first, last),
            }
        }
        Ok(())
    }
}

impl Changes {
    fn remove(&mut self, key: &[u8]) {
        if self.covers(key) {
            self.points.remove(key);
        } else {
            self.points.insert(key.into(), Point::Remove);
        }
    }

    fn remove_range(&mut self, from: &[u8], to: &[u8]) {
        if from >= to {
            return;
        }
        let within = (Bound::Included(from), Bound::Excluded(to));
        let gone: Vec<_> = self.points.range::<[u8], _>(within).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.points.remove(&key);
        }
        let (mut from, mut to): (Box<[u8]>, Box<[u8]>) = (from.into(), to.into());
        // Of the ranges that begin before the end, those that reach the beginning become one with it.
        while let Some((first, end)) =
            self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(&*to))).next_back()
            && **end >= *from
        {
            let first = first.clone();
            if let Some(end) = self.ranges.remove(&first) {
                to = to.max(end);
            }
            from = from.min(first);
        }
        self.ranges.insert(from, to);
    }

    /// Whether a key is in a range that goes.
    pub(super) fn covers(&self, key: &[u8]) -> bool {
        let before = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        before.is_some_and(|(_, end)| *key < **end)
    }

    /// Whether a row that is in the table stays there as it is.
    pub(super) fn keeps(&self, key: &[u8]) -> bool {
        !self.points.contains_key(key) && !self.covers(key)
    }
}
