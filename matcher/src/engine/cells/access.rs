//! Access keys: what an event must have for a filter to be looked at.
//!
//! Every conjunction lies under one key: the equality that the fewest filters share, else its rarest name, else
//! "any event". An event looks only under the keys that it has.

use super::names::Names;
use super::paged::Slab;
use super::records::NONE;
use super::table::NumberTable;
use super::texts::Texts;
use super::view::{Kind, ViewedAttribute, scalar_bits};
use crate::condition::expression::{Comparison, Test};
use crate::condition::normal::Literal;
use crate::event::{Event, Scalar};

/// The key of filters that every event may satisfy.
const ANY: u32 = 0;

/// Keys by number.
#[derive(Debug)]
pub(super) struct Accesses {
    held: Slab<Access>,
    values: NumberTable,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Any,
    Name(u32),
    Value(u32, Kind, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Access {
    key: Key,
    /// Filters that lie under the key.
    filters: u32,
}

impl Accesses {
    pub(super) fn new() -> Self {
        let mut held = Slab::new();
        // Held once for itself, so that it stays.
        held.insert(Access { key: Key::Any, filters: 1 });
        Self { held, values: NumberTable::new() }
    }

    /// The key for a conjunction whose names and texts are in use, with one more filter under it.
    pub(super) fn acquire(
        &mut self,
        conjunction: &[Literal],
        names: &mut Names,
        texts: &Texts,
    ) -> Option<u32> {
        let by_value = conjunction.iter().filter_map(|literal| value_key(literal, names, texts));
        let rarest_value =
            by_value.min_by_key(|key| self.find(key, names).map_or(0, |access| self.held[access].filters));
        let by_name = conjunction.iter().filter(|literal| requires_presence(literal));
        let rarest_name = by_name
            .filter_map(|literal| names.find(&literal.constraint.name))
            .min_by_key(|number| (names.name(*number).uses, *number));
        let key = rarest_value.or(rarest_name.map(Key::Name)).unwrap_or(Key::Any);
        let access = match self.find(&key, names) {
            Some(access) => access,
            None => self.add(key, names)?,
        };
        self.held[access].filters += 1;
        Some(access)
    }

    /// One filter less under the key.
    pub(super) fn release(&mut self, access: u32, names: &mut Names) {
        let held = &mut self.held[access];
        held.filters -= 1;
        if held.filters > 0 {
            return;
        }
        match held.key {
            Key::Any => {}
            Key::Name(name) => names.name_mut(name).access = NONE,
            Key::Value(name, ..) => {
                names.name_mut(name).value_accesses -= 1;
                let hash = hash(&held.key);
                self.values.remove(hash, access);
            }
        }
        self.held.remove(access);
    }

    /// Appends the keys that an event has and that filters lie under.
    pub(super) fn append_keys(
        &self,
        event: &Event,
        attributes: &[ViewedAttribute],
        names: &Names,
        texts: &Texts,
        keys: &mut Vec<u32>,
    ) {
        let start = keys.len();
        if self.held[ANY].filters > 1 {
            keys.push(ANY);
        }
        for attribute in attributes {
            let name = names.name(attribute.name);
            if name.access != NONE {
                keys.push(name.access);
            }
            if name.value_accesses == 0 {
                continue;
            }
            if attribute.kind == Kind::Array {
                for element in event.attributes[attribute.source as usize].value.elements() {
                    let (kind, bits) = scalar_bits(element, texts);
                    keys.extend(self.find_value(&Key::Value(attribute.name, kind, bits)));
                }
            } else {
                keys.extend(self.find_value(&Key::Value(attribute.name, attribute.kind, attribute.bits)));
            }
        }
        // An array may hold a value twice.
        if keys.len() - start > 1 && attributes.iter().any(|attribute| attribute.kind == Kind::Array) {
            keys[start..].sort_unstable();
            let mut kept = start + 1;
            for index in start + 1..keys.len() {
                if keys[index] != keys[kept - 1] {
                    keys[kept] = keys[index];
                    kept += 1;
                }
            }
            keys.truncate(kept);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.bytes() + self.values.bytes()
    }

    fn find(&self, key: &Key, names: &Names) -> Option<u32> {
        match *key {
            Key::Any => Some(ANY),
            Key::Name(name) => Some(names.name(name).access).filter(|access| *access != NONE),
            Key::Value(..) => self.find_value(key),
        }
    }

    fn find_value(&self, key: &Key) -> Option<u32> {
        self.values.find(hash(key), |access| self.held[*access].key == *key)
    }

    fn add(&mut self, key: Key, names: &mut Names) -> Option<u32> {
        let access = self.held.insert(Access { key, filters: 0 })?;
        match key {
            Key::Any => {}
            Key::Name(name) => names.name_mut(name).access = access,
            Key::Value(name, ..) => {
                names.name_mut(name).value_accesses += 1;
                let held = &self.held;
                self.values.insert(hash(&key), access, |access| hash(&held[*access].key));
            }
        }
        Some(access)
    }
}

/// The mask of the names that an event must have to satisfy a conjunction, whose names are in use.
pub(super) fn required_mask(conjunction: &[Literal], names: &Names) -> u32 {
    let required = conjunction.iter().filter(|literal| requires_presence(literal));
    required
        .filter_map(|literal| names.find(&literal.constraint.name))
        .fold(0, |mask, name| mask | names.name(name).mask)
}

/// Whether the literal is true only of events that have the attribute: all but `IS NULL`.
fn requires_presence(literal: &Literal) -> bool {
    literal.negated || literal.constraint.test != Test::IsNull
}

/// The key of a plain equality. Truth values divide events too little for a key of their own.
fn value_key(literal: &Literal, names: &Names, texts: &Texts) -> Option<Key> {
    match &literal.constraint.test {
        Test::Compare(Comparison::Equal, scalar @ (Scalar::Number(_) | Scalar::Text(_)))
            if !(literal.negated || literal.constraint.casei && matches!(scalar, Scalar::Text(_))) =>
        {
            let (kind, bits) = scalar_bits(scalar, texts);
            names.find(&literal.constraint.name).map(|name| Key::Value(name, kind, bits))
        }
        Test::Compare(..) | Test::Between(..) | Test::In(_) | Test::Like(_) | Test::IsNull => None,
    }
}

fn hash(key: &Key) -> u64 {
    let (name, bits) = match *key {
        Key::Any => (0, 0),
        Key::Name(name) => (name, 1),
        Key::Value(name, kind, bits) => (name, bits.wrapping_mul(8).wrapping_add(kind as u64) ^ bits >> 61),
    };
    let product =
        u128::from(bits ^ 0x9e37_79b9_7f4a_7c15) * u128::from(u64::from(name) ^ 0xd6e8_feb8_6659_fd93);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}
