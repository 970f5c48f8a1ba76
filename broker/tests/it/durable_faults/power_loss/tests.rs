//! That the file layer loses what it may lose, and nothing else, with programs that everybody has.

use std::fs;
use std::path::Path;
use std::process::Command;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::Power;

/// Runs a script in a folder, and takes the power away.
fn lose(folder: &Path, seed: u64, script: &str) {
    let power = Power::on(folder);
    let status = Command::new("sh").args(["-ec", script]).current_dir(folder).envs(power.env()).status();
    assert!(status.expect("a shell").success(), "{script}");
    power.lose(&mut StdRng::seed_from_u64(seed));
}

/// The content of a file of the folder; `None` where it is not there.
fn content(folder: &Path, name: &str) -> Option<Vec<u8>> {
    fs::read(folder.join(name)).ok()
}

const SEEDS: std::ops::Range<u64> = 0..30;

#[test]
fn what_was_synced_with_its_folder_is_never_lost() {
    let script = "
        dd if=/dev/zero of=a bs=3000 count=7 conv=fsync status=none; mkdir sub; sync .
        printf one > b; sync b; mv b sub/b; sync . sub
        printf three > c; sync c .; dd if=/dev/zero of=c bs=1 count=3 conv=notrunc,fsync status=none";
    for seed in 0..10 {
        let folder = TempDir::new().expect("a folder");
        lose(folder.path(), seed, script);
        assert_eq!(content(folder.path(), "a"), Some(vec![0; 21_000]));
        assert_eq!(content(folder.path(), "b"), None);
        assert_eq!(content(folder.path(), "sub/b").as_deref(), Some(&b"one"[..]));
        assert_eq!(content(folder.path(), "c").as_deref(), Some(&b"\0\0\0ee"[..]));
    }
}

#[test]
fn what_was_not_synced_is_lost_in_each_of_the_ways_that_there_are() {
    let [mut gone, mut torn, mut short, mut whole, mut undone, mut renamed] = [0; 6];
    for seed in SEEDS {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("old"), "old").expect("a file");
        // The names are synced, the content is not, and a rename comes after that.
        let script = "tr '\\0' x < /dev/zero | dd of=new bs=20000 count=1 iflag=fullblock status=none; sync .
            mv old renamed";
        lose(folder.path(), seed, script);
        let new = content(folder.path(), "new").expect("its name was synced");
        let kept = new.iter().filter(|byte| **byte == b'x').count();
        match (new.len(), kept) {
            (0, _) => gone += 1,
            (20_000, 20_000) => whole += 1,
            (20_000, _) => torn += 1,
            _ => short += 1,
        }
        match (content(folder.path(), "old"), content(folder.path(), "renamed")) {
            (Some(_), None) => undone += 1,
            (None, Some(_)) => renamed += 1,
            names => panic!("{names:?}"),
        }
    }
    for (count, what) in [
        (gone, "all is gone"),
        (torn, "pieces are missing"),
        (short, "the end is missing"),
        (whole, "all is there"),
        (undone, "the rename is undone"),
        (renamed, "the rename is there"),
    ] {
        assert!(count > 0, "with none of the seeds {SEEDS:?} {what}");
    }
}

#[test]
fn a_name_is_not_synced_with_its_file() {
    let lost = SEEDS.filter(|seed| {
        let folder = TempDir::new().expect("a folder");
        lose(folder.path(), *seed, "printf one > a; sync a");
        match content(folder.path(), "a") {
            None => true,
            Some(content) => {
                assert_eq!(content, b"one");
                false
            }
        }
    });
    let lost_count = lost.count();
    assert!(lost_count > 0 && lost_count < 30, "lost with {lost_count} seeds");
}

#[test]
#[should_panic(expected = "writes past the C library")]
fn what_goes_past_the_journal_is_noticed() {
    let folder = TempDir::new().expect("a folder");
    let power = Power::on(folder.path());
    fs::write(folder.path().join("a"), "not preloaded").expect("a file");
    fs::write(folder.path().join("b"), "not preloaded").expect("a file");
    power.lose(&mut StdRng::seed_from_u64(1));
}
