//! The standard library's.

use std::sync::OnceLock;
use std::thread::Thread;
use std::time::Duration;

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
pub use std::time::Instant;

/// A thread that parks, and the clock of its timer.
pub(crate) struct Parker {
    thread: OnceLock<Thread>,
    started: Instant,
}

impl Default for Parker {
    fn default() -> Self {
        Self { thread: OnceLock::new(), started: Instant::now() }
    }
}

impl Parker {
    /// Makes the caller the thread that parks. Due before another can unpark it.
    pub(crate) fn register(&self) {
        self.thread.get_or_init(std::thread::current);
    }

    /// Parks the caller until a time on the parker's clock, or until it is unparked; may return for no reason.
    pub(crate) fn park_until(&self, until_ns: u64) {
        if until_ns == u64::MAX {
            std::thread::park();
        } else {
            std::thread::park_timeout(Duration::from_nanos(until_ns.saturating_sub(self.now_ns())));
        }
    }

    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.ns(Instant::now())
    }

    /// A time on the parker's clock, in nanoseconds; less than `u64::MAX`.
    pub(crate) fn ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX - 1)
    }
}
