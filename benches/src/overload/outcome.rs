//! What became of each event.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use hdrhistogram::Histogram;

use super::Offer;
use crate::fanout::scenario::{Scenario, mark};

const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;

/// What became of the events of one measurement.
#[derive(Debug)]
pub(super) struct Outcomes {
    epoch: Instant,
    slots: Box<[Slot]>,
    alarm_every: u64,
    /// Latencies of ordinary events and of alarms, in microseconds from when they were due.
    latency_us: [Mutex<Histogram<u64>>; 2],
}

#[derive(Debug, Default)]
struct Slot {
    answer: AtomicU8,
    count: AtomicU32,
    marks: AtomicU64,
    due_ns: AtomicU64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Figures {
    /// What was offered.
    pub offer: Offer,
    /// From the first event to the last answer.
    pub seconds: f64,
    /// Ordinary events and alarms.
    pub kinds: [Latency; 2],
}

/// What became of one kind of events.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Accepted.
    pub accepted: u64,
    /// Refused with 429.
    pub refused: u64,
    /// From when an event was due to each of its deliveries.
    pub deliveries_us: Histogram<u64>,
}

impl Outcomes {
    pub(super) fn new(count: u64, alarm_every: u64) -> anyhow::Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, 120_000_000, 3).map(Mutex::new);
        Ok(Self {
            epoch: Instant::now(),
            slots: (0..count).map(|_| Slot::default()).collect(),
            alarm_every,
            latency_us: [histogram()?, histogram()?],
        })
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(number).ok()?)
    }

    fn now_ns(&self, at: Instant) -> u64 {
        u64::try_from((at - self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    fn kind(&self, number: u64) -> usize {
        usize::from(number.is_multiple_of(self.alarm_every))
    }

    pub(super) fn sent(&self, number: u64, due: Instant) {
        if let Some(slot) = self.slot(number) {
            slot.due_ns.store(self.now_ns(due), Relaxed);
        }
    }

    pub(super) fn accepted(&self, number: u64) {
        if let Some(slot) = self.slot(number) {
            slot.answer.store(ACCEPTED, Relaxed);
        }
    }

    pub(super) fn refused(&self, number: u64) {
        if let Some(slot) = self.slot(number) {
            slot.answer.store(REFUSED, Relaxed);
        }
    }

    pub(super) fn delivered(&self, number: u64, subscriber: usize) {
        let Some(slot) = self.slot(number) else { return };
        slot.count.fetch_add(1, Relaxed);
        slot.marks.fetch_add(mark(subscriber), Relaxed);
        let latency_us = self.now_ns(Instant::now()).saturating_sub(slot.due_ns.load(Relaxed)) / 1_000;
        let mut latencies = self.latency_us[self.kind(number)].lock().unwrap_or_else(PoisonError::into_inner);
        latencies.saturating_record(latency_us);
    }

    /// Waits until everything came that was accepted, or for so long.
    pub(super) async fn wait_for_all(&self, scenario: &Scenario, patience: Duration) {
        let started = Instant::now();
        while started.elapsed() < patience && self.check(scenario).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether each accepted event came to whom it concerns, and no refused one to anybody.
    pub(super) fn check(&self, scenario: &Scenario) -> anyhow::Result<()> {
        for (number, slot) in (0_u64..).zip(&self.slots) {
            let came = (slot.count.load(Relaxed), slot.marks.load(Relaxed));
            let expected = scenario.expected(number);
            let due = match slot.answer.load(Relaxed) {
                ACCEPTED => (expected.count, expected.marks),
                _ => (0, 0),
            };
            ensure!(came == due, "event {number}: {came:?} deliveries and their marks, not {due:?}");
        }
        Ok(())
    }

    pub(super) fn figures(&self, offer: Offer, seconds: f64) -> Figures {
        let of = |kind: usize| {
            let answers = |answer: u8| {
                let own = (0_u64..).zip(&self.slots).filter(|(number, _)| self.kind(*number) == kind);
                own.filter(|(_, slot)| slot.answer.load(Relaxed) == answer).count() as u64
            };
            let deliveries_us = self.latency_us[kind].lock().unwrap_or_else(PoisonError::into_inner).clone();
            Latency { accepted: answers(ACCEPTED), refused: answers(REFUSED), deliveries_us }
        };
        Figures { offer, seconds, kinds: [of(0), of(1)] }
    }
}
