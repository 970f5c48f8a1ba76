//! Reading what the broker refuses with, whatever a proxy on the way made of it.

use std::time::Duration;

use serde_json::{Map, Value};
use wire::{Fault, Problem};

use crate::Error;

/// The problem of an answer over HTTP; of one that has no problem document, a page of a proxy for example, one with its status alone.
pub(crate) fn of_answer(status: u16, header: impl Fn(&str) -> Option<String>, body: &[u8]) -> Error {
    let media_type = header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let document = if media_type.eq_ignore_ascii_case("application/problem+json") {
        serde_json::from_slice(body).unwrap_or_default()
    } else {
        Value::Null
    };
    let retry_after = header("retry-after")
        .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|value| value.parse().ok())
        .map(Duration::from_secs);
    let problem = Box::new(normalised(document, Some(status)));
    let location = header("location").filter(|_| problem.code() == "elsewhere");
    Error::Problem { problem, retry_after, location }
}

/// The problem of a frame.
pub(crate) fn of_frame(document: Value) -> Problem {
    normalised(document, None)
}

/// A problem has its members, each of its type: the broker writes them so, but others on the way write problems as well.
fn normalised(document: Value, status: Option<u16>) -> Problem {
    let mut members = if let Value::Object(members) = document { members } else { Map::new() };
    let own = members.remove("status").and_then(|own| own.as_u64()).and_then(|own| u16::try_from(own).ok());
    let status = status.or(own).unwrap_or(500);
    let errors = if let Some(Value::Array(errors)) = members.remove("errors") { errors } else { Vec::new() };
    Problem {
        kind: text(&mut members, "type").unwrap_or_else(|| "about:blank".to_owned()),
        title: text(&mut members, "title").unwrap_or_else(|| format!("HTTP {status}")),
        status,
        detail: text(&mut members, "detail"),
        errors: errors.into_iter().filter_map(|error| serde_json::from_value::<Fault>(error).ok()).collect(),
        facts: members.into_iter().collect(),
    }
}

fn text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    if let Value::String(text) = members.remove(name)? { Some(text) } else { None }
}
