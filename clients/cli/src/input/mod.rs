//! Files and pipes, read as they come and never held whole: JSON by `features` and `positions`, and CSV, GPX and NMEA as `records`.
//!
//! A thread reads and parses; what it has waits in a queue, bounded in entries and bytes, until it is taken. When that is full the thread
//! waits, and with it the program that writes into the pipe.

mod csv;
mod document;
pub(crate) mod features;
mod format;
mod gpx;
mod nmea;
pub(crate) mod positions;
mod records;
#[cfg(test)]
mod records_tests;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

pub(crate) use format::Format;

/// Bytes of a line, or of a Feature. The broker takes less by default.
const ENTRY_BYTES: usize = 1 << 20;
/// Bytes and entries that wait at most.
const ROOM_BYTES: u32 = 8 << 20;
const ROOM_ENTRIES: usize = 1000;

/// Source that something is read from.
pub(crate) struct Source {
    reader: Box<dyn Read + Send>,
    /// Name of the input, for messages.
    pub(crate) name: String,
    /// Whether somebody types it.
    pub(crate) is_typed: bool,
    /// Its format, where its name says that.
    pub(crate) format: Option<Format>,
}

impl Source {
    /// A file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            let is_typed = io::stdin().is_terminal();
            return Ok(Self {
                reader: Box::new(io::stdin()),
                name: "standard input".to_owned(),
                is_typed,
                format: None,
            });
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Self { reader: Box::new(file), name, is_typed: false, format: Format::of_name(path) })
    }

    /// All of it as text: a document.
    pub(crate) async fn read(mut self) -> anyhow::Result<String> {
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            self.reader.read_to_string(&mut text).with_context(|| format!("cannot read {}", self.name))?;
            Ok(text)
        });
        reading.await?
    }

    /// Has a thread read it.
    pub(crate) fn feed<T: Send + 'static>(
        self,
        read: impl FnOnce(Box<dyn Read + Send>, &Feed<T>) + Send + 'static,
    ) -> mpsc::Receiver<Entry<T>> {
        let (entries, receiver) = mpsc::channel(ROOM_ENTRIES);
        let feed =
            Feed { entries, room: Arc::new(Semaphore::new(ROOM_BYTES as usize)), runtime: Handle::current() };
        // Not one of the runtime's, which would wait for it at the end: a read from a terminal may take for ever.
        std::thread::spawn(move || read(self.reader, &feed));
        receiver
    }
}

/// Place of an entry in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Line, from 1.
    pub(crate) line: u64,
    /// Feature, from 1, of a collection that is on one line.
    pub(crate) feature: Option<u64>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.feature {
            None => write!(f, "line {}", self.line),
            Some(feature) => write!(f, "line {}, feature {feature}", self.line),
        }
    }
}

/// An entry that was read from the input, or the reason why it could not be read.
pub(crate) struct Entry<T> {
    pub(crate) origin: Origin,
    pub(crate) content: Result<T, Unreadable>,
    /// Room in the queue that the entry takes, given back when this is dropped.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// A part of the input that is no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) why: String,
    /// Whether nothing behind it can be read either.
    pub(crate) is_last: bool,
}

/// Takes what was read.
pub(crate) struct Feed<T> {
    entries: mpsc::Sender<Entry<T>>,
    room: Arc<Semaphore>,
    runtime: Handle,
}

/// Nobody takes anything any more.
#[derive(Debug)]
struct Over;

impl<T> Feed<T> {
    /// Hands something over when there is room for it.
    fn give(&self, origin: Origin, bytes: usize, content: Result<T, String>) -> Result<(), Over> {
        let bytes = u32::try_from(bytes).unwrap_or(ROOM_BYTES).min(ROOM_BYTES);
        let room =
            self.runtime.block_on(Arc::clone(&self.room).acquire_many_owned(bytes)).map_err(|_| Over)?;
        let content = content.map_err(|why| Unreadable { why, is_last: false });
        self.entries.blocking_send(Entry { origin, content, room: Some(room) }).map_err(|_| Over)
    }

    /// Says that no more can be read.
    fn give_up(&self, line: u64, why: String) {
        let content = Err(Unreadable { why, is_last: true });
        // Nobody may want to know any more.
        let _ =
            self.entries.blocking_send(Entry { origin: Origin { line, feature: None }, content, room: None });
    }
}

/// How a line was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// To its end, or that of the input.
    Whole,
    /// It is longer than an entry may be: its beginning.
    Begun,
    /// There is none.
    End,
}

/// Reads a line in place of what is in the buffer, and no more of it than an entry may have.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let limit = ENTRY_BYTES as u64 + 1;
    reader.take(limit).read_until(b'\n', line)?;
    Ok(match line.last() {
        None => Line::End,
        Some(b'\n') => Line::Whole,
        Some(_) if line.len() > ENTRY_BYTES => Line::Begun,
        Some(_) => Line::Whole,
    })
}

/// Passes over the rest of a line.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    reader.skip_until(b'\n').map(drop)
}

/// A line's text without what may stand around it: space, a byte order mark, the record separator of a sequence (RFC 8142).
fn text_of(line: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(line)
        .map_err(|fault| format!("it is not UTF-8 from byte {} on", fault.valid_up_to() + 1))?;
    Ok(text.trim_start_matches(['\u{feff}', '\u{1e}']).trim())
}

/// Describes a fault in JSON without its place in the text, which is shown otherwise.
fn fault_in_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    if error.is_io() || error.is_data() { what.to_owned() } else { format!("malformed JSON: {what}") }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// Entries that `read` makes of a text.
    pub(super) fn read_all<T: Send + 'static>(
        text: impl Into<Vec<u8>>,
        read: fn(Box<dyn Read + Send>, &Feed<T>),
    ) -> Vec<(u64, Option<u64>, Result<T, Unreadable>)> {
        let reader = Box::new(io::Cursor::new(text.into()));
        let source = Source { reader, name: String::new(), is_typed: false, format: None };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let mut entries = source.feed(read);
            let mut all = Vec::new();
            while let Some(entry) = entries.recv().await {
                all.push((entry.origin.line, entry.origin.feature, entry.content));
            }
            all
        })
    }
}
