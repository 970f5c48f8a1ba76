//! The highest rate that keeps a latency bound: doubled until it fails, then the middle between what was kept and what was not.

use super::{Stage, record};
use crate::interrupt;
use crate::report::latency::{ACCEPTED, DELIVERY, LATENESS};
use crate::report::record::{Record, Trial};
use crate::report::text;
use crate::scenario::Scenario;

/// Rates that are tried at most.
const TRIALS_MAX: usize = 40;

/// What is sought, and how.
#[derive(Clone, Debug)]
pub struct Search {
    /// The first rate, in events a second.
    pub from: f64,
    /// Never more than this.
    pub most: f64,
    /// The 99th percentile that is to be kept, of publish to delivery and of publish to accepted, in microseconds.
    pub p99_us: u64,
    /// It ends when the rate that is kept and the one that is not are as near as that: 0.05 is a twentieth.
    pub within: f64,
    /// How often a rate is tried before it counts as not kept: something else may have disturbed the machine.
    pub tries: u32,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// The highest rate that was kept; none where even the first was not, nor any below it.
    pub rate: Option<f64>,
    /// All trials, in their order.
    pub trials: Vec<Trial>,
    /// The record of the best.
    pub best: Option<Record>,
}

/// Searches, on a stage that stands, with everything of a scenario but the rate of its events.
///
/// # Errors
/// When the broker goes away, or no plan can be made of a rate.
pub fn find(
    scenario: &Scenario,
    stage: &mut Stage,
    search: &Search,
    mut watch: impl FnMut(&Trial),
) -> anyhow::Result<Found> {
    let (mut kept, mut failed): (Option<f64>, Option<f64>) = (None, None);
    let mut found = Found { rate: None, trials: Vec::new(), best: None };
    let mut rate = search.from;
    while found.trials.len() < TRIALS_MAX {
        let mut was_kept = false;
        for _ in 0..search.tries.max(1) {
            let record = attempt(scenario, stage, rate)?;
            let trial = judge(&record, rate, search);
            watch(&trial);
            was_kept = trial.was_kept;
            found.trials.push(trial);
            if was_kept {
                found.best = Some(record);
                break;
            }
        }
        if was_kept {
            kept = Some(rate);
        } else {
            failed = Some(rate);
        }
        rate = match (kept, failed) {
            (Some(kept), _) if kept >= search.most => break,
            (Some(kept), None) => (kept * 2.0).min(search.most),
            (None, Some(failed)) if failed < 1.0 => break,
            (None, Some(failed)) => failed / 4.0,
            (Some(kept), Some(failed)) if failed <= kept * (1.0 + search.within) => break,
            (Some(kept), Some(failed)) => (kept * failed).sqrt(),
            (None, None) => unreachable!("the rate was kept or it was not"),
        };
    }
    found.rate = kept;
    Ok(found)
}

/// One run at a rate.
///
/// # Errors
/// As [`find`].
pub fn attempt(scenario: &Scenario, stage: &mut Stage, rate: f64) -> anyhow::Result<Record> {
    let mut scenario = scenario.clone();
    scenario.events.rate = rate;
    let plan = scenario.plan()?;
    let watched = stage.phase(&scenario, &*plan, |_| ())?;
    interrupt::check()?;
    record(&scenario, &*plan, stage, watched)
}

fn judge(record: &Record, rate: f64, search: &Search) -> Trial {
    let percentiles = |name| record.latency(name).map_or((0, 0), |latency| (latency.p50_us, latency.p99_us));
    let ((p50_us, delivery_us), (_, late_us)) = (percentiles(DELIVERY), percentiles(LATENESS));
    // Where few get anything, its being accepted says more.
    let p99_us = delivery_us.max(percentiles(ACCEPTED).1);
    let totals = &record.totals;
    let refused = totals.events.refused_count();
    let wrong = record.check.as_ref().map_or(0, |check| check.missing + check.spurious + check.duplicates);
    let faults = [
        (refused, "events were refused"),
        (totals.errors_count(), "errors"),
        (totals.gap_deliveries, "deliveries were lost"),
        (totals.left_over, "requests were not answered"),
        (wrong, "deliveries were wrong"),
    ];
    let fault = faults.into_iter().find(|(count, _)| *count > 0);
    let (was_kept, why) = if let Some((count, what)) = fault {
        (false, format!("{} {what}", text::count(count)))
    } else if late_us > search.p99_us {
        (false, format!("the load itself was late: {} at the 99th percentile", text::microseconds(late_us)))
    } else if p99_us > search.p99_us {
        (false, format!("the 99th percentile was {}", text::microseconds(p99_us)))
    } else if p99_us == 0 {
        (false, "nothing was accepted".to_owned())
    } else {
        (true, text::counted(totals.deliveries, "delivery", "deliveries"))
    };
    Trial { rate, p50_us, p99_us, was_kept, why }
}
