//! Matching times: contenders take turns within one run, so that what disturbs the machine disturbs all.

use std::ops::Range;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use matcher::event::Event;
use matcher::fixtures::workload::Workload;

use super::contender::{Contender, OneByOne};
use super::process::Stopwatch;
use crate::baseline::Prepared;

/// Events that come before each timed loop; others than the timed ones, which may stay in the caches from the
/// loop before but are not brought there on purpose.
pub const WARM_UP_EVENTS: usize = 200;

/// What a contender needs for an event.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Whose it is.
    pub label: String,
    /// Mean of each round in microseconds an event, without waits for a core, ascending.
    pub means_us: Vec<f64>,
    /// Single events in nanoseconds, the clock's own cost and waits for a core included.
    pub events_ns: Histogram<u64>,
}

impl Timing {
    /// The median of the rounds' means.
    #[must_use]
    pub fn median_us(&self) -> f64 {
        self.means_us[self.means_us.len() / 2]
    }
}

/// The events of a workload: some to warm up, others to time.
#[derive(Clone, Debug)]
pub struct Events {
    /// Before each timed loop.
    pub warm_up: Vec<Prepared>,
    /// In it.
    pub timed: Vec<Prepared>,
}

impl Events {
    /// The first events of a workload are timed, the next warm up.
    ///
    /// # Errors
    /// When the workload's events are not of numbers.
    pub fn new(workload: &Workload, timed_count: usize) -> anyhow::Result<Self> {
        let draw = |range: Range<usize>| -> anyhow::Result<Vec<Prepared>> {
            range.map(|index| Prepared::new(workload, index as u64)).collect()
        };
        Ok(Self { warm_up: draw(timed_count..timed_count + WARM_UP_EVENTS)?, timed: draw(0..timed_count)? })
    }
}

/// A contender with its events.
pub struct Entrant<'a> {
    /// What the report calls it.
    pub label: String,
    /// Who matches.
    pub contender: Box<dyn Contender + 'a>,
    /// What it matches.
    pub events: &'a Events,
}

impl<'a> Entrant<'a> {
    /// Enters a contender.
    pub fn new(label: &str, contender: impl Contender + 'a, events: &'a Events) -> Self {
        Self { label: label.to_owned(), contender: Box::new(contender), events }
    }
}

/// Sends each contender its events one by one, in `rounds` rounds of one turn each.
///
/// # Errors
/// When an event takes longer than an hour.
pub fn race(entrants: &mut [Entrant<'_>], rounds: usize) -> anyhow::Result<Vec<Timing>> {
    let mut timings = timings(entrants)?;
    for _ in 0..rounds {
        for (entrant, timing) in entrants.iter_mut().zip(&mut timings) {
            pass(entrant, timing);
            pass_singly(entrant, timing)?;
        }
    }
    timings.iter_mut().for_each(|timing| timing.means_us.sort_by(f64::total_cmp));
    Ok(timings)
}

/// Sends each contender its events in `rounds` rounds, as [`race`] does, and takes the mean alone: without times of single
/// events it takes half as long.
///
/// # Errors
/// Never.
pub fn race_means(entrants: &mut [Entrant<'_>], rounds: usize) -> anyhow::Result<Vec<Timing>> {
    let mut timings = timings(entrants)?;
    for _ in 0..rounds {
        entrants.iter_mut().zip(&mut timings).for_each(|(entrant, timing)| pass(entrant, timing));
    }
    timings.iter_mut().for_each(|timing| timing.means_us.sort_by(f64::total_cmp));
    Ok(timings)
}

fn timings(entrants: &[Entrant<'_>]) -> anyhow::Result<Vec<Timing>> {
    let timing = |entrant: &Entrant<'_>| {
        let events_ns = Histogram::new_with_max(3_600_000_000_000, 3)?;
        Ok(Timing { label: entrant.label.clone(), means_us: Vec::new(), events_ns })
    };
    entrants.iter().map(timing).collect()
}

/// A loop that is timed as a whole.
fn pass(entrant: &mut Entrant<'_>, timing: &mut Timing) {
    let Entrant { contender, events, .. } = entrant;
    events.warm_up.iter().for_each(|event| contender.find(event));
    let stopwatch = Stopwatch::start();
    events.timed.iter().for_each(|event| contender.find(event));
    timing.means_us.push(stopwatch.stop().as_secs_f64() * 1e6 / events.timed.len() as f64);
}

/// A loop whose events are timed.
fn pass_singly(entrant: &mut Entrant<'_>, timing: &mut Timing) -> anyhow::Result<()> {
    let Entrant { contender, events, .. } = entrant;
    events.warm_up.iter().for_each(|event| contender.find(event));
    for event in &events.timed {
        let start = Instant::now();
        contender.find(event);
        timing.events_ns.record(nanoseconds(start.elapsed()))?;
    }
    Ok(())
}

/// Events per second in batches, by round, ascending.
pub fn batches(engine: &mut OneByOne, events: &[Event], batch_size: usize, rounds: usize) -> Vec<f64> {
    let events: Vec<&Event> = events.iter().collect();
    let mut rates: Vec<f64> = (0..=rounds)
        .map(|_| {
            let stopwatch = Stopwatch::start();
            for batch in events.chunks(batch_size) {
                engine.find_batch(batch);
            }
            events.len() as f64 / stopwatch.stop().as_secs_f64()
        })
        .skip(1) // The first round warms up.
        .collect();
    rates.sort_by(f64::total_cmp);
    rates
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
