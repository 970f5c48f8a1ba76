//! Fig. 3 and 4: what an event takes, sent alone or in batches.

use std::time::Instant;

use anyhow::{Context, ensure};
use matcher::engine::{Engine as _, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::Workload;

use super::checks::{Borrowed, Failure};
use super::field::Field;
use super::figures::Figures;
use super::plan::{Plan, Who};
use super::scene::Scene;
use crate::baseline::rtree::Survivors;
use crate::engines::contender::{TreeAndContent, TreeOnly};
use crate::engines::oracle::check;
use crate::engines::race::{Entrant, Events, race_means};
use crate::gpu::figures::us_each;

/// What the curve of the batched engine is called.
pub const IN_BATCHES: &str = "gpu in batches";
/// Unit of a matching time.
pub const UNIT: &str = "us an event";
/// Events that tell how slow a contender is.
const PROBE: usize = 10;

/// Events in sets of several sizes, smaller ones the beginning of larger ones; the slowest contender's time chooses one.
pub struct Ladder {
    sets: Vec<Events>,
}

impl Ladder {
    /// Up to `most` timed events.
    ///
    /// # Errors
    /// Never for our workloads, whose events are of numbers.
    pub fn new(workload: &Workload, most: usize) -> anyhow::Result<Self> {
        let all = Events::new(workload, most)?;
        let set = |divisor: usize| Events {
            warm_up: all.warm_up[..(all.warm_up.len() / divisor).max(1)].to_vec(),
            timed: all.timed[..(all.timed.len() / divisor).max(1)].to_vec(),
        };
        Ok(Self { sets: [1, 2, 5, 10].map(set).into() })
    }

    /// All events.
    #[must_use]
    pub fn all(&self) -> &Events {
        &self.sets[0]
    }

    /// The largest set that the slowest of these gets through in the plan's time, or the smallest.
    pub fn fitting(&self, plan: &Plan, entrants: &mut [Entrant<'_>]) -> &Events {
        let probe = &self.all().timed[..PROBE.min(self.all().timed.len())];
        let mut slowest_s = 0_f64;
        for entrant in entrants {
            let start = Instant::now();
            probe.iter().for_each(|event| entrant.contender.find(event));
            slowest_s = slowest_s.max(start.elapsed().as_secs_f64() / probe.len() as f64);
        }
        let fits = |events: &&Events| {
            let count = events.timed.len() + events.warm_up.len();
            slowest_s * count as f64 <= plan.turn_seconds
        };
        self.sets.iter().find(fits).unwrap_or(&self.sets[self.sets.len() - 1])
    }
}

/// One size of a panel: checks all who take part, then lets them take turns.
///
/// # Errors
/// The first wrong answer, or what an engine fails with.
pub fn measure(
    plan: &Plan,
    scene: &Scene,
    field: &mut Field,
    ladder: &Ladder,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let panel = scene.matching.context("a panel for matching times")?;
    let size = field.subscriptions();
    let workload = field.workload()?;
    let oracle = field.oracle(&workload);
    let tree = (plan.has(Who::Rtree) || plan.has(Who::RtreeContent)).then(|| field.tree());
    let failure = Failure::default();
    {
        let mut entrants = Vec::new();
        let events = ladder.all();
        let (engines, contents) = field.engines_and_contents();
        for engine in engines {
            entrants.push(Entrant::new(engine.name(), Borrowed::new(engine, &failure), events));
        }
        if let Some(tree) = tree.as_ref().filter(|_| plan.has(Who::Rtree)) {
            entrants.push(Entrant::new(Who::Rtree.label(), TreeOnly::new(tree), events));
        }
        if let (Some(tree), Some(contents)) = (&tree, contents) {
            let per_subscription = workload.config().filters_per_subscription;
            let survivors = Survivors::new(contents, workload.names().len(), per_subscription);
            entrants.push(Entrant::new(
                Who::RtreeContent.label(),
                TreeAndContent::new(tree, survivors),
                events,
            ));
        }
        let events = ladder.fitting(plan, &mut entrants);
        entrants.iter_mut().for_each(|entrant| entrant.events = events);
        let sample = scene.sample(plan, size).min(events.timed.len());
        let checked = check(&oracle, &mut entrants, sample)?;
        figures.checked(panel, size, checked, events.timed.len());
        for timing in race_means(&mut entrants, plan.rounds)? {
            figures.push(panel, timing.label, size, UNIT, timing.means_us);
        }
    }
    if let Some(error) = failure.into_inner() {
        return Err(error.into());
    }
    batches(plan, panel, field, figures)
}

/// The batched engine with many events at once, its answers compared with those to events sent alone.
fn batches(plan: &Plan, panel: &'static str, field: &mut Field, figures: &mut Figures) -> anyhow::Result<()> {
    let (size, workload) = (field.subscriptions(), field.workload()?);
    let Some(gpu) = &mut field.gpu else { return Ok(()) };
    let events: Vec<Event> = (0..plan.batch as u64).map(|index| workload.event(index)).collect();
    let batch: Vec<&Event> = events.iter().collect();
    let (mut together, mut alone) = (MatchRows::new(), MatchRows::new());
    let mut values = Vec::new();
    for round in 0..=plan.rounds {
        together.clear();
        let start = Instant::now();
        gpu.match_batch(&batch, &mut together)?;
        // The first round warms up.
        if round > 0 {
            values.push(us_each(start.elapsed(), batch.len()));
        }
    }
    for (index, event) in batch.iter().take(plan.events).enumerate() {
        alone.clear();
        gpu.match_batch(&[event], &mut alone)?;
        ensure!(
            alone.row(0) == together.row(index),
            "event {index} finds other subscriptions alone than in a batch"
        );
    }
    figures.push(panel, IN_BATCHES, size, UNIT, values);
    Ok(())
}
