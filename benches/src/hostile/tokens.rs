//! Tokens, so that the broker knows whose requests are whose.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

/// How long a token is good for, in seconds.
const LIFE_S: u64 = 24 * 3_600;
const KEY_ID: &str = "bench";
const ALGORITHM: Algorithm = Algorithm::HS256;

/// Signs tokens that a broker with [`Tokens::jwks`] accepts.
pub struct Tokens {
    key: EncodingKey,
    folder: tempfile::TempDir,
}

impl Tokens {
    /// Writes the keys into a folder of their own, which goes with this value.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new() -> anyhow::Result<Self> {
        let key = EncodingKey::from_secret(&rand::random::<[u8; 32]>());
        let mut jwk = Jwk::from_encoding_key(&key, ALGORITHM)?;
        jwk.common.key_id = Some(KEY_ID.to_owned());
        let tokens = Self { key, folder: tempfile::tempdir()? };
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(tokens.jwks())?;
        file.write_all(json!({"keys": [jwk]}).to_string().as_bytes())?;
        Ok(tokens)
    }

    /// The file that `--jwks` names.
    #[must_use]
    pub fn jwks(&self) -> PathBuf {
        self.folder.path().join("jwks.json")
    }

    /// Flags for a broker that wants these tokens.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let path: &Path = &self.jwks();
        ["--auth", "jwt", "--jwks"]
            .map(str::to_owned)
            .into_iter()
            .chain([path.display().to_string()])
            .collect()
    }

    /// A token with which a client may publish and subscribe.
    ///
    /// # Errors
    /// Never in practice: the key and the claims are fine.
    pub fn sign(&self, tenant: &str, client: &str) -> anyhow::Result<String> {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let claims = json!({
            "sub": client, "tenant": tenant, "scope": "publish subscribe", "iat": now_s, "exp": now_s + LIFE_S,
        });
        let header = Header { kid: Some(KEY_ID.to_owned()), ..Header::new(ALGORITHM) };
        encode(&header, &claims, &self.key).context("signing a token")
    }
}
