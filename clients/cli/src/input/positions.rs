//! Positions, one a line.

use std::io::{BufReader, Read};

use nearcast_client::documents::Position;
use nearcast_client::{Coordinates, Fix};
use serde::Deserialize;
use serde_json::Value;

use super::records::{self, Record, buffered, format_of};
use super::{Feed, Format, Line, Origin, fault_in_json, read_line, skip_line, text_of};
use crate::values;

/// Where a client is, or some client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Absent where the line does not say it.
    pub(crate) client: Option<String>,
    pub(crate) position: Position,
}

impl Placed {
    /// The position as one that is followed.
    pub(crate) fn fix(self) -> Result<Fix, String> {
        let coordinates: Coordinates = match self.position.coordinates[..] {
            [lon, lat] => [lon, lat].into(),
            [lon, lat, altitude_m] => [lon, lat, altitude_m].into(),
            _ => return Err("a position that is followed has coordinates, two or three numbers".to_owned()),
        };
        let mut fix = Fix::at(coordinates);
        fix.accuracy_m = self.position.accuracy_m;
        fix.time = self.position.time;
        Ok(fix)
    }
}

/// Reads positions in a format, or in the one that the input begins as.
///
/// `accept` says what becomes of each, or why it is none that counts.
pub(crate) fn read_as<T>(
    format: Option<Format>,
    reader: Box<dyn Read + Send>,
    feed: &Feed<T>,
    accept: impl Fn(Placed) -> Result<T, String>,
) {
    let mut reader = buffered(reader);
    let format = format_of(format, &mut reader, true);
    if let Some(reader) = records::read(format, reader, feed, &|record: Record| accept(record.into_placed()))
    {
        read(Box::new(reader), feed, accept);
    }
}

/// Reads positions: `lon,lat`, `[lon, lat]`, a document with `coordinates` or a `track`, or a Feature with a point.
///
/// `accept` says what becomes of each, or why it is none that counts.
pub(crate) fn read<T>(
    reader: Box<dyn Read + Send>,
    feed: &Feed<T>,
    accept: impl Fn(Placed) -> Result<T, String>,
) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let content = match read_line(&mut reader, &mut line) {
            Ok(Line::End) => return,
            Ok(Line::Whole) => match text_of(&line) {
                Ok("") => continue,
                Ok(header) if has_latitude_first(header) => {
                    let why = "a position is lon,lat, and this header has the latitude first";
                    return feed.give_up(number, why.to_owned());
                }
                text => text.and_then(parse).and_then(&accept),
            },
            Ok(Line::Begun) => match skip_line(&mut reader) {
                Ok(()) => Err("it is longer than 1 MiB".to_owned()),
                Err(fault) => return feed.give_up(number, fault.to_string()),
            },
            Err(fault) => return feed.give_up(number, fault.to_string()),
        };
        if feed.give(Origin { line: number, feature: None }, line.len(), content).is_err() {
            return;
        }
    }
}

/// Whether a line names columns in the order in which all positions behind it would be taken for others.
fn has_latitude_first(line: &str) -> bool {
    let mut names = line.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase());
    let first = names.next();
    matches!(first.as_deref(), Some("lat" | "latitude"))
        && matches!(names.next().as_deref(), Some("lon" | "lng" | "long" | "longitude"))
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    client: Option<String>,
    #[serde(default)]
    coordinates: Option<Vec<f64>>,
    #[serde(default)]
    track: Option<Vec<[f64; 3]>>,
    #[serde(default)]
    accuracy_m: Option<f64>,
    #[serde(default)]
    time: Option<String>,
    /// Geometry of a Feature.
    #[serde(default)]
    geometry: Option<Value>,
    #[serde(default)]
    properties: Option<Value>,
}

fn parse(text: &str) -> Result<Placed, String> {
    if !text.starts_with(['{', '[']) {
        let numbers = values::numbers(text).filter(|numbers| (2..=3).contains(&numbers.len()));
        let coordinates = numbers.ok_or("a position is lon,lat, or JSON")?;
        return Ok(Placed { client: None, position: position(coordinates) });
    }
    let wrong = |fault: serde_json::Error| format!("{} at column {}", fault_in_json(&fault), fault.column());
    if text.starts_with('[') {
        let coordinates = serde_json::from_str(text).map_err(wrong)?;
        return Ok(Placed { client: None, position: position(coordinates) });
    }
    let document: Document = serde_json::from_str(text).map_err(wrong)?;
    let properties = document.properties.unwrap_or_default();
    let in_geometry = document.geometry.map(|geometry| {
        if geometry["type"] != "Point" {
            return Err("a position's geometry is a Point".to_owned());
        }
        serde_json::from_value(geometry["coordinates"].clone()).map_err(|fault| format!("geometry: {fault}"))
    });
    let coordinates = in_geometry.transpose()?.or(document.coordinates).unwrap_or_default();
    let track = document.track.unwrap_or_default();
    if coordinates.is_empty() && track.is_empty() {
        return Err("there are neither coordinates nor a track".to_owned());
    }
    let of_properties = |name: &str| properties.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(Placed {
        client: document.client.or_else(|| of_properties("client")),
        position: Position {
            coordinates,
            track,
            accuracy_m: document.accuracy_m.or_else(|| properties.get("accuracy_m")?.as_f64()),
            time: document.time.or_else(|| of_properties("time")),
        },
    })
}

fn position(coordinates: Vec<f64>) -> Position {
    Position { coordinates, track: Vec::new(), accuracy_m: None, time: None }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_all;
    use super::*;

    #[test]
    fn positions_are_read_in_all_of_their_forms() {
        let text = r#"9.19,45.46

 9.19 , 45.46 , 120
[9.19, 45.46]
{"coordinates": [9.19, 45.46], "accuracy_m": 12, "time": "2026-03-01T07:30:00Z"}
{"type": "Point", "coordinates": [9.19, 45.46]}
{"client": "car-7", "coordinates": [9.19, 45.46]}
{"type": "Feature", "geometry": {"type": "Point", "coordinates": [9.19, 45.46]}, "properties": {"client": "car-7", "accuracy_m": 3}}
{"client": "car-7", "track": [[9.19, 45.46, 1772350200]]}
"#;
        let found = read_all(text, |reader, feed| read(reader, feed, Ok));
        assert_eq!(found.len(), 8);
        assert_eq!(found[1].0, 3);
        for (line, _, placed) in &found {
            let placed = placed.as_ref().unwrap();
            let position = &placed.position;
            let place =
                position.track.first().map_or_else(|| &position.coordinates[..2], |point| &point[..2]);
            assert_eq!(place, [9.19, 45.46], "line {line}");
            assert_eq!(placed.client.as_deref(), (*line >= 7).then_some("car-7"), "line {line}");
        }
        let accuracies: Vec<_> =
            found.iter().map(|(_, _, placed)| placed.as_ref().unwrap().position.accuracy_m).collect();
        assert_eq!(accuracies, [None, None, None, Some(12.0), None, None, Some(3.0), None]);
    }

    #[test]
    fn columns_in_another_order_are_not_read_as_if_they_were_in_this_one() {
        for (header, is_refused) in
            [("lat,lon", true), ("Latitude, \"Longitude\", name", true), ("lon,lat", false)]
        {
            let text = format!("{header}\n45.4,9.1\n");
            let found = read_all(text, |reader, feed| read(reader, feed, Ok));
            let last = found.last().expect("a fault or a position");
            assert_eq!(
                (found.len(), last.2.is_err()),
                (if is_refused { 1 } else { 2 }, is_refused),
                "{header}"
            );
        }
    }

    #[test]
    fn what_is_no_position_is_told_by_line() {
        let text = "here\n9.19\n{\"coordinates\": [9.19,\n{\"a\": 1}\n{\"coordinates\": \"x\"}\n{\"type\": \"Feature\", \"geometry\": {\"type\": \"Polygon\"}}\n1,2\n";
        let found = read_all(text, |reader, feed| read(reader, feed, Ok));
        let faults: Vec<_> = found
            .iter()
            .map(|(line, _, placed)| (*line, placed.as_ref().map_err(|fault| fault.why.as_str()).err()))
            .collect();
        assert_eq!(faults[0], (1, Some("a position is lon,lat, or JSON")));
        assert_eq!(faults[1], (2, Some("a position is lon,lat, or JSON")));
        assert_eq!(faults[2], (3, Some("malformed JSON: EOF while parsing a value at column 22")));
        assert_eq!(faults[3], (4, Some("there are neither coordinates nor a track")));
        assert!(faults[4].1.unwrap().contains("expected a sequence"), "{faults:?}");
        assert_eq!(faults[5], (6, Some("a position's geometry is a Point")));
        assert_eq!(faults[6], (7, None));
    }
}
