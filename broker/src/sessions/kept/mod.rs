//! The kept matches of a durable session, until the client acknowledges them: in order, bounded, and every loss remembered.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::budget::Held;
use crate::model::delivery::{Delivery, Gap, OverflowName, Reason};
use crate::outbox::Subject;

/// How much is kept for one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptBounds {
    pub(super) frames: usize,
    pub(super) bytes: usize,
    /// Time for which a match is kept, in milliseconds.
    pub(super) age_ms: u64,
    /// Policy for losses at the bound where no subscription says so.
    pub(super) overflow: OverflowName,
}

/// Totals of the kept matches of all clients of all shards.
#[derive(Debug)]
pub(crate) struct KeptTotal {
    limit: u64,
    matches: AtomicU64,
    bytes: AtomicU64,
    /// Bytes of the sessions that were taken up again at the start.
    restored_bytes: AtomicU64,
    /// Whether it was full, and has not been a tenth empty since.
    is_full: AtomicBool,
}

/// The matches of one session that are not acknowledged yet, and what has become of the offsets between them.
///
/// Every offset after the acknowledged one and up to the last is either that of a match or in a hole.
pub(super) struct Kept {
    matches: VecDeque<KeptMatch>,
    holes: VecDeque<Hole>,
    /// Last offset from before the session was durable.
    before: u64,
    acknowledged: u64,
    /// Bytes of the matches, as they count for the client.
    held: Held,
    total: Arc<KeptTotal>,
    /// The last matches of the subscriptions whose policy is to keep the latest; made when there is one.
    latest: Option<Box<Latest>>,
}

/// A match that is kept.
#[derive(Debug)]
pub(super) struct KeptMatch {
    pub(super) delivery: Delivery,
    /// When it came, in Unix milliseconds.
    pub(super) at_ms: u64,
}

/// Offsets of which nothing is kept, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    from: u64,
    to: u64,
    reason: Reason,
}

/// The deliveries of which the latest is to be kept, by offset.
#[derive(Default)]
struct Latest {
    /// Offset of the last match of each subject.
    last: HashMap<Subject, u64, foldhash::fast::RandomState>,
    /// Offsets of the matches before these, which go first.
    superseded: BTreeSet<u64>,
}

/// The next entry of a session, as far as it is kept.
#[derive(Debug)]
pub(super) enum Next<'a> {
    Match(&'a Delivery),
    Gap(Gap),
}

/// The outcome of keeping a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keeping {
    /// Whether it is kept: it is not where it alone is beyond the bounds, or others take all the room.
    pub(super) is_kept: bool,
    /// Whether one that had to go would rather have had readers that are behind cut off.
    pub(super) cuts_off: bool,
}

/// Holes beside each other beyond those that matches part.
const HOLES_SPARE: usize = 1_024;

/// Bytes of a match besides its texts.
const MATCH_BYTES: usize = 128;

impl KeptTotal {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let [matches, bytes, restored_bytes] = [0; 3].map(AtomicU64::new);
        Arc::new(Self { limit, matches, bytes, restored_bytes, is_full: AtomicBool::new(false) })
    }

    /// How many matches are kept.
    pub(crate) fn matches(&self) -> u64 {
        self.matches.load(Ordering::Relaxed)
    }

    /// Bytes of all kept matches. A text that several clients share counts for each of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there is room for `bytes` bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.has_room_without(0, bytes)
    }

    /// Whether there is room for the bytes once some others are given back.
    fn has_room_without(&self, given_back: usize, bytes: usize) -> bool {
        (self.bytes() + bytes as u64).saturating_sub(given_back as u64) <= self.limit
    }

    /// Whether it had room the last time that somebody asked this. Told once each time that it becomes full.
    pub(super) fn is_full_anew(&self) -> bool {
        !self.is_full.swap(true, Ordering::Relaxed)
    }

    /// Takes room for one more, if there is any.
    fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.limit);
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.matches.fetch_add(taken.into(), Ordering::Relaxed);
        taken
    }

    /// Takes room for what has it already.
    fn take_again(&self, bytes: u64) {
        self.matches.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.restored_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How much of what a session took when it was taken up again it may still take: where all together took more than there
    /// is room for, each gives up the same part.
    fn share(&self, bytes: usize) -> usize {
        let all = u128::from(self.restored_bytes.load(Ordering::Relaxed).max(self.limit).max(1));
        let share = bytes as u128 * u128::from(self.limit) / all;
        usize::try_from(share).expect("no more than the bytes")
    }

    fn give_back(&self, matches: u64, bytes: u64) {
        self.matches.fetch_sub(matches, Ordering::Relaxed);
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before - bytes < self.limit / 10 * 9 && self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}

impl KeptMatch {
    fn bytes(&self) -> usize {
        Self::bytes_of(&self.delivery)
    }

    /// Bytes that a kept match of this delivery takes.
    pub(super) fn bytes_of(delivery: &Delivery) -> usize {
        MATCH_BYTES + delivery.bytes()
    }
}

impl Kept {
    /// Nothing is kept of what was before, and nobody misses it.
    pub(super) fn after(before: u64, total: Arc<KeptTotal>, held: Held) -> Self {
        let (matches, holes) = (VecDeque::new(), VecDeque::new());
        Self { matches, holes, before, acknowledged: before, held, total, latest: None }
    }

    pub(super) fn count(&self) -> usize {
        self.matches.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// Bytes of the matches.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.held.bytes()).expect("it is in memory")
    }

    /// Whether one more match of `bytes` bytes costs the session one of its own, whatever others have.
    pub(super) fn is_at_bound(&self, bytes: usize, bounds: &KeptBounds) -> bool {
        self.matches.len() >= bounds.frames || self.bytes() + bytes > bounds.bytes
    }

    /// Up to where the client has it.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The offset before which nothing is kept, where the last one is `last`.
    pub(super) fn floor(&self, last: u64) -> u64 {
        self.matches.front().map_or(last, |oldest| oldest.delivery.offset - 1)
    }

    /// When the oldest came.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.matches.front().map(|oldest| oldest.at_ms)
    }

    pub(super) fn contains(&self, offset: u64) -> bool {
        self.index_of(offset).is_some()
    }

    fn index_of(&self, offset: u64) -> Option<usize> {
        self.matches.binary_search_by_key(&offset, |kept| kept.delivery.offset).ok()
    }

    /// Where the first match behind an offset is. Most ask for the last ones, which are where their offsets say unless there
    /// are holes between them.
    fn index_after(&self, offset: u64) -> usize {
        let Some(last) = self.matches.back() else { return 0 };
        let behind = usize::try_from(last.delivery.offset.saturating_sub(offset)).ok();
        let index = behind.and_then(|behind| self.matches.len().checked_sub(behind));
        let is_at =
            |index: &usize| self.matches.get(*index).is_some_and(|kept| kept.delivery.offset == offset + 1);
        index
            .filter(is_at)
            .unwrap_or_else(|| self.matches.partition_point(|kept| kept.delivery.offset <= offset))
    }

    /// Keeps the next match. What has to go for it is appended to `gone`; for one that finds no room even so nothing goes.
    pub(super) fn push(&mut self, new: KeptMatch, bounds: &KeptBounds, gone: &mut Vec<u64>) -> Keeping {
        let bytes = new.bytes();
        let mut keeping = Keeping::default();
        if bytes > bounds.bytes || !self.total.has_room_without(self.bytes(), bytes) {
            self.skip(new.delivery.offset, Reason::Overflow);
            return keeping;
        }
        let is_latest = keeps_latest(&new.delivery, bounds);
        if is_latest {
            self.latest.get_or_insert_default().supersede(&new.delivery);
        }
        while self.is_at_bound(bytes, bounds) || !self.total.take(bytes as u64) {
            let Some(cuts_off) = self.lose_one(bounds, gone) else {
                self.skip(new.delivery.offset, Reason::Overflow);
                return keeping;
            };
            keeping.cuts_off |= cuts_off;
        }
        keeping.is_kept = true;
        self.held.set(self.held.bytes() + bytes as u64);
        if is_latest {
            self.latest.get_or_insert_default().add(&new.delivery);
        }
        self.matches.push_back(new);
        keeping
    }

    /// Loses a match by the policy. Says whether it would rather have had readers that are behind cut off; `None` where
    /// there is none to lose.
    pub(super) fn lose_one(&mut self, bounds: &KeptBounds, gone: &mut Vec<u64>) -> Option<bool> {
        // An alarm goes only where there is nothing else.
        let first = self.matches.iter().position(|kept| !kept.delivery.body.is_alarm).unwrap_or(0);
        let oldest = self.matches.get(first)?;
        let superseded = self.latest.as_ref().and_then(|latest| latest.superseded.first().copied());
        let index = superseded.and_then(|offset| self.index_of(offset));
        let cuts_off = index.is_none()
            && oldest.delivery.overflow.unwrap_or(bounds.overflow) == OverflowName::Disconnect;
        gone.push(self.lose(index.unwrap_or(first), Reason::Overflow));
        Some(cuts_off)
    }

    /// Takes back a match that was kept before; they come in the order of their offsets, with the holes between them. What
    /// was lowered since counts when all of them are back, in [`fit`](Self::fit).
    pub(super) fn restore(&mut self, kept: KeptMatch, bounds: &KeptBounds) {
        let bytes = kept.bytes();
        self.total.take_again(bytes as u64);
        self.held.set(self.held.bytes() + bytes as u64);
        if keeps_latest(&kept.delivery, bounds) {
            let latest = self.latest.get_or_insert_default();
            latest.supersede(&kept.delivery);
            latest.add(&kept.delivery);
        }
        self.matches.push_back(kept);
    }

    /// Loses what is beyond bounds that were lowered since it was kept; what went is appended to `gone`.
    pub(super) fn fit(&mut self, bounds: &KeptBounds, gone: &mut Vec<u64>) {
        let bytes_max = self.total.share(self.bytes()).min(bounds.bytes);
        while (self.matches.len() > bounds.frames || self.bytes() > bytes_max)
            && self.lose_one(bounds, gone).is_some()
        {}
    }

    /// The next offset is not kept.
    pub(super) fn skip(&mut self, offset: u64, reason: Reason) {
        self.skip_range(offset, offset, reason);
    }

    /// The next offsets are not kept.
    pub(super) fn skip_range(&mut self, from: u64, to: u64, reason: Reason) {
        if to < from {
            return;
        }
        match self.holes.back_mut() {
            Some(last) if last.to + 1 == from && last.reason == reason => last.to = to,
            _ => self.holes.push_back(Hole { from, to, reason }),
        }
        self.bound_holes();
    }

    /// Forgets everything up to an offset.
    pub(super) fn acknowledge(&mut self, offset: u64) {
        if offset <= self.acknowledged {
            return;
        }
        self.acknowledged = offset;
        while self.matches.front().is_some_and(|oldest| oldest.delivery.offset <= offset) {
            self.take_out(0);
        }
        while let Some(first) = self.holes.front_mut()
            && first.from <= offset
        {
            if first.to > offset {
                first.from = offset + 1;
                break;
            }
            self.holes.pop_front();
        }
        if self.matches.is_empty() {
            // A burst leaves a large queue behind.
            self.matches = VecDeque::new();
            self.latest = None;
        }
    }

    /// Loses what came before a time; what went is appended to `gone`.
    pub(super) fn expire(&mut self, before_ms: u64, gone: &mut Vec<u64>) {
        while self.oldest_ms().is_some_and(|oldest| oldest < before_ms) {
            gone.push(self.lose(0, Reason::Age));
        }
    }

    /// The next entry after an offset, up to the last that may be seen; `None` where that is reached.
    pub(super) fn next(&self, after: u64, last: u64) -> Option<Next<'_>> {
        if after >= last {
            return None;
        }
        let from = after + 1;
        let gap = |to: u64, reason| Some(Next::Gap(Gap { from, to: to.min(last), reason }));
        if after < self.before {
            return gap(self.before, Reason::NotDurable);
        }
        if after < self.acknowledged {
            return gap(self.acknowledged, Reason::Acknowledged);
        }
        let next = self.matches.get(self.index_after(after));
        if let Some(kept) = next.filter(|kept| kept.delivery.offset == from) {
            return Some(Next::Match(&kept.delivery));
        }
        let hole = self.holes.get(self.holes.partition_point(|hole| hole.to <= after));
        match hole.filter(|hole| hole.from <= from) {
            Some(hole) => gap(hole.to, hole.reason),
            // Nobody should get here: an offset that is neither kept nor lost. Better told than waited for.
            None => gap(next.map_or(last, |kept| kept.delivery.offset - 1), Reason::NotDurable),
        }
    }

    /// The alarm at an offset, if there is one.
    pub(super) fn alarm(&self, offset: u64) -> Option<&Delivery> {
        let kept = self.matches.get(self.index_after(offset - 1))?;
        (kept.delivery.offset == offset && kept.delivery.body.is_alarm).then_some(&kept.delivery)
    }

    /// The alarms after an offset, up to the last that may be seen. Looks at all that is kept.
    pub(super) fn alarms(&self, after: u64, last: u64) -> impl Iterator<Item = &Delivery> {
        let matches = self.matches.range(self.index_after(after)..).map(|kept| &kept.delivery);
        matches.take_while(move |one| one.offset <= last).filter(|one| one.body.is_alarm)
    }

    /// The last offset that was lost although it should have been kept; 0 where there is none.
    pub(super) fn last_loss(&self) -> u64 {
        let is_loss = |hole: &&Hole| matches!(hole.reason, Reason::Overflow | Reason::Age);
        self.holes.iter().rev().find(is_loss).map_or(0, |hole| hole.to)
    }

    /// Loses a match, and remembers why.
    fn lose(&mut self, index: usize, reason: Reason) -> u64 {
        let offset = self.matches[index].delivery.offset;
        self.take_out(index);
        let at = self.holes.partition_point(|hole| hole.to < offset);
        let joins = |hole: Option<&Hole>| {
            hole.is_some_and(|hole| {
                hole.reason == reason && (hole.to + 1 == offset || offset + 1 == hole.from)
            })
        };
        let before = at.checked_sub(1).filter(|before| joins(self.holes.get(*before)));
        let after = joins(self.holes.get(at));
        match (before, after) {
            (Some(before), true) => {
                self.holes[before].to = self.holes[at].to;
                self.holes.remove(at);
            }
            (Some(before), false) => self.holes[before].to = offset,
            (None, true) => self.holes[at].from = offset,
            (None, false) => self.holes.insert(at, Hole { from: offset, to: offset, reason }),
        }
        self.bound_holes();
        offset
    }

    fn take_out(&mut self, index: usize) {
        let Some(kept) = self.matches.remove(index) else { return };
        let bytes = kept.bytes() as u64;
        self.held.shrink(self.held.bytes() - bytes);
        self.total.give_back(1, bytes);
        if let Some(latest) = &mut self.latest {
            latest.remove(&kept.delivery);
        }
    }

    /// Where there are more holes than matches to part them, those beside each other become one, whose reason is the
    /// worst of theirs.
    fn bound_holes(&mut self) {
        if self.holes.len() <= 2 * self.matches.len() + HOLES_SPARE {
            return;
        }
        let mut joined: VecDeque<Hole> = VecDeque::with_capacity(self.matches.len() + 1);
        for hole in self.holes.drain(..) {
            match joined.back_mut() {
                Some(last) if last.to + 1 == hole.from => {
                    (last.to, last.reason) = (hole.to, last.reason.max(hole.reason));
                }
                _ => joined.push_back(hole),
            }
        }
        self.holes = joined;
    }
}

/// Whether a newer delivery of its subject is worth more than it. An alarm is not lost for a newer one.
fn keeps_latest(delivery: &Delivery, bounds: &KeptBounds) -> bool {
    let policy = delivery.overflow.unwrap_or(bounds.overflow);
    policy == OverflowName::KeepLatest && !delivery.body.is_alarm
}

impl Latest {
    /// A newer delivery of a subject comes.
    fn supersede(&mut self, new: &Delivery) {
        self.superseded.extend(self.last.remove(&Subject::of(new)));
    }

    fn add(&mut self, delivery: &Delivery) {
        self.last.insert(Subject::of(delivery), delivery.offset);
    }

    /// A delivery is kept no more.
    fn remove(&mut self, delivery: &Delivery) {
        if !self.superseded.remove(&delivery.offset) {
            let subject = Subject::of(delivery);
            if self.last.get(&subject) == Some(&delivery.offset) {
                self.last.remove(&subject);
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.total.give_back(self.matches.len() as u64, self.held.bytes());
    }
}

#[cfg(test)]
mod tests;
