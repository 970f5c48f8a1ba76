//! Which files are watched, and the journal of what happens to them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsString, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard};

use crate::record::{Kind, Record};

/// What is known of the watched folder.
pub(crate) struct Watch {
    folder: PathBuf,
    journal: c_int,
    /// While there is such a file the disk is full.
    full: Option<CString>,
    /// Numbers of files by device and inode.
    files: HashMap<(u64, u64), u64>,
    /// Of files and syncs alike. Begins with the process, for several may write one journal.
    last_number: u64,
}

static WATCH: LazyLock<Option<Mutex<Watch>>> = LazyLock::new(|| Watch::open().map(Mutex::new));

/// The watch, for as long as a call and its record take; `None` where nothing is watched.
pub(crate) fn watch() -> Option<MutexGuard<'static, Watch>> {
    let watch = WATCH.as_ref()?;
    Some(watch.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

impl Watch {
    fn open() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("POWER_LOSS_FOLDER")?);
        let journal = CString::new(std::env::var_os("POWER_LOSS_JOURNAL")?.into_vec()).ok()?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero and lives until the call is over.
        let journal =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, journal.as_ptr(), flags, 0o600) };
        let journal = c_int::try_from(journal).ok().filter(|journal| *journal >= 0)?;
        let last_number = u64::from(std::process::id()) << 32;
        let full = std::env::var_os("POWER_LOSS_FULL").and_then(|path| CString::new(path.into_vec()).ok());
        Some(Self { folder, journal, full, files: HashMap::new(), last_number })
    }

    /// Appends a record. A journal that cannot be written ends the program: nothing would be proven.
    pub(crate) fn note(&mut self, kind: Kind, file: u64, number: u64, bytes: &[u8]) {
        let text = Record { kind, file, number, bytes: bytes.to_vec() }.encode();
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            // SAFETY: `rest` is memory of this function.
            let written = unsafe { libc::syscall(libc::SYS_write, self.journal, rest.as_ptr(), rest.len()) };
            match usize::try_from(written) {
                Ok(count @ 1..) => rest = &rest[count..],
                _ => std::process::abort(),
            }
        }
    }

    /// Whether what is written finds no room.
    pub(crate) fn is_full(&self) -> bool {
        let Some(full) = &self.full else { return false };
        // SAFETY: the path ends with a zero and lives until the call is over.
        unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, full.as_ptr(), libc::F_OK) == 0 }
    }

    /// The next number of a file or a sync.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// A path as it stands in records; `None` for one outside of the folder.
    pub(crate) fn path(&self, at: c_int, path: &CStr) -> Option<Vec<u8>> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        let full = if path.is_absolute() {
            path.to_owned()
        } else if at == libc::AT_FDCWD {
            std::env::current_dir().ok()?.join(path)
        } else {
            descriptor_path(at)?.join(path)
        };
        let mut plain = PathBuf::new();
        for component in full.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    plain.pop();
                }
                Component::RootDir | Component::Prefix(_) | Component::Normal(_) => plain.push(component),
            }
        }
        let inner = plain.strip_prefix(&self.folder).ok()?;
        Some(inner.as_os_str().as_bytes().to_vec())
    }

    /// The number of a file that was just opened below the folder. `None` for what is no regular file.
    pub(crate) fn opened(&mut self, descriptor: c_int, path: &[u8], made: bool) -> Option<u64> {
        let key = regular(descriptor)?;
        if made {
            let file = self.next_number();
            self.files.insert(key, file);
            self.note(Kind::Made, file, 0, path);
            return Some(file);
        }
        if let Some(file) = self.files.get(&key) {
            return Some(*file);
        }
        let file = self.next_number();
        self.files.insert(key, file);
        self.note(Kind::Bound, file, 0, path);
        Some(file)
    }

    /// The number of a watched file.
    pub(crate) fn file(&self, descriptor: c_int) -> Option<u64> {
        self.files.get(&regular(descriptor)?).copied()
    }

    /// The path of a watched folder.
    pub(crate) fn folder(&self, descriptor: c_int) -> Option<Vec<u8>> {
        let status = status(descriptor)?;
        if status.st_mode & libc::S_IFMT != libc::S_IFDIR {
            return None;
        }
        let path = CString::new(descriptor_path(descriptor)?.into_os_string().into_vec()).ok()?;
        self.path(libc::AT_FDCWD, &path)
    }
}

/// Size of an open file.
pub(crate) fn size(descriptor: c_int) -> u64 {
    status(descriptor).and_then(|status| u64::try_from(status.st_size).ok()).unwrap_or_default()
}

/// Device and inode of a regular file.
fn regular(descriptor: c_int) -> Option<(u64, u64)> {
    let status = status(descriptor)?;
    (status.st_mode & libc::S_IFMT == libc::S_IFREG).then_some((status.st_dev, status.st_ino))
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has room for what the call writes.
    let outcome = unsafe { libc::syscall(libc::SYS_fstat, descriptor, status.as_mut_ptr()) };
    // SAFETY: the call has succeeded, so it has written all of it.
    (outcome == 0).then(|| unsafe { status.assume_init() })
}

fn descriptor_path(descriptor: c_int) -> Option<PathBuf> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some(PathBuf::from(OsString::from_vec(link.into_os_string().into_vec())))
}
