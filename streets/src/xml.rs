//! OpenStreetMap as it is written out.

use std::path::Path;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::StreetsError;
use crate::osm::{Item, Pass};
use crate::outside;

/// A node or a way of which more may follow.
struct Open {
    is_way: bool,
    id: Option<i64>,
    place: Option<(f64, f64)>,
    refs: Vec<i64>,
    tags: Vec<(String, String)>,
    problem: Option<String>,
}

/// Gives all ways, or all nodes, of a file.
pub(crate) fn read(path: &Path, pass: Pass, take: &mut dyn FnMut(Item<'_>)) -> Result<(), StreetsError> {
    let mut reader = Reader::from_reader(outside::open(path, b'>')?);
    let mut buffer = Vec::new();
    let mut open = None::<Open>;
    let mut is_osm = false;
    loop {
        buffer.clear();
        let content = |reader: &Reader<_>, problem: String| StreetsError::Content {
            path: path.to_owned(),
            place: format!("byte {}", reader.buffer_position()),
            problem,
        };
        let event = reader.read_event_into(&mut buffer);
        let (element, is_empty) = match event.map_err(|problem| content(&reader, problem.to_string()))? {
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            Event::End(element) => {
                if matches!(element.name().as_ref(), "node" | "way") {
                    give(open.take(), take);
                }
                continue;
            }
            // What a document type declares could make a small document a large one.
            Event::DocType(_) => return Err(content(&reader, "a document type is not taken".to_owned())),
            Event::Eof if is_osm && open.is_none() => return Ok(()),
            Event::Eof => return Err(content(&reader, "the file ends before its document does".to_owned())),
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::GeneralRef(_) => continue,
        };
        let name = element.name();
        if !is_osm && name.as_ref() != "osm" {
            let found = name.as_ref();
            return Err(content(&reader, format!("found <{found}> where <osm> was to begin")));
        }
        is_osm = true;
        match (name.as_ref(), pass) {
            ("node", Pass::Nodes) | ("way", Pass::Ways) => {
                let begun = begin(&element, pass == Pass::Ways, reader.buffer_position());
                open = Some(begun);
                if is_empty {
                    give(open.take(), take);
                }
            }
            ("nd" | "tag", _) => {
                if let Some(open) = &mut open {
                    open.add(&element);
                }
            }
            _ => {}
        }
    }
}

fn begin(element: &BytesStart<'_>, is_way: bool, byte: u64) -> Open {
    let id = attribute(element, "id").and_then(|text| text.parse().ok());
    let number = |name| attribute(element, name).and_then(|text| text.parse::<f64>().ok());
    let place = number("lon").zip(number("lat"));
    let problem = match (id, is_way, place) {
        (None, ..) => Some("has no id that is a number"),
        (_, false, None) => Some("has no lat and lon that are numbers"),
        _ => None,
    };
    let problem = problem.map(|what| format!("element that ends at byte {byte} {what}"));
    Open { is_way, id, place, refs: Vec::new(), tags: Vec::new(), problem }
}

impl Open {
    /// Takes a node of a way, or a tag.
    fn add(&mut self, element: &BytesStart<'_>) {
        if element.name().as_ref() == "nd" {
            match attribute(element, "ref").and_then(|text| text.parse().ok()) {
                Some(node) => self.refs.push(node),
                None => {
                    self.problem =
                        Some(format!("way {}: a node without a number", self.id.unwrap_or_default()))
                }
            }
        } else if let Some(tag) = attribute(element, "k").zip(attribute(element, "v")) {
            self.tags.push(tag);
        }
    }
}

fn give(open: Option<Open>, take: &mut dyn FnMut(Item<'_>)) {
    let Some(Open { is_way, id: Some(id), place, refs, tags, problem: None }) = open else {
        if let Some(problem) = open.and_then(|open| open.problem) {
            take(Item::Broken(problem));
        }
        return;
    };
    let tags = |key: &str| tags.iter().find(|tag| tag.0 == key).map(|tag| tag.1.as_str());
    match place {
        Some((lon, lat)) if !is_way => take(Item::Node { id, lon, lat, tags: &tags }),
        _ => take(Item::Way { id, refs: &refs, tags: &tags }),
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    Some(attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}
