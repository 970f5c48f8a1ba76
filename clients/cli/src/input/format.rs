//! Which format an input has: by its name, or by how it begins.

use std::path::Path;

use clap::ValueEnum;

/// A format of events or positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// GeoJSON, and for positions also lon,lat and JSON line by line
    Json,
    /// Rows below a line that names the columns
    Csv,
    /// Waypoints, and the points of routes and tracks
    Gpx,
    /// GGA and RMC sentences of a receiver, NMEA 0183
    Nmea,
}

impl Format {
    /// The format that the end of a file's name says.
    pub(super) fn of_name(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "json" | "geojson" | "ndjson" | "jsonl" | "geojsonl" | "geojsons" => Some(Self::Json),
            "csv" | "tsv" => Some(Self::Csv),
            "gpx" => Some(Self::Gpx),
            "nmea" => Some(Self::Nmea),
            _ => None,
        }
    }

    /// The format that an input has by its first bytes. `are_positions`: numbers with commas between are positions there, and otherwise
    /// rows whose columns nobody has named.
    pub(super) fn of_content(begin: &[u8], are_positions: bool) -> Self {
        let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
        match begin.first() {
            Some(b'<') => return Self::Gpx,
            Some(b'$' | b'!') => return Self::Nmea,
            None | Some(b'{' | b'[' | b'\x1e') => return Self::Json,
            Some(_) => {}
        }
        let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let cells: Vec<_> = line.split([',', ';', '\t']).collect();
        let has_number = cells.iter().any(|cell| cell.trim().parse::<f64>().is_ok());
        if cells.len() > 1 && !(are_positions && has_number) { Self::Csv } else { Self::Json }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_beginnings_say_what_it_is() {
        for (name, format) in [
            ("a.CSV", Some(Format::Csv)),
            ("a.b.gpx", Some(Format::Gpx)),
            ("a.geojson", Some(Format::Json)),
            ("gps.nmea", Some(Format::Nmea)),
            ("events.txt", None),
            ("csv", None),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
        for (begin, events, positions) in [
            ("\u{feff}<?xml version", Format::Gpx, Format::Gpx),
            ("$GPGGA,1", Format::Nmea, Format::Nmea),
            ("\n {\"type\"", Format::Json, Format::Json),
            ("", Format::Json, Format::Json),
            ("nonsense\n", Format::Json, Format::Json),
            ("lat,lon\n45,9\n", Format::Csv, Format::Csv),
            ("type;x;y", Format::Csv, Format::Csv),
            ("9.19,45.46\n", Format::Csv, Format::Json),
            ("9.19 , 45.46 , 120\n", Format::Csv, Format::Json),
        ] {
            assert_eq!(Format::of_content(begin.as_bytes(), false), events, "{begin}");
            assert_eq!(Format::of_content(begin.as_bytes(), true), positions, "{begin}");
        }
    }
}
