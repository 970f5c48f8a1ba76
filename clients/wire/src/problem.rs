//! Problems: what went wrong, as RFC 9457 writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Beginning of the `type` of every problem. The rest of the `type` is the problem's code.
pub const PROBLEM_PREFIX: &str = "urn:nearcast:problem:";

/// An `application/problem+json` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URN that names the kind of problem; programs decide by it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words, the same for every problem of the kind.
    pub title: String,
    /// The HTTP status that it has, or would have.
    pub status: u16,
    /// What happened this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The faults of a document, each where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    /// Further facts, such as `line` and `column` of malformed JSON.
    #[serde(flatten)]
    pub facts: BTreeMap<String, Value>,
}

/// Events that do not fit together: their ids by variable of the check.
pub type Link = BTreeMap<String, String>;

/// One fault of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fault {
    /// Where, as a JSON pointer (RFC 6901); empty for the document itself.
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
}

impl Problem {
    /// The last part of [`kind`](Self::kind): `invalid-document` of `urn:nearcast:problem:invalid-document`.
    #[must_use]
    pub fn code(&self) -> &str {
        self.kind.strip_prefix(PROBLEM_PREFIX).unwrap_or(&self.kind)
    }

    /// Name of the check that refused an event, of the code `inconsistent`.
    #[must_use]
    pub fn check(&self) -> Option<&str> {
        self.facts.get("check")?.as_str()
    }

    /// Events with which a refused one does not fit, of the code `inconsistent`; empty of any other.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        let links = self.facts.get("links").and_then(Value::as_array).into_iter().flatten();
        links.filter_map(|link| Link::deserialize(link).ok()).collect()
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.title)?;
        // The detail says no more than the faults do, where there are some.
        if let (Some(detail), []) = (&self.detail, &*self.errors) {
            write!(f, ": {detail}")?;
        }
        for (at, fault) in self.errors.iter().enumerate() {
            f.write_str(if at == 0 { ": " } else { "; " })?;
            if !fault.pointer.is_empty() {
                write!(f, "{}: ", fault.pointer)?;
            }
            f.write_str(&fault.detail)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_told_once() {
        let fault =
            |pointer: &str, detail: &str| Fault { pointer: pointer.to_owned(), detail: detail.to_owned() };
        let mut problem = Problem {
            kind: format!("{PROBLEM_PREFIX}invalid-document"),
            title: "not valid".to_owned(),
            status: 400,
            detail: Some("/a: is wrong (and 1 more)".to_owned()),
            errors: vec![fault("/a", "is wrong"), fault("", "is odd")],
            facts: BTreeMap::new(),
        };
        assert_eq!(problem.to_string(), "not valid: /a: is wrong; is odd");
        problem.errors.clear();
        assert_eq!(problem.to_string(), "not valid: /a: is wrong (and 1 more)");
    }

    #[test]
    fn further_facts_stand_beside_the_rest() {
        let text = r#"{"type":"urn:nearcast:problem:malformed-json","title":"malformed JSON","status":400,"line":3}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.code(), "malformed-json");
        assert_eq!(problem.facts["line"], 3);
        assert_eq!((problem.check(), problem.links()), (None, Vec::new()));
        assert_eq!(serde_json::to_string(&problem).unwrap(), text);
    }

    #[test]
    fn a_check_that_refuses_says_which_events_do_not_fit() {
        let text = r#"{"type":"urn:nearcast:problem:inconsistent","title":"the event does not fit with others","status":422,"check":"jump","links":[{"a":"e1","b":"e3"},{"a":1},"odd"]}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.check(), Some("jump"));
        let link: Link = [("a", "e1"), ("b", "e3")].map(|(name, id)| (name.to_owned(), id.to_owned())).into();
        assert_eq!(problem.links(), [link]);
        assert_eq!(serde_json::to_string(&problem).unwrap(), text);
    }
}
