//! An event as programs see it: attributes by the numbers of their names.

use super::symbols::Symbols;
use crate::event::{Event, Scalar, Value};

/// The attributes of one event that some filter names.
#[derive(Debug, Default)]
pub(super) struct View {
    /// By the number of the name: in which event's time the place was written, and where the attribute is.
    places: Vec<(u32, u32)>,
    attributes: Vec<ViewedAttribute>,
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
    names: &Symbols,
    texts: &Symbols,
    list: &mut Vec<ViewedAttribute>,
) -> u32 {
    let mut mask = 0;
    for (source, attribute) in (0..).zip(&event.attributes) {
        let Some(name) = names.find(&attribute.name) else { continue };
        let (kind, bits) = match &attribute.value {
            Value::Scalar(scalar) => scalar_bits(scalar, texts),
            Value::Array(_) => (Kind::Array, 0),
        };
        mask |= names.mask(name);
        list.push(ViewedAttribute { name, source, kind, bits });
    }
    mask
}

/// The kind and the bits of a scalar; equal scalars have equal ones.
pub(super) fn scalar_bits(scalar: &Scalar, texts: &Symbols) -> (Kind, u64) {
    match scalar {
        // Zero equals minus zero, and adding zero makes it plus.
        Scalar::Number(number) => (Kind::Number, (number + 0.0).to_bits()),
        Scalar::Text(text) => (Kind::Text, texts.find(text).map_or(u64::MAX, u64::from)),
        Scalar::Bool(truth) => (Kind::Bool, u64::from(*truth)),
    }
}

impl View {
    /// Shows these attributes and no others.
    pub(super) fn show(&mut self, attributes: &[ViewedAttribute], names_end: u32) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            // The times have gone round: forget the old ones.
            self.places.fill((0, 0));
            self.now = 1;
        }
        self.places.resize(self.places.len().max(names_end as usize), (0, 0));
        self.attributes.clear();
        self.attributes.extend_from_slice(attributes);
        for (index, attribute) in (0..).zip(attributes) {
            let place = &mut self.places[attribute.name as usize];
            // Should a name come twice, the first counts, as in `Event::value`.
            if place.0 != self.now {
                *place = (self.now, index);
            }
        }
    }

    #[inline]
    pub(super) fn attribute(&self, name: u32) -> Option<&ViewedAttribute> {
        let (time, index) = *self.places.get(name as usize)?;
        if time == self.now { self.attributes.get(index as usize) } else { None }
    }
}
