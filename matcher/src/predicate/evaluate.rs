//! The truth of nodes and the values of operands, for events.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::ControlFlow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::Subject;
use super::node::{Attribute, Folding, Node, Operand, Place};
use super::sets;
use super::temporal::{Moment, Span};
use crate::condition::expression::{Comparand, Comparison, Truth, fold_case};
use crate::condition::time::Date;
use crate::event::{Event, Scalar, Symbol, Value};
use crate::geo::{Position, World};

/// Events by the index of their variable, and the world that they are in.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) world: World,
    pub(crate) subjects: &'a [Option<Subject<'a>>],
}

/// A value of an operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Bool(bool),
    Moment(Moment<'a>),
    Array(Cow<'a, [Scalar]>),
}

impl Node {
    /// Its truth for the events of a context.
    pub(crate) fn truth(&self, context: Context<'_>) -> Truth {
        match self {
            Self::Constant(truth) => (*truth).into(),
            Self::Not(inner) => !inner.truth(context),
            Self::And(inner) => decide(inner, context, Truth::False, Truth::True),
            Self::Or(inner) => decide(inner, context, Truth::True, Truth::False),
            Self::Compare(comparison, operands) => {
                let [left, right] = operands.each_ref().map(|operand| operand.value(context));
                over([left, right], |[left, right]| compare(*comparison, left, right))
            }
            Self::Between(operands) => {
                let operands = operands.each_ref().map(|operand| operand.value(context));
                over(operands, |[value, low, high]| match (value.compare(low), value.compare(high)) {
                    (Some(low), Some(high)) => (low.is_ge() && high.is_le()).into(),
                    _ => Truth::Unknown,
                })
            }
            Self::In(value, list) => is_in(value.value(context), list, context),
            Self::Like(operand, pattern) => over([operand.value(context)], |[value]| match value {
                Seen::Text(text) => pattern.matches(text).into(),
                Seen::Number(_) | Seen::Bool(_) | Seen::Moment(_) | Seen::Array(_) => Truth::Unknown,
            }),
            Self::IsNull(operand) => {
                let bound = operand.visit_variables(&mut |variable| match context.event(variable) {
                    Some(_) => ControlFlow::Continue(()),
                    None => ControlFlow::Break(()),
                });
                if bound.is_break() { Truth::Unknown } else { operand.value(context).is_none().into() }
            }
            Self::Temporal(relation, operands) => {
                let [Some(left), Some(right)] = operands.each_ref().map(|operand| operand.span(context))
                else {
                    return Truth::Unknown;
                };
                left.truth(*relation, &right)
            }
            Self::Sets(relation, operands) => {
                let [Some(left), Some(right)] = operands.each_ref().map(|operand| operand.elements(context))
                else {
                    return Truth::Unknown;
                };
                sets::holds(*relation, &left, &right).into()
            }
            Self::Within(variable, polygon) => {
                context.event(*variable).map_or(Truth::Unknown, |event| polygon.holds(&event.position).into())
            }
            Self::Same(a, b) => match (context.subject(*a), context.subject(*b)) {
                (Some(a), Some(b)) => (a.identity == b.identity).into(),
                _ => Truth::Unknown,
            },
        }
    }
}

/// `AND` and `OR` alike: one operand may decide, an unknown one spoils the rest.
fn decide(nodes: &[Node], context: Context<'_>, decisive: Truth, otherwise: Truth) -> Truth {
    let mut result = otherwise;
    for node in nodes {
        let truth = node.truth(context);
        if truth == decisive {
            return decisive;
        }
        if truth == Truth::Unknown {
            result = Truth::Unknown;
        }
    }
    result
}

/// Tests values. Where one is an array, one of its elements has to satisfy the test, and it is never unknown; without one of the
/// values, and with two arrays, it is.
fn over<const N: usize>(values: [Option<Seen<'_>>; N], test: impl Fn(&[Seen<'_>; N]) -> Truth) -> Truth {
    let Some(mut values) = all(values) else { return Truth::Unknown };
    let mut arrays = (0..N).filter(|index| matches!(values[*index], Seen::Array(_)));
    let (array, further) = (arrays.next(), arrays.next());
    match (array, further) {
        (None, _) => test(&values),
        (Some(index), None) => {
            let Seen::Array(elements) = std::mem::replace(&mut values[index], Seen::Bool(false)) else {
                return Truth::Unknown;
            };
            elements
                .iter()
                .any(|element| {
                    // The element lives shorter than the values do.
                    let mut values = values.each_ref().map(Seen::reborrow);
                    values[index] = Seen::of(element);
                    test(&values) == Truth::True
                })
                .into()
        }
        (Some(_), Some(_)) => Truth::Unknown,
    }
}

fn all<const N: usize>(values: [Option<Seen<'_>>; N]) -> Option<[Seen<'_>; N]> {
    if values.iter().any(Option::is_none) {
        return None;
    }
    Some(values.map(|value| value.unwrap_or(Seen::Bool(false))))
}

fn compare(comparison: Comparison, left: &Seen<'_>, right: &Seen<'_>) -> Truth {
    left.compare(right).map_or(Truth::Unknown, |ordering| comparison.accepts(ordering).into())
}

/// True where the value equals one of the list, otherwise unknown where one is missing or of another type.
fn is_in(value: Option<Seen<'_>>, list: &[Operand], context: Context<'_>) -> Truth {
    let Some(value) = value else { return Truth::Unknown };
    let mut result = Truth::False;
    for operand in list {
        let pair = [Some(value.reborrow()), operand.value(context)];
        match over(pair, |[left, right]| compare(Comparison::Equal, left, right)) {
            Truth::True => return Truth::True,
            Truth::False => {}
            Truth::Unknown => result = Truth::Unknown,
        }
    }
    result
}

impl<'a> Context<'a> {
    fn subject(self, variable: usize) -> Option<&'a Subject<'a>> {
        self.subjects.get(variable)?.as_ref()
    }

    fn event(self, variable: usize) -> Option<&'a Event> {
        self.subject(variable).map(|subject| subject.event)
    }

    fn position(self, place: &'a Place) -> Option<&'a Position> {
        match place {
            Place::Of(variable) => self.event(*variable).map(|event| &event.position),
            Place::At(position) => Some(position),
        }
    }

    /// Elements of an attribute's value, and the bytes of their texts.
    fn size(self, attribute: &Attribute) -> (u64, u64) {
        let value = self.event(attribute.variable).and_then(|event| event.value(&attribute.name));
        let Some(elements) = value.map(Value::elements) else { return (1, 0) };
        let bytes = |scalar: &Scalar| match scalar {
            Scalar::Text(text) => text.as_str().len() as u64,
            Scalar::Number(_) | Scalar::Bool(_) => 0,
        };
        (elements.len() as u64, elements.iter().map(bytes).sum())
    }

    fn elapsed_s(self, from: usize, to: usize) -> Option<f64> {
        let (from, to) = (self.subject(from)?, self.subject(to)?);
        #[expect(clippy::cast_precision_loss, reason = "times of this age are exact")]
        let elapsed_ms = to.time_ms.saturating_sub(from.time_ms) as f64;
        Some(elapsed_ms / 1_000.0)
    }
}

impl Operand {
    /// Its value for the events of a context; `None` where it has none.
    pub(super) fn value<'a>(&'a self, context: Context<'a>) -> Option<Seen<'a>> {
        match self {
            Self::Value(value) => Some(Seen::of_comparand(value)),
            Self::Attribute(Attribute { variable, name }) => {
                Some(match context.event(*variable)?.value(name)? {
                    Value::Scalar(scalar) => Seen::of(scalar),
                    Value::Array(elements) => Seen::Array(Cow::Borrowed(elements)),
                })
            }
            Self::Folded(folding, inner) => Some(inner.value(context)?.folded(*folding)),
            Self::Negated(_)
            | Self::Arithmetic(..)
            | Self::Absolute(_)
            | Self::Distance(_)
            | Self::Elapsed(..)
            | Self::Speed(..)
            | Self::Longitude(_)
            | Self::Latitude(_) => self.number_of(context).map(Seen::Number),
            Self::Interval(_) | Self::Array(_) => None,
        }
    }

    /// Its value where that is a number.
    fn number_of(&self, context: Context<'_>) -> Option<f64> {
        match self {
            Self::Negated(inner) => Some(-inner.number_of(context)?),
            Self::Arithmetic(operator, operands) => {
                let [left, right] = &**operands;
                operator.of(left.number_of(context)?, right.number_of(context)?)
            }
            Self::Absolute(inner) => Some(inner.number_of(context)?.abs()),
            Self::Distance(places) => {
                let [a, b] = &**places;
                Some(context.world.distance_m(context.position(a)?, context.position(b)?))
            }
            Self::Elapsed(from, to) => context.elapsed_s(*from, *to),
            Self::Speed(a, b) => {
                let elapsed_s = context.elapsed_s(*a, *b)?.abs();
                let distance_m =
                    context.world.distance_m(&context.event(*a)?.position, &context.event(*b)?.position);
                (elapsed_s > 0.0).then(|| distance_m / elapsed_s)
            }
            Self::Longitude(variable) => Some(context.event(*variable)?.position.x()),
            Self::Latitude(variable) => Some(context.event(*variable)?.position.y()),
            Self::Value(_) | Self::Attribute(_) | Self::Folded(..) => match self.value(context)? {
                Seen::Number(number) => Some(number),
                Seen::Text(_) | Seen::Bool(_) | Seen::Moment(_) | Seen::Array(_) => None,
            },
            Self::Interval(_) | Self::Array(_) => None,
        }
    }

    /// The elements of an array; those of a list without what has no value. `None` for anything else.
    fn elements<'a>(&'a self, context: Context<'a>) -> Option<Vec<Seen<'a>>> {
        if let Self::Array(elements) = self {
            return Some(elements.iter().filter_map(|element| element.value(context)).collect());
        }
        match self.value(context)? {
            Seen::Array(Cow::Borrowed(elements)) => Some(elements.iter().map(Seen::of).collect()),
            Seen::Array(Cow::Owned(elements)) => {
                Some(elements.iter().map(|one| Seen::of(one).owned()).collect())
            }
            Seen::Number(_) | Seen::Text(_) | Seen::Bool(_) | Seen::Moment(_) => None,
        }
    }

    /// The moment or the interval that it is.
    fn span<'a>(&'a self, context: Context<'a>) -> Option<Span<'a>> {
        let Self::Interval(ends) = self else { return self.moment(context).map(Span::moment) };
        let end = |end: &'a Option<Operand>| match end {
            None => Some(None),
            Some(end) => end.moment(context).map(Some),
        };
        let [from, to] = &**ends;
        Some(Span::interval(end(from)?, end(to)?))
    }

    /// The moment that it is, which is an attribute or stands in the text.
    fn moment<'a>(&'a self, context: Context<'a>) -> Option<Moment<'a>> {
        match self.value(context)? {
            Seen::Moment(moment) => Some(moment),
            Seen::Text(Cow::Borrowed(text)) => Moment::parse(text),
            Seen::Text(Cow::Owned(_)) | Seen::Number(_) | Seen::Bool(_) | Seen::Array(_) => None,
        }
    }
}

impl<'a> Seen<'a> {
    pub(super) fn of(scalar: &'a Scalar) -> Self {
        match scalar {
            Scalar::Number(number) => Self::Number(*number),
            Scalar::Text(text) => Self::Text(Cow::Borrowed(text.as_str())),
            Scalar::Bool(truth) => Self::Bool(*truth),
        }
    }

    fn of_comparand(value: &'a Comparand) -> Self {
        match value {
            Comparand::Scalar(scalar) => Self::of(scalar),
            Comparand::Date(date) => Self::Moment(Moment::Date(*date)),
            Comparand::Timestamp(timestamp) => Self::Moment(Moment::Instant(timestamp.instant())),
        }
    }

    fn reborrow(&self) -> Seen<'_> {
        match self {
            Self::Number(number) => Seen::Number(*number),
            Self::Text(text) => Seen::Text(Cow::Borrowed(text)),
            Self::Bool(truth) => Seen::Bool(*truth),
            Self::Moment(moment) => Seen::Moment(*moment),
            Self::Array(elements) => Seen::Array(Cow::Borrowed(elements)),
        }
    }

    /// A copy of an element that is a number, a text or a truth value.
    fn owned<'b>(self) -> Seen<'b> {
        match self {
            Self::Number(number) => Seen::Number(number),
            Self::Text(text) => Seen::Text(Cow::Owned(text.into_owned())),
            Self::Bool(truth) => Seen::Bool(truth),
            Self::Array(elements) => Seen::Array(Cow::Owned(elements.into_owned())),
            // Elements of attributes are none.
            Self::Moment(_) => Seen::Array(Cow::Owned(Vec::new())),
        }
    }

    fn folded(self, folding: Folding) -> Self {
        match self {
            Self::Text(text) => Self::Text(fold(folding, text)),
            Self::Array(elements) => {
                let folded = elements.iter().map(|element| match element {
                    Scalar::Text(text) => {
                        Scalar::Text(Symbol::new(&*fold(folding, Cow::Borrowed(text.as_str()))))
                    }
                    Scalar::Number(_) | Scalar::Bool(_) => element.clone(),
                });
                Self::Array(Cow::Owned(folded.collect()))
            }
            Self::Number(_) | Self::Bool(_) | Self::Moment(_) => self,
        }
    }

    /// Its order to another value; `None` where the two do not compare. A text compares with a moment as the one that it is.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Moment(a), Self::Moment(b)) => a.compare(b),
            (Self::Text(a), Self::Moment(b)) => Moment::parse(a)?.compare(b),
            (Self::Moment(a), Self::Text(b)) => a.compare(&Moment::parse(b)?),
            _ => None,
        }
    }

    /// The value as one of an event; `None` for an array, which a term does not have.
    pub(super) fn into_scalar(self) -> Option<Scalar> {
        match self {
            Self::Number(number) => Some(Scalar::Number(number)),
            Self::Text(text) => Some(Scalar::Text(Symbol::new(&*text))),
            Self::Bool(truth) => Some(Scalar::Bool(truth)),
            Self::Moment(_) | Self::Array(_) => None,
        }
    }
}

impl Moment<'_> {
    fn compare(&self, other: &Moment<'_>) -> Option<Ordering> {
        match (self, other) {
            (Moment::Date(a), Moment::Date(b)) => Some(Date::cmp(a, b)),
            (Moment::Instant(a), Moment::Instant(b)) => Some(a.cmp(b)),
            (Moment::Date(_), Moment::Instant(_)) | (Moment::Instant(_), Moment::Date(_)) => None,
        }
    }
}

/// A text after `CASEI` or `ACCENTI`.
pub(crate) fn fold(folding: Folding, text: Cow<'_, str>) -> Cow<'_, str> {
    match folding {
        Folding::Case if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) => text,
        Folding::Accents if text.is_ascii() => text,
        Folding::Case => Cow::Owned(fold_case(&text)),
        Folding::Accents => Cow::Owned(fold_accents(&text)),
    }
}

/// Takes the marks of letters away, and composes the rest again.
///
/// Marks are characters with a combining class. Those of the classes 7 (nukta), 8 (voicing of kana) and 9 (virama) make another letter
/// of the one before them, and stay.
#[must_use]
fn fold_accents(text: &str) -> String {
    text.nfd().filter(|letter| matches!(canonical_combining_class(*letter), 0 | 7..=9)).nfc().collect()
}

/// Nanoseconds of a step, and of a byte of a text that is folded or looked through.
const STEP_NS: u64 = 4;
const FOLDED_BYTE_NS: u64 = 32;

/// Time that the truth of a leaf takes, in nanoseconds, about: its steps, and what its attributes have of elements and texts.
pub(crate) fn ns(leaf: &Node, context: Context<'_>) -> u64 {
    let operands = leaf.operands();
    let elements = |operand: &&Operand| {
        if let Operand::Attribute(attribute) = operand { context.size(attribute).0 } else { 1 }
    };
    let folded: u64 = operands.iter().map(|operand| folded_bytes(operand, context)).sum();
    let searched =
        if let Node::Like(operand, pattern) = leaf { pattern.ns(text_bytes(operand, context)) } else { 0 };
    // A list is gone through for each element, and an array for each value of a list.
    let most = operands.iter().map(elements).max().unwrap_or(1).max(1);
    let steps = leaf.cost().min(operands.len() * 8 + 64) as u64 + most.saturating_mul(operands.len() as u64);
    steps * STEP_NS + folded * FOLDED_BYTE_NS + searched
}

fn folded_bytes(operand: &Operand, context: Context<'_>) -> u64 {
    let own = if let Operand::Folded(_, inner) = operand { text_bytes(inner, context) } else { 0 };
    own + operand.operands().into_iter().map(|inner| folded_bytes(inner, context)).sum::<u64>()
}

fn text_bytes(operand: &Operand, context: Context<'_>) -> u64 {
    let own = if let Operand::Attribute(attribute) = operand { context.size(attribute).1 } else { 0 };
    own + operand.operands().into_iter().map(|inner| text_bytes(inner, context)).sum::<u64>()
}
