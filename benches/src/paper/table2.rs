//! Table 2: content matchers without and with location, and what it takes to move a filter in them.

use matcher::engine::Engine;
use matcher::engine::cells::Cells;
use matcher::fixtures::workload::{Config, Workload};

use super::figures::Figures;
use super::matching::Ladder;
use super::plan::{Plan, Who};
use super::progress::Progress;
use super::scene::Scene;
use crate::baseline::counting::Location;
use crate::engines::contender::{Baselines, OneByOne, counting_name, fill};
use crate::engines::moves::{Travel, Travellers, counting_moves};
use crate::engines::oracle::{Oracle, check};
use crate::engines::race::{Entrant, Events, race_means};

/// Where its figures are kept.
pub const PANEL: &str = "table2";
/// Unit of a matching time.
pub const MATCH: &str = "us an event";
/// Unit of an update time.
pub const UPDATE: &str = "us a filter";
/// The counting matchers, as they know location.
pub const COUNTING: [Location; 4] =
    [Location::Ignored, Location::Comparisons, Location::Intervals, Location::Afterwards];
/// What the update of a matcher that builds its index anew is called.
pub const REBUILT: &str = "counting, index built anew";
/// Moves of a counting matcher's filters; each shifts a part of long arrays.
const COUNTING_MOVES: u64 = 200;

/// About how long it takes, for the progress.
#[must_use]
pub fn seconds(plan: &Plan) -> f64 {
    if !plan.shows(super::plan::Section::Table2) {
        return 0.0;
    }
    let filters = f64::from(plan.table2_subscriptions) * 10.0;
    let turns = (plan.turn_seconds * (plan.rounds as f64 + 1.0)).min(filters * 12e-6);
    filters * 45e-6 + turns * 1.5 + plan.check_seconds
}

/// Matches and updates.
///
/// # Errors
/// The first wrong answer.
pub fn measure(plan: &Plan, figures: &mut Figures, progress: &mut Progress) -> anyhow::Result<()> {
    let config = Config { seed: plan.seed, subscriptions: plan.table2_subscriptions, ..Config::default() };
    let workload = Workload::new(config.clone())?;
    progress.doing("Table 2, matching");
    matching(plan, &workload, figures)?;
    progress.done(seconds(plan) / 2.0);
    progress.doing("Table 2, updates");
    updates(plan, &workload, figures)?;
    progress.done(seconds(plan) / 2.0);
    Ok(())
}

fn matching(plan: &Plan, workload: &Workload, figures: &mut Figures) -> anyhow::Result<()> {
    let size = workload.config().subscriptions;
    let ladder = Ladder::new(workload, plan.events)?;
    let mut entrants = Vec::new();
    if plan.has(Who::Cells) {
        entrants.push(Entrant::new(Who::Cells.label(), filled(workload)?, ladder.all()));
    }
    let baselines = plan.has(Who::Counting).then(|| Baselines::new(workload)).transpose()?;
    if let Some(baselines) = &baselines {
        for location in COUNTING {
            entrants.push(counting(baselines, location, ladder.all())?);
        }
    }
    let events = ladder.fitting(plan, &mut entrants);
    entrants.iter_mut().for_each(|entrant| entrant.events = events);
    let sample = Scene::sample_of(workload.config(), plan, size).min(events.timed.len());
    let checked = check(&Oracle::new(workload), &mut entrants, sample)?;
    figures.checked(PANEL, size, checked, events.timed.len());
    for timing in race_means(&mut entrants, plan.rounds)? {
        figures.push(PANEL, timing.label, size, MATCH, timing.means_us);
    }
    Ok(())
}

fn filled(workload: &Workload) -> anyhow::Result<OneByOne> {
    let mut engine: Box<dyn Engine> = Box::new(Cells::new(workload.world()));
    fill(engine.as_mut(), workload)?;
    Ok(OneByOne::new(engine))
}

fn counting<'a>(
    baselines: &Baselines,
    location: Location,
    events: &'a Events,
) -> anyhow::Result<Entrant<'a>> {
    Ok(Entrant::new(counting_name(location), baselines.counting_with(location)?, events))
}

/// What a move of one filter takes; answers after moves are checked in Fig. 5.
fn updates(plan: &Plan, workload: &Workload, figures: &mut Figures) -> anyhow::Result<()> {
    let size = workload.config().subscriptions;
    if plan.has(Who::Cells) {
        let mut engine = filled(workload)?;
        let mut travellers = Travellers::new(workload);
        let per_client = f64::from(workload.config().filters_per_subscription);
        let mut values = Vec::new();
        for _ in 0..plan.rounds {
            let timing = travellers.travel(engine.engine(), Travel::Jump, plan.moves as u64)?;
            values.push(timing.mean_ns / 1e3 / per_client);
        }
        figures.push(PANEL, Who::Cells.label(), size, UPDATE, values);
    }
    if plan.has(Who::Counting) {
        for location in [Location::Comparisons, Location::Intervals] {
            let moves = counting_moves(workload, location, Travel::Jump, (COUNTING_MOVES, 1))?;
            figures.push(PANEL, counting_name(location), size, UPDATE, vec![moves.relocate_ns / 1e3]);
            if location == Location::Comparisons {
                figures.push(PANEL, REBUILT, size, UPDATE, vec![moves.rebuild_ns / 1e3]);
            }
        }
    }
    Ok(())
}
