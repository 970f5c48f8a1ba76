//! The executor of a shard: when its thread is woken, and when another thread runs in its place.
//!
//! To wake a thread costs more than most of what it is woken for. So commands that nobody waits for are notified *lazily*:
//! they lie in the queue until something comes that depends on them, or a millisecond has passed. And a thread that has
//! enqueued little may run the executor *inline* instead of waking its thread. In each case what is in the queue is carried
//! out in its order.
//!
//! [`Wakeup`] is the state word, [`Executor`] the loops around it. The unit tests, in `model`, run both in the interleavings
//! of a few threads, with loom in the place of the standard library. The crate is its own so that nothing else has to build with loom.
#![forbid(unsafe_code)]

mod executor;
#[cfg(test)]
mod model;
mod sync;

use std::time::Duration;

use sync::{AtomicU8, AtomicU64, Ordering, Parker, fence};

pub use executor::{Executor, Step, Task};
pub use sync::Instant;

/// How long a command lies in the queue at most that was notified lazily.
pub const DOZE: Duration = Duration::from_millis(1);

/// A thread runs the executor: it holds the executor lock, and looks into the queue after it has released it.
const RUNNING: u8 = 0;
/// The executor's thread was woken, and holds the lock from now on.
const NOTIFIED: u8 = 1;
/// The lock is free. The executor's thread is parked for [`DOZE`] at most.
const DOZING: u8 = 2;
/// The lock is free. The executor's thread is parked until it is notified, or its timer fires.
const PARKED: u8 = 3;

/// Never, in nanoseconds.
const NEVER: u64 = u64::MAX;

/// The state of an executor: which thread may run it, and whether its own thread is parked.
///
/// A producer looks at the state after it has enqueued something. The holder of the lock looks into the queue after it has
/// released the lock. A sequentially consistent fence is between both on either side, so that at least one of the two
/// sees what the other did. In the same way the executor's thread disarms its timer and then tries the lock, while a thread
/// that ran inline releases the lock and then looks at the timer.
pub struct Wakeup {
    state: AtomicU8,
    parker: Parker,
    /// When the parked thread wakes by itself, in nanoseconds on the parker's clock.
    timer_ns: AtomicU64,
    /// When a command was last notified lazily; on the same clock.
    lazy_ns: AtomicU64,
}

/// When the executor's thread dozes; kept under the executor lock.
#[derive(Default)]
struct Doze {
    until_ns: u64,
    /// The last lazy notification that the thread has seen.
    seen_ns: u64,
}

impl Default for Wakeup {
    fn default() -> Self {
        Self::new(Parker::default())
    }
}

impl Wakeup {
    /// Makes the state of an executor whose thread holds the lock, and is still to come.
    fn new(parker: Parker) -> Self {
        Self {
            state: AtomicU8::new(RUNNING),
            parker,
            timer_ns: AtomicU64::new(NEVER),
            lazy_ns: AtomicU64::new(0),
        }
    }

    /// Has the executor run now: something was enqueued.
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        if matches!(state, DOZING | PARKED) && self.change(state, NOTIFIED) {
            self.parker.unpark();
        }
    }

    /// Has the executor run within [`DOZE`]: something was enqueued that can wait.
    pub fn notify_lazy(&self) {
        self.lazy_ns.store(self.parker.now_ns(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == PARKED && self.change(PARKED, NOTIFIED) {
            self.parker.unpark();
        }
    }

    /// Whether the parked thread is about to wake, because its timer has run out.
    fn is_due(&self) -> bool {
        let timer_ns = self.timer_ns.load(Ordering::Relaxed);
        timer_ns != NEVER && timer_ns <= self.parker.now_ns()
    }

    /// Acquires the executor lock if it is free.
    fn try_run(&self) -> bool {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        matches!(state, DOZING | PARKED) && self.change(state, RUNNING)
    }

    /// Passes the lock, which the caller holds, on to the executor's thread.
    fn hand_over(&self) {
        self.check_held();
        self.state.store(NOTIFIED, Ordering::Release);
        self.parker.unpark();
    }

    /// Releases the lock on the executor's thread, which is to [`park`](Self::park) next, for as long as `deadline` at most.
    /// The queue has to be looked into in between.
    fn release_to_park(&self, doze: &mut Doze, deadline: Option<Instant>) {
        let now_ns = self.parker.now_ns();
        let lazy_ns = self.lazy_ns.load(Ordering::Relaxed);
        let seen_ns = std::mem::replace(&mut doze.seen_ns, lazy_ns);
        // Where they come less often, to doze is one wake-up more.
        if lazy_ns > seen_ns && lazy_ns - seen_ns < DOZE_NS {
            doze.until_ns = now_ns + DOZE_NS;
        }
        let dozes = now_ns < doze.until_ns;
        let timer_ns = deadline.map_or(NEVER, |at| self.parker.ns(at));
        let timer_ns = if dozes { timer_ns.min(doze.until_ns) } else { timer_ns };
        self.timer_ns.store(timer_ns, Ordering::Relaxed);
        self.release(if dozes { DOZING } else { PARKED });
    }

    /// Releases the lock on another than the executor's thread, and wakes that one should its timer fire too late. The queue
    /// has to be looked into afterwards.
    fn release_inline(&self, doze: &Doze, deadline: Option<Instant>) {
        let dozes = self.parker.now_ns() < doze.until_ns;
        let state = if dozes { DOZING } else { PARKED };
        self.release(state);
        let timer_ns = self.timer_ns.load(Ordering::Relaxed);
        // Its timer fired while the caller held the lock, and it has parked again without one.
        let is_disarmed = dozes && timer_ns == NEVER;
        let is_late = deadline.is_some_and(|at| self.parker.ns(at) < timer_ns);
        if (is_disarmed || is_late) && self.change(state, NOTIFIED) {
            self.parker.unpark();
        }
    }

    fn release(&self, state: u8) {
        self.check_held();
        self.state.store(state, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Parks the executor's thread until it holds the lock.
    fn park(&self) {
        loop {
            let timer_ns = self.timer_ns.load(Ordering::Relaxed);
            if self.change(NOTIFIED, RUNNING) {
                return;
            } else if timer_ns <= self.parker.now_ns() {
                self.timer_ns.store(NEVER, Ordering::Relaxed);
                if self.try_run() {
                    return;
                }
            } else {
                self.parker.park_until(timer_ns);
            }
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn check_held(&self) {
        debug_assert_eq!(self.state.load(Ordering::Relaxed), RUNNING, "the caller holds the executor lock");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a millisecond")]
const DOZE_NS: u64 = DOZE.as_nanos() as u64;
