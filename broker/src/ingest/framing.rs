//! Cuts bodies into elements while they come: arrays, members `features` of collections, lines and sequences.
//!
//! Only the element at hand is kept, and one that is too large is passed over. Whether an element is well-formed is
//! for who reads it to say; here it is only found.

use super::scan;
use crate::model::error::ApiError;

/// An element that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    /// An element is there.
    Element,
    /// An element was passed over.
    TooLarge,
}

/// Records between separators.
pub(crate) struct Records {
    separator: u8,
    element: Vec<u8>,
    limit: usize,
    too_large: bool,
    finished: bool,
}

impl Records {
    pub(crate) fn new(separator: u8, limit: usize) -> Self {
        Self { separator, element: Vec::new(), limit, too_large: false, finished: false }
    }

    /// Looks for the end of a record in `part` from `at` on, and moves `at` behind it. Records of nothing but
    /// space are passed over.
    pub(crate) fn next(&mut self, part: &[u8], at: &mut usize) -> Option<Framed> {
        while *at < part.len() {
            self.begin();
            let rest = &part[*at..];
            let end = rest.iter().position(|byte| *byte == self.separator);
            let record = &rest[..end.unwrap_or(rest.len())];
            if self.element.len() + record.len() > self.limit {
                self.too_large = true;
                self.element.clear();
            }
            if !self.too_large {
                self.element.extend_from_slice(record);
            }
            match end {
                None => *at = part.len(),
                Some(end) => {
                    *at += end + 1;
                    if let Some(framed) = self.finish() {
                        return Some(framed);
                    }
                }
            }
        }
        None
    }

    fn begin(&mut self) {
        if self.finished {
            self.element.clear();
            self.too_large = false;
            self.finished = false;
        }
    }

    /// Returns the element that is left at the end of the body, or of a record.
    pub(crate) fn finish(&mut self) -> Option<Framed> {
        self.begin();
        self.finished = true;
        if self.too_large {
            Some(Framed::TooLarge)
        } else if self.element.trim_ascii().is_empty() {
            None
        } else {
            Some(Framed::Element)
        }
    }

    /// The record that was found.
    pub(crate) fn element(&self) -> &[u8] {
        self.element.trim_ascii()
    }
}

/// Elements of a JSON array: of the document itself, or of the member `features` of the object that it is.
pub(crate) struct Elements {
    place: Place,
    /// All but the elements, so that it can be checked in the end.
    skeleton: Vec<u8>,
    element: Vec<u8>,
    limit: usize,
    too_large: bool,
    /// Line of the next byte.
    line: usize,
    column: usize,
    /// Line of the element's first byte.
    element_line: usize,
    element_column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the array that is the document.
    Before,
    /// In the object around `features`.
    Around(Around),
    /// In the array, before an element.
    Expecting { after_comma: bool, closing: Closing },
    /// In an element.
    Inside { depth: usize, text: Text, kind: Kind, closing: Closing },
    /// In the array, after an element.
    Between { closing: Closing },
    /// After the document.
    After,
}

/// Where in the object around `features`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Around {
    depth: usize,
    text: Text,
    /// How much of the name `"features"` has been seen, if this is a name of the outermost object.
    name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// A name may begin here.
    Possible,
    /// This many bytes of the name have come, quotes included.
    Seen(usize),
    /// The whole name has come.
    Whole,
    /// The name and its colon have come.
    Colon,
    /// Something else is here.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Out,
    In,
    Escaped,
}

/// How an element ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The element ends with its last bracket.
    Bracketed,
    /// The element ends with its closing quote.
    Quoted,
    /// Before a comma, a bracket or space.
    Bare,
}

/// The end that has to come after the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Document,
    Collection,
}

const FEATURES: &[u8] = b"\"features\"";

impl Text {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Out | Self::Escaped, b'"') if self == Self::Out => Self::In,
            (Self::In, b'"') => Self::Out,
            (Self::In, b'\\') => Self::Escaped,
            (Self::Escaped, _) => Self::In,
            (same, _) => same,
        }
    }
}

impl Elements {
    /// The document is an array.
    pub(crate) fn of_array(limit: usize) -> Self {
        Self::new(Place::Before, limit)
    }

    /// The document is an object with the member `features`.
    pub(crate) fn of_collection(limit: usize) -> Self {
        Self::new(Place::Around(Around { depth: 0, text: Text::Out, name: Name::Other }), limit)
    }

    fn new(place: Place, limit: usize) -> Self {
        Self {
            place,
            skeleton: Vec::new(),
            element: Vec::new(),
            limit,
            too_large: false,
            line: 1,
            column: 1,
            element_line: 1,
            element_column: 1,
        }
    }

    /// Looks for the end of an element in `part` from `at` on, and moves `at` behind it.
    ///
    /// # Errors
    /// The text between elements is not as it should be, or the rest of the document is too large.
    pub(crate) fn next(&mut self, part: &[u8], at: &mut usize) -> Result<Option<Framed>, ApiError> {
        while let Some(&byte) = part.get(*at) {
            let (found, taken) = self.step(byte)?;
            if taken {
                *at += 1;
                if byte == b'\n' {
                    self.line += 1;
                    self.column = 1;
                } else {
                    self.column += 1;
                }
            }
            if found {
                return Ok(Some(if self.too_large { Framed::TooLarge } else { Framed::Element }));
            }
        }
        Ok(None)
    }

    /// Checks that the document is complete.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn finish(&self) -> Result<(), ApiError> {
        match self.place {
            Place::After | Place::Around(_) => Ok(()),
            Place::Before | Place::Expecting { .. } | Place::Inside { .. } | Place::Between { .. } => {
                Err(self.malformed("the document ends early"))
            }
        }
    }

    /// The element that was found.
    pub(crate) fn element(&self) -> &[u8] {
        &self.element
    }

    /// The document with an empty array in the place of the elements.
    pub(crate) fn skeleton(&self) -> &[u8] {
        &self.skeleton
    }

    /// A place in the element as a place in the document.
    pub(crate) fn place(&self, line: usize, column: usize) -> (usize, usize) {
        if line <= 1 {
            (self.element_line, self.element_column + column.saturating_sub(1))
        } else {
            (self.element_line + line - 1, column)
        }
    }

    fn malformed(&self, detail: &str) -> ApiError {
        ApiError::Malformed { detail: detail.to_owned(), line: self.line, column: self.column }
    }

    /// Takes a byte: whether it ended an element, and whether it is used up.
    fn step(&mut self, byte: u8) -> Result<(bool, bool), ApiError> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.place {
            Place::Before => match byte {
                b'[' => self.place = Place::Expecting { after_comma: false, closing: Closing::Document },
                _ if space => {}
                _ => return Err(ApiError::invalid("", "must be an array")),
            },
            Place::Around(around) => self.around(around, byte)?,
            Place::Expecting { after_comma, closing } => match byte {
                _ if space => {}
                b']' if !after_comma => self.close(closing),
                b']' | b',' | b'}' | b':' => return Err(self.malformed("expected an element")),
                _ => self.open(byte, closing),
            },
            Place::Inside { depth, text, kind, closing } => {
                return self.inside(depth, text, kind, closing, byte);
            }
            Place::Between { closing } => match byte {
                _ if space => {}
                b',' => self.place = Place::Expecting { after_comma: true, closing },
                b']' => self.close(closing),
                _ => return Err(self.malformed("expected a comma or the end of the array")),
            },
            Place::After if space => {}
            Place::After => return Err(self.malformed("something follows the document")),
        }
        Ok((false, true))
    }

    fn around(&mut self, around: Around, byte: u8) -> Result<(), ApiError> {
        if self.skeleton.len() >= self.limit {
            let limit = self.limit as u64;
            // What came before the features, or behind them; or there are none, because it is no collection.
            let text = String::from_utf8_lossy(&self.skeleton);
            let what = match scan::member_of_beginning(&text, "type") {
                Some("\"FeatureCollection\"") => "all of a collection but its features",
                Some("\"Feature\"") => "an event",
                _ => "an event, or all of a collection but its features,",
            };
            return Err(ApiError::TooLarge { what, limit, setting: "limits.event_bytes" });
        }
        self.skeleton.push(byte);
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let Around { mut depth, text, name } = around;
        if text == Text::Out {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        let name = match (name, byte) {
            (Name::Colon, b'[') if depth == 2 => {
                self.place = Place::Expecting { after_comma: false, closing: Closing::Collection };
                return Ok(());
            }
            (Name::Possible, b'"') => Name::Seen(1),
            (Name::Seen(count), byte) if FEATURES.get(count) == Some(&byte) => {
                if count + 1 == FEATURES.len() { Name::Whole } else { Name::Seen(count + 1) }
            }
            (Name::Whole, b':') => Name::Colon,
            (Name::Possible | Name::Whole | Name::Colon, _) if space => name,
            (_, b'{' | b',') if text == Text::Out && depth == 1 => Name::Possible,
            _ => Name::Other,
        };
        self.place = Place::Around(Around { depth, text: text.after(byte), name });
        Ok(())
    }

    fn open(&mut self, byte: u8, closing: Closing) {
        self.element.clear();
        self.too_large = false;
        self.element_line = self.line;
        self.element_column = self.column;
        let (depth, text, kind) = match byte {
            b'{' | b'[' => (1, Text::Out, Kind::Bracketed),
            b'"' => (0, Text::In, Kind::Quoted),
            _ => (0, Text::Out, Kind::Bare),
        };
        self.keep(byte);
        self.place = Place::Inside { depth, text, kind, closing };
    }

    fn inside(
        &mut self,
        depth: usize,
        text: Text,
        kind: Kind,
        closing: Closing,
        byte: u8,
    ) -> Result<(bool, bool), ApiError> {
        let ends_before =
            kind == Kind::Bare && matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
        if ends_before {
            self.place = Place::Between { closing };
            return Ok((true, false));
        }
        self.keep(byte);
        let depth = match byte {
            b'{' | b'[' if text == Text::Out => depth + 1,
            b'}' | b']' if text == Text::Out => depth.saturating_sub(1),
            _ => depth,
        };
        let text = text.after(byte);
        let ended = match kind {
            Kind::Bracketed => depth == 0,
            Kind::Quoted => text == Text::Out,
            Kind::Bare => false,
        };
        self.place =
            if ended { Place::Between { closing } } else { Place::Inside { depth, text, kind, closing } };
        Ok((ended, true))
    }

    fn keep(&mut self, byte: u8) {
        if self.element.len() < self.limit {
            self.element.push(byte);
        } else {
            self.too_large = true;
        }
    }

    fn close(&mut self, closing: Closing) {
        self.place = match closing {
            Closing::Document => Place::After,
            Closing::Collection => {
                self.skeleton.push(b']');
                Place::Around(Around { depth: 1, text: Text::Out, name: Name::Other })
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in parts of one size; elements that are too large are shown as `!`.
    fn elements(mut framer: Elements, text: &str, part_bytes: usize) -> Result<Vec<String>, ApiError> {
        let mut found = Vec::new();
        for part in text.as_bytes().chunks(part_bytes) {
            let mut at = 0;
            while let Some(framed) = framer.next(part, &mut at)? {
                found.push(match framed {
                    Framed::Element => String::from_utf8(framer.element().to_vec()).unwrap(),
                    Framed::TooLarge => "!".to_owned(),
                });
            }
        }
        framer.finish()?;
        found.push(String::from_utf8(framer.skeleton().to_vec()).unwrap());
        Ok(found)
    }

    #[track_caller]
    fn check(new: fn(usize) -> Elements, text: &str, expected: &[&str]) {
        for part_bytes in [1, 2, 3, 7, 1_000] {
            assert_eq!(
                elements(new(80), text, part_bytes).unwrap(),
                expected,
                "{text} in parts of {part_bytes}"
            );
        }
    }

    #[test]
    fn elements_of_arrays_are_found_however_the_body_is_cut() {
        check(Elements::of_array, " [ ] ", &[""]);
        check(
            Elements::of_array,
            r#"[{"a":"]}\""},[1,[2]] , "x,]" ,7, null]"#,
            &[r#"{"a":"]}\""}"#, "[1,[2]]", r#""x,]""#, "7", "null", ""],
        );
        let large = format!("[{{\"a\":\"{}\"}},1]", "x".repeat(90));
        check(Elements::of_array, &large, &["!", "1", ""]);
    }

    #[test]
    fn features_of_collections_are_found_wherever_they_stand() {
        check(
            Elements::of_collection,
            r#"{"a":{"features":[9]},"features" : [{"b":1}, {}],"type":"x"}"#,
            &[r#"{"b":1}"#, "{}", r#"{"a":{"features":[9]},"features" : [],"type":"x"}"#],
        );
        check(
            Elements::of_collection,
            r#"{"x":"features","features":3}"#,
            &[r#"{"x":"features","features":3}"#],
        );
        check(Elements::of_collection, r#"{"featuresx":[1]}"#, &[r#"{"featuresx":[1]}"#]);
        check(Elements::of_collection, r#"{"a":"\"features\":[1]"}"#, &[r#"{"a":"\"features\":[1]"}"#]);
    }

    #[test]
    fn what_stands_between_elements_is_checked() {
        for text in ["[1 2]", "[,]", "[1,]", "[1", "[1,", "[1]]", "[", "", "[}", "[{\"a\":1]"] {
            for part_bytes in [1, 100] {
                let found = elements(Elements::of_array(40), text, part_bytes);
                assert!(matches!(found, Err(ApiError::Malformed { .. })), "{text}: {found:?}");
            }
        }
        assert!(matches!(elements(Elements::of_array(40), "{}", 9), Err(ApiError::Invalid(_))));
        assert!(matches!(
            elements(Elements::of_collection(9), "{\"type\":\"x\"}", 9),
            Err(ApiError::TooLarge { .. })
        ));
    }

    #[test]
    fn places_are_those_of_the_document() {
        let mut framer = Elements::of_array(40);
        let text = b"[1,\n  {\"a\":\n2}]";
        let mut at = 0;
        framer.next(text, &mut at).unwrap();
        framer.next(text, &mut at).unwrap();
        assert_eq!(framer.place(1, 3), (2, 5));
        assert_eq!(framer.place(2, 1), (3, 1));
    }

    #[test]
    fn records_are_found_however_the_body_is_cut() {
        for part_bytes in [1, 2, 5, 100] {
            let mut records = Records::new(b'\n', 6);
            let mut found = Vec::new();
            let show = |framed, records: &Records| match framed {
                Framed::Element => String::from_utf8(records.element().to_vec()).unwrap(),
                Framed::TooLarge => "!".to_owned(),
            };
            for part in b"\n1\r\n  \n123456789\n22\n3".chunks(part_bytes) {
                let mut at = 0;
                while let Some(framed) = records.next(part, &mut at) {
                    found.push(show(framed, &records));
                }
            }
            if let Some(framed) = records.finish() {
                found.push(show(framed, &records));
            }
            assert_eq!(found, ["1", "!", "22", "3"], "parts of {part_bytes}");
        }
    }
}
