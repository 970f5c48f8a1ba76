//! JSON values in whose objects each name stands once. `serde_json` takes the last of several, silently.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use wire::Fault;

use super::json;

/// Reads a text whose syntax has been checked as a value.
///
/// # Errors
/// A member that is given twice, a number that no float holds, or nesting that is too deep; the fault's pointer, which
/// begins with `pointer`, says where.
pub(crate) fn read(text: &str, pointer: &str) -> Result<Value, Fault> {
    let mut place = pointer.to_owned();
    let read = Step { place: &mut place }.deserialize(&mut serde_json::Deserializer::from_str(text));
    // Reading stopped where the fault is, so the place still says where.
    read.map_err(|error| Fault { pointer: place, detail: json::reason(&error) })
}

/// One value; `place` is its pointer.
struct Step<'a> {
    place: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for Step<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let end = self.place.len();
        let mut values = Vec::new();
        loop {
            json::push_name(self.place, itoa::Buffer::new().format(values.len()));
            match elements.next_element_seed(Step { place: &mut *self.place })? {
                Some(value) => values.push(value),
                None => break,
            }
            self.place.truncate(end);
        }
        self.place.truncate(end);
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let end = self.place.len();
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            json::push_name(self.place, &name);
            if values.contains_key(&name) {
                return Err(A::Error::custom("this member is given twice"));
            }
            let value = members.next_value_seed(Step { place: &mut *self.place })?;
            values.insert(name, value);
            self.place.truncate(end);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_text() {
        for text in ["null", "[true,-1,2,3.5,1e300,\"a\\n\"]", r#"{"a":{"b":[]},"b":{"b":{}}}"#, "[]"] {
            assert_eq!(read(text, "").unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn faults_are_told_where_they_are() {
        let twice = "this member is given twice";
        for (text, pointer, detail) in [
            (r#"{"a":1,"a":1}"#, "/w/a", twice),
            (r#"{"a":[1,{"b":{"c":1,"d":2,"\u0063":3}}]}"#, "/w/a/1/b/c", twice),
            (r#"[[],{"a/b":1,"a/b":2}]"#, "/w/1/a~1b", twice),
            (r#"{"a":[0,1e999]}"#, "/w/a/1", "number out of range"),
        ] {
            let fault = read(text, "/w").unwrap_err();
            assert_eq!((fault.pointer.as_str(), fault.detail.as_str()), (pointer, detail), "{text}");
        }
        assert!(read(&format!("{}{}", "[".repeat(200), "]".repeat(200)), "").is_err());
    }
}
