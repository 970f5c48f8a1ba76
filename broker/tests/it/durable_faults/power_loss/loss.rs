//! Which of the things that were not synced are on disk nevertheless.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::disk::{Change, Disk};

/// Makes what is certainly on disk what is there after a loss of power, and says what that took.
pub(super) fn lose(disk: &mut Disk, rng: &mut StdRng) -> String {
    // Disks that had written nearly everything, or nothing, are as likely as those in between.
    let survival = *[0.0, 0.1, 0.5, 0.9, 1.0].choose(rng).expect("not empty");
    let piece_bytes = *[512, 4_096].choose(rng).expect("not empty");
    let mut changes_count = 0;
    for file in &mut disk.files {
        for (_, change) in std::mem::take(&mut file.changes) {
            changes_count += 1;
            match change {
                Change::Resized(_) if rng.random_bool(survival) => change.apply(&mut file.content),
                Change::Resized(_) => {}
                Change::Written { at, bytes } => {
                    tear(&mut file.content, at, &bytes, piece_bytes, survival, rng);
                }
            }
        }
    }
    let names_count = disk.renamed.len();
    let names_kept = lose_names(disk, rng);
    format!(
        "of {changes_count} changes of content each piece of {piece_bytes} bytes was kept with probability \
         {survival}; of {names_count} changes of names {names_kept} were kept"
    )
}

/// Writes some pieces of what was written. Pieces are those of the disk: they begin at multiples of their size.
fn tear(content: &mut Vec<u8>, at: usize, bytes: &[u8], piece_bytes: usize, survival: f64, rng: &mut StdRng) {
    let end = at + bytes.len();
    // The length is kept by itself: what is missing of a longer file are zeros.
    if end > content.len() && rng.random_bool(survival) {
        content.resize(end, 0);
    }
    let mut from = at;
    while from < end {
        let to = (from / piece_bytes * piece_bytes + piece_bytes).min(end);
        if rng.random_bool(survival) {
            let bytes = bytes[from - at..to - at].to_vec();
            Change::Written { at: from, bytes }.apply(content);
        }
        from = to;
    }
}

/// In each folder the first changes of names are kept, as many as chance says.
fn lose_names(disk: &mut Disk, rng: &mut StdRng) -> usize {
    let renamed = std::mem::take(&mut disk.renamed);
    let mut left = BTreeMap::<PathBuf, usize>::new();
    for renaming in &renamed {
        for folder in renaming.folders() {
            *left.entry(folder.to_owned()).or_default() += 1;
        }
    }
    for count in left.values_mut() {
        *count = rng.random_range(0..=*count);
    }
    let mut kept_count = 0;
    for renaming in renamed {
        // A rename between folders needs both, and where it is not kept nothing is after it.
        let is_kept = renaming.folders().all(|folder| left[folder] > 0);
        for folder in renaming.folders() {
            let left = left.get_mut(folder).expect("all folders were counted");
            *left = if is_kept { left.saturating_sub(1) } else { 0 };
        }
        if is_kept {
            kept_count += 1;
            renaming.apply(&mut disk.names);
        }
    }
    kept_count
}
