//! JSON as YAML that people can read: blocks of objects, and texts as JSON writes them, which YAML 1.2 reads as well.

use serde_json::Value;

/// Appends a member of an object, at an indentation, with all that is in it.
pub(super) fn push_member(yaml: &mut String, indent: usize, name: &str, value: &Value) {
    yaml.push_str(&" ".repeat(indent));
    if is_plain(name) {
        yaml.push_str(name);
    } else {
        yaml.push_str(&Value::from(name).to_string());
    }
    yaml.push(':');
    push_value(yaml, indent, value);
}

fn push_value(yaml: &mut String, indent: usize, value: &Value) {
    if let Some(members) = value.as_object().filter(|members| !members.is_empty()) {
        yaml.push('\n');
        members.iter().for_each(|(name, value)| push_member(yaml, indent + 2, name, value));
    } else if let Some(elements) = value.as_array().filter(|elements| elements.iter().any(Value::is_object)) {
        yaml.push('\n');
        for element in elements {
            yaml.push_str(&" ".repeat(indent + 2));
            yaml.push('-');
            push_value(yaml, indent + 2, element);
        }
    } else {
        yaml.push_str(&format!(" {value}\n"));
    }
}

/// Whether every reader takes it for a text without quotes; `on` is a truth value to those of YAML 1.1.
fn is_plain(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$');
    let is_word = ["on", "off", "yes", "no", "y", "n", "true", "false", "null"].contains(&name);
    begins && !is_word && name.chars().skip(1).all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn objects_are_blocks() {
    let mut yaml = String::new();
    let value =
        serde_json::json!({"on": true, "$ref": "#/a", "all": [{"a": 1}, {"b": ["x", null]}], "none": {}});
    push_member(&mut yaml, 2, "top", &value);
    let expected = "  top:\n    $ref: \"#/a\"\n    all:\n      -\n        a: 1\n      -\n        b: [\"x\",null]\n    none: {}\n    \"on\": true\n";
    assert_eq!(yaml, expected);
}
