//! Bodies of many elements, however they are cut.

use serde_json::value::RawValue;

use crate::ingest::framing::{Elements, Framed, Records};
use crate::ingest::json::Members;
use crate::model::error::ApiError;

/// Bounds on the bytes of an element; the second is met by nearly all bodies.
const LIMITS: [usize; 2] = [24, 1 << 20];
/// JSON that nests deeper is left out where readers are compared: serde_json counts the array around the elements, too.
const DEPTH_MAX: usize = 100;

/// An element that was cut out: its bytes, or nothing where it is too large.
type Found = Option<Vec<u8>>;

/// A body: the first byte says how it is cut, the second what it is (`[`, `{`, `\n` or `\x1e`), the rest is the body.
pub fn framing(data: &[u8]) {
    let [cut, kind, body @ ..] = data else { return };
    for limit in LIMITS {
        match kind {
            b'[' | b'{' => {
                let new = if *kind == b'[' { Elements::of_array } else { Elements::of_collection };
                let whole = elements(new(limit), &[body], limit);
                let parts: Vec<_> = parts(body, *cut).collect();
                assert_eq!(elements(new(limit), &parts, limit), whole, "in {} parts", parts.len());
                if *kind == b'[' {
                    compare_array(body, &whole, limit);
                } else {
                    compare_collection(body, &whole, limit);
                }
            }
            _ => {
                let separator = if *kind == 0x1e { 0x1e } else { b'\n' };
                let parts: Vec<_> = parts(body, *cut).collect();
                assert_eq!(records(separator, limit, &parts), naive_records(separator, limit, body));
            }
        }
    }
}

/// The body in parts of 1 to 16 bytes, or of different sizes.
fn parts(body: &[u8], cut: u8) -> impl Iterator<Item = &[u8]> {
    let (step, drift) = (usize::from(cut & 15) + 1, usize::from(cut >> 4));
    let mut rest = body;
    let mut size = step;
    std::iter::from_fn(move || {
        let (part, left) = rest.split_at(size.min(rest.len()));
        rest = left;
        size = (size + drift) % 97 + 1;
        (!part.is_empty()).then_some(part)
    })
}

fn elements(mut framer: Elements, parts: &[&[u8]], limit: usize) -> Result<(Vec<Found>, Vec<u8>), ApiError> {
    let mut found = Vec::new();
    for part in parts {
        let mut at = 0;
        while let Some(framed) = framer.next(part, &mut at)? {
            assert!(framer.element().len() <= limit);
            found.push((framed == Framed::Element).then(|| framer.element().to_vec()));
        }
        assert_eq!(at, part.len());
    }
    framer.finish()?;
    Ok((found, framer.skeleton().to_vec()))
}

fn records(separator: u8, limit: usize, parts: &[&[u8]]) -> Vec<Found> {
    let mut records = Records::new(separator, limit);
    let mut found = Vec::new();
    let take =
        |framed: Framed, records: &Records| (framed == Framed::Element).then(|| records.element().to_vec());
    for part in parts {
        let mut at = 0;
        while let Some(framed) = records.next(part, &mut at) {
            found.push(take(framed, &records));
        }
    }
    if let Some(framed) = records.finish() {
        found.push(take(framed, &records));
    }
    found
}

fn naive_records(separator: u8, limit: usize, body: &[u8]) -> Vec<Found> {
    let records = body.split(|byte| *byte == separator);
    records
        .filter(|record| record.len() > limit || !record.trim_ascii().is_empty())
        .map(|record| (record.len() <= limit).then(|| record.trim_ascii().to_vec()))
        .collect()
}

/// Whether it can be compared with what serde_json makes of it, and its text.
fn comparable(body: &[u8]) -> Option<&str> {
    let depth = body.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    std::str::from_utf8(body).ok().filter(|_| depth <= DEPTH_MAX)
}

fn expected(elements: &[&RawValue], limit: usize) -> Vec<Found> {
    let bytes = elements.iter().map(|element| element.get().as_bytes());
    bytes.map(|element| (element.len() <= limit).then(|| element.to_vec())).collect()
}

/// An array that is JSON falls into its elements; what is cut into elements that are JSON is JSON.
fn compare_array(body: &[u8], found: &Result<(Vec<Found>, Vec<u8>), ApiError>, limit: usize) {
    let Some(text) = comparable(body) else { return };
    let read = serde_json::from_str::<Vec<&RawValue>>(text);
    match (&read, found) {
        (Ok(read), Ok((found, _))) => assert_eq!(*found, expected(read, limit)),
        (Ok(_), Err(refusal)) => panic!("{refusal:?}"),
        (Err(error), Ok((found, _))) => {
            let is_json = |found: &Found| {
                found.as_ref().is_some_and(|found| serde_json::from_slice::<&RawValue>(found).is_ok())
            };
            assert!(!found.iter().all(is_json), "{error}");
        }
        (Err(_), Err(_)) => {}
    }
}

/// Checks the features of a collection as `compare_array` checks the elements of an array.
fn compare_collection(body: &[u8], found: &Result<(Vec<Found>, Vec<u8>), ApiError>, limit: usize) {
    // What is written with escapes is not recognised as `features`.
    let Some(text) = comparable(body).filter(|text| !text.contains('\\')) else { return };
    let Ok(members) = Members::parse(text) else { return };
    let features = members.only("features").map(serde_json::from_str::<Vec<&RawValue>>);
    let (Some(Ok(features)), Ok((found, skeleton))) = (features, found) else { return };
    assert_eq!(*found, expected(&features, limit));
    let skeleton = std::str::from_utf8(skeleton).expect("cut at brackets");
    let skeleton = Members::parse(skeleton).expect("what was JSON stays JSON");
    assert_eq!(
        skeleton.only("features").map(|text| text.replace([' ', '\t', '\n', '\r'], "")),
        Some("[]".to_owned())
    );
    assert!(
        skeleton.rest().all(|(name, text)| name == "features" || members.get(name).unwrap_or("null") == text)
    );
}
