//! `openapi.json` and the schemas of `asyncapi.yaml`: what the broker says of itself, written down.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{list, path, read, text, yaml};
use crate::harness::Serve;

/// Where the generated part of `asyncapi.yaml` begins.
const MARK: &str = "\n  schemas:";

/// Holds a file against what it has to be, or writes it where that is asked for.
#[track_caller]
fn golden(name: &str, expected: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path(name), expected).expect("it is written");
        return;
    }
    let found = read(name);
    if found != expected {
        let mut lines = found.lines().zip(expected.lines()).zip(1..);
        let first = lines.find(|((found, expected), _)| found != expected);
        panic!("{name} is not up to date (UPDATE_GOLDEN=1 writes it anew): {first:?}");
    }
}

async fn document() -> Value {
    let program = Serve::new().start().await;
    let document = program.http().get("/openapi.json").await.expect(200).json();
    program.finish().await;
    document
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documents_are_the_brokers_own() {
    let document = document().await;
    golden("openapi.json", &format!("{document:#}\n"));

    let written = read("asyncapi.yaml");
    let (by_hand, _) = written.split_once(MARK).expect("the mark");
    let mut asyncapi = format!("{by_hand}{MARK}\n");
    for (name, schema) in frame_schemas(&document) {
        yaml::push_member(&mut asyncapi, 4, &name, &schema);
    }
    golden("asyncapi.yaml", &asyncapi);

    let version = format!("\n  version: {}\n", env!("CARGO_PKG_VERSION"));
    assert!(by_hand.contains(&version), "asyncapi.yaml is of another version");
}

/// A schema for each frame, by its `op`, and all that they refer to.
fn frame_schemas(document: &Value) -> BTreeMap<String, Value> {
    let all = &document["components"]["schemas"];
    let frames = ["ClientFrame", "ServerFrame"].into_iter().flat_map(|name| list(&all[name]["oneOf"]));
    let mut schemas: BTreeMap<_, _> = frames.map(|frame| (frame_name(frame), frame.clone())).collect();
    schemas.insert("Problem".to_owned(), all["Problem"].clone());
    let mut wanted: Vec<String> = schemas.values().flat_map(references).collect();
    while let Some(name) = wanted.pop() {
        if !schemas.contains_key(&name) {
            assert!(all[&name].is_object(), "there is no schema {name}");
            wanted.extend(references(&all[&name]));
            schemas.insert(name.clone(), all[&name].clone());
        }
    }
    schemas.values_mut().for_each(as_json_schema);
    schemas
}

/// `EventFrame` of the frame with the op `event`.
fn frame_name(frame: &Value) -> String {
    // One that holds a whole document is put together from parts.
    let parts = frame["allOf"].as_array().map_or(std::slice::from_ref(frame), Vec::as_slice);
    let mut ops = parts.iter().map(|part| &part["properties"]["op"]["enum"][0]).filter(|op| op.is_string());
    let op = text(ops.next().unwrap_or_else(|| panic!("no op: {frame}")));
    format!("{}{}Frame", op[..1].to_uppercase(), &op[1..])
}

/// The schemas that one names.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").map(|target| {
                let name = text(target).strip_prefix("#/components/schemas/");
                name.unwrap_or_else(|| panic!("it leads elsewhere: {target}")).to_owned()
            });
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(elements) => elements.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// `example` is a word of OpenAPI; JSON Schema has `examples`.
fn as_json_schema(schema: &mut Value) {
    if let Some(example) = schema.as_object_mut().and_then(|members| members.remove("example")) {
        schema["examples"] = Value::Array(vec![example]);
    }
}
