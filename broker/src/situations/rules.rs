//! Rule sets as situations: events become facts, and what the rules make of them becomes findings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use checks::{AHEAD_MS_MAX, Clock};
use matcher::condition::expression::Truth;
use matcher::event::{Scalar, Value as Attribute};
use matcher::geo::World;
use rules::{Bounds, Error, Fact, Kind, Session, Setting, Taken, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{Decided, Finding, Host, Input, Logic, Parts, Plan};
use crate::config;
use crate::ingest::rules::{
    Argument, FactRule, Piece, Publication, ReadRules, distance, each_piece, read as read_document,
};
use crate::model::error::ApiError;

/// Inputs after which what it knows is kept, at least: as many as there are constraints, so that an input costs the same for that
/// however many there are.
const KEEP_EVERY: u64 = 1_024;

/// Events beyond those that constraints follow from, and facts beyond those that are there, that are known.
const SPARE_MAX: usize = 4_096;

/// Reads a document.
pub(super) fn read(host: &Host, name: &str, text: &str) -> Result<Plan, ApiError> {
    let mut read = read_document(&host.subscriptions, text)?;
    let (document, filters) = (std::mem::take(&mut read.text), std::mem::take(&mut read.filters));
    let config::Rules { steps, looks, words, constraints } = host.config.rules;
    let bounds = Bounds { steps, looks, words, constraints };
    let world = World::from(host.config.server.world);
    let rules = Arc::new(Rules {
        name: name.to_owned(),
        setting: Setting { bounds, distance: distance(world), ..Setting::default() },
        world,
        // What waits must not be lost before it is known.
        keep_within: host.config.situations.kept_events as u64 / 4,
        read,
    });
    let begin = move || Box::new(Ruling::new(&rules)) as Box<dyn Logic>;
    Ok(Plan {
        document,
        filters,
        is_about_objects: false,
        comparisons: 0.0,
        begin: Box::new(begin),
        gate: None,
    })
}

/// A rule set, as it was read.
struct Rules {
    name: String,
    setting: Setting,
    world: World,
    /// Inputs within which what it knows is kept.
    keep_within: u64,
    read: ReadRules,
}

/// A rule set at work.
struct Ruling {
    rules: Arc<Rules>,
    /// The kind of each fact, and the constraints that are published.
    facts: Vec<Kind>,
    published: Vec<(usize, Kind)>,
    session: Session,
    known: Known,
    /// Facts that were added.
    evaluations: u64,
    /// Inputs that are dated too far ahead.
    ahead: u64,
    /// Inputs since what it knows was kept.
    inputs: u64,
    /// What another run decided of the input to come.
    decided: Decided,
    /// The facts of the last input that were undone for a bound.
    left_out: Parts,
    problem: Option<String>,
}

/// What it knows beside its constraints.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    /// The newest time that it has seen.
    now_ms: Option<i64>,
    /// The last millisecond of each fact.
    due: BTreeSet<(i64, Fact)>,
    /// Events that constraints may follow from, by offset.
    events: BTreeMap<u64, Source>,
}

/// An event that constraints follow from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Source {
    id: Arc<str>,
    time_ms: i64,
    depth: u32,
}

impl Ruling {
    fn new(rules: &Arc<Rules>) -> Self {
        let session = Session::new(&rules.read.program, rules.setting.clone());
        Self::of(rules, session, Known::default())
    }

    fn of(rules: &Arc<Rules>, session: Session, known: Known) -> Self {
        let ReadRules { facts, publications, program, .. } = &rules.read;
        let kind = |fact: &FactRule| {
            session.kind(&fact.name, fact.arguments.len()).expect("the names of facts are constraints")
        };
        let facts = facts.iter().map(kind).collect();
        let published = publications.iter().enumerate().flat_map(|(index, one)| {
            let kinds = program.constraints().filter(|(name, _)| **name == one.name);
            kinds.filter_map(|(name, arity)| Some((index, session.kind(name, arity)?))).collect::<Vec<_>>()
        });
        let published = published.collect();
        Self {
            rules: Arc::clone(rules),
            facts,
            published,
            session,
            known,
            evaluations: 0,
            ahead: 0,
            inputs: 0,
            decided: Decided::Nothing,
            left_out: 0,
            problem: None,
        }
    }

    /// Whether an event becomes a fact, wherever it stands in time.
    fn takes(&self, rule: &FactRule, input: &Input) -> bool {
        rule.filter.condition.expression().truth(&input.event) == Truth::True
            && rule.filter.area.holds(self.rules.world, None, &input.event.position)
    }

    /// Takes facts out whose time is over.
    fn expire(&mut self, now_ms: i64) {
        while let Some(&(due_ms, fact)) = self.known.due.first()
            && due_ms < now_ms
        {
            self.known.due.pop_first();
            self.session.remove(fact);
        }
    }

    /// Adds a fact, and applies rules until none applies.
    fn add(
        &mut self,
        index: usize,
        arguments: &[Value],
        input: &Input,
        at_ms: i64,
        findings: &mut Vec<Finding>,
    ) {
        self.evaluations += 1;
        let rules = Arc::clone(&self.rules);
        let rule = &rules.read.facts[index];
        match self.session.add(self.facts[index], arguments, input.offset) {
            Ok(Some(fact)) => {
                if let Some(for_ms) = rule.for_ms {
                    self.known.due.insert((at_ms.saturating_add(for_ms), fact));
                }
                self.publish(input, findings);
            }
            Ok(None) => findings.push(self.failed(rule, input)),
            Err(error) => {
                let setting = match setting_of(&error) {
                    Some(setting) => {
                        self.left_out |= 1 << index;
                        format!(" ({setting})")
                    }
                    None => String::new(),
                };
                self.problem = Some(format!(
                    "the fact {} of event {} was undone: {error}{setting}",
                    rule.name, &*input.id
                ));
            }
        }
    }

    /// Takes out what is to be published.
    fn publish(&mut self, input: &Input, findings: &mut Vec<Finding>) {
        for (index, kind) in &self.published {
            for taken in self.session.take(*kind) {
                match self.finding(&self.rules.read.publications[*index], &taken, input) {
                    Ok(finding) => findings.push(finding),
                    Err(why) => self.problem = Some(why),
                }
            }
        }
    }

    /// The event that a constraint becomes.
    fn finding(&self, publication: &Publication, taken: &Taken, input: &Input) -> Result<Finding, String> {
        let Publication { name, at, properties, key, ttl_s } = publication;
        let is_finite = |value: &Value| !matches!(value, Value::Float(number) if !number.is_finite());
        if !taken.arguments.iter().all(is_finite) {
            return Err(format!("a {name} has a number that is not finite, which no event can have"));
        }
        let position = match at {
            None => input.event.position,
            Some([lon, lat]) => {
                let place = [number(&taken.arguments[*lon]), number(&taken.arguments[*lat])];
                let place = if let [Some(lon), Some(lat)] = place {
                    self.rules.world.position(&[lon, lat]).ok()
                } else {
                    None
                };
                place.ok_or_else(|| {
                    format!("a {name} is nowhere: its arguments {lon} and {lat} are no place")
                })?
            }
        };
        let filled = properties.iter().map(|(name, value)| (name.clone(), filled(value, &taken.arguments)));
        let sources = || taken.origins.iter().filter_map(|offset| self.known.events.get(offset));
        Ok(Finding {
            position,
            time_ms: sources().map(|source| source.time_ms).max().unwrap_or(input.time_ms),
            properties: filled.collect(),
            from: sources().map(|source| Arc::clone(&source.id)).collect(),
            depth: sources().map(|source| source.depth).max().unwrap_or(input.depth),
            offset: input.offset,
            key: key.as_ref().map(|key| written(key, &taken.arguments)),
            ttl_s: *ttl_s,
            rule: taken.rule.clone(),
        })
    }

    /// The event that tells that a fact did not hold.
    fn failed(&self, rule: &FactRule, input: &Input) -> Finding {
        let properties =
            [("type", json!("failed")), ("rules", json!(self.rules.name)), ("fact", json!(rule.name))];
        Finding {
            position: input.event.position,
            time_ms: input.time_ms,
            properties: properties.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
            from: vec![Arc::clone(&input.id)],
            depth: input.depth,
            offset: input.offset,
            key: None,
            ttl_s: None,
            rule: None,
        }
    }

    /// Forgets events that no constraint follows from, and the time of facts that are gone.
    fn forget(&mut self) {
        let used: BTreeSet<_> = self.session.origins().collect();
        self.known.events.retain(|offset, _| used.contains(offset));
        self.known.due.retain(|(_, fact)| self.session.has(*fact));
    }
}

impl Logic for Ruling {
    fn take(&mut self, input: Arc<Input>, findings: &mut Vec<Finding>) -> Result<(), String> {
        self.inputs += 1;
        let rules = Arc::clone(&self.rules);
        let at_ms = match rules.read.clock {
            Clock::Arrival => input.arrived_ms,
            Clock::Event => input.time_ms,
        };
        if at_ms > input.arrived_ms.saturating_add(AHEAD_MS_MAX) {
            self.ahead += 1;
            return Ok(());
        }
        let now_ms = self.known.now_ms.map_or(at_ms, |now_ms| now_ms.max(at_ms));
        let is_recent =
            |rule: &FactRule| rule.for_ms.is_none_or(|for_ms| at_ms.saturating_add(for_ms) >= now_ms);
        let taking: Vec<_> = (0..rules.read.facts.len())
            .filter(|index| {
                self.takes(&rules.read.facts[*index], &input) && is_recent(&rules.read.facts[*index])
            })
            .collect();
        if taking.is_empty() {
            return Ok(());
        }
        self.known.now_ms = Some(now_ms);
        self.expire(now_ms);
        let source = Source { id: Arc::clone(&input.id), time_ms: input.time_ms, depth: input.depth };
        self.known.events.insert(input.offset, source);
        let without = self.decided.without();
        for index in taking.into_iter().filter(|index| without & (1 << index) == 0) {
            let rule = &rules.read.facts[index];
            match rule.arguments.iter().map(|argument| value(argument, &input)).collect::<Result<Vec<_>, _>>()
            {
                Ok(arguments) => self.add(index, &arguments, &input, at_ms, findings),
                Err(missing) => {
                    self.problem = Some(format!(
                        "event {} has no {missing}, so that it became no fact {}",
                        &*input.id, rule.name
                    ));
                }
            }
        }
        let count = self.session.count();
        if self.known.events.len() > 2 * count + SPARE_MAX || self.known.due.len() > 2 * count + SPARE_MAX {
            self.forget();
        }
        Ok(())
    }

    fn decided(&mut self, decided: Decided) {
        self.decided = decided;
        let is_open = decided == Decided::Nothing;
        self.session.bound(if is_open { self.rules.setting.bounds } else { Bounds::NONE });
    }

    fn left_out(&mut self) -> Parts {
        std::mem::take(&mut self.left_out)
    }

    fn needs(&self) -> Option<u64> {
        // Until what it knows is kept.
        Some(0)
    }

    fn state(&mut self, is_wanted: bool) -> Option<Box<[u8]>> {
        let every = KEEP_EVERY.max(self.session.count() as u64).min(self.rules.keep_within.max(1));
        if self.inputs < every && !is_wanted {
            return None;
        }
        self.inputs = 0;
        self.forget();
        let session = self.session.snapshot();
        postcard::to_stdvec(&(&self.known, session)).ok().map(Vec::into_boxed_slice)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (known, session): (Known, Vec<u8>) =
            postcard::from_bytes(state).map_err(|error| error.to_string())?;
        let session = Session::restore(&self.rules.read.program, self.rules.setting.clone(), &session);
        *self = Self::of(&Arc::clone(&self.rules), session.map_err(|error| error.to_string())?, known);
        Ok(())
    }

    fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn stored(&self) -> Option<u64> {
        Some(self.session.count() as u64)
    }

    fn ahead(&self) -> u64 {
        self.ahead
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn engine(&self) -> &'static str {
        "cpu"
    }

    fn bytes(&self) -> usize {
        let Known { due, events, .. } = &self.known;
        self.session.bytes()
            + self.session.text_bytes()
            + due.len() * size_of::<(i64, Fact)>()
            + events.len() * (size_of::<(u64, Source)>() + ID_BYTES)
    }
}

/// Bytes of an event's id, by estimate.
const ID_BYTES: usize = 32;

/// The setting that a bound comes from.
fn setting_of(error: &Error) -> Option<&'static str> {
    match error {
        Error::Steps(_) => Some("rules.steps"),
        Error::Looks(_) => Some("rules.looks"),
        Error::Words(_) => Some("rules.words"),
        Error::Constraints(_) => Some("rules.constraints"),
        Error::Unbound(_)
        | Error::Type { .. }
        | Error::Number(_)
        | Error::Undefined(..)
        | Error::Stopped
        | Error::Nesting(_) => None,
    }
}

/// The value of an argument; the error says what the event lacks.
fn value(argument: &Argument, input: &Input) -> Result<Value, String> {
    let position = &input.event.position;
    Ok(match argument {
        Argument::Id => Value::Text(Arc::clone(&input.id)),
        Argument::Key => Value::Text(Arc::clone(input.key.as_ref().unwrap_or(&input.id))),
        Argument::Lon => whole(position.x()),
        Argument::Lat => whole(position.y()),
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 have 42 bits")]
        Argument::Time if input.time_ms % 1_000 != 0 => Value::Float(input.time_ms as f64 / 1e3),
        Argument::Time => Value::Int(input.time_ms / 1_000),
        Argument::Attribute(name) => match input.event.value(name) {
            Some(Attribute::Scalar(scalar)) => scalar_of(scalar),
            Some(Attribute::Array(_)) => return Err(format!("single value of `{}`", name.as_str())),
            None => return Err(format!("`{}`", name.as_str())),
        },
    })
}

fn scalar_of(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Number(number) => whole(*number),
        Scalar::Text(text) => Value::Text(text.as_str().into()),
        Scalar::Bool(value) => Value::Text(if *value { "true" } else { "false" }.into()),
    }
}

/// A number, which is an integer where it is whole and within 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the bounds are powers of two, and within them a whole number is itself"
)]
fn whole(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && (i64::MIN as f64..-(i64::MIN as f64)).contains(&number);
    if is_whole { Value::Int(number as i64) } else { Value::Float(number) }
}

#[expect(clippy::cast_precision_loss, reason = "a coordinate is small")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(_) | Value::Term(_) => None,
    }
}

/// A value with arguments in the place of `{0}`: one that is nothing else is the argument itself.
fn filled(value: &Json, arguments: &[Value]) -> Json {
    match value {
        Json::String(text) => {
            let mut pieces = Vec::new();
            each_piece(text, |piece| pieces.push(piece));
            match &pieces[..] {
                [Piece::Text(""), Piece::Argument(index), Piece::Text("")] => json_of(&arguments[*index]),
                _ => Json::String(written(text, arguments)),
            }
        }
        Json::Array(values) => values.iter().map(|value| filled(value, arguments)).collect(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), filled(value, arguments)))
            .collect::<Map<_, _>>()
            .into(),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Term(text) => json!(text),
    }
}

/// A text with arguments in the place of `{0}`.
fn written(text: &str, arguments: &[Value]) -> String {
    let mut written = String::new();
    each_piece(text, |piece| match piece {
        Piece::Text(text) => written.push_str(text),
        Piece::Argument(index) => match &arguments[index] {
            Value::Text(text) => written.push_str(text),
            Value::Term(text) => written.push_str(text),
            number @ (Value::Int(_) | Value::Float(_)) => written.push_str(&json_of(number).to_string()),
        },
    });
    written
}
