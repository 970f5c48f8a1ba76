//! The types read and write frames as the contract says.

use std::fs;

use serde_json::{Value, json};
use wire::{ClientFrame, ServerFrame};

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../contract/vectors/frames.json");
    serde_json::from_str(&fs::read_to_string(path).expect("vectors")).expect("JSON")
}

/// As JSON is compared in the contract: 1 is 1.0. A member that is null counts as absent.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(elements) => elements.iter().map(by_value).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), by_value(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn client_frames_are_written_as_the_contract_says() {
    for vector in vectors()["client"].as_array().expect("an array") {
        let frame: ClientFrame = serde_json::from_value(vector["frame"].clone())
            .unwrap_or_else(|fault| panic!("{vector}: {fault}"));
        let written = serde_json::to_value(&frame).expect("JSON");
        assert_eq!(by_value(&written), by_value(&vector["frame"]), "{}", vector["name"]);
    }
}

#[test]
fn server_frames_are_read_as_the_contract_says() {
    for vector in vectors()["server"].as_array().expect("an array") {
        let text = vector["text"].as_str().expect("a text");
        let frame = serde_json::from_str::<ServerFrame>(text);
        if vector["newer"] == true {
            assert!(frame.is_err(), "{}: is it newer?", vector["name"]);
            continue;
        }
        let mut read =
            serde_json::to_value(frame.unwrap_or_else(|fault| panic!("{vector}: {fault}"))).expect("JSON");
        let kind = read.as_object_mut().and_then(|members| members.remove("op")).expect("an op");
        read["kind"] = kind;
        assert_eq!(by_value(&read), by_value(&vector["expect"]), "{}", vector["name"]);
    }
}
