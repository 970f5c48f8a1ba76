//! Expressions over whole numbers of 64 bits and floats.

use std::cmp::Ordering;

use super::heap::numbers;
use super::{Error, Machine};
use crate::code::{Binary, Comparison, Expr, Unary};
use crate::compile::constant;
use crate::term::{Atom, Term};

/// How deep a value that is an expression may be nested.
const NESTING_MAX: u32 = 500;

impl Machine {
    #[inline]
    pub(super) fn compares(&self, comparison: Comparison, left: &Expr, right: &Expr) -> Result<bool, Error> {
        if let (Some(left), Some(right)) = (self.whole(left), self.whole(right)) {
            return Ok(holds(comparison, left.cmp(&right)));
        }
        let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
        Ok(compare(comparison, left, right))
    }

    /// The value of an expression that has whole numbers alone and needs no more than 64 bits, which most are.
    #[inline]
    fn whole(&self, expression: &Expr) -> Option<i64> {
        match expression {
            Expr::Binary(function, operands) => self.whole_binary(*function, operands),
            expression => self.whole_leaf(expression),
        }
    }

    #[inline]
    fn whole_leaf(&self, expression: &Expr) -> Option<i64> {
        let value = match expression {
            Expr::Value(value) => *value,
            Expr::Slot(slot) => self.heap.resolve(self.slot(*slot)),
            _ => return None,
        };
        if let Term::Int(value) = value { Some(value) } else { None }
    }

    #[inline(never)]
    fn whole_binary(&self, function: Binary, operands: &[Expr; 2]) -> Option<i64> {
        // An operand is seldom one with operands of its own: a call for each would cost more than its value.
        let operand = |operand: &Expr| match operand {
            Expr::Binary(function, operands) => self.whole_binary(*function, operands),
            operand => self.whole_leaf(operand),
        };
        let (left, right) = (operand(&operands[0])?, operand(&operands[1])?);
        match function {
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Mod if right > 0 => Some(left.rem_euclid(right)),
            Binary::Min => Some(left.min(right)),
            Binary::Max => Some(left.max(right)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn evaluate(&self, expression: &Expr) -> Result<Term, Error> {
        if let Some(value) = self.whole(expression) {
            return Ok(Term::Int(value));
        }
        match expression {
            Expr::Value(value) => Ok(*value),
            Expr::Slot(slot) => self.value(self.slot(*slot), 0),
            Expr::Unary(function, operand) => unary(*function, self.evaluate(operand)?),
            Expr::Binary(function, operands) => {
                let (left, right) = (self.evaluate(&operands[0])?, self.evaluate(&operands[1])?);
                binary(*function, left, right)
            }
            Expr::Distance(places) => {
                let mut values = [Term::Int(0); 4];
                for (value, place) in values.iter_mut().zip(places.iter()) {
                    *value = self.evaluate(place)?;
                }
                self.distance(values)
            }
            Expr::Unknown(name, arity) => Err(self.unknown(*name, *arity)),
        }
    }

    fn distance(&self, values: [Term; 4]) -> Result<Term, Error> {
        let [from_lon, from_lat, to_lon, to_lat] = values.map(float);
        finite((self.setting.distance)([from_lon, from_lat], [to_lon, to_lat]))
    }

    fn unknown(&self, name: Atom, arity: usize) -> Error {
        let found = format!("{}/{arity}", self.atoms.name(name));
        Error::Type { what: "arithmetic", found, wanted: "a function or a number" }
    }

    /// The number that a term is, as it stands or as an expression.
    pub(super) fn value(&self, term: Term, depth: u32) -> Result<Term, Error> {
        match self.heap.resolve(term) {
            number @ (Term::Int(_) | Term::Float(_)) => Ok(number),
            Term::Var(_) => Err(Error::Unbound("arithmetic")),
            Term::Atom(name) => constant(self.atoms.name(name)).ok_or_else(|| self.unknown(name, 0)),
            Term::Compound(at) => {
                if !self.heap.walk(1) {
                    return Err(Error::Looks(self.setting.bounds.looks));
                }
                if depth == NESTING_MAX {
                    return Err(Error::Number("an expression is nested too deep"));
                }
                let (name, arity) = self.heap.functor(at);
                let operand = |idx| self.value(self.heap.argument(at, idx), depth + 1);
                match arity {
                    1 => unary(
                        Unary::of(self.atoms.name(name)).ok_or_else(|| self.unknown(name, 1))?,
                        operand(0)?,
                    ),
                    2 if name == Atom::DOT && self.heap.argument(at, 1) == Term::Atom(Atom::NIL) => {
                        operand(0)
                    }
                    2 => {
                        let function =
                            Binary::of(self.atoms.name(name)).ok_or_else(|| self.unknown(name, 2))?;
                        binary(function, operand(0)?, operand(1)?)
                    }
                    4 if self.atoms.name(name) == "distance" => {
                        self.distance([operand(0)?, operand(1)?, operand(2)?, operand(3)?])
                    }
                    _ => Err(self.unknown(name, arity)),
                }
            }
            term => unreachable!("{term:?} is only in cells and frames"),
        }
    }
}

pub(super) fn compare(comparison: Comparison, left: Term, right: Term) -> bool {
    if [left, right].iter().any(|number| matches!(number, Term::Float(float) if float.is_nan())) {
        return comparison == Comparison::NotEqual;
    }
    holds(comparison, numbers(left, right))
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Less => order == Ordering::Less,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
    }
}

const OVERFLOW: Error = Error::Number("a whole number is beyond 64 bits");
const BY_ZERO: Error = Error::Number("a division by zero");
const UNDEFINED: Error = Error::Number("a function has no value there");

#[expect(clippy::cast_precision_loss, reason = "floats have 53 bits")]
fn float(number: Term) -> f64 {
    match number {
        Term::Int(number) => number as f64,
        Term::Float(number) => number,
        _ => f64::NAN,
    }
}

fn whole(number: Term) -> Result<i64, Error> {
    match number {
        Term::Int(number) => Ok(number),
        Term::Float(number) => {
            Err(Error::Type { what: "arithmetic", found: format!("{number:?}"), wanted: "a whole number" })
        }
        _ => Err(UNDEFINED),
    }
}

/// A float that is one: no function gives infinities from numbers that are none.
fn finite(number: f64) -> Result<Term, Error> {
    if number.is_nan() {
        return Err(UNDEFINED);
    }
    if number.is_infinite() { Err(Error::Number("a float is too large")) } else { Ok(Term::Float(number)) }
}

fn rounded(number: Term, round: impl Fn(f64) -> f64) -> Result<Term, Error> {
    let Term::Float(number) = number else { return Ok(number) };
    let number = round(number);
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return Err(OVERFLOW);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was looked at")]
    Ok(Term::Int(number as i64))
}

fn unary(function: Unary, operand: Term) -> Result<Term, Error> {
    let checked = |number: Option<i64>| number.map(Term::Int).ok_or(OVERFLOW);
    match (function, operand) {
        (Unary::Minus, Term::Int(number)) => checked(number.checked_neg()),
        (Unary::Minus, operand) => Ok(Term::Float(-float(operand))),
        (Unary::Plus, operand) => Ok(operand),
        (Unary::Not, operand) => Ok(Term::Int(!whole(operand)?)),
        (Unary::Abs, Term::Int(number)) => checked(number.checked_abs()),
        (Unary::Abs, operand) => Ok(Term::Float(float(operand).abs())),
        (Unary::Sign, Term::Int(number)) => Ok(Term::Int(number.signum())),
        (Unary::Sign, operand) => {
            let number = float(operand);
            Ok(Term::Float(if number == 0.0 { 0.0 } else { number.signum() }))
        }
        (Unary::Sqrt, operand) => finite(float(operand).sqrt()),
        (Unary::Sin, operand) => finite(float(operand).sin()),
        (Unary::Cos, operand) => finite(float(operand).cos()),
        (Unary::Tan, operand) => finite(float(operand).tan()),
        (Unary::Asin, operand) => finite(float(operand).asin()),
        (Unary::Acos, operand) => finite(float(operand).acos()),
        (Unary::Atan, operand) => finite(float(operand).atan()),
        (Unary::Exp, operand) => finite(float(operand).exp()),
        (Unary::Log | Unary::Log2, operand) if float(operand) <= 0.0 => Err(UNDEFINED),
        (Unary::Log, operand) => finite(float(operand).ln()),
        (Unary::Log2, operand) => finite(float(operand).log2()),
        (Unary::Float, operand) => finite(float(operand)),
        (Unary::Integer | Unary::Round, operand) => rounded(operand, f64::round),
        (Unary::Truncate, operand) => rounded(operand, f64::trunc),
        (Unary::Floor, operand) => rounded(operand, f64::floor),
        (Unary::Ceiling, operand) => rounded(operand, f64::ceil),
        (Unary::Msb, operand) => match whole(operand)? {
            number @ 1.. => Ok(Term::Int(i64::from(number.ilog2()))),
            _ => Err(UNDEFINED),
        },
        (Unary::FractionalPart, Term::Float(number)) => Ok(Term::Float(number.fract())),
        (Unary::FractionalPart, _) => Ok(Term::Int(0)),
        (Unary::IntegerPart, Term::Float(number)) => Ok(Term::Float(number.trunc())),
        (Unary::IntegerPart, operand) => Ok(operand),
        (Unary::Succ, operand) => checked(whole(operand)?.checked_add(1)),
    }
}

#[inline]
fn binary(function: Binary, left: Term, right: Term) -> Result<Term, Error> {
    if let (Term::Int(left), Term::Int(right)) = (left, right) {
        let fast = match function {
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            _ => return whole_numbers(function, left, right),
        };
        return fast.map(Term::Int).ok_or(OVERFLOW);
    }
    let (x, y) = (float(left), float(right));
    match function {
        Binary::Add => finite(x + y),
        Binary::Subtract => finite(x - y),
        Binary::Multiply => finite(x * y),
        Binary::Divide if y == 0.0 => Err(BY_ZERO),
        Binary::Divide => finite(x / y),
        Binary::Min => Ok(if numbers(left, right).is_le() { left } else { right }),
        Binary::Max => Ok(if numbers(left, right).is_ge() { left } else { right }),
        Binary::Power | Binary::IntPower => finite(x.powf(y)),
        Binary::Atan2 | Binary::Atan => finite(x.atan2(y)),
        Binary::CopySign => finite(x.copysign(y)),
        _ => whole(left).and(whole(right)).and(Err(UNDEFINED)),
    }
}

fn whole_numbers(function: Binary, left: i64, right: i64) -> Result<Term, Error> {
    let by_zero = || if right == 0 { BY_ZERO } else { OVERFLOW };
    let checked = |number: Option<i64>| number.map(Term::Int).ok_or(OVERFLOW);
    match function {
        Binary::Divide => match left.checked_rem(right).ok_or_else(by_zero)? {
            0 => checked(left.checked_div(right)),
            _ => finite(float(Term::Int(left)) / float(Term::Int(right))),
        },
        Binary::IntDivide => left.checked_div(right).map(Term::Int).ok_or_else(by_zero),
        Binary::Rem => left.checked_rem(right).map(Term::Int).ok_or_else(by_zero),
        Binary::Div => {
            let quotient = left.checked_div(right).ok_or_else(by_zero)?;
            let is_below = left % right != 0 && (left < 0) != (right < 0);
            Ok(Term::Int(quotient - i64::from(is_below)))
        }
        Binary::Mod => {
            let remainder = left.checked_rem(right).ok_or_else(by_zero)?;
            Ok(Term::Int(if remainder != 0 && (remainder < 0) != (right < 0) {
                remainder + right
            } else {
                remainder
            }))
        }
        Binary::Min => Ok(Term::Int(left.min(right))),
        Binary::Max => Ok(Term::Int(left.max(right))),
        Binary::Power | Binary::IntPower => power(left, right),
        Binary::ShiftLeft => {
            let bits = u32::try_from(right).ok().filter(|bits| *bits < 63 || left == 0).ok_or(OVERFLOW)?;
            checked(left.checked_mul(1_i64.checked_shl(bits).unwrap_or(0)))
        }
        Binary::ShiftRight => {
            let bits = u32::try_from(right).map_err(|_| UNDEFINED)?;
            Ok(Term::Int(left >> bits.min(63)))
        }
        Binary::And => Ok(Term::Int(left & right)),
        Binary::Or => Ok(Term::Int(left | right)),
        Binary::Xor => Ok(Term::Int(left ^ right)),
        Binary::Gcd => {
            let (mut a, mut b) = (left.unsigned_abs(), right.unsigned_abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            i64::try_from(a).map(Term::Int).map_err(|_| OVERFLOW)
        }
        Binary::Atan2 | Binary::Atan => finite(float(Term::Int(left)).atan2(float(Term::Int(right)))),
        Binary::CopySign => finite(float(Term::Int(left)).copysign(float(Term::Int(right)))),
        Binary::Truncate => Err(UNDEFINED),
        Binary::Add => checked(left.checked_add(right)),
        Binary::Subtract => checked(left.checked_sub(right)),
        Binary::Multiply => checked(left.checked_mul(right)),
    }
}

fn power(base: i64, exponent: i64) -> Result<Term, Error> {
    match (base, exponent) {
        (1, _) => Ok(Term::Int(1)),
        (-1, _) => Ok(Term::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        (0, ..0) => Err(BY_ZERO),
        (_, ..0) => Err(UNDEFINED),
        (0, _) => Ok(Term::Int(i64::from(exponent == 0))),
        _ => u32::try_from(exponent)
            .ok()
            .and_then(|exponent| base.checked_pow(exponent))
            .map(Term::Int)
            .ok_or(OVERFLOW),
    }
}
