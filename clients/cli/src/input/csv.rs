//! Rows below a line that names the columns.

use std::io::BufRead;

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use super::records::{Record, Sink, number, value};
use super::{ENTRY_BYTES, Line, Over, read_line};

const LON: &[&str] = &["lon", "lng", "long", "longitude", "x"];
const LAT: &[&str] = &["lat", "latitude", "y"];
const ALTITUDE: &[&str] = &["altitude", "altitude_m", "alt", "ele", "elevation"];
const TIME: &[&str] = &["time", "timestamp"];

/// Members of an event that are numbers or words.
const MEMBERS: &[&str] = &["ttl_s", "reach_m", "priority", "deadline_ms"];

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Lon,
    Lat,
    Altitude,
    Time,
    Id,
    Key,
    /// A member of an event besides these, by its name.
    Member(&'static str),
    Property(String),
}

/// Rows that were read together: one, or those that a quote seems to join.
enum Rows {
    Whole,
    /// A quoted cell without an end, or one that is longer than an entry may be.
    Endless,
    End,
}

/// Reads rows. A row is held whole, and no more than one of them unless quotes join them.
pub(super) fn read<T>(reader: &mut impl BufRead, sink: &Sink<'_, T>) {
    let (mut text, mut line) = (Vec::new(), 0);
    let mut header: Option<(Vec<Column>, u8)> = None;
    loop {
        let begun = line + 1;
        match read_rows(reader, &mut text, &mut line) {
            Ok(Rows::End) => return,
            Ok(Rows::Whole) => {}
            Ok(Rows::Endless) => {
                return sink.give_up(begun, "it is longer than 1 MiB, or a quote in it has no end");
            }
            Err(fault) => return sink.give_up(begun, fault.to_string()),
        }
        let given = match &header {
            None if text.trim_ascii().is_empty() => Ok(()),
            None => match read_header(&text) {
                Ok(columns) => {
                    header = Some(columns);
                    Ok(())
                }
                Err(why) => return sink.give_up(begun, why),
            },
            Some((columns, delimiter)) => give(&text, begun, columns, *delimiter, sink),
        };
        if given.is_err() {
            return;
        }
    }
}

/// Reads a line, and those behind it for as long as the quotes so far are odd: a cell may go on there.
fn read_rows(reader: &mut impl BufRead, text: &mut Vec<u8>, number: &mut u64) -> std::io::Result<Rows> {
    text.clear();
    let (mut line, mut is_quoted) = (Vec::new(), false);
    loop {
        match read_line(reader, &mut line)? {
            Line::End if text.is_empty() => return Ok(Rows::End),
            Line::End | Line::Begun => return Ok(Rows::Endless),
            Line::Whole => *number += 1,
        }
        is_quoted ^= !line.iter().filter(|byte| **byte == b'"').count().is_multiple_of(2);
        text.extend_from_slice(&line);
        if text.len() > ENTRY_BYTES {
            return Ok(Rows::Endless);
        }
        if !is_quoted {
            return Ok(Rows::Whole);
        }
    }
}

fn rows(text: &[u8], delimiter: u8) -> ::csv::Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(Trim::All).delimiter(delimiter).buffer_capacity(1 << 10);
    builder.from_reader(text)
}

/// What the columns are, and what stands between them.
fn read_header(text: &[u8]) -> Result<(Vec<Column>, u8), String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let count = |delimiter: &u8| text.iter().filter(|byte| *byte == delimiter).count();
    // The one that is there most; of several, the last in this list.
    let delimiter = *b"\t;,".iter().max_by_key(|delimiter| count(delimiter)).unwrap_or(&b',');
    let mut names = ByteRecord::new();
    rows(text, delimiter).read_byte_record(&mut names).map_err(|fault| fault.to_string())?;
    let names = names.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>();
    let names = names.map_err(|_| "the names of the columns are not UTF-8")?;
    if let Some(cell) = names.iter().find(|name| name.parse::<f64>().is_ok()) {
        return Err(format!(
            "CSV begins with a line that names its columns, such as lon,lat,time,type, and {cell:?} is no name: \
             which number is the latitude is never guessed"
        ));
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in &names {
        let column = column(name);
        if columns.contains(&column) {
            return Err(format!("two columns are the {}", said(&column)));
        }
        columns.push(column);
    }
    for (needed, called) in [(Column::Lon, LON), (Column::Lat, LAT)] {
        if !columns.contains(&needed) {
            return Err(format!(
                "no column is the {} ({}); there are {}",
                said(&needed),
                called.join(", "),
                names.join(", ")
            ));
        }
    }
    Ok((columns, delimiter))
}

fn column(name: &str) -> Column {
    let lower = name.to_ascii_lowercase();
    let is = |names: &[&str]| names.contains(&lower.as_str());
    match lower.as_str() {
        _ if is(LON) => Column::Lon,
        _ if is(LAT) => Column::Lat,
        _ if is(ALTITUDE) => Column::Altitude,
        _ if is(TIME) => Column::Time,
        "id" => Column::Id,
        "key" => Column::Key,
        lower => match MEMBERS.iter().find(|member| **member == lower) {
            Some(member) => Column::Member(member),
            None => Column::Property(name.to_owned()),
        },
    }
}

fn said(column: &Column) -> String {
    match column {
        Column::Lon => "longitude".to_owned(),
        Column::Lat => "latitude".to_owned(),
        Column::Altitude => "altitude".to_owned(),
        Column::Time => "time".to_owned(),
        Column::Id => "id".to_owned(),
        Column::Key => "key".to_owned(),
        Column::Member(name) => (*name).to_owned(),
        Column::Property(name) => format!("property {name:?}"),
    }
}

fn give<T>(
    text: &[u8],
    begun: u64,
    columns: &[Column],
    delimiter: u8,
    sink: &Sink<'_, T>,
) -> Result<(), Over> {
    let (mut reader, mut row) = (rows(text, delimiter), ByteRecord::new());
    while reader.read_byte_record(&mut row).unwrap_or(false) {
        let line = begun + row.position().map_or(0, |position| position.line() - 1);
        sink.give(line, row.as_slice().len(), record(&row, columns))?;
    }
    Ok(())
}

fn record(row: &ByteRecord, columns: &[Column]) -> Result<Record, String> {
    if row.len() != columns.len() {
        return Err(format!("it has {} cells, and the first line names {}", row.len(), columns.len()));
    }
    let mut record = Record::default();
    for (cell, column) in row.iter().zip(columns) {
        let cell = std::str::from_utf8(cell).map_err(|_| format!("its {} is not UTF-8", said(column)))?;
        let text = (!cell.is_empty()).then(|| cell.to_owned());
        match column {
            Column::Lon => record.lon = number("longitude", cell)?,
            Column::Lat => record.lat = number("latitude", cell)?,
            Column::Altitude if cell.is_empty() => {}
            Column::Altitude => record.altitude_m = Some(number("altitude", cell)?),
            Column::Time => record.time = text,
            Column::Id => record.id = text,
            Column::Key => record.key = text,
            Column::Member(_) | Column::Property(_) if cell.is_empty() => {}
            Column::Member(name) => {
                record.members.insert((*name).to_owned(), value(cell));
            }
            Column::Property(name) => {
                record.properties.insert(name.clone(), value(cell));
            }
        }
    }
    Ok(record)
}
