//! The key by which push services know the broker (VAPID, RFC 8292).

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Serialize;

use crate::model::clock;
use crate::store::PUSH_KEY;

/// How long a token counts. A push service takes none for more than a day.
const TOKEN_LIFETIME: Duration = Duration::from_secs(12 * 3_600);
/// Characters of a line of PEM.
const LINE: usize = 64;

/// A key and its public part.
pub(crate) struct Key {
    signing: EncodingKey,
    /// The uncompressed point, in base64url.
    public: String,
}

#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a str,
    exp: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub: &'a str,
}

impl Key {
    /// Reads a key of P-256 from a PEM file (PKCS#8). Blocks.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("the key in {}", path.display());
        let der = PrivatePkcs8KeyDer::from_pem_file(path).with_context(context)?;
        Self::of(der.secret_pkcs8_der()).with_context(context)
    }

    /// Reads the key of a data directory, where one is made that only its owner can read if there is none. Blocks.
    pub(super) fn of_directory(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(PUSH_KEY);
        if !path.try_exists().with_context(|| format!("cannot look for {}", path.display()))? {
            make(&path).with_context(|| format!("cannot make {}", path.display()))?;
            tracing::info!(path = %path.display(), "made a key for push messages");
        }
        Self::read(&path)
    }

    /// Reads the key of a data directory, if there is one, only to see that it can be read. Blocks.
    pub(super) fn verify(dir: &Path) -> anyhow::Result<()> {
        let path = dir.join(PUSH_KEY);
        if path.try_exists()? { Self::read(&path).map(drop) } else { Ok(()) }
    }

    /// Makes a key that is in memory alone.
    pub(super) fn passing() -> anyhow::Result<Self> {
        Self::of(&new()?)
    }

    fn of(pkcs8: &[u8]) -> anyhow::Result<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8);
        let pair = pair.map_err(|_| anyhow::anyhow!("it is not a key of the curve P-256, as PKCS#8"))?;
        let public = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        Ok(Self { signing: EncodingKey::from_ec_der(pkcs8), public })
    }

    /// The public key as browsers take it (`applicationServerKey`).
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// The header `Authorization` of a message to a push service of this origin.
    pub(super) fn authorization(&self, origin: &str, contact: &str) -> jsonwebtoken::errors::Result<String> {
        let exp = clock::unix_ms() / 1_000 + TOKEN_LIFETIME.as_secs();
        let claims = Claims { aud: origin, exp, sub: contact };
        let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &self.signing)?;
        Ok(format!("vapid t={token}, k={}", self.public))
    }
}

fn new() -> anyhow::Result<Vec<u8>> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
    Ok(pair.to_pkcs8v1()?.as_ref().to_vec())
}

/// Makes a file with a key, which never is there without a whole one or for others to read.
fn make(path: &Path) -> anyhow::Result<()> {
    let text = STANDARD.encode(new()?);
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(LINE) {
        pem += str::from_utf8(line)?;
        pem.push('\n');
    }
    pem += "-----END PRIVATE KEY-----\n";
    let partial = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&partial).and_then(|mut file: std::fs::File| {
        file.write_all(pem.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&partial, path)).map_err(|error: io::Error| error.into())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) =
            (Key::of_directory(dir.path()).unwrap(), Key::of_directory(dir.path()).unwrap());
        assert_eq!(first.public, second.public);
        let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap()).collect();
        assert_eq!(files.len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_ne!(Key::passing().unwrap().public, first.public);
    }

    #[test]
    fn a_key_that_is_none_is_told_with_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            std::fs::write(&path, text).unwrap();
            let why = format!("{:#}", Key::read(&path).err().unwrap());
            assert!(why.contains("key.pem"), "{why}");
        }
    }

    #[test]
    fn a_token_says_for_whom_it_is_and_ends_within_a_day() {
        let key = Key::passing().unwrap();
        let header = key.authorization("https://push.example", "mailto:ops@nearcast.example").unwrap();
        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(public, key.public);
        let point = URL_SAFE_NO_PAD.decode(public).unwrap();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_audience(&["https://push.example"]);
        let decoding = DecodingKey::from_ec_components(&x, &y).unwrap();
        let claims = jsonwebtoken::decode::<serde_json::Value>(token, &decoding, &validation).unwrap().claims;
        assert_eq!(claims["sub"], "mailto:ops@nearcast.example");
        let left = claims["exp"].as_u64().unwrap() - clock::unix_ms() / 1_000;
        assert!(left > 3_600 && left <= 86_400, "{left}");
        let unsigned = key.authorization("https://push.example", "").unwrap();
        let claims = unsigned.split('.').nth(1).unwrap();
        assert!(!String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap().contains("sub"));
    }
}
