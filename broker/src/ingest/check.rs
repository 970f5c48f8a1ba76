//! Documents of checks.

use checks::{Clock, Context, Document, FOR_S_MAX, Formula, presets};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::{Fault, OnViolation};

use super::fields::{self, SECONDS, choice, fault, filled_object, number, word};
use super::json::{self, Members};
use super::near;
use super::subscription::{SubscriptionReader, below, quoted};
use crate::model::error::{ApiError, quoted as excerpt};

/// How deep a formula may nest; the rest of one that is deeper is not read.
const NESTING_MAX: usize = 32;

const ON_VIOLATION: [(&str, OnViolation); 3] =
    [("tell", OnViolation::Tell), ("mark", OnViolation::Mark), ("drop", OnViolation::Drop)];

const METRES: &str = "a number of metres, 0 or more";

/// A check that was read.
pub(crate) struct ReadCheck {
    pub(crate) document: Document,
    /// The filters of the events that come into its sets, as a subscription has them.
    pub(crate) filters: Vec<String>,
    pub(crate) on_violation: OnViolation,
    /// Its normalised form.
    pub(crate) text: String,
}

/// Reads a check.
///
/// # Errors
/// [`ApiError::Invalid`] with every fault that was found, and [`ApiError::Malformed`].
pub(crate) fn read(reader: &SubscriptionReader, text: &str) -> Result<ReadCheck, ApiError> {
    let mut members = Members::parse(text)?;
    let mut faults = Vec::new();
    // What the broker says of a check beside it; so that what was answered can be sent back.
    members.take("name");
    members.take("activity");
    let clock = fields::clock(&mut members, &mut faults);
    let on_violation = choice(&mut members, "on_violation", ON_VIOLATION, &mut faults);
    let mut sets = Sets::default();
    let formula = if members.get("preset").is_some() {
        preset(reader, &mut members, clock, &mut sets, &mut faults)
    } else {
        sets.read(reader, &mut members, &mut faults)?;
        match members.take("formula") {
            Some(text) => formula(text, "/formula", 0, &mut faults),
            None => fault(&mut faults, "/formula", "must be there: what has to hold, or `preset`"),
        }
    };
    members.refuse_rest("", &near::CHECK, 0, &mut faults);
    let (Some(formula), true) = (formula, faults.is_empty()) else { return Err(ApiError::Invalid(faults)) };
    let Sets { contexts, documents, filters } = sets;
    let text = format!(
        r#"{{"contexts":{{{}}},"formula":{},"clock":{},"on_violation":{}}}"#,
        documents.join(","),
        written(&formula),
        quoted(fields::name_of(clock)),
        serde_json::to_string(&on_violation).unwrap_or_default(),
    );
    let document = Document { contexts, formula, clock };
    Ok(ReadCheck { document, filters, on_violation, text })
}

/// The context sets, each as it is evaluated, as it is shown, and as a filter.
#[derive(Default)]
struct Sets {
    contexts: Vec<Context>,
    documents: Vec<String>,
    filters: Vec<String>,
}

impl Sets {
    fn read(
        &mut self,
        reader: &SubscriptionReader,
        members: &mut Members<'_>,
        faults: &mut Vec<Fault>,
    ) -> Result<(), ApiError> {
        const EXPECTED: &str = "an object of sets of events, such as {\"recent\": {\"for_s\": 60}}";
        let Some(sets) = filled_object(members, "contexts", EXPECTED, faults)? else { return Ok(()) };
        for (name, text) in sets.rest() {
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
        let pointer = json::pointer("/contexts", name);
        let mut members = match Members::parse(text) {
            Ok(members) => members,
            Err(refusal) => return below(&pointer, refusal, faults),
        };
        let for_s = number(&mut members, "for_s", SECONDS, &pointer, faults);
        // What is left is a filter, whose faults stand where they are in the set.
        let Some((filter, document)) = reader.context(&members.to_text(), &pointer, faults)? else {
            return Ok(());
        };
        let Some(for_s) = for_s else { return Ok(()) };
        let condition = filter.condition.normal().to_string();
        self.push(
            Context { name: name.to_owned(), condition: Some(condition), area: Some(filter.area), for_s },
            document,
        );
        Ok(())
    }

    /// Adds a set, whose filter is a document.
    fn push(&mut self, context: Context, filter: String) {
        let separator = if filter == "{}" { "" } else { "," };
        let shown =
            format!(r#"{}{separator}"for_s":{}}}"#, &filter[..filter.len() - 1], json!(context.for_s));
        self.documents.push(format!("{}:{shown}", quoted(&context.name)));
        self.filters.push(filter);
        self.contexts.push(context);
    }
}

/// Reads a formula.
fn formula(text: &str, pointer: &str, nesting: usize, faults: &mut Vec<Fault>) -> Option<Formula> {
    if text.starts_with('"') {
        return match json::read_text(text) {
            Ok(text) => Some(Formula::leaf(text)),
            Err(error) => fault(faults, pointer, &json::reason(&error)),
        };
    }
    if nesting >= NESTING_MAX {
        return fault(faults, pointer, &format!("formulas nest at most {NESTING_MAX} deep"));
    }
    let mut members = match Members::parse(text) {
        Ok(members) => members,
        Err(refusal) if text.starts_with('{') => {
            // The syntax was read before, so that there are faults alone.
            below(pointer, refusal, faults).ok();
            return None;
        }
        Err(_) => {
            return fault(
                faults,
                pointer,
                "must be a condition over the variables, or an object with forall, exists, and, or, implies or not",
            );
        }
    };
    let before = faults.len();
    let read = if members.get("forall").is_some() || members.get("exists").is_some() {
        quantified(&mut members, pointer, nesting, faults)
    } else if let Some(text) = members.take("and") {
        parts(text, &format!("{pointer}/and"), nesting, faults).map(Formula::And)
    } else if let Some(text) = members.take("or") {
        parts(text, &format!("{pointer}/or"), nesting, faults).map(Formula::Or)
    } else if let Some(text) = members.take("implies") {
        let pointer = format!("{pointer}/implies");
        let two = parts(text, &pointer, nesting, faults)?;
        match <[Formula; 2]>::try_from(two) {
            Ok([premise, conclusion]) => Some(Formula::implies(premise, conclusion)),
            Err(_) => fault(
                faults,
                &pointer,
                "must be an array of two formulas: where the first holds, the second does",
            ),
        }
    } else if let Some(text) = members.take("not") {
        formula(text, &format!("{pointer}/not"), nesting + 1, faults).map(Formula::negated)
    } else {
        fault(faults, pointer, "must have one of forall, exists, and, or, implies and not")
    };
    members.refuse_rest(pointer, &near::FORMULA, before, faults);
    read
}

fn parts(text: &str, pointer: &str, nesting: usize, faults: &mut Vec<Fault>) -> Option<Vec<Formula>> {
    let texts = json::read::<Vec<&RawValue>>(text, pointer, "an array of formulas");
    let texts = texts.map_err(|found| faults.push(found)).ok()?;
    let read = texts
        .iter()
        .enumerate()
        .map(|(idx, text)| formula(text.get(), &format!("{pointer}/{idx}"), nesting + 1, faults));
    // All are read, so that all faults are told.
    read.collect::<Vec<_>>().into_iter().collect()
}

fn quantified(
    members: &mut Members<'_>,
    pointer: &str,
    nesting: usize,
    faults: &mut Vec<Fault>,
) -> Option<Formula> {
    let quantifier = if members.get("forall").is_some() { "forall" } else { "exists" };
    let variable = word(members, quantifier, "the name of a variable", pointer, faults);
    let set = word(members, "in", "the name of a set of `contexts`", pointer, faults);
    let that = match members.take("that") {
        Some(text) => formula(text, &format!("{pointer}/that"), nesting + 1, faults),
        None => fault(faults, &format!("{pointer}/that"), "must be a formula"),
    };
    let (variable, set, that) = (variable?, set?, that?);
    Some(match quantifier {
        "forall" => Formula::forall(&variable, &set, that),
        _ => Formula::exists(&variable, &set, that),
    })
}

/// Takes the members of a preset, and makes its sets and its formula.
fn preset(
    reader: &SubscriptionReader,
    members: &mut Members<'_>,
    clock: Clock,
    sets: &mut Sets,
    faults: &mut Vec<Fault>,
) -> Option<Formula> {
    let kind = word(members, "preset", "the name of a preset", "", faults)?;
    for name in ["contexts", "formula"] {
        if members.take(name).is_some() {
            fault::<()>(faults, &json::pointer("", name), "a preset stands in its place");
        }
    }
    let object = |members: &mut Members<'_>, faults: &mut Vec<Fault>| {
        attribute(members, "object", "the attribute that names an object, such as \"taxi_id\"", faults)
    };
    let document = match &*kind {
        "speed" => {
            let object = object(members, faults);
            let speed =
                number(members, "max_m_per_s", "a number of metres per second, 0 or more", "", faults);
            presets::speed(&object?, speed?)
        }
        "accuracy" => {
            let property =
                attribute(members, "property", "the attribute that says how accurate a place is", faults);
            let metres = number(members, "max_m", METRES, "", faults);
            presets::accuracy(&property?, metres?, clock)
        }
        "frozen" => {
            let object = object(members, faults);
            // Its set holds events for twice as long.
            let seconds = seconds(members, FOR_S_MAX / 2.0, faults);
            presets::frozen(&object?, seconds?)
        }
        "duplicate" => {
            let object = object(members, faults);
            let metres = number(members, "within_m", METRES, "", faults);
            let seconds = seconds(members, FOR_S_MAX, faults);
            presets::duplicate(&object?, metres?, seconds?)
        }
        "outside" => presets::outside(&polygon(reader, members, faults)?, clock),
        other => {
            let detail =
                format!("must be speed, accuracy, frozen, outside or duplicate, found {:?}", excerpt(other));
            return fault(faults, "/preset", &detail);
        }
    };
    let Document { contexts, formula, clock: _ } = document;
    for context in contexts {
        sets.push(context, "{}".to_owned());
    }
    Some(formula)
}

/// Takes the name of an attribute.
fn attribute(
    members: &mut Members<'_>,
    name: &str,
    expected: &str,
    faults: &mut Vec<Fault>,
) -> Option<String> {
    let found = word(members, name, expected, "", faults)?;
    if found.is_empty() {
        return fault(faults, &json::pointer("", name), &format!("must be {expected}"));
    }
    Some(found)
}

/// Takes the seconds of a preset.
fn seconds(members: &mut Members<'_>, max_s: f64, faults: &mut Vec<Fault>) -> Option<f64> {
    let found = number(members, "for_s", SECONDS, "", faults)?;
    if found > max_s {
        return fault(faults, "/for_s", &format!("must be at most {max_s} seconds"));
    }
    Some(found)
}

/// Takes the rings of a GeoJSON Polygon.
fn polygon(
    reader: &SubscriptionReader,
    members: &mut Members<'_>,
    faults: &mut Vec<Fault>,
) -> Option<Vec<Vec<[f64; 2]>>> {
    #[derive(serde::Deserialize)]
    struct Polygon {
        coordinates: Vec<Vec<Vec<f64>>>,
    }
    const EXPECTED: &str = "a GeoJSON Polygon: {\"type\": \"Polygon\", \"coordinates\": [[[lon, lat], ..]]}";
    let Some(text) = members.take("polygon") else {
        return fault(faults, "/polygon", &format!("must be {EXPECTED}"));
    };
    if let Err(found) = reader.polygon(text, "/polygon") {
        faults.push(found);
        return None;
    }
    // A multipolygon is not one of these.
    let Polygon { coordinates } =
        json::read(text, "/polygon", EXPECTED).map_err(|found| faults.push(found)).ok()?;
    // An altitude counts for nothing.
    let ring = |ring: Vec<Vec<f64>>| ring.iter().filter_map(|place| place.first_chunk().copied()).collect();
    Some(coordinates.into_iter().map(ring).collect())
}

/// A formula as JSON.
fn written(formula: &Formula) -> Value {
    let all = |parts: &[Formula]| parts.iter().map(written).collect::<Vec<_>>();
    match formula {
        Formula::Leaf(text) => json!(text),
        Formula::Forall(inner) => {
            json!({"forall": inner.variable, "in": inner.set, "that": written(&inner.that)})
        }
        Formula::Exists(inner) => {
            json!({"exists": inner.variable, "in": inner.set, "that": written(&inner.that)})
        }
        Formula::And(parts) => json!({"and": all(parts)}),
        Formula::Or(parts) => json!({"or": all(parts)}),
        Formula::Implies(premise, conclusion) => json!({"implies": [written(premise), written(conclusion)]}),
        Formula::Not(inner) => json!({"not": written(inner)}),
    }
}
