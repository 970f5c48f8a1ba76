//! Waypoints, and the points of routes and tracks (GPX 1.0 and 1.1).

use std::io::{self, BufRead, Read};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::ENTRY_BYTES;
use super::records::{Record, Sink, number, value};

/// Properties that are texts, whatever they look like.
const TEXTS: [&str; 6] = ["name", "cmt", "desc", "src", "sym", "type"];
/// Elements of a point that are not read.
const LEFT_OUT: [&str; 2] = ["extensions", "link"];

/// A point of which more may follow.
struct Point {
    line: u64,
    record: Result<Record, String>,
    /// Elements that are open in the point.
    depth: usize,
    /// The one of these that is a property, and its text so far.
    text: Option<(String, String)>,
}

/// Reads points as they come. A point is held whole, and nothing else.
pub(super) fn read<T>(reader: impl BufRead, sink: &Sink<'_, T>) {
    let mut reader = Reader::from_reader(Counted { inner: reader, line: 1, left: ENTRY_BYTES });
    let (mut buffer, mut open, mut point) = (Vec::new(), 0_usize, None::<Point>);
    let mut is_gpx = false;
    loop {
        buffer.clear();
        if point.is_none() {
            reader.get_mut().left = ENTRY_BYTES;
        }
        let event = reader.read_event_into(&mut buffer);
        let line = reader.get_ref().line;
        let event = match event {
            Ok(event) => event,
            Err(quick_xml::Error::Io(fault)) => return sink.give_up(line, fault.to_string()),
            Err(fault) => return sink.give_up(line, format!("malformed XML: {fault}")),
        };
        match event {
            Event::Eof if open == 0 && is_gpx => return,
            Event::Eof if open == 0 => return sink.give_up(line, "this is no GPX: no <gpx> begins in it"),
            Event::Eof => return sink.give_up(line, "the file ends before its document does"),
            Event::Start(element) => {
                let name = element.name();
                if open == 0 && name.local_name().as_ref() != "gpx" {
                    let name = name.as_ref();
                    return sink
                        .give_up(line, format!("this is no GPX: found <{name}> where <gpx> was to begin"));
                }
                (open, is_gpx) = (open + 1, true);
                match &mut point {
                    None => point = Point::begin(&element, line),
                    Some(point) => point.enter(name.local_name().as_ref()),
                }
            }
            Event::Empty(element) if point.is_none() => {
                if let Some(point) = Point::begin(&element, line)
                    && sink.give(point.line, buffer.len(), point.record).is_err()
                {
                    return;
                }
            }
            Event::End(_) => {
                open = open.saturating_sub(1);
                if point.as_mut().is_some_and(Point::leave)
                    && let Some(point) = point.take()
                    && sink.give(point.line, ENTRY_BYTES - reader.get_ref().left, point.record).is_err()
                {
                    return;
                }
            }
            Event::Text(text) => say(&mut point, &text.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(text) => say(&mut point, &text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(reference) => {
                let named = quick_xml::escape::resolve_predefined_entity(&reference).map(str::to_owned);
                match named.or_else(|| reference.resolve_char_ref().ok().flatten().map(String::from)) {
                    Some(text) => say(&mut point, &text),
                    None => return sink.give_up(line, "malformed XML: a reference to nothing that is known"),
                }
            }
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn say(point: &mut Option<Point>, text: &str) {
    if let Some((_, said)) = point.as_mut().and_then(|point| point.text.as_mut()) {
        said.push_str(text);
    }
}

impl Point {
    fn begin(element: &BytesStart<'_>, line: u64) -> Option<Self> {
        if !matches!(element.name().local_name().as_ref(), "wpt" | "trkpt" | "rtept") {
            return None;
        }
        let degrees = |name: &str| {
            let attribute = element.try_get_attribute(name).ok().flatten();
            let text = attribute
                .and_then(|found| Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned()));
            number(name, &text.unwrap_or_default())
        };
        let place = degrees("lon").and_then(|lon| Ok((lon, degrees("lat")?)));
        let record = place.map(|(lon, lat)| Record { lon, lat, ..Record::default() });
        Some(Self { line, record, depth: 0, text: None })
    }

    fn enter(&mut self, name: &str) {
        self.depth += 1;
        if self.depth == 1 && !LEFT_OUT.contains(&name) {
            self.text = Some((name.to_owned(), String::new()));
        }
    }

    /// Whether it was the point itself that ended.
    fn leave(&mut self) -> bool {
        if self.depth == 0 {
            return true;
        }
        self.depth -= 1;
        if self.depth == 0
            && let Some((name, text)) = self.text.take()
            && let Ok(record) = &mut self.record
            && let Err(why) = add(record, &name, text.trim())
        {
            self.record = Err(why);
        }
        false
    }
}

fn add(record: &mut Record, name: &str, text: &str) -> Result<(), String> {
    match name {
        _ if text.is_empty() => {}
        "ele" => record.altitude_m = Some(number("ele", text)?),
        "time" => record.time = Some(text.to_owned()),
        name if TEXTS.contains(&name) => {
            record.properties.insert(name.to_owned(), text.into());
        }
        name => {
            record.properties.insert(name.to_owned(), value(text));
        }
    }
    Ok(())
}

/// Counts the lines that were read, and ends where a point, or what is between two of them, is longer than an entry may be.
struct Counted<R> {
    inner: R,
    line: u64,
    left: usize,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let count = found.len().min(buffer.len());
        buffer[..count].copy_from_slice(&found[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::other("it is longer than 1 MiB"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        let lines = self
            .inner
            .fill_buf()
            .map_or(0, |found| found[..count].iter().filter(|byte| **byte == b'\n').count());
        self.line += lines as u64;
        self.left = self.left.saturating_sub(count);
        self.inner.consume(count);
    }
}
