//! An event's values as conditions read them: each folded once, and what reading them takes.

use super::expression::{Constraint, Residual, Test, Truth, fold_value};
use super::like::Pattern;
use crate::event::{Event, Scalar, Value};
use crate::geo::Position;

/// Reads the values of one event, for as many constraints as there are and for a client.
#[derive(Debug, Default)]
pub(crate) struct Reading<'a> {
    /// Values that were folded, with what came out; `None` where that changed nothing.
    folded: Vec<(&'a Value, Option<Value>)>,
    /// Time that the tests have taken so far, in nanoseconds, about.
    ns: u64,
    /// Where the client is.
    client: Option<Position>,
}

/// A test of a value that is no text, or of one that need not be read whole.
pub(crate) const TEST_NS: u64 = 4;
/// A byte that is folded for `CASEI`, and one of a text that is found to be folded already.
const FOLDED_BYTE_NS: u64 = 16;
const SEEN_BYTE_NS: u64 = 1;

impl<'a> Reading<'a> {
    /// Begins, for a client that is there.
    pub(crate) fn of_client(client: Option<&Position>) -> Self {
        let mut reading = Self::default();
        reading.turn_to(client);
        reading
    }

    /// Goes on for another client.
    pub(crate) fn turn_to(&mut self, client: Option<&Position>) {
        self.client = client.copied();
    }

    /// Tests the value of an attribute, `None` where it is absent.
    pub(crate) fn truth(&mut self, constraint: &Constraint, value: Option<&'a Value>) -> Truth {
        let Some(value) = value else {
            self.ns += TEST_NS;
            return constraint.truth(None);
        };
        self.ns += constraint.ns(value);
        constraint.truth_of_folded(if constraint.casei { self.fold(value) } else { value })
    }

    /// Decides a part that is no constraint.
    pub(crate) fn residual(&mut self, residual: &Residual, event: &Event) -> Truth {
        self.ns += residual.ns(event);
        residual.truth(event, self.client.as_ref())
    }

    /// Time that the tests have taken so far, in nanoseconds, about.
    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    fn fold(&mut self, value: &'a Value) -> &Value {
        let known = self.folded.iter().position(|(of, _)| std::ptr::eq(*of, value));
        let index = known.unwrap_or_else(|| {
            let folded = fold_value(value);
            let byte_ns = if folded.is_some() { FOLDED_BYTE_NS } else { SEEN_BYTE_NS };
            // The first constraint pays for all: mostly its subscription has many.
            self.ns += text_bytes(value) * byte_ns;
            self.folded.push((value, folded));
            self.folded.len() - 1
        });
        self.folded[index].1.as_ref().unwrap_or(value)
    }
}

impl Constraint {
    /// Time that a test of a value takes, in nanoseconds, without the folding.
    fn ns(&self, value: &Value) -> u64 {
        let elements = value.elements();
        let like_ns = |pattern: &Pattern, scalar: &Scalar| match scalar {
            Scalar::Text(text) => TEST_NS + pattern.ns(text.as_str().len() as u64),
            Scalar::Number(_) | Scalar::Bool(_) => TEST_NS,
        };
        match &self.test {
            Test::Compare(..) | Test::Between(..) | Test::IsNull => TEST_NS * elements.len() as u64,
            Test::In(values) => TEST_NS * (values.len() * elements.len()) as u64,
            Test::Like(pattern) => elements.iter().map(|scalar| like_ns(pattern, scalar)).sum(),
        }
    }
}

fn text_bytes(value: &Value) -> u64 {
    let bytes = |scalar: &Scalar| match scalar {
        Scalar::Text(text) => text.as_str().len() as u64,
        Scalar::Number(_) | Scalar::Bool(_) => 0,
    };
    value.elements().iter().map(bytes).sum()
}
