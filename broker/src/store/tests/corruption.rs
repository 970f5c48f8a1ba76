//! Every bit of a small data directory, flipped in turn: the start tells it, or finds all that was there and goes on with it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use redb::{ReadableTableMetadata as _, StorageBackend};
use tempfile::TempDir;

use super::disk::Disk;
use super::{Memory, Model, runs};
use crate::config::WorldName;
use crate::store::disk::{Medium, Overlay};
use crate::store::format::LOG;
use crate::store::lock::Lock;
use crate::store::writer::Pace;
use crate::store::{Batch, Recovered, Store, StoreError, StoredPosition, check, store_file, tail_file};

/// A store's file with bits that are not as they were written. What is written over it stays in memory; a clone is the same.
#[derive(Clone, Debug)]
struct Image {
    path: PathBuf,
    overlay: Arc<Overlay>,
    /// Bytes that were read, where somebody asks for them.
    read: Option<Arc<Mutex<HashSet<u64>>>>,
}

/// Counts of flipped bits by their consequences.
#[derive(Debug, Default)]
struct Verdicts {
    told: u64,
    harmless: u64,
    wrong: Vec<String>,
}

impl Image {
    fn of(path: &Path) -> Self {
        let overlay = Overlay::open(path).expect("a file");
        Self { path: path.to_owned(), overlay: Arc::new(overlay), read: None }
    }

    fn flip(&self, bit: u64) {
        let mut byte = [0];
        self.overlay.read(bit / 8, &mut byte).expect("a byte of the file");
        self.overlay.write(bit / 8, &[byte[0] ^ (1 << (bit % 8))]).expect("it is in memory");
    }

    fn open(&self) -> Result<(Store, Recovered), StoreError> {
        self.open_with(None)
    }

    fn open_with(&self, tail: Option<&Path>) -> Result<(Store, Recovered), StoreError> {
        let dir = tail.map(|dir| (dir, Some(NEVER)));
        Store::open_medium(Box::new(self.clone()), Some(WorldName::Geodetic), dir, Pace::default(), &|_| {})
    }
}

impl Medium for Image {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(self.clone()))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn has_room(&self) -> io::Result<()> {
        Ok(())
    }

    fn begin_anew(&self) -> io::Result<Box<dyn StorageBackend>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn put_in_place(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn give_up(&self) {}
}

impl StorageBackend for Image {
    fn len(&self) -> io::Result<u64> {
        self.overlay.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Some(read) = &self.read {
            let bytes = offset..offset + out.len() as u64;
            read.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        }
        self.overlay.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.overlay.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.overlay.write(offset, data)
    }
}

impl AddAssign for Verdicts {
    fn add_assign(&mut self, other: Self) {
        self.told += other.told;
        self.harmless += other.harmless;
        self.wrong.extend(other.wrong);
    }
}

/// Between two syncs: none comes by itself.
const NEVER: Duration = Duration::from_secs(3_600);
/// Bits of the bytes that a start reads that are flipped in a small run; in a full one it is all of them.
const READ_BITS: u64 = 400;
/// The first of them, which say what the rest is, in each run.
const HEAD_BITS: usize = 128;
/// Bits that are flipped of the bytes that nobody reads, in a small run and in a full one.
const OTHER_BITS: u64 = 60;
const OTHER_BITS_SOAK: u64 = 100_000;

/// The one bit that no checksum covers: it says which of the library's two slots has the last commit. If it flips after a kill, the
/// library may take the last commit back in silence.
const LAST_SLOT_BIT: u64 = 9 * 8;

/// Folds early, and all at once, so that the file stays small.
const IN_TABLES: Pace = Pace {
    bytes: 16 << 20,
    rows: 8,
    slice: Duration::from_secs(1),
    idle_slice: Duration::from_secs(1),
    wipe_after: Duration::ZERO,
};

#[test]
fn a_flipped_bit_is_told_or_harmless_after_a_clean_end() {
    flip_store("clean end, all in the log", Pace::default(), true);
}

#[test]
fn a_flipped_bit_is_told_or_harmless_after_a_clean_end_with_tables() {
    flip_store("clean end, most in tables", IN_TABLES, true);
}

#[test]
fn a_flipped_bit_is_told_or_harmless_after_a_kill() {
    flip_store("kill, all in the log", Pace::default(), false);
}

#[test]
fn a_flipped_bit_is_told_or_harmless_after_a_kill_with_tables() {
    flip_store("kill, most in tables", IN_TABLES, false);
}

/// A small store's file, and what is in it.
fn furnish(pace: Pace, ends: bool) -> (Vec<u8>, Model) {
    let disk = Disk::default();
    let mut memory = Memory { wipes: false, ..Memory::new(3) };
    let opened = Store::open_medium(Box::new(disk.clone()), Some(WorldName::Geodetic), None, pace, &|_| {});
    let (store, _) = opened.expect("a new store");
    for _ in 0..12 {
        store.commit(&memory.batch(&store)).expect("it is committed");
        memory.committed();
    }
    // What has begun to go into the tables gets there while nobody commits.
    let rows_count = || {
        let snapshot = store.inner.shared.snapshot().expect("it is open");
        snapshot.open_table(LOG).expect("there is a log").len().expect("it can be read")
    };
    let patience = Instant::now();
    while rows_count() > pace.rows {
        assert!(patience.elapsed() < Duration::from_secs(60), "nothing goes into the tables");
        thread::sleep(Duration::from_millis(1));
    }
    let bytes_of_killed = disk.bytes();
    drop(store);
    (if ends { disk.bytes() } else { bytes_of_killed }, memory.model)
}

fn flip_store(what: &str, pace: Pace, ends: bool) {
    let started = Instant::now();
    let folder = TempDir::new().expect("a folder");
    let path = store_file(folder.path());
    let (bytes, model) = furnish(pace, ends);
    fs::write(&path, &bytes).expect("room");

    // What is never read may be anything: a start and what follows do the same with it.
    let whole = Image { read: Some(Arc::default()), ..Image::of(&path) };
    let opened = whole.open().expect("nothing is damaged yet");
    go_on(opened, &whole, &model).expect("nothing is damaged yet");
    let read = whole.read.expect("asked for");
    let read = read.lock().expect("nobody panicked");
    let (mut bits, mut others) = (Vec::new(), Vec::new());
    for bit in (0..bytes.len() as u64 * 8).filter(|bit| *bit != LAST_SLOT_BIT) {
        let bits = if read.contains(&(bit / 8)) { &mut bits } else { &mut others };
        bits.push(bit);
    }
    let (read_count, others_count) = (bits.len(), others.len());
    let mut random = StdRng::seed_from_u64(7);
    let few = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    bits[HEAD_BITS..].shuffle(&mut random);
    bits.truncate(few(runs(READ_BITS, u64::MAX)));
    others.shuffle(&mut random);
    others.truncate(few(runs(OTHER_BITS, OTHER_BITS_SOAK)));

    let (flipped, of_others) = (bits.len(), others.len());
    let verdicts = side_by_side(&bits, || (), |(), bit| verdict(&path, bit, &model));
    let of_others_verdicts = side_by_side(&others, || (), |(), bit| verdict(&path, bit, &model));
    println!(
        "{what}: {flipped} of {read_count} bits that are read: {} told, {} harmless; {of_others} of {others_count} \
         others: {} told, {} harmless; {:?}",
        verdicts.told,
        verdicts.harmless,
        of_others_verdicts.told,
        of_others_verdicts.harmless,
        started.elapsed()
    );
    verdicts.demand();
    of_others_verdicts.demand();
    assert!(verdicts.told > 0, "nothing that was flipped mattered");
    assert_eq!(of_others_verdicts.told, 0, "somebody reads what nobody was seen to read");
}

/// Looks at each bit, on all cores: two threads each, for every store has a writer that it waits for. `place` makes what one
/// thread needs for itself.
fn side_by_side<P>(
    bits: &[u64],
    place: impl Fn() -> P + Sync,
    verdict: impl Fn(&P, u64) -> Result<bool, String> + Sync,
) -> Verdicts {
    let threads_count = 2 * thread::available_parallelism().map_or(1, usize::from);
    let look = |first: usize| {
        let place = place();
        let mut verdicts = Verdicts::default();
        for bit in bits.iter().skip(first).step_by(threads_count) {
            match verdict(&place, *bit) {
                Ok(true) => verdicts.told += 1,
                Ok(false) => verdicts.harmless += 1,
                Err(what) => verdicts.wrong.push(format!("bit {} of byte {}: {what}", bit % 8, bit / 8)),
            }
        }
        verdicts
    };
    thread::scope(|scope| {
        let threads = (0..threads_count).map(|first| scope.spawn(move || look(first))).collect::<Vec<_>>();
        let mut all = Verdicts::default();
        threads.into_iter().for_each(|thread| all += thread.join().expect("nothing panics"));
        all
    })
}

impl Verdicts {
    #[track_caller]
    fn demand(&self) {
        let wrong = &self.wrong;
        assert!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    }
}

/// Whether a flip is told; an error is neither told nor harmless.
fn verdict(path: &Path, bit: u64, model: &Model) -> Result<bool, String> {
    let image = Image::of(path);
    image.flip(bit);
    match image.open() {
        Ok(opened) => go_on(opened, &image, model).map(|()| false),
        Err(StoreError::Damaged { .. } | StoreError::OtherFormat { .. } | StoreError::OtherWorld { .. }) => {
            Ok(true)
        }
        Err(error) => Err(format!("it is not said to be damaged: {error}")),
    }
}

/// All is there at a start, and that and what is committed then at the next.
fn go_on((store, recovered): (Store, Recovered), image: &Image, model: &Model) -> Result<(), String> {
    if Model::of(&recovered) != *model {
        return Err("something else was recovered, in silence".to_owned());
    }
    let mut model = model.clone();
    let position = StoredPosition { coordinates: [1.0; 3], accuracy_m: 0.0, received_ms: 1 };
    let mut batch = Batch::default();
    batch.put_position("later", &position);
    store.commit(&batch).map_err(|error| format!("a commit after it: {error}"))?;
    model.positions.insert("later".to_owned(), position);
    drop((recovered, store));
    let (_store, recovered) = image.open().map_err(|error| format!("the start after it: {error}"))?;
    if Model::of(&recovered) != model {
        return Err("something else was recovered at the start after it".to_owned());
    }
    Ok(())
}

/// Commits that are only in the tail, and what there is after each.
#[test]
fn a_flipped_bit_of_the_tail_is_told_or_harmless() {
    let started = Instant::now();
    let folder = TempDir::new().expect("a folder");
    let disk = Disk::default();
    let mut memory = Memory::new(5);
    let lazily = Some((folder.path(), Some(NEVER)));
    let medium = Box::new(disk.clone());
    let opened = Store::open_medium(medium, Some(WorldName::Geodetic), lazily, Pace::default(), &|_| {});
    let (store, _) = opened.expect("a new store");
    let mut states = vec![memory.model.clone()];
    for _ in 0..8 {
        store.commit(&memory.batch(&store)).expect("it is committed");
        memory.committed();
        states.push(memory.model.clone());
    }
    let (bytes, tail) = (disk.bytes(), fs::read(tail_file(folder.path())).expect("there is one"));
    drop(store);

    let mut bits = (0..tail.len() as u64 * 8).collect::<Vec<_>>();
    let bits_count = bits.len();
    bits.shuffle(&mut StdRng::seed_from_u64(8));
    bits.truncate(usize::try_from(runs(READ_BITS, u64::MAX)).unwrap_or(usize::MAX));
    let place = || {
        let place = TempDir::new().expect("a folder");
        fs::write(store_file(place.path()), &bytes).expect("room");
        place
    };
    let verdicts = side_by_side(&bits, place, |place, bit| {
        let mut tail = tail.clone();
        tail[usize::try_from(bit / 8).expect("a small file")] ^= 1 << (bit % 8);
        fs::write(tail_file(place.path()), tail).map_err(|error| error.to_string())?;
        let report = check(place.path()).map_err(|error| error.to_string())?;
        let image = Image::of(&store_file(place.path()));
        let (opened, log) = logged(|| image.open_with(Some(place.path())));
        let (_store, recovered) = opened.map_err(|error| error.to_string())?;
        let found = Model::of(&recovered);
        let told = !report.is_whole() && log.contains("WARN") && log.contains("tail");
        match states.iter().position(|state| *state == found) {
            Some(last) if last + 1 == states.len() => Ok(told),
            // Each row says what it holds, so that nothing behind the bit counts, and all before it does.
            Some(_) if told => Ok(true),
            Some(last) => Err(format!("{last} commits are there, in silence: {report}\n{log}")),
            None => Err("what is there never was".to_owned()),
        }
    });
    println!(
        "tail: {} of {bits_count} bits: {} told, {} harmless; {:?}",
        bits.len(),
        verdicts.told,
        verdicts.harmless,
        started.elapsed()
    );
    verdicts.demand();
    assert!(verdicts.told > 0, "nothing that was flipped mattered");
}

/// Runs some work, and returns its result with the log that it has written.
fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let done = tracing::subscriber::with_default(subscriber, work);
    let text = String::from_utf8_lossy(&log.0.lock().expect("nobody panicked")).into_owned();
    (done, text)
}

/// The content of the lock file is for people only, so that flipped bits of it do no harm.
#[test]
fn a_flipped_bit_of_the_lock_is_harmless() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("lock");
    drop(Lock::take(folder.path()).expect("nobody has it"));
    let whole = fs::read(&path).expect("it is there");
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).expect("room");
        let lock = Lock::take(folder.path()).expect("nobody has it");
        assert!(matches!(Lock::take(folder.path()), Err(StoreError::InUse { .. })), "bit {bit}");
        drop(lock);
        assert!(Lock::take_existing(folder.path()).is_ok_and(|lock| lock.is_some()), "bit {bit}");
    }
}
