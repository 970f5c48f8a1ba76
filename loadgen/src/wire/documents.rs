//! What a plan is made of, as the documents of nearcast's protocol.

use std::io::Write as _;

use matcher::area::Area;
use matcher::event::{Scalar, Value};
use matcher::geo::Position;
use matcher::subscription::Filter;
use serde_json::json;

use crate::plan::{Occurrence, Wish};

/// Appends `[longitude,latitude]`, as the nearest doubles of what is written.
pub fn push_coordinates(position: &Position, out: &mut Vec<u8>) {
    let mut number = ryu::Buffer::new();
    out.push(b'[');
    out.extend_from_slice(number.format_finite(position.x()).as_bytes());
    out.push(b',');
    out.extend_from_slice(number.format_finite(position.y()).as_bytes());
    out.push(b']');
}

/// What a Feature of a plan begins with, before its number.
const FEATURE: &[u8] = br#"{"type":"Feature","id":"#;

/// The number of an event, from what [`push_feature`] wrote; none where that was somebody else.
#[must_use]
pub fn number_of_feature(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(FEATURE)?;
    let digits = rest.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends an event as a Feature whose id is its number.
pub fn push_feature(number: u64, occurrence: &Occurrence, out: &mut Vec<u8>) {
    let Occurrence { event, ttl_s, key, is_alarm, .. } = occurrence;
    out.extend_from_slice(FEATURE);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(br#","geometry":{"type":"Point","coordinates":"#);
    push_coordinates(&event.position, out);
    out.extend_from_slice(br#"},"properties":{"#);
    for (index, attribute) in event.attributes.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_text(attribute.name.as_str(), out);
        out.push(b':');
        match &attribute.value {
            Value::Scalar(scalar) => push_scalar(scalar, out),
            Value::Array(scalars) => {
                out.push(b'[');
                for (index, scalar) in scalars.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    push_scalar(scalar, out);
                }
                out.push(b']');
            }
        }
    }
    out.push(b'}');
    if *ttl_s > 0.0 {
        out.extend_from_slice(br#","ttl_s":"#);
        out.extend_from_slice(ryu::Buffer::new().format(*ttl_s).as_bytes());
    }
    if let Some(key) = key {
        out.extend_from_slice(br#","key":"#);
        push_text(key, out);
    }
    if *is_alarm {
        out.extend_from_slice(br#","priority":"alarm""#);
    }
    if let Some(reach) = event.reach {
        out.extend_from_slice(br#","reach_m":"#);
        out.extend_from_slice(ryu::Buffer::new().format(reach.metres()).as_bytes());
    }
    out.push(b'}');
}

fn push_scalar(scalar: &Scalar, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Number(number) => out.extend_from_slice(ryu::Buffer::new().format(*number).as_bytes()),
        Scalar::Text(text) => push_text(text.as_str(), out),
        Scalar::Bool(bool) => out.extend_from_slice(if *bool { b"true" } else { b"false" }),
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, text).expect("a text is written into memory");
}

/// Appends the members of a subscription's document, without its braces.
pub fn push_subscription(wish: &Wish, out: &mut Vec<u8>) {
    let filters: Vec<_> = wish.filters.iter().map(filter).collect();
    let filters = serde_json::Value::from(filters);
    write!(out, r#""filters":{filters},"durable":{}"#, wish.is_durable).expect("memory grows");
}

fn filter(filter: &Filter) -> serde_json::Value {
    let mut document = serde_json::Map::new();
    if let Some(area) = area(&filter.area) {
        document.insert("area".to_owned(), area);
    }
    let normal = filter.condition.normal();
    let is_always =
        normal.conjunctions().iter().any(|one| one.literals.is_empty() && one.residuals.is_empty());
    if !is_always {
        document.insert("where".to_owned(), normal.to_string().into());
    }
    document.into()
}

/// Plans have circles alone.
fn area(area: &Area) -> Option<serde_json::Value> {
    match area {
        Area::Everywhere => None,
        Area::Following(radius) => Some(json!({"radius_m": radius.metres()})),
        Area::Circle { centre, radius } => {
            Some(json!({"center": [centre.x(), centre.y()], "radius_m": radius.metres()}))
        }
        Area::Polygon(_) | Area::Corridor(_) => unreachable!("no plan has such areas"),
    }
}
