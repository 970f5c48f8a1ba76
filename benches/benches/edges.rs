//! What does the broker's edge cost: an event's GeoJSON read, a delivery's frame written?
#![forbid(unsafe_code)]

use std::fmt::{self, Display};
use std::sync::Arc;

use broker::Config;
use broker::edges::EventReader;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use matcher::geo::World;

/// How many properties an event has: none, as many as a sensor's reading, as many as a record of a data base.
const PROPERTIES: [Properties; 3] = [Properties(0), Properties(5), Properties(50)];

#[derive(Clone, Copy)]
struct Properties(usize);

impl Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} properties", self.0)
    }
}

impl Properties {
    /// A third each of numbers, texts and truth values.
    fn feature(self) -> String {
        let value = |index: usize| match index % 3 {
            0 => format!("{}.25", index * 37),
            1 => format!("\"station {index}\""),
            _ => index.is_multiple_of(2).to_string(),
        };
        let properties: Vec<_> =
            (0..self.0).map(|index| format!("\"name{index}\":{}", value(index))).collect();
        format!(
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9.1859,45.4654]}},"properties":{{{}}}}}"#,
            properties.join(",")
        )
    }
}

fn main() {
    divan::main();
}

fn reader() -> EventReader {
    EventReader::new(World::Geodetic, &Config::default())
}

#[divan::bench(args = PROPERTIES)]
fn decode_event(bencher: Bencher<'_, '_>, properties: Properties) {
    let (reader, feature) = (reader(), properties.feature());
    let accepted = reader.read(&feature).expect("it is an event");
    assert_eq!(accepted.event().attributes.len(), properties.0);
    bencher
        .counter(BytesCount::of_str(&feature))
        .bench_local(|| reader.read(black_box(&feature)).expect("it is an event"));
}

#[divan::bench(args = PROPERTIES)]
fn encode_frame(bencher: Bencher<'_, '_>, properties: Properties) {
    let accepted = reader().read(&properties.feature()).expect("it is an event");
    let subscription = Arc::from("\"near-me\"");
    let frame = accepted.frame(123_456, &subscription);
    assert!(frame.starts_with(br#"{"op":"event","offset":123456,"subscriptions":["near-me"]"#), "{frame:?}");
    bencher
        .counter(BytesCount::of_slice(&frame))
        .bench_local(|| accepted.frame(black_box(123_456), black_box(&subscription)));
}
