//! A file of keys, which is read again when it changes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::keys::{self, Keys};

/// How often the file is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A file and its keys.
pub(super) struct KeyFile {
    path: PathBuf,
    /// The file as it was read first.
    text: Vec<u8>,
    /// Held for a look or an exchange.
    keys: RwLock<Arc<Keys>>,
    /// Times that it changed to something that cannot be used.
    failures: AtomicU64,
}

impl KeyFile {
    /// Reads it. Blocks.
    ///
    /// # Errors
    /// When there is no key that can be used.
    pub(super) fn open(path: &str) -> anyhow::Result<Self> {
        let context = || format!("the keys in {path} (auth.jwks)");
        let path = PathBuf::from(path);
        let text = keys::read_file(&path).map_err(keys::KeysError::from).with_context(context)?;
        let keys = Keys::of_file(&text).with_context(context)?;
        let file = Self { path, text, keys: RwLock::new(Arc::new(keys)), failures: AtomicU64::new(0) };
        file.tell();
        Ok(file)
    }

    /// The keys that could be used last.
    pub(super) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often it changed to something that cannot be used.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Reads it again whenever it has changed, until the broker ends.
    pub(super) async fn follow(&self, ended: &CancellationToken) {
        let mut last = Ok(self.text.clone());
        while ended.run_until_cancelled(tokio::time::sleep(WATCH_INTERVAL)).await.is_some() {
            let path = self.path.clone();
            let read = tokio::task::spawn_blocking(move || keys::read_file(&path)).await;
            let Ok(read) = read else { continue };
            let read = read.map_err(|error| error.to_string());
            if read != last {
                self.take(&read);
                last = read;
            }
        }
    }

    /// Goes on with the keys of a text, or with those that there are.
    fn take(&self, read: &Result<Vec<u8>, String>) {
        let parsed = match read {
            Ok(text) => Keys::of_file(text).map_err(|error| error.to_string()),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        match parsed {
            Ok(keys) => {
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                self.tell();
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "{} {error}; tokens are checked with the keys of before",
                    self.path.display()
                );
            }
        }
    }

    /// Tells in the log what there is to check tokens with.
    fn tell(&self) {
        let (keys, path) = (self.keys(), self.path.display());
        tracing::info!(keys = keys.count(), "tokens are checked with the keys in {path}");
        for unused in keys.unused_told() {
            tracing::warn!("{path}: a key is not used: {unused}");
        }
        if keys.have_secrets() && keys::is_open_to_others(&self.path) {
            tracing::warn!(
                "{path} has secrets, and everybody on this machine can read it: chmod 640 or less"
            );
        }
    }
}
