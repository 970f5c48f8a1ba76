//! Files from outside: unpacked, and with an end to what one record may be long.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::StreetsError;

/// The longest record: the longest way of OpenStreetMap has 2000 nodes, some 60 kB.
const RECORD_MAX_BYTES: usize = 4 << 20;

/// Opens a file, and unpacks it if its name ends in `.gz`. Between two bytes `end` there may be 4 MiB.
pub(crate) fn open(path: &Path, end: u8) -> Result<Box<dyn BufRead>, StreetsError> {
    let file = File::open(path).map_err(|source| StreetsError::Io { path: path.to_owned(), source })?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        Ok(Box::new(BufReader::new(Bounded { reader: MultiGzDecoder::new(file), end, since_bytes: 0 })))
    } else {
        Ok(Box::new(BufReader::new(Bounded { reader: file, end, since_bytes: 0 })))
    }
}

/// Fails where a record does not end.
struct Bounded<R> {
    reader: R,
    end: u8,
    since_bytes: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        match buffer[..count].iter().rposition(|byte| *byte == self.end) {
            Some(last) => self.since_bytes = count - last,
            None => self.since_bytes += count,
        }
        if self.since_bytes > RECORD_MAX_BYTES {
            let what = format!("a record of more than {RECORD_MAX_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}
