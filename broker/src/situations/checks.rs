//! Checks as situations: their violations become findings.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use checks::cost::estimate;
use checks::{Arrival, Bounds, Check, Checker, Clock, Link, Outcome};
use matcher::geo::World;
use serde_json::{Map, Value, json};
use wire::OnViolation;

use super::gate::LINKS_MAX;
use super::{Finding, GatePlan, Host, Input, Logic, Plan, Verdict};
use crate::ingest::check::{ReadCheck, read as read_document};
use crate::model::error::ApiError;

/// Events that were judged and have not come by the session yet, at most; a check that has as many judges no further ones.
const JUDGED_MAX: usize = 16_384;

/// After this an event that was judged is not expected any more: it was not published.
const JUDGED_MS: i64 = 60_000;

/// Reads a document.
pub(super) fn read(host: &Host, name: &str, text: &str) -> Result<Plan, ApiError> {
    let ReadCheck { document, filters, on_violation, text } = read_document(&host.subscriptions, text)?;
    if on_violation != OnViolation::Tell && host.config.cluster.is_partitioned() {
        let why = "in a cluster with several active brokers (cluster.partitions) checks can tell, and neither mark nor drop: \
                   the broker that takes an event is not the one that has the check's sets";
        return Err(ApiError::invalid("/on_violation", why.to_owned()));
    }
    let check = Check::new(World::from(host.config.server.world), &document);
    let check = Arc::new(check.map_err(|error| ApiError::invalid(error.pointer, error.fault.to_string()))?);
    let longest_s = document.contexts.iter().map(|context| context.for_s).fold(0.0, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "sets hold events for a hundred days at most")]
    let longest_ms = (longest_s * 1_000.0).ceil() as i64;
    let gate =
        (on_violation != OnViolation::Tell).then(|| GatePlan { check: Arc::clone(&check), on_violation });
    let (name, clock) = (name.to_owned(), document.clock);
    let settings = &host.config.situations;
    // The event that comes is there in any set.
    let events = |set| 1.0 + f64::from(settings.comparisons_events_per_s) * check.for_s(set);
    let comparisons = estimate(&check, events).change;
    let engines = host.check_engines.clone();
    let begin = move || {
        let checking = Checking {
            name: name.clone(),
            clock,
            on_violation,
            checker: Checker::with_engine(Arc::clone(&check), engines.engine(&check)),
            longest_ms,
            now_ms: i64::MIN,
            held: VecDeque::new(),
            judged: HashMap::new(),
            ready: VecDeque::new(),
        };
        Box::new(checking) as Box<dyn Logic>
    };
    Ok(Plan { document: text, filters, is_about_objects: false, comparisons, begin: Box::new(begin), gate })
}

/// Bytes of an event's id, by estimate.
const ID_BYTES: usize = 32;

/// Events in the sets of a check beyond which a question is not answered, since they would have to be copied.
const REHEARSED_MAX: usize = 20_000;

/// A check at work.
struct Checking {
    name: String,
    clock: Clock,
    on_violation: OnViolation,
    checker: Checker<Arc<Input>>,
    /// How long a set holds an event, at most.
    longest_ms: i64,
    /// The newest time of an event in the sets, on the clock of the check.
    now_ms: i64,
    /// That time and the offset of events that the sets may hold, in the order in which they came.
    held: VecDeque<(i64, u64)>,
    /// Events that were judged and are in the sets, by id and time, until they come by the session: how many, and when the last arrived.
    judged: HashMap<(Arc<str>, i64), (u32, i64)>,
    /// What was found in inputs that were evaluated ahead.
    ready: VecDeque<Ready>,
}

/// What was found in an input: `None` where no set took it.
struct Ready {
    offset: u64,
    found: Result<Option<Vec<Finding>>, String>,
}

impl Checking {
    /// Takes an event in; `None` where no set takes it. Links are in one order, so that the same inputs make the same findings.
    fn evaluate(&mut self, input: &Arc<Input>) -> Result<Option<Outcome>, String> {
        let outcome =
            self.checker.take(Arc::clone(input), &arrival(input)).map_err(|overflow| overflow.to_string())?;
        Ok(outcome.map(|mut outcome| {
            outcome.told.sort_unstable();
            outcome
        }))
    }

    /// Notes that the sets hold a delivery.
    fn note(&mut self, input: &Input) {
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
    }

    /// Expects an event no more; whether it was judged.
    fn was_judged(&mut self, input: &Input) -> bool {
        let key = (Arc::clone(&input.id), input.time_ms);
        let Some((count, _)) = self.judged.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.judged.remove(&key);
        }
        true
    }

    /// The verdict on an event, with at most as many links as a refusal has.
    fn verdict(&self, checker: &Checker<Arc<Input>>, outcome: &Outcome, input: &Arc<Input>) -> Verdict {
        let told = &outcome.told[..outcome.told.len().min(LINKS_MAX)];
        Verdict {
            findings: told.iter().filter_map(|link| finding(&self.name, checker, link, input)).collect(),
            links: told.iter().map(|link| bound(checker, link)).collect(),
        }
    }
}

impl Logic for Checking {
    fn ahead_max(&self) -> usize {
        // Where events are judged, each has to be evaluated when it comes.
        match (self.on_violation, self.checker.engine().steps_max()) {
            (OnViolation::Tell, steps_max @ 2..) => steps_max,
            _ => 0,
        }
    }

    fn look_ahead(&mut self, inputs: &[Arc<Input>]) {
        let Self { name, checker, ready, .. } = self;
        let mut coming = inputs.iter();
        let events = inputs.iter().map(|input| (Arc::clone(input), arrival(input)));
        checker.take_all(events, |checker, taken| {
            let Some(input) = coming.next() else { return ControlFlow::Break(()) };
            let found = taken.map_err(|overflow| overflow.to_string()).map(|outcome| {
                let mut told = outcome?.told;
                told.sort_unstable();
                Some(told.iter().filter_map(|link| finding(name, checker, link, input)).collect())
            });
            let has_failed = found.is_err();
            ready.push_back(Ready { offset: input.offset, found });
            if has_failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    fn take(&mut self, input: Arc<Input>, findings: &mut Vec<Finding>) -> Result<(), String> {
        if self.ready.front().is_some_and(|ready| ready.offset == input.offset)
            && let Some(ready) = self.ready.pop_front()
        {
            if let Some(found) = ready.found? {
                self.note(&input);
                findings.extend(found);
            }
            return Ok(());
        }
        if self.was_judged(&input) {
            self.note(&input);
            return Ok(());
        }
        let Some(outcome) = self.evaluate(&input)? else { return Ok(()) };
        self.note(&input);
        if self.on_violation == OnViolation::Tell {
            let Self { name, checker, .. } = self;
            findings.extend(outcome.told.iter().filter_map(|link| finding(name, checker, link, &input)));
        }
        Ok(())
    }

    fn judge(&mut self, input: &Arc<Input>) -> Result<Option<Verdict>, String> {
        if self.judged.len() >= JUDGED_MAX {
            let oldest_ms = input.arrived_ms.saturating_sub(JUDGED_MS);
            self.judged.retain(|_, (_, arrived_ms)| *arrived_ms >= oldest_ms);
            if self.judged.len() >= JUDGED_MAX {
                return Ok(None);
            }
        }
        let Some(outcome) = self.evaluate(input)? else { return Ok(Some(Verdict::default())) };
        let verdict = self.verdict(&self.checker, &outcome, input);
        if self.on_violation == OnViolation::Drop && !verdict.links.is_empty() {
            self.checker.retract().map_err(|overflow| overflow.to_string())?;
        } else {
            let key = (Arc::clone(&input.id), input.time_ms);
            let (count, arrived_ms) = self.judged.entry(key).or_default();
            (*count, *arrived_ms) = (*count + 1, input.arrived_ms);
        }
        Ok(Some(verdict))
    }

    fn rehearse(&self, input: &Arc<Input>) -> Option<Verdict> {
        let held = self.checker.held();
        if held.len() > REHEARSED_MAX {
            return None;
        }
        let mut copy =
            Checker::new(Arc::clone(self.checker.check()), checks::Kind::default(), Bounds::default());
        for (held, other) in held {
            copy.take(Arc::clone(other), &held.arrival()).ok()?;
        }
        let Some(mut outcome) = copy.take(Arc::clone(input), &arrival(input)).ok()? else {
            return Some(Verdict::default());
        };
        outcome.told.sort_unstable();
        Some(self.verdict(&copy, &outcome, input))
    }

    fn withdraw(&mut self, input: &Arc<Input>) -> Result<(), String> {
        let was_held = self.checker.withdraw(|other| Arc::ptr_eq(other, input));
        if was_held.map_err(|overflow| overflow.to_string())? {
            self.was_judged(input);
        }
        Ok(())
    }

    fn needs(&self) -> Option<u64> {
        self.held.front().map(|(_, offset)| *offset)
    }

    fn ahead(&self) -> u64 {
        self.checker.ahead()
    }

    fn evaluations(&self) -> u64 {
        let ahead = self.ready.iter().filter(|ready| matches!(ready.found, Ok(Some(_)))).count();
        self.checker.evaluations() - ahead as u64
    }

    fn engine(&self) -> &'static str {
        self.checker.engine().name()
    }

    fn bytes(&self) -> usize {
        // The text of an event is not held, and its parts are counted by the checker.
        let input_bytes = size_of::<Input>() + size_of::<(i64, u64)>() + ID_BYTES;
        self.checker.bytes() + self.held.len() * input_bytes
    }
}

/// The finding for a link. Its place is that of the newest event, and of several of one time that of the last to arrive.
fn finding(name: &str, checker: &Checker<Arc<Input>>, link: &Link, brought: &Arc<Input>) -> Option<Finding> {
    let variables: Vec<_> = checker.check().variables().collect();
    let mut bindings = Map::new();
    let mut bound = Vec::new();
    for binding in link.bindings() {
        let (_, input) = checker.event(binding)?;
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
    properties.insert("check".to_owned(), json!(name));
    if !bindings.is_empty() {
        properties.insert("bindings".to_owned(), Value::Object(bindings));
    }
    let depth = bound.iter().map(|(_, _, input)| input.depth).max()?;
    Some(Finding {
        position: newest.event.position,
        time_ms: newest.time_ms,
        properties,
        from,
        depth,
        offset: brought.offset,
        key: None,
        ttl_s: None,
        rule: None,
    })
}

/// An input as it comes to a check.
fn arrival(input: &Input) -> Arrival {
    Arrival { event: Arc::clone(&input.event), time_ms: Some(input.time_ms), arrival_ms: input.arrived_ms }
}

/// The events that a link binds.
fn bound(checker: &Checker<Arc<Input>>, link: &Link) -> Vec<(Arc<str>, Arc<Input>)> {
    let variables: Vec<_> = checker.check().variables().collect();
    let bound = link.bindings().iter().filter_map(|binding| {
        let (_, input) = checker.event(binding)?;
        Some(((*variables.get(binding.variable)?).into(), Arc::clone(input)))
    });
    bound.collect()
}
