//! Which of the file's two commit slots counts, where one flipped bit would decide it.
//!
//! The file begins with a header of the library's (file format 3): one bit says which of two slots is the
//! last commit, and no checksum covers it. A commit in two phases writes the other slot, syncs, and then turns the bit; so the
//! library believes the bit, and one that flipped takes the last commit back in silence. Here the newer of two whole slots
//! counts: either the bit has flipped, or the broker ended between the phases, and then that commit was acknowledged to
//! nobody and may have happened.

use std::io;

use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_128;

const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
const FLAGS: usize = MAGIC.len();
/// Flag by which the second slot is the last commit.
const SECOND_IS_LAST: u8 = 1;
/// Flag by which the last slot is to be believed. Without it the library itself takes the newer slot, if all of that is
/// whole.
const IN_TWO_PHASES: u8 = 4;
const SLOTS: [usize; 2] = [64, 192];
const SLOT_BYTES: usize = 128;
/// Place in a slot of the number of its transaction.
const NUMBER: usize = 104;
/// Place in a slot of the checksum of the bytes in front of it.
const CHECKSUM: usize = SLOT_BYTES - 16;
const HEADER_BYTES: usize = SLOTS[1] + SLOT_BYTES;

/// Sees to it that the library takes the newer slot where both are whole. Cost: one small read; a write and a sync where it does
/// not take it already.
///
/// # Errors
/// Fails if reading or writing does. A file that is not the library's is left to the library.
pub(super) fn prefer_newer(file: &impl StorageBackend) -> io::Result<()> {
    if file.len()? < HEADER_BYTES as u64 {
        return Ok(());
    }
    let mut header = [0; HEADER_BYTES];
    file.read(0, &mut header)?;
    let flags = header[FLAGS];
    let slots = SLOTS.map(|start| &header[start..start + SLOT_BYTES]);
    let (Some(first), Some(second)) = (number_of(slots[0]), number_of(slots[1])) else { return Ok(()) };
    let is_older_last = if flags & SECOND_IS_LAST == 0 { second > first } else { first > second };
    if header.starts_with(MAGIC) && flags & IN_TWO_PHASES != 0 && is_older_last {
        file.write(FLAGS as u64, &[flags & !IN_TWO_PHASES])?;
        file.sync_data()?;
    }
    Ok(())
}

/// The number of a slot's transaction, if the slot is whole.
fn number_of(slot: &[u8]) -> Option<u64> {
    let (content, checksum) = slot.split_at(CHECKSUM);
    let is_whole = checksum == xxh3_128(content).to_le_bytes();
    let number = content.get(NUMBER..NUMBER + 8)?.try_into().ok()?;
    is_whole.then(|| u64::from_le_bytes(number))
}
