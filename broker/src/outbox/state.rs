//! The entries that wait, counted, and the losses at the bound.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Close;
use super::queue::{Queue, Spot};
use crate::budget::Held;
use crate::model::delivery::{Delivery, ENTRY_BYTES, Entry, Gap, Names, OverflowName, Reason};
use crate::model::event::ObjectHash;
use crate::model::recipient::Recipient;

pub(super) struct State {
    queue: Queue,
    /// Policy for losses at the bound, for a delivery that brings none.
    overflow: OverflowName,
    pub(super) deliveries_count: usize,
    pub(super) answers_count: usize,
    /// Bytes of the answers.
    pub(super) answer_bytes: usize,
    /// Deliveries that come before their turn.
    pub(super) ahead_count: usize,
    pub(super) bytes: usize,
    /// Last delivery of each subject among those with `keep-latest`: its offset and its place.
    latest: HashMap<Subject, (u64, Spot), foldhash::fast::RandomState>,
    /// Deliveries with `keep-latest` that a newer one of their subject follows, by offset.
    superseded: BTreeMap<u64, Spot>,
    /// Where the next alarm goes: before the first of those entries at the end that it overtakes, if there are any.
    overtaken: Option<Spot>,
    /// Whether an alarm has taken the turn of others, for as long as anything waits: entries are then told by their place, not
    /// by the numbers they have.
    is_reordered: bool,
    /// The last offset that the writer was told.
    pub(super) told: u64,
    /// Whether a delivery may have been lost that was not the oldest, or is out of its order.
    has_holes: bool,
    /// Whether there is more for the reader than had room, and nobody has asked for it yet.
    pub(super) is_behind: bool,
    pub(super) close: Option<Close>,
    pub(super) sleeps: bool,
    /// Where it is noted what the writer takes, if anywhere.
    pub(super) recipient: Option<Arc<Recipient>>,
    pub(super) charged: Charged,
}

/// The charges to the connection's account for waiting entries. Answers and deliveries are held apart.
#[derive(Default)]
pub(super) struct Charged {
    pub(super) answers: Held,
    pub(super) others: Held,
}

/// Bytes by which an account may be wrong: entries that wait for a moment alone are not worth being counted.
const CHARGE_BYTES: u64 = 4_096;

impl Charged {
    fn set(held: &mut Held, bytes: usize) {
        let bytes = bytes as u64;
        if bytes.abs_diff(held.bytes()) >= CHARGE_BYTES || bytes == 0 {
            held.set(bytes);
        }
    }
}

/// The subject of a delivery: a newer delivery of the same subject takes its place.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    object: ObjectHash,
    subscriptions: Names,
}

/// Entries that an idle connection keeps room for.
const IDLE_ENTRIES: usize = 64;

impl State {
    pub(super) fn new(overflow: OverflowName) -> Self {
        Self {
            queue: Queue::new(),
            overflow,
            deliveries_count: 0,
            answers_count: 0,
            answer_bytes: 0,
            ahead_count: 0,
            bytes: 0,
            latest: HashMap::default(),
            superseded: BTreeMap::new(),
            overtaken: None,
            is_reordered: false,
            told: 0,
            has_holes: false,
            is_behind: false,
            close: None,
            sleeps: false,
            recipient: None,
            charged: Charged::default(),
        }
    }

    /// Tells the connection's account what waits now.
    fn charge(&mut self) {
        Charged::set(&mut self.charged.answers, self.answer_bytes);
        Charged::set(&mut self.charged.others, self.bytes - self.answer_bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[cfg(test)]
    pub(super) fn entries_count(&self) -> usize {
        self.queue.iter().count()
    }

    /// Whether a delivery waits.
    pub(super) fn waits(&self, offset: u64) -> bool {
        // They are in their order, mostly without holes, and there is nothing before the first or behind the last.
        let first = self.queue.iter().find_map(offset_of);
        let last = self.queue.iter_back().find_map(offset_of);
        let is_between =
            first.is_some_and(|first| first <= offset) && last.is_some_and(|last| offset <= last);
        (is_between || self.is_reordered || self.ahead_count > 0)
            && (!self.has_holes || self.queue.iter_back().any(|entry| offset_of(entry) == Some(offset)))
    }

    /// Puts a delivery at the end, or, of an alarm, before the deliveries and losses that wait there, but behind everything
    /// else.
    pub(super) fn push_by_priority(&mut self, delivery: Delivery) {
        if delivery.is_ahead {
            self.has_holes = true;
            self.ahead_count += 1;
        }
        if let (true, Some(overtaken)) = (delivery.body.is_alarm, self.overtaken) {
            if !delivery.is_ahead {
                self.reorder();
            }
            let entry = Entry::Delivery(delivery);
            self.bytes += entry.bytes();
            self.deliveries_count += 1;
            self.queue.insert_before(overtaken, entry);
            self.charge();
        } else {
            self.push(Entry::Delivery(delivery));
        }
    }

    /// Puts an entry at the end. A gap that goes on where the last one ended becomes one with it, so that they are never
    /// many more than deliveries.
    pub(super) fn push(&mut self, entry: Entry) {
        if let Entry::Gap(gap) = &entry
            && gap.is_loss()
            && let Some((last, told)) = self.last_gap()
            && told.to + 1 == gap.from
        {
            self.queue.replace(last, Entry::Gap(told.joined(*gap)));
            return;
        }
        self.bytes += entry.bytes();
        let subject = match &entry {
            Entry::Answer(_) => {
                self.answers_count += 1;
                self.answer_bytes += entry.bytes();
                None
            }
            Entry::Delivery(delivery) => {
                self.deliveries_count += 1;
                self.keeps_latest(delivery).then(|| (Subject::of(delivery), delivery.offset))
            }
            Entry::Gap(_) => None,
        };
        let can_be_overtaken = match &entry {
            Entry::Answer(_) => false,
            Entry::Delivery(delivery) => !delivery.body.is_alarm,
            Entry::Gap(gap) => gap.reason != Reason::Epoch,
        };
        let spot = self.queue.push(entry);
        self.charge();
        self.overtaken = if can_be_overtaken { self.overtaken.or(Some(spot)) } else { None };
        if let Some((subject, offset)) = subject {
            self.latest.insert(subject, (offset, spot));
        }
    }

    /// Entries are about to be out of their order: from here on offsets are counted as they are told. Whatever waits follows
    /// upon each other without a hole, so that the numbers are the same, dealt out anew.
    fn reorder(&mut self) {
        self.has_holes = true;
        if !std::mem::replace(&mut self.is_reordered, true)
            && let Some(first) = self.queue.iter().find_map(first_offset_of)
        {
            self.told = first - 1;
        }
    }

    /// The offsets that an entry is told with.
    fn number(&mut self, entry: &mut Entry) {
        match entry {
            Entry::Answer(_) => {}
            Entry::Delivery(delivery) if delivery.is_ahead => {
                self.ahead_count -= 1;
                delivery.offset = self.told;
            }
            Entry::Delivery(delivery) => {
                if self.is_reordered {
                    delivery.offset = self.told + 1;
                }
                self.told = delivery.offset;
            }
            Entry::Gap(gap) => {
                if self.is_reordered {
                    *gap = Gap { from: self.told + 1, to: self.told + gap.count(), ..*gap };
                }
                self.told = gap.to;
            }
        }
    }

    /// Takes an entry out.
    fn remove(&mut self, spot: Spot) -> Option<Entry> {
        if self.overtaken == Some(spot) {
            self.overtaken = self.queue.after(spot);
        }
        self.queue.remove(spot)
    }

    fn policy(&self, delivery: &Delivery) -> OverflowName {
        delivery.overflow.unwrap_or(self.overflow)
    }

    /// An alarm is not lost for a newer one.
    fn keeps_latest(&self, delivery: &Delivery) -> bool {
        !delivery.body.is_alarm && self.policy(delivery) == OverflowName::KeepLatest
    }

    /// Takes note that a delivery comes: an earlier one of its subject gives way before others do.
    pub(super) fn supersede(&mut self, delivery: &Delivery) {
        if self.keeps_latest(delivery)
            && let Some((offset, spot)) = self.latest.remove(&Subject::of(delivery))
        {
            self.superseded.insert(offset, spot);
        }
    }

    /// Loses one delivery, in whose place a gap tells of it: the oldest of those after which a newer one of the same subject
    /// comes, or else the oldest. Says `false`, and does nothing, where that would rather end the connection.
    pub(super) fn lose_one(&mut self) -> bool {
        if let Some((_, spot)) = self.superseded.first_key_value() {
            self.has_holes = true;
            self.lose(*spot);
            return true;
        }
        let Some((spot, policy)) = self.oldest() else { return true };
        if policy == OverflowName::Disconnect {
            return false;
        }
        self.lose(spot);
        true
    }

    /// Where the oldest delivery is, and what it wants at the bound. An alarm is the oldest only among alarms.
    pub(super) fn oldest(&self) -> Option<(Spot, OverflowName)> {
        let spots = std::iter::successors(self.queue.first(), |spot| self.queue.after(*spot));
        let mut deliveries = spots.filter_map(|spot| match self.queue.get(spot)? {
            Entry::Delivery(delivery) => Some((spot, delivery)),
            Entry::Answer(_) | Entry::Gap(_) => None,
        });
        let first = deliveries.next()?;
        let ordinary = std::iter::once(first).chain(deliveries).find(|(_, delivery)| !delivery.body.is_alarm);
        let (spot, delivery) = ordinary.unwrap_or(first);
        Some((spot, self.policy(delivery)))
    }

    /// Puts a gap in the place of a delivery, which becomes one with those around it: there are never more of them than
    /// deliveries and one.
    fn lose(&mut self, spot: Spot) {
        let Some(Entry::Delivery(delivery)) = self.queue.get(spot) else { return };
        let mut gap = Gap { from: delivery.offset, to: delivery.offset, reason: Reason::Overflow };
        let bytes = ENTRY_BYTES + delivery.bytes();
        let subject = self.keeps_latest(delivery).then(|| Subject::of(delivery));
        self.forget(subject, gap.from);
        self.deliveries_count -= 1;
        self.bytes -= bytes;
        let mut place = spot;
        match self.gap_beside(spot, Queue::before) {
            Some((before, told)) if told.to + 1 == gap.from => {
                gap = told.joined(gap);
                self.remove(spot);
                place = before;
            }
            _ => self.bytes += ENTRY_BYTES,
        }
        if let Some((after, told)) = self.gap_beside(place, Queue::after)
            && gap.to + 1 == told.from
        {
            gap = gap.joined(told);
            self.remove(after);
            self.bytes -= ENTRY_BYTES;
        }
        self.queue.replace(place, Entry::Gap(gap));
    }

    /// The gap at the end, with nothing but answers behind it.
    fn last_gap(&self) -> Option<(Spot, Gap)> {
        self.gap_at(self.queue.last()?, Queue::before)
    }

    /// The next gap in a direction, with nothing but answers in between.
    fn gap_beside(&self, spot: Spot, next: fn(&Queue, Spot) -> Option<Spot>) -> Option<(Spot, Gap)> {
        self.gap_at(next(&self.queue, spot)?, next)
    }

    fn gap_at(&self, mut spot: Spot, next: fn(&Queue, Spot) -> Option<Spot>) -> Option<(Spot, Gap)> {
        while let Some(Entry::Answer(_)) = self.queue.get(spot) {
            spot = next(&self.queue, spot)?;
        }
        match self.queue.get(spot) {
            Some(Entry::Gap(gap)) if gap.is_loss() => Some((spot, *gap)),
            _ => None,
        }
    }

    /// A delivery waits no more.
    fn forget(&mut self, subject: Option<Subject>, offset: u64) {
        if let Some(subject) = subject
            && self.superseded.remove(&offset).is_none()
        {
            self.latest.remove(&subject);
        }
    }

    /// Forgets everything that waits, and says how many deliveries that were.
    pub(super) fn abandon(&mut self, close: Close) -> u64 {
        let lost = self.deliveries_count as u64;
        let recipient = self.recipient.take();
        *self = Self { close: Some(close), sleeps: self.sleeps, recipient, ..Self::new(self.overflow) };
        lost
    }

    /// Moves entries from the front; says whether answers were among them.
    pub(super) fn take(&mut self, batch: &mut Vec<Entry>, bytes_max: usize) -> bool {
        let answers_before = self.answers_count;
        let mut bytes_taken = 0;
        let recipient = self.recipient.clone();
        let mut written = recipient.as_deref().map(Recipient::written);
        while let Some(spot) = self.queue.first()
            && let Some(entry) = self.queue.get(spot)
        {
            let bytes = entry.bytes();
            if bytes_taken > 0 && bytes_taken + bytes > bytes_max {
                break;
            }
            bytes_taken += bytes;
            match entry {
                Entry::Answer(_) => {
                    self.answers_count -= 1;
                    self.answer_bytes -= bytes;
                }
                Entry::Delivery(delivery) => {
                    let offset = delivery.offset;
                    if let Some(written) = &mut written {
                        written.add(offset);
                    }
                    let subject = self.keeps_latest(delivery).then(|| Subject::of(delivery));
                    self.deliveries_count -= 1;
                    self.forget(subject, offset);
                }
                Entry::Gap(_) => {}
            }
            if let Some(mut entry) = self.remove(spot) {
                self.number(&mut entry);
                batch.push(entry);
            }
        }
        self.bytes -= bytes_taken;
        self.charge();
        if self.queue.is_empty() {
            self.has_holes = false;
            self.is_reordered = false;
            // A burst leaves a large queue behind, which an idle connection need not keep.
            if self.queue.capacity() > IDLE_ENTRIES {
                self.queue = Queue::new();
                self.latest = HashMap::default();
            }
        }
        self.answers_count < answers_before
    }
}

impl Subject {
    pub(crate) fn of(delivery: &Delivery) -> Self {
        Self { object: delivery.body.object, subscriptions: delivery.subscriptions.clone() }
    }
}

impl Gap {
    /// Whether it tells of deliveries that were lost one by one, and not of how a session begins, or of what has come already.
    fn is_loss(&self) -> bool {
        !matches!(self.reason, Reason::Epoch | Reason::Ahead)
    }

    /// The gap of both, of which `after` follows.
    fn joined(self, after: Self) -> Self {
        Self { from: self.from, to: after.to, reason: self.reason.max(after.reason) }
    }
}

fn offset_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Delivery(delivery) => Some(delivery.offset),
        Entry::Answer(_) | Entry::Gap(_) => None,
    }
}

/// The first offset that an entry tells of.
fn first_offset_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Delivery(delivery) => Some(delivery.offset),
        Entry::Gap(gap) => Some(gap.from),
        Entry::Answer(_) => None,
    }
}
