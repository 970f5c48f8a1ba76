//! One broker a directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::backup::PARTIAL;
use super::disk::owners_file;
use super::error::StoreError;

/// Holds a directory until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

pub(super) const NAME: &str = "lock";

impl Lock {
    /// Takes a directory.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(NAME);
        let of = |error: io::Error| StoreError::io("lock", &path, &error);
        let mut file = owners_file().create(true).truncate(false).open(&path).map_err(of)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(dir, &mut file)),
            Err(TryLockError::Error(error)) => return Err(of(error)),
        }
        Ok(Self { file })
    }

    /// Says who has the directory. Only where there is a store: that there was one is seen by it, too.
    pub(super) fn sign(&mut self) {
        let process = std::process::id().to_string();
        // It helps people; the lock itself is the system's. A full disk does not keep anyone from starting. The file is not empty
        // in between.
        let _ = self
            .file
            .rewind()
            .and_then(|()| self.file.write_all(process.as_bytes()))
            .and_then(|()| self.file.set_len(process.len() as u64));
    }

    /// Name of a file in the directory that is put there only when there is a store, or a copy of one. Where the store itself
    /// is missing, such a file tells a store that was lost, or a copy that was cut off, from a first start that was.
    pub(super) fn left_in(&self, dir: &Path) -> Result<Option<&'static str>, StoreError> {
        let of = |error: io::Error| StoreError::io("look into", dir, &error);
        if self.file.metadata().map_err(of)?.len() > 0 {
            return Ok(Some(NAME));
        }
        for name in ["tail", "control", PARTIAL] {
            if dir.join(name).try_exists().map_err(of)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Takes the lock without making a file: `None` where nobody ever opened the directory.
    pub(super) fn take_existing(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(NAME);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("lock", &path, &error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Err(in_use(dir, &mut file)),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &path, &error)),
        }
    }
}

fn in_use(dir: &Path, file: &mut File) -> StoreError {
    let mut process = String::new();
    let read = file.read_to_string(&mut process);
    let holder = match read {
        Ok(_) if !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("process {process}")
        }
        _ => "another process".to_owned(),
    };
    StoreError::InUse { dir: dir.to_owned(), holder }
}

/// Makes a directory that only its owner can look into; one that is there stays as it is.
pub(super) fn make_dir(dir: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| StoreError::io("make", dir, &error))
}
