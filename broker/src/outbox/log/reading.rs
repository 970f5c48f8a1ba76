//! How connections read a log.

use std::collections::BTreeSet;

use super::{Cursor, Log};
use crate::model::delivery::{Delivery, Entry, Gap, GapReason};
use crate::outbox::Bounds;
use crate::outbox::queue::Size;

impl Log {
    /// Lets a connection read behind an offset. `released` is what it may have.
    pub(in crate::outbox) fn enter(&mut self, connection: u64, bounds: Bounds, at: u64, released: u64) {
        (self.bounds, self.released) = (bounds, released);
        self.given = self.given.max(at);
        let mut cursor = Cursor {
            connection,
            at,
            ends_at: u64::MAX,
            late_to: released,
            ahead: BTreeSet::new(),
            sleeps: false,
            is_behind: false,
        };
        if self.durable_after.is_some() && self.is_beyond_bounds(&cursor) {
            cursor.is_behind = true;
            self.metrics.readers_behind.raise();
        }
        self.cursors.push(cursor);
    }

    /// Ends a connection's reading, and returns how many deliveries it did not read.
    pub(crate) fn leave(&mut self, connection: u64) -> u64 {
        let Some(index) = self.index_of(connection) else { return 0 };
        let cursor = self.cursors.swap_remove(index);
        self.leave_behind(&cursor);
        let unread = self.size_after(cursor.at).count as u64;
        self.trim();
        unread
    }

    /// Gives a connection nothing beyond what is released now.
    pub(in crate::outbox) fn end(&mut self, connection: u64) {
        let released = self.released;
        if let Some(cursor) = self.cursor_mut(connection) {
            cursor.ends_at = cursor.ends_at.min(released);
        }
    }

    fn index_of(&self, connection: u64) -> Option<usize> {
        self.cursors.iter().position(|cursor| cursor.connection == connection)
    }

    fn cursor(&self, connection: u64) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.connection == connection)
    }

    fn cursor_mut(&mut self, connection: u64) -> Option<&mut Cursor> {
        self.cursors.iter_mut().find(|cursor| cursor.connection == connection)
    }

    /// The last offset that a connection was given; `None` where it does not read any more.
    pub(in crate::outbox) fn position(&self, connection: u64) -> Option<u64> {
        self.cursor(connection).map(|cursor| cursor.at)
    }

    /// The offset up to which deliveries come before what is answered now: those that wait, up to as many as may wait.
    pub(in crate::outbox) fn mark(&self, connection: u64) -> u64 {
        let most = self.bounds.frames as u64;
        self.cursor(connection).map_or(0, |cursor| {
            self.released.min(cursor.at.saturating_add(most)).min(cursor.ends_at).max(cursor.at)
        })
    }

    /// How much waits for a connection.
    pub(in crate::outbox) fn waiting(&self, connection: u64) -> (usize, usize) {
        let size = self.cursor(connection).map_or(Size::default(), |cursor| self.size_after(cursor.at));
        (size.count, size.bytes)
    }

    /// Whether a connection is still to get an offset.
    pub(in crate::outbox) fn waits(&self, connection: u64, offset: u64) -> bool {
        let is_unread = |cursor: &Cursor| cursor.misses(offset) && !cursor.ahead.contains(&offset);
        self.cursor(connection).is_some_and(is_unread)
            && (self.passing.contains(offset) || self.kept.contains(offset))
    }

    /// How many offsets a connection is behind, or deliveries where the session is not durable.
    pub(in crate::outbox) fn behind(&self, connection: u64) -> u64 {
        let Some(cursor) = self.cursor(connection) else { return 0 };
        match self.durable_after {
            Some(_) => self.released.saturating_sub(cursor.at),
            None => self.size_after(cursor.at).count as u64,
        }
    }

    #[cfg(test)]
    pub(in crate::outbox) fn has_more(&self, connection: u64) -> bool {
        self.cursor(connection).is_some_and(|cursor| cursor.at < self.released.min(cursor.ends_at))
    }

    #[cfg(test)]
    pub(in crate::outbox) fn released(&self) -> u64 {
        self.released
    }

    #[cfg(test)]
    pub(in crate::outbox) fn holes_count(&self) -> usize {
        self.holes.count()
    }

    /// Notes that a writer sleeps, unless there is something for it to read.
    pub(in crate::outbox) fn sleep(&mut self, connection: u64) -> bool {
        let released = self.released;
        let Some(cursor) = self.cursor_mut(connection) else { return true };
        cursor.sleeps = cursor.at >= released.min(cursor.ends_at);
        cursor.sleeps
    }

    /// The alarms between two offsets.
    pub(in crate::outbox) fn alarms(&self, after: u64, to: u64) -> Vec<Delivery> {
        let mut alarms: Vec<_> =
            self.passing.alarms(after, to).chain(self.kept.alarms(after, to)).cloned().collect();
        alarms.sort_by_key(|alarm| alarm.offset);
        alarms
    }

    /// The alarm at an offset, if it is there.
    pub(crate) fn alarm(&self, offset: u64) -> Option<Delivery> {
        let is_it = |delivery: &&Delivery| delivery.offset == offset && delivery.body.is_alarm;
        self.delivery_after(offset.checked_sub(1)?).filter(is_it).cloned()
    }

    /// Notes that a connection gets an alarm ahead of its turn, where something comes before it; says whether it does.
    pub(in crate::outbox) fn overtake(&mut self, connection: u64, offset: u64) -> bool {
        let Some(cursor) = self.cursor_mut(connection) else { return false };
        cursor.at + 1 < offset && offset <= cursor.ends_at && cursor.ahead.insert(offset)
    }

    /// Reads the next entry for a connection that has not come to an offset yet; `None` where it has. A gap may go beyond that. The
    /// entry is not read where it is larger than `room` bytes.
    pub(in crate::outbox) fn read(&mut self, connection: u64, to: u64, room: usize) -> Option<Entry> {
        let index = self.index_of(connection)?;
        let cursor = &self.cursors[index];
        if cursor.at >= to {
            return None;
        }
        let entry = self.next(cursor, self.released.min(cursor.ends_at))?;
        if entry.bytes() > room {
            return None;
        }
        let at = match &entry {
            Entry::Delivery(delivery) => delivery.offset,
            Entry::Gap(gap) => {
                self.metrics.gaps.of(gap.reason).add(gap.count());
                gap.to
            }
            Entry::Answer(_) => cursor.at,
        };
        let cursor = &mut self.cursors[index];
        cursor.at = at;
        if !cursor.ahead.is_empty() {
            cursor.ahead = cursor.ahead.split_off(&(at + 1));
        }
        self.given = self.given.max(at);
        Some(entry)
    }

    /// The entry behind a cursor, up to an offset.
    fn next(&self, cursor: &Cursor, to: u64) -> Option<Entry> {
        let from = cursor.at + 1;
        if from > to {
            return None;
        }
        let next = self.delivery_after(cursor.at);
        if let Some(delivery) = next.filter(|next| next.offset == from) {
            if cursor.ahead.contains(&from) {
                return Some(Entry::Gap(Gap { from, to: from, reason: GapReason::Ahead }));
            }
            if self.is_too_late(delivery) {
                return Some(Entry::Gap(Gap {
                    from,
                    to: self.last_too_late(cursor, to),
                    reason: GapReason::Late,
                }));
            }
            let is_late = delivery.is_late || from <= cursor.late_to;
            return Some(Entry::Delivery(Delivery { is_late, ..delivery.clone() }));
        }
        let to = next.map_or(to, |next| to.min(next.offset - 1));
        let gap = |to: u64, reason| Some(Entry::Gap(Gap { from, to, reason }));
        let hole = self.holes.at_or_after(from);
        if let Some(hole) = hole.filter(|hole| hole.from <= from) {
            return gap(to.min(hole.to), hole.reason);
        }
        let to = hole.map_or(to, |hole| to.min(hole.from - 1));
        match self.durable_after {
            Some(before) if from <= before => gap(to.min(before), GapReason::NotDurable),
            Some(_) if from <= self.acknowledged => gap(to.min(self.acknowledged), GapReason::Acknowledged),
            _ => gap(to, GapReason::NotDurable),
        }
    }

    fn is_too_late(&self, delivery: &Delivery) -> bool {
        self.bounds.has_deadlines && delivery.is_past_deadline()
    }

    /// The last offset, up to another, of those right behind a cursor for which it is too late.
    fn last_too_late(&self, cursor: &Cursor, to: u64) -> u64 {
        let mut last = cursor.at + 1;
        while last < to
            && !cursor.ahead.contains(&(last + 1))
            && self.delivery_after(last).is_some_and(|next| next.offset == last + 1 && self.is_too_late(next))
        {
            last += 1;
        }
        last
    }

    /// Has an alarm come in its turn after all, that was to come ahead of it.
    pub(in crate::outbox) fn put_back_in_turn(&mut self, connection: u64, offset: u64) {
        if let Some(cursor) = self.cursor_mut(connection) {
            cursor.ahead.remove(&offset);
        }
    }

    /// Ends a writer's turn at the log.
    pub(in crate::outbox) fn end_turn(&mut self, connection: u64) {
        self.trim();
        if let Some(index) = self.index_of(connection)
            && self.cursors[index].is_behind
            && !self.is_beyond_bounds(&self.cursors[index])
        {
            self.cursors[index].is_behind = false;
            self.metrics.readers_behind.lower();
        }
    }
}
