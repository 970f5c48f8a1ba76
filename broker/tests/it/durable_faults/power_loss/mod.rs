//! A loss of power, in a file system that keeps of what was not synced whatever is the worst.
//!
//! The library `power-loss` is preloaded into the program and journals what it does to its files; [`Disk`] reads that journal
//! and knows what was certainly on disk; [`Loss`] draws what of the rest was. Kept to POSIX, which promises less than most
//! file systems do:
//!
//! - Written bytes are on disk after a sync of their file. Until then any of their pieces of 512 or 4,096 bytes may be there,
//!   in any order, and a file may be longer than what was written of it, with zeros.
//! - Names (files made, renamed, removed) are on disk after a sync of their folder, not of their file. Until then the first
//!   few of them are, in each folder for itself.

mod disk;
mod loss;
#[path = "../../../power-loss/src/record.rs"]
#[expect(dead_code, unreachable_pub, reason = "the library, whose file it is, writes what is only read here")]
mod record;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use tempfile::TempDir;

use disk::Disk;

/// A folder on a disk that can lose its power.
pub(crate) struct Power {
    folder: PathBuf,
    journal: PathBuf,
    /// A file that is there while the disk is full.
    full: PathBuf,
    /// What was there when the program was started.
    before: Disk,
    _journals: TempDir,
}

impl Power {
    /// Watches what a program that is started now does to a folder.
    pub(crate) fn on(folder: &Path) -> Self {
        let journals = TempDir::new().expect("a folder for the journal");
        let folder = folder.canonicalize().expect("the folder is there");
        let before = Disk::read(&folder);
        let [journal, full] = ["journal", "full"].map(|name| journals.path().join(name));
        Self { journal, full, before, folder, _journals: journals }
    }

    /// Environment variables that the program needs.
    pub(crate) fn env(&self) -> [(&'static str, String); 4] {
        let library =
            std::env::current_exe().expect("this program has a path").with_file_name("libpower_loss.so");
        assert!(library.exists(), "{} is built with the tests", library.display());
        let text = |path: &Path| path.to_str().expect("a path that is a text").to_owned();
        [
            ("LD_PRELOAD", text(&library)),
            ("POWER_LOSS_FOLDER", text(&self.folder)),
            ("POWER_LOSS_JOURNAL", text(&self.journal)),
            ("POWER_LOSS_FULL", text(&self.full)),
        ]
    }

    /// From now on the disk takes nothing.
    pub(crate) fn fill(&self) {
        fs::write(&self.full, "").expect("room elsewhere");
    }

    /// There is room again.
    pub(crate) fn empty(&self) {
        fs::remove_file(&self.full).expect("the disk is full");
    }

    /// Takes away what was not synced. The program has been killed; one call of it may not have been journalled.
    pub(crate) fn lose(mut self, rng: &mut StdRng) -> Lost {
        let journal = fs::read(&self.journal).unwrap_or_default();
        let syncs_count = self.before.replay(&journal);
        self.before.assert_is(&self.folder, 1);
        let told = loss::lose(&mut self.before, rng);
        self.before.write(&self.folder);
        Lost { syncs_count, told }
    }

    /// Checks that the journal knows everything, of a program that has ended by itself.
    pub(crate) fn assert_complete(mut self) {
        let journal = fs::read(&self.journal).unwrap_or_default();
        assert!(self.before.replay(&journal) > 0, "the program has synced nothing");
        self.before.assert_is(&self.folder, 0);
    }
}

/// What a loss of power did.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Syncs that had succeeded.
    #[expect(dead_code, reason = "for messages")]
    pub(crate) syncs_count: usize,
    /// For people.
    #[expect(dead_code, reason = "for messages")]
    pub(crate) told: String,
}
