//! Tokens for trying, and for programs of one's own: signed with the secret of a file of keys, which is made where there is none, or
//! with a private key of which the broker has the public half.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};

use super::keys::{SECRET_BYTES_MIN, read_file};
use super::principal::Scope;

/// Bytes of a secret that is made: half as many again as HS256 wants at least.
const SECRET_BYTES: usize = 48;
/// Bytes of a tenant's name, at most.
const TENANT_BYTES_MAX: usize = 128;

/// The claims of a token that is to be issued.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The client that the token is of.
    pub client: &'a str,
    /// Names of scopes, with spaces between.
    pub scopes: &'a str,
    /// The client's tenant; `None` for the one without a name.
    pub tenant: Option<&'a str>,
    /// How long the token counts.
    pub ttl: Duration,
}

/// A token that was issued.
#[derive(Debug)]
pub struct Issued {
    /// The token.
    pub token: String,
    /// Whether the file of keys was made for it.
    pub has_made_keys: bool,
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    iat: u64,
    exp: u64,
}

/// A secret of a JWK Set (RFC 7517). The file may hold other keys as well.
#[derive(Deserialize, Serialize)]
struct Secret {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(default)]
    k: String,
}

#[derive(Deserialize, Serialize)]
struct Set<T> {
    keys: Vec<T>,
}

/// A key to sign with.
struct Signer {
    algorithm: Algorithm,
    id: Option<String>,
    key: EncodingKey,
}

/// Issues a token that is signed with a private key in PEM (ES256 or EdDSA), or with the first secret in a JWK Set (HS256). Where there
/// is no such file, a set is made that only its owner can read.
///
/// # Errors
/// A scope or a name that no broker would take, a file that cannot be read or made, and one without a key to sign with.
pub fn issue(keys: &Path, grant: Grant<'_>) -> anyhow::Result<Issued> {
    check(grant)?;
    let (signer, has_made_keys) = match read_file(keys) {
        Ok(text) => (read(&text).with_context(|| format!("the keys in {}", keys.display()))?, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (make(keys).with_context(|| format!("cannot make {}", keys.display()))?.signer()?, true)
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", keys.display())),
    };
    let iat = get_current_timestamp();
    let exp = iat.saturating_add(grant.ttl.as_secs());
    let scopes = names(grant.scopes).collect::<Vec<_>>().join(" ");
    let claims = Claims { sub: grant.client, scope: &scopes, tenant: grant.tenant, iat, exp };
    let header = Header { kid: signer.id, ..Header::new(signer.algorithm) };
    Ok(Issued { token: jsonwebtoken::encode(&header, &claims, &signer.key)?, has_made_keys })
}

/// The public half of a private key in PEM, as a JWK Set for the broker.
///
/// # Errors
/// A file that cannot be read, or is no private key.
pub fn public_half(keys: &Path) -> anyhow::Result<String> {
    let text = read_file(keys).with_context(|| format!("cannot read {}", keys.display()))?;
    let signer = read(&text).with_context(|| format!("the keys in {}", keys.display()))?;
    ensure!(
        signer.algorithm != Algorithm::HS256,
        "a secret has no public half: give the broker {0} itself",
        keys.display()
    );
    let jwk = Jwk::from_encoding_key(&signer.key, signer.algorithm)?;
    Ok(serde_json::to_string(&Set { keys: vec![jwk] })?)
}

/// The names of scopes, with spaces or commas between. In a token there are spaces (RFC 6749, 3.3).
fn names(scopes: &str) -> impl Iterator<Item = &str> {
    scopes.split(|c: char| c == ',' || c.is_whitespace()).filter(|name| !name.is_empty())
}

fn check(grant: Grant<'_>) -> anyhow::Result<()> {
    let is_name = |name: &str| !name.is_empty() && !name.chars().any(char::is_control);
    ensure!(is_name(grant.client), "a client's name is not empty and has no control characters");
    let tenant = grant.tenant.unwrap_or("-");
    ensure!(
        is_name(tenant) && tenant.len() <= TENANT_BYTES_MAX,
        "a tenant's name has 1 to {TENANT_BYTES_MAX} bytes and no control characters"
    );
    ensure!(!grant.ttl.is_zero(), "a token has to count for a second at least");
    for name in names(grant.scopes) {
        if !Scope::ALL.iter().any(|scope| scope.name() == name) {
            let all = Scope::ALL.map(Scope::name).join(", ");
            bail!("there is no scope {name:?}: there are {all}, with spaces or commas between");
        }
    }
    Ok(())
}

impl Secret {
    fn signer(self) -> anyhow::Result<Signer> {
        // The library would have it padded, which a JWK is not (RFC 7515, 2).
        let bytes = URL_SAFE_NO_PAD.decode(self.k.trim_end_matches('='))?;
        Ok(Signer { algorithm: Algorithm::HS256, id: self.kid, key: EncodingKey::from_secret(&bytes) })
    }
}

/// Finds the key. What is wrong with the text is not quoted.
fn read(text: &[u8]) -> anyhow::Result<Signer> {
    let is_pem = text.trim_ascii_start().starts_with(b"-----BEGIN");
    if is_pem { private_key(text) } else { secret(text)?.signer() }
}

/// A private key in PEM. It has no name: the broker finds its public half by the algorithm, of which there has to be one key then.
fn private_key(pem: &[u8]) -> anyhow::Result<Signer> {
    let no_key = "it is no private key in PEM (PKCS #8, \"BEGIN PRIVATE KEY\"): openssl pkcs8 -topk8 -nocrypt makes one of others";
    let key = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| anyhow::anyhow!(no_key))?;
    let der = key.secret_pkcs8_der();
    let (algorithm, key) = if EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).is_ok() {
        (Algorithm::ES256, EncodingKey::from_ec_der(der))
    } else if Ed25519KeyPair::from_pkcs8(der).is_ok() {
        (Algorithm::EdDSA, EncodingKey::from_ed_der(der))
    } else {
        bail!("its private key is neither one of P-256 (ES256) nor of Ed25519 (EdDSA)");
    };
    Ok(Signer { algorithm, id: None, key })
}

fn secret(text: &[u8]) -> anyhow::Result<Secret> {
    let set: Set<serde_json::Value> = serde_json::from_slice(text)
        .map_err(|_| anyhow::anyhow!("it is not a JWK Set, a JSON object with an array \"keys\""))?;
    let secrets = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Secret>(key).ok());
    let secret = secrets.filter(|key| key.kty == "oct").find(|key| {
        URL_SAFE_NO_PAD.decode(key.k.trim_end_matches('=')).is_ok_and(|k| k.len() >= SECRET_BYTES_MIN)
    });
    secret.context(
        "it has no secret (kty oct, 32 bytes or more) to sign with; tokens of other keys come from the service that has them",
    )
}

/// Makes a file with a secret, which never is there without one or for others to read.
fn make(path: &Path) -> anyhow::Result<Secret> {
    let (mut secret, mut name) = ([0; SECRET_BYTES], [0; 6]);
    OsRng.try_fill_bytes(&mut secret).and_then(|()| OsRng.try_fill_bytes(&mut name))?;
    let [k, kid] = [&secret[..], &name].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    let set = Set { keys: vec![Secret { kty: "oct".to_owned(), kid: Some(kid), k }] };
    let text = serde_json::to_string(&set)? + "\n";
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())?;
    let [secret] = <[Secret; 1]>::try_from(set.keys).ok().context("it has one key")?;
    Ok(secret)
}
