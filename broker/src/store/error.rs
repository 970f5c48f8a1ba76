//! Errors of a data directory, and the remedies for them.

use std::io;
use std::path::{Path, PathBuf};

/// Why something is not on disk, or cannot be read from there.
///
/// A clone for each of the callers whose batches shared a write.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// Another process has the directory.
    #[error("{} is in use by {holder}: one broker at a time", dir.display())]
    InUse { dir: PathBuf, holder: String },
    /// The disk, or what this user may take of it, is full. What was asked for may be asked again when there is room.
    #[error("there is no room for {}: {why}", path.display())]
    Full { path: PathBuf, why: String },
    /// The system refused. What was asked for may be asked again.
    #[error("cannot {what} {}: {why}", path.display())]
    Io { what: &'static str, path: PathBuf, why: String },
    /// The data are not those that were written.
    #[error(
        "{} is damaged: {what}; `nearcast verify` says more, and a backup may be put in its place",
        path.display()
    )]
    Damaged { path: PathBuf, what: String },
    /// Something was here, and is not.
    #[error(
        "there is no store.redb in {}, and its {left:?} is of a broker that had one, or of a copy that was not \
         finished: put the file or a backup of it back, or begin anew in another directory",
        dir.display()
    )]
    Gone { dir: PathBuf, left: &'static str },
    /// Written by a version that keeps it otherwise.
    #[error(
        "{} has format {found}, this version reads format {known} only: use the version that wrote it, or begin anew \
         in another store.data",
        path.display()
    )]
    OtherFormat { path: PathBuf, found: String, known: u32 },
    /// Coordinates there mean something else.
    #[error(
        "{} was made with server.world = \"{found}\", not \"{wanted}\": coordinates would mean something else. Set it \
         as it was, or take another store.data",
        path.display()
    )]
    OtherWorld { path: PathBuf, found: String, wanted: String },
    /// A file is not replaced.
    #[error("{} is there already and is not overwritten: name a new directory", path.display())]
    Exists { path: PathBuf },
    /// A copy was begun and is not there.
    #[error("no copy was made in {}: {why}", to.display())]
    NoCopy { to: PathBuf, why: String },
    /// The broker that has the directory says no.
    #[error("the broker that has it says: {why}")]
    Refused { why: String },
    /// The directory is not that of a member of a cluster.
    #[error(
        "{} has the data of a broker that is in no cluster, and a member of a cluster makes its data anew: name a new \
         directory as store.data",
        dir.display()
    )]
    NotOfCluster { dir: PathBuf },
    /// The ledger of the cluster does not have it, as far as is known. What was asked for may be asked again.
    #[error("the ledger of the cluster: {why}")]
    Ledger { why: String },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(super) fn io(what: &'static str, path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let (path, why) = (path.to_owned(), error.to_string());
        let is_full = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        if is_full { Self::Full { path, why } } else { Self::Io { what, path, why } }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }

    /// Why a copy was not made.
    pub(super) fn no_copy(self, to: &Path) -> Self {
        Self::NoCopy { to: to.to_owned(), why: self.to_string() }
    }

    /// Translates an error of the library about a file.
    pub(super) fn of(what: &'static str, path: &Path, error: impl Into<redb::Error>) -> Self {
        let error = error.into();
        if let redb::Error::Io(error) = &error {
            // What it expects to be in the file is behind its end, or is not a database at all.
            let is_damaged =
                matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
            return if is_damaged {
                Self::damaged(path, error.to_string())
            } else {
                Self::io(what, path, error)
            };
        }
        if let redb::Error::UpgradeRequired(version) = error {
            return Self::OtherFormat {
                path: path.to_owned(),
                found: format!("redb {version}"),
                known: super::format::FORMAT,
            };
        }
        let is_outside = matches!(error, redb::Error::PreviousIo | redb::Error::DatabaseClosed);
        let why = error.to_string();
        if is_outside { Self::Io { what, path: path.to_owned(), why } } else { Self::damaged(path, why) }
    }
}
