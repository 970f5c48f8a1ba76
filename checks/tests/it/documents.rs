//! Documents of checks from JSON, as far as these tests write them.

use std::sync::Arc;

use checks::{Check, Clock, Context, Document, Formula};
use matcher::World;
use serde_json::Value;

/// The checks of a file: `{"name": document, ..}`.
pub(crate) fn read(world: World, text: &str) -> Vec<(String, Arc<Check>)> {
    let Value::Object(documents) = serde_json::from_str(text).expect("the test's data are JSON") else {
        panic!("the test's data are an object");
    };
    documents
        .iter()
        .map(|(name, value)| {
            let check = Check::new(world, &document(value));
            (name.clone(), Arc::new(check.unwrap_or_else(|error| panic!("{name}: {error}"))))
        })
        .collect()
}

/// A formula from JSON.
#[allow(dead_code, reason = "the example reads whole documents")]
pub(crate) fn formula_of(text: &str) -> Formula {
    formula(&serde_json::from_str(text).expect("the test's data are JSON"))
}

fn document(value: &Value) -> Document {
    let contexts = value["contexts"].as_object().expect("contexts are an object").iter();
    let contexts = contexts.map(|(name, context)| Context {
        name: name.clone(),
        condition: context.get("where").map(text),
        area: None,
        for_s: context["for_s"].as_f64().expect("a number of seconds"),
    });
    let clock = match value.get("clock").map(text).as_deref() {
        None | Some("arrival") => Clock::Arrival,
        Some("event") => Clock::Event,
        Some(other) => panic!("{other} is no clock"),
    };
    Document { contexts: contexts.collect(), formula: formula(&value["formula"]), clock }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn formula(value: &Value) -> Formula {
    if let Value::String(leaf) = value {
        return Formula::leaf(leaf);
    }
    let all = |parts: &Value| parts.as_array().expect("a list").iter().map(formula).collect::<Vec<_>>();
    let inner = || formula(&value["that"]);
    if let Some(variable) = value.get("forall") {
        Formula::forall(&text(variable), &text(&value["in"]), inner())
    } else if let Some(variable) = value.get("exists") {
        Formula::exists(&text(variable), &text(&value["in"]), inner())
    } else if let Some(parts) = value.get("and") {
        Formula::And(all(parts))
    } else if let Some(parts) = value.get("or") {
        Formula::Or(all(parts))
    } else if let Some(parts) = value.get("implies") {
        let [premise, conclusion] = <[Formula; 2]>::try_from(all(parts)).expect("two parts");
        Formula::implies(premise, conclusion)
    } else {
        Formula::negated(formula(value.get("not").expect("a formula")))
    }
}
