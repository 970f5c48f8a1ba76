//! Whatever comes in: a problem that says what is wrong, or a close with a reason, and nothing else disturbed.

mod advice;
mod bytes;
mod calls;
mod conditions;
mod frames;
mod limits;
mod warnings;

use serde_json::json;

/// JSON that nests this deep, around nothing.
fn nested_arrays(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// The text of a subscription with one condition.
fn with_condition(condition: &str) -> String {
    json!({"filters": [{"where": condition}]}).to_string()
}
