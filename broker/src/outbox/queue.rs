//! Deliveries in the order of their offsets, and the choice of the one that is lost at a bound.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::model::delivery::{Delivery, OverflowName, SubscriptionIds};
use crate::model::event::ObjectHash;

/// Deliveries in the order of their offsets.
pub(super) struct Queue {
    entries: VecDeque<Queued>,
    /// Bytes of a delivery besides its texts.
    overhead: usize,
    bytes: usize,
    /// Bytes of all deliveries that were ever put in.
    put_bytes: u64,
    /// The last deliveries of the subscriptions whose policy is to keep the latest; made when there is one.
    latest: Option<Box<Latest>>,
}

/// A delivery that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) delivery: Delivery,
    /// When it came, in Unix milliseconds.
    pub(super) at_ms: u64,
    /// Bytes of all that were ever put in before it.
    begins_at: u64,
}

/// The delivery that is lost next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    index: usize,
    pub(super) offset: u64,
    /// Whether its policy is rather to disconnect.
    pub(super) disconnects: bool,
}

/// How many deliveries there are, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

/// The deliveries whose policy is to keep the latest, by offset.
#[derive(Default)]
struct Latest {
    /// Offset of the last delivery of each subject.
    last: HashMap<Subject, u64, foldhash::fast::RandomState>,
    /// Offsets of the deliveries before these, which are lost first.
    superseded: BTreeSet<u64>,
}

/// The subject of a delivery: a newer delivery of a subject supersedes the ones before it.
#[derive(PartialEq, Eq, Hash)]
struct Subject {
    object: ObjectHash,
    subscriptions: SubscriptionIds,
}

/// Deliveries that an idle queue keeps memory for.
const IDLE: usize = 64;

impl Queue {
    /// Makes an empty queue in which a delivery takes `overhead` bytes besides its texts.
    pub(super) const fn new(overhead: usize) -> Self {
        Self { entries: VecDeque::new(), overhead, bytes: 0, put_bytes: 0, latest: None }
    }

    pub(super) fn size(&self) -> Size {
        Size { count: self.entries.len(), bytes: self.bytes }
    }

    /// Bytes that a delivery takes here.
    pub(super) fn bytes_of(&self, delivery: &Delivery) -> usize {
        self.overhead + delivery.bytes()
    }

    pub(super) fn front(&self) -> Option<&Queued> {
        self.entries.front()
    }

    fn index_of(&self, offset: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&offset, |queued| queued.delivery.offset).ok()
    }

    pub(super) fn contains(&self, offset: u64) -> bool {
        self.index_of(offset).is_some()
    }

    /// The index of the first delivery behind an offset. Most callers ask for one of the last, which are where their offsets
    /// say unless something is missing between them.
    fn index_after(&self, offset: u64) -> usize {
        let Some(last) = self.entries.back() else { return 0 };
        let behind = usize::try_from(last.delivery.offset.saturating_sub(offset)).ok();
        let index = behind.and_then(|behind| self.entries.len().checked_sub(behind));
        let is_at =
            |index: &usize| self.entries.get(*index).is_some_and(|one| one.delivery.offset == offset + 1);
        index
            .filter(is_at)
            .unwrap_or_else(|| self.entries.partition_point(|one| one.delivery.offset <= offset))
    }

    /// The first delivery behind an offset.
    pub(super) fn after(&self, offset: u64) -> Option<&Delivery> {
        self.entries.get(self.index_after(offset)).map(|queued| &queued.delivery)
    }

    /// How much there is behind an offset. The bytes are too many where deliveries behind it were lost.
    pub(super) fn size_after(&self, offset: u64) -> Size {
        let index = self.index_after(offset);
        let begins_at = self.entries.get(index).map_or(self.put_bytes, |first| first.begins_at);
        let bytes = usize::try_from(self.put_bytes - begins_at).unwrap_or(usize::MAX);
        Size { count: self.entries.len() - index, bytes: bytes.min(self.bytes) }
    }

    /// The alarms behind an offset, up to another. Looks at all deliveries between the two.
    pub(super) fn alarms(&self, after: u64, to: u64) -> impl Iterator<Item = &Delivery> {
        let entries = self.entries.range(self.index_after(after)..).map(|queued| &queued.delivery);
        entries.take_while(move |one| one.offset <= to).filter(|one| one.body.is_alarm)
    }

    /// Notes that a delivery is about to come, so that the one before it of the same subject is lost first.
    pub(super) fn supersede(&mut self, new: &Delivery, overflow: OverflowName) {
        if keeps_latest(new, overflow) {
            let latest = self.latest.get_or_insert_default();
            latest.superseded.extend(latest.last.remove(&Subject::of(new)));
        }
    }

    /// Puts the next delivery in.
    pub(super) fn push(&mut self, delivery: Delivery, at_ms: u64, overflow: OverflowName) {
        let bytes = self.bytes_of(&delivery);
        if keeps_latest(&delivery, overflow) {
            self.latest.get_or_insert_default().last.insert(Subject::of(&delivery), delivery.offset);
        }
        self.entries.push_back(Queued { delivery, at_ms, begins_at: self.put_bytes });
        self.bytes += bytes;
        self.put_bytes += bytes as u64;
    }

    /// Puts a delivery back in that is older than some that are there.
    pub(super) fn put_back(&mut self, delivery: Delivery) {
        let bytes = self.bytes_of(&delivery);
        let index = self.index_after(delivery.offset);
        let begins_at = self.entries.get(index).map_or(self.put_bytes, |after| after.begins_at);
        self.entries.insert(index, Queued { delivery, at_ms: 0, begins_at });
        self.bytes += bytes;
        self.put_bytes += bytes as u64;
        self.entries.range_mut(index + 1..).for_each(|after| after.begins_at += bytes as u64);
    }

    /// The delivery that is lost next: the oldest of those that a newer one of their subject supersedes, or else the oldest. An
    /// alarm is lost only where there is nothing else.
    pub(super) fn victim(&self, overflow: OverflowName) -> Option<Victim> {
        let superseded = self.latest.as_ref().and_then(|latest| latest.superseded.first().copied());
        if let Some((index, offset)) = superseded.and_then(|offset| Some((self.index_of(offset)?, offset))) {
            return Some(Victim { index, offset, disconnects: false });
        }
        let index = self.entries.iter().position(|queued| !queued.delivery.body.is_alarm).unwrap_or(0);
        let oldest = &self.entries.get(index)?.delivery;
        let disconnects = oldest.overflow.unwrap_or(overflow) == OverflowName::Disconnect;
        Some(Victim { index, offset: oldest.offset, disconnects })
    }

    /// Takes out a victim that was found in this state of the queue.
    pub(super) fn lose(&mut self, victim: Victim) {
        self.remove(victim.index);
    }

    pub(super) fn pop_front(&mut self) -> Option<Queued> {
        self.remove(0)
    }

    fn remove(&mut self, index: usize) -> Option<Queued> {
        let removed = self.entries.remove(index)?;
        self.bytes -= self.bytes_of(&removed.delivery);
        if let Some(latest) = &mut self.latest {
            latest.remove(&removed.delivery);
        }
        // A burst leaves a large queue behind.
        if self.entries.is_empty() && self.entries.capacity() > IDLE {
            self.entries = VecDeque::new();
            self.latest = None;
        }
        Some(removed)
    }
}

/// Whether a newer delivery of its subject is worth more than it. An alarm is not lost for a newer one.
fn keeps_latest(delivery: &Delivery, overflow: OverflowName) -> bool {
    delivery.overflow.unwrap_or(overflow) == OverflowName::KeepLatest && !delivery.body.is_alarm
}

impl Latest {
    fn remove(&mut self, delivery: &Delivery) {
        if !self.superseded.remove(&delivery.offset) {
            let subject = Subject::of(delivery);
            if self.last.get(&subject) == Some(&delivery.offset) {
                self.last.remove(&subject);
            }
        }
    }
}

impl Subject {
    fn of(delivery: &Delivery) -> Self {
        Self { object: delivery.body.object, subscriptions: delivery.subscriptions.clone() }
    }
}
