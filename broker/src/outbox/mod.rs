//! The log of a session, which its connections read, and what else waits for each connection: bounded, and in order.

mod holes;
mod log;
mod queue;
mod retention;
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
use crate::model::delivery::{Delivery, Entry, Gap, OverflowName};
use crate::model::sent_offsets::SentOffsets;
pub(crate) use log::{DeliveryLog, Keep, Log};
pub(crate) use retention::{KeptBounds, KeptTotal};
use state::State;
pub(crate) use writer::{OwnWriter, Writer};

/// One connection: what its writer reads of the [`DeliveryLog`], and what comes beside it.
///
/// Putting something in never waits: a connection that does not keep up loses by the policy.
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
    /// Whether alarms go ahead of what waits.
    has_alarms_ahead: bool,
    /// Whether deliveries are left out whose events' deadlines are over.
    has_deadlines: bool,
}

/// Answers that are on their way here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coming {
    pub(crate) count: usize,
    /// Bytes of their texts, as far as they are known.
    pub(crate) bytes: usize,
}

/// Why the broker ends a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// The WebSocket status code.
    pub(crate) code: u16,
    /// The reason in words.
    pub(crate) reason: &'static str,
    /// When the client is to come back, where the broker knows.
    pub(crate) retry_ms: Option<u32>,
}

impl Close {
    pub(crate) const fn new(code: u16, reason: &'static str) -> Self {
        Self { code, reason, retry_ms: None }
    }
}

const TOO_SLOW: Close = Close::new(1013, "overflow: the connection did not keep up");

/// Bytes that a thread may write in the writer's place: others wait for that thread.
const LITTLE_BYTES: usize = 16 * 1024;

impl Bounds {
    pub(crate) fn new(settings: &config::Outbox) -> Self {
        let config::Outbox { frames, bytes, answers, answer_bytes, overflow } = *settings;
        Self { frames, bytes, answers, answer_bytes, overflow, has_alarms_ahead: true, has_deadlines: true }
    }

    /// These bounds, for a reader that has to know all that happened, in its order: alarms come in their turn, and nothing is too late.
    pub(crate) fn in_order(self) -> Self {
        Self { has_alarms_ahead: false, has_deadlines: false, ..self }
    }

    /// These bounds, or larger ones.
    pub(crate) fn at_least(self, frames: usize, bytes: usize) -> Self {
        Self { frames: self.frames.max(frames), bytes: self.bytes.max(bytes), ..self }
    }

    /// Whether another answer may wait.
    fn hold_answer(&self, state: &State, coming: Coming) -> bool {
        state.answers_count + coming.count < self.answers
            && state.answer_bytes + coming.bytes < self.answer_bytes
    }

    #[cfg(test)]
    pub(crate) fn of(frames: usize, bytes: usize) -> Self {
        Self {
            frames,
            bytes,
            answers: 1_024,
            answer_bytes: 1 << 20,
            overflow: OverflowName::DropOldest,
            has_alarms_ahead: true,
            has_deadlines: true,
        }
    }
}

impl Outbox {
    pub(crate) fn new(connection: u64, bounds: Bounds) -> Self {
        Self {
            connection,
            bounds,
            state: Mutex::default(),
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
    pub(crate) fn note_for(&self, recipient: Arc<SentOffsets>) {
        self.state().recipient = Some(recipient);
    }

    /// Whether a delivery waits for the writer.
    pub(crate) fn waits(&self, offset: u64) -> bool {
        let state = self.state();
        state.waits_ahead(offset)
            || state.log.as_ref().is_some_and(|log| log.lock().waits(self.connection, offset))
    }

    /// Begins to read a log behind an offset. `released` is what connections may have of it. Alarms that wait go ahead.
    pub(crate) fn read_from(&self, log: &Arc<DeliveryLog>, at: u64, released: u64) {
        let mut state = self.state();
        if state.close.is_some() {
            return;
        }
        let mut guard = log.lock();
        guard.enter(self.connection, self.bounds, at, released);
        for alarm in guard.alarms(at, released) {
            state.push_ahead(self.connection, &mut guard, alarm, &self.bounds);
        }
        drop(guard);
        state.log = Some(Arc::clone(log));
    }

    /// Puts an alarm of the log ahead of the deliveries that wait, if there are any.
    pub(crate) fn push_ahead(&self, alarm: &Delivery) {
        let mut state = self.state();
        let Some(log) = state.log.clone() else { return };
        let is_ahead = state.push_ahead(self.connection, &mut log.lock(), alarm.clone(), &self.bounds);
        let sleeps = is_ahead && std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.wake();
        }
    }

    /// How many offsets of a durable session the connection is behind, or deliveries of another.
    pub(crate) fn behind(&self) -> u64 {
        self.state().log.as_ref().map_or(0, |log| log.lock().behind(self.connection))
    }

    /// Bytes of what the session retains until it is acknowledged.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.state().log.as_ref().map_or(0, |log| log.lock().kept_bytes())
    }

    /// Ends the connection of a reader that did not keep up; what waits for it goes. Says whether it was not ending.
    pub(crate) fn cut_off(&self) -> bool {
        let mut state = self.state();
        if state.close.is_some() {
            return false;
        }
        state.abandon(self.connection, TOO_SLOW);
        drop(state);
        self.filled.wake();
        self.answered.notify_one();
        true
    }

    /// Ends the connection with what waits for it, and says how many deliveries those were.
    pub(crate) fn abandon(&self, close: Close) -> u64 {
        let mut state = self.state();
        let lost = if state.close.is_none() { state.abandon(self.connection, close) } else { 0 };
        drop(state);
        self.filled.wake();
        self.answered.notify_one();
        lost
    }

    /// How many deliveries wait for the writer, and the bytes of all that waits.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        let (count, bytes) = state.log.as_ref().map_or((0, 0), |log| log.lock().waiting(self.connection));
        let (ahead, lane_bytes) = state.size();
        (count + ahead, bytes + lane_bytes)
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
            state.push(self.connection, Entry::Answer(text.into()));
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
        if !state.has_no_answers() && std::mem::take(&mut state.sleeps) {
            drop(state);
            self.write();
        }
    }

    fn push(&self, entry: Entry) {
        let mut state = self.state();
        if state.close.is_some() {
            return;
        }
        state.push(self.connection, entry);
        let sleeps = std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.wake();
        }
    }

    /// Waits until there is room for another answer behind those that are not here yet. A client that does not read answers is
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
        self.end(Close::new(code, reason));
    }

    /// Ends the connection because the broker stops, and tells the client when to come back.
    pub(crate) fn close_until(&self, retry_ms: u32) {
        self.end(Close { retry_ms: Some(retry_ms), ..Close::new(1001, "the broker is stopping") });
    }

    fn end(&self, close: Close) {
        let mut state = self.state();
        if state.close.is_none() {
            state.close = Some(close);
            if let Some(log) = &state.log {
                log.lock().end(self.connection);
            }
        }
        drop(state);
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
            loop {
                if state.take(self.connection, batch, bytes_max) {
                    self.answered.notify_one();
                }
                if !batch.is_empty() {
                    return Poll::Ready(None);
                }
                if state.close.is_some() {
                    return Poll::Ready(state.close.clone());
                }
                // Before others find that it sleeps, so that they find a waker.
                self.filled.register(ctx.waker());
                if state.sleep(self.connection) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Whether there is something to write.
    #[cfg(test)]
    fn has_something(&self) -> bool {
        let state = self.state();
        !state.has_no_answers() || state.log.as_ref().is_some_and(|log| log.lock().has_more(self.connection))
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
mod log_tests;
#[cfg(test)]
mod tests;
