//! Where the bytes are.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;
use redb::backends::FileBackend;

/// A medium on which a store is opened, again after each failure. The real one is a file; tests have disks that break.
pub(super) trait Medium: Debug + Send + Sync {
    /// Opens the file that is there, and nothing else.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;
    /// The path by which messages name the medium.
    fn path(&self) -> &Path;
    /// Whether there is room again, found out before a file is read from end to end for nothing.
    fn has_room(&self) -> io::Result<()>;
    /// Whether what was opened is still what is found under its name: what is written elsewhere is read by nobody again.
    fn is_in_place(&self) -> io::Result<()> {
        Ok(())
    }
    /// Opens an empty one beside the one there is. What is left of an earlier one goes.
    fn begin_anew(&self) -> io::Result<Box<dyn StorageBackend>>;
    /// Puts that one, in which all is synced, in the place of the one there is, for good. Where this fails either of them may be
    /// there.
    fn put_in_place(&self) -> io::Result<()>;
    /// Removes that one, if there is one.
    fn give_up(&self);
    /// How large the disk is, and how much of it is free; `None` where that is not known.
    fn space(&self) -> Option<Space> {
        None
    }
    /// Bytes of the disk that the file takes.
    fn used_bytes(&self) -> u64 {
        0
    }
    /// Whether room is set aside beside the file.
    fn has_ballast(&self) -> bool {
        true
    }
    /// Sets so much room aside.
    ///
    /// # Errors
    /// There is not so much, or the system refuses.
    fn set_ballast(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
    /// Gives that room up.
    fn drop_ballast(&self) {}
}

/// The bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) total: u64,
    pub(super) free: u64,
}

/// A file that only its owner can read.
#[derive(Debug)]
pub(super) struct FileMedium {
    path: PathBuf,
    /// Identity of the file that was opened first, or put in its place by us.
    identity: Mutex<Option<Identity>>,
}

/// Identity of a file, whatever its name: device and inode.
pub(super) type Identity = (u64, u64);

/// A backend that tells how much was read, for a start reads all of it, and what went wrong: the library may tell no more than
/// that something did before.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) inner: Box<dyn StorageBackend>,
    pub(super) read: Arc<AtomicU64>,
    pub(super) fault: Arc<Fault>,
}

/// The first failure since it was taken last. A std mutex: held to copy a text.
#[derive(Debug, Default)]
pub(super) struct Fault(Mutex<Option<io::Error>>);

impl Fault {
    fn note(&self, error: &io::Error) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| io::Error::new(error.kind(), error.to_string()));
    }

    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A file that is only read: what is written over it stays in memory.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    /// A std mutex: the library calls from one thread at a time where it writes.
    state: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// Length up to which the bytes in the file still count.
    file_len: u64,
    len: u64,
    blocks: HashMap<u64, Box<[u8]>>,
}

const BLOCK_BYTES: usize = 4_096;
/// Less room than this is none.
const ROOM_BYTES: usize = 1 << 20;

/// Options for a file of the store.
pub(super) fn owners_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the entries of a directory survive.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Gives a file `bytes` bytes of the disk.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes)?)
}

/// Gives a file `bytes` bytes of the disk. They are random, for zeros may take no room.
#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    let mut random = io::Read::take(io::BufReader::new(RandomBytes), bytes);
    io::copy(&mut random, &mut file).map(drop)
}

#[cfg(not(target_os = "linux"))]
struct RandomBytes;

#[cfg(not(target_os = "linux"))]
impl io::Read for RandomBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        rand::fill(out);
        Ok(out.len())
    }
}

impl FileMedium {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, identity: Mutex::new(None) }
    }

    /// Makes the file, which must not be there.
    pub(super) fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.take(owners_file().create_new(true).open(&self.path)?)
    }

    fn take(&self, file: File) -> io::Result<Box<dyn StorageBackend>> {
        // Also where the lock beside it was deleted by somebody.
        file.try_lock()?;
        self.path.parent().map_or(Ok(()), sync_dir)?;
        let backend = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Box::new(backend))
    }

    fn identity(&self) -> MutexGuard<'_, Option<Identity>> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a file is until it gets the name.
    fn new_path(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    fn ballast_path(&self) -> PathBuf {
        self.path.with_file_name("ballast")
    }

    fn is_the_same(&self, found: &Metadata) -> io::Result<()> {
        let found = identity(found);
        if *self.identity().get_or_insert(found) == found {
            return Ok(());
        }
        Err(io::Error::other(
            "another file was put in its place while the broker runs; put it back, or start the broker anew",
        ))
    }
}

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Where a file that is open cannot be replaced it is always the same.
#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> Identity {
    (0, 0)
}

impl Medium for FileMedium {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let file = owners_file().open(&self.path)?;
        let metadata = file.metadata()?;
        if metadata.len() == 0 {
            // A file gets its name when it is whole, and the library would begin a new one in it.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
        }
        self.is_the_same(&metadata)?;
        self.take(file)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn has_room(&self) -> io::Result<()> {
        let probe = self.path.with_extension("room");
        let mut file = owners_file().create(true).truncate(true).open(&probe)?;
        let tried = file.write_all(&vec![0; ROOM_BYTES]).and_then(|()| file.sync_data());
        fs::remove_file(&probe)?;
        tried
    }

    fn is_in_place(&self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(found) => self.is_the_same(&found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::new(
                error.kind(),
                "it was taken away while the broker runs; put it back, or start the broker anew",
            )),
            Err(error) => Err(error),
        }
    }

    fn begin_anew(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.give_up();
        Self::new(self.new_path()).create()
    }

    fn put_in_place(&self) -> io::Result<()> {
        self.is_in_place()?;
        fs::rename(self.new_path(), &self.path)?;
        *self.identity() = Some(identity(&fs::metadata(&self.path)?));
        self.path.parent().map_or(Ok(()), sync_dir)
    }

    fn give_up(&self) {
        // What stays is removed before the next one is begun, or when the directory is opened again.
        let _ = fs::remove_file(self.new_path());
    }

    #[cfg(unix)]
    fn space(&self) -> Option<Space> {
        let found = rustix::fs::statvfs(self.path.parent()?).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
    }

    #[cfg(unix)]
    fn used_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(&self.path).map_or(0, |file| file.blocks().saturating_mul(512))
    }

    fn has_ballast(&self) -> bool {
        self.ballast_path().exists()
    }

    fn set_ballast(&self, bytes: u64) -> io::Result<()> {
        // Under its name there is a whole one or none.
        let (path, new) = (self.ballast_path(), self.path.with_file_name("ballast.new"));
        let made = owners_file().create(true).truncate(true).open(&new).and_then(|file| {
            allocate(&file, bytes)?;
            file.sync_all()
        });
        made.and_then(|()| fs::rename(&new, &path)).inspect_err(|_| drop(fs::remove_file(&new)))
    }

    fn drop_ballast(&self) {
        // What stays is room that is missing, and given up the next time.
        let _ = fs::remove_file(self.ballast_path());
    }
}

impl StorageBackend for Counted {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len).inspect_err(|error| self.fault.note(error))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data().inspect_err(|error| self.fault.note(error))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data).inspect_err(|error| self.fault.note(error))
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}

impl Overlay {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, state: Mutex::new(Written { file_len: len, len, blocks: HashMap::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, Written> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a block as they are in the file; zeros behind its end.
    fn block(&self, state: &Written, number: u64) -> io::Result<Box<[u8]>> {
        let mut block = vec![0; BLOCK_BYTES].into_boxed_slice();
        let start = number * BLOCK_BYTES as u64;
        let left = usize::try_from(state.file_len.saturating_sub(start)).unwrap_or(usize::MAX);
        let there = left.min(BLOCK_BYTES);
        read_at(&self.file, start, &mut block[..there])?;
        Ok(block)
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(out)
}

/// The block of a byte, and which of its bytes it is.
fn place(at: u64) -> (u64, usize) {
    let block_bytes = BLOCK_BYTES as u64;
    (at / block_bytes, usize::try_from(at % block_bytes).expect("a block is small"))
}

/// Block, first byte in it, how many, and where they are among all.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let (number, inside) = place(at);
        let count = (BLOCK_BYTES - inside).min(len - done);
        (count > 0).then(|| {
            let piece = (number, inside, done..done + count);
            done += count;
            piece
        })
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, inside, piece) in pieces(offset, out.len()) {
            let out = &mut out[piece];
            match state.blocks.get(&number) {
                Some(block) => out.copy_from_slice(&block[inside..inside + out.len()]),
                None => out.copy_from_slice(&self.block(&state, number)?[inside..inside + out.len()]),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        // What grows again is zeros.
        if len < state.len {
            let (number, inside) = place(len);
            if inside > 0 {
                let written = state.blocks.remove(&number);
                let mut block = written.map_or_else(|| self.block(&state, number), Ok)?;
                block[inside..].fill(0);
                state.blocks.insert(number, block);
            }
            state.blocks.retain(|number, _| number * (BLOCK_BYTES as u64) < len);
            state.file_len = state.file_len.min(len);
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for (number, inside, piece) in pieces(offset, data.len()) {
            let data = &data[piece];
            if !state.blocks.contains_key(&number) {
                let block = self.block(&state, number)?;
                state.blocks.insert(number, block);
            }
            if let Some(block) = state.blocks.get_mut(&number) {
                block[inside..inside + data.len()].copy_from_slice(data);
            }
        }
        state.len = state.len.max(offset + data.len() as u64);
        Ok(())
    }
}
