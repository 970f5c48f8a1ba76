//! The model checker's. Time stands still but for timers, which fire when the parked thread is next let run.

pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

/// A time on the clock of the model, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

/// Whether a timer ever fires. Where none does, a wake-up that is lost is not made good by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timers {
    Fire,
    Never,
}

/// A thread that parks, and the clock of its timer. Unlike that of the standard library it never returns for no reason.
pub(crate) struct Parker {
    is_unparked: Mutex<bool>,
    unparked: Condvar,
    now_ns: AtomicU64,
    timers: Timers,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new(Timers::Fire)
    }
}

impl Parker {
    pub(crate) fn new(timers: Timers) -> Self {
        Self { is_unparked: Mutex::new(false), unparked: Condvar::new(), now_ns: AtomicU64::new(1), timers }
    }

    #[expect(clippy::unused_self, reason = "the standard library's needs it")]
    pub(crate) fn register(&self) {}

    pub(crate) fn park_until(&self, until_ns: u64) {
        let mut is_unparked = self.is_unparked.lock().unwrap();
        if !*is_unparked && until_ns != u64::MAX && self.timers == Timers::Fire {
            self.now_ns.fetch_max(until_ns, Ordering::Relaxed);
        } else {
            while !*is_unparked {
                is_unparked = self.unparked.wait(is_unparked).unwrap();
            }
        }
        *is_unparked = false;
    }

    pub(crate) fn unpark(&self) {
        *self.is_unparked.lock().unwrap() = true;
        self.unparked.notify_one();
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    #[expect(clippy::unused_self, reason = "the standard library's needs it")]
    pub(crate) fn ns(&self, at: Instant) -> u64 {
        at.0
    }
}
