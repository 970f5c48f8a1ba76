//! The C library's calls that change files, by their C names.
//!
//! `open` and its kin take their `mode` as a variable argument. Declared as an ordinary one it comes in the same register on
//! all platforms that the tests run on, and holds nothing of use where the caller gave none, when the kernel does not look
//! at it either.

#![expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "they are C's functions and called from there; nobody in Rust does"
)]

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use crate::record::Kind;
use crate::watch::{Watch, size, watch};

/// A call that the kernel carries out with the arguments as they are.
macro_rules! through {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the caller of the C function that this stands for has vouched for its arguments.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

fn outcome(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

fn text<'a>(path: *const c_char) -> &'a CStr {
    if path.is_null() {
        return c"";
    }
    // SAFETY: C functions that take paths demand that they end with a zero and live until the call is over.
    unsafe { CStr::from_ptr(path) }
}

fn content<'a>(buffer: *const c_void, count: usize) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the kernel has just read as many bytes from there.
    unsafe { std::slice::from_raw_parts(buffer.cast(), count) }
}

fn fail(error: c_int) -> c_int {
    // SAFETY: the place of this thread's `errno` is always there.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// An offset or a length as the kernel has accepted it, which is never negative.
fn offset(number: off_t) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Flags of an open file; 0 for none.
fn flags(descriptor: c_int) -> c_int {
    outcome(through!(SYS_fcntl, descriptor, libc::F_GETFL)).max(0)
}

// Opening.

fn opening(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let open = || outcome(through!(SYS_openat, at, path, flags, c_uint::from(mode)));
    let watched = watch().and_then(|watch| Some((watch.path(at, text(path))?, watch)));
    let Some((inner, mut watch)) = watched else { return open() };
    let was_there = through!(SYS_faccessat, at, path, libc::F_OK) == 0;
    let descriptor = open();
    if descriptor < 0 {
        return descriptor;
    }
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let made = flags & libc::O_CREAT != 0 && !was_there;
    let Some(file) = watch.opened(descriptor, &inner, made) else { return descriptor };
    if writes && flags & libc::O_TRUNC != 0 && !made {
        watch.note(Kind::Resized, file, 0, &[]);
    }
    if writes && flags & (libc::O_SYNC | libc::O_DSYNC) != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        watch.note(Kind::Unmodelled, file, 0, b"a file opened with O_SYNC, O_DSYNC or O_TMPFILE");
    }
    descriptor
}

macro_rules! open_calls {
    ($($name:ident $at_name:ident $creat_name:ident)*) => { $(
        /// See open(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            opening(libc::AT_FDCWD, path, flags, mode)
        }

        /// See open(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $at_name(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            opening(at, path, flags, mode)
        }

        /// See open(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $creat_name(path: *const c_char, mode: mode_t) -> c_int {
            opening(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode)
        }
    )* };
}

open_calls! { open openat creat  open64 openat64 creat64 }

// Writing.

/// Carries a write out, and notes it where it went to a watched file: at `at`, or where the file stands.
fn writing(
    descriptor: c_int,
    at: Option<off_t>,
    write: impl Fn() -> c_long,
    content: impl Fn(usize) -> Vec<u8>,
) -> ssize_t {
    let watched = watch().and_then(|watch| Some((watch.file(descriptor)?, watch)));
    let Some((file, mut watch)) = watched else { return as_size(write()) };
    if watch.is_full() {
        return as_size(c_long::from(fail(libc::ENOSPC)));
    }
    let at = if flags(descriptor) & libc::O_APPEND != 0 {
        size(descriptor)
    } else {
        at.map_or_else(|| offset(through!(SYS_lseek, descriptor, 0, libc::SEEK_CUR)), offset)
    };
    let written = write();
    if let Ok(count @ 1..) = usize::try_from(written) {
        watch.note(Kind::Written, file, at, &content(count));
    }
    as_size(written)
}

fn as_size(result: c_long) -> ssize_t {
    ssize_t::try_from(result).unwrap_or(-1)
}

/// The first bytes of several buffers.
fn gathered(buffers: *const iovec, buffers_count: c_int, count: usize) -> Vec<u8> {
    let buffers_count = usize::try_from(buffers_count).unwrap_or_default();
    // SAFETY: the kernel has just read the same array.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, buffers_count) };
    let mut bytes = Vec::with_capacity(count);
    for buffer in buffers {
        let part = buffer.iov_len.min(count - bytes.len());
        bytes.extend_from_slice(content(buffer.iov_base, part));
    }
    bytes
}

/// See write(2).
#[unsafe(no_mangle)]
pub extern "C" fn write(descriptor: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    let write = || through!(SYS_write, descriptor, buffer, count);
    writing(descriptor, None, write, |count| content(buffer, count).to_vec())
}

/// See writev(2).
#[unsafe(no_mangle)]
pub extern "C" fn writev(descriptor: c_int, buffers: *const iovec, buffers_count: c_int) -> ssize_t {
    let write = || through!(SYS_writev, descriptor, buffers, buffers_count);
    writing(descriptor, None, write, |count| gathered(buffers, buffers_count, count))
}

macro_rules! write_at_calls {
    ($($name:ident $vector_name:ident)*) => { $(
        /// See pwrite(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(descriptor: c_int, buffer: *const c_void, count: size_t, at: off_t) -> ssize_t {
            let write = || through!(SYS_pwrite64, descriptor, buffer, count, at);
            writing(descriptor, Some(at), write, |count| content(buffer, count).to_vec())
        }

        /// See writev(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $vector_name(
            descriptor: c_int,
            buffers: *const iovec,
            buffers_count: c_int,
            at: off_t,
        ) -> ssize_t {
            // The offset comes in two halves, of which a 64-bit kernel reads the first.
            let write = || through!(SYS_pwritev, descriptor, buffers, buffers_count, at, 0);
            writing(descriptor, Some(at), write, |count| gathered(buffers, buffers_count, count))
        }
    )* };
}

write_at_calls! { pwrite pwritev  pwrite64 pwritev64 }

// Lengths.

macro_rules! resize_calls {
    ($($name:ident $path_name:ident)*) => { $(
        /// See truncate(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(descriptor: c_int, length: off_t) -> c_int {
            let watched = watch().and_then(|watch| Some((watch.file(descriptor)?, watch)));
            if watched.as_ref().is_some_and(|(_, watch)| watch.is_full() && offset(length) > size(descriptor)) {
                return fail(libc::ENOSPC);
            }
            let resized = outcome(through!(SYS_ftruncate, descriptor, length));
            if let Some((file, mut watch)) = watched
                && resized == 0
            {
                watch.note(Kind::Resized, file, offset(length), &[]);
            }
            resized
        }

        /// See truncate(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $path_name(path: *const c_char, length: off_t) -> c_int {
            unmodelled(libc::AT_FDCWD, path, b"truncate by path");
            outcome(through!(SYS_truncate, path, length))
        }
    )* };
}

resize_calls! { ftruncate truncate  ftruncate64 truncate64 }

fn allocating(descriptor: c_int, mode: c_int, at: off_t, length: off_t) -> c_int {
    let watched = watch().and_then(|watch| Some((watch.file(descriptor)?, watch)));
    let before = size(descriptor);
    let allocated = outcome(through!(SYS_fallocate, descriptor, mode, at, length));
    let Some((file, mut watch)) = watched.filter(|_| allocated == 0) else { return allocated };
    let (from, end) = (offset(at), offset(at) + offset(length));
    if mode & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0 {
        watch.note(Kind::Unmodelled, file, 0, b"a range collapsed or inserted");
    }
    if mode & libc::FALLOC_FL_KEEP_SIZE == 0 && end > before {
        watch.note(Kind::Resized, file, end, &[]);
    }
    if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 && from < before {
        let count = end.min(before) - from;
        watch.note(Kind::Zeroed, file, from, &count.to_le_bytes());
    }
    allocated
}

macro_rules! allocate_calls {
    ($($name:ident $posix_name:ident)*) => { $(
        /// See fallocate(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(descriptor: c_int, mode: c_int, at: off_t, length: off_t) -> c_int {
            allocating(descriptor, mode, at, length)
        }

        /// See posix_fallocate(3), which returns its error.
        #[unsafe(no_mangle)]
        pub extern "C" fn $posix_name(descriptor: c_int, at: off_t, length: off_t) -> c_int {
            if allocating(descriptor, 0, at, length) == 0 {
                return 0;
            }
            // SAFETY: the place of this thread's `errno` is always there.
            unsafe { *libc::__errno_location() }
        }
    )* };
}

allocate_calls! { fallocate posix_fallocate  fallocate64 posix_fallocate64 }

// Syncing.

/// Carries a sync out. The lock is not held meanwhile: what others write then may or may not be taken with it.
fn syncing(descriptor: c_int, sync: impl Fn() -> c_int) -> c_int {
    let begun = watch().and_then(|mut watch| {
        let number = watch.next_number();
        if let Some(file) = watch.file(descriptor) {
            watch.note(Kind::SyncBegun, file, number, &[]);
        } else {
            let folder = watch.folder(descriptor)?;
            watch.note(Kind::FolderSyncBegun, 0, number, &folder);
        }
        Some(number)
    });
    let synced = sync();
    if let Some(number) = begun.filter(|_| synced == 0)
        && let Some(mut watch) = watch()
    {
        watch.note(Kind::SyncDone, 0, number, &[]);
    }
    synced
}

/// See fsync(2).
#[unsafe(no_mangle)]
pub extern "C" fn fsync(descriptor: c_int) -> c_int {
    syncing(descriptor, || outcome(through!(SYS_fsync, descriptor)))
}

/// See fsync(2).
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    syncing(descriptor, || outcome(through!(SYS_fdatasync, descriptor)))
}

// Names.

fn note_path(watch: &mut Watch, kind: Kind, at: c_int, path: *const c_char) {
    if let Some(inner) = watch.path(at, text(path)) {
        watch.note(kind, 0, 0, &inner);
    }
}

/// Notes a name that became another, or one more. Across the folder's border nothing can be said.
fn note_paths(watch: &mut Watch, kind: Kind, from: (c_int, *const c_char), to: (c_int, *const c_char)) {
    match (watch.path(from.0, text(from.1)), watch.path(to.0, text(to.1))) {
        (Some(from), Some(to)) => watch.note(kind, 0, 0, &[from, vec![0], to].concat()),
        (None, None) => {}
        (Some(path), None) | (None, Some(path)) => {
            watch.note(Kind::Unmodelled, 0, 0, &[b"a name from or to elsewhere: ", path.as_slice()].concat());
        }
    }
}

/// Carries out what makes or removes a name.
fn naming(kind: Kind, at: c_int, path: *const c_char, call: impl Fn() -> c_long) -> c_int {
    let watch = watch();
    let done = outcome(call());
    if let Some(mut watch) = watch
        && done == 0
    {
        note_path(&mut watch, kind, at, path);
    }
    done
}

fn unmodelled(at: c_int, path: *const c_char, what: &[u8]) {
    if let Some(mut watch) = watch()
        && watch.path(at, text(path)).is_some()
    {
        watch.note(Kind::Unmodelled, 0, 0, what);
    }
}

/// See mkdir(2).
#[unsafe(no_mangle)]
pub extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    mkdirat(libc::AT_FDCWD, path, mode)
}

/// See mkdir(2).
#[unsafe(no_mangle)]
pub extern "C" fn mkdirat(at: c_int, path: *const c_char, mode: mode_t) -> c_int {
    naming(Kind::FolderMade, at, path, || through!(SYS_mkdirat, at, path, c_uint::from(mode)))
}

/// See unlink(2).
#[unsafe(no_mangle)]
pub extern "C" fn unlink(path: *const c_char) -> c_int {
    unlinkat(libc::AT_FDCWD, path, 0)
}

/// See rmdir(2).
#[unsafe(no_mangle)]
pub extern "C" fn rmdir(path: *const c_char) -> c_int {
    unlinkat(libc::AT_FDCWD, path, libc::AT_REMOVEDIR)
}

/// See unlink(2).
#[unsafe(no_mangle)]
pub extern "C" fn unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int {
    naming(Kind::Removed, at, path, || through!(SYS_unlinkat, at, path, flags))
}

/// See rename(2).
#[unsafe(no_mangle)]
pub extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    renameat2(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0)
}

/// See rename(2).
#[unsafe(no_mangle)]
pub extern "C" fn renameat(from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char) -> c_int {
    renameat2(from_at, from, to_at, to, 0)
}

/// See rename(2).
#[unsafe(no_mangle)]
pub extern "C" fn renameat2(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    if flags & libc::RENAME_EXCHANGE != 0 {
        unmodelled(from_at, from, b"names exchanged");
    }
    let watch = watch();
    let renamed = outcome(through!(SYS_renameat2, from_at, from, to_at, to, flags));
    if let Some(mut watch) = watch
        && renamed == 0
    {
        note_paths(&mut watch, Kind::Renamed, (from_at, from), (to_at, to));
    }
    renamed
}

/// See link(2).
#[unsafe(no_mangle)]
pub extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    linkat(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0)
}

/// See link(2).
#[unsafe(no_mangle)]
pub extern "C" fn linkat(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let watch = watch();
    let linked = outcome(through!(SYS_linkat, from_at, from, to_at, to, flags));
    if let Some(mut watch) = watch
        && linked == 0
    {
        note_paths(&mut watch, Kind::Linked, (from_at, from), (to_at, to));
    }
    linked
}

/// See symlink(2).
#[unsafe(no_mangle)]
pub extern "C" fn symlink(target: *const c_char, path: *const c_char) -> c_int {
    symlinkat(target, libc::AT_FDCWD, path)
}

/// See symlink(2).
#[unsafe(no_mangle)]
pub extern "C" fn symlinkat(target: *const c_char, at: c_int, path: *const c_char) -> c_int {
    unmodelled(at, path, b"a symbolic link");
    outcome(through!(SYS_symlinkat, target, at, path))
}

// What goes round `write`.

fn is_watched(descriptor: c_int) -> bool {
    watch().is_some_and(|watch| watch.file(descriptor).is_some())
}

macro_rules! mapping_calls {
    ($($name:ident)*) => { $(
        /// See mmap(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            address: *mut c_void,
            length: size_t,
            protection: c_int,
            flags: c_int,
            descriptor: c_int,
            at: off_t,
        ) -> *mut c_void {
            // Only what a file can see of: the allocator maps memory before there is any to watch with.
            let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
            if descriptor >= 0 && shared && protection & libc::PROT_WRITE != 0 && is_watched(descriptor)
                && let Some(mut watch) = watch()
            {
                watch.note(Kind::Unmodelled, 0, 0, b"a shared writable mapping");
            }
            std::ptr::with_exposed_provenance_mut(
                through!(SYS_mmap, address, length, protection, flags, descriptor, at).cast_unsigned() as usize,
            )
        }
    )* };
}

mapping_calls! { mmap mmap64 }

/// See copy_file_range(2). Refused for watched files, so that callers write as they would on an old kernel.
#[unsafe(no_mangle)]
pub extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    if is_watched(to) {
        return as_size(c_long::from(fail(libc::ENOSYS)));
    }
    as_size(through!(SYS_copy_file_range, from, from_at, to, to_at, count, flags))
}

macro_rules! send_calls {
    ($($name:ident)*) => { $(
        /// See sendfile(2). Refused for watched files, as above.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(to: c_int, from: c_int, at: *mut off_t, count: size_t) -> ssize_t {
            if is_watched(to) {
                return as_size(c_long::from(fail(libc::EINVAL)));
            }
            as_size(through!(SYS_sendfile, to, from, at, count))
        }
    )* };
}

send_calls! { sendfile sendfile64 }
