//! Constraints compiled to words, as they stand in records.
//!
//! A constraint is one word with the attribute's name, the operator and whether it is negated, and then its
//! values, one word each. The common operators are tested here; the others refer to the constraint as it was written,
//! held once however many filters share it.

use super::paged::Slab;
use super::symbols::Symbols;
use super::table::NumberTable;
use super::view::{Kind, View};
use crate::condition::expression::{Comparison, Constraint, Test, Truth};
use crate::condition::normal::Literal;
use crate::event::{Event, Scalar, Value};

const NEGATED: u64 = 1 << 40;

/// What a constraint's word says to do; the words that follow it are `values` of its `Op::values_count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Number(Comparison),
    NumberBetween,
    TextEqual,
    TextNotEqual,
    IsNull,
    /// Anything else: the word holds the number of the written constraint.
    Written,
}

const OPS: [Op; 11] = [
    Op::Number(Comparison::Equal),
    Op::Number(Comparison::NotEqual),
    Op::Number(Comparison::Less),
    Op::Number(Comparison::LessOrEqual),
    Op::Number(Comparison::Greater),
    Op::Number(Comparison::GreaterOrEqual),
    Op::NumberBetween,
    Op::TextEqual,
    Op::TextNotEqual,
    Op::IsNull,
    Op::Written,
];

impl Op {
    fn code(self) -> u64 {
        OPS.iter().position(|op| *op == self).map_or(0, |code| code as u64) << 32
    }

    #[inline]
    fn of(word: u64) -> Self {
        OPS[(word >> 32 & 0xff) as usize % OPS.len()]
    }

    #[inline]
    fn values_count(self) -> usize {
        match self {
            Self::IsNull => 0,
            Self::Number(_) | Self::TextEqual | Self::TextNotEqual | Self::Written => 1,
            Self::NumberBetween => 2,
        }
    }
}

/// Compiles and tests constraints.
#[derive(Debug)]
pub(super) struct Constraints {
    written: Slab<Option<Written>>,
    written_by_hash: NumberTable,
}

#[derive(Debug)]
struct Written {
    constraint: Constraint,
    uses: u32,
}

impl Constraints {
    pub(super) fn new() -> Self {
        Self { written: Slab::new(), written_by_hash: NumberTable::new() }
    }

    /// The words of a conjunction, with a use of each of its names and texts; `None` when numbers are used up.
    pub(super) fn acquire(
        &mut self,
        conjunction: &[Literal],
        names: &mut Symbols,
        texts: &mut Symbols,
    ) -> Option<Vec<u64>> {
        let mut words = Vec::with_capacity(conjunction.len() * 2);
        for literal in conjunction {
            if self.compile(literal, names, texts, &mut words).is_none() {
                self.release(&words, names, texts);
                return None;
            }
        }
        Some(words)
    }

    /// Whether the event satisfies every constraint.
    #[inline]
    pub(super) fn satisfied(&self, words: &[u64], view: &View, event: &Event, texts: &Symbols) -> bool {
        let mut at = 0;
        while at < words.len() {
            let word = words[at];
            let op = Op::of(word);
            let values = &words[at + 1..at + 1 + op.values_count()];
            at += 1 + values.len();
            if !self.literal_satisfied(word, op, values, view, event, texts) {
                return false;
            }
        }
        true
    }

    #[inline]
    fn literal_satisfied(
        &self,
        word: u64,
        op: Op,
        values: &[u64],
        view: &View,
        event: &Event,
        texts: &Symbols,
    ) -> bool {
        let negated = word & NEGATED != 0;
        let Some(attribute) = view.attribute(name_of(word)) else {
            return op == Op::IsNull && !negated;
        };
        let truth = match (op, attribute.kind) {
            (Op::IsNull, _) => return negated,
            (Op::Number(comparison), Kind::Number) => {
                compare_numbers(comparison, attribute.number(), f64::from_bits(values[0]))
            }
            (Op::NumberBetween, Kind::Number) => {
                let number = attribute.number();
                number >= f64::from_bits(values[0]) && number <= f64::from_bits(values[1])
            }
            (Op::TextEqual, Kind::Text) => attribute.bits == values[0],
            (Op::TextNotEqual, Kind::Text) => attribute.bits != values[0],
            (Op::Written, Kind::Number | Kind::Text | Kind::Bool) => {
                let constraint = self.written(values[0]);
                match constraint.truth(Some(&event.attributes[attribute.source as usize].value)) {
                    Truth::True => true,
                    Truth::False => false,
                    Truth::Unknown => return false,
                }
            }
            (_, Kind::Array) => {
                self.any_element(op, values, &event.attributes[attribute.source as usize].value, texts)
            }
            (Op::Number(_) | Op::NumberBetween | Op::TextEqual | Op::TextNotEqual, _) => return false,
        };
        truth != negated
    }

    /// Whether one element of an array makes the constraint true.
    fn any_element(&self, op: Op, values: &[u64], array: &Value, texts: &Symbols) -> bool {
        if op == Op::Written {
            return self.written(values[0]).truth(Some(array)) == Truth::True;
        }
        array.elements().iter().any(|element| match (op, element) {
            (Op::Number(comparison), Scalar::Number(number)) => {
                compare_numbers(comparison, *number, f64::from_bits(values[0]))
            }
            (Op::NumberBetween, Scalar::Number(number)) => {
                *number >= f64::from_bits(values[0]) && *number <= f64::from_bits(values[1])
            }
            (Op::TextEqual, Scalar::Text(text)) => *text == *texts.symbol(low_half(values[0])),
            (Op::TextNotEqual, Scalar::Text(text)) => *text != *texts.symbol(low_half(values[0])),
            _ => false,
        })
    }

    /// Appends the words of a literal, with a use of each name and text. The words of a literal that cannot be
    /// compiled are not appended.
    fn compile(
        &mut self,
        literal: &Literal,
        names: &mut Symbols,
        texts: &mut Symbols,
        words: &mut Vec<u64>,
    ) -> Option<()> {
        let constraint = &literal.constraint;
        let mut values = [0; 2];
        let op = match &constraint.test {
            Test::Compare(comparison, Scalar::Number(number)) => {
                values[0] = number.to_bits();
                Op::Number(*comparison)
            }
            Test::Compare(Comparison::Equal, Scalar::Text(text)) if !constraint.casei => {
                values[0] = u64::from(texts.acquire(text)?);
                Op::TextEqual
            }
            Test::Compare(Comparison::NotEqual, Scalar::Text(text)) if !constraint.casei => {
                values[0] = u64::from(texts.acquire(text)?);
                Op::TextNotEqual
            }
            Test::Between(Scalar::Number(low), Scalar::Number(high)) => {
                values = [low.to_bits(), high.to_bits()];
                Op::NumberBetween
            }
            Test::IsNull => Op::IsNull,
            Test::Compare(..) | Test::Between(..) | Test::In(_) | Test::Like(_) => {
                values[0] = u64::from(self.acquire_written(constraint)?);
                Op::Written
            }
        };
        let negated = if literal.negated { NEGATED } else { 0 };
        let Some(name) = names.acquire(&constraint.name) else {
            self.release_values(op, &values, texts);
            return None;
        };
        words.push(u64::from(name) | op.code() | negated);
        words.extend(&values[..op.values_count()]);
        Some(())
    }

    /// One use less of each name, text and written constraint.
    pub(super) fn release(&mut self, words: &[u64], names: &mut Symbols, texts: &mut Symbols) {
        let mut at = 0;
        while at < words.len() {
            let op = Op::of(words[at]);
            names.release(name_of(words[at]));
            self.release_values(op, &words[at + 1..at + 1 + op.values_count()], texts);
            at += 1 + op.values_count();
        }
    }

    fn release_values(&mut self, op: Op, values: &[u64], texts: &mut Symbols) {
        match op {
            Op::TextEqual | Op::TextNotEqual => texts.release(low_half(values[0])),
            Op::Written => self.release_written(low_half(values[0])),
            Op::Number(_) | Op::NumberBetween | Op::IsNull => {}
        }
    }

    fn written(&self, number: u64) -> &Constraint {
        &self.written[low_half(number)]
            .as_ref()
            .expect("a written constraint is held while words refer to it")
            .constraint
    }

    fn acquire_written(&mut self, constraint: &Constraint) -> Option<u32> {
        let hash = hash_constraint(constraint);
        let is_it =
            |number: &u32| self.written[*number].as_ref().is_some_and(|held| held.constraint == *constraint);
        if let Some(number) = self.written_by_hash.find(hash, is_it) {
            if let Some(held) = &mut self.written[number] {
                held.uses += 1;
            }
            return Some(number);
        }
        let number = self.written.insert(Some(Written { constraint: constraint.clone(), uses: 1 }))?;
        let written = &self.written;
        self.written_by_hash.insert(hash, number, |other| {
            written[*other].as_ref().map_or(0, |held| hash_constraint(&held.constraint))
        });
        Some(number)
    }

    fn release_written(&mut self, number: u32) {
        let Some(held) = &mut self.written[number] else { return };
        held.uses -= 1;
        if held.uses == 0 {
            let hash = hash_constraint(&held.constraint);
            self.written_by_hash.remove(hash, number);
            self.written.remove(number);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.written.bytes() + self.written_by_hash.bytes()
    }
}

#[inline]
fn compare_numbers(comparison: Comparison, a: f64, b: f64) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::Greater => a > b,
        Comparison::GreaterOrEqual => a >= b,
    }
}

#[inline]
fn name_of(word: u64) -> u32 {
    low_half(word)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low_half(word: u64) -> u32 {
    word as u32
}

/// Constraints come from the filters' owners, so whoever finds collisions slows down installs, not matching.
fn mix(word: u64) -> u64 {
    let product = u128::from(word) * 0x9e37_79b9_7f4a_7c15;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

fn hash_constraint(constraint: &Constraint) -> u64 {
    let start = constraint.name.hash() ^ u64::from(constraint.casei);
    match &constraint.test {
        Test::Compare(comparison, scalar) => mix(mix(start ^ *comparison as u64) ^ hash_scalar(scalar)),
        Test::Between(low, high) => mix(mix(start ^ hash_scalar(low)) ^ hash_scalar(high)),
        Test::In(scalars) => scalars.iter().fold(mix(start), |hash, scalar| mix(hash ^ hash_scalar(scalar))),
        Test::Like(pattern) => mix(start ^ crate::event::Symbol::new(pattern.as_str()).hash()),
        Test::IsNull => mix(start),
    }
}

fn hash_scalar(scalar: &Scalar) -> u64 {
    match scalar {
        // Zero equals minus zero.
        Scalar::Number(number) => mix((number + 0.0).to_bits()),
        Scalar::Text(text) => text.hash(),
        Scalar::Bool(truth) => u64::from(*truth) + 1,
    }
}
