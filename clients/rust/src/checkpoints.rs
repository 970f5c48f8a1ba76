//! A file that keeps a checkpoint for the next process.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::PathBuf,
};

use crate::Checkpoint;

/// A file with a checkpoint, which a crash leaves as it was before or as it is after. One process at a time writes it.
///
/// What is loaded goes to [`Connect::resume`](crate::Connect::resume), and [`Message::checkpoint`](crate::Message::checkpoint) is saved
/// once the message is processed. Both calls block for as long as the disk takes.
#[derive(Clone, Debug)]
pub struct CheckpointFile {
    path: PathBuf,
}

impl CheckpointFile {
    /// Names the file; nothing is read or written yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Reads the checkpoint that was saved last; `None` where there is no file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] where the file has something else, and what reading a file fails with.
    pub fn load(&self) -> io::Result<Option<Checkpoint>> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let checkpoint = text.trim().parse::<Checkpoint>();
        checkpoint.map(Some).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    /// Writes a checkpoint. It is on the disk before it takes the place of the last one.
    ///
    /// # Errors
    /// What writing a file fails with.
    pub fn save(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut file = File::create(&new)?;
        write!(file, "{checkpoint}")?;
        file.sync_all()?;
        fs::rename(new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_outlives_its_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = CheckpointFile::new(folder.path().join("checkpoint"));
        assert_eq!(file.load().expect("no file"), None);
        for offset in [7, 9] {
            file.save(&Checkpoint { epoch: "e:1".into(), offset }).expect("written");
        }
        assert_eq!(file.load().expect("a file"), Some(Checkpoint { epoch: "e:1".into(), offset: 9 }));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        fs::write(folder.path().join("checkpoint"), "seven").expect("written");
        assert_eq!(file.load().expect_err("no checkpoint").kind(), ErrorKind::InvalidData);
    }
}
