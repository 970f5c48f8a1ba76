//! Places with what is known of each, from formats that are not JSON.

use std::io::{BufRead, Read};

use nearcast_client::documents::Position;
use serde_json::{Map, Value, json};

use super::features::with_id;
use super::positions::Placed;
use super::{Feed, Format, Origin, Over, csv, gpx, nmea};

/// A place with what is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    pub(super) lon: f64,
    pub(super) lat: f64,
    pub(super) altitude_m: Option<f64>,
    /// A time as it is written, RFC 3339 where the broker is to take it.
    pub(super) time: Option<String>,
    pub(super) id: Option<String>,
    pub(super) key: Option<String>,
    /// What else an event says of itself, such as `ttl_s`.
    pub(super) members: Map<String, Value>,
    pub(super) properties: Map<String, Value>,
}

/// Takes records, and hands over what becomes of them.
pub(super) struct Sink<'a, T> {
    feed: &'a Feed<T>,
    accept: &'a dyn Fn(Record) -> Result<T, String>,
}

impl<T> Sink<'_, T> {
    /// Hands over a record, or the reason why it is none.
    pub(super) fn give(&self, line: u64, bytes: usize, record: Result<Record, String>) -> Result<(), Over> {
        self.feed.give(Origin { line, feature: None }, bytes, record.and_then(self.accept))
    }

    /// Says that no more can be read.
    pub(super) fn give_up(&self, line: u64, why: impl Into<String>) {
        self.feed.give_up(line, why.into());
    }
}

/// Reads an input of a format to its end. `accept` says what becomes of each record. JSON has readers of its own: it is given back.
pub(super) fn read<T, R: BufRead>(
    format: Format,
    mut reader: R,
    feed: &Feed<T>,
    accept: &dyn Fn(Record) -> Result<T, String>,
) -> Option<R> {
    let sink = Sink { feed, accept };
    match format {
        Format::Json => return Some(reader),
        Format::Csv => csv::read(&mut reader, &sink),
        Format::Gpx => gpx::read(reader, &sink),
        Format::Nmea => nmea::read(&mut reader, &sink),
    }
    None
}

/// The format of an input: the one that is said, or by how it begins.
pub(super) fn format_of(said: Option<Format>, reader: &mut impl BufRead, are_positions: bool) -> Format {
    // Faults of the input are reported when it is read.
    said.unwrap_or_else(|| Format::of_content(reader.fill_buf().unwrap_or_default(), are_positions))
}

/// A buffer around an input, whose beginning is looked at.
pub(super) fn buffered(reader: Box<dyn Read + Send>) -> std::io::BufReader<Box<dyn Read + Send>> {
    std::io::BufReader::with_capacity(1 << 16, reader)
}

impl Record {
    fn coordinates(&self) -> Vec<f64> {
        [Some(self.lon), Some(self.lat), self.altitude_m].into_iter().flatten().collect()
    }

    /// The record as the text of a Feature with an `id`.
    pub(super) fn into_feature(self) -> String {
        let coordinates = self.coordinates();
        let mut feature = json!({
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": coordinates},
            "properties": self.properties,
        });
        for (name, value) in [("id", self.id), ("key", self.key), ("time", self.time)] {
            if let Some(value) = value {
                feature[name] = value.into();
            }
        }
        for (name, value) in self.members {
            feature[name] = value;
        }
        with_id(feature.to_string())
    }

    /// The record as the position of a client: the one that its property `client` names, if there is one.
    pub(super) fn into_placed(self) -> Placed {
        let coordinates = self.coordinates();
        let client = self.properties.get("client");
        let client = client.map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned));
        let accuracy_m = self.properties.get("accuracy_m").and_then(Value::as_f64);
        Placed { client, position: Position { coordinates, track: Vec::new(), accuracy_m, time: self.time } }
    }
}

/// A text as a value: a number where it reads as one in JSON, `true` and `false`, and else a text.
pub(super) fn value(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => serde_json::from_str(text).map(Value::Number).unwrap_or_else(|_| text.into()),
    }
}

/// A number of degrees or metres.
pub(super) fn number(name: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| match text.trim() {
        "" => format!("it has no {name}"),
        text => format!("{name} is {text:?}, which is no number"),
    })
}
