//! CQL2 text to expressions.
//!
//! Tokens first, then one function per rule of the grammar, over the tokens. Every function consumes what it
//! reads and never goes back, so the cost is linear in the text, and what nests is counted, so no text can
//! exhaust the stack.

mod lexer;
mod messages;
mod misses;

use super::error::ConditionError;
use super::expression::{Comparand, Comparison, Constraint, Date, Expression, Test, Timestamp, fold_case};
use super::like::Pattern;
use crate::event::{Scalar, Symbol};
use lexer::{Keyword, Kind, Token};

pub(super) use lexer::is_plain_name;

/// The longest text that is read, in bytes: a normal form at its caps with constraints of 30 characters.
pub const TEXT_BYTES_MAX: usize = 65_536;
/// How deep parentheses and `NOT` may nest.
pub const NESTING_MAX: usize = 64;

/// The advice where a text is quoted as a name.
const QUOTES: &str = "a text takes single quotes, double quotes are for names";

/// Reads a condition.
///
/// Cost: linear in the text. [`TEXT_BYTES_MAX`] bounds it, [`NESTING_MAX`] bounds the depth of the result.
///
/// # Errors
/// Any [`ConditionError`] but [`ConditionError::TooLarge`].
pub fn parse(text: &str) -> Result<Expression, ConditionError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ConditionError::TooLong { found: text.len() });
    }
    let mut parser = Parser { text, tokens: lexer::tokens(text)?, next: 0 };
    let expression = parser.disjunction(0)?;
    let expected = "AND, OR or the end of the text";
    // `1 < a < 3`
    if let Some(Kind::Compare(_)) = parser.peek() {
        return Err(parser.advise(expected, "two comparisons are joined by AND"));
    }
    if parser.peek().is_some() {
        return Err(parser.wrong(expected));
    }
    Ok(expression)
}

/// The tokens, and how many are consumed.
struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

/// One side of a comparison.
enum Operand {
    Attribute { name: Symbol, casei: bool },
    Value(Comparand),
}

impl Parser<'_> {
    /// `conjunction {OR conjunction}`
    fn disjunction(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut operands = vec![self.conjunction(depth)?];
        while self.take_keyword(Keyword::Or) {
            operands.push(self.conjunction(depth)?);
        }
        Ok(single_or(operands, Expression::Or))
    }

    /// `factor {AND factor}`
    fn conjunction(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut operands = vec![self.factor(depth)?];
        while self.take_keyword(Keyword::And) {
            operands.push(self.factor(depth)?);
        }
        Ok(single_or(operands, Expression::And))
    }

    /// `NOT factor`, `(disjunction)`, `TRUE`, `FALSE` or a predicate.
    fn factor(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let place = self.next;
        if self.take_keyword(Keyword::Not) {
            self.check_depth(depth, place)?;
            return Ok(Expression::Not(Box::new(self.factor(depth + 1)?)));
        }
        if self.take(&Kind::Open) {
            self.check_depth(depth, place)?;
            let inner = self.disjunction(depth + 1)?;
            return if self.take(&Kind::Close) { Ok(inner) } else { Err(self.wrong("AND, OR or ')'")) };
        }
        match self.peek() {
            Some(Kind::Keyword(Keyword::True | Keyword::False)) => self.constant(),
            Some(Kind::Name { .. } | Kind::Text(_) | Kind::Number(_)) => self.predicate(),
            Some(Kind::Keyword(_)) => {
                Err(self.advise("a condition", "a name that is a keyword takes double quotes"))
            }
            Some(Kind::Compare(_) | Kind::Arithmetic | Kind::Open | Kind::Close | Kind::Comma) | None => {
                Err(self.wrong("a condition"))
            }
        }
    }

    /// `TRUE` alone is a condition, before a comparison it is a value.
    fn constant(&mut self) -> Result<Expression, ConditionError> {
        if matches!(self.peek_second(), Some(Kind::Compare(_))) {
            return self.predicate();
        }
        let truth = self.peek() == Some(&Kind::Keyword(Keyword::True));
        self.next += 1;
        Ok(Expression::Constant(truth))
    }

    fn predicate(&mut self) -> Result<Expression, ConditionError> {
        let start = self.next;
        match self.operand("an attribute")? {
            Operand::Attribute { name, casei } => self.test(name, casei),
            Operand::Value(value) => self.flipped(value, start),
        }
    }

    /// The operator after an attribute, and its values.
    fn test(&mut self, name: Symbol, casei: bool) -> Result<Expression, ConditionError> {
        const EXPECTED: &str = "a comparison, BETWEEN, IN, LIKE or IS";
        let constraint = |test| Expression::Constraint(Constraint { name: name.clone(), casei, test });
        if let Some(&Kind::Compare(comparison)) = self.peek() {
            self.next += 1;
            return Ok(constraint(Test::Compare(comparison, self.value()?)));
        }
        if self.take_keyword(Keyword::Is) {
            let negated = self.take_keyword(Keyword::Not);
            self.expect(&Kind::Keyword(Keyword::Null), if negated { "NULL" } else { "NULL or NOT NULL" })?;
            // Presence has no case.
            let test = Expression::Constraint(Constraint { name, casei: false, test: Test::IsNull });
            return Ok(negate_if(negated, test));
        }
        let negated = self.take_keyword(Keyword::Not);
        let test = if self.take_keyword(Keyword::Between) {
            let low = self.value()?;
            self.expect(&Kind::Keyword(Keyword::And), "AND and the upper bound")?;
            Test::Between(low, self.value()?)
        } else if self.take_keyword(Keyword::In) {
            Test::In(self.list()?)
        } else if self.take_keyword(Keyword::Like) {
            Test::Like(self.pattern()?)
        } else if negated {
            return Err(self.wrong("BETWEEN, IN or LIKE"));
        } else if matches!(self.peek(), Some(Kind::Keyword(Keyword::And | Keyword::Or) | Kind::Close)) {
            return Err(self.advise(EXPECTED, "a truth value is tested with = TRUE"));
        } else {
            return Err(self.wrong(EXPECTED));
        };
        Ok(negate_if(negated, constraint(test)))
    }

    /// A value, a comparison and an attribute: turned round.
    fn flipped(&mut self, value: Comparand, start: usize) -> Result<Expression, ConditionError> {
        match self.peek() {
            Some(&Kind::Compare(comparison)) => {
                self.next += 1;
                match self.operand("an attribute")? {
                    Operand::Attribute { name, casei } => {
                        let test = Test::Compare(comparison.flipped(), value);
                        Ok(Expression::Constraint(Constraint { name, casei, test }))
                    }
                    Operand::Value(_) => Err(self.unsupported(start, "comparing two values", None)),
                }
            }
            Some(Kind::Keyword(
                Keyword::Between | Keyword::In | Keyword::Like | Keyword::Is | Keyword::Not,
            )) => Err(self.unsupported(
                start,
                "a value on the left of BETWEEN, IN, LIKE or IS",
                Some("an attribute stands there"),
            )),
            _ => Err(self.wrong("a comparison")),
        }
    }

    /// `(value {, value})`
    fn list(&mut self) -> Result<Vec<Comparand>, ConditionError> {
        self.expect(&Kind::Open, "'('")?;
        let mut values = vec![self.value()?];
        while self.take(&Kind::Comma) {
            values.push(self.value()?);
        }
        self.expect(&Kind::Close, "',' or ')'")?;
        Ok(values)
    }

    fn pattern(&mut self) -> Result<Pattern, ConditionError> {
        let start = self.next;
        let expected = "a text";
        match self.operand(expected)? {
            Operand::Value(Comparand::Scalar(Scalar::Text(text))) => Pattern::new(text.as_str())
                .map_err(|source| ConditionError::Pattern { source, place: self.place(start) }),
            Operand::Value(_) | Operand::Attribute { .. } => {
                self.next = start;
                if let Some(Kind::Name { quoted: true, .. }) = self.peek() {
                    return Err(self.advise(expected, QUOTES));
                }
                Err(self.wrong(expected))
            }
        }
    }

    fn value(&mut self) -> Result<Comparand, ConditionError> {
        let start = self.next;
        match self.operand("a value")? {
            Operand::Value(value) => Ok(value),
            Operand::Attribute { .. } => {
                let quoted = matches!(self.tokens[start].kind, Kind::Name { quoted: true, .. });
                let advice = if quoted { QUOTES } else { "a text takes single quotes" };
                Err(self.unsupported(start, "comparing two attributes", Some(advice)))
            }
        }
    }

    /// An attribute or a value, either under `CASEI`.
    fn operand(&mut self, expected: &str) -> Result<Operand, ConditionError> {
        let value = |scalar| Operand::Value(Comparand::Scalar(scalar));
        let called = self.peek_second() == Some(&Kind::Open);
        let operand = match self.peek() {
            Some(Kind::Name { name, quoted: false }) if called && name.eq_ignore_ascii_case("casei") => {
                return self.casei();
            }
            Some(Kind::Name { name, quoted: false }) if called && name.eq_ignore_ascii_case("date") => {
                return self
                    .moment("a date such as '2026-01-31'", |text| Date::parse(text).map(Comparand::Date));
            }
            Some(Kind::Name { name, quoted: false }) if called && name.eq_ignore_ascii_case("timestamp") => {
                return self.moment("a timestamp in UTC such as '2026-01-31T08:30:00Z'", |text| {
                    Timestamp::parse(text).map(Comparand::Timestamp)
                });
            }
            Some(Kind::Name { .. }) if called => return Err(self.wrong(expected)),
            Some(Kind::Name { name, .. }) => {
                Operand::Attribute { name: Symbol::from(name.as_str()), casei: false }
            }
            Some(Kind::Text(text)) => value(Scalar::Text(Symbol::from(text.as_str()))),
            Some(&Kind::Number(number)) => value(Scalar::Number(number)),
            Some(Kind::Keyword(Keyword::True)) => value(Scalar::Bool(true)),
            Some(Kind::Keyword(Keyword::False)) => value(Scalar::Bool(false)),
            Some(Kind::Keyword(Keyword::Null)) => {
                return Err(self.advise(expected, "whether an attribute is absent is asked with IS NULL"));
            }
            _ => return Err(self.wrong(expected)),
        };
        self.next += 1;
        Ok(operand)
    }

    /// `CASEI(name)` or `CASEI('text')`; a text is folded here, once.
    fn casei(&mut self) -> Result<Operand, ConditionError> {
        self.next += 2;
        let operand = match self.peek() {
            Some(Kind::Name { name, .. }) if self.peek_second() != Some(&Kind::Open) => {
                Operand::Attribute { name: Symbol::from(name.as_str()), casei: true }
            }
            Some(Kind::Text(text)) => Operand::Value(Scalar::Text(Symbol::new(fold_case(text))).into()),
            _ => return Err(self.wrong("a name or a text")),
        };
        self.next += 1;
        self.expect(&Kind::Close, "')'")?;
        Ok(operand)
    }

    /// `DATE('..')` or `TIMESTAMP('..')`.
    fn moment(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<Comparand>,
    ) -> Result<Operand, ConditionError> {
        self.next += 2;
        let moment = match self.peek() {
            Some(Kind::Text(text)) => read(text),
            _ => None,
        };
        let moment = moment.ok_or_else(|| self.wrong(expected))?;
        self.next += 1;
        self.expect(&Kind::Close, "')'")?;
        Ok(Operand::Value(moment))
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

    fn check_depth(&self, depth: usize, token_idx: usize) -> Result<(), ConditionError> {
        if depth < NESTING_MAX {
            Ok(())
        } else {
            Err(ConditionError::TooDeep { place: self.place(token_idx) })
        }
    }
}

fn single_or(mut operands: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match operands.pop() {
        Some(only) if operands.is_empty() => only,
        Some(last) => {
            operands.push(last);
            join(operands)
        }
        None => join(operands),
    }
}

fn negate_if(negated: bool, expression: Expression) -> Expression {
    if negated { Expression::Not(Box::new(expression)) } else { expression }
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
}
