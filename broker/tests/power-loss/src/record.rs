//! What is noted, and how that is written: also compiled into the test that reads it.

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A file that was there was opened: `file` is its number from now on, `bytes` its path.
    Bound = 1,
    /// A file was made: `file` is its number, `bytes` its path.
    Made = 2,
    /// `bytes` were written to `file` at `number`.
    Written = 3,
    /// `file` has `number` bytes now.
    Resized = 4,
    /// Zeros were written to `file` at `number`, as many as `bytes` says in little endian.
    Zeroed = 5,
    /// A sync of `file` began, with this `number`.
    SyncBegun = 6,
    /// A sync of the folder `bytes` began, with this `number`.
    FolderSyncBegun = 7,
    /// The sync with this `number` has succeeded.
    SyncDone = 8,
    /// The folder `bytes` was made.
    FolderMade = 9,
    /// `bytes` are a path, a zero, and the path that it has now.
    Renamed = 10,
    /// The same with a path that it has besides.
    Linked = 11,
    /// The file or folder `bytes` was removed.
    Removed = 12,
    /// `bytes` say what happened that cannot be followed.
    Unmodelled = 13,
}

/// One thing that happened. Paths are relative to the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What.
    pub kind: Kind,
    /// Which file.
    pub file: u64,
    /// An offset, a length, or which sync.
    pub number: u64,
    /// Content or paths.
    pub bytes: Vec<u8>,
}

/// Kind, file, number, and how many bytes follow.
const HEAD_BYTES: usize = 1 + 8 + 8 + 8;

impl Record {
    /// As it stands in the journal.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(HEAD_BYTES + self.bytes.len());
        text.push(self.kind as u8);
        for number in [self.file, self.number, self.bytes.len() as u64] {
            text.extend_from_slice(&number.to_le_bytes());
        }
        text.extend_from_slice(&self.bytes);
        text
    }

    /// The first record of a journal and what comes after it; `None` at its end, or where a kill has cut the last one off.
    pub fn decode(journal: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = journal.split_at_checked(HEAD_BYTES)?;
        let number = |at: usize| {
            let bytes = head[at..at + 8].try_into();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let length = usize::try_from(number(17)).ok()?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        let kind = Kind::from_byte(head[0])?;
        Some((Self { kind, file: number(1), number: number(9), bytes: bytes.to_vec() }, rest))
    }
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [Kind; 13] = [
            Kind::Bound,
            Kind::Made,
            Kind::Written,
            Kind::Resized,
            Kind::Zeroed,
            Kind::SyncBegun,
            Kind::FolderSyncBegun,
            Kind::SyncDone,
            Kind::FolderMade,
            Kind::Renamed,
            Kind::Linked,
            Kind::Removed,
            Kind::Unmodelled,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}
