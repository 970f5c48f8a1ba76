//! What a durable session retains until its client acknowledges it.

use super::{KEPT_BYTES, Keep, Log};
use crate::budget::Held;
use crate::model::delivery::{Delivery, GapReason};
use crate::outbox::Bounds;
use crate::outbox::retention::KeptBounds;

impl Log {
    /// Retains deliveries from now on, until they are acknowledged. `offset` is the last of the session.
    pub(crate) fn make_durable(&mut self, offset: u64, held: Held) {
        self.durable_after = Some(offset);
        self.acknowledged = offset;
        self.given = self.given.max(offset);
        self.kept_held = held;
    }

    /// Retains nothing any more. There is nothing that is not acknowledged.
    pub(crate) fn end_durable(&mut self) {
        self.durable_after = None;
        self.kept_held = Held::default();
        self.trim();
    }

    /// How many deliveries are retained.
    pub(crate) fn kept_count(&self) -> usize {
        self.kept.size().count
    }

    /// Bytes of the retained deliveries.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.size().bytes
    }

    /// Bytes that a delivery takes where it is retained.
    pub(crate) fn kept_bytes_of(delivery: &Delivery) -> usize {
        KEPT_BYTES + delivery.bytes()
    }

    /// Whether one more delivery of `bytes` bytes costs the session one of its own, whatever others have.
    pub(crate) fn is_at_bound(&self, bytes: usize, bounds: &KeptBounds) -> bool {
        let size = self.kept.size();
        size.count >= bounds.frames || size.bytes + bytes > bounds.bytes
    }

    /// The last offset that the client has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The offset before which nothing is retained, where the last one is `last`.
    pub(crate) fn floor(&self, last: u64) -> u64 {
        self.kept.front().map_or(last, |oldest| oldest.delivery.offset - 1)
    }

    /// When the oldest retained delivery came, in Unix milliseconds.
    pub(crate) fn oldest_ms(&self) -> Option<u64> {
        self.kept.front().map(|oldest| oldest.at_ms)
    }

    /// Whether a delivery is retained.
    pub(crate) fn keeps(&self, offset: u64) -> bool {
        self.kept.contains(offset)
    }

    /// The last offset that was lost although it should have been retained; 0 where there is none behind what is acknowledged.
    pub(crate) fn last_loss(&self) -> u64 {
        // Before the session was durable, connections may have lost some.
        Some(self.holes.last_loss()).filter(|lost| *lost > self.acknowledged).unwrap_or(0)
    }

    /// Puts a delivery in that is on disk. They come in the order of their offsets. Bounds that were lowered since count when
    /// all of them are back, in [`fit`](Self::fit).
    pub(crate) fn restore(&mut self, delivery: Delivery, Keep { bounds, at_ms }: Keep<'_>) {
        let bytes = self.kept.bytes_of(&delivery) as u64;
        self.total.take_again(bytes);
        self.kept_held.set(self.kept_held.bytes() + bytes);
        self.kept.supersede(&delivery, bounds.overflow);
        self.kept.push(delivery, at_ms, bounds.overflow);
    }

    /// Loses what is beyond bounds that were lowered; the offsets are appended to `gone`.
    pub(crate) fn fit(&mut self, bounds: &KeptBounds, gone: &mut Vec<u64>) {
        let bytes_max = self.total.share(self.kept_bytes()).min(bounds.bytes);
        while (self.kept_count() > bounds.frames || self.kept_bytes() > bytes_max)
            && self.lose_kept(bounds.overflow, gone, &mut Vec::new())
        {}
    }

    /// Says that a connection has an offset, although this log did not give it that.
    pub(crate) fn note_given(&mut self, offset: u64) {
        self.given = self.given.max(offset);
    }

    /// Retains nothing any more up to an offset, as far as it was given to a connection. Connections that are behind it still
    /// get it; says whether it was new.
    pub(crate) fn acknowledge(&mut self, offset: u64) -> bool {
        let offset = offset.min(self.given);
        if offset <= self.acknowledged {
            return false;
        }
        self.acknowledged = offset;
        let mut count = 0;
        let mut unread = Vec::new();
        while self.kept.front().is_some_and(|oldest| oldest.delivery.offset <= offset)
            && let Some(first) = self.kept.pop_front()
        {
            count += 1;
            if self.cursors.iter().any(|cursor| cursor.misses(first.delivery.offset)) {
                unread.push(first.delivery);
            }
        }
        self.settle_kept(count);
        // Where there is no room for them a gap says that they are acknowledged.
        let Bounds { frames, bytes, .. } = self.bounds;
        for delivery in unread.into_iter().rev() {
            let (size, new) = (self.passing.size(), self.passing.bytes_of(&delivery));
            if size.count < frames && size.bytes + new <= bytes {
                self.passing.put_back(delivery);
            }
        }
        self.holes.forget(offset);
        self.charge();
        true
    }

    /// Retains nothing of what there is, for the client is gone.
    pub(crate) fn acknowledge_all(&mut self) {
        self.note_given(u64::MAX);
        self.acknowledge(u64::MAX);
    }

    /// Loses what came before a time; the offsets are appended to `gone`.
    pub(crate) fn expire(&mut self, before_ms: u64, gone: &mut Vec<u64>) {
        let mut count = 0;
        while self.oldest_ms().is_some_and(|oldest| oldest < before_ms)
            && let Some(first) = self.kept.pop_front()
        {
            count += 1;
            gone.push(first.delivery.offset);
            self.holes.insert(first.delivery.offset, GapReason::Age);
        }
        self.holes.bound(self.count());
        self.settle_kept(count);
    }
}
