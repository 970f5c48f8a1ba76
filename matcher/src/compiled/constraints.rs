//! Constraints compiled to words, as they stand in records.
//!
//! A constraint is one word with the attribute's name, the operator and whether it is negated, and then its
//! values, one word each. The common operators are tested here; the others refer to the constraint as it was written,
//! held once however many filters share it.

use std::cmp::Ordering;

use super::codes::Interval;
use super::names::Names;
use super::slab::Slab;
use super::table::NumberTable;
use super::texts::Texts;
use super::view::{Kind, Viewed, ViewedAttribute};
use crate::condition::expression::{Comparand, Comparison, Constraint, Residual, Test, Truth};
use crate::condition::normal::{Conjunction, Literal, ResidualLiteral};
use crate::event::{Scalar, Symbol, Value, process_key};
use crate::geo::Position;

/// Set when the negation of the constraint has to be true.
const NEGATED: u64 = 1 << 40;
/// From this bit on: whether a number that is less, equal or greater is accepted.
const ACCEPTS_BIT: u32 = 41;

/// Operation of a constraint's word; `Op::values_count` words follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// Compares with a number; the word tells which outcomes are accepted.
    Number,
    NumberBetween,
    TextEqual,
    TextNotEqual,
    IsNull,
    /// Any other constraint: the value is its number as it was written.
    Written,
    /// A residual: the value is its number as it was written. It has no name of its own; those that it requires stand before it, each
    /// as a constraint that it is there.
    Residual,
}

/// Operations by code, filled up so that the bounds need no check.
const OPS: [Op; 8] = [
    Op::Number,
    Op::NumberBetween,
    Op::TextEqual,
    Op::TextNotEqual,
    Op::IsNull,
    Op::Written,
    Op::Residual,
    Op::Residual,
];

impl Op {
    fn bits(self) -> u64 {
        OPS.iter().position(|op| *op == self).map_or(0, |code| code as u64) << 32
    }

    #[inline]
    fn of(word: u64) -> Self {
        OPS[(word >> 32 & 7) as usize]
    }

    #[inline]
    fn values_count(self) -> usize {
        match self {
            Self::IsNull => 0,
            Self::Number | Self::TextEqual | Self::TextNotEqual | Self::Written | Self::Residual => 1,
            Self::NumberBetween => 2,
        }
    }
}

/// The outcomes that a comparison accepts.
fn accepts(comparison: Comparison) -> u64 {
    let outcomes = [Ordering::Less, Ordering::Equal, Ordering::Greater];
    let accepted = (0..).zip(outcomes).filter(|(_, outcome)| comparison.accepts(*outcome));
    accepted.fold(0, |bits, (index, _)| bits | 1 << (ACCEPTS_BIT + index))
}

/// Whether a word's comparison accepts the outcome for these finite numbers; without a branch.
#[inline]
fn accepted(word: u64, number: f64, value: u64) -> bool {
    let value = f64::from_bits(value);
    let outcome =
        u64::from(number < value) | u64::from(number == value) << 1 | u64::from(number > value) << 2;
    word >> ACCEPTS_BIT & outcome != 0
}

/// Bounds of a value that satisfies a constraint.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The number of the attribute's name.
    pub name: u32,
    /// Whether the attribute has to be there: for all but `IS NULL`.
    pub requires_presence: bool,
    /// Where the codes of satisfying scalars are.
    pub interval: Interval,
    /// Whether a scalar strictly inside of the interval satisfies it.
    pub complete: bool,
    /// The only scalar that satisfies it.
    pub equal: Option<(Kind, u64)>,
}

/// The bounds of compiled constraints, one by one. Residuals have none.
pub fn bounds(words: &[u64]) -> impl Iterator<Item = Bound> + '_ {
    parts(words).filter(|(_, op, _)| *op != Op::Residual).map(|(word, op, values)| bound(word, op, values))
}

/// Whether there is a residual, so that no bounds are all of it.
#[must_use]
pub fn has_residual(words: &[u64]) -> bool {
    parts(words).any(|(_, op, _)| op == Op::Residual)
}

/// The words one by one, each with its operation and its values.
fn parts(mut words: &[u64]) -> impl Iterator<Item = (u64, Op, &[u64])> {
    std::iter::from_fn(move || {
        let [word, rest @ ..] = words else { return None };
        let op = Op::of(*word);
        let (values, rest) = rest.split_at(op.values_count());
        words = rest;
        Some((*word, op, values))
    })
}

fn bound(word: u64, op: Op, values: &[u64]) -> Bound {
    let negated = word & NEGATED != 0;
    let (interval, complete, equal) = match op {
        Op::Number => {
            // For a scalar, the negation accepts the other outcomes.
            let outcomes = word >> ACCEPTS_BIT & 0b111 ^ if negated { 0b111 } else { 0 };
            let number = f64::from_bits(values[0]);
            match outcomes {
                0b001 | 0b011 => (Interval::at_most(number), true, None),
                0b100 | 0b110 => (Interval::at_least(number), true, None),
                0b010 => {
                    let equal = (!negated).then_some((Kind::Number, (number + 0.0).to_bits()));
                    (Interval::between(number, number), true, equal)
                }
                _ => (Interval::NUMBERS, false, None),
            }
        }
        Op::NumberBetween if !negated => {
            (Interval::between(f64::from_bits(values[0]), f64::from_bits(values[1])), true, None)
        }
        Op::NumberBetween => (Interval::NUMBERS, false, None),
        Op::TextEqual if !negated => (Interval::text(values[0]), false, Some((Kind::Text, values[0]))),
        Op::IsNull => (Interval::VALUES, negated, None),
        Op::TextEqual | Op::TextNotEqual | Op::Written | Op::Residual => (Interval::VALUES, false, None),
    };
    Bound { name: name_of(word), requires_presence: op != Op::IsNull || negated, interval, complete, equal }
}

/// Compiles and tests constraints.
#[derive(Debug, Default)]
pub struct Constraints {
    written: Slab<Option<Written>>,
    written_by_hash: NumberTable,
}

#[derive(Debug)]
struct Written {
    test: WrittenTest,
    uses: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum WrittenTest {
    Constraint(Constraint),
    Residual(Residual),
}

impl WrittenTest {
    fn hash(&self) -> u64 {
        match self {
            Self::Constraint(constraint) => hash_constraint(constraint),
            Self::Residual(residual) => residual.hash(),
        }
    }
}

impl Constraints {
    /// None written down yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The words of a conjunction, with a use of each of its names and texts; `None` when numbers are used up.
    pub fn acquire<P: Default>(
        &mut self,
        conjunction: &Conjunction,
        names: &mut Names<P>,
        texts: &mut Texts,
    ) -> Option<Vec<u64>> {
        let Conjunction { literals, residuals } = conjunction;
        let mut words = Vec::with_capacity((literals.len() + residuals.len()) * 2);
        let compiled =
            literals.iter().try_for_each(|literal| self.compile(literal, names, texts, &mut words));
        let compiled = compiled.and_then(|()| {
            residuals.iter().try_for_each(|literal| self.compile_residual(literal, names, &mut words))
        });
        if compiled.is_none() {
            self.release(&words, names, texts);
            return None;
        }
        Some(words)
    }

    /// Whether the event satisfies every constraint of these compiled words. `client` is asked where the client is, by what depends on that.
    #[inline]
    #[must_use]
    pub fn satisfied<'a>(
        &self,
        mut words: &[u64],
        viewed: &Viewed<'_>,
        texts: &Texts,
        client: impl Fn() -> Option<&'a Position>,
    ) -> bool {
        while let [word, rest @ ..] = words {
            let op = Op::of(*word);
            let attribute = viewed.attribute(name_of(*word));
            // By far the most frequent, and it needs no more than this.
            if let (Op::Number, Some(attribute), [value, rest @ ..]) = (op, attribute, rest)
                && attribute.kind == Kind::Number
            {
                if accepted(*word, attribute.number(), *value) == (word & NEGATED != 0) {
                    return false;
                }
                words = rest;
                continue;
            }
            let (values, rest) = rest.split_at(op.values_count());
            if !self.literal_satisfied(*word, op, values, attribute, viewed, texts, &client) {
                return false;
            }
            words = rest;
        }
        true
    }

    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "what the loop around it has at hand")]
    fn literal_satisfied<'a>(
        &self,
        word: u64,
        op: Op,
        values: &[u64],
        attribute: Option<&ViewedAttribute>,
        viewed: &Viewed<'_>,
        texts: &Texts,
        client: &dyn Fn() -> Option<&'a Position>,
    ) -> bool {
        let negated = word & NEGATED != 0;
        if op == Op::Residual {
            return self.residual_satisfied(values[0], negated, viewed, client);
        }
        let Some(attribute) = attribute else {
            return op == Op::IsNull && !negated;
        };
        let value = || &viewed.event.attributes[attribute.source as usize].value;
        let truth = match (op, attribute.kind) {
            (Op::IsNull, _) => return negated,
            (Op::Number, Kind::Number) => accepted(word, attribute.number(), values[0]),
            (Op::NumberBetween, Kind::Number) => between(attribute.number(), values),
            (Op::TextEqual, Kind::Text) => attribute.bits == values[0],
            (Op::TextNotEqual, Kind::Text) => attribute.bits != values[0],
            (Op::Written, _) => {
                let find_out = || {
                    let WrittenTest::Constraint(written) = self.written(values[0]) else {
                        return Truth::Unknown;
                    };
                    let value = value();
                    if written.casei {
                        written.truth_of_folded(&viewed.view.folded(attribute.source, value))
                    } else {
                        written.truth_of_folded(value)
                    }
                };
                match viewed.view.truth_once(low_half(values[0]), find_out) {
                    Truth::True => true,
                    Truth::False => false,
                    Truth::Unknown => return false,
                }
            }
            (_, Kind::Array) => any_element(word, op, values, value(), texts),
            (Op::Number | Op::NumberBetween | Op::TextEqual | Op::TextNotEqual | Op::Residual, _) => {
                return false;
            }
        };
        truth != negated
    }

    #[inline(never)]
    fn residual_satisfied<'a>(
        &self,
        number: u64,
        negated: bool,
        viewed: &Viewed<'_>,
        client: &dyn Fn() -> Option<&'a Position>,
    ) -> bool {
        let WrittenTest::Residual(residual) = self.written(number) else { return false };
        // What depends on the client is no truth that all who have it share.
        let truth = if residual.reads_client() {
            residual.truth(viewed.event, client())
        } else {
            viewed.view.truth_once(low_half(number), || residual.truth(viewed.event, None))
        };
        truth == if negated { Truth::False } else { Truth::True }
    }

    /// One past the largest number of a written constraint.
    #[must_use]
    pub fn written_end(&self) -> usize {
        self.written.end()
    }

    /// Appends the words of a literal, with a use of each name and text. The words of a literal that cannot be
    /// compiled are not appended.
    fn compile<P: Default>(
        &mut self,
        literal: &Literal,
        names: &mut Names<P>,
        texts: &mut Texts,
        words: &mut Vec<u64>,
    ) -> Option<()> {
        let constraint = &literal.constraint;
        let mut values = [0; 2];
        let mut bits = 0;
        let op = match &constraint.test {
            Test::Compare(comparison, Comparand::Scalar(Scalar::Number(number))) => {
                values[0] = number.to_bits();
                bits = accepts(*comparison);
                Op::Number
            }
            Test::Compare(Comparison::Equal, Comparand::Scalar(Scalar::Text(text))) if !constraint.casei => {
                values[0] = u64::from(texts.acquire(text)?);
                Op::TextEqual
            }
            Test::Compare(Comparison::NotEqual, Comparand::Scalar(Scalar::Text(text)))
                if !constraint.casei =>
            {
                values[0] = u64::from(texts.acquire(text)?);
                Op::TextNotEqual
            }
            Test::Between(
                Comparand::Scalar(Scalar::Number(low)),
                Comparand::Scalar(Scalar::Number(high)),
            ) => {
                values = [low.to_bits(), high.to_bits()];
                Op::NumberBetween
            }
            Test::IsNull => Op::IsNull,
            Test::Compare(..) | Test::Between(..) | Test::In(_) | Test::Like(_) => {
                values[0] = u64::from(self.acquire_written(WrittenTest::Constraint(constraint.clone()))?);
                Op::Written
            }
        };
        bits |= if literal.negated { NEGATED } else { 0 };
        let Some(name) = names.acquire(&constraint.name) else {
            self.release_values(op, &values, texts);
            return None;
        };
        words.push(u64::from(name) | op.bits() | bits);
        words.extend(&values[..op.values_count()]);
        Some(())
    }

    /// Appends the words of a residual, and of constraints that the names that it requires are there.
    fn compile_residual<P: Default>(
        &mut self,
        literal: &ResidualLiteral,
        names: &mut Names<P>,
        words: &mut Vec<u64>,
    ) -> Option<()> {
        for name in literal.residual.required() {
            words.push(u64::from(names.acquire(name)?) | Op::IsNull.bits() | NEGATED);
        }
        let number = self.acquire_written(WrittenTest::Residual(literal.residual.clone()))?;
        words.push(Op::Residual.bits() | if literal.negated { NEGATED } else { 0 });
        words.push(number.into());
        Some(())
    }

    /// One use less of each name, text and written test.
    pub fn release<P>(&mut self, words: &[u64], names: &mut Names<P>, texts: &mut Texts) {
        let mut at = 0;
        while at < words.len() {
            let op = Op::of(words[at]);
            if op != Op::Residual {
                names.release(name_of(words[at]));
            }
            self.release_values(op, &words[at + 1..at + 1 + op.values_count()], texts);
            at += 1 + op.values_count();
        }
    }

    fn release_values(&mut self, op: Op, values: &[u64], texts: &mut Texts) {
        match op {
            Op::TextEqual | Op::TextNotEqual => texts.release(low_half(values[0])),
            Op::Written | Op::Residual => self.release_written(low_half(values[0])),
            Op::Number | Op::NumberBetween | Op::IsNull => {}
        }
    }

    fn written(&self, number: u64) -> &WrittenTest {
        &self.written[low_half(number)].as_ref().expect("a written test is held while words refer to it").test
    }

    fn acquire_written(&mut self, test: WrittenTest) -> Option<u32> {
        let hash = test.hash();
        let is_it = |number: &u32| self.written[*number].as_ref().is_some_and(|held| held.test == test);
        if let Some(number) = self.written_by_hash.find(hash, is_it) {
            if let Some(held) = &mut self.written[number] {
                held.uses += 1;
            }
            return Some(number);
        }
        let number = self.written.insert(Some(Written { test, uses: 1 }))?;
        let written = &self.written;
        self.written_by_hash
            .insert(hash, number, |other| written[*other].as_ref().map_or(0, |held| held.test.hash()));
        Some(number)
    }

    fn release_written(&mut self, number: u32) {
        let Some(held) = &mut self.written[number] else { return };
        held.uses -= 1;
        if held.uses == 0 {
            let hash = held.test.hash();
            self.written_by_hash.remove(hash, number);
            self.written.remove(number);
        }
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.written.bytes() + self.written_by_hash.bytes()
    }
}

/// Whether one element of an array makes the constraint true.
fn any_element(word: u64, op: Op, values: &[u64], array: &Value, texts: &Texts) -> bool {
    array.elements().iter().any(|element| match (op, element) {
        (Op::Number, Scalar::Number(number)) => accepted(word, *number, values[0]),
        (Op::NumberBetween, Scalar::Number(number)) => between(*number, values),
        (Op::TextEqual, Scalar::Text(text)) => *text == *texts.symbol(low_half(values[0])),
        (Op::TextNotEqual, Scalar::Text(text)) => *text != *texts.symbol(low_half(values[0])),
        _ => false,
    })
}

fn between(number: f64, values: &[u64]) -> bool {
    number >= f64::from_bits(values[0]) && number <= f64::from_bits(values[1])
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

/// Constraints come from the filters' owners: without the key of the process they could choose ones that collide.
fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ process_key()) * 0x9e37_79b9_7f4a_7c15;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

/// Hash of a constraint, the same for equal constraints.
pub(crate) fn hash_constraint(constraint: &Constraint) -> u64 {
    let start = constraint.name.hash() ^ u64::from(constraint.casei);
    match &constraint.test {
        Test::Compare(comparison, value) => mix(mix(start ^ *comparison as u64) ^ hash_comparand(value)),
        Test::Between(low, high) => mix(mix(start ^ hash_comparand(low)) ^ hash_comparand(high)),
        Test::In(values) => values.iter().fold(mix(start), |hash, value| mix(hash ^ hash_comparand(value))),
        Test::Like(pattern) => mix(start ^ Symbol::new(pattern.as_str()).hash()),
        Test::IsNull => mix(start),
    }
}

fn hash_comparand(value: &Comparand) -> u64 {
    match value {
        Comparand::Scalar(scalar) => hash_scalar(scalar),
        Comparand::Date(date) => mix(Symbol::new(date.to_string()).hash()),
        Comparand::Timestamp(timestamp) => mix(Symbol::new(timestamp.as_str()).hash()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::view::{View, append_attributes};
    use crate::condition::Condition;
    use crate::event::Event;
    use crate::geo::World;

    /// Truths of one event are not taken for those of another, and a value that is folded once is folded right.
    #[test]
    fn truths_are_of_the_event_at_hand() {
        let (mut constraints, mut names, mut texts) = (Constraints::new(), Names::<()>::new(), Texts::new());
        let conditions =
            ["CASEI(a) LIKE '%ss_'", "CASEI(a) = 'STRASSE'", "NOT CASEI(a) LIKE '%ss_'", "a LIKE '%S%'"];
        let compiled: Vec<_> = conditions
            .iter()
            .map(|text| {
                let condition = Condition::parse(text).unwrap();
                let [conjunction] = condition.normal().conjunctions() else { panic!("one conjunction") };
                let words = constraints.acquire(conjunction, &mut names, &mut texts).unwrap();
                (condition, words)
            })
            .collect();
        let position = World::Planar.position(&[0.0, 0.0]).unwrap();
        let values = ["STRASSE", "Straße", "strasse", "x", "", "S"].map(crate::event::Value::from);
        let array = Value::Array(vec![Scalar::Text("x".into()), Scalar::Text("STRASSE".into())]);
        let mut view = View::default();
        for value in values.into_iter().chain([array, Value::from(1.0)]) {
            let event = Event::at(position).with("a", value);
            let mut attributes = Vec::new();
            append_attributes(&event, &names, &texts, &mut attributes);
            view.show(&attributes, names.end());
            view.make_room(constraints.written_end(), event.attributes.len());
            let viewed = Viewed { event: &event, attributes: &attributes, view: &view };
            for (condition, words) in compiled.iter().chain(&compiled) {
                let expected = condition.expression().truth(&event) == Truth::True;
                assert_eq!(
                    constraints.satisfied(words, &viewed, &texts, || None),
                    expected,
                    "{condition:?} {event:?}"
                );
            }
        }
    }

    /// A constraint that many filters share is tested once for an event.
    #[test]
    fn a_shared_constraint_is_tested_once() {
        let mut view = View::default();
        let mut tested = 0;
        for _ in 0..3 {
            view.show(&[], 0);
            view.make_room(2, 0);
            for _ in 0..10 {
                for written in [0, 1, 7] {
                    let _ = view.truth_once(written, || {
                        tested += 1;
                        Truth::True
                    });
                }
            }
        }
        // There is no room for the last.
        assert_eq!(tested, 3 * (1 + 1 + 10));
    }
}
