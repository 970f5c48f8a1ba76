//! Checks as situations: their violations become findings.

use std::collections::VecDeque;
use std::sync::Arc;

use checks::cost::estimate;
use checks::{Arrival, Bounds, Check, Checker, Clock, Link};
use matcher::geo::World;
use serde_json::{Map, Value, json};

use super::{Finding, Host, Input, Logic, Plan};
use crate::config::SituationEngine;
use crate::ingest::check::{ReadCheck, read as read_document};
use crate::model::error::ApiError;

/// Reads a document.
pub(super) fn read(host: &Host, name: &str, text: &str) -> Result<Plan, ApiError> {
    let ReadCheck { document, filters, text } = read_document(&host.subscriptions, text)?;
    let check = Check::new(World::from(host.config.server.world), &document);
    let check = Arc::new(check.map_err(|error| ApiError::invalid(error.pointer, error.fault.to_string()))?);
    let longest_s = document.contexts.iter().map(|context| context.for_s).fold(0.0, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "sets hold events for a hundred days at most")]
    let longest_ms = (longest_s * 1_000.0).ceil() as i64;
    let (name, clock) = (name.to_owned(), document.clock);
    let settings = &host.config.situations;
    let comparisons = estimate(&check, |_| f64::from(settings.comparisons_events)).change;
    let engine = engine(settings.engine);
    let begin = move || {
        let checker = Checker::new(Arc::clone(&check), engine, Bounds::default());
        let (name, held) = (name.clone(), VecDeque::new());
        Box::new(Checking { name, clock, checker, longest_ms, now_ms: i64::MIN, held }) as Box<dyn Logic>
    };
    Ok(Plan { document: text, filters, comparisons, begin: Box::new(begin) })
}

/// The engine of all checks. A setting that nothing serves was refused at the start.
fn engine(setting: SituationEngine) -> checks::Kind {
    match setting {
        SituationEngine::Auto | SituationEngine::Cpu | SituationEngine::Gpu => checks::Kind::Incremental,
    }
}

/// A check at work.
struct Checking {
    name: String,
    clock: Clock,
    checker: Checker<Arc<Input>>,
    /// How long a set holds an event, at most.
    longest_ms: i64,
    /// The newest time of an event in the sets, on the clock of the check.
    now_ms: i64,
    /// That time and the offset of events that the sets may hold, in the order in which they came.
    held: VecDeque<(i64, u64)>,
}

impl Checking {
    /// The finding that tells a link. It is told where the newest of its events was; of those of one time where the last one was that came.
    fn finding(&self, link: &Link, brought: &Arc<Input>) -> Option<Finding> {
        let variables: Vec<_> = self.checker.check().variables().collect();
        let mut bindings = Map::new();
        let mut bound = Vec::new();
        for binding in link.bindings() {
            let (_, input) = self.checker.event(binding)?;
            bindings.insert((*variables.get(binding.variable)?).to_owned(), json!(input.id));
            bound.push((input.time_ms, binding.number, input));
        }
        if bound.is_empty() {
            bound.push((brought.time_ms, 0, brought));
        }
        let newest = bound.iter().max_by_key(|(time_ms, number, _)| (*time_ms, *number))?.2;
        let mut from: Vec<_> = bound.iter().map(|(_, _, input)| Arc::clone(&input.id)).collect();
        from.sort_unstable();
        from.dedup();
        let mut properties = Map::new();
        properties.insert("type".to_owned(), json!("violation"));
        properties.insert("check".to_owned(), json!(self.name));
        if !bindings.is_empty() {
            properties.insert("bindings".to_owned(), Value::Object(bindings));
        }
        let depth = bound.iter().map(|(_, _, input)| input.depth).max()?;
        Some(Finding { position: newest.event.position, properties, from, depth, offset: brought.offset })
    }
}

impl Logic for Checking {
    fn take(&mut self, input: Arc<Input>, findings: &mut Vec<Finding>) -> Result<(), String> {
        let arrival = Arrival {
            event: Arc::clone(&input.event),
            time_ms: Some(input.time_ms),
            arrival_ms: input.arrived_ms,
        };
        let outcome = self.checker.take(Arc::clone(&input), &arrival).map_err(|overflow| {
            self.held.clear();
            overflow.to_string()
        })?;
        let Some(outcome) = outcome else { return Ok(()) };
        let at_ms = match self.clock {
            Clock::Arrival => input.arrived_ms,
            Clock::Event => input.time_ms,
        };
        self.now_ms = self.now_ms.max(at_ms);
        self.held.push_back((at_ms, input.offset));
        let oldest_ms = self.now_ms.saturating_sub(self.longest_ms);
        while self.held.front().is_some_and(|(at_ms, _)| *at_ms < oldest_ms) {
            self.held.pop_front();
        }
        // In one order, so that the same inputs make the same findings.
        let mut told = outcome.told;
        told.sort_unstable();
        findings.extend(told.iter().filter_map(|link| self.finding(link, &input)));
        Ok(())
    }

    fn needs(&self) -> Option<u64> {
        self.held.front().map(|(_, offset)| *offset)
    }

    fn evaluations(&self) -> u64 {
        self.checker.evaluations()
    }

    fn engine(&self) -> &'static str {
        self.checker.engine().name()
    }

    fn bytes(&self) -> usize {
        // The text of an event is not held, and its parts are counted by the checker.
        let input_bytes = size_of::<Input>() + size_of::<(i64, u64)>();
        let ids_bytes: usize = self.checker.held().iter().map(|(_, input)| input.id.len()).sum();
        self.checker.bytes() + self.held.len() * input_bytes + ids_bytes
    }
}
