//! Access keys: what an event must have for a filter to be looked at.
//!
//! Every conjunction lies under one key: the equality that the fewest filters share, else its rarest name, else
//! "any event". An event looks only under the keys that it has.

use super::paged::Slab;
use super::symbols::Symbols;
use super::table::NumberTable;
use super::view::{Kind, ViewedAttribute, scalar_bits};
use crate::condition::expression::{Comparison, Test};
use crate::condition::normal::Literal;
use crate::event::{Event, Scalar};

/// The key of filters that every event may satisfy.
const ANY: u32 = 0;
const NONE: u32 = u32::MAX;

/// Keys by number, and what is known of names.
#[derive(Debug)]
pub(super) struct Accesses {
    held: Slab<Access>,
    values: NumberTable,
    names: Vec<Name>,
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

#[derive(Clone, Copy, Debug)]
struct Name {
    /// The key of the bare name.
    access: u32,
    /// Keys of values of this name.
    values: u32,
}

impl Accesses {
    pub(super) fn new() -> Self {
        let mut held = Slab::new();
        // Held once for itself, so that it stays.
        held.insert(Access { key: Key::Any, filters: 1 });
        Self { held, values: NumberTable::new(), names: Vec::new() }
    }

    /// The key for a conjunction whose names and texts are in use, with one more filter under it.
    pub(super) fn acquire(
        &mut self,
        conjunction: &[Literal],
        names: &Symbols,
        texts: &Symbols,
    ) -> Option<u32> {
        let by_value = conjunction.iter().filter_map(|literal| value_key(literal, names, texts));
        let rarest_value =
            by_value.min_by_key(|key| self.find(key).map_or(0, |access| self.held[access].filters));
        let by_name = conjunction.iter().filter(|literal| requires_presence(literal));
        let rarest_name = by_name
            .filter_map(|literal| names.find(&literal.constraint.name))
            .min_by_key(|number| (names.uses(*number), *number));
        let key = rarest_value.or(rarest_name.map(Key::Name)).unwrap_or(Key::Any);
        let access = match self.find(&key) {
            Some(access) => access,
            None => self.add(key)?,
        };
        self.held[access].filters += 1;
        Some(access)
    }

    /// One filter less under the key.
    pub(super) fn release(&mut self, access: u32) {
        let held = &mut self.held[access];
        held.filters -= 1;
        if held.filters > 0 {
            return;
        }
        match held.key {
            Key::Any => {}
            Key::Name(name) => self.names[name as usize].access = NONE,
            Key::Value(name, ..) => {
                self.names[name as usize].values -= 1;
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
        texts: &Symbols,
        keys: &mut Vec<u32>,
    ) {
        let start = keys.len();
        if self.held[ANY].filters > 1 {
            keys.push(ANY);
        }
        for attribute in attributes {
            let Some(name) = self.names.get(attribute.name as usize) else { continue };
            if name.access != NONE {
                keys.push(name.access);
            }
            if name.values == 0 {
                continue;
            }
            if attribute.kind == Kind::Array {
                for element in event.attributes[attribute.source as usize].value.elements() {
                    let (kind, bits) = scalar_bits(element, texts);
                    keys.extend(self.find(&Key::Value(attribute.name, kind, bits)));
                }
            } else {
                keys.extend(self.find(&Key::Value(attribute.name, attribute.kind, attribute.bits)));
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
        self.held.bytes() + self.values.bytes() + self.names.capacity() * size_of::<Name>()
    }

    fn find(&self, key: &Key) -> Option<u32> {
        match *key {
            Key::Any => Some(ANY),
            Key::Name(name) => {
                self.names.get(name as usize).map(|name| name.access).filter(|access| *access != NONE)
            }
            Key::Value(..) => self.values.find(hash(key), |access| self.held[*access].key == *key),
        }
    }

    fn add(&mut self, key: Key) -> Option<u32> {
        let access = self.held.insert(Access { key, filters: 0 })?;
        if let Key::Name(name) | Key::Value(name, ..) = key
            && name as usize >= self.names.len()
        {
            self.names.resize(name as usize + 1, Name { access: NONE, values: 0 });
        }
        match key {
            Key::Any => {}
            Key::Name(name) => self.names[name as usize].access = access,
            Key::Value(name, ..) => {
                self.names[name as usize].values += 1;
                let held = &self.held;
                self.values.insert(hash(&key), access, |access| hash(&held[*access].key));
            }
        }
        Some(access)
    }
}

/// The mask of the names that an event must have to satisfy a conjunction, whose names are in use.
pub(super) fn required_mask(conjunction: &[Literal], names: &Symbols) -> u32 {
    let required = conjunction.iter().filter(|literal| requires_presence(literal));
    required
        .filter_map(|literal| names.find(&literal.constraint.name))
        .fold(0, |mask, name| mask | names.mask(name))
}

/// Whether the literal is true only of events that have the attribute: all but `IS NULL`.
fn requires_presence(literal: &Literal) -> bool {
    literal.negated || literal.constraint.test != Test::IsNull
}

/// The key of a plain equality. Truth values divide events too little for a key of their own.
fn value_key(literal: &Literal, names: &Symbols, texts: &Symbols) -> Option<Key> {
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
