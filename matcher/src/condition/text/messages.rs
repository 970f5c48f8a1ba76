//! Messages for the author of a text whose next token is not what the grammar wants.

use super::lexer::{self, Kind, Token};
use super::{Parser, misses};
use crate::condition::error::{ConditionError, Place};

impl Parser<'_> {
    pub(super) fn place(&self, token_idx: usize) -> Place {
        let offset = self.tokens.get(token_idx).map_or(self.text.len(), |token| token.span.start);
        Place::of(self.text, offset)
    }

    pub(super) fn unsupported(
        &self,
        token_idx: usize,
        what: impl Into<String>,
        advice: Option<&'static str>,
    ) -> ConditionError {
        ConditionError::Unsupported { what: what.into(), place: self.place(token_idx), advice }
    }

    /// The next token is not what the grammar wants; says so in terms of the language that it comes from.
    pub(super) fn wrong(&self, expected: &str) -> ConditionError {
        let call = self.peek_second() == Some(&Kind::Open);
        match self.peek() {
            Some(Kind::Name { name, .. }) if call => {
                let (what, advice) = describe_call(name);
                self.unsupported(self.next, what, advice)
            }
            Some(Kind::Arithmetic) => self.unsupported(self.next, "arithmetic", None),
            Some(Kind::Number(_)) if self.is_signed(self.next) && self.follows_operand() => {
                self.unsupported(self.next, "arithmetic", None)
            }
            _ => self.syntax(expected, None),
        }
    }

    pub(super) fn advise(&self, expected: &str, advice: &'static str) -> ConditionError {
        self.syntax(expected, Some(advice))
    }

    fn syntax(&self, expected: &str, advice: Option<&'static str>) -> ConditionError {
        let advice = advice.or_else(|| self.near_miss());
        let expected = match self.next.checked_sub(1) {
            Some(previous) => format!("{expected} after {}", self.quote(previous)),
            None => expected.to_owned(),
        };
        ConditionError::Syntax { expected, found: self.found(), place: self.place(self.next), advice }
    }

    /// The spelling that the next token probably means.
    fn near_miss(&self) -> Option<&'static str> {
        let source = |idx: usize| self.tokens.get(idx).map(|token| &self.text[token.span.clone()]);
        let previous = self.next.checked_sub(1).and_then(source).unwrap_or_default();
        misses::of_token(previous, source(self.next)?)
    }

    fn found(&self) -> String {
        let kind = match self.peek() {
            None => return "end of text".to_owned(),
            Some(Kind::Name { .. }) => "the name ",
            Some(Kind::Text(_)) => "the text ",
            Some(Kind::Number(_)) => "the number ",
            Some(Kind::Keyword(_)) => "the keyword ",
            Some(Kind::Compare(_) | Kind::Arithmetic | Kind::Open | Kind::Close | Kind::Comma) => "",
        };
        format!("{kind}{}", self.quote(self.next))
    }

    /// A token as it was written, in quotes and not too long.
    fn quote(&self, token_idx: usize) -> String {
        let Token { kind, span } = &self.tokens[token_idx];
        let source = &self.text[span.clone()];
        let shown = lexer::shorten(source);
        match kind {
            Kind::Text(_) | Kind::Name { quoted: true, .. } => shown.into_owned(),
            Kind::Name { .. }
            | Kind::Number(_)
            | Kind::Keyword(_)
            | Kind::Compare(_)
            | Kind::Arithmetic
            | Kind::Open
            | Kind::Close
            | Kind::Comma => format!("'{shown}'"),
        }
    }

    fn is_signed(&self, token_idx: usize) -> bool {
        self.text[self.tokens[token_idx].span.clone()].starts_with(['+', '-'])
    }

    fn follows_operand(&self) -> bool {
        self.next.checked_sub(1).is_some_and(|previous| {
            matches!(
                self.tokens[previous].kind,
                Kind::Name { .. } | Kind::Number(_) | Kind::Text(_) | Kind::Close
            )
        })
    }
}

fn describe_call(name: &str) -> (String, Option<&'static str>) {
    let name = lexer::shorten(name);
    let upper = name.to_ascii_uppercase();
    if upper.starts_with("S_") {
        (format!("the spatial operator {upper}"), Some("the area of a filter says where"))
    } else if upper.starts_with("T_") {
        (format!("the temporal operator {upper}"), None)
    } else if upper.starts_with("A_") {
        (
            format!("the array operator {upper}"),
            Some("a constraint on an array is true when one element makes it true"),
        )
    } else if matches!(upper.as_str(), "DATE" | "TIMESTAMP") {
        (format!("a value of type {upper} in this place"), None)
    } else if upper == "INTERVAL" {
        (
            "a value of type INTERVAL".to_owned(),
            Some("an attribute is compared with DATE('..') or TIMESTAMP('..')"),
        )
    } else if upper == "CASEI" {
        ("CASEI of anything but a name or a text".to_owned(), None)
    } else {
        (format!("the function '{name}'"), None)
    }
}
