//! What waits for a connection: deliveries, told losses and answers, in order and bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::config::{self, OverflowName};
use crate::ingest::feature::Body;

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
    /// The client's subscriptions that it satisfies.
    pub(crate) subscriptions: Names,
    /// The event.
    pub(crate) body: Arc<Body>,
    /// What one of the subscriptions wants at the bound, if it said so.
    pub(crate) overflow: Option<OverflowName>,
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
            dropped += 1;
            if !state.drop_oldest(self.bounds.overflow) {
                let close = Close { code: 1013, reason: "overflow: the connection did not keep up" };
                let dropped = state.abandon(close) + 1;
                return Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps) };
            }
        }
        state.bytes += bytes;
        state.deliveries_count += 1;
        state.entries.push_back(Entry::Delivery(delivery));
        Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps) }
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

    /// Whether the connection is being ended, and why.
    pub(crate) fn closing(&self) -> Option<Close> {
        self.state().close.clone()
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
        while let Some(entry) = self.entries.front() {
            let bytes = entry.bytes();
            if bytes_taken > 0 && bytes_taken + bytes > bytes_max {
                break;
            }
            bytes_taken += bytes;
            match entry {
                Entry::Answer(_) => self.answers_count -= 1,
                Entry::Delivery(_) => self.deliveries_count -= 1,
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
