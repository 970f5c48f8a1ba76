//! JSON, scanned: one pass over a text tells the members of its objects apart and checks the whole grammar, a second one reads values
//! where they stand.
//!
//! The first pass gives up, without a reason, on every fault and on what is rare; the caller then has `serde_json` read the text,
//! which knows the place of the fault. `serde_json` accepts every text that the pass accepts, with the same members.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::json::{self, MEMBERS_MAX, Members};

/// The kind of an object, which says whether a member of it is told apart in the same pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Its values stay text.
    Plain,
    /// A Feature, with its `geometry`.
    Feature,
    /// A frame of a WebSocket, with its `event`.
    Frame,
}

impl Shape {
    fn of_member(self, name: &str) -> Option<Self> {
        match self {
            Self::Feature if name == "geometry" => Some(Self::Plain),
            Self::Frame if name == "event" => Some(Self::Feature),
            Self::Plain | Self::Feature | Self::Frame => None,
        }
    }
}

/// Tells the members of a text apart that is one object.
pub(super) fn members(shape: Shape, text: &str) -> Option<Members<'_>> {
    let mut scan = Scan::of(text);
    scan.space();
    let members = scan.object(shape)?;
    scan.space();
    (scan.at == text.len()).then_some(members)
}

/// A member of an object whose text may break off somewhere; `None` too where the member is not there before the break.
pub(super) fn member_of_beginning<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut scan = Scan::of(text);
    scan.space();
    let mut goes_on = scan.open(b'{')?;
    while goes_on {
        let is_it = scan.take_text().ok()? == name;
        scan.colon()?;
        let start = scan.at;
        scan.pass_over()?;
        if is_it {
            return Some(&text[start..scan.at]);
        }
        goes_on = scan.goes_on(b'}')?;
    }
    None
}

/// A place in a text, and what is read from there on.
pub(super) struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether there was a line end since this was cleared. In a text that is JSON they stand between tokens only.
    has_line_ends: bool,
}

/// Levels below a value that is passed over, at most: one bit of a word each.
const LEVELS: u32 = u64::BITS;

impl<'a> Scan<'a> {
    /// A scan from the beginning of a text.
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, has_line_ends: false }
    }

    /// Reads a string.
    ///
    /// # Errors
    /// The reason why it is no text: half of a surrogate pair, for one.
    pub(super) fn take_text(&mut self) -> Result<Cow<'a, str>, String> {
        let start = self.at;
        match self.string() {
            Some(false) => Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1])),
            Some(true) => {
                let text = serde_json::from_str(&self.text[start..self.at]);
                text.map(Cow::Owned).map_err(|error| json::reason(&error))
            }
            None => Err("expected a text".to_owned()),
        }
    }

    /// Reads a number.
    ///
    /// # Errors
    /// The reason why it is none that a float holds.
    pub(super) fn take_number(&mut self) -> Result<f64, String> {
        let start = self.at;
        self.number().ok_or("expected a number")?;
        let number = self.text[start..self.at].parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| "number out of range".to_owned())
    }

    /// Goes into an object or an array; says whether something is in it. Where nothing is, it goes behind it.
    pub(super) fn open(&mut self, bracket: u8) -> Option<bool> {
        self.skip(bracket)?;
        self.space();
        // In ASCII each bracket that closes is two behind the one that opens.
        let is_empty = self.peek()? == bracket + 2;
        self.at += usize::from(is_empty);
        Some(!is_empty)
    }

    /// Goes from the end of a member or an element to the next one, or behind the bracket that closes; says which.
    pub(super) fn goes_on(&mut self, bracket: u8) -> Option<bool> {
        self.space();
        let goes_on = self.peek()? == b',';
        self.skip(if goes_on { b',' } else { bracket })?;
        if goes_on {
            self.space();
        }
        Some(goes_on)
    }

    /// Passes over a value, however deep it is.
    pub(super) fn pass_over(&mut self) -> Option<()> {
        let start = self.at;
        self.value().or_else(|| {
            let mut values =
                serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<IgnoredAny>();
            values.next()?.ok()?;
            self.at = start + values.byte_offset();
            Some(())
        })
    }

    fn object(&mut self, shape: Shape) -> Option<Members<'a>> {
        let had_line_ends = std::mem::take(&mut self.has_line_ends);
        let mut members = Vec::with_capacity(8);
        let mut inside = None;
        let mut goes_on = self.open(b'{')?;
        while goes_on {
            let name = self.take_text().ok()?;
            self.colon()?;
            let start = self.at;
            match shape.of_member(&name) {
                Some(shape) if self.peek()? == b'{' => inside = Some(Box::new(self.object(shape)?)),
                _ => self.value()?,
            }
            if members.len() == MEMBERS_MAX {
                return None;
            }
            members.push((name, &self.text[start..self.at]));
            goes_on = self.goes_on(b'}')?;
        }
        let has_line_ends = self.has_line_ends;
        self.has_line_ends |= had_line_ends;
        Some(Members::told_apart(members, inside, has_line_ends))
    }

    /// Goes from behind a name to its value.
    pub(super) fn colon(&mut self) -> Option<()> {
        self.space();
        self.skip(b':')?;
        self.space();
        Some(())
    }

    /// Passes over a value.
    fn value(&mut self) -> Option<()> {
        // The lowest bit says whether the innermost level is an object.
        let (mut depth, mut objects) = (0, 0_u64);
        loop {
            let first = self.peek()?;
            match first {
                b'"' => drop(self.string()?),
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'{' | b'[' => {
                    if depth == LEVELS {
                        return None;
                    }
                    if self.open(first)? {
                        depth += 1;
                        objects = objects << 1 | u64::from(first == b'{');
                        if first == b'{' {
                            self.string()?;
                            self.colon()?;
                        }
                        continue;
                    }
                }
                _ => return None,
            }
            // Behind a value: to the next one, out of as many levels as end here.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = objects & 1 == 1;
                if self.goes_on(if is_object { b'}' } else { b']' })? {
                    if is_object {
                        self.string()?;
                        self.colon()?;
                    }
                    break;
                }
                depth -= 1;
                objects >>= 1;
            }
        }
    }

    /// Passes over a string and says whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.skip(b'"')?;
        let mut has_escapes = false;
        loop {
            self.plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(has_escapes);
                }
                b'\\' => {
                    has_escapes = true;
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 5;
                        }
                        _ => return None,
                    }
                }
                ..b' ' => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Goes on to a quote, a backslash or a control character, or to within eight bytes of the end.
    fn plain(&mut self) {
        const ONES: u64 = u64::MAX / 255;
        const HIGHS: u64 = ONES << 7;
        while let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            // The lowest high bit that is set is right; a borrow makes those above it wrong.
            let below = |limit: u8, bytes: u64| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes & HIGHS;
            let is = |byte: u8| below(1, eight ^ (ONES * u64::from(byte)));
            let found = is(b'"') | is(b'\\') | below(b' ', eight);
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes over `true`, `false` or `null`.
    pub(super) fn literal(&mut self, literal: &str) -> Option<()> {
        self.bytes[self.at..].starts_with(literal.as_bytes()).then(|| self.at += literal.len())
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek() {
            self.has_line_ends |= matches!(byte, b'\n' | b'\r');
            self.at += 1;
        }
    }

    /// The byte here.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Compares the members of a text with those that `serde_json` finds.
    #[track_caller]
    fn check(text: &str) {
        let expected = Members::read_slowly(text);
        let opened = text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
        for (shape, name) in [(Shape::Plain, ""), (Shape::Feature, "geometry"), (Shape::Frame, "event")] {
            match (members(shape, text), &expected) {
                (Some(mut found), Ok(expected)) => {
                    assert!(found.rest().eq(expected.rest()), "{text}");
                    if found.check_once().is_err() {
                        continue;
                    }
                    let Some(inside) = found.take_object(name) else { continue };
                    assert_eq!(inside.members.is_some(), inside.text.starts_with('{'), "{text}");
                    let Some(members) = inside.members else { continue };
                    let expected = Members::read_slowly(inside.text).expect(text);
                    assert!(members.rest().eq(expected.rest()), "{text}");
                    assert_eq!(members.has_line_ends(), expected.has_line_ends(), "{text}");
                }
                (Some(_), Err(refusal)) => panic!("{text}: {refusal:?}"),
                (None, Ok(_)) => assert!(opened > LEVELS as usize, "{text}"),
                (None, Err(_)) => {}
            }
        }
    }

    #[test]
    fn a_scan_finds_what_serde_json_finds() {
        let texts = [
            r#"{"op":"publish","ref":7,"event":{"type":"Feature","geometry":{"type":"Point","coordinates":[9.18,-45.4E+1]},"properties":{"a":{"b":[true,{},[]],"c":null},"text":"\u00fc \"x\" é"}}}"#,
            "\n{ \"event\" : {\r\n\t\"g\\u0065ometry\" : { } , \"x\" : [ ] } , \"geometry\" : {\"a\" : 0} } ",
            r#"{"a":[[[1e5,"\ud83d\ude00",-0.5,"long enough for a word or two"],false],{"b":{"c":{}}}],"":"","a":01}"#,
        ];
        for text in texts {
            check(text);
            for (at, character) in text.char_indices() {
                let (before, after) = (&text[..at], &text[at + character.len_utf8()..]);
                check(&format!("{before}{after}"));
                for other in "\"\\{}[],:0-.eu \n\u{1}é".chars() {
                    check(&format!("{before}{other}{after}"));
                }
            }
        }
        for levels in [LEVELS - 1, LEVELS, LEVELS + 1, 1_000].map(|levels| levels as usize) {
            check(&format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels)));
        }
    }

    #[test]
    fn a_scan_finds_what_serde_json_finds_in_what_was_found_once() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for target in ["feature", "frames", "framing", "position", "subscription"] {
            for seed in fs::read_dir(corpus.join(target)).unwrap() {
                let data = fs::read(seed.unwrap().path()).unwrap();
                let text = String::from_utf8_lossy(&data);
                check(&text);
                text.lines().for_each(check);
            }
        }
    }

    #[test]
    fn numbers_are_those_of_serde_json() {
        for text in [
            "0",
            "-0",
            "7",
            "-45.4654",
            "1e5",
            "1E-7",
            "0.1",
            "5e-324",
            "1e-400",
            "123456789.123456789e-5",
            "18446744073709551615",
            "18446744073709551616",
            "9007199254740993",
            "-9223372036854775809",
            "1.7976931348623157e308",
            "2.2250738585072011e-308",
        ] {
            let expected: f64 = serde_json::from_str(text).unwrap();
            let found = Scan::of(text).take_number().unwrap();
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
        }
        for text in ["1e309", "-1e400"] {
            let refused = serde_json::from_str::<f64>(text).unwrap_err();
            assert_eq!(Scan::of(text).take_number(), Err(json::reason(&refused)), "{text}");
        }
    }

    #[test]
    fn a_member_is_found_before_a_text_breaks_off() {
        let text = r#" {"a":{"type":1}, "type" : "Feature","b":[1,2]}"#;
        for length in 0..=text.len() {
            let found = member_of_beginning(&text[..length], "type");
            assert_eq!(found, (length >= 36).then_some("\"Feature\""), "{}", &text[..length]);
        }
        for text in ["[]", "", "{}", "7", r#"{"b":[],"a":{"type":1}"#] {
            assert_eq!(member_of_beginning(text, "type"), None, "{text}");
        }
    }

    #[test]
    fn a_value_is_passed_over_however_deep_it_is() {
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        for value in ["{\"a\":[1,{}]}", "-1.5", "\"\\\"\"", "null", &deep] {
            let text = format!("{value} ,");
            let mut scan = Scan::of(&text);
            assert_eq!(scan.pass_over(), Some(()), "{value}");
            assert_eq!(scan.at, value.len());
        }
    }
}
