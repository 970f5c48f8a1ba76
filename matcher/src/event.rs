//! Events: a position and attributes.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use compact_str::CompactString;

use crate::geo::{Position, Radius};

/// A published item, as engines see it.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it happened.
    pub position: Position,
    /// Its attributes, each name once.
    pub attributes: Vec<Attribute>,
    /// The event's own area: a client whose position is further away does not get it, one without a position
    /// is not held to it. `None` reaches everywhere.
    pub reach: Option<Radius>,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The flattened name, `road.name`.
    pub name: Symbol,
    /// Its value; an absent attribute (JSON `null`) is not listed.
    pub value: Value,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One value.
    Scalar(Scalar),
    /// Several; a constraint holds when one of them makes it true. May be empty.
    Array(Vec<Scalar>),
}

/// A number, a text or a truth value.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// Finite.
    Number(f64),
    /// Any text.
    Text(Symbol),
    /// `true` or `false`.
    Bool(bool),
}

/// A text with its hash, so that it is hashed once however many engines look it up.
#[derive(Clone, Debug)]
pub struct Symbol {
    text: CompactString,
    hash: u64,
}

/// One key a process, drawn at random: nobody outside can choose texts that collide.
static SYMBOL_HASH: LazyLock<foldhash::fast::RandomState> =
    LazyLock::new(foldhash::fast::RandomState::default);

/// A number drawn at random for each process, for hashes of what comes from outside.
pub(crate) fn process_key() -> u64 {
    static KEY: LazyLock<u64> = LazyLock::new(|| SYMBOL_HASH.hash_one("key of the process"));
    *KEY
}

impl Symbol {
    /// The symbol of a text.
    #[must_use]
    pub fn new(text: impl Into<CompactString>) -> Self {
        let text = text.into();
        let hash = SYMBOL_HASH.hash_one(text.as_str());
        Self { text, hash }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its hash, the same for equal texts within one process.
    #[inline]
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl Symbol {
    /// Bytes that its text takes outside of it: none where the text is short.
    fn heap_bytes(&self) -> usize {
        if self.text.is_heap_allocated() { self.text.capacity() } else { 0 }
    }
}

impl PartialEq for Symbol {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && same(self.text.as_bytes(), other.text.as_bytes())
    }
}

impl Eq for Symbol {}

/// Whether two texts are equal. Most are short, and two words that may overlap are compared sooner than `memcmp` is called.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        4..=7 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        8..=16 => {
            one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk()
        }
        _ => one == other,
    }
}

impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Event {
    /// An event without attributes that reaches everywhere.
    #[must_use]
    pub fn at(position: Position) -> Self {
        Self { position, attributes: Vec::new(), reach: None }
    }

    /// The event with one more attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attributes.push(Attribute { name: Symbol::new(name), value: value.into() });
        self
    }

    /// The memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = self.attributes.iter().map(|attribute| {
            attribute.name.heap_bytes()
                + match &attribute.value {
                    Value::Scalar(scalar) => scalar.heap_bytes(),
                    Value::Array(elements) => {
                        elements.capacity() * size_of::<Scalar>()
                            + elements.iter().map(Scalar::heap_bytes).sum::<usize>()
                    }
                }
        });
        size_of::<Self>() + self.attributes.capacity() * size_of::<Attribute>() + texts.sum::<usize>()
    }

    /// The value of an attribute, `None` where it is absent.
    #[must_use]
    pub fn value(&self, name: &Symbol) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == *name).map(|attribute| &attribute.value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Scalar(Scalar::Number(number))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Scalar(Scalar::Text(text.into()))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Scalar(Scalar::Bool(truth))
    }
}

impl Scalar {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.heap_bytes(),
            Self::Number(_) | Self::Bool(_) => 0,
        }
    }
}

impl Value {
    /// Its elements: itself, or those of the array.
    #[must_use]
    pub fn elements(&self) -> &[Scalar] {
        match self {
            Self::Scalar(scalar) => std::slice::from_ref(scalar),
            Self::Array(elements) => elements,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_one_place_or_in_length_are_not_the_same() {
        for len in 0..40 {
            let text = vec![b'a'; len];
            assert!(same(&text, &text.clone()), "{len}");
            assert!(!same(&text, &vec![b'a'; len + 1]), "{len}");
            for place in 0..len {
                let mut other = text.clone();
                other[place] = b'b';
                assert!(!same(&text, &other), "{len}, {place}");
            }
        }
    }
}
