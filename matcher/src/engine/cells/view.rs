//! An event as engines see it: attributes by the numbers of their names.

use super::codes::ValueCode;
use super::names::Names;
use super::texts::Texts;
use crate::event::{Event, Scalar, Value};

/// Which attributes one event has, by the numbers of their names.
#[derive(Debug, Default)]
pub(super) struct View {
    /// By the number of the name: when it was shown, and where it stands in the list of attributes.
    places: Vec<(u32, u32)>,
    now: u32,
}

/// One attribute that some filter names.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewedAttribute {
    pub(super) name: u32,
    /// Where it stands in the event.
    pub(super) source: u32,
    pub(super) kind: Kind,
    /// A number's bits, the number of a text (or one past all, when no filter knows it), a truth value.
    pub(super) bits: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Number,
    Text,
    Bool,
    Array,
}

impl ViewedAttribute {
    #[inline]
    pub(super) fn number(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// Appends the attributes of an event that filters name to a list that the events of a batch share, and their codes
/// to another; answers the mask of their names.
pub(super) fn append_attributes(
    event: &Event,
    names: &Names,
    texts: &Texts,
    list: &mut Vec<ViewedAttribute>,
    codes: &mut Vec<ValueCode>,
) -> u32 {
    let mut mask = 0;
    for (source, attribute) in (0..).zip(&event.attributes) {
        let Some(name) = names.find(&attribute.name) else { continue };
        let (kind, bits) = match &attribute.value {
            Value::Scalar(scalar) => scalar_bits(scalar, texts),
            Value::Array(_) => (Kind::Array, 0),
        };
        mask |= names.name(name).mask;
        list.push(ViewedAttribute { name, source, kind, bits });
        codes.push(ValueCode::of(kind, bits));
    }
    mask
}

/// The kind and the bits of a scalar; equal scalars have equal ones.
#[inline]
pub(super) fn scalar_bits(scalar: &Scalar, texts: &Texts) -> (Kind, u64) {
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
    pub(super) fn show(&mut self, attributes: &[ViewedAttribute], names_end: usize) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            // The times have gone round: forget the old ones.
            self.places.fill((0, 0));
            self.now = 1;
        }
        if self.places.len() < names_end {
            self.places.resize(names_end, (0, 0));
        }
        for (index, attribute) in (0..).zip(attributes) {
            let place = &mut self.places[attribute.name as usize];
            // Should a name come twice, the first counts, as in `Event::value`.
            if place.0 != self.now {
                *place = (self.now, index);
            }
        }
    }
}

/// One event, its attributes that filters name, and the view that shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewed<'a> {
    pub(super) event: &'a Event,
    pub(super) attributes: &'a [ViewedAttribute],
    pub(super) codes: &'a [ValueCode],
    pub(super) view: &'a View,
    /// Of the names of the attributes.
    pub(super) mask: u32,
}

impl<'a> Viewed<'a> {
    /// Where the attribute of a name stands in the list of attributes.
    #[inline]
    pub(super) fn index(&self, name: u32) -> Option<usize> {
        let (time, index) = self.view.places.get(name as usize)?;
        (*time == self.view.now).then_some(*index as usize)
    }

    /// The code of the attribute of a name.
    #[inline]
    pub(super) fn code(&self, name: u32) -> Option<&'a ValueCode> {
        self.codes.get(self.index(name)?)
    }

    /// The attribute of a name.
    #[inline]
    pub(super) fn attribute(&self, name: u32) -> Option<&'a ViewedAttribute> {
        self.attributes.get(self.index(name)?)
    }
}
