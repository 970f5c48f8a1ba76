//! States that the code's own invariants rule out.
//!
//! [`violated!`](crate::violated) marks the place that would find one. A debug build panics there. A release build counts the
//! violation, reports the place the first time, and goes on without what is missing: a fault in one subscription's books is no reason to
//! end the program.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static VIOLATIONS: AtomicU64 = AtomicU64::new(0);
static REPORT: OnceLock<fn(&Place)> = OnceLock::new();

#[cfg(debug_assertions)]
thread_local! {
    static ARE_COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Marks a place that is reached only if an invariant, which is stated as a literal, does not hold.
///
/// # Panics
/// In a debug build, except inside of [`invariant::counted`](crate::invariant::counted).
#[macro_export]
macro_rules! violated {
    ($invariant:literal) => {{
        static PLACE: $crate::invariant::Place = $crate::invariant::Place::new($invariant, file!(), line!());
        PLACE.violated();
    }};
}

/// A place in the code, and the invariant that did not hold there.
#[derive(Debug)]
pub struct Place {
    invariant: &'static str,
    file: &'static str,
    line: u32,
    is_reported: AtomicBool,
}

impl Place {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(invariant: &'static str, file: &'static str, line: u32) -> Self {
        Self { invariant, file, line, is_reported: AtomicBool::new(false) }
    }

    #[doc(hidden)]
    #[cold]
    pub fn violated(&self) {
        #[cfg(debug_assertions)]
        assert!(ARE_COUNTED.get(), "invariant violated: {self}");
        VIOLATIONS.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = REPORT.get()
            && !self.is_reported.swap(true, Ordering::Relaxed)
        {
            report(self);
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.invariant, self.file, self.line)
    }
}

/// The number of violations in this process so far. Always 0 in a debug build, but for tests.
#[must_use]
pub fn violations() -> u64 {
    VIOLATIONS.load(Ordering::Relaxed)
}

/// Has `report` called at the first violation of each place from now on. Only the first call in a process counts.
pub fn report_to(report: fn(&Place)) {
    // A second one would be another program in this process.
    let _ = REPORT.set(report);
}

/// Runs `work` as in a release build: its violations on this thread are counted and are no panic. For tests.
pub fn counted<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(debug_assertions)]
    {
        let before = ARE_COUNTED.replace(true);
        let done = work();
        ARE_COUNTED.set(before);
        done
    }
    #[cfg(not(debug_assertions))]
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(number: Option<u32>) -> u32 {
        let Some(number) = number else {
            crate::violated!("there is a number");
            return 0;
        };
        number
    }

    #[test]
    fn a_violation_is_counted_and_its_place_is_reported_once() {
        static REPORTS: AtomicU64 = AtomicU64::new(0);
        report_to(|place| {
            // Other tests may violate theirs meanwhile.
            let is_ours = place.to_string().starts_with("there is a number (matcher/src/invariant.rs:");
            REPORTS.fetch_add(u64::from(is_ours), Ordering::Relaxed);
        });
        let before = violations();
        counted(|| {
            assert_eq!(check(None), 0);
            assert_eq!(check(Some(7)), 7);
            assert_eq!(check(None), 0);
        });
        assert!(violations() >= before + 2);
        assert_eq!(REPORTS.load(Ordering::Relaxed), 1);
        let panics = std::panic::catch_unwind(|| check(None)).is_err();
        assert_eq!(panics, cfg!(debug_assertions));
    }
}
