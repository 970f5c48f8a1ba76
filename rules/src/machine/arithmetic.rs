//! Expressions over whole numbers of 64 bits and floats.

use std::cmp::Ordering;

use super::{Error, Machine};
use crate::code::{Binary, Comparison, Expr, Unary};
use crate::compile::constant;
use crate::syntax;
use crate::term::{Atom, Term};

/// How deep a value that is an expression may be nested.
const NESTING_MAX: u32 = 500;

impl Machine {
    #[inline]
    pub(super) fn compares(&self, comparison: Comparison, left: &Expr, right: &Expr) -> Result<bool, Error> {
        if let (Some(left), Some(right)) = (self.whole(left), self.whole(right)) {
            return Ok(holds(comparison, left, right));
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
                // The right operand first: of two without values the peer reports that one.
                let right = self.evaluate(&operands[1])?;
                binary(*function, self.evaluate(&operands[0])?, right)
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
        finite_term((self.setting.distance)([from_lon, from_lat], [to_lon, to_lat]))
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
                        let right = operand(1)?;
                        binary(function, operand(0)?, right)
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

/// Compares two numbers by their values. A whole number is rounded to a float where the other one is a float.
fn compare(comparison: Comparison, left: Term, right: Term) -> bool {
    match (left, right) {
        (Term::Int(left), Term::Int(right)) => holds(comparison, left, right),
        _ => holds(comparison, float(left), float(right)),
    }
}

#[inline]
fn holds<N: PartialOrd>(comparison: Comparison, left: N, right: N) -> bool {
    match comparison {
        Comparison::Less => left < right,
        Comparison::Greater => left > right,
        Comparison::LessOrEqual => left <= right,
        Comparison::GreaterOrEqual => left >= right,
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
    }
}

const OVERFLOW: Error = Error::Number("a whole number is beyond 64 bits");
const BY_ZERO: Error = Error::Number("a division by zero");
const UNDEFINED: Error = Error::Number("a function has no value there");
const TOO_LARGE: Error = Error::Number("a float is too large");

#[expect(clippy::cast_precision_loss, reason = "floats have 53 bits")]
fn float(number: Term) -> f64 {
    match number {
        Term::Int(number) => number as f64,
        Term::Float(number) => number,
        _ => f64::NAN,
    }
}

/// A float that is a finite number. Few functions take others, and few give them.
fn finite(number: f64) -> Result<f64, Error> {
    match number {
        number if number.is_nan() => Err(UNDEFINED),
        number if number.is_infinite() => Err(TOO_LARGE),
        number => Ok(number),
    }
}

fn finite_term(number: f64) -> Result<Term, Error> {
    finite(number).map(Term::Float)
}

/// A function of floats, for finite numbers.
fn of_float(operand: Term, function: impl Fn(f64) -> f64) -> Result<Term, Error> {
    finite_term(function(finite(float(operand))?))
}

fn whole(number: Term) -> Result<i64, Error> {
    match number {
        Term::Int(number) => Ok(number),
        number => {
            let found = syntax::float(finite(float(number))?);
            Err(Error::Type { what: "arithmetic", found, wanted: "a whole number" })
        }
    }
}

/// A whole number; none is one beyond 64 bits.
pub(super) fn checked(number: Option<i64>) -> Result<Term, Error> {
    number.map(Term::Int).ok_or(OVERFLOW)
}

fn rounded(number: Term, round: impl Fn(f64) -> f64) -> Result<Term, Error> {
    let Term::Float(number) = number else { return Ok(number) };
    let number = round(number);
    if !number.is_finite() {
        return Ok(Term::Float(number));
    }
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return Err(OVERFLOW);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was looked at")]
    Ok(Term::Int(number as i64))
}

fn unary(function: Unary, operand: Term) -> Result<Term, Error> {
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
        (Unary::Sqrt, operand) => of_float(operand, f64::sqrt),
        (Unary::Sin, operand) => of_float(operand, f64::sin),
        (Unary::Cos, operand) => of_float(operand, f64::cos),
        (Unary::Tan, operand) => of_float(operand, f64::tan),
        (Unary::Asin, operand) => of_float(operand, f64::asin),
        (Unary::Acos, operand) => of_float(operand, f64::acos),
        (Unary::Atan, operand) => of_float(operand, f64::atan),
        (Unary::Exp, operand) => of_float(operand, f64::exp),
        (Unary::Log, operand) => of_float(operand, f64::ln),
        (Unary::Log2, operand) => of_float(operand, f64::log2),
        (Unary::Float, operand) => finite_term(float(operand)),
        (Unary::Integer | Unary::Round, operand) => rounded(operand, f64::round),
        (Unary::Truncate, operand) => rounded(operand, f64::trunc),
        (Unary::Floor, operand) => rounded(operand, f64::floor),
        (Unary::Ceiling, operand) => rounded(operand, f64::ceil),
        (Unary::Msb, operand) => match whole(operand)? {
            number @ 1.. => Ok(Term::Int(i64::from(number.ilog2()))),
            _ => Err(UNDEFINED),
        },
        (Unary::FractionalPart, Term::Int(_)) => Ok(Term::Int(0)),
        (Unary::FractionalPart, operand) => {
            let number = float(operand);
            let fraction = if number.is_infinite() { 0.0 } else { number.fract() };
            finite_term(fraction.copysign(number))
        }
        (Unary::IntegerPart, Term::Int(_)) => Ok(operand),
        (Unary::IntegerPart, operand) => of_float(operand, f64::trunc),
        (Unary::Succ, operand) => checked(whole(operand)?.checked_add(1)),
    }
}

#[inline]
fn binary(function: Binary, left: Term, right: Term) -> Result<Term, Error> {
    if let (Term::Int(left), Term::Int(right)) = (left, right) {
        return whole_numbers(function, left, right);
    }
    let (x, y) = (float(left), float(right));
    match function {
        Binary::Add => finite_term(x + y),
        Binary::Subtract => finite_term(x - y),
        Binary::Multiply => finite_term(x * y),
        Binary::Divide if y == 0.0 => Err(if finite(x)? == 0.0 { UNDEFINED } else { BY_ZERO }),
        Binary::Divide if y.is_infinite() && matches!(left, Term::Int(_)) => Ok(Term::Int(0)),
        Binary::Divide if y.is_infinite() => finite_term(x / y),
        Binary::Divide => finite_term(finite(x)? / y),
        Binary::Min | Binary::Max => extreme(function, left, right),
        Binary::Power | Binary::IntPower => float_power(left, right),
        Binary::Atan2 | Binary::Atan => finite_term(finite(x)?.atan2(finite(y)?)),
        Binary::CopySign => copy_sign(left, y),
        _ => whole_numbers(function, whole(left)?, whole(right)?),
    }
}

fn whole_numbers(function: Binary, left: i64, right: i64) -> Result<Term, Error> {
    let by_zero = || if right == 0 { BY_ZERO } else { OVERFLOW };
    // The quotient of the smallest number and -1 is beyond 64 bits, and the remainder is not.
    let remainder = || if right == 0 { Err(BY_ZERO) } else { Ok(left.wrapping_rem(right)) };
    match function {
        Binary::Add => checked(left.checked_add(right)),
        Binary::Subtract => checked(left.checked_sub(right)),
        Binary::Multiply => checked(left.checked_mul(right)),
        Binary::Divide => match remainder()? {
            0 => checked(left.checked_div(right)),
            _ => finite_term(float(Term::Int(left)) / float(Term::Int(right))),
        },
        Binary::IntDivide => left.checked_div(right).map(Term::Int).ok_or_else(by_zero),
        Binary::Rem => remainder().map(Term::Int),
        Binary::Div => {
            let quotient = left.checked_div(right).ok_or_else(by_zero)?;
            let is_below = left % right != 0 && (left < 0) != (right < 0);
            Ok(Term::Int(quotient - i64::from(is_below)))
        }
        Binary::Mod => {
            let remainder = remainder()?;
            let is_other = remainder != 0 && (remainder < 0) != (right < 0);
            Ok(Term::Int(if is_other { remainder + right } else { remainder }))
        }
        Binary::Min => Ok(Term::Int(left.min(right))),
        Binary::Max => Ok(Term::Int(left.max(right))),
        Binary::Power | Binary::IntPower => power(left, right),
        Binary::ShiftLeft => shift(left, right),
        Binary::ShiftRight => shift(left, right.saturating_neg()),
        Binary::And => Ok(Term::Int(left & right)),
        Binary::Or => Ok(Term::Int(left | right)),
        Binary::Xor => Ok(Term::Int(left ^ right)),
        Binary::Gcd => {
            let (mut a, mut b) = (left.unsigned_abs(), right.unsigned_abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            checked(i64::try_from(a).ok())
        }
        Binary::Atan2 | Binary::Atan => finite_term(float(Term::Int(left)).atan2(float(Term::Int(right)))),
        Binary::CopySign => copy_sign(Term::Int(left), float(Term::Int(right))),
    }
}

/// The lesser or the greater one of two numbers of which one is a float.
fn extreme(function: Binary, left: Term, right: Term) -> Result<Term, Error> {
    let (x, y) = (float(left), float(right));
    let is_left = match x.partial_cmp(&y) {
        // Of a number and what is none it is the number.
        None => y.is_nan(),
        // Of two that are equal it is the float, and of two zeros the one with the sign.
        Some(Ordering::Equal) if x.is_sign_negative() == y.is_sign_negative() => return finite_term(x),
        Some(Ordering::Equal) => x.is_sign_negative() == (function == Binary::Min),
        Some(order) => order.is_lt() == (function == Binary::Min),
    };
    Ok(if is_left { left } else { right })
}

/// A number with a sign. It stays a whole number.
fn copy_sign(number: Term, sign: f64) -> Result<Term, Error> {
    match number {
        Term::Int(number) if (number < 0) != sign.is_sign_negative() => checked(number.checked_neg()),
        Term::Float(number) => Ok(Term::Float(number.copysign(sign))),
        number => Ok(number),
    }
}

/// Shifts to the left, or to the right by a negative number.
fn shift(number: i64, bits: i64) -> Result<Term, Error> {
    if bits < 0 {
        return Ok(Term::Int(number >> bits.unsigned_abs().min(63)));
    }
    if number == 0 {
        return Ok(Term::Int(0));
    }
    let shifted = u32::try_from(bits).ok().and_then(|bits| number.checked_shl(bits));
    checked(shifted.filter(|shifted| shifted >> bits == number))
}

fn power(base: i64, exponent: i64) -> Result<Term, Error> {
    match (base, exponent) {
        (1, _) => Ok(Term::Int(1)),
        (-1, _) => Ok(Term::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        (0, ..0) => Err(BY_ZERO),
        (_, ..0) => finite_term(float(Term::Int(base)).powf(float(Term::Int(exponent)))),
        (0, _) => Ok(Term::Int(i64::from(exponent == 0))),
        _ => checked(u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent))),
    }
}

/// A power of which the base or the exponent is a float. Where the answer is 0 or 1 for any float it is a whole number.
fn float_power(base: Term, exponent: Term) -> Result<Term, Error> {
    let (x, y) = (float(base), float(exponent));
    match base {
        _ if y == 0.0 => Ok(Term::Int(1)),
        Term::Int(1) => Ok(Term::Int(1)),
        Term::Int(0) if y > 0.0 => Ok(Term::Int(0)),
        Term::Int(0) if y < 0.0 => Err(BY_ZERO),
        _ => match (finite(x)?, finite(y)?) {
            (0.0, ..0.0) => Err(BY_ZERO),
            (x, y) => finite_term(x.powf(y)),
        },
    }
}
