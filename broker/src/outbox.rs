//! What waits for a connection: deliveries, told losses and answers, in order and bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use matcher::live::Cause;
use tokio::sync::Notify;

use crate::config::{self, OverflowName};
use crate::ingest::feature::Body;
use crate::recipient::Recipient;

/// The queue between an engine's thread and the writer of one connection.
///
/// Putting something in never waits: a reader that does not keep up loses by the policy, and nobody else feels it.
pub(crate) struct Outbox {
    /// Names the connection; the owner of the subscriptions that end with it.
    pub(crate) connection: u64,
    bounds: Bounds,
    /// A std mutex: held for a few pushes and pops, never over an await.
    state: Mutex<State>,
    filled: Notify,
    answered: Notify,
    /// Milliseconds from `started` to when the other side was last heard.
    heard_ms: AtomicU64,
    started: Instant,
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    frames: usize,
    bytes: usize,
    answers: usize,
    overflow: OverflowName,
}

/// Something to write.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The answer to a request, ready to be written.
    Answer(Box<str>),
    /// An event for the client.
    Delivery(Delivery),
    /// Deliveries were lost here.
    Gap(Gap),
}

/// An event for a client.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Its number in the client's session.
    pub(crate) offset: u64,
    /// The client's subscriptions that it satisfies, or that its object entered or left.
    pub(crate) subscriptions: Names,
    /// What brought it.
    pub(crate) cause: Cause,
    /// What became of its object there, where the subscriptions are told of that.
    pub(crate) transition: Option<Transition>,
    /// The event.
    pub(crate) body: Arc<Body>,
    /// What one of the subscriptions wants at the bound, if it said so.
    pub(crate) overflow: Option<OverflowName>,
}

/// What becomes of an object in a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// It is inside now.
    Enter,
    /// It is inside no more.
    Exit,
}

/// Ids of subscriptions, as JSON texts. Mostly one.
#[derive(Clone, Debug)]
pub(crate) enum Names {
    One(Arc<str>),
    Many(Arc<[Arc<str>]>),
}

/// Deliveries that were lost: all from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: &'static str,
}

/// Why the broker ends a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// The WebSocket status code.
    pub(crate) code: u16,
    /// In words.
    pub(crate) reason: &'static str,
}

/// What putting a delivery in led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// Deliveries that were lost for it.
    pub(crate) dropped: u64,
    /// Whether the writer waits and has to be woken by [`Outbox::wake`].
    pub(crate) sleeps: bool,
    /// Whether it ended the connection.
    pub(crate) cut_off: bool,
}

struct State {
    entries: VecDeque<Entry>,
    deliveries_count: usize,
    answers_count: usize,
    bytes: usize,
    /// Where the gap is that further losses extend.
    gap_idx: Option<usize>,
    close: Option<Close>,
    sleeps: bool,
    /// Where it is noted what the writer takes, if anywhere.
    recipient: Option<Arc<Recipient>>,
}

/// What an entry takes besides its text.
const ENTRY_BYTES: usize = 96;

impl Bounds {
    pub(crate) fn new(settings: &config::Outbox) -> Self {
        let config::Outbox { frames, bytes, answers, overflow } = *settings;
        Self { frames, bytes, answers, overflow }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Answer(text) => text.len(),
                Self::Delivery(delivery) => delivery.bytes(),
                Self::Gap(_) => 0,
            }
    }
}

impl Delivery {
    /// When its event was read, where nothing but the broker's own work lies between that and now: a transition may
    /// have waited for `dwell_s`, and what a subscriber came by is as old as it is.
    pub(crate) fn fresh_since(&self) -> Option<Instant> {
        (self.cause == Cause::Published && self.transition.is_none()).then_some(self.body.received)
    }

    fn bytes(&self) -> usize {
        let names = match &self.subscriptions {
            Names::One(name) => name.len(),
            Names::Many(names) => names.iter().map(|name| name.len() + 1).sum(),
        };
        self.body.text.len() + names
    }
}

impl Outbox {
    pub(crate) fn new(connection: u64, bounds: Bounds) -> Self {
        let state = State {
            entries: VecDeque::new(),
            deliveries_count: 0,
            answers_count: 0,
            bytes: 0,
            gap_idx: None,
            close: None,
            sleeps: false,
            recipient: None,
        };
        Self {
            connection,
            bounds,
            state: Mutex::new(state),
            filled: Notify::new(),
            answered: Notify::new(),
            heard_ms: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes from now on what the writer takes.
    pub(crate) fn note_for(&self, recipient: Arc<Recipient>) {
        self.state().recipient = Some(recipient);
    }

    /// Whether a delivery waits for the writer.
    pub(crate) fn waits(&self, offset: u64) -> bool {
        let state = self.state();
        // They are in their order, and mostly there is nothing before the first or behind the last.
        let offset_of = |entry: &Entry| match entry {
            Entry::Delivery(delivery) => Some(delivery.offset),
            Entry::Answer(_) | Entry::Gap(_) => None,
        };
        let first = state.entries.iter().find_map(offset_of);
        let last = state.entries.iter().rev().find_map(offset_of);
        first.is_some_and(|first| first <= offset) && last.is_some_and(|last| offset <= last)
    }

    /// Puts a delivery in; at the bound the policy decides what is lost.
    pub(crate) fn push_delivery(&self, delivery: Delivery) -> Pushed {
        let mut state = self.state();
        if state.close.is_some() {
            return Pushed::default();
        }
        let mut dropped = 0;
        let bytes = ENTRY_BYTES + delivery.bytes();
        while state.deliveries_count > 0
            && (state.deliveries_count >= self.bounds.frames || state.bytes + bytes > self.bounds.bytes)
        {
            if state.drop_oldest(self.bounds.overflow) {
                dropped += 1;
            } else {
                let close = Close { code: 1013, reason: "overflow: the connection did not keep up" };
                dropped += state.abandon(close) + 1;
                return Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps), cut_off: true };
            }
        }
        state.bytes += bytes;
        state.deliveries_count += 1;
        state.entries.push_back(Entry::Delivery(delivery));
        Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps), cut_off: false }
    }

    /// Puts a gap at the end.
    pub(crate) fn push_gap(&self, gap: Gap) {
        self.push(Entry::Gap(gap));
    }

    /// Puts an answer in and wakes the writer.
    pub(crate) fn push_answer(&self, text: impl Into<Box<str>>) {
        self.push(Entry::Answer(text.into()));
    }

    fn push(&self, entry: Entry) {
        let mut state = self.state();
        if state.close.is_some() {
            return;
        }
        state.bytes += entry.bytes();
        state.answers_count += usize::from(matches!(entry, Entry::Answer(_)));
        state.entries.push_back(entry);
        let sleeps = std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.wake();
        }
    }

    /// Waits until there is room for another answer: who does not read answers is not read from.
    pub(crate) async fn room_for_answer(&self) {
        loop {
            {
                let state = self.state();
                if state.answers_count < self.bounds.answers || state.close.is_some() {
                    return;
                }
            }
            self.answered.notified().await;
        }
    }

    /// Wakes the writer.
    pub(crate) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Ends the connection once everything that waits is written. The first reason stands.
    pub(crate) fn close(&self, code: u16, reason: &'static str) {
        self.state().close.get_or_insert(Close { code, reason });
        self.filled.notify_one();
        self.answered.notify_one();
    }

    /// Whether the connection is being ended.
    pub(crate) fn is_closing(&self) -> bool {
        self.state().close.is_some()
    }

    /// Waits for something to write and takes up to `bytes_max` of it, at least one entry, into `batch`, which
    /// is empty. An empty batch says that the connection ends, and why.
    pub(crate) async fn next_batch(&self, batch: &mut Vec<Entry>, bytes_max: usize) -> Option<Close> {
        loop {
            {
                let mut state = self.state();
                if state.take(batch, bytes_max) {
                    self.answered.notify_one();
                }
                if !batch.is_empty() {
                    return None;
                }
                if state.close.is_some() {
                    return state.close.clone();
                }
                state.sleeps = true;
            }
            self.filled.notified().await;
        }
    }

    /// Notes that the other side lives.
    pub(crate) fn hear(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(elapsed, Ordering::Relaxed);
    }

    /// For how long the other side has been silent.
    pub(crate) fn silence(&self) -> Duration {
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(heard)
    }
}

impl State {
    /// Loses the oldest delivery, in whose place a gap tells of it. Says `false`, and does nothing, where the
    /// delivery would rather end the connection.
    fn drop_oldest(&mut self, overflow: OverflowName) -> bool {
        let oldest = self.entries.iter().position(|entry| matches!(entry, Entry::Delivery(_)));
        let Some(index) = oldest else { return true };
        let Entry::Delivery(delivery) = &self.entries[index] else { return true };
        if delivery.overflow.unwrap_or(overflow) == OverflowName::Disconnect {
            return false;
        }
        let offset = delivery.offset;
        self.bytes -= self.entries[index].bytes();
        self.deliveries_count -= 1;
        match self.gap_idx.and_then(|gap_idx| self.entries.get_mut(gap_idx)) {
            Some(Entry::Gap(gap)) => {
                gap.to = offset;
                self.entries.remove(index);
            }
            _ => {
                let gap = Entry::Gap(Gap { from: offset, to: offset, reason: "overflow" });
                self.bytes += gap.bytes();
                self.entries[index] = gap;
                self.gap_idx = Some(index);
            }
        }
        true
    }

    /// Forgets everything that waits, and says how many deliveries that were.
    fn abandon(&mut self, close: Close) -> u64 {
        let lost = self.deliveries_count as u64;
        self.entries = VecDeque::new();
        self.deliveries_count = 0;
        self.answers_count = 0;
        self.bytes = 0;
        self.gap_idx = None;
        self.close = Some(close);
        lost
    }

    /// Moves entries from the front; says whether answers were among them.
    fn take(&mut self, batch: &mut Vec<Entry>, bytes_max: usize) -> bool {
        let answers_before = self.answers_count;
        let mut bytes_taken = 0;
        let mut written = self.recipient.as_deref().map(Recipient::written);
        while let Some(entry) = self.entries.front() {
            let bytes = entry.bytes();
            if bytes_taken > 0 && bytes_taken + bytes > bytes_max {
                break;
            }
            bytes_taken += bytes;
            match entry {
                Entry::Answer(_) => self.answers_count -= 1,
                Entry::Delivery(delivery) => {
                    self.deliveries_count -= 1;
                    if let Some(written) = &mut written {
                        written.add(delivery.offset);
                    }
                }
                Entry::Gap(_) => {}
            }
            batch.extend(self.entries.pop_front());
            self.gap_idx = self.gap_idx.and_then(|index| index.checked_sub(1));
        }
        self.bytes -= bytes_taken;
        // A burst leaves a large queue behind, which an idle connection need not keep.
        if self.entries.is_empty() && self.entries.capacity() > 64 {
            self.entries = VecDeque::new();
        }
        self.answers_count < answers_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROP: Bounds = Bounds { frames: 3, bytes: 10_000, answers: 2, overflow: OverflowName::DropOldest };

    fn delivery(offset: u64) -> Delivery {
        let body = Arc::new(Body { text: "{}".into(), received: Instant::now() });
        Delivery {
            offset,
            subscriptions: Names::One("\"s\"".into()),
            cause: Cause::Published,
            transition: None,
            body,
            overflow: None,
        }
    }

    /// What waits, in short: offsets, `from-to` for gaps and `a` for answers.
    async fn drain(outbox: &Outbox) -> Vec<String> {
        let mut shown = Vec::new();
        let mut batch = Vec::new();
        while !outbox.state().entries.is_empty() {
            assert_eq!(outbox.next_batch(&mut batch, 1).await, None);
            for entry in batch.drain(..) {
                shown.push(match entry {
                    Entry::Answer(_) => "a".to_owned(),
                    Entry::Delivery(delivery) => delivery.offset.to_string(),
                    Entry::Gap(gap) => format!("{}-{}", gap.from, gap.to),
                });
            }
        }
        let state = outbox.state();
        assert_eq!((state.bytes, state.deliveries_count, state.answers_count), (0, 0, 0));
        shown
    }

    #[tokio::test]
    async fn the_oldest_are_lost_and_one_gap_tells_of_them() {
        let outbox = Outbox::new(1, DROP);
        for offset in 1..=7 {
            outbox.push_delivery(delivery(offset));
        }
        assert_eq!(drain(&outbox).await, ["1-4", "5", "6", "7"]);
        // A new loss is a new gap.
        for offset in 8..=12 {
            outbox.push_delivery(delivery(offset));
        }
        assert_eq!(drain(&outbox).await, ["8-9", "10", "11", "12"]);
    }

    #[tokio::test]
    async fn a_gap_stands_where_the_loss_is_and_answers_are_never_lost() {
        let outbox = Outbox::new(1, DROP);
        outbox.push_answer("{}");
        outbox.push_delivery(delivery(1));
        outbox.push_answer("{}");
        for offset in 2..=5 {
            outbox.push_delivery(delivery(offset));
        }
        assert_eq!(drain(&outbox).await, ["a", "1-2", "a", "3", "4", "5"]);
    }

    #[tokio::test]
    async fn a_gap_that_is_written_already_is_not_extended() {
        let outbox = Outbox::new(1, DROP);
        for offset in 1..=5 {
            outbox.push_delivery(delivery(offset));
        }
        let mut batch = Vec::new();
        outbox.next_batch(&mut batch, 1).await;
        assert!(matches!(batch[..], [Entry::Gap(Gap { from: 1, to: 2, .. })]));
        outbox.push_delivery(delivery(6));
        assert_eq!(drain(&outbox).await, ["3-3", "4", "5", "6"]);
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_one_delivery_always_fits() {
        let outbox = Outbox::new(1, Bounds { bytes: 250, ..DROP });
        for offset in 1..=3 {
            outbox.push_delivery(delivery(offset));
        }
        assert_eq!(drain(&outbox).await, ["1-2", "3"]);
        let outbox = Outbox::new(1, Bounds { bytes: 1, ..DROP });
        assert_eq!(outbox.push_delivery(delivery(1)), Pushed::default());
        assert_eq!(drain(&outbox).await, ["1"]);
    }

    #[tokio::test]
    async fn who_would_rather_be_cut_off_is_cut_off() {
        let outbox = Outbox::new(1, DROP);
        outbox.push_delivery(Delivery { overflow: Some(OverflowName::Disconnect), ..delivery(1) });
        for offset in 2..=5 {
            outbox.push_delivery(delivery(offset));
        }
        let mut batch = Vec::new();
        let close = outbox.next_batch(&mut batch, 1).await.unwrap();
        assert_eq!((close.code, batch.len()), (1013, 0));
        assert!(outbox.push_delivery(delivery(6)).dropped == 0);
        // Who would not, stays although that is the broker's default.
        let outbox = Outbox::new(1, Bounds { overflow: OverflowName::Disconnect, ..DROP });
        for offset in 1..=4 {
            outbox.push_delivery(Delivery { overflow: Some(OverflowName::DropOldest), ..delivery(offset) });
        }
        assert_eq!(drain(&outbox).await, ["1-1", "2", "3", "4"]);
    }

    #[tokio::test]
    async fn what_waits_is_written_before_the_end() {
        let outbox = Outbox::new(1, DROP);
        outbox.push_delivery(delivery(1));
        outbox.close(1001, "first");
        outbox.close(1000, "second");
        outbox.push_delivery(delivery(2));
        assert_eq!(drain(&outbox).await, ["1"]);
        let close = outbox.next_batch(&mut Vec::new(), 1).await.unwrap();
        assert_eq!(close, Close { code: 1001, reason: "first" });
    }

    #[tokio::test]
    async fn who_does_not_read_answers_waits() {
        let outbox = Arc::new(Outbox::new(1, DROP));
        outbox.push_answer("{}");
        outbox.room_for_answer().await;
        outbox.push_answer("{}");
        let asker = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.room_for_answer().await }
        });
        tokio::task::yield_now().await;
        assert!(!asker.is_finished());
        outbox.next_batch(&mut Vec::new(), 1).await;
        asker.await.unwrap();
    }

    #[tokio::test]
    async fn a_sleeping_writer_is_woken_once() {
        let outbox = Arc::new(Outbox::new(1, DROP));
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move {
                let mut batch = Vec::new();
                outbox.next_batch(&mut batch, 10_000).await;
                batch.len()
            }
        });
        while !outbox.state().sleeps {
            tokio::task::yield_now().await;
        }
        assert!(outbox.push_delivery(delivery(1)).sleeps);
        assert!(!outbox.push_delivery(delivery(2)).sleeps);
        outbox.wake();
        assert_eq!(writer.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn what_the_writer_takes_is_noted_and_what_is_lost_is_not() {
        let outbox = Outbox::new(1, DROP);
        let recipient = Recipient::new("car".into());
        outbox.note_for(Arc::clone(&recipient));
        let shown = |offsets: [u64; 7]| {
            offsets.map(|offset| match (outbox.waits(offset), recipient.written().contains(offset)) {
                (true, false) => 'w',
                (false, true) => 't',
                (false, false) => '-',
                (true, true) => '?',
            })
        };
        for offset in 1..=5 {
            outbox.push_delivery(delivery(offset));
        }
        outbox.push_answer("{}");
        assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 'w', 'w', 'w', '-', '-']);
        let mut batch = Vec::new();
        // The gap, and the first of them.
        outbox.next_batch(&mut batch, 1).await;
        outbox.next_batch(&mut batch, 1).await;
        assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', 'w', 'w', '-', '-']);
        for offset in 6..=7 {
            outbox.push_delivery(delivery(offset));
        }
        outbox.next_batch(&mut batch, 10_000).await;
        assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', '-', 't', 't', 't']);
    }
}
