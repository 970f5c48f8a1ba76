//! A folder as a program sees it, and what of it is certainly on disk.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::record::{Kind, Record};

/// Bytes of zeros that are not written when a file is rebuilt, but left as a hole.
const HOLE_BYTES: usize = 4_096;

/// Files and names, as they certainly are and as they may be.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) files: Vec<File>,
    /// Names that are certainly there; folders as well.
    pub(super) names: BTreeMap<PathBuf, Node>,
    /// Names that came and went since, in order. Each is on disk once one of its folders is synced.
    pub(super) renamed: Vec<Renaming>,
    /// What the program sees.
    seen_names: BTreeMap<PathBuf, Node>,
    /// Files by the number that the journal gives them.
    numbers: HashMap<u64, usize>,
    /// Syncs that have begun: when, and of what.
    syncs: HashMap<u64, (u64, Synced)>,
    /// Counts records.
    now: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(usize),
}

/// A file.
#[derive(Default)]
pub(super) struct File {
    /// What is certainly on disk.
    pub(super) content: Vec<u8>,
    /// What was done since, in order.
    pub(super) changes: Vec<(u64, Change)>,
    /// What the program sees.
    seen: Vec<u8>,
}

/// What was done to a file.
pub(super) enum Change {
    Written { at: usize, bytes: Vec<u8> },
    Resized(usize),
}

/// What was done to names.
#[derive(Clone, Debug)]
pub(super) struct Renaming {
    at: u64,
    /// Goes.
    pub(super) from: Option<PathBuf>,
    /// Comes, or stands for something else.
    pub(super) to: Option<(PathBuf, Node)>,
}

enum Synced {
    File(usize),
    Folder(PathBuf),
}

impl Disk {
    /// A folder that is as it is.
    pub(super) fn read(folder: &Path) -> Self {
        let mut disk = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(inner) = folders.pop() {
            for entry in fs::read_dir(&inner).expect("a folder that can be read") {
                let path = entry.expect("an entry").path();
                if !is_content(&path) {
                    continue;
                }
                let name = path.strip_prefix(folder).expect("a path inside").to_owned();
                let node = if path.is_dir() {
                    folders.push(path);
                    Node::Folder
                } else {
                    let content = fs::read(&path).expect("a file that can be read");
                    disk.files.push(File { seen: content.clone(), content, changes: Vec::new() });
                    Node::File(disk.files.len() - 1)
                };
                disk.names.insert(name, node);
            }
        }
        disk.seen_names = disk.names.clone();
        disk
    }

    /// Does what a journal says. Returns how many syncs have succeeded.
    pub(super) fn replay(&mut self, mut journal: &[u8]) -> usize {
        let mut syncs_count = 0;
        while let Some((record, rest)) = Record::decode(journal) {
            journal = rest;
            self.now += 1;
            syncs_count += usize::from(record.kind == Kind::SyncDone);
            self.take(record);
        }
        syncs_count
    }

    fn take(&mut self, record: Record) {
        let Record { kind, file, number, bytes } = record;
        let size = |number: u64| usize::try_from(number).expect("files are small");
        match kind {
            Kind::Bound => {
                let name = path(&bytes);
                let Some(Node::File(idx)) = self.seen_names.get(&name) else {
                    panic!("{} was opened, and the journal does not say where it comes from", name.display())
                };
                self.numbers.insert(file, *idx);
            }
            Kind::Made => {
                self.files.push(File::default());
                let idx = self.files.len() - 1;
                self.numbers.insert(file, idx);
                self.rename(None, Some((path(&bytes), Node::File(idx))));
            }
            Kind::Written => self.change(file, Change::Written { at: size(number), bytes }),
            Kind::Resized => self.change(file, Change::Resized(size(number))),
            Kind::Zeroed => {
                let count = u64::from_le_bytes(bytes.try_into().expect("a number"));
                self.change(file, Change::Written { at: size(number), bytes: vec![0; size(count)] });
            }
            Kind::SyncBegun => {
                let idx = self.numbers[&file];
                self.syncs.insert(number, (self.now, Synced::File(idx)));
            }
            Kind::FolderSyncBegun => {
                self.syncs.insert(number, (self.now, Synced::Folder(path(&bytes))));
            }
            Kind::SyncDone => match self.syncs.remove(&number) {
                Some((begun, Synced::File(idx))) => self.files[idx].sync(begun),
                Some((begun, Synced::Folder(folder))) => self.sync_folder(&folder, begun),
                None => panic!("a sync that never began"),
            },
            Kind::FolderMade => self.rename(None, Some((path(&bytes), Node::Folder))),
            Kind::Removed => self.rename(Some(path(&bytes)), None),
            Kind::Renamed | Kind::Linked => {
                let zero = bytes.iter().position(|byte| *byte == 0).expect("two paths");
                let (from, to) = (path(&bytes[..zero]), path(&bytes[zero + 1..]));
                let node = self.seen_names.get(&from).copied();
                let Some(node @ Node::File(_)) = node else {
                    panic!("{}: only files that are there can be renamed here", from.display())
                };
                self.rename((kind == Kind::Renamed).then_some(from), Some((to, node)));
            }
            Kind::Unmodelled => panic!("not covered: {}", String::from_utf8_lossy(&bytes)),
        }
    }

    fn change(&mut self, file: u64, change: Change) {
        let file = &mut self.files[self.numbers[&file]];
        change.apply(&mut file.seen);
        file.changes.push((self.now, change));
    }

    fn rename(&mut self, from: Option<PathBuf>, to: Option<(PathBuf, Node)>) {
        let renaming = Renaming { at: self.now, from, to };
        renaming.apply(&mut self.seen_names);
        self.renamed.push(renaming);
    }

    fn sync_folder(&mut self, folder: &Path, begun: u64) {
        let renamed = std::mem::take(&mut self.renamed);
        let (synced, rest) =
            renamed.into_iter().partition(|renaming| renaming.at <= begun && renaming.is_in(folder));
        self.renamed = rest;
        let synced: Vec<Renaming> = synced;
        for renaming in synced {
            renaming.apply(&mut self.names);
        }
    }

    /// Compares what the program sees with what is there. A program that was killed may have done something more, to at
    /// most as many files as are allowed to differ.
    pub(super) fn assert_is(&self, folder: &Path, differing_max: usize) {
        let actual = Self::read(folder);
        let mut differing = Vec::new();
        let names = self.seen_names.keys().chain(actual.seen_names.keys());
        // The ballast is room without data, which the program allocates past the C library.
        let names = names.filter(|name| !name.ends_with("ballast") && !name.ends_with("ballast.new"));
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let content = |disk: &Self| match disk.seen_names.get(name) {
                Some(Node::File(idx)) => Some(disk.files[*idx].seen.clone()),
                Some(Node::Folder) => Some(Vec::new()),
                None => None,
            };
            if content(self) != content(&actual) {
                differing.push(name);
            }
        }
        assert!(
            differing.len() <= differing_max,
            "the journal does not know all that was done to {differing:?}: the program writes past the C library"
        );
    }

    /// Makes a folder what is certainly on disk.
    pub(super) fn write(&self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder that can be read") {
            let path = entry.expect("an entry").path();
            if !is_content(&path) {
                continue;
            }
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }
                .expect("it can be removed");
        }
        for (name, node) in &self.names {
            let path = folder.join(name);
            // What lies in a folder whose own name was lost is lost with it.
            if !path.parent().is_some_and(Path::exists) {
                continue;
            }
            match node {
                Node::Folder => fs::create_dir(&path).expect("a folder"),
                Node::File(idx) => write_file(&path, &self.files[*idx].content),
            }
        }
    }
}

impl File {
    fn sync(&mut self, begun: u64) {
        let end = self.changes.partition_point(|(at, _)| *at <= begun);
        for (_, change) in self.changes.drain(..end) {
            change.apply(&mut self.content);
        }
    }
}

impl Change {
    /// Does it to a content.
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Written { at, bytes } => {
                let end = at + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            Self::Resized(length) => content.resize(*length, 0),
        }
    }
}

impl Renaming {
    /// Does it to names.
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        if let Some(from) = &self.from {
            names.remove(from);
        }
        if let Some((to, node)) = &self.to {
            names.insert(to.clone(), *node);
        }
    }

    /// Whether a folder holds one of its names.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        self.folders().any(|inner| inner == folder)
    }

    /// The folders that hold its names.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        let paths = self.from.iter().chain(self.to.iter().map(|(to, _)| to));
        paths.map(|path| path.parent().unwrap_or(Path::new("")))
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Whether something is a file or a folder. Sockets, which hold nothing, stay where they are, as after any crash.
fn is_content(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

/// Writes a file with holes where it has zeros, since a store may set aside far more than it uses.
fn write_file(path: &Path, content: &[u8]) {
    let file = fs::File::create(path).expect("a file");
    file.set_len(content.len() as u64).expect("room");
    for (idx, block) in content.chunks(HOLE_BYTES).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, (idx * HOLE_BYTES) as u64).expect("room");
        }
    }
}
