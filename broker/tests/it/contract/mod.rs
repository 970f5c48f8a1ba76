//! The broker is what `clients/contract` says that it is: its documents are the broker's own, and its vectors hold against a
//! started one.

mod conditions;
mod conversation;
mod documents;
mod frames;
mod problems;
mod replay;
mod yaml;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Http;

/// A file of the contract.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/contract").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

fn vectors(name: &str) -> Value {
    let name = format!("vectors/{name}.json");
    serde_json::from_str(&read(&name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// As the contract compares: 1 is 1.0.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(elements) => elements.iter().map(by_value).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), by_value(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Publishes an event, and waits until it is dealt out: in the queue of an engine an alarm would overtake it.
async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    // Each engine answers this behind what was in its queue.
    http.get("/v1/clients").await.expect(200);
}
