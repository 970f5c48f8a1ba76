//! Documents of rule sets.

use std::sync::Arc;

use checks::{Clock, FOR_S_MAX};
use matcher::event::Symbol;
use matcher::geo::World;
use matcher::subscription::Filter;
use rules::Program;
use serde_json::{Map, Value, json};
use wire::Fault;

use super::attributes::{self, Bounds};
use super::fields::{self, SECONDS, fault, filled_object, number, object};
use super::json::{self, Members};
use super::near;
use super::subscription::{SubscriptionReader, below, quoted};
use crate::config::Limits;
use crate::model::error::ApiError;

/// Kinds of facts, and of constraints that are published, at most.
const NAMES_MAX: usize = 64;

/// Arguments of a fact, at most: as many as a constraint has.
const ARGUMENTS_MAX: usize = rules::ARGUMENTS_MAX;

/// A rule set that was read.
pub(crate) struct ReadRules {
    pub(crate) facts: Vec<FactRule>,
    pub(crate) program: Arc<Program>,
    pub(crate) clock: Clock,
    pub(crate) publications: Vec<Publication>,
    /// The filters of the events that become facts, as a subscription has them.
    pub(crate) filters: Vec<String>,
    /// Its normalised form.
    pub(crate) text: String,
}

/// Which events become a fact, and what it says.
pub(crate) struct FactRule {
    pub(crate) name: String,
    pub(crate) filter: Filter,
    pub(crate) arguments: Vec<Argument>,
    /// How long it stays, in milliseconds; for ever without.
    pub(crate) for_ms: Option<i64>,
}

/// An argument of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The value of an attribute.
    Attribute(Symbol),
    /// The id of the event.
    Id,
    /// Its longitude; on a plane its x.
    Lon,
    /// Its latitude; on a plane its y.
    Lat,
    /// Its time, in Unix seconds.
    Time,
    /// Its key; without one its id, which names its object then.
    Key,
}

/// How constraints of a name are published.
pub(crate) struct Publication {
    pub(crate) name: String,
    /// Which arguments are longitude and latitude; without them it is where the event was that brought it.
    pub(crate) at: Option<[usize; 2]>,
    /// The attributes. In texts, `{0}` stands for the first argument.
    pub(crate) properties: Map<String, Value>,
    pub(crate) key: Option<String>,
    pub(crate) ttl_s: Option<f64>,
}

/// Metres between two places; what is none is infinitely far.
pub(crate) fn distance(world: World) -> fn([f64; 2], [f64; 2]) -> f64 {
    fn between(world: World, from: [f64; 2], to: [f64; 2]) -> f64 {
        match (world.position(&from), world.position(&to)) {
            (Ok(from), Ok(to)) => world.distance_m(&from, &to),
            _ => f64::INFINITY,
        }
    }
    match world {
        World::Geodetic => |from, to| between(World::Geodetic, from, to),
        World::Planar => |from, to| between(World::Planar, from, to),
    }
}

/// Reads a rule set.
///
/// # Errors
/// [`ApiError::Invalid`] with every fault that was found, and [`ApiError::Malformed`].
pub(crate) fn read(reader: &SubscriptionReader, text: &str) -> Result<ReadRules, ApiError> {
    let mut members = Members::parse(text)?;
    let mut faults = Vec::new();
    // What the broker says of a rule set beside it; so that what was answered can be sent back.
    members.take("name");
    members.take("activity");
    let clock = fields::clock(&mut members, &mut faults);
    let mut facts = Facts::default();
    facts.read(reader, &mut members, &mut faults)?;
    let publications = publications(reader.limits(), &mut members, &mut faults)?;
    let program_text = match members.take("program") {
        Some(text) => {
            json::read::<String>(text, "/program", "a text of rules").map_err(|found| faults.push(found)).ok()
        }
        None => fault(
            &mut faults,
            "/program",
            "must be there: the rules, such as \"report(X) \\\\ report(X) <=> true.\"",
        ),
    };
    members.refuse_rest("", &near::RULES, 0, &mut faults);
    let program =
        program_text.as_ref().and_then(|text| program(text, &facts.rules, &publications, &mut faults));
    let (Some(program), Some(program_text), true) = (program, program_text, faults.is_empty()) else {
        return Err(ApiError::Invalid(faults));
    };
    let shown: Map<_, _> = publications.iter().map(|one| (one.name.clone(), one.shown())).collect();
    let text = format!(
        r#"{{"facts":{{{}}},"program":{},"clock":{},"publish":{}}}"#,
        facts.documents.join(","),
        quoted(&program_text),
        quoted(fields::name_of(clock)),
        Value::Object(shown),
    );
    let Facts { rules: facts, filters, documents: _ } = facts;
    Ok(ReadRules { facts, program, clock, publications, filters, text })
}

/// Compiles the program, in which the names of facts and of what is published are constraints.
fn program(
    text: &str,
    facts: &[FactRule],
    publications: &[Publication],
    faults: &mut Vec<Fault>,
) -> Option<Arc<Program>> {
    let of_facts = facts.iter().map(|fact| (&*fact.name, Some(fact.arguments.len())));
    let published = publications.iter().map(|one| (&*one.name, None));
    let names: Vec<_> = of_facts.chain(published).collect();
    let in_program =
        |found: &rules::Fault| Fault { pointer: "/program".to_owned(), detail: found.to_string() };
    let program = match Program::with_constraints(text, &names) {
        Ok(program) => program,
        Err(found) => {
            faults.extend(found.iter().map(in_program));
            return None;
        }
    };
    // A name that stands in a part with faults would be told as unknown.
    let is_named =
        |fault: &Fault| fault.pointer.starts_with("/facts") || fault.pointer.starts_with("/publish");
    if !faults.iter().any(is_named) {
        faults.extend(program.unknown().iter().map(in_program));
    }
    let arities = |name: &str| {
        program.constraints().filter(|(known, _)| *known == name).map(|(_, arity)| arity).collect::<Vec<_>>()
    };
    for fact in facts {
        let others: Vec<_> =
            arities(&fact.name).into_iter().filter(|arity| *arity != fact.arguments.len()).collect();
        if !others.is_empty() {
            let pointer = format!("{}/args", json::pointer("/facts", &fact.name));
            let detail = format!(
                "has {} arguments, and the program has `{}` with {}",
                fact.arguments.len(),
                fact.name,
                listed(&others)
            );
            fault::<()>(faults, &pointer, &detail);
        }
    }
    for one in publications {
        let pointer = json::pointer("/publish", &one.name);
        match arities(&one.name).into_iter().min() {
            None => drop(fault::<()>(faults, &pointer, "the program has no constraint of this name")),
            Some(arity) => one.each_argument(&pointer, &mut |pointer, index| {
                if index >= arity {
                    let name = &one.name;
                    let detail = format!(
                        "speaks of argument {index}, and `{name}` has {arity}, the first of which is 0"
                    );
                    fault::<()>(faults, pointer, &detail);
                }
            }),
        }
    }
    Some(program)
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ")
}

/// The facts, each as it is made, as it is shown, and as a filter.
#[derive(Default)]
struct Facts {
    rules: Vec<FactRule>,
    documents: Vec<String>,
    filters: Vec<String>,
}

impl Facts {
    fn read(
        &mut self,
        reader: &SubscriptionReader,
        members: &mut Members<'_>,
        faults: &mut Vec<Fault>,
    ) -> Result<(), ApiError> {
        const EXPECTED: &str = "an object of kinds of facts, such as {\"slow\": {\"where\": \"speed < 5\", \"args\": [\"taxi_id\"], \"for_s\": 60}}";
        let kinds = filled_object(members, "facts", EXPECTED, faults)?;
        let Some(kinds) = kinds.filter(|kinds| is_bounded("facts", kinds, faults)) else { return Ok(()) };
        for (name, text) in kinds.rest() {
            self.read_one(reader, name, text, faults)?;
        }
        Ok(())
    }

    fn read_one(
        &mut self,
        reader: &SubscriptionReader,
        name: &str,
        text: &str,
        faults: &mut Vec<Fault>,
    ) -> Result<(), ApiError> {
        let pointer = json::pointer("/facts", name);
        let mut members = match Members::parse(text) {
            Ok(members) => members,
            Err(refusal) => return below(&pointer, refusal, faults),
        };
        let before = faults.len();
        let for_s =
            members.get("for_s").and_then(|_| number(&mut members, "for_s", SECONDS, &pointer, faults));
        if for_s.is_some_and(|for_s| for_s > FOR_S_MAX) {
            fault::<()>(
                faults,
                &format!("{pointer}/for_s"),
                &format!("a fact stays for {FOR_S_MAX} seconds at most, or for ever"),
            );
        }
        let arguments = arguments(&mut members, &format!("{pointer}/args"), faults);
        // What is left is a filter, whose faults stand where they are in the fact.
        let filter = reader.context(&members.to_text(), &pointer, faults)?;
        let (Some((filter, document)), Some(arguments), true) = (filter, arguments, faults.len() == before)
        else {
            return Ok(());
        };
        let shown: Vec<_> = arguments.iter().map(|argument| quoted(argument.text())).collect();
        let shown_for = for_s.map(|for_s| format!(r#","for_s":{}"#, json!(for_s))).unwrap_or_default();
        let separator = if document == "{}" { "" } else { "," };
        let head = &document[..document.len() - 1];
        self.documents.push(format!(
            r#"{}:{head}{separator}"args":[{}]{shown_for}}}"#,
            quoted(name),
            shown.join(",")
        ));
        if !self.filters.contains(&document) {
            self.filters.push(document);
        }
        #[expect(clippy::cast_possible_truncation, reason = "facts stay for a hundred days at most")]
        let for_ms = for_s.map(|for_s| (for_s * 1_000.0).round() as i64);
        self.rules.push(FactRule { name: name.to_owned(), filter, arguments, for_ms });
        Ok(())
    }
}

/// Whether an object that was taken has few enough members.
fn is_bounded(name: &str, found: &Members<'_>, faults: &mut Vec<Fault>) -> bool {
    let is_bounded = found.rest().count() <= NAMES_MAX;
    if !is_bounded {
        fault::<()>(faults, &json::pointer("", name), &format!("has {NAMES_MAX} members at most"));
    }
    is_bounded
}

fn arguments(members: &mut Members<'_>, pointer: &str, faults: &mut Vec<Fault>) -> Option<Vec<Argument>> {
    const EXPECTED: &str = "an array of names of attributes, @id, @lon, @lat, @time and @key";
    let Some(text) = members.take("args") else { return Some(Vec::new()) };
    let names =
        json::read::<Vec<String>>(text, pointer, EXPECTED).map_err(|found| faults.push(found)).ok()?;
    if names.len() > ARGUMENTS_MAX {
        return fault(faults, pointer, &format!("a fact has {ARGUMENTS_MAX} arguments at most"));
    }
    let read = names.iter().enumerate().map(|(index, name)| {
        Argument::of(name).or_else(|| {
            fault(
                faults,
                &format!("{pointer}/{index}"),
                "there are @id, @lon, @lat, @time and @key, and names of attributes",
            )
        })
    });
    // All are read, so that all faults are told.
    read.collect::<Vec<_>>().into_iter().collect()
}

impl Argument {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "@id" => Self::Id,
            "@lon" => Self::Lon,
            "@lat" => Self::Lat,
            "@time" => Self::Time,
            "@key" => Self::Key,
            "" => return None,
            other if other.starts_with('@') => return None,
            attribute => Self::Attribute(Symbol::new(attribute)),
        })
    }

    /// As a document has it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Attribute(name) => name.as_str(),
            Self::Id => "@id",
            Self::Lon => "@lon",
            Self::Lat => "@lat",
            Self::Time => "@time",
            Self::Key => "@key",
        }
    }
}

fn publications(
    limits: &Limits,
    members: &mut Members<'_>,
    faults: &mut Vec<Fault>,
) -> Result<Vec<Publication>, ApiError> {
    const EXPECTED: &str = "an object of what is published, such as {\"jam\": {\"at\": [0, 1], \"properties\": {\"type\": \"jam\"}}}";
    if members.get("publish").is_none() {
        members.take("publish");
        return Ok(Vec::new());
    }
    let names = object(members, "publish", EXPECTED, faults)?;
    let Some(names) = names.filter(|names| is_bounded("publish", names, faults)) else {
        return Ok(Vec::new());
    };
    let mut publications = Vec::new();
    for (name, text) in names.rest() {
        publications.extend(publication(name, text, limits, faults)?);
    }
    Ok(publications)
}

fn publication(
    name: &str,
    text: &str,
    limits: &Limits,
    faults: &mut Vec<Fault>,
) -> Result<Option<Publication>, ApiError> {
    let pointer = json::pointer("/publish", name);
    let mut members = match Members::parse(text) {
        Ok(members) => members,
        Err(refusal) => return below(&pointer, refusal, faults).map(|()| None),
    };
    let before = faults.len();
    let mut take = |member: &str| members.take(member).map(|text| (text, format!("{pointer}/{member}")));
    let at = take("at").and_then(|(text, pointer)| {
        let read = json::read::<[usize; 2]>(
            text,
            &pointer,
            "two numbers of arguments, those of longitude and latitude: [0, 1]",
        );
        read.map_err(|found| faults.push(found)).ok()
    });
    let properties = match take("properties") {
        None => [("type".to_owned(), json!(name))].into_iter().collect(),
        Some((text, place)) => {
            let read = json::read::<Map<String, Value>>(text, &place, "an object of attributes");
            if read.is_ok() {
                // What no event may have would be dropped each time.
                let mut found = Vec::new();
                attributes::flatten(text, &Bounds::of(limits), &mut found);
                let within = |found: Fault| Fault { pointer: format!("{pointer}{}", found.pointer), ..found };
                faults.extend(found.into_iter().map(within));
            }
            read.map_err(|found| faults.push(found)).unwrap_or_default()
        }
    };
    let key = take("key").and_then(|(text, pointer)| {
        let read = json::read::<String>(text, &pointer, "a text, in which {0} stands for the first argument");
        let key = read.map_err(|found| faults.push(found)).ok()?;
        let (mut bytes, mut has_arguments) = (0, false);
        each_piece(&key, |piece| match piece {
            Piece::Text(text) => bytes += text.len(),
            Piece::Argument(_) => has_arguments = true,
        });
        let max = limits.name_bytes;
        if bytes > max || bytes == 0 && !has_arguments {
            let detail = format!("must be a text of 1 to {max} bytes (limits.name_bytes)");
            return fault(faults, &pointer, &detail);
        }
        Some(key)
    });
    let ttl_s = members.get("ttl_s").and_then(|_| number(&mut members, "ttl_s", SECONDS, &pointer, faults));
    #[expect(clippy::cast_precision_loss, reason = "a time to live is some decades at most")]
    if ttl_s.is_some_and(|ttl_s| ttl_s == 0.0 || ttl_s > limits.ttl_s as f64) {
        let detail = format!("must be more than 0 seconds and at most {} (limits.ttl_s)", limits.ttl_s);
        fault::<()>(faults, &format!("{pointer}/ttl_s"), &detail);
    }
    members.refuse_rest(&pointer, &near::PUBLICATION, before, faults);
    Ok((faults.len() == before).then(|| Publication { name: name.to_owned(), at, properties, key, ttl_s }))
}

impl Publication {
    /// Visits the numbers of arguments that it has, each with its place.
    fn each_argument(&self, parent: &str, visit: &mut impl FnMut(&str, usize)) {
        for (place, index) in self.at.iter().flatten().enumerate() {
            visit(&format!("{parent}/at/{place}"), *index);
        }
        if let Some(key) = &self.key {
            each_argument_of(key, &format!("{parent}/key"), visit);
        }
        for (name, value) in &self.properties {
            each_argument_within(value, &json::pointer(&format!("{parent}/properties"), name), visit);
        }
    }

    fn shown(&self) -> Value {
        let mut shown = Map::new();
        if let Some(at) = self.at {
            shown.insert("at".to_owned(), json!(at));
        }
        shown.insert("properties".to_owned(), Value::Object(self.properties.clone()));
        if let Some(key) = &self.key {
            shown.insert("key".to_owned(), json!(key));
        }
        if let Some(ttl_s) = self.ttl_s {
            shown.insert("ttl_s".to_owned(), json!(ttl_s));
        }
        Value::Object(shown)
    }
}

/// A part of a text with arguments in it.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// `{0}`, `{1}` ..
    Argument(usize),
}

/// Visits the parts of a text.
pub(crate) fn each_piece<'a>(mut text: &'a str, mut visit: impl FnMut(Piece<'a>)) {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let inside = &text[open + 1..];
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        match inside[..digits].parse() {
            Ok(index) if inside[digits..].starts_with('}') => {
                visit(Piece::Text(&text[..open]));
                visit(Piece::Argument(index));
                (text, from) = (&inside[digits + 1..], 0);
            }
            _ => from = open + 1,
        }
    }
    visit(Piece::Text(text));
}

fn each_argument_of(text: &str, pointer: &str, visit: &mut impl FnMut(&str, usize)) {
    each_piece(text, |piece| {
        if let Piece::Argument(index) = piece {
            visit(pointer, index);
        }
    });
}

fn each_argument_within(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, usize)) {
    match value {
        Value::String(text) => each_argument_of(text, pointer, visit),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                each_argument_within(value, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                each_argument_within(value, &json::pointer(pointer, name), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
