//! JSON objects as lists of members whose values are still text: each is then read by who knows what it should be,
//! and can say where it is wrong.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use wire::Fault;

use super::near::Vocabulary;
use super::scan::{self, Shape};
use crate::model::error::{ApiError, excerpt};

/// The members of an object, in order, each name once.
pub(crate) struct Members<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
    /// Members of the member that is an object and that the shape tells apart in the same pass.
    inside: Option<Box<Self>>,
    has_line_ends: bool,
}

/// A text that should be an object, and its members where they have been told apart.
pub(crate) struct Object<'a> {
    pub(crate) text: &'a str,
    pub(crate) members: Option<Members<'a>>,
}

impl<'a> Object<'a> {
    /// Tells the members of a text apart, unless it has a fault. The fault is told by [`Object::into_members`].
    pub(crate) fn scan(shape: Shape, text: &'a str) -> Self {
        Self { text, members: scan::members(shape, text) }
    }

    /// The members, as [`Members::parse`] reads them.
    pub(crate) fn into_members(self) -> Result<Members<'a>, ApiError> {
        let members = self.members.map_or_else(|| Members::read_slowly(self.text), Ok)?;
        members.check_once()?;
        Ok(members)
    }
}

impl<'a> Members<'a> {
    /// Reads a text that should be an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, ApiError> {
        Object::scan(Shape::Plain, text).into_members()
    }

    /// Reads the members as [`Members::parse`] does, but lets names come twice: for a caller that has to look at something
    /// before [`Members::check_once`].
    pub(crate) fn read(shape: Shape, text: &'a str) -> Result<Self, ApiError> {
        scan::members(shape, text).map_or_else(|| Self::read_slowly(text), Ok)
    }

    /// Members that a scan has told apart.
    pub(super) fn told_apart(
        members: Vec<(Cow<'a, str>, &'a str)>,
        inside: Option<Box<Self>>,
        has_line_ends: bool,
    ) -> Self {
        Self { members, inside, has_line_ends }
    }

    /// Reads the members with the place of each fault.
    pub(super) fn read_slowly(text: &'a str) -> Result<Self, ApiError> {
        if let Some(kind) = not_an_object(text) {
            // Malformed comes before wrong, so that `nul` is not called "not an object".
            check_syntax(text)?;
            return Err(ApiError::invalid("", format!("must be an object, not {kind}")));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer
            .deserialize_map(MembersVisitor)
            .and_then(|members| deserializer.end().map(|()| members))
            .map_err(|error| malformed(&error))?;
        if members.len() > MEMBERS_MAX {
            return Err(ApiError::invalid("", format!("an object has at most {MEMBERS_MAX} members")));
        }
        Ok(Self { members, inside: None, has_line_ends: text.contains(['\n', '\r']) })
    }

    /// Whether the text of the object has line ends.
    pub(crate) fn has_line_ends(&self) -> bool {
        self.has_line_ends
    }

    /// Sees that each name comes once.
    pub(crate) fn check_once(&self) -> Result<(), ApiError> {
        match repeated(&self.members) {
            Some(name) => Err(ApiError::invalid(pointer("", name), "this member is given twice")),
            None => Ok(()),
        }
    }

    /// A member that is there once. `null` counts as absent.
    pub(crate) fn only(&self, name: &str) -> Option<&'a str> {
        let mut found = self.members.iter().filter(|(found, _)| found == name);
        let (_, text) = found.next()?;
        (found.next().is_none() && *text != "null").then_some(*text)
    }

    /// Whether a member is there, and is `null`.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.members.iter().any(|(found, text)| found == name && *text == "null")
    }

    /// Takes a member out. `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a str> {
        let index = self.members.iter().position(|(found, _)| found == name)?;
        let (_, text) = self.members.swap_remove(index);
        (text != "null").then_some(text)
    }

    /// Takes the member out that the object's shape tells apart.
    pub(crate) fn take_object(&mut self, name: &str) -> Option<Object<'a>> {
        let text = self.take(name)?;
        Some(Object { text, members: self.inside.take().map(|inside| *inside) })
    }

    /// Looks at a member without taking it.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.members.iter().find(|(found, text)| found == name && *text != "null").map(|(_, text)| *text)
    }

    /// The members that have not been taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|(name, text)| (name.as_ref(), *text))
    }

    /// The members that have not been taken, as an object again.
    pub(crate) fn to_text(&self) -> String {
        object(self.rest())
    }

    /// A fault for each member that has not been taken, as far as faults are told. Those of members that are nearly known ones
    /// go to `begin`, before the faults of the object that follow from them: what a member lacks is often there misspelt.
    pub(crate) fn refuse_rest(
        &self,
        parent: &str,
        vocabulary: &Vocabulary,
        begin: usize,
        faults: &mut Vec<Fault>,
    ) {
        let room = (FAULTS_MAX + 1).saturating_sub(faults.len());
        let mut near = Vec::new();
        for (name, _) in self.rest().take(room) {
            let pointer = pointer(parent, name);
            match vocabulary.near(name) {
                Some(known) if known == name => {
                    let detail = "does not go with the other members".to_owned();
                    faults.push(Fault { pointer, detail });
                }
                Some(known) => {
                    near.push(Fault {
                        pointer,
                        detail: format!("there is no such member: did you mean {known}?"),
                    });
                }
                None => faults.push(Fault { pointer, detail: "there is no such member".to_owned() }),
            }
        }
        faults.splice(begin..begin, near);
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let text: &RawValue = map.next_value()?;
            // One more than there may be tells that there are too many; the rest is read for its syntax.
            if members.len() <= MEMBERS_MAX {
                members.push((name.0, text.get()));
            }
        }
        Ok(members)
    }
}

/// Members as an object.
pub(crate) fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = "{".to_owned();
    for (name, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// The most faults of a document that are looked for; the rest of a document that is so wrong is not examined.
pub(crate) const FAULTS_MAX: usize = 32;

/// The most members of an object whose members are looked at by name. It bounds the search for repeated names.
pub(super) const MEMBERS_MAX: usize = 1_000;

/// A member's name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn repeated<'m>(members: &'m [(Cow<'_, str>, &str)]) -> Option<&'m str> {
    if members.len() > 32 {
        let mut seen = std::collections::HashSet::new();
        return members.iter().map(|(name, _)| name.as_ref()).find(|name| !seen.insert(*name));
    }
    let is_there = |index: usize, name: &str| members[..index].iter().any(|(other, _)| other == name);
    let mut names = members.iter().map(|(name, _)| name.as_ref()).enumerate();
    names.find(|(index, name)| is_there(*index, name)).map(|(_, name)| name)
}

/// The kind of a JSON text, in words; `None` for an object.
fn not_an_object(text: &str) -> Option<&'static str> {
    match text.trim_start_matches([' ', '\t', '\n', '\r']).bytes().next() {
        Some(b'{') => None,
        Some(b'[') => Some("an array"),
        Some(b'"') => Some("a text"),
        Some(b't' | b'f') => Some("a truth value"),
        Some(b'n') => Some("null"),
        Some(_) => Some("a number"),
        None => Some("nothing"),
    }
}

/// Whether a text is JSON at all.
pub(crate) fn check_syntax(text: &str) -> Result<(), ApiError> {
    serde_json::from_str::<&RawValue>(text).map(drop).map_err(|error| malformed(&error))
}

/// The refusal for a fault that serde_json found, with its position.
pub(crate) fn malformed(error: &serde_json::Error) -> ApiError {
    ApiError::Malformed { detail: reason(error), line: error.line(), column: error.column() }
}

/// The fault that serde_json found, without its position: that is the text's own, while people look for it in the document.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// The pointer of a member (RFC 6901).
pub(crate) fn pointer(parent: &str, name: &str) -> String {
    let mut pointer = String::with_capacity(parent.len() + name.len().min(STEP_BYTES_MAX) + 1);
    pointer.push_str(parent);
    push_name(&mut pointer, name);
    pointer
}

/// Bytes of a name that a pointer shows. A fault holds its pointer, so that the name's length must not be the sender's choice.
const STEP_BYTES_MAX: usize = 64;

/// Appends a step to a pointer. Of a long name it is the beginning and an ellipsis.
pub(crate) fn push_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    let is_plain = |byte: u8| !matches!(byte, b'~' | b'/');
    if name.len() <= STEP_BYTES_MAX && name.bytes().all(is_plain) {
        return pointer.push_str(name);
    }
    for character in excerpt(name, STEP_BYTES_MAX).chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Reads a text as a value of some type; the fault says what serde_json found.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(
    text: &'a str,
    pointer: &str,
    expected: &str,
) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let detail = if error.is_data() {
            format!("must be {expected}")
        } else {
            // Numbers that no float holds, and lone surrogates, are only found now.
            format!("must be {expected}: {}", reason(&error))
        };
        Fault { pointer: pointer.to_owned(), detail }
    })
}

/// Reads a JSON text, which is copied only where it has escapes.
pub(crate) fn read_text(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    match serde_json::from_str::<&str>(text) {
        Ok(plain) => Ok(Cow::Borrowed(plain)),
        Err(_) => serde_json::from_str::<String>(text).map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_name_and_null_is_absent() {
        let mut members = Members::parse(r#" {"a": 1, "b": null, "c\u0064": [1, 2]} "#).unwrap();
        assert_eq!(members.take("a"), Some("1"));
        assert_eq!(members.take("a"), None);
        assert_eq!(members.take("b"), None);
        assert_eq!(members.rest().collect::<Vec<_>>(), [("cd", "[1, 2]")]);
    }

    #[test]
    fn what_is_not_an_object_is_told_apart_from_what_is_not_json() {
        let malformed = |text| matches!(Members::parse(text), Err(ApiError::Malformed { .. }));
        let invalid = |text| matches!(Members::parse(text), Err(ApiError::Invalid(_)));
        for text in ["", "{", "{\"a\":}", "nul", "{\"a\":1}}", "{\"a\":01}", "[1,", "NaN"] {
            assert!(malformed(text), "{text}");
        }
        for text in ["[]", "1", "\"a\"", "null", "{\"a\":1,\"a\":2}"] {
            assert!(invalid(text), "{text}");
        }
        let object = |count: usize| {
            let members: Vec<String> = (0..count).map(|index| format!("\"m{index}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(Members::parse(&object(MEMBERS_MAX)).is_ok());
        assert!(invalid(&object(MEMBERS_MAX + 1)) && malformed(&object(MEMBERS_MAX + 1).replace('}', "")));
    }

    #[test]
    fn a_member_is_told_apart_from_two_of_its_name() {
        let members = Members::read(Shape::Plain, r#"{"a":1,"b":2,"a":3,"c":null}"#).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|name| members.only(name)), [None, Some("2"), None, None]);
        assert!(members.check_once().is_err());
    }

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(pointer("/a", "b/c~d"), "/a/b~1c~0d");
    }

    #[test]
    fn pointers_show_the_beginning_of_a_long_name() {
        let whole = "n".repeat(STEP_BYTES_MAX);
        assert_eq!(pointer("/a", &whole), format!("/a/{whole}"));
        assert_eq!(pointer("/a", &format!("{whole}n")), format!("/a/{whole}…"));
        // Never within a character, and never within an escape.
        let umlauts = "ü".repeat(STEP_BYTES_MAX);
        assert_eq!(pointer("", &format!("n{umlauts}")), format!("/n{}…", &umlauts[..62]));
        assert_eq!(pointer("", &"/".repeat(100)), format!("/{}…", "~1".repeat(STEP_BYTES_MAX)));
    }
}
