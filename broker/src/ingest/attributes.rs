//! Attributes: `properties` flattened to names and values.

use std::collections::HashSet;
use std::fmt;

use matcher::event::{Attribute, Scalar, Symbol, Value};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use wire::Fault;

use super::json::{self, FAULTS_MAX};

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
    let Found { attributes, scopes, absent } = walk.found;
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
    drop(scopes);
    attributes
}

/// Checks a value that is only passed on: its nesting, and that its numbers and texts can be read by anyone.
pub(crate) fn check(text: &str, pointer: &str, bounds: &Bounds, faults: &mut Vec<Fault>) {
    Walk::new(pointer, bounds, faults).run(text);
}

fn repeated(attributes: &[Attribute]) -> Option<&str> {
    if attributes.len() > 32 {
        let mut seen = HashSet::new();
        return attributes.iter().map(|attribute| attribute.name.as_str()).find(|name| !seen.insert(*name));
    }
    let before = |index: usize, name: &Symbol| attributes[..index].iter().any(|other| other.name == *name);
    let twice = attributes.iter().enumerate().find(|(index, attribute)| before(*index, &attribute.name));
    twice.map(|(_, attribute)| attribute.name.as_str())
}

#[derive(Default)]
struct Found {
    attributes: Vec<Attribute>,
    /// For each attribute, the outermost array that it comes from; 0 for none.
    scopes: Vec<usize>,
    /// The flattened names of what is absent, being `null` or an object of nothing, outside of arrays.
    absent: Vec<Symbol>,
}

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
    /// The outermost array that the walk is in; 0 for none. Each has a number of its own.
    scope: usize,
    arrays_count: usize,
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
            scope: 0,
            arrays_count: 0,
        }
    }

    fn run(&mut self, text: &str) {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Err(error) = (Step { walk: self }).deserialize(&mut deserializer) {
            // The walk stopped where it was, so the pointer still says where.
            let detail = json::reason(&error);
            self.faults.push(Fault { pointer: self.pointer.clone(), detail });
        }
    }

    fn fault(&mut self, detail: String) {
        self.faults.push(Fault { pointer: self.pointer.clone(), detail });
    }

    fn scalar(&mut self, scalar: Scalar) {
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
        if self.scope == 0 {
            self.push(Value::Scalar(scalar));
        } else if let Value::Array(elements) = self.array() {
            elements.push(scalar);
        }
    }

    /// Nothing is here: remembered only so that its name does not come twice.
    fn absent(&mut self) {
        if self.flattens
            && self.scope == 0
            && self.depth > 0
            && self.found.absent.len() < self.bounds.attributes
        {
            self.found.absent.push(Symbol::new(self.name.as_str()));
        }
    }

    fn push(&mut self, value: Value) {
        self.found.attributes.push(Attribute { name: Symbol::new(self.name.as_str()), value });
        self.found.scopes.push(self.scope);
    }

    /// The array attribute of the current name and scope, made when it is not there.
    fn array(&mut self) -> &mut Value {
        let name = Symbol::new(self.name.as_str());
        let mut known = self.found.attributes.iter().zip(&self.found.scopes);
        let index = known.position(|(attribute, scope)| *scope == self.scope && attribute.name == name);
        let index = index.unwrap_or_else(|| {
            self.push(Value::Array(Vec::new()));
            self.found.attributes.len() - 1
        });
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
}

/// One value of the walk.
struct Step<'s, 'w> {
    walk: &'s mut Walk<'w>,
}

impl<'de> DeserializeSeed<'de> for Step<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.walk.absent();
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.walk.scalar(Scalar::Bool(truth));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are f64, as in JavaScript")]
    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.walk.scalar(Scalar::Number(number as f64));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are f64, as in JavaScript")]
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.walk.scalar(Scalar::Number(number as f64));
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        if !number.is_finite() {
            return Err(E::custom("number out of range"));
        }
        self.walk.scalar(Scalar::Number(number));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.walk.flattens && text.len() > self.walk.bounds.text_bytes {
            let limit = self.walk.bounds.text_bytes;
            self.walk.fault(format!("a text may have at most {limit} bytes (limits.text_bytes)"));
            return Ok(());
        }
        if self.walk.flattens {
            self.walk.scalar(Scalar::Text(Symbol::new(text)));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let walk = self.walk;
        if !walk.descend() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let (pointer_end, name_end) = (walk.pointer.len(), walk.name.len());
        let mut is_empty = true;
        while let Some(name) = map.next_key::<Name<'de>>()? {
            is_empty = false;
            let is_named = walk.enter_member(&name.0);
            if walk.faults.len() > FAULTS_MAX {
                return Err(A::Error::custom("too many faults"));
            }
            if is_named {
                map.next_value_seed(Step { walk: &mut *walk })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            walk.pointer.truncate(pointer_end);
            walk.name.truncate(name_end);
        }
        walk.depth -= 1;
        if is_empty {
            walk.absent();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let walk = self.walk;
        if !walk.descend() {
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let pointer_end = walk.pointer.len();
        let outer = walk.scope;
        if outer == 0 {
            walk.arrays_count += 1;
            walk.scope = walk.arrays_count;
        }
        let values_before = walk.found.attributes.len();
        let mut index = 0_usize;
        loop {
            use std::fmt::Write as _;
            write!(walk.pointer, "/{index}").expect("a text grows");
            if walk.faults.len() > FAULTS_MAX {
                return Err(A::Error::custom("too many faults"));
            }
            if elements.next_element_seed(Step { walk: &mut *walk })?.is_none() {
                break;
            }
            walk.pointer.truncate(pointer_end);
            index += 1;
        }
        walk.pointer.truncate(pointer_end);
        // An array of nothing is there, and no constraint but IS NOT NULL holds on it.
        if outer == 0 && walk.flattens && walk.found.attributes.len() == values_before {
            walk.array();
        }
        walk.scope = outer;
        walk.depth -= 1;
        Ok(())
    }
}

/// A member's name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

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
