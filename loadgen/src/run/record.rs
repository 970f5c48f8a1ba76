//! A phase as a record.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::{Stage, Watched};
use crate::check::check;
use crate::drive::{Heard, Phase, Sent};
use crate::interrupt;
use crate::plan::Plan;
use crate::report::latency::{self, Latency};
use crate::report::record::{self, Machine, Milestone, Record, Requests, Slopes, Target, Totals};
use crate::report::{tardiness, text};
use crate::scenario::Scenario;

/// One sends, one reads; one makes steps ready, and one looks on.
const THREADS: u32 = 4;

/// Measured seconds below which nobody asks where memory is heading.
const SLOPE_MIN_S: f64 = 300.0;

/// What came of a phase, with the oracle's verdict.
///
/// # Errors
/// When the scenario cannot be written, which does not happen.
pub fn record(
    scenario: &Scenario,
    plan: &dyn Plan,
    stage: &Stage,
    watched: Watched,
) -> anyhow::Result<Record> {
    let Watched { phase, begun, observed, ended } = watched;
    let Phase { sent, heard, .. } = &phase;
    let check = check(plan, &stage.clients, &phase, scenario.load.checked_stride, stage.wire.is_exact());
    let timeline = observed.timeline;
    let warm_up_s = scenario.run.warmup_s;
    let is_long = phase.seconds - warm_up_s >= SLOPE_MIN_S;
    let slopes =
        if is_long { Slopes::over(&timeline, &(warm_up_s..phase.seconds)) } else { Slopes::default() };
    let totals = totals(&phase, warm_up_s);
    let remarks = remarks(scenario, plan, heard, &totals, ended);
    let over = if stage.endpoint.is_secure() { " over TLS" } else { "" };
    let shortfalls = stage.wire.lacks().iter().map(|lack| (*lack).to_owned()).collect();
    Ok(Record {
        schema: record::SCHEMA,
        scenario: record::Scenario {
            name: scenario.name.clone(),
            toml: scenario.to_toml()?,
            seed: scenario.seed,
            remarks,
            parameters: parameters(scenario),
        },
        target: Target {
            name: format!("{}{over}", stage.wire.name()),
            version: stage.version.clone(),
            address: stage.endpoint.url(),
            shortfalls,
        },
        machine: Machine::here(),
        begun,
        warm_up_s,
        measured_s: (phase.seconds - warm_up_s).max(0.0),
        load_threads: THREADS,
        totals,
        latencies: latencies(sent, heard),
        check: Some(check),
        timeline,
        slopes,
        milestones: milestones(heard),
        trials: Vec::new(),
    })
}

/// What one should know of a run besides its figures, a sentence each.
fn remarks(
    scenario: &Scenario,
    plan: &dyn Plan,
    heard: &Heard,
    totals: &Totals,
    ended: Option<String>,
) -> Vec<String> {
    let mut remarks = plan.remarks();
    let breaks = &scenario.reconnects.at_s;
    if !breaks.is_empty() && breaks.iter().all(|at_s| *at_s >= scenario.run.duration_s) {
        remarks.push("no connection breaks: all of reconnects.at_s are behind the end of the run".to_owned());
    }
    if heard.foreign > 0 {
        remarks.push(format!(
            "{} deliveries of what others publish, or published before, are in no figure but the bytes; another load needs another --prefix, \
             or both are wrong",
            text::count(heard.foreign)
        ));
    }
    if let Some(status) = ended {
        remarks.push(format!("the broker that was started for it ended by itself: {status}"));
    }
    let without = totals.events.refused_count() + totals.left_over;
    if without * 100 > totals.events.sent {
        let (without, sent) = (text::count(without), text::count(totals.events.sent));
        remarks.push(format!(
            "{without} of {sent} events were refused or not answered: latencies are of the others"
        ));
    }
    if interrupt::is_asked() {
        remarks.push(format!("a signal ended it before its {} s", scenario.run.duration_s));
    }
    remarks
}

/// What a sweep goes over.
fn parameters(scenario: &Scenario) -> BTreeMap<String, f64> {
    let everybody = f64::from(scenario.clients.count) + scenario.clients.silent as f64;
    let delay_ms = scenario.delay_ms().map(|delay_ms| (tardiness::DELAY_MS, delay_ms as f64));
    [
        ("clients", f64::from(scenario.clients.count)),
        ("subscriptions", everybody),
        ("rate", scenario.events.rate),
    ]
    .into_iter()
    .chain(delay_ms)
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn totals(phase: &Phase, warm_up_s: f64) -> Totals {
    let Phase { sent, heard, unanswered, .. } = phase;
    let mut errors = heard.errors.clone();
    for (what, times) in &sent.errors {
        *errors.entry(what.clone()).or_default() += times;
    }
    let unsent = [
        ("not sent, for the broker did not read".to_owned(), sent.unread),
        ("not sent, for the connection had broken".to_owned(), sent.cut_off),
    ];
    errors.extend(unsent.into_iter().filter(|(_, times)| *times > 0));
    let warm_up = warm_up_s.ceil();
    let due = sent.due_seconds.iter().zip(0_u32..).filter(|(_, second)| f64::from(*second) >= warm_up);
    let due: u64 = due.map(|(events, _)| events).sum();
    Totals {
        events: Requests {
            // Within a second that the warm-up ends in, those that were sent are those that were due.
            intended: due.max(sent.events),
            sent: sent.events,
            accepted: heard.accepted,
            refused: heard.refused.clone(),
        },
        moves: Requests {
            intended: sent.moves_due,
            sent: sent.moves,
            accepted: heard.moves_in_force,
            refused: BTreeMap::new(),
        },
        deliveries: heard.deliveries,
        bytes_in: heard.bytes,
        bytes_out: sent.bytes,
        errors,
        gaps: heard.gaps,
        gap_deliveries: heard.lost,
        duplicates: heard.duplicates,
        out_of_order: 0,
        holes: heard.holes,
        reconnects: sent.reconnects,
        left_over: *unanswered,
    }
}

fn latencies(sent: &Sent, heard: &Heard) -> Vec<Latency> {
    let all: [(&str, &Histogram<u64>); 6] = [
        (latency::DELIVERY, &heard.delivery_us),
        (latency::ACCEPTED, &heard.accepted_us),
        (latency::MOVE_IN_FORCE, &heard.in_force_us),
        (latency::MOVE_DELIVERY, &heard.move_delivery_us),
        (latency::RECONNECT, &heard.reconnect_us),
        (latency::LATENESS, &sent.late_us),
    ];
    let seen = all.into_iter().filter(|(_, histogram)| !histogram.is_empty());
    seen.map(|(name, histogram)| Latency::new(name, histogram)).collect()
}

fn milestones(heard: &Heard) -> Vec<Milestone> {
    let alarms = heard.alarms.values().zip(1_u32..);
    alarms
        .map(|(alarm, nth)| Milestone {
            name: format!("alarm {nth} at the last of {} clients", alarm.deliveries),
            seconds: alarm.last_after as f64 / 1e9,
        })
        .collect()
}
