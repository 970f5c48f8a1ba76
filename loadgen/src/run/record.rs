//! A phase as a record.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::Stage;
use crate::check::check;
use crate::drive::{Heard, Phase, Sent};
use crate::plan::Plan;
use crate::report::latency::{self, Latency};
use crate::report::record::{self, Machine, Percentiles, Record, Requests, Second, Slopes, Target, Totals};
use crate::scenario::Scenario;

/// Two threads: one sends, one reads.
const THREADS: u32 = 2;

/// What came of a phase, with the oracle's verdict where the target decides who gets what.
///
/// # Errors
/// When the scenario cannot be written, which does not happen.
pub fn record(
    scenario: &Scenario,
    plan: &dyn Plan,
    stage: &Stage,
    phase: &Phase,
    begun: jiff::Timestamp,
) -> anyhow::Result<Record> {
    let Phase { sent, heard, .. } = phase;
    let check =
        stage.wire.is_exact().then(|| check(plan, &stage.clients, phase, scenario.load.checked_stride));
    Ok(Record {
        schema: record::SCHEMA,
        scenario: record::Scenario {
            name: scenario.name.clone(),
            toml: scenario.to_toml()?,
            seed: scenario.seed,
            parameters: parameters(scenario),
        },
        target: Target {
            name: stage.wire.name().to_owned(),
            version: String::new(),
            address: stage.address.to_string(),
            shortfalls: stage.wire.lacks().iter().map(|lack| (*lack).to_owned()).collect(),
        },
        machine: Machine::default(),
        begun,
        warm_up_s: scenario.run.warmup_s,
        measured_s: (phase.seconds - scenario.run.warmup_s).max(0.0),
        load_threads: THREADS,
        totals: totals(phase),
        latencies: latencies(sent, heard),
        check,
        timeline: timeline(sent, heard),
        slopes: Slopes::default(),
        milestones: Vec::new(),
        trials: Vec::new(),
    })
}

/// What a sweep goes over.
fn parameters(scenario: &Scenario) -> BTreeMap<String, f64> {
    let everybody = f64::from(scenario.clients.count) + scenario.clients.silent as f64;
    [("clients", f64::from(scenario.clients.count)), ("subscribers", everybody), ("rate", scenario.events.rate)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn totals(phase: &Phase) -> Totals {
    let Phase { sent, heard, unanswered, .. } = phase;
    let mut errors = heard.errors.clone();
    for (what, times) in &sent.errors {
        *errors.entry(what.clone()).or_default() += times;
    }
    let silent_loss = ("a hole in the offsets, without a gap".to_owned(), heard.holes);
    let unsent = ("not sent, for the broker did not read".to_owned(), sent.unsent);
    errors.extend([silent_loss, unsent].into_iter().filter(|(_, times)| *times > 0));
    let intended = |column: usize| sent.seconds.iter().map(|second| second[column]).sum::<u64>();
    Totals {
        events: Requests {
            intended: intended(0),
            sent: sent.events,
            accepted: heard.accepted,
            refused: heard.refused.clone(),
        },
        moves: Requests {
            intended: sent.moves,
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

fn timeline(sent: &Sent, heard: &Heard) -> Vec<Second> {
    let count = sent.seconds.len().max(heard.seconds.len());
    let row = |index: usize| {
        let [events_intended, events_sent, moves] = sent.seconds.get(index).copied().unwrap_or_default();
        let heard = heard.seconds.get(index).copied().unwrap_or_default();
        let [p50_us, p90_us, p99_us, p999_us, max_us] = heard.latency_us;
        let delivery = (max_us > 0).then_some(Percentiles { p50_us, p90_us, p99_us, p999_us, max_us });
        Second {
            at_s: index as f64 + 1.0,
            span_s: 1.0,
            events_intended,
            events_sent,
            deliveries: heard.deliveries,
            moves,
            refused: heard.refused,
            delivery,
            ..Second::default()
        }
    };
    (0..count).map(row).collect()
}
