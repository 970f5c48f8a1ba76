//! Records of ledgers and of streams of events as bytes: a header of fixed size, then a body as postcard, compressed where that is worth it.
//!
//! ```text
//! format u8 | kind u8 | compression u8 | 0 u8 | CRC u32 | term u64 | nonce u64 | number u64 | count u32 | previous u32 | body
//! ```
//!
//! Numbers are little-endian. The CRC-32 is that of all bytes but its own four.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

/// Version of all of this, and the only one that is read.
pub const FORMAT: u8 = 1;
/// Bytes of a body from which on it is compressed. Below, a header of zstd eats up what is saved.
pub const COMPRESSED_FROM_BYTES: usize = 4 << 10;
/// Bytes of a record, which are what NATS takes by default (1 MiB) less room for its headers.
pub const RECORD_BYTES_MAX: usize = (1 << 20) - (4 << 10);
/// Bytes of a body before it is compressed. What claims to have more is refused, so that no record takes much memory.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// Rows or events of a record. What claims to have more is refused: each takes memory, also where it is empty.
pub const ROWS_MAX: usize = 4_096;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 40;

/// The first level of zstd: a record is compressed while its writers wait.
const LEVEL: i32 = 1;
const CRC_AT: usize = 4;
const CRC_END: usize = 8;

/// One owner of a ledger, from its seal to that of the next, or one process that appends to streams of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// Counts owners from 1.
    pub term: u64,
    /// A random number, by which two that want to become the owner at the same time differ.
    pub nonce: u64,
}

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of the owner.
    Rows,
    /// An owner's end and the next one's beginning.
    Seal,
    /// A part of a snapshot.
    Chunk,
    /// Events, in a stream of events.
    Events,
    /// A place in a stream of events that says nothing but where it is.
    Marker,
}

/// What every record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The record's kind.
    pub kind: Kind,
    /// The owner or process by which it was appended; in a seal, the new one.
    pub incarnation: Incarnation,
    /// The number of its first row, or of the next one where it has none. Rows of a ledger count from 1 over all owners. In a stream of
    /// events, the number of the record, by which and by the incarnation it is named.
    pub number: u64,
    /// How many rows or events it has.
    pub count: u32,
    /// CRC-32 of the record before it; 0 where there is none, and in streams of events, whose writers do not know it.
    pub previous: u32,
}

/// The body of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Rows, in the order of their numbers.
    Rows(Vec<&'a [u8]>),
    /// See [`Kind::Seal`].
    Seal(Seal<'a>),
    /// See [`Kind::Chunk`].
    Chunk(Chunk<'a>),
    /// Events, in the order in which they were published.
    Events(Vec<&'a [u8]>),
    /// See [`Kind::Marker`].
    Marker,
}

/// The body of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal<'a> {
    /// The member that is the owner from here on.
    pub member: &'a str,
}

/// A part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk<'a> {
    /// The member that is the owner, whose seal may have been truncated.
    pub member: &'a str,
    /// The snapshot is the state after this row.
    pub row: u64,
    /// The sequence from which on the log has all later rows.
    pub start: u64,
    /// Counts the snapshot's chunks from 0.
    pub index: u32,
    /// Whether the snapshot is complete with it.
    pub is_last: bool,
    /// Bytes of the state.
    #[serde(borrow, serialize_with = "as_bytes")]
    pub bytes: &'a [u8],
}

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There are fewer than a header has.
    #[error("a record has {bytes} bytes, fewer than the {HEADER_BYTES} of its header")]
    Short {
        /// Bytes that there are.
        bytes: usize,
    },
    /// Another version wrote it. A version that reads it can.
    #[error("a record has format {found}; this version reads {FORMAT}")]
    Format {
        /// The format that it says.
        found: u8,
    },
    /// They are damaged.
    #[error("a record's CRC is {found:08x}, and it says {expected:08x}")]
    Crc {
        /// What the record says.
        expected: u32,
        /// What its bytes have.
        found: u32,
    },
    /// The header has a value without a meaning.
    #[error("byte {at} of a record's header is {found}")]
    Header {
        /// Which byte, from 0.
        at: usize,
        /// Its value.
        found: u8,
    },
    /// The body cannot be read.
    #[error("a record's body cannot be read: {why}")]
    Body {
        /// Why.
        why: String,
    },
    /// It would be too large.
    #[error("a record has {bytes} bytes, more than {bytes_max}")]
    TooLarge {
        /// Bytes that it would have.
        bytes: usize,
        /// Bytes that it may have.
        bytes_max: usize,
    },
}

/// A record whose bytes are whole.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Its header.
    pub header: Header,
    body: Cow<'a, [u8]>,
}

/// A row among others, as postcard has bytes.
#[derive(Serialize)]
struct Row<'a>(#[serde(serialize_with = "as_bytes")] &'a [u8]);

fn as_bytes<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Rows => 1,
            Self::Seal => 2,
            Self::Chunk => 3,
            Self::Events => 4,
            Self::Marker => 5,
        }
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.term, self.nonce)
    }
}

impl<'a> Body<'a> {
    fn kind(&self) -> Kind {
        match self {
            Self::Rows(_) => Kind::Rows,
            Self::Seal(_) => Kind::Seal,
            Self::Chunk(_) => Kind::Chunk,
            Self::Events(_) => Kind::Events,
            Self::Marker => Kind::Marker,
        }
    }

    fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        match self {
            Self::Rows(rows) | Self::Events(rows) => {
                postcard::to_stdvec(&rows.iter().map(|row| Row(row)).collect::<Vec<_>>())
            }
            Self::Seal(seal) => postcard::to_stdvec(seal),
            Self::Chunk(chunk) => postcard::to_stdvec(chunk),
            Self::Marker => Ok(Vec::new()),
        }
    }

    fn decode(kind: Kind, bytes: &'a [u8]) -> Result<Self, postcard::Error> {
        let (body, rest) = match kind {
            Kind::Rows => postcard::take_from_bytes(bytes).map(|(rows, rest)| (Self::Rows(rows), rest))?,
            Kind::Seal => postcard::take_from_bytes(bytes).map(|(seal, rest)| (Self::Seal(seal), rest))?,
            Kind::Chunk => {
                postcard::take_from_bytes(bytes).map(|(chunk, rest)| (Self::Chunk(chunk), rest))?
            }
            Kind::Events => {
                postcard::take_from_bytes(bytes).map(|(events, rest)| (Self::Events(events), rest))?
            }
            Kind::Marker => (Self::Marker, bytes),
        };
        if rest.is_empty() { Ok(body) } else { Err(postcard::Error::DeserializeBadEncoding) }
    }
}

/// Makes a record. Its kind and the count of its rows or events are those of the body.
///
/// # Errors
/// [`RecordError::TooLarge`], and [`RecordError::Body`] for more than [`ROWS_MAX`] rows.
pub fn encode(
    incarnation: Incarnation,
    number: u64,
    previous: u32,
    body: &Body<'_>,
) -> Result<Bytes, RecordError> {
    let unreadable = |why: &dyn fmt::Display| RecordError::Body { why: why.to_string() };
    let count = match body {
        Body::Rows(rows) | Body::Events(rows) => u32::try_from(rows.len()).unwrap_or(u32::MAX),
        Body::Seal(_) | Body::Chunk(_) | Body::Marker => 0,
    };
    check_rows(count)?;
    let plain = body.encode().map_err(|error| unreadable(&error))?;
    check_size(plain.len(), BODY_BYTES_MAX)?;
    let is_compressed = plain.len() >= COMPRESSED_FROM_BYTES;
    let stored = if is_compressed {
        zstd::bulk::compress(&plain, LEVEL).map_err(|error| unreadable(&error))?
    } else {
        plain
    };
    check_size(HEADER_BYTES + stored.len(), RECORD_BYTES_MAX)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + stored.len());
    bytes.extend([FORMAT, body.kind().number(), u8::from(is_compressed), 0]);
    bytes.extend([0; 4]);
    bytes.extend(incarnation.term.to_le_bytes());
    bytes.extend(incarnation.nonce.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(previous.to_le_bytes());
    bytes.extend(stored);
    let crc = crc(&bytes);
    bytes[CRC_AT..CRC_END].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes.into())
}

impl<'a> Record<'a> {
    /// Reads a record's header and sees whether its bytes are whole.
    ///
    /// # Errors
    /// Any [`RecordError`]. No bytes lead to a panic, nor to more than [`BODY_BYTES_MAX`] bytes of memory.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(RecordError::Short { bytes: bytes.len() });
        };
        if head[0] != FORMAT {
            return Err(RecordError::Format { found: head[0] });
        }
        let (expected, found) = (word(head, CRC_AT), crc(bytes));
        if expected != found {
            return Err(RecordError::Crc { expected, found });
        }
        let wrong = |at: usize| RecordError::Header { at, found: head[at] };
        let kinds = [Kind::Rows, Kind::Seal, Kind::Chunk, Kind::Events, Kind::Marker];
        let kind = kinds.into_iter().find(|kind| kind.number() == head[1]).ok_or_else(|| wrong(1))?;
        let body = match head[2] {
            0 if body.len() <= BODY_BYTES_MAX => Cow::Borrowed(body),
            0 => return Err(RecordError::TooLarge { bytes: body.len(), bytes_max: BODY_BYTES_MAX }),
            1 => {
                // What is written says how much it becomes. Room for the most that it may be would cost more than it does to expand.
                let said = zstd::zstd_safe::get_frame_content_size(body).ok().flatten();
                let bytes = said.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BODY_BYTES_MAX);
                check_size(bytes, BODY_BYTES_MAX)?;
                let expanded = zstd::bulk::decompress(body, bytes);
                Cow::Owned(expanded.map_err(|error| RecordError::Body { why: error.to_string() })?)
            }
            _ => return Err(wrong(2)),
        };
        if head[3] != 0 {
            return Err(wrong(3));
        }
        let header = Header {
            kind,
            incarnation: Incarnation { term: long(head, 8), nonce: long(head, 16) },
            number: long(head, 24),
            count: word(head, 32),
            previous: word(head, 36),
        };
        check_rows(header.count)?;
        Ok(Self { header, body })
    }

    /// Reads the body.
    ///
    /// # Errors
    /// [`RecordError::Body`].
    pub fn body(&self) -> Result<Body<'_>, RecordError> {
        let unreadable = |error: postcard::Error| RecordError::Body { why: error.to_string() };
        // A body begins with the count of its rows, which is known to be few before there is room for them.
        let count = match self.header.kind {
            Kind::Rows | Kind::Events => postcard::take_from_bytes::<u64>(&self.body).map_err(unreadable)?.0,
            Kind::Seal | Kind::Chunk | Kind::Marker => 0,
        };
        if count != u64::from(self.header.count) {
            let why = format!("it has {count} rows, and its header says {}", self.header.count);
            return Err(RecordError::Body { why });
        }
        Body::decode(self.header.kind, &self.body).map_err(unreadable)
    }
}

fn check_size(bytes: usize, bytes_max: usize) -> Result<(), RecordError> {
    if bytes > bytes_max { Err(RecordError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

fn check_rows(count: u32) -> Result<(), RecordError> {
    if count as usize <= ROWS_MAX {
        return Ok(());
    }
    Err(RecordError::Body { why: format!("it has {count} rows, more than {ROWS_MAX}") })
}

fn crc(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&record[..CRC_AT]);
    hasher.update(&record[CRC_END..]);
    hasher.finalize()
}

fn word(head: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]))
}

fn long(head: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]))
}
