//! The deliveries of a client's session, once for all of its connections: each connection is a cursor.
//!
//! A delivery is in one of two queues. One holds what durable subscriptions matched, until the client acknowledges it
//! (`kept`), and one what is only for the connections that are there, until all of them have read it (`passing`). Both lose
//! deliveries at their bounds by the same policies. An offset that is in neither of them was lost, acknowledged, or never
//! retained, and a cursor that comes there gets a gap with that reason.

mod reading;
mod retaining;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Bounds;
use super::holes::Holes;
use super::queue::{Queue, Size};
use super::retention::{KeptBounds, KeptTotal};
use crate::budget::Held;
use crate::metrics::Metrics;
use crate::model::delivery::{Delivery, ENTRY_BYTES, GapReason, OverflowName};

/// The log of a session. The shard appends to it, and the writers of the connections read it.
pub(crate) struct DeliveryLog(Mutex<Log>);

/// The state of a log. An offset is visible to connections once it is released.
pub(crate) struct Log {
    bounds: Bounds,
    passing: Queue,
    kept: Queue,
    holes: Holes,
    cursors: Vec<Cursor>,
    /// The last offset that connections may have.
    released: u64,
    /// The last offset from before the session was durable; `None` where it is not.
    durable_after: Option<u64>,
    acknowledged: u64,
    /// The last offset that was given to a connection: nobody can acknowledge what nobody got.
    given: u64,
    passing_held: Held,
    kept_held: Held,
    total: Arc<KeptTotal>,
    metrics: Arc<Metrics>,
}

/// The position of a connection in the log.
struct Cursor {
    connection: u64,
    /// The last offset that it was given, or told as lost.
    at: u64,
    /// The last offset that it gets, where the connection is being closed.
    ends_at: u64,
    /// Up to here deliveries come later than they could have.
    late_to: u64,
    /// Offsets behind `at` of the alarms that it was given ahead of their turn.
    ahead: BTreeSet<u64>,
    /// Whether its writer sleeps.
    sleeps: bool,
    /// Whether more waits for it in a durable session than the bounds of a connection.
    is_behind: bool,
}

/// How a delivery of a durable subscription is retained.
#[derive(Clone, Copy)]
pub(crate) struct Keep<'a> {
    pub(crate) bounds: &'a KeptBounds,
    /// The time, in Unix milliseconds.
    pub(crate) at_ms: u64,
}

/// The outcome of appending a delivery.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Whether it is retained. It is not if it exceeds the bounds by itself, or if other clients use all the room.
    pub(crate) is_kept: bool,
    /// Connections to cut off: they had not read a delivery that was lost, and its policy is to disconnect.
    pub(crate) cut: Vec<u64>,
}

/// Bytes of a retained delivery besides its texts.
const KEPT_BYTES: usize = 128;

/// Granularity of an account, in bytes. Most deliveries wait too short a time to be worth counting.
const CHARGE_BYTES: u64 = 4_096;

impl DeliveryLog {
    /// Makes the log of a session that has come to an offset.
    pub(crate) fn new(
        bounds: Bounds,
        released: u64,
        held: Held,
        total: Arc<KeptTotal>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Log {
            bounds,
            passing: Queue::new(ENTRY_BYTES),
            kept: Queue::new(KEPT_BYTES),
            holes: Holes::default(),
            cursors: Vec::new(),
            released,
            durable_after: None,
            acknowledged: 0,
            given: released,
            passing_held: held,
            kept_held: Held::default(),
            total,
            metrics,
        })))
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Appends the next delivery, which is not visible before it is [released](Self::release). Offsets of retained deliveries
    /// that are lost for it are appended to `gone`.
    ///
    /// Cost: O(1) within the bounds, and O(log n) for each delivery that is lost.
    pub(crate) fn append(
        &mut self,
        delivery: Delivery,
        keep: Option<Keep<'_>>,
        gone: &mut Vec<u64>,
    ) -> Appended {
        let mut appended = Appended::default();
        if let Some(keep) = keep {
            let bytes = self.kept.bytes_of(&delivery);
            if self.make_room(&delivery, bytes, &keep, gone, &mut appended.cut) {
                appended.is_kept = true;
                self.kept.push(delivery, keep.at_ms, keep.bounds.overflow);
                self.kept_held.set(self.kept_held.bytes() + bytes as u64);
                return appended;
            }
            // Lost for a reader that is not there.
            self.holes.push(delivery.offset, delivery.offset, GapReason::Overflow);
            self.holes.bound(self.count());
        }
        self.append_passing(delivery, &mut appended.cut);
        appended
    }

    /// Makes room among the retained deliveries for one more. It looks first whether there can be any, and then loses nothing; if other
    /// clients take the room meanwhile, it may lose some and still say `false`.
    fn make_room(
        &mut self,
        new: &Delivery,
        bytes: usize,
        Keep { bounds, .. }: &Keep<'_>,
        gone: &mut Vec<u64>,
        cut: &mut Vec<u64>,
    ) -> bool {
        if bytes > bounds.bytes || !self.total.has_room_without(self.kept.size().bytes, bytes) {
            return false;
        }
        self.kept.supersede(new, bounds.overflow);
        while self.is_at_bound(bytes, bounds) || !self.total.take(bytes as u64) {
            if !self.lose_kept(bounds.overflow, gone, cut) {
                return false;
            }
        }
        true
    }

    fn append_passing(&mut self, delivery: Delivery, cut: &mut Vec<u64>) {
        let Bounds { frames, bytes, overflow, .. } = self.bounds;
        self.passing.supersede(&delivery, overflow);
        let new = self.passing.bytes_of(&delivery);
        let has_room = |size: Size| size.count == 0 || (size.count < frames && size.bytes + new <= bytes);
        while !has_room(self.passing.size()) {
            self.lose_passing(cut);
        }
        self.passing.push(delivery, 0, overflow);
        self.charge();
    }

    /// Loses a delivery that is for the connections that are there.
    fn lose_passing(&mut self, cut: &mut Vec<u64>) {
        let Some(victim) = self.passing.victim(self.bounds.overflow) else { return };
        if victim.disconnects && self.cut_off_before(victim.offset, cut) {
            self.trim();
            return;
        }
        let missed = self.cursors.iter().filter(|cursor| cursor.misses(victim.offset)).count();
        self.metrics.dropped.add(missed as u64);
        self.passing.lose(victim);
        // In a durable session no hole is needed: an offset that was not retained is reported as `NotDurable`.
        if self.durable_after.is_none() {
            self.holes.insert(victim.offset, GapReason::Overflow);
            self.holes.bound(self.count());
        }
    }

    /// Loses a retained delivery by the policy. Its offset is appended to `gone`, and connections that did not read it to `cut`,
    /// where that is its policy. Says whether there was one.
    pub(crate) fn lose_kept(
        &mut self,
        overflow: OverflowName,
        gone: &mut Vec<u64>,
        cut: &mut Vec<u64>,
    ) -> bool {
        let Some(victim) = self.kept.victim(overflow) else { return false };
        if victim.disconnects {
            self.cut_off_before(victim.offset, cut);
        }
        gone.push(victim.offset);
        self.kept.lose(victim);
        self.holes.insert(victim.offset, GapReason::Overflow);
        self.holes.bound(self.count());
        self.settle_kept(1);
        true
    }

    /// Takes away the cursors that have not come to an offset; says whether there were any.
    fn cut_off_before(&mut self, offset: u64, cut: &mut Vec<u64>) -> bool {
        let slow: Vec<_> = self.cursors.extract_if(.., |cursor| cursor.misses(offset)).collect();
        for cursor in &slow {
            self.leave_behind(cursor);
            if self.durable_after.is_none() {
                // And the one for which there is no room.
                self.metrics.dropped.add(self.size_after(cursor.at).count as u64 + 1);
            }
            cut.push(cursor.connection);
        }
        !slow.is_empty()
    }

    /// Notes that a cursor is gone.
    fn leave_behind(&self, cursor: &Cursor) {
        if cursor.is_behind {
            self.metrics.readers_behind.lower();
        }
    }

    /// Records an offset that has no delivery, with the reason.
    pub(crate) fn skip(&mut self, offset: u64, reason: GapReason) {
        self.skip_range(offset, offset, reason);
    }

    /// Records offsets that have no deliveries, with the reason.
    pub(crate) fn skip_range(&mut self, from: u64, to: u64, reason: GapReason) {
        self.holes.push(from, to, reason);
        self.holes.bound(self.count());
    }

    /// Makes everything up to an offset visible. `wake` gets the connections whose writers sleep. Returns the connections that
    /// are to be cut off: more waits for them than the bounds allow, and the policy is to disconnect.
    pub(crate) fn release(&mut self, to: u64, mut wake: impl FnMut(u64)) -> Vec<u64> {
        self.released = to;
        for cursor in &mut self.cursors {
            if cursor.at < to && std::mem::take(&mut cursor.sleeps) {
                wake(cursor.connection);
            }
        }
        if self.cursors.is_empty() {
            self.trim();
        }
        if self.durable_after.is_some() { self.look_for_slow() } else { Vec::new() }
    }

    /// Notes which cursors of a durable session have fallen behind, and returns those whose policy is to be cut off then.
    fn look_for_slow(&mut self) -> Vec<u64> {
        let mut cut = Vec::new();
        for index in 0..self.cursors.len() {
            let cursor = &self.cursors[index];
            if cursor.is_behind || !self.is_beyond_bounds(cursor) {
                continue;
            }
            if self.oldest_policy(cursor.at) == OverflowName::Disconnect {
                cut.push(cursor.connection);
            } else {
                let cursor = &mut self.cursors[index];
                (cursor.is_behind, cursor.late_to) = (true, self.released);
                self.metrics.readers_behind.raise();
            }
        }
        self.cursors.retain(|cursor| !cut.contains(&cursor.connection));
        cut
    }

    /// Whether more waits for a cursor than the bounds of a connection; one delivery may always.
    fn is_beyond_bounds(&self, cursor: &Cursor) -> bool {
        let waiting = self.size_after(cursor.at);
        waiting.count > self.bounds.frames || (waiting.count > 1 && waiting.bytes > self.bounds.bytes)
    }

    /// The policy of the oldest delivery behind an offset. An alarm is the oldest only among alarms.
    fn oldest_policy(&self, at: u64) -> OverflowName {
        let mut from = at;
        let mut first = None;
        while let Some(delivery) = self.delivery_after(from) {
            first = first.or(Some(delivery));
            if !delivery.body.is_alarm {
                first = Some(delivery);
                break;
            }
            from = delivery.offset;
        }
        first.and_then(|delivery| delivery.overflow).unwrap_or(self.bounds.overflow)
    }

    fn delivery_after(&self, offset: u64) -> Option<&Delivery> {
        match (self.passing.after(offset), self.kept.after(offset)) {
            (Some(passing), Some(kept)) => Some(if passing.offset < kept.offset { passing } else { kept }),
            (one, other) => one.or(other),
        }
    }

    fn size_after(&self, offset: u64) -> Size {
        let (passing, kept) = (self.passing.size_after(offset), self.kept.size_after(offset));
        Size { count: passing.count + kept.count, bytes: passing.bytes + kept.bytes }
    }

    /// How many deliveries there are, retained and for connections.
    pub(in crate::outbox) fn count(&self) -> usize {
        self.passing.size().count + self.kept.size().count
    }

    /// Forgets what every connection has read and nobody retains.
    fn trim(&mut self) {
        let read = self.cursors.iter().map(Cursor::read_to).min().unwrap_or(u64::MAX).min(self.released);
        while self.passing.front().is_some_and(|first| first.delivery.offset <= read) {
            self.passing.pop_front();
        }
        if self.durable_after.is_none() {
            self.holes.forget(read);
        }
        self.charge();
    }

    fn charge(&mut self) {
        let bytes = self.passing.size().bytes as u64;
        if bytes.abs_diff(self.passing_held.bytes()) >= CHARGE_BYTES || bytes == 0 {
            self.passing_held.set(bytes);
        }
    }

    /// Gives back the memory of `count` retained deliveries that were removed.
    fn settle_kept(&mut self, count: u64) {
        let bytes = self.kept.size().bytes as u64;
        let less = self.kept_held.bytes() - bytes;
        self.kept_held.shrink(bytes);
        self.total.give_back(count, less);
    }
}

impl Cursor {
    /// Whether it is still to come to an offset.
    fn misses(&self, offset: u64) -> bool {
        self.at < offset && offset <= self.ends_at
    }

    /// The offset up to which it needs nothing any more.
    fn read_to(&self) -> u64 {
        if self.at >= self.ends_at { u64::MAX } else { self.at }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.cursors.iter().for_each(|cursor| self.leave_behind(cursor));
        self.total.give_back(self.kept.size().count as u64, self.kept_held.bytes());
    }
}
