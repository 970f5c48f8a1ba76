//! JSON documents of any length, read Feature by Feature.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::features::with_id;
use super::{ENTRY_BYTES, Feed, Origin, fault_in_json};

/// Reads documents behind one another. `line` is the number of the line on which the first begins.
pub(super) fn read(reader: impl Read, line: u64, feed: &Feed<String>) {
    let place = Place { line: Cell::new(line), budget: Cell::new(ENTRY_BYTES), is_over: Cell::new(false) };
    let counted = Counted { reader: BufReader::with_capacity(1 << 16, reader), place: &place };
    let mut documents = serde_json::Deserializer::from_reader(counted);
    while documents.end().is_err() {
        place.budget.set(ENTRY_BYTES);
        match (Document { feed, place: &place }).deserialize(&mut documents) {
            Ok(()) => {}
            Err(_) if place.is_over.get() => return,
            Err(fault) => return feed.give_up(place.line.get(), fault_in_json(&fault)),
        }
    }
}

/// How far a document was read.
struct Place {
    line: Cell<u64>,
    /// Bytes that what is read now may still have.
    budget: Cell<usize>,
    /// Whether nobody takes anything any more.
    is_over: Cell<bool>,
}

/// Counts lines and bytes. The parser takes a byte at a time, so that the count is that of what it has seen.
struct Counted<'a, R> {
    reader: BufReader<R>,
    place: &'a Place,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(bytes)?;
        let lines = bytes[..count].iter().filter(|byte| **byte == b'\n').count();
        self.place.line.set(self.place.line.get() + lines as u64);
        let Some(budget) = self.place.budget.get().checked_sub(count) else {
            return Err(io::Error::other("it is longer than 1 MiB"));
        };
        self.place.budget.set(budget);
        Ok(count)
    }
}

/// A Feature, or a collection of them.
struct Document<'a> {
    feed: &'a Feed<String>,
    place: &'a Place,
}

impl Document<'_> {
    fn give<E: serde::de::Error>(&self, line: u64, feature: Option<u64>, text: &str) -> Result<(), E> {
        // Line ends are between tokens, for in texts they are escaped.
        let text = with_id(text.replace(['\n', '\r'], " "));
        self.feed.give(Origin { line, feature }, text.len(), Ok(text)).map_err(|_| {
            self.place.is_over.set(true);
            E::custom("over")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Feature or a FeatureCollection")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        let line = self.place.line.get();
        let mut text = String::from("{");
        let mut kind = None;
        let mut is_collection = false;
        while let Some(name) = members.next_key::<String>()? {
            if name == "features" && kind.as_deref().is_none_or(|kind| kind == "FeatureCollection") {
                is_collection = true;
                members.next_value_seed(Features(&self))?;
                continue;
            }
            let value = members.next_value::<Box<RawValue>>()?;
            if name == "type" {
                kind = serde_json::from_str::<String>(value.get()).ok();
            }
            if is_collection {
                continue;
            }
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(&name).map_err(M::Error::custom)?);
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        if is_collection { Ok(()) } else { self.give(line, None, &text) }
    }
}

/// The features of a collection.
struct Features<'a>(&'a Document<'a>);

impl<'de> DeserializeSeed<'de> for Features<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Features<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of Features")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut features: S) -> Result<(), S::Error> {
        let Document { place, .. } = self.0;
        let mut index = 0;
        place.budget.set(ENTRY_BYTES);
        while let Some(feature) = features.next_element::<Box<RawValue>>()? {
            index += 1;
            let lines = feature.get().bytes().filter(|byte| *byte == b'\n').count();
            self.0.give(place.line.get() - lines as u64, Some(index), feature.get())?;
            place.budget.set(ENTRY_BYTES);
        }
        Ok(())
    }
}
