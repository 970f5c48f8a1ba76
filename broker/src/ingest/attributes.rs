//! Attributes: `properties` flattened to names and values.

use std::collections::HashSet;

use matcher::event::{Attribute, Scalar, Symbol, Value};
use wire::Fault;

use super::json::{self, FAULTS_MAX};
use super::scan::Scan;
use crate::config::Limits;

/// How much an event may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Attributes, the elements of arrays counted each.
    pub(crate) attributes: usize,
    /// Nesting.
    pub(crate) depth: usize,
    /// Bytes of a flattened name.
    pub(crate) name_bytes: usize,
    /// Bytes of a text.
    pub(crate) text_bytes: usize,
}

impl Bounds {
    pub(crate) const NONE: Self =
        Self { attributes: usize::MAX, depth: usize::MAX, name_bytes: usize::MAX, text_bytes: usize::MAX };

    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            attributes: limits.attributes_per_event,
            depth: limits.depth,
            name_bytes: limits.name_bytes,
            text_bytes: limits.text_bytes,
        }
    }
}

/// Flattens the text of `properties`, which should be an object.
///
/// Names of nested members are joined by dots. All that is inside of an array belongs to array attributes:
/// `{"a": [{"b": 1}, {"b": [2, 3]}]}` is `a.b` with three elements. `null` is absent. A flattened name that
/// two members have is a fault: which of them it meant cannot be said.
pub(crate) fn flatten(text: &str, bounds: &Bounds, faults: &mut Vec<Fault>) -> Vec<Attribute> {
    if !text.starts_with('{') {
        faults.push(Fault { pointer: "/properties".to_owned(), detail: "must be an object".to_owned() });
        return Vec::new();
    }
    let mut walk = Walk::new("/properties", bounds, faults);
    walk.flattens = true;
    walk.run(text);
    let Found { attributes, absent } = walk.found;
    let is_there_too = |(index, name): (usize, &Symbol)| {
        absent[..index].contains(name) || attributes.iter().any(|attribute| attribute.name == *name)
    };
    let absent_too = absent.iter().enumerate().find(|absent| is_there_too(*absent));
    let absent_too = absent_too.map(|(_, name)| name.as_str());
    if let Some(name) = repeated(&attributes).or(absent_too) {
        faults.push(Fault {
            pointer: "/properties".to_owned(),
            detail: format!("two members flatten to the attribute {name}"),
        });
    }
    attributes
}

/// Checks a value of a member that is only passed on: its nesting, and that its numbers and texts can be read by anyone.
pub(crate) fn check(text: &str, pointer: &str, bounds: &Bounds, faults: &mut Vec<Fault>) {
    Walk::new(pointer, bounds, faults).run(text);
}

/// The name that two attributes have, if any.
fn repeated(attributes: &[Attribute]) -> Option<&str> {
    let before = |index: usize, name: &Symbol| attributes[..index].iter().any(|other| other.name == *name);
    let mut seen = (attributes.len() > 32)
        .then(|| HashSet::with_capacity_and_hasher(attributes.len(), foldhash::fast::RandomState::default()));
    // Of many only those are compared with all before whose hash has come.
    let mut may_be_there = |name: &Symbol| seen.as_mut().is_none_or(|seen| !seen.insert(name.hash()));
    let twice = attributes
        .iter()
        .enumerate()
        .find(|(index, attribute)| may_be_there(&attribute.name) && before(*index, &attribute.name));
    twice.map(|(_, attribute)| attribute.name.as_str())
}

#[derive(Default)]
struct Found {
    attributes: Vec<Attribute>,
    /// The flattened names of what is absent, being `null` or an object of nothing, outside of arrays.
    absent: Vec<Symbol>,
}

/// The detail of a fault where the text cannot be read on.
type Unreadable = String;

/// A walk over a value. It goes on after a fault where the text still can be read.
struct Walk<'w> {
    bounds: &'w Bounds,
    faults: &'w mut Vec<Fault>,
    flattens: bool,
    found: Found,
    values_count: usize,
    pointer: String,
    name: String,
    depth: usize,
    /// How many attributes there were before the outermost array that the walk is in.
    before_array: Option<usize>,
}

impl<'w> Walk<'w> {
    fn new(pointer: &str, bounds: &'w Bounds, faults: &'w mut Vec<Fault>) -> Self {
        // Room for most names, so that places and names do not grow step by step.
        let mut place = String::with_capacity(64);
        place.push_str(pointer);
        Self {
            bounds,
            faults,
            flattens: false,
            found: Found::default(),
            values_count: 0,
            pointer: place,
            name: String::with_capacity(32),
            depth: 0,
            before_array: None,
        }
    }

    fn run(&mut self, text: &str) {
        if let Err(detail) = self.value(&mut Scan::of(text)) {
            // The walk stopped where it was, so the pointer still says where.
            self.fault(detail);
        }
    }

    fn fault(&mut self, detail: String) {
        self.faults.push(Fault { pointer: self.pointer.clone(), detail });
    }

    fn value(&mut self, scan: &mut Scan<'_>) -> Result<(), Unreadable> {
        match scan.peek() {
            Some(b'{') => self.members(scan)?,
            Some(b'[') => self.elements(scan)?,
            Some(b'"') => self.text(&scan.take_text()?),
            Some(b't') => {
                scan.literal("true").ok_or_else(malformed)?;
                self.scalar(|| Scalar::Bool(true));
            }
            Some(b'f') => {
                scan.literal("false").ok_or_else(malformed)?;
                self.scalar(|| Scalar::Bool(false));
            }
            Some(b'n') => {
                scan.literal("null").ok_or_else(malformed)?;
                self.absent();
            }
            _ => {
                let number = scan.take_number()?;
                self.scalar(|| Scalar::Number(number));
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if self.flattens && text.len() > self.bounds.text_bytes {
            let limit = self.bounds.text_bytes;
            return self.fault(format!("a text may have at most {limit} bytes (limits.text_bytes)"));
        }
        self.scalar(|| Scalar::Text(Symbol::new(text)));
    }

    fn scalar(&mut self, scalar: impl FnOnce() -> Scalar) {
        if !self.flattens {
            return;
        }
        if self.depth == 0 {
            return self.fault("must be an object".to_owned());
        }
        self.values_count += 1;
        if self.values_count > self.bounds.attributes {
            // Told once; the rest is read only for its syntax.
            self.flattens = false;
            let limit = self.bounds.attributes;
            return self
                .fault(format!("an event has at most {limit} attributes (limits.attributes_per_event)"));
        }
        match self.before_array {
            None => self.push(Value::Scalar(scalar())),
            Some(before) => {
                if let Value::Array(elements) = self.array(before) {
                    elements.push(scalar());
                }
            }
        }
    }

    /// Nothing is here: remembered only so that its name does not come twice.
    fn absent(&mut self) {
        if self.flattens
            && self.before_array.is_none()
            && self.depth > 0
            && self.found.absent.len() < self.bounds.attributes
        {
            self.found.absent.push(Symbol::new(self.name.as_str()));
        }
    }

    fn push(&mut self, value: Value) {
        self.found.attributes.push(Attribute { name: Symbol::new(self.name.as_str()), value });
    }

    /// The array attribute of the current name, made when it is not among those behind the first `before`.
    fn array(&mut self, before: usize) -> &mut Value {
        let name = Symbol::new(self.name.as_str());
        let known = self.found.attributes[before..].iter().position(|attribute| attribute.name == name);
        let index = known.map_or_else(
            || {
                self.push(Value::Array(Vec::new()));
                self.found.attributes.len() - 1
            },
            |known| before + known,
        );
        &mut self.found.attributes[index].value
    }

    /// Goes a level down, or says that it is too deep.
    fn descend(&mut self) -> bool {
        if self.depth >= self.bounds.depth {
            let limit = self.bounds.depth;
            self.fault(format!("nested more than {limit} deep (limits.depth)"));
            return false;
        }
        self.depth += 1;
        true
    }

    /// Goes to a member, or says that nothing is there to be looked at: its name is too long.
    fn enter_member(&mut self, name: &str) -> bool {
        json::push_name(&mut self.pointer, name);
        if !self.flattens {
            return true;
        }
        // The members of `properties` itself, one of which may have an empty name, stand alone.
        let dot_bytes = usize::from(self.depth > 1);
        if self.name.len() + dot_bytes + name.len() > self.bounds.name_bytes {
            let limit = self.bounds.name_bytes;
            self.fault(format!("a name may have at most {limit} bytes (limits.name_bytes)"));
            return false;
        }
        if dot_bytes > 0 {
            self.name.push('.');
        }
        self.name.push_str(name);
        true
    }

    fn check_faults(&self) -> Result<(), Unreadable> {
        if self.faults.len() > FAULTS_MAX { Err("too many faults".to_owned()) } else { Ok(()) }
    }

    fn members(&mut self, scan: &mut Scan<'_>) -> Result<(), Unreadable> {
        if !self.descend() {
            return scan.pass_over().ok_or_else(malformed);
        }
        let (pointer_end, name_end) = (self.pointer.len(), self.name.len());
        let is_empty = !scan.open(b'{').ok_or_else(malformed)?;
        let mut is_over = is_empty;
        while !is_over {
            let name = scan.take_text()?;
            scan.colon().ok_or_else(malformed)?;
            let is_named = self.enter_member(&name);
            self.check_faults()?;
            if is_named {
                self.value(scan)?;
            } else {
                scan.pass_over().ok_or_else(malformed)?;
            }
            self.pointer.truncate(pointer_end);
            self.name.truncate(name_end);
            is_over = !scan.goes_on(b'}').ok_or_else(malformed)?;
        }
        self.depth -= 1;
        if is_empty {
            self.absent();
        }
        Ok(())
    }

    fn elements(&mut self, scan: &mut Scan<'_>) -> Result<(), Unreadable> {
        if !self.descend() {
            return scan.pass_over().ok_or_else(malformed);
        }
        let pointer_end = self.pointer.len();
        let (outer, before) = (self.before_array, self.found.attributes.len());
        self.before_array = outer.or(Some(before));
        let mut is_over = !scan.open(b'[').ok_or_else(malformed)?;
        let mut index = 0_usize;
        loop {
            self.pointer.push('/');
            self.pointer.push_str(itoa::Buffer::new().format(index));
            self.check_faults()?;
            if is_over {
                break;
            }
            self.value(scan)?;
            self.pointer.truncate(pointer_end);
            index += 1;
            is_over = !scan.goes_on(b']').ok_or_else(malformed)?;
        }
        self.pointer.truncate(pointer_end);
        // An array of nothing is there, and no constraint but IS NOT NULL holds on it.
        if outer.is_none() && self.flattens && self.found.attributes.len() == before {
            self.array(before);
        }
        self.before_array = outer;
        self.depth -= 1;
        Ok(())
    }
}

/// The members that are walked over are JSON, so that only a caller with another text is told this.
fn malformed() -> Unreadable {
    "is not JSON".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { attributes: 8, depth: 4, name_bytes: 16, text_bytes: 8 };

    #[track_caller]
    fn check_flat(text: &str, expected: &[(&str, Value)]) {
        let mut faults = Vec::new();
        let found = flatten(text, &BOUNDS, &mut faults);
        assert!(faults.is_empty(), "{text}: {faults:?}");
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.value.clone())).collect();
        assert_eq!(found, expected, "{text}");
    }

    fn numbers(numbers: &[f64]) -> Value {
        Value::Array(numbers.iter().map(|number| Scalar::Number(*number)).collect())
    }

    #[test]
    fn a_name_that_comes_twice_is_refused_also_where_nothing_is_there() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"a":null}"#,
            r#"{"a":null,"a":null}"#,
            r#"{"a":{},"a":[1]}"#,
            r#"{"a.b":null,"a":{"b":1}}"#,
        ] {
            let mut faults = Vec::new();
            flatten(text, &BOUNDS, &mut faults);
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        }
        check_flat(r#"{"a":null,"b":{},"c":[null,null,{}]}"#, &[("c", Value::Array(Vec::new()))]);
    }

    #[test]
    fn nested_objects_flatten_with_dots() {
        check_flat(
            r#"{"a":{"b":{"c":1}},"d":true,"e":null,"f":{},"g":"x"}"#,
            &[("a.b.c", 1.0.into()), ("d", true.into()), ("g", "x".into())],
        );
        check_flat(r#"{"":{"b":1},"a":{"":2}}"#, &[(".b", 1.0.into()), ("a.", 2.0.into())]);
    }

    #[test]
    fn what_is_in_arrays_becomes_arrays() {
        check_flat(r#"{"a":[1,[2,3],null]}"#, &[("a", numbers(&[1.0, 2.0, 3.0]))]);
        check_flat(r#"{"a":[{"b":1},{"b":[2,3]}]}"#, &[("a.b", numbers(&[1.0, 2.0, 3.0]))]);
        check_flat(r#"{"a":[]}"#, &[("a", numbers(&[]))]);
        check_flat(r#"{"a":[null]}"#, &[("a", numbers(&[]))]);
        check_flat(r#"{"a":[1,{"b":2}]}"#, &[("a", numbers(&[1.0])), ("a.b", numbers(&[2.0]))]);
    }

    #[track_caller]
    fn check_fault(text: &str, pointer: &str, part: &str) {
        let mut faults = Vec::new();
        flatten(text, &BOUNDS, &mut faults);
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert_eq!(faults[0].pointer, pointer, "{text}");
        assert!(faults[0].detail.contains(part), "{text}: {}", faults[0].detail);
    }

    #[test]
    fn bounds_are_told_with_their_setting() {
        check_fault(r#"{"a":{"b":{"c":{"d":{"e":1}}}}}"#, "/properties/a/b/c/d", "limits.depth");
        check_fault(r#"{"a":[1,2,3,4,5,6,7,8,9,10]}"#, "/properties/a/8", "limits.attributes_per_event");
        check_fault(r#"{"abcdefghijklmnopq":1}"#, "/properties/abcdefghijklmnopq", "limits.name_bytes");
        check_fault(r#"{"a":["123456789"]}"#, "/properties/a/0", "limits.text_bytes");
    }

    #[test]
    fn nothing_below_a_name_that_is_too_long_is_looked_at() {
        let long = "n".repeat(100_000);
        let pointer = format!("/properties/{}…", "n".repeat(64));
        let text = format!(r#"{{"{long}":{{"a":"123456789","b":{{"{long}":1}}}}}}"#);
        check_fault(&text, &pointer, "limits.name_bytes");
    }

    #[test]
    fn two_of_many_members_of_one_flattened_name_are_refused() {
        for count in [31, 32, 33, 40] {
            let members: Vec<_> = (0..count).map(|index| format!(r#""m{index}":0"#)).collect();
            let (members, bounds) = (members.join(","), Bounds { attributes: 50, ..BOUNDS });
            for (other, faults_count) in [("m40", 0), ("m0", 1), ("m30", 1)] {
                let mut faults = Vec::new();
                flatten(&format!(r#"{{{members},"{other}":0}}"#), &bounds, &mut faults);
                assert_eq!(faults.len(), faults_count, "{count}, {other}: {faults:?}");
            }
        }
    }

    #[test]
    fn two_members_of_one_flattened_name_are_refused() {
        check_fault(r#"{"a.b":1,"a":{"b":2}}"#, "/properties", "a.b");
        check_fault(r#"{"a":1,"a":2}"#, "/properties", "attribute a");
        check_fault(r#"{"a":{"b":1},"a":[{"b":2}]}"#, "/properties", "a.b");
    }

    #[test]
    fn numbers_and_texts_that_nobody_can_read_are_refused() {
        check_fault(r#"{"a":{"b":-1e999}}"#, "/properties/a/b", "out of range");
        check_fault(r#"{"a":"\ud800"}"#, "/properties/a", "escape");
    }
}
