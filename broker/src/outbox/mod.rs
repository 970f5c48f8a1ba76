//! The outbox of a connection: deliveries, told losses and answers that wait, in order and bounded.

mod queue;
mod state;
mod writer;

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::budget::{Account, Kind};
use crate::config;
use crate::model::clock;
use crate::model::delivery::{Delivery, ENTRY_BYTES, Entry, Gap, OverflowName};
use crate::model::recipient::Recipient;
use state::State;
pub(crate) use state::Subject;
pub(crate) use writer::{OwnWriter, Writer};

/// The queue between an engine's thread and the writer of one connection.
///
/// Putting something in never waits: a reader that does not keep up loses by the policy, and nobody else feels it.
pub(crate) struct Outbox {
    /// Names the connection; the owner of the subscriptions that end with it.
    pub(crate) connection: u64,
    bounds: Bounds,
    /// A std mutex: held for a few pushes and pops, never over an await.
    state: Mutex<State>,
    /// Wakes the writer.
    filled: AtomicWaker,
    /// The writer itself, where others than its task may have it write.
    writer: OnceLock<Arc<Writer>>,
    answered: Notify,
    /// Nanoseconds from `started` to when the writer was woken, 0 while it does not wait for its turn.
    woken_ns: AtomicU64,
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
    answer_bytes: usize,
    overflow: OverflowName,
}

/// Answers that are on their way here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coming {
    pub(crate) count: usize,
    /// Bytes of their texts, as far as they are known.
    pub(crate) bytes: usize,
}

/// The outcome of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It waits; where the writer sleeps it has to be woken by [`Outbox::wake`].
    Taken { sleeps: bool },
    /// There was no room.
    Full,
}

/// Why the broker ends a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// The WebSocket status code.
    pub(crate) code: u16,
    /// The reason in words.
    pub(crate) reason: &'static str,
}

/// The outcome of putting a delivery in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// Deliveries that were lost for it.
    pub(crate) dropped: u64,
    /// Whether the writer waits and has to be woken by [`Outbox::wake`].
    pub(crate) sleeps: bool,
    /// Whether it ended the connection.
    pub(crate) cut_off: bool,
}

const TOO_SLOW: Close = Close { code: 1013, reason: "overflow: the connection did not keep up" };

/// Divisor of the bounds that gives the room for alarms that come before their turn.
const ALARMS_PART: usize = 8;

/// Bytes that a thread may write in the writer's place: others wait for that thread.
const LITTLE_BYTES: usize = 16 * 1024;

impl Bounds {
    pub(crate) fn new(settings: &config::Outbox) -> Self {
        let config::Outbox { frames, bytes, answers, answer_bytes, overflow } = *settings;
        Self { frames, bytes, answers, answer_bytes, overflow }
    }

    /// Whether another answer may wait.
    fn hold_answer(&self, state: &State, coming: Coming) -> bool {
        state.answers_count + coming.count < self.answers
            && state.answer_bytes + coming.bytes < self.answer_bytes
    }

    /// Whether another delivery may wait; one may always.
    fn hold(&self, state: &State, bytes: usize) -> bool {
        state.deliveries_count == 0
            || (state.deliveries_count < self.frames && state.bytes + bytes <= self.bytes)
    }

    #[cfg(test)]
    pub(crate) fn of(frames: usize, bytes: usize) -> Self {
        Self { frames, bytes, answers: 1_024, answer_bytes: 1 << 20, overflow: OverflowName::DropOldest }
    }
}

impl Outbox {
    pub(crate) fn new(connection: u64, bounds: Bounds) -> Self {
        Self {
            connection,
            bounds,
            state: Mutex::new(State::new(bounds.overflow)),
            filled: AtomicWaker::new(),
            writer: OnceLock::new(),
            answered: Notify::new(),
            woken_ns: AtomicU64::new(0),
            heard_ms: AtomicU64::new(0),
            started: clock::now(),
        }
    }

    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what waits with what is held for the client.
    pub(crate) fn charge_to(&self, account: &Arc<Account>) {
        let mut state = self.state();
        state.charged.answers = account.hold_anyway(Kind::Answers, 0);
        state.charged.others = account.hold_anyway(Kind::Outbox, 0);
    }

    /// Notes from now on what the writer takes.
    pub(crate) fn note_for(&self, recipient: Arc<Recipient>) {
        self.state().recipient = Some(recipient);
    }

    /// Whether a delivery waits for the writer.
    pub(crate) fn waits(&self, offset: u64) -> bool {
        self.state().waits(offset)
    }

    /// Puts a delivery in, an alarm before others that wait; at the bound the policy decides what is lost. Offsets are told in
    /// the order of writing: those of the overtaken ones move up by one.
    pub(crate) fn push_delivery(&self, delivery: Delivery) -> Pushed {
        let mut state = self.state();
        if state.close.is_some() {
            return Pushed::default();
        }
        let mut dropped = 0;
        let bytes = ENTRY_BYTES + delivery.bytes();
        state.supersede(&delivery);
        while !self.bounds.hold(&state, bytes) {
            if state.lose_one() {
                dropped += 1;
            } else {
                dropped += state.abandon(TOO_SLOW) + 1;
                return Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps), cut_off: true };
            }
        }
        state.push_by_priority(delivery);
        Pushed { dropped, sleeps: std::mem::take(&mut state.sleeps), cut_off: false }
    }

    /// Puts in what is kept elsewhere as well, if there is room. Otherwise nothing is lost, and the reader is behind.
    pub(crate) fn offer(&self, entry: Entry) -> Offered {
        let mut state = self.state();
        let has_room = match &entry {
            Entry::Delivery(_) => self.bounds.hold(&state, entry.bytes()),
            Entry::Gap(_) | Entry::Answer(_) => {
                state.is_empty() || state.bytes + entry.bytes() <= self.bounds.bytes
            }
        };
        if state.close.is_some() || !has_room {
            state.is_behind = true;
            return Offered::Full;
        }
        state.push(entry);
        Offered::Taken { sleeps: std::mem::take(&mut state.sleeps) }
    }

    /// Puts an alarm that is kept elsewhere as well before what waits, if there is any. It may take room beyond the bounds, of
    /// which alarms have a part of their own. Says whether it waits, before its turn.
    pub(crate) fn offer_ahead(&self, delivery: &Delivery, is_behind: bool) -> bool {
        let mut state = self.state();
        let frames = (self.bounds.frames / ALARMS_PART).max(1);
        let bytes = self.bounds.bytes + self.bounds.bytes / ALARMS_PART;
        let is_due = (is_behind || state.deliveries_count > 0) && state.close.is_none();
        if !is_due || state.ahead_count >= frames || state.bytes + ENTRY_BYTES + delivery.bytes() > bytes {
            return false;
        }
        state.push_by_priority(Delivery { is_ahead: true, ..delivery.clone() });
        let sleeps = std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.wake();
        }
        true
    }

    /// Notes from which offset on the connection is told.
    pub(crate) fn start_after(&self, offset: u64) {
        self.state().told = offset;
    }

    /// Whether the writer should ask for more now: there is more, and half of the room is free. Says so once.
    pub(crate) fn wants_more(&self) -> bool {
        let mut state = self.state();
        let Bounds { frames, bytes, .. } = self.bounds;
        let has_drained = state.deliveries_count <= frames / 2 && state.bytes <= bytes / 2;
        has_drained && std::mem::take(&mut state.is_behind)
    }

    /// Ends the connection of a reader that did not keep up; what waits for it goes. Says whether it was not ending.
    pub(crate) fn cut_off(&self) -> bool {
        self.cut_off_if(|_| true)
    }

    /// Ends the connection as [`cut_off`](Self::cut_off) does, if the oldest delivery that waits asks for it.
    pub(crate) fn cut_off_if_asked(&self) -> bool {
        self.cut_off_if(|state| state.oldest().is_some_and(|(_, policy)| policy == OverflowName::Disconnect))
    }

    /// Ends the connection with what waits for it, and says how many deliveries those were.
    pub(crate) fn abandon(&self, close: Close) -> u64 {
        let mut state = self.state();
        let lost = if state.close.is_none() { state.abandon(close) } else { 0 };
        drop(state);
        self.filled.wake();
        self.answered.notify_one();
        lost
    }

    /// How many deliveries wait for the writer, and the bytes of all that waits.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.deliveries_count, state.bytes)
    }

    fn cut_off_if(&self, is_due: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state();
        if state.close.is_some() || !is_due(&state) {
            return false;
        }
        state.abandon(TOO_SLOW);
        drop(state);
        self.filled.wake();
        self.answered.notify_one();
        true
    }

    /// Puts a gap at the end.
    pub(crate) fn push_gap(&self, gap: Gap) {
        self.push(Entry::Gap(gap));
    }

    /// Puts an answer in and wakes the writer.
    pub(crate) fn push_answer(&self, text: impl Into<Box<str>>) {
        self.push(Entry::Answer(text.into()));
    }

    /// Puts an answer in for which the writer is not woken, but by [`flush`](Self::flush).
    pub(crate) fn put_answer(&self, text: impl Into<Box<str>>) {
        let mut state = self.state();
        if state.close.is_none() {
            state.push(Entry::Answer(text.into()));
        }
    }

    /// Puts in that the WebSocket library has a pong to write, which stands in its own buffer: with what is taken next it is flushed. Until
    /// then it counts as an answer.
    pub(crate) fn note_pong(&self) {
        self.put_answer("");
    }

    /// Has what was put in written, unless the writer is at it.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        if !state.is_empty() && std::mem::take(&mut state.sleeps) {
            drop(state);
            self.write();
        }
    }

    fn push(&self, entry: Entry) {
        let mut state = self.state();
        if state.close.is_some() {
            return;
        }
        state.push(entry);
        let sleeps = std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.wake();
        }
    }

    /// Waits until there is room for another answer behind those that are not here yet: who does not read answers is
    /// not read from.
    pub(crate) async fn room_for_answer(&self, coming: Coming) {
        while !self.has_room_for_answer(coming) {
            self.answered.notified().await;
        }
    }

    /// Whether there is.
    pub(crate) fn has_room_for_answer(&self, coming: Coming) -> bool {
        let state = self.state();
        self.bounds.hold_answer(&state, coming) || state.close.is_some()
    }

    /// Sets a writer for others to write with in place of the task that waits.
    pub(crate) fn write_with(&self, writer: Arc<Writer>) {
        let _ = self.writer.set(writer);
    }

    /// Wakes the writer.
    pub(crate) fn wake(&self) {
        self.note_wake();
        self.filled.wake();
    }

    /// Has the writer write here and now, where that is possible and little; wakes it otherwise.
    pub(crate) fn write(&self) {
        let Some(writer) = self.writer.get().filter(|_| self.waiting().1 <= LITTLE_BYTES) else {
            return self.wake();
        };
        if let Some(task) = self.filled.take()
            && !writer.write_for(&task)
        {
            self.note_wake();
            task.wake();
        }
    }

    fn note_wake(&self) {
        let now = clock::now().duration_since(self.started).as_nanos();
        self.woken_ns.store(u64::try_from(now).unwrap_or(0), Ordering::Relaxed);
    }

    /// How long the writer, which has its turn now, waited for it since it was woken. Says so once.
    pub(crate) fn waited_for_turn(&self) -> Option<Duration> {
        let woken = Duration::from_nanos(self.woken_ns.swap(0, Ordering::Relaxed));
        (!woken.is_zero()).then(|| clock::now().duration_since(self.started).saturating_sub(woken))
    }

    /// Ends the connection once everything that waits is written. The first reason stands.
    pub(crate) fn close(&self, code: u16, reason: &'static str) {
        self.state().close.get_or_insert(Close { code, reason });
        self.filled.wake();
        self.answered.notify_one();
    }

    /// Whether the connection is being ended.
    pub(crate) fn is_closing(&self) -> bool {
        self.state().close.is_some()
    }

    /// Waits for something to write and takes up to `bytes_max` of it, at least one entry, into `batch`, which
    /// is empty. An empty batch says that the connection ends, and why.
    pub(crate) async fn next_batch(&self, batch: &mut Vec<Entry>, bytes_max: usize) -> Option<Close> {
        poll_fn(|ctx| {
            let mut state = self.state();
            if state.take(batch, bytes_max) {
                self.answered.notify_one();
            }
            if !batch.is_empty() {
                return Poll::Ready(None);
            }
            if state.close.is_some() {
                return Poll::Ready(state.close.clone());
            }
            // Under the lock: whoever finds that it sleeps finds whom to wake.
            self.filled.register(ctx.waker());
            state.sleeps = true;
            Poll::Pending
        })
        .await
    }

    /// Notes that the other side lives.
    pub(crate) fn hear(&self) {
        let elapsed =
            u64::try_from(clock::now().duration_since(self.started).as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Time for which the other side has been silent.
    pub(crate) fn silence(&self) -> Duration {
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        clock::now().duration_since(self.started).saturating_sub(heard)
    }
}

#[cfg(test)]
mod tests;
