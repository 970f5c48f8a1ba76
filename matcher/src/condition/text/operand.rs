//! Values: arithmetic, attributes and literals.

use super::lexer::{Keyword, Kind};
use super::{CONDITION, OPERATIONS_MAX, Parsed, Parser, QUOTES, Scope, VALUE};
use crate::condition::error::ConditionError;
use crate::event::{Scalar, Symbol};
use crate::predicate::node::{Attribute, Operand, Operator};

impl Parser<'_> {
    /// A value, with arithmetic.
    pub(super) fn value(&mut self) -> Result<Operand, ConditionError> {
        let start = self.next;
        match self.sum(VALUE)? {
            Parsed::Value(value) => Ok(value),
            Parsed::Truth(_) => Err(self.unsupported(start, "a condition in the place of a value", None)),
        }
    }

    /// `product {(+|-) product}`
    pub(super) fn sum(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let start = self.next;
        let mut sum = self.product(expected)?;
        while let Some(&Kind::Arithmetic(operator @ (Operator::Add | Operator::Subtract))) = self.peek() {
            sum = self.operation(sum, operator, start, Self::product)?;
        }
        Ok(sum)
    }

    /// `power {(*|/|%|div) power}`
    fn product(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let start = self.next;
        let mut product = self.power(expected)?;
        while let Some(operator) = self.peek_multiplying() {
            product = self.operation(product, operator, start, Self::power)?;
        }
        Ok(product)
    }

    fn peek_multiplying(&self) -> Option<Operator> {
        match self.peek() {
            Some(&Kind::Arithmetic(
                operator @ (Operator::Multiply | Operator::Divide | Operator::Remainder),
            )) => Some(operator),
            Some(Kind::Name { name, quoted: false }) if name.eq_ignore_ascii_case("div") => {
                Some(Operator::IntegerDivide)
            }
            _ => None,
        }
    }

    /// `factor [^ factor]`: a second `^` needs parentheses, in CQL2 as here.
    fn power(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let start = self.next;
        let base = self.factor_of_product(expected)?;
        if self.peek() != Some(&Kind::Arithmetic(Operator::Power)) {
            return Ok(base);
        }
        let power = self.operation(base, Operator::Power, start, Self::factor_of_product)?;
        if self.peek() == Some(&Kind::Arithmetic(Operator::Power)) {
            return Err(self.advise("another operator", "powers of powers take parentheses"));
        }
        Ok(power)
    }

    /// An operator and its right side; numbers are worked out at once where that has a result.
    fn operation(
        &mut self,
        left: Parsed,
        operator: Operator,
        start: usize,
        right: fn(&mut Self, &'static str) -> Result<Parsed, ConditionError>,
    ) -> Result<Parsed, ConditionError> {
        let place = self.next;
        self.next += 1;
        self.operations += 1;
        if self.operations > OPERATIONS_MAX {
            return Err(ConditionError::TooManyOperations { place: self.place(place) });
        }
        let right_start = self.next;
        let right = right(self, VALUE)?;
        match (left, right) {
            (Parsed::Value(left), Parsed::Value(right)) => {
                Ok(Parsed::Value(Operand::arithmetic(operator, left, right)))
            }
            (left, _) => {
                let start = if matches!(left, Parsed::Truth(_)) { start } else { right_start };
                Err(self.unsupported(start, "arithmetic with conditions", None))
            }
        }
    }

    /// `[-] primary`; a sign before a number belongs to it.
    pub(super) fn factor_of_product(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let start = self.next;
        let negative = match (self.peek(), self.peek_second()) {
            (Some(Kind::Arithmetic(Operator::Subtract)), _) => true,
            (Some(Kind::Arithmetic(Operator::Add)), Some(Kind::Number(_))) => false,
            _ => return self.primary(expected),
        };
        self.next += 1;
        let number = if let Some(&Kind::Number(number)) = self.peek() { Some(number) } else { None };
        if let Some(number) = number {
            self.next += 1;
            return Ok(Parsed::Value(Scalar::Number(if negative { -number } else { number }).into()));
        }
        match self.primary(VALUE)? {
            Parsed::Value(value) => Ok(Parsed::Value(Operand::negated(value))),
            Parsed::Truth(_) => Err(self.unsupported(start, "arithmetic with conditions", None)),
        }
    }

    /// A literal, an attribute, a call, or something in parentheses.
    fn primary(&mut self, expected: &'static str) -> Result<Parsed, ConditionError> {
        let place = self.next;
        let scalar = match self.peek() {
            Some(Kind::Open) => {
                self.next += 1;
                self.enter(place)?;
                let inner = self.disjunction(expected)?;
                self.depth -= 1;
                let expected = match inner {
                    Parsed::Truth(_) => "AND, OR or ')'",
                    Parsed::Value(_) => "an operator or ')'",
                };
                self.expect(&Kind::Close, expected)?;
                return Ok(inner);
            }
            Some(Kind::Name { name, quoted: false }) if self.peek_second() == Some(&Kind::Open) => {
                let name = name.clone();
                return self.call(&name, expected);
            }
            Some(Kind::Name { .. }) => return self.attribute().map(Operand::Attribute).map(Parsed::Value),
            Some(Kind::Text(text)) => Scalar::Text(Symbol::from(text.as_str())),
            Some(&Kind::Number(number)) => Scalar::Number(number),
            Some(Kind::Keyword(Keyword::True)) => Scalar::Bool(true),
            Some(Kind::Keyword(Keyword::False)) => Scalar::Bool(false),
            Some(Kind::Keyword(_)) if expected == CONDITION => {
                return Err(self.advise(expected, "a name that is a keyword takes double quotes"));
            }
            Some(Kind::Keyword(Keyword::Null)) => {
                return Err(self.advise(expected, "whether an attribute is absent is asked with IS NULL"));
            }
            _ => return Err(self.wrong(expected)),
        };
        self.next += 1;
        Ok(Parsed::Value(scalar.into()))
    }

    /// The attribute that a name stands for.
    pub(super) fn attribute(&mut self) -> Result<Attribute, ConditionError> {
        let place = self.next;
        let Some(Kind::Name { name, quoted }) = self.peek() else {
            return Err(self.wrong("an attribute"));
        };
        let (mut name, quoted) = (name.clone(), *quoted);
        self.next += 1;
        let Scope::Variables(variables) = self.scope else {
            return Ok(Attribute { variable: 0, name: Symbol::new(name) });
        };
        // `a."two words"`
        if !quoted
            && name.ends_with('.')
            && self.is_adjacent()
            && let Some(Kind::Name { name: rest, quoted: true }) = self.peek()
        {
            name.push_str(rest);
            self.next += 1;
        }
        let (variable, attribute) = match name.split_once('.') {
            Some((variable, attribute)) if !attribute.is_empty() => (variable, attribute),
            _ => {
                let advice = if quoted { QUOTES } else { "an attribute is written variable.attribute" };
                return Err(self.unsupported(
                    place,
                    format!("the name {name:?} without a variable"),
                    Some(advice),
                ));
            }
        };
        let variable = self.variable_idx(place, variable, variables)?;
        Ok(Attribute { variable, name: Symbol::from(attribute) })
    }

    /// Whether nothing stands between the last token and the next.
    fn is_adjacent(&self) -> bool {
        let end = self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map(|token| token.span.end);
        end.is_some() && end == self.tokens.get(self.next).map(|token| token.span.start)
    }

    /// The index of a variable by its name.
    pub(super) fn variable_idx(
        &self,
        token_idx: usize,
        name: &str,
        variables: &[&str],
    ) -> Result<usize, ConditionError> {
        variables.iter().position(|known| *known == name).ok_or_else(|| ConditionError::UnknownVariable {
            found: super::lexer::shorten(name).into_owned(),
            place: self.place(token_idx),
            meant: super::misses::nearest(name, variables.iter().copied()).map(str::to_owned),
        })
    }
}
