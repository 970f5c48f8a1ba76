//! The main figures of the last hour, a point every ten seconds.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wire::StatsHistory;

use super::Histogram;

/// Time between two points.
pub(crate) const STEP: Duration = Duration::from_secs(10);
/// The most points that are kept, an hour of them: further ones push the oldest out.
const POINTS_MAX: usize = 360;

/// Points, and the figures from which the next one is reckoned.
#[derive(Default)]
pub(crate) struct History {
    /// A std mutex: held to add a point or to copy them.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    last: Option<Reading>,
    points: VecDeque<Point>,
}

/// Figures at one time: counts since the start, and what exists.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) unix_ms: u64,
    pub(super) events: u64,
    pub(super) deliveries: u64,
    pub(super) moves: u64,
    pub(super) clients: u64,
    pub(super) live_objects: u64,
    /// The counts of the buckets of waits in queues.
    pub(super) queue_waits: Vec<u64>,
    pub(super) memory_bytes: Option<u64>,
}

/// What is shown of the time between two readings.
struct Point {
    unix_ms: u64,
    events_per_s: f64,
    deliveries_per_s: f64,
    moves_per_s: f64,
    clients: u64,
    live_objects: u64,
    queue_s: [Option<f64>; 2],
    memory_bytes: Option<u64>,
}

impl History {
    /// Adds the point of a reading. The first reading is only what the next one is compared with.
    pub(super) fn add(&self, reading: Reading, queue_wait: &Histogram) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = kept.last.replace(reading.clone()) {
            if kept.points.len() == POINTS_MAX {
                kept.points.pop_front();
            }
            kept.points.push_back(Point::between(&last, &reading, queue_wait));
        }
    }

    /// All points, column by column.
    pub(crate) fn columns(&self) -> StatsHistory {
        let mut columns = StatsHistory { step_s: STEP.as_secs(), ..StatsHistory::default() };
        for point in &self.kept.lock().unwrap_or_else(PoisonError::into_inner).points {
            columns.time_unix_ms.push(point.unix_ms);
            columns.events_per_s.push(point.events_per_s);
            columns.deliveries_per_s.push(point.deliveries_per_s);
            columns.moves_per_s.push(point.moves_per_s);
            columns.clients.push(point.clients);
            columns.live_objects.push(point.live_objects);
            columns.queue_p50_s.push(point.queue_s[0]);
            columns.queue_p99_s.push(point.queue_s[1]);
            columns.memory_bytes.push(point.memory_bytes);
        }
        columns
    }
}

impl Point {
    fn between(last: &Reading, now: &Reading, queue_wait: &Histogram) -> Self {
        let seconds = now.at.saturating_duration_since(last.at).as_secs_f64().max(1e-3);
        #[expect(clippy::cast_precision_loss, reason = "an hour has no 2^52 events")]
        let per_s = |now: u64, last: u64| (now.saturating_sub(last) as f64 / seconds * 1e3).round() / 1e3;
        let waits = now.queue_waits.iter().zip(&last.queue_waits);
        let waits: Vec<u64> = waits.map(|(now, last)| now.saturating_sub(*last)).collect();
        Self {
            unix_ms: now.unix_ms,
            events_per_s: per_s(now.events, last.events),
            deliveries_per_s: per_s(now.deliveries, last.deliveries),
            moves_per_s: per_s(now.moves, last.moves),
            clients: now.clients,
            live_objects: now.live_objects,
            queue_s: [0.5, 0.99].map(|share| queue_wait.quantile(&waits, share)),
            memory_bytes: now.memory_bytes,
        }
    }
}

/// The resident set of this process, as the kernel tells it.
pub(super) fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let text = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::super::SECONDS_BUCKETS;
    use super::*;

    fn reading(begin: Instant, step: u64) -> Reading {
        Reading {
            at: begin + STEP * u32::try_from(step).unwrap(),
            unix_ms: 1_000_000 + step * 10_000,
            events: step * 25,
            deliveries: step * step,
            moves: 7,
            clients: step,
            live_objects: 2 * step,
            queue_waits: vec![0; SECONDS_BUCKETS.len() + 1],
            memory_bytes: None,
        }
    }

    #[test]
    fn an_hour_is_kept_and_the_oldest_goes() {
        let (history, begin) = (History::default(), Instant::now());
        let waits = Histogram::new("n", "What it is.", &SECONDS_BUCKETS);
        assert_eq!(history.columns(), StatsHistory { step_s: 10, ..StatsHistory::default() });
        let steps = u64::try_from(POINTS_MAX).unwrap() + 5;
        for step in 0..=steps {
            history.add(reading(begin, step), &waits);
        }
        let columns = history.columns();
        assert_eq!(columns.time_unix_ms.len(), POINTS_MAX);
        assert_eq!((columns.time_unix_ms[0], columns.clients[0]), (1_060_000, 6));
        assert_eq!(*columns.clients.last().unwrap(), steps);
        assert_eq!(*columns.live_objects.last().unwrap(), 2 * steps);
        assert!(columns.events_per_s.iter().all(|rate| *rate == 2.5));
        assert!(columns.moves_per_s.iter().all(|rate| *rate == 0.0));
        assert_eq!(columns.deliveries_per_s[0], 1.1, "36 - 25 in ten seconds");
        let lengths = [columns.queue_p50_s.len(), columns.queue_p99_s.len(), columns.memory_bytes.len()];
        assert_eq!(lengths, [POINTS_MAX; 3]);
        assert!(columns.queue_p50_s.iter().all(Option::is_none), "nothing waited");
    }

    #[test]
    fn waits_are_of_the_time_since_the_last_point() {
        let (history, begin) = (History::default(), Instant::now());
        let waits = Histogram::new("n", "What it is.", &SECONDS_BUCKETS);
        let add = |step| {
            history.add(Reading { queue_waits: waits.counts(), ..reading(begin, step) }, &waits);
            let columns = history.columns();
            columns.queue_p50_s.last().copied().flatten().zip(columns.queue_p99_s.last().copied().flatten())
        };
        (0..1_000).for_each(|_| waits.record(5.0));
        assert_eq!(add(0), None);
        (0..99).for_each(|_| waits.record(0.000_3));
        waits.record(0.3);
        let (half, most) = add(1).unwrap();
        assert!((0.000_2..=0.000_5).contains(&half) && (0.000_2..=0.000_5).contains(&most), "{half} {most}");
        assert_eq!(add(2), None);
        (0..10).for_each(|_| waits.record(1_000.0));
        assert_eq!(add(3), Some((10.0, 10.0)), "what is beyond the last bucket is at its end");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_tells_of_memory() {
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
