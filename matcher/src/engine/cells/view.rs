//! An event as programs see it: attributes by the numbers of their names.

use super::names::Names;
use super::texts::Texts;
use crate::event::{Event, Scalar, Value};

/// The attributes of one event that some filter names, by the numbers of the names.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Each with the time of the event that it is of; others are not of this one.
    places: Vec<(u32, ViewedAttribute)>,
    now: u32,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewedAttribute {
    pub(super) name: u32,
    /// Where it stands in the event.
    pub(super) source: u32,
    pub(super) kind: Kind,
    /// A number's bits, the number of a text (or one past all, when no filter knows it), a truth value.
    pub(super) bits: u64,
}

const NO_ATTRIBUTE: (u32, ViewedAttribute) =
    (0, ViewedAttribute { name: 0, source: 0, kind: Kind::Bool, bits: 0 });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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

/// Appends the attributes of an event that filters name to a list that the events of a batch share; answers the
/// mask of their names.
pub(super) fn append_attributes(
    event: &Event,
    names: &Names,
    texts: &Texts,
    list: &mut Vec<ViewedAttribute>,
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
    }
    mask
}

/// The kind and the bits of a scalar; equal scalars have equal ones.
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
    pub(super) fn show(&mut self, attributes: &[ViewedAttribute], names_end: usize) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            // The times have gone round: forget the old ones.
            self.places.fill(NO_ATTRIBUTE);
            self.now = 1;
        }
        if self.places.len() < names_end {
            self.places.resize(names_end, NO_ATTRIBUTE);
        }
        for attribute in attributes {
            let place = &mut self.places[attribute.name as usize];
            // Should a name come twice, the first counts, as in `Event::value`.
            if place.0 != self.now {
                *place = (self.now, *attribute);
            }
        }
    }

    #[inline]
    pub(super) fn attribute(&self, name: u32) -> Option<&ViewedAttribute> {
        let (time, attribute) = self.places.get(name as usize)?;
        (*time == self.now).then_some(attribute)
    }
}
