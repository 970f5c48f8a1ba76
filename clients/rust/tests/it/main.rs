//! The client against the contract's vectors, against scripted servers, and against a started broker.

mod addresses;
mod broker;
mod checks;
mod connection;
mod documents;
mod durable;
mod frames;
mod groups;
mod programs;
mod resume;
mod rules;
mod scripted;
mod session;
mod sessionless;

use std::{fs, future::Future, time::Duration};

use serde_json::{Value, json};

/// Long enough for a machine that is busy with other tests, short enough to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What has to happen within a generous deadline.
#[track_caller]
fn within<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, future).await;
        done.unwrap_or_else(|_| panic!("{caller}: waited too long for {what}"))
    }
}

/// What becomes true within a generous deadline.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    within(what, async move {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
}

fn vectors(file: &str) -> Value {
    let path = format!("{}/../contract/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"));
    serde_json::from_str(&text).expect("vectors are JSON")
}

/// As JSON is compared in the contract: 1 is 1.0.
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
