//! What came, counted by event, cheaply: the readers share two cores with the broker.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::scenario::{Scenario, mark};

/// Events of one phase at most.
pub const EVENTS_MAX: usize = 4_000_000;

/// Counts deliveries of one phase after the other.
#[derive(Debug)]
pub struct Tally {
    epoch: Instant,
    first: AtomicU64,
    end: AtomicU64,
    slots: Box<[Slot]>,
    deliveries: AtomicU64,
    /// Deliveries of no event of this phase, and frames that are no deliveries.
    strays: AtomicU64,
    last_ns: AtomicU64,
    /// Only the readers' thread records; the lock is for the one who reads it in the end.
    latency_us: Mutex<Histogram<u64>>,
}

/// One event.
#[derive(Debug, Default)]
struct Slot {
    count: AtomicU32,
    marks: AtomicU64,
    /// When it was sent, or should have been, in nanoseconds since `epoch`.
    sent_ns: AtomicU64,
}

/// How a phase differs from what it should have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Events that another number of subscribers, or other subscribers, got.
    pub events_wrong: u64,
    /// Deliveries short of, and beyond, the expected number, added up over the events.
    pub deliveries_off: u64,
    /// Frames that should not have come at all.
    pub strays: u64,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Deliveries that came.
    pub came: u64,
    /// How many fewer they are than expected.
    pub missing: u64,
    /// Whether those that it came to are others than expected.
    pub is_wrong: bool,
    /// How long ago it was sent, or should have been.
    pub waited: Duration,
}

impl Tally {
    /// Nothing counted.
    ///
    /// # Errors
    /// Never in practice: the histogram's bounds are constants.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            epoch: Instant::now(),
            first: AtomicU64::new(0),
            end: AtomicU64::new(0),
            slots: std::iter::repeat_with(Slot::default).take(EVENTS_MAX).collect(),
            deliveries: AtomicU64::new(0),
            strays: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            latency_us: Mutex::new(Histogram::new_with_bounds(1, 60_000_000, 3)?),
        })
    }

    /// Starts a phase. Nothing may be under way.
    pub fn begin(&self, events: &Range<u64>) {
        self.first.store(events.start, Relaxed);
        self.end.store(events.end, Relaxed);
        for number in events.clone() {
            if let Some(slot) = self.slot(number) {
                slot.count.store(0, Relaxed);
                slot.marks.store(0, Relaxed);
            }
        }
        self.deliveries.store(0, Relaxed);
        self.strays.store(0, Relaxed);
        self.histogram().reset();
    }

    /// Notes when an event was sent, or should have been.
    pub fn sent(&self, number: u64, at: Instant) {
        if let Some(slot) = self.slot(number) {
            slot.sent_ns.store(nanoseconds(at - self.epoch), Relaxed);
        }
    }

    /// Counts a delivery to a subscriber.
    pub fn delivered(&self, number: u64, subscriber: usize) {
        let now_ns = nanoseconds(self.epoch.elapsed());
        let Some(slot) = self.slot(number) else { return self.stray() };
        slot.count.fetch_add(1, Relaxed);
        slot.marks.fetch_add(mark(subscriber), Relaxed);
        self.deliveries.fetch_add(1, Relaxed);
        self.last_ns.store(now_ns, Relaxed);
        let latency_us = now_ns.saturating_sub(slot.sent_ns.load(Relaxed)) / 1_000;
        self.histogram().saturating_record(latency_us);
    }

    /// Counts a frame that should not have come.
    pub fn stray(&self) {
        self.strays.fetch_add(1, Relaxed);
    }

    /// Deliveries of this phase so far.
    pub fn deliveries(&self) -> u64 {
        self.deliveries.load(Relaxed)
    }

    /// When the last delivery came.
    pub fn last(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.last_ns.load(Relaxed))
    }

    /// Latencies of this phase in microseconds.
    pub fn latency_us(&self) -> Histogram<u64> {
        self.histogram().clone()
    }

    /// Compares what came with what had to.
    pub fn verdict(&self, scenario: &Scenario, events: Range<u64>) -> Verdict {
        let mut verdict = Verdict { strays: self.strays.load(Relaxed), ..Verdict::default() };
        for number in events {
            let expected = scenario.expected(number);
            let (count, marks) =
                self.slot(number).map_or((0, 0), |slot| (slot.count.load(Relaxed), slot.marks.load(Relaxed)));
            verdict.events_wrong += u64::from((count, marks) != (expected.count, expected.marks));
            verdict.deliveries_off += u64::from(count.abs_diff(expected.count));
        }
        verdict
    }

    /// What became of one event of this phase.
    pub fn event(&self, scenario: &Scenario, number: u64) -> Fate {
        let Some(slot) = self.slot(number) else { return Fate::default() };
        let (count, marks) = (slot.count.load(Relaxed), slot.marks.load(Relaxed));
        let expected = scenario.expected(number);
        let waited_ns = nanoseconds(self.epoch.elapsed()).saturating_sub(slot.sent_ns.load(Relaxed));
        Fate {
            came: u64::from(count),
            missing: u64::from(expected.count.saturating_sub(count)),
            is_wrong: (count, marks) != (expected.count, expected.marks),
            waited: Duration::from_nanos(waited_ns),
        }
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        let index =
            number.checked_sub(self.first.load(Relaxed)).filter(|_| number < self.end.load(Relaxed))?;
        self.slots.get(usize::try_from(index).ok()?)
    }

    fn histogram(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.latency_us.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_subscriber_in_the_place_of_the_right_one_is_noticed() {
        let scenario = Scenario::new(50, 5.0, 3);
        let number = (0..100).find(|number| scenario.expected(*number).count == 1).unwrap();
        let right = (0..50).find(|one| mark(*one) == scenario.expected(number).marks).unwrap();
        let tally = Tally::new().unwrap();
        let events = number..number + 1;
        for (subscriber, wrong) in [(right, 0), ((right + 1) % 50, 1)] {
            tally.begin(&events);
            tally.sent(number, Instant::now());
            tally.delivered(number, subscriber);
            let verdict = tally.verdict(&scenario, events.clone());
            assert_eq!(verdict, Verdict { events_wrong: wrong, deliveries_off: 0, strays: 0 });
        }
    }
}
