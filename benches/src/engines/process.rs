//! What the system says about the machine and this process.

use std::fs;
use std::time::{Duration, Instant};

/// The processor and how many of its cores there are.
#[must_use]
pub fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(':').nth(1)).map_or("unknown", str::trim).to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores, {} of cache", field("model name"), field("cache size"))
}

/// How this program was compiled.
#[must_use]
pub fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug: figures mean nothing" } else { "release" }
}

/// Bytes of memory that the process occupies; `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

/// A clock that stands still while this thread waits for a core, where the system tells that: on a shared
/// machine the wait says nothing about the code.
#[derive(Debug)]
pub struct Stopwatch {
    outer: Instant,
    waited: Duration,
    inner: Instant,
}

impl Stopwatch {
    /// Starts.
    #[must_use]
    pub fn start() -> Self {
        Self { outer: Instant::now(), waited: waited(), inner: Instant::now() }
    }

    /// Stops; how long this thread was running. Never less than it was, for a wait may also fall into the
    /// reading of the waits: some ten microseconds more, where there was one.
    #[must_use]
    pub fn stop(self) -> Duration {
        let inner = self.inner.elapsed();
        let waited = waited().saturating_sub(self.waited);
        inner.min(self.outer.elapsed().saturating_sub(waited))
    }
}

/// How long this thread has waited for a core in its life; nothing where the system does not say.
#[must_use]
pub fn waited() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}
