//! An event as engines see it: attributes by the numbers of their names.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::names::Names;
use super::texts::Texts;
use crate::condition::expression::{Truth, fold_value};
use crate::event::{Event, Scalar, Value};

/// Which attributes one event has, by the numbers of their names.
#[derive(Debug, Default)]
pub struct View {
    /// By the number of the name: when it was shown, and where it stands in the list of attributes.
    places: Vec<(u32, u32)>,
    now: u32,
    /// Truths of written constraints by their number: when each was found, and the truth in the two lowest bits.
    truths: Vec<AtomicU64>,
    /// The folded values of attributes by their place in the event, where `CASEI` has asked for them.
    folded: Vec<OnceLock<Option<Box<Value>>>>,
}

/// One attribute that some filter names.
#[derive(Clone, Copy, Debug)]
pub struct ViewedAttribute {
    /// The number of its name.
    pub name: u32,
    /// Where it stands in the event.
    pub source: u32,
    /// Kind of its value.
    pub kind: Kind,
    /// A number's bits, the number of a text (or one past all, when no filter knows it), a truth value.
    pub bits: u64,
}

/// Kind of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    #[default]
    Number,
    /// A text.
    Text,
    /// A truth value.
    Bool,
    /// Several of them.
    Array,
}

impl ViewedAttribute {
    /// The number that it is.
    #[inline]
    #[must_use]
    pub fn number(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// Appends the attributes of an event that filters name to a list that the events of a batch share; answers the mask
/// of their names.
pub fn append_attributes<P>(
    event: &Event,
    names: &Names<P>,
    texts: &Texts,
    list: &mut Vec<ViewedAttribute>,
) -> u32 {
    let mut mask = 0;
    for (source, attribute) in (0..).zip(&event.attributes) {
        let Some((name, name_mask)) = names.find_with_mask(&attribute.name) else { continue };
        let (kind, bits) = value_bits(&attribute.value, texts);
        mask |= name_mask;
        list.push(ViewedAttribute { name, source, kind, bits });
    }
    mask
}

/// The kind and the bits of a value; an array has no bits of its own.
#[inline]
#[must_use]
pub fn value_bits(value: &Value, texts: &Texts) -> (Kind, u64) {
    match value {
        Value::Scalar(scalar) => scalar_bits(scalar, texts),
        Value::Array(_) => (Kind::Array, 0),
    }
}

/// The kind and the bits of a scalar; equal scalars have equal ones.
#[inline]
#[must_use]
pub fn scalar_bits(scalar: &Scalar, texts: &Texts) -> (Kind, u64) {
    match scalar {
        // Zero equals minus zero, and adding zero makes it plus.
        Scalar::Number(number) => (Kind::Number, (number + 0.0).to_bits()),
        Scalar::Text(text) => (Kind::Text, texts.find(text).map_or(u64::MAX, u64::from)),
        Scalar::Bool(truth) => (Kind::Bool, u64::from(*truth)),
    }
}

impl View {
    /// Shows these attributes and no others.
    #[inline]
    pub fn show(&mut self, attributes: &[ViewedAttribute], names_end: usize) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            // The times have gone round: forget the old ones.
            self.places.fill((0, 0));
            self.truths.clear();
            self.now = 1;
        }
        if self.places.len() < names_end {
            self.places.resize(names_end, (0, 0));
        }
        self.folded.clear();
        for (index, attribute) in (0..).zip(attributes) {
            let place = &mut self.places[attribute.name as usize];
            // Should a name come twice, the first counts, as in `Event::value`.
            if place.0 != self.now {
                *place = (self.now, index);
            }
        }
    }
}

/// The truths by their code.
const TRUTHS: [Truth; 3] = [Truth::Unknown, Truth::False, Truth::True];

impl View {
    /// Makes room for the truths of `written_end` written constraints, and for the folded values of an event. Whatever
    /// has no room is found out each time.
    pub fn make_room(&mut self, written_end: usize, attributes_count: usize) {
        if written_end == 0 {
            return;
        }
        if self.truths.len() < written_end {
            self.truths.resize_with(written_end, AtomicU64::default);
        }
        self.folded.resize_with(attributes_count, OnceLock::new);
    }

    /// The truth of a written constraint for the event that is shown, found out once.
    #[inline]
    pub(super) fn truth_once(&self, written: u32, find_out: impl FnOnce() -> Truth) -> Truth {
        let Some(known) = self.truths.get(written as usize) else { return find_out() };
        let held = known.load(Ordering::Relaxed);
        if held >> 2 == u64::from(self.now) {
            return TRUTHS[(held & 3) as usize % TRUTHS.len()];
        }
        let truth = find_out();
        let code = match truth {
            Truth::Unknown => 0,
            Truth::False => 1,
            Truth::True => 2,
        };
        known.store(u64::from(self.now) << 2 | code, Ordering::Relaxed);
        truth
    }

    /// An attribute's value with its texts folded, once for all who ask.
    pub(super) fn folded<'a>(&'a self, source: u32, value: &'a Value) -> std::borrow::Cow<'a, Value> {
        use std::borrow::Cow;
        match self.folded.get(source as usize) {
            Some(folded) => {
                let folded = folded.get_or_init(|| fold_value(value).map(Box::new));
                Cow::Borrowed(folded.as_deref().unwrap_or(value))
            }
            None => fold_value(value).map_or(Cow::Borrowed(value), Cow::Owned),
        }
    }
}

/// One event, its attributes that filters name, and the view that shows them.
#[derive(Clone, Copy, Debug)]
pub struct Viewed<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its attributes that filters name.
    pub attributes: &'a [ViewedAttribute],
    /// The view that shows the attributes.
    pub view: &'a View,
}

impl<'a> Viewed<'a> {
    /// Where the attribute of a name stands in the list of attributes.
    #[inline]
    #[must_use]
    pub fn index(&self, name: u32) -> Option<usize> {
        let (time, index) = self.view.places.get(name as usize)?;
        (*time == self.view.now).then_some(*index as usize)
    }

    /// The attribute of a name.
    #[inline]
    #[must_use]
    pub fn attribute(&self, name: u32) -> Option<&'a ViewedAttribute> {
        self.attributes.get(self.index(name)?)
    }
}
