//! Tiles in one file, of which pages read the parts that they need: PMTiles, version 3.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use axum::http::HeaderValue;
use serde_json::json;
use tokio::io::AsyncSeekExt as _;

/// Bytes before the directory (PMTiles specification 3.4, "Header").
const HEADER_BYTES: usize = 127;
const MAGIC: &[u8] = b"PMTiles\x03";
/// Where the header has the offset and the length of the root directory, of the metadata, of leaves, and of the tiles.
const SECTIONS: [usize; 4] = [8, 24, 40, 56];
/// The form of the tiles, and the only one that no page can draw.
const TILE_TYPE: usize = 99;
const UNKNOWN: u8 = 0;

/// A file of tiles that was there when the broker started. Each request opens it anew, so that it can be replaced by another.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    path: PathBuf,
}

/// An open file, and what it is to requests.
pub(crate) struct Part {
    pub(crate) file: tokio::fs::File,
    pub(crate) bytes: u64,
    /// Strong, for parts of two versions must not be put together.
    pub(crate) etag: HeaderValue,
}

impl Archive {
    /// Checks that a file is one of tiles. Blocks.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::open(path).context("cannot be read")?;
        let bytes = file.metadata().context("cannot be read")?.len();
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).context("is no PMTiles file: it has no header")?;
        check(&header, bytes)?;
        Ok(Self { path: path.to_owned() })
    }

    /// What a page has to know of it.
    pub(super) fn document(&self) -> String {
        format!("{}\n", json!({"pmtiles": "base-map.pmtiles"}))
    }

    /// Opens the file as it is now.
    ///
    /// # Errors
    /// It is not there any more, or cannot be read.
    pub(crate) async fn part(&self) -> std::io::Result<Part> {
        let file = tokio::fs::File::open(&self.path).await?;
        let metadata = file.metadata().await?;
        Ok(Part { file, bytes: metadata.len(), etag: etag(&metadata) })
    }
}

impl Part {
    /// Goes to the beginning of a range.
    pub(crate) async fn seek(&mut self, range: &Range<u64>) -> std::io::Result<()> {
        self.file.seek(std::io::SeekFrom::Start(range.start)).await.map(drop)
    }
}

fn check(header: &[u8; HEADER_BYTES], bytes: u64) -> anyhow::Result<()> {
    anyhow::ensure!(header.starts_with(MAGIC), "is no PMTiles file of version 3");
    let number =
        |at: usize| header[at..at + 8].iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    for at in SECTIONS {
        let end = number(at).checked_add(number(at + 8));
        anyhow::ensure!(end.is_some_and(|end| end <= bytes), "has {bytes} bytes, fewer than its header says");
    }
    anyhow::ensure!(header[TILE_TYPE] != UNKNOWN, "has tiles of an unknown form");
    Ok(())
}

fn etag(metadata: &Metadata) -> HeaderValue {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let tag = format!("\"{:x}-{:x}\"", metadata.len(), modified.unwrap_or_default().as_nanos());
    HeaderValue::try_from(tag).expect("digits are fine in a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_files_of_tiles_are_taken() {
        let mut header = [0; HEADER_BYTES];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[TILE_TYPE] = 1;
        header[SECTIONS[0]] = 127;
        header[SECTIONS[0] + 8] = 3;
        assert!(check(&header, 130).is_ok());
        assert!(check(&header, 129).unwrap_err().to_string().contains("fewer"));
        let mut other = header;
        other[7] = 2;
        assert!(check(&other, 130).unwrap_err().to_string().contains("version 3"));
        let mut unknown = header;
        unknown[TILE_TYPE] = UNKNOWN;
        assert!(check(&unknown, 130).is_err());
        header[SECTIONS[3]..SECTIONS[3] + 16].fill(0xff);
        assert!(check(&header, u64::MAX).is_err());
    }
}
