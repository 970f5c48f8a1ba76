//! Events as GeoJSON: a Feature, a FeatureCollection, or Features line by line.

use std::io::{BufRead as _, BufReader, Cursor, Read};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::records::{self, Record, buffered, format_of};
use super::{Feed, Format, Line, Origin, Over, document, fault_in_json, read_line, skip_line, text_of};

/// Reads events in a format, or in the one that the input begins as, each as the text of a Feature on one line with an `id`.
pub(crate) fn read_as(format: Option<Format>, reader: Box<dyn Read + Send>, feed: &Feed<String>) {
    let mut reader = buffered(reader);
    let format = format_of(format, &mut reader, false);
    if let Some(reader) = records::read(format, reader, feed, &|record: Record| Ok(record.into_feature())) {
        read(Box::new(reader), feed);
    }
}

/// Reads Features, each as a text on one line with an `id`.
///
/// Where the first line is a whole JSON text, so is each line, and one that is not is a fault of its own. Else all of it is one document, or
/// some behind one another, and what is malformed ends it.
fn read(reader: Box<dyn Read + Send>, feed: &Feed<String>) {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    // A byte order mark, which is no part of a document. What is wrong with the input is reported when it is read.
    if reader.fill_buf().is_ok_and(|begin| begin.starts_with(b"\xef\xbb\xbf")) {
        reader.consume(3);
    }
    let mut line = Vec::new();
    let mut number = 0;
    let mut is_first = true;
    loop {
        number += 1;
        let read = match read_line(&mut reader, &mut line) {
            Ok(Line::End) => return,
            Ok(read) => read,
            Err(fault) => return feed.give_up(number, fault.to_string()),
        };
        let begins = line.iter().find(|byte| !byte.is_ascii_whitespace());
        let may_be_document = is_first && begins == Some(&b'{');
        is_first &= begins.is_none();
        let given = match (read, text_of(&line)) {
            (Line::Begun, _) if may_be_document => {
                return document::read(Cursor::new(line).chain(reader), number, feed);
            }
            (Line::Begun, _) => {
                if let Err(fault) = skip_line(&mut reader) {
                    return feed.give_up(number, fault.to_string());
                }
                feed.give(
                    Origin { line: number, feature: None },
                    0,
                    Err("it is longer than 1 MiB".to_owned()),
                )
            }
            (_, Ok("")) => continue,
            (_, Ok(text)) => match serde_json::from_str::<IgnoredAny>(text) {
                Err(fault) if fault.is_eof() && may_be_document => {
                    return document::read(Cursor::new(line).chain(reader), number, feed);
                }
                Err(fault) => {
                    let why = format!("{} at column {}", fault_in_json(&fault), fault.column());
                    feed.give(Origin { line: number, feature: None }, 0, Err(why))
                }
                Ok(_) => give_line(text, number, feed),
            },
            (_, Err(why)) => feed.give(Origin { line: number, feature: None }, 0, Err(why)),
        };
        if given.is_err() {
            return;
        }
    }
}

/// Hands over what is on a line: a Feature, or those of a collection.
fn give_line(text: &str, number: u64, feed: &Feed<String>) -> Result<(), Over> {
    if let Ok(Outline { kind: Some("FeatureCollection"), features: Some(features), .. }) =
        serde_json::from_str(text)
    {
        for (index, feature) in (1..).zip(features) {
            let feature = with_id(feature.get().to_owned());
            feed.give(Origin { line: number, feature: Some(index) }, feature.len(), Ok(feature))?;
        }
        return Ok(());
    }
    let feature = with_id(text.to_owned());
    feed.give(Origin { line: number, feature: None }, feature.len(), Ok(feature))
}

/// The Feature, with an `id` where it has none: so a live one that has to be sent again takes its own place.
pub(super) fn with_id(mut feature: String) -> String {
    if let Ok(Outline { kind: Some("Feature"), id: None, .. }) = serde_json::from_str(&feature)
        && let Some(begin) = feature.find('{')
    {
        feature.insert_str(begin + 1, &format!("\"id\":\"{:032x}\",", rand::random::<u128>()));
    }
    feature
}

/// Members of a document that decide how it is taken. All others are the broker's to judge.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Option<&'a str>,
    /// Whether it is there, be it `null`: a member must not be there twice.
    #[serde(default, deserialize_with = "there")]
    id: Option<()>,
    #[serde(default, borrow)]
    features: Option<Vec<&'a RawValue>>,
}

fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<()>, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| Some(()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_all;
    use super::*;

    const POINT: &str = r#""geometry":{"type":"Point","coordinates":[9,45]}"#;

    fn feature(id: &str) -> String {
        format!(r#"{{"type":"Feature","id":"{id}",{POINT}}}"#)
    }

    /// Lines, features, and ids or what is wrong.
    fn outline(text: impl Into<Vec<u8>>) -> Vec<(u64, Option<u64>, String)> {
        let entries = read_all(text, read);
        let said = |content: Result<String, super::super::Unreadable>| match content {
            Ok(text) => {
                assert!(!text.contains('\n'), "{text}");
                let feature: serde_json::Value = serde_json::from_str(&text).unwrap();
                feature["id"].as_str().map_or_else(|| feature["id"].to_string(), str::to_owned)
            }
            Err(fault) => format!("{}{}", if fault.is_last { "last: " } else { "" }, fault.why),
        };
        entries.into_iter().map(|(line, feature, content)| (line, feature, said(content))).collect()
    }

    #[test]
    fn lines_are_read_each_for_itself() {
        let text = format!(
            "\n{}\r\n  \n{{\"type\":\n7\n\u{1e}{}\n{{\"type\":\"FeatureCollection\",\"features\":[{},{}]}}\n{}",
            feature("a"),
            feature("b"),
            feature("c"),
            feature("d"),
            feature("e")
        );
        let found = outline(text);
        let found: Vec<_> =
            found.iter().map(|(line, feature, text)| (*line, *feature, text.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, None, "a"),
                (4, None, "malformed JSON: EOF while parsing a value at column 8"),
                (5, None, "null"),
                (6, None, "b"),
                (7, Some(1), "c"),
                (7, Some(2), "d"),
                (8, None, "e"),
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_text_and_lines_without_end_are_faults_of_their_own() {
        let mut text = format!("{}\n", feature("a")).into_bytes();
        text.extend(b"\xff\n");
        text.extend(std::iter::repeat_n(b'x', 3 << 20));
        text.extend(format!("\n{}\n", feature("b")).bytes());
        let found = outline(text);
        assert_eq!(found[0].2, "a");
        assert_eq!(found[1], (2, None, "it is not UTF-8 from byte 1 on".to_owned()));
        assert_eq!(found[2], (3, None, "it is longer than 1 MiB".to_owned()));
        assert_eq!((found[3].0, found[3].2.as_str()), (4, "b"));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn documents_are_read_with_the_lines_of_their_features() {
        let text = format!(
            "\u{feff}\n{{\n \"type\": \"FeatureCollection\",\n \"features\": [\n  {},\n  {}\n ],\n \"name\": \"n\"\n}}\n{{\n\"type\": \"Feature\",\n \"id\": \"c\",\n {POINT}}}\n",
            feature("a"),
            feature("b").replace(',', ",\n")
        );
        let found = outline(text);
        let found: Vec<_> =
            found.iter().map(|(line, feature, text)| (*line, *feature, text.as_str())).collect();
        assert_eq!(found, [(5, Some(1), "a"), (6, Some(2), "b"), (14, None, "c")]);
    }

    #[test]
    fn a_collection_on_a_line_of_any_length_is_read() {
        let features: Vec<_> = (0..30_000).map(|n| feature(&n.to_string())).collect();
        let text = format!("{{\"type\":\"FeatureCollection\",\"features\":[{}]}}", features.join(","));
        assert!(text.len() > 2 << 20);
        let found = outline(text);
        assert_eq!(found.len(), 30_000);
        assert_eq!(found[29_999], (1, Some(30_000), "29999".to_owned()));
    }

    #[test]
    fn a_document_ends_where_it_is_malformed() {
        let text = format!("{{\"type\":\"FeatureCollection\",\n\"features\":[{},\n{{]}}\n", feature("a"));
        let found = outline(text);
        assert_eq!(found[0].2, "a");
        assert_eq!(found[1], (3, None, "last: malformed JSON: key must be a string".to_owned()));
        let endless =
            format!("{{\"type\":\"Feature\",\n\"properties\":{{\"a\":\"{}\"}}}}", "x".repeat(3 << 20));
        let found = outline(endless);
        assert_eq!(found, [(2, None, "last: it is longer than 1 MiB".to_owned())]);
        assert_eq!(
            outline("{\n"),
            [(2, None, "last: malformed JSON: EOF while parsing an object".to_owned())]
        );
    }

    #[test]
    fn what_has_no_id_gets_one_and_nothing_else_changes() {
        let text = format!(r#"{{"type":"Feature",{POINT},"n":1.50}}"#);
        let named = with_id(text.clone());
        let (id, rest) = named.strip_prefix(r#"{"id":""#).unwrap().split_once("\",").unwrap();
        assert_eq!((id.len(), format!("{{{rest}")), (32, text));
        for other in [
            r#"{"type":"Feature","id":null}"#,
            r#"{"type":"Feature","id":7}"#,
            "{}",
            "[1]",
            "{\"type\":\"Point\"}",
        ] {
            assert_eq!(with_id(other.to_owned()), other);
        }
    }
}
