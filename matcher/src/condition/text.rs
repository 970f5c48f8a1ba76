//! CQL2 text to trees.
//!
//! Tokens first, then one function per rule of the grammar, over the tokens. Every function consumes what it
//! reads and never goes back, so the cost is linear in the text, and what nests is counted, so no text can
//! exhaust the stack. A parenthesis may hold a condition or a value, which is known only when it ends: the functions
//! between the two answer either.

mod function;
mod lexer;
mod messages;
mod misses;
mod operand;

use super::error::ConditionError;
use super::expression::{Comparand, Comparison, Expression};
use super::like::Pattern;
use super::lower;
use crate::event::Scalar;
use crate::geo::World;
use crate::predicate::node::{Node, Operand};
use lexer::{Keyword, Kind, Token};

pub(super) use lexer::is_plain_name;

/// The longest text that is read, in bytes: a normal form at its caps with constraints of 30 characters.
pub const TEXT_BYTES_MAX: usize = 65_536;
/// How deep parentheses, functions and `NOT` may nest.
pub const NESTING_MAX: usize = 64;
/// The most operations of arithmetic in a text: a chain of them is as deep as it is long.
pub const OPERATIONS_MAX: usize = 256;

/// The advice where a text is quoted as a name.
const QUOTES: &str = "a text takes single quotes, double quotes are for names";
/// Description of what may follow a value in a condition.
const TEST: &str = "a comparison, BETWEEN, IN, LIKE or IS";

/// Names that a text may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    /// Attributes of one event by their names alone; as an argument of a function it is called `event`.
    Event,
    /// The same, and `me` for the client as an argument of functions of places.
    Client,
    /// Attributes of several events, `variable.attribute`.
    Variables(&'a [&'a str]),
}

/// Reads a condition.
///
/// Cost: linear in the text. [`TEXT_BYTES_MAX`] bounds it, [`NESTING_MAX`] bounds the depth of the result.
///
/// # Errors
/// Any [`ConditionError`] but [`ConditionError::TooLarge`].
pub fn parse(text: &str) -> Result<Expression, ConditionError> {
    // Without a world nothing depends on it.
    parse_node(text, &Scope::Event, None).map(|node| lower::expression(World::Geodetic, node))
}

/// Reads a condition of a client, whose places and distances are of a world. [`parse`] refuses functions that have these, and `me`.
///
/// # Errors
/// Any [`ConditionError`] but [`ConditionError::TooLarge`].
pub fn parse_in(world: World, text: &str) -> Result<Expression, ConditionError> {
    parse_node(text, &Scope::Client, Some(world)).map(|node| lower::expression(world, node))
}

/// Reads what [`parse_in`] reads, but for `me`: there is no client.
pub(super) fn parse_of_event(world: World, text: &str) -> Result<Expression, ConditionError> {
    parse_node(text, &Scope::Event, Some(world)).map(|node| lower::expression(world, node))
}

/// Reads a truth-valued text. Places and distances are of the world; without one there are none.
pub(crate) fn parse_node(
    text: &str,
    scope: &Scope<'_>,
    world: Option<World>,
) -> Result<Node, ConditionError> {
    let mut parser = Parser::new(text, *scope, world)?;
    let parsed = parser.disjunction(CONDITION)?;
    let expected = "AND, OR or the end of the text";
    match (parsed, parser.peek()) {
        // `1 < a < 3`
        (Parsed::Truth(_), Some(Kind::Compare(_))) => {
            Err(parser.advise(expected, "two comparisons are joined by AND"))
        }
        (Parsed::Truth(_), Some(_)) => Err(parser.wrong(expected)),
        (parsed, _) => parser.truth(parsed),
    }
}

/// Reads a text that has a value.
pub(crate) fn parse_operand(
    text: &str,
    scope: &Scope<'_>,
    world: Option<World>,
) -> Result<Operand, ConditionError> {
    let mut parser = Parser::new(text, *scope, world)?;
    let value = parser.value()?;
    if parser.peek().is_some() {
        return Err(parser.wrong("an operator or the end of the text"));
    }
    Ok(value)
}

/// The tokens, and how many are consumed.
struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    scope: Scope<'a>,
    world: Option<World>,
    /// Levels that are open.
    depth: usize,
    /// Operations of arithmetic so far.
    operations: usize,
}

/// A part of a text.
enum Parsed {
    Truth(Node),
    Value(Operand),
}

/// Descriptions of the two in a message.
const CONDITION: &str = "a condition";
const VALUE: &str = "a value";

impl<'a> Parser<'a> {
    fn new(text: &'a str, scope: Scope<'a>, world: Option<World>) -> Result<Self, ConditionError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ConditionError::TooLong { found: text.len() });
        }
        Ok(Self { text, tokens: lexer::tokens(text)?, next: 0, scope, world, depth: 0, operations: 0 })
    }

    /// `conjunction {OR conjunction}`
    fn disjunction(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        self.joined(Keyword::Or, Node::Or, |parser| parser.conjunction(expected))
    }

    /// `factor {AND factor}`
    fn conjunction(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        self.joined(Keyword::And, Node::And, |parser| parser.factor(expected))
    }

    fn joined(
        &mut self,
        keyword: Keyword,
        join: fn(Vec<Node>) -> Node,
        operand: impl Fn(&mut Self) -> Result<Parsed, ConditionError>,
    ) -> Result<Parsed, ConditionError> {
        let first = operand(self)?;
        if self.peek() != Some(&Kind::Keyword(keyword)) {
            return Ok(first);
        }
        let mut operands = vec![self.truth(first)?];
        while self.take_keyword(keyword) {
            let parsed = operand(self)?;
            operands.push(self.truth(parsed)?);
        }
        Ok(Parsed::Truth(join(operands)))
    }

    /// `NOT factor` or a predicate.
    fn factor(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let place = self.next;
        if expected == CONDITION && self.take_keyword(Keyword::Not) {
            self.enter(place)?;
            let inner = self.factor(CONDITION)?;
            self.depth -= 1;
            return Ok(Parsed::Truth(Node::Not(Box::new(self.truth(inner)?))));
        }
        self.predicate(expected)
    }

    /// A value with a test, or without one.
    fn predicate(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let value = match self.sum(expected)? {
            Parsed::Value(value) => value,
            truth @ Parsed::Truth(_) => return Ok(truth),
        };
        if let Some(&Kind::Compare(comparison)) = self.peek() {
            self.next += 1;
            let other = self.value()?;
            return Ok(Parsed::Truth(Node::Compare(comparison, Box::new([value, other]))));
        }
        if self.take_keyword(Keyword::Is) {
            let negated = self.take_keyword(Keyword::Not);
            self.expect(&Kind::Keyword(Keyword::Null), if negated { "NULL" } else { "NULL or NOT NULL" })?;
            return Ok(negate_if(negated, Node::IsNull(value)));
        }
        let negated = self.take_keyword(Keyword::Not);
        let node = if self.take_keyword(Keyword::Between) {
            let low = self.value()?;
            self.expect(&Kind::Keyword(Keyword::And), "AND and the upper bound")?;
            Node::Between(Box::new([value, low, self.value()?]))
        } else if self.take_keyword(Keyword::In) {
            self.expect(&Kind::Open, "'('")?;
            Node::In(value, self.values()?)
        } else if self.take_keyword(Keyword::Like) {
            Node::Like(value, self.pattern()?)
        } else if negated {
            return Err(self.wrong("BETWEEN, IN or LIKE"));
        } else {
            return Ok(Parsed::Value(value));
        };
        Ok(negate_if(negated, node))
    }

    /// A part that has to be a condition. `TRUE` and `FALSE` are both.
    fn truth(&self, parsed: Parsed) -> Result<Node, ConditionError> {
        match parsed {
            Parsed::Truth(node) => Ok(node),
            Parsed::Value(Operand::Value(Comparand::Scalar(Scalar::Bool(truth)))) => match self.peek() {
                None | Some(Kind::Keyword(Keyword::And | Keyword::Or) | Kind::Close) => {
                    Ok(Node::Constant(truth))
                }
                Some(_) => Err(self.wrong("AND, OR or the end of the text")),
            },
            Parsed::Value(_) => match self.peek() {
                Some(Kind::Keyword(Keyword::And | Keyword::Or) | Kind::Close) => {
                    Err(self.advise(TEST, "a truth value is tested with = TRUE"))
                }
                _ => Err(self.wrong(TEST)),
            },
        }
    }

    /// Values up to a closing parenthesis, at least one.
    fn values(&mut self) -> Result<Vec<Operand>, ConditionError> {
        let mut values = vec![self.value()?];
        while self.take(&Kind::Comma) {
            values.push(self.value()?);
        }
        self.expect(&Kind::Close, "',' or ')'")?;
        Ok(values)
    }

    fn pattern(&mut self) -> Result<Pattern, ConditionError> {
        const EXPECTED: &str = "a text";
        let start = self.next;
        if let Some(Kind::Name { quoted: true, .. }) = self.peek() {
            return Err(self.advise(EXPECTED, QUOTES));
        }
        let read = self.factor_of_product(EXPECTED)?;
        if let Parsed::Value(Operand::Value(Comparand::Scalar(Scalar::Text(text)))) = read {
            return Pattern::new(text.as_str())
                .map_err(|source| ConditionError::Pattern { source, place: self.place(start) });
        }
        self.next = start;
        Err(self.wrong(EXPECTED))
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    fn peek_second(&self) -> Option<&Kind> {
        self.tokens.get(self.next + 1).map(|token| &token.kind)
    }

    fn take(&mut self, kind: &Kind) -> bool {
        let found = self.peek() == Some(kind);
        self.next += usize::from(found);
        found
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        self.take(&Kind::Keyword(keyword))
    }

    fn expect(&mut self, kind: &Kind, expected: &str) -> Result<(), ConditionError> {
        if self.take(kind) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    /// Goes a level deeper, at a token. The caller goes back.
    fn enter(&mut self, token_idx: usize) -> Result<(), ConditionError> {
        if self.depth >= NESTING_MAX {
            return Err(ConditionError::TooDeep { place: self.place(token_idx) });
        }
        self.depth += 1;
        Ok(())
    }
}

fn negate_if(negated: bool, node: Node) -> Parsed {
    Parsed::Truth(if negated { Node::Not(Box::new(node)) } else { node })
}

impl Comparison {
    /// The comparison that says the same with its sides exchanged.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// The comparison that is true where this one is false.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}
