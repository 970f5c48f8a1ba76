//! Messages for the author of a text whose next token is not what the grammar wants.

use super::function::FUNCTIONS;
use super::lexer::{self, Kind, Token};
use super::{Parser, misses};
use crate::condition::error::{ConditionError, Place};
use crate::predicate::node::{Sets, Temporal};

impl Parser<'_> {
    pub(super) fn place(&self, token_idx: usize) -> Place {
        let offset = self.tokens.get(token_idx).map_or(self.text.len(), |token| token.span.start);
        Place::of(self.text, offset)
    }

    pub(super) fn unsupported(
        &self,
        token_idx: usize,
        what: impl Into<String>,
        advice: Option<&str>,
    ) -> ConditionError {
        let advice = advice.map(str::to_owned);
        ConditionError::Unsupported { what: what.into(), place: self.place(token_idx), advice }
    }

    /// The next token is not what the grammar wants; says so in terms of the language that it comes from.
    pub(super) fn wrong(&self, expected: &str) -> ConditionError {
        let call = self.peek_second() == Some(&Kind::Open);
        match self.peek() {
            Some(Kind::Name { name, .. }) if call => {
                let (what, advice) = describe_call(name);
                self.unsupported(self.next, what, advice.as_deref())
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
            Some(Kind::Compare(_) | Kind::Arithmetic(_) | Kind::Open | Kind::Close | Kind::Comma) => "",
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
            | Kind::Arithmetic(_)
            | Kind::Open
            | Kind::Close
            | Kind::Comma => format!("'{shown}'"),
        }
    }
}

/// Description of a call that cannot stand here, and of the likely intention.
fn describe_call(name: &str) -> (String, Option<String>) {
    let short = lexer::shorten(name);
    let upper = short.to_ascii_uppercase();
    if FUNCTIONS.contains(&&*upper) || Temporal::of(&upper).is_some() || Sets::of(&upper).is_some() {
        return (format!("{upper} in this place"), None);
    }
    let what = format!("the function '{short}'");
    if upper.starts_with("S_") {
        return (
            what,
            Some("the area of a filter says where, and S_WITHIN(event, POLYGON((..))) beside it".to_owned()),
        );
    }
    let relations =
        Temporal::ALL.iter().map(|(name, _)| *name).chain(Sets::ALL.iter().map(|(name, _)| *name));
    let meant = misses::nearest(&upper, FUNCTIONS.into_iter().chain(relations));
    (what, meant.map(|meant| format!("did you mean {meant}?")))
}
