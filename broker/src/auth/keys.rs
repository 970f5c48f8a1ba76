//! The keys that tokens are checked with: a JWK Set (RFC 7517), of a file or from an issuer.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::path::Path;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde_json::value::RawValue;

use crate::model::error::quoted;

/// The most bytes of a file of keys.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most keys that an issuer publishes. Those that rotate theirs have three or four.
const PUBLISHED_MAX: usize = 100;
/// Keys that are not used of which the log tells.
const UNUSED_TOLD: usize = 10;
/// The bytes of an uncompressed point of P-256 (SEC 1, 2.3.3).
const P256_POINT_BYTES: usize = 65;
/// The fewest bytes of an HS256 secret (RFC 7518, 3.2).
pub(super) const SECRET_BYTES_MIN: usize = 32;
/// The fewest bits of an RS256 modulus (RFC 7518, 3.3).
const MODULUS_BITS_MIN: usize = 2_048;

/// A key and the only algorithm that it is for: what a token says of its algorithm chooses among keys and decides nothing else.
pub(super) struct Key {
    id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) verifying: DecodingKey,
}

/// The keys of a set.
pub(super) struct Keys {
    keys: Vec<Key>,
    /// Which of the set's are not used, and why.
    pub(super) unused: Vec<String>,
}

/// Why a set has no keys. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeysError {
    /// It cannot be read, or is too large.
    #[error("cannot be read")]
    Unreadable(#[from] io::Error),
    /// It is something else.
    #[error("is not a JWK Set, a JSON object with an array \"keys\" (line {line} column {column})")]
    NotKeys {
        /// Line of the first thing that is wrong, from 1.
        line: usize,
        /// Column of the first thing that is wrong, from 1.
        column: usize,
    },
    /// An issuer publishes more than are looked at.
    #[error("has {count} keys, more than {PUBLISHED_MAX}")]
    TooMany {
        /// How many it has.
        count: usize,
    },
    /// None of its keys can be used.
    #[error("has no key that can be used{}", listed(.unused))]
    NoKey {
        /// Why, key by key.
        unused: Vec<String>,
    },
}

/// The members of a set, unread.
fn listed_in(text: &[u8]) -> Result<Vec<&RawValue>, KeysError> {
    #[derive(serde::Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    // What serde says of a fault may quote a secret.
    let not_keys =
        |error: serde_json::Error| KeysError::NotKeys { line: error.line(), column: error.column() };
    serde_json::from_slice(text).map(|set: Set<'_>| set.keys).map_err(not_keys)
}

fn listed(unused: &[String]) -> String {
    first_of(unused).map(|reason| format!("; {reason}")).collect()
}

/// The first reasons, and how many others there are.
fn first_of(unused: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    let rest = unused.len().saturating_sub(UNUSED_TOLD);
    let others = (rest > 0).then(|| Cow::Owned(format!("and {rest} others")));
    unused.iter().take(UNUSED_TOLD).map(|reason| Cow::Borrowed(reason.as_str())).chain(others)
}

impl Keys {
    /// Reads a file's text.
    pub(super) fn of_file(text: &[u8]) -> Result<Self, KeysError> {
        Self::of(&listed_in(text)?, Key::new)
    }

    /// Reads what an issuer publishes. What everybody can read is no secret, whatever it calls itself.
    pub(super) fn of_issuer(text: &[u8]) -> Result<Self, KeysError> {
        let set = listed_in(text)?;
        if set.len() > PUBLISHED_MAX {
            return Err(KeysError::TooMany { count: set.len() });
        }
        Self::of(&set, |jwk| {
            let is_secret = matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_));
            if is_secret { Err("it is a secret (kty oct), and published") } else { Key::new(jwk) }
        })
    }

    fn of(set: &[&RawValue], read: fn(&Jwk) -> Result<Key, &'static str>) -> Result<Self, KeysError> {
        let (mut keys, mut unused) = (Vec::new(), Vec::new());
        for (index, text) in set.iter().enumerate() {
            let jwk = serde_json::from_str::<Jwk>(text.get());
            let id = jwk.as_ref().ok().and_then(|jwk| jwk.common.key_id.clone());
            match jwk.map_err(|_| "it is not a JSON Web Key").and_then(|jwk| read(&jwk)) {
                Ok(key) => keys.push(key),
                Err(why) => {
                    let id = id.map_or_else(String::new, |id| format!(" (kid {:?})", quoted(&id)));
                    let name = format!("/keys/{index}{id}");
                    unused.push(format!("{name}: {why}"));
                }
            }
        }
        if keys.is_empty() { Err(KeysError::NoKey { unused }) } else { Ok(Self { keys, unused }) }
    }

    /// The keys that are not used, and why, as the log tells it.
    pub(super) fn unused_told(&self) -> impl Iterator<Item = Cow<'_, str>> {
        first_of(&self.unused)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }

    /// Whether one of them has this name.
    pub(super) fn know(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// Whether one of them is a secret.
    pub(super) fn have_secrets(&self) -> bool {
        self.keys.iter().any(|key| key.algorithm == Algorithm::HS256)
    }

    /// The key that a token's header asks for, or the reason why there is not exactly one.
    pub(super) fn find(&self, header: &Header) -> Result<&Key, String> {
        let fits = |key: &&Key| {
            key.algorithm == header.alg && header.kid.as_ref().is_none_or(|kid| key.id.as_ref() == Some(kid))
        };
        let mut fitting = self.keys.iter().filter(fits);
        match (fitting.next(), fitting.next(), &header.kid) {
            (Some(key), None, _) => Ok(key),
            (Some(_), Some(_), None) => Err(format!(
                "several keys of the broker's are for {:?}, and the token's header does not name one (kid)",
                header.alg
            )),
            (Some(_), Some(_), Some(kid)) => {
                Err(format!("several keys of the broker's have the name {kid:?} (the token's kid)"))
            }
            (None, _, Some(kid)) if self.know(kid) => {
                Err(format!("the broker's key {kid:?} (the token's kid) is not for {:?}", header.alg))
            }
            (None, _, Some(kid)) => Err(format!(
                "the token's kid {kid:?} is none of the broker's keys: was it made with another key file?"
            )),
            (None, _, None) => {
                Err(format!("no key of the broker's is for {:?}, the token's alg", header.alg))
            }
        }
    }
}

impl Key {
    /// Reads a key, or says why it is of no use.
    fn new(jwk: &Jwk) -> Result<Self, &'static str> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return Err("its use is not sig");
        }
        if common.key_operations.as_ref().is_some_and(|all| !all.contains(&KeyOperations::Verify)) {
            return Err("its key_ops have no verify");
        }
        let (algorithm, named) = match &jwk.algorithm {
            AlgorithmParameters::OctetKey(_) => (Algorithm::HS256, KeyAlgorithm::HS256),
            AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
            }
            AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, KeyAlgorithm::ES256)
            }
            AlgorithmParameters::EllipticCurve(_)
            | AlgorithmParameters::OctetKeyPair(_)
            | AlgorithmParameters::Other(_)
            | _ => return Err("its kty or crv is none of RSA, EC with P-256, OKP with Ed25519 and oct"),
        };
        if common.key_algorithm.is_some_and(|alg| alg != named) {
            return Err("its alg is none of RS256, ES256, EdDSA and HS256, or not one of its kty");
        }
        let verifying = DecodingKey::from_jwk(jwk).map_err(|_| "its parameters are not base64url")?;
        if let AlgorithmParameters::RSA(parameters) = &jwk.algorithm
            && parameters.n.len() * 6 < MODULUS_BITS_MIN
        {
            return Err("its modulus has fewer than 2048 bits");
        }
        if algorithm == Algorithm::HS256
            && verifying.try_get_as_bytes().is_ok_and(|secret| secret.len() < SECRET_BYTES_MIN)
        {
            return Err("its secret has fewer than 32 bytes");
        }
        if algorithm == Algorithm::EdDSA && verifying.try_get_as_bytes().is_ok_and(|point| point.len() != 32)
        {
            return Err("its x has not 32 bytes");
        }
        if algorithm == Algorithm::ES256
            && verifying.try_get_as_bytes().is_ok_and(|point| point.len() != P256_POINT_BYTES)
        {
            return Err("its x and y have not 32 bytes each");
        }
        Ok(Self { id: common.key_id.clone(), algorithm, verifying })
    }
}

/// Reads a file of keys. Blocks.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Whether others than the file's owner and its group can read it.
pub(super) fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA";
    const POINT: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn unused(key: &str) -> String {
        match Keys::of_file(format!(r#"{{"keys":[{key}]}}"#).as_bytes()) {
            Err(KeysError::NoKey { unused }) => unused.join("\n"),
            Err(error) => panic!("{key}: {error}"),
            Ok(_) => panic!("{key} can be used"),
        }
    }

    fn header(alg: Algorithm, kid: Option<&str>) -> Header {
        Header { kid: kid.map(str::to_owned), ..Header::new(alg) }
    }

    #[test]
    fn keys_of_other_kinds_and_weak_ones_are_not_used() {
        let rsa =
            |n: usize, rest: &str| format!(r#"{{"kty":"RSA","e":"AQAB","n":"{}"{rest}}}"#, "x".repeat(n));
        for (key, why) in [
            (format!(r#"{{"kty":"oct","k":"{}"}}"#, &SECRET[..40]), "fewer than 32 bytes"),
            (format!(r#"{{"kty":"oct","k":"{SECRET}","alg":"RS256"}}"#), "alg"),
            (format!(r#"{{"kty":"oct","k":"{SECRET}","alg":"HS512"}}"#), "alg"),
            (format!(r#"{{"kty":"oct","k":"{SECRET}","use":"enc"}}"#), "use"),
            (format!(r#"{{"kty":"oct","k":"{SECRET}","key_ops":["sign"]}}"#), "key_ops"),
            (r#"{"kty":"oct","k":"***"}"#.to_owned(), "base64url"),
            (rsa(172, ""), "2048 bits"),
            (rsa(342, r#","alg":"HS256""#), "alg"),
            (rsa(342, r#","alg":"PS256""#), "alg"),
            (format!(r#"{{"kty":"OKP","crv":"P-256","x":"{POINT}"}}"#), "crv"),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, &POINT[..20]), "32 bytes"),
            (r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"e"}"#.to_owned(), "kid \"e\""),
            (format!(r#"{{"kty":"EC","crv":"P-256","x":"{POINT}","y":"AA"}}"#), "32 bytes each"),
            (format!(r#"{{"kty":"EC","crv":"P-384","x":"{POINT}","y":"{POINT}"}}"#), "crv"),
            (format!(r#"{{"kty":"EC","crv":"secp256k1","x":"{POINT}","y":"{POINT}"}}"#), "crv"),
            (format!(r#"{{"kty":"EC","crv":"P-256","x":"{POINT}","y":"{POINT}","alg":"ES384"}}"#), "alg"),
            (r#"{"kty":"AKP"}"#.to_owned(), "kty"),
            ("5".to_owned(), "JSON Web Key"),
        ] {
            let told = unused(&key);
            assert!(told.contains(why) && !told.contains(&SECRET[..8]), "{key}: {told}");
        }
        let both = format!(r#"{{"keys":[5,{{"kty":"oct","k":"{SECRET}"}}]}}"#);
        let keys = Keys::of_file(both.as_bytes()).unwrap();
        assert_eq!((keys.count(), keys.unused.len(), keys.have_secrets()), (1, 1, true));
    }

    #[test]
    fn of_many_keys_that_are_not_used_a_few_are_told() {
        let key = |n: usize| format!(r#"{{"kty":"AKP","kid":"{n}-{}"}}"#, "x".repeat(10_000));
        let set = |count: usize, rest: &str| {
            let keys: Vec<_> = (0..count).map(key).chain([rest.to_owned()]).collect();
            Keys::of_file(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes())
        };
        let used = set(25, &format!(r#"{{"kty":"oct","k":"{SECRET}"}}"#)).unwrap();
        assert_eq!(used.unused.len(), 25);
        let told: Vec<_> = used.unused_told().collect();
        assert!(told.len() == 11 && told[10] == "and 15 others", "{told:?}");
        assert!(
            told[0].starts_with("/keys/0 (kid \"0-xxx") && told.iter().all(|one| one.len() < 1_000),
            "{told:?}"
        );
        let none = set(11, "5").map(|_| ()).unwrap_err().to_string();
        assert!(none.ends_with("; and 2 others") && none.len() < 10_000, "{none}");
    }

    #[test]
    fn a_file_that_is_none_is_not_quoted() {
        for text in ["", "{}", r#"{"keys":"hidden"}"#, "hidden", "[]", r#"{"keys":[}"#] {
            let error = Keys::of_file(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("JWK Set") && !error.contains("hidden"), "{text}: {error}");
        }
    }

    #[test]
    fn exactly_one_key_has_to_fit() {
        let key = |kid: &str| format!(r#"{{"kty":"oct","k":"{SECRET}"{kid}}}"#);
        let pair = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{POINT}","kid":"a"}}"#);
        let text = format!(r#"{{"keys":[{},{},{pair}]}}"#, key(r#","kid":"a""#), key(r#","kid":"b""#));
        let keys = Keys::of_file(text.as_bytes()).unwrap();
        let found =
            |alg, kid| keys.find(&header(alg, kid)).ok().map(|key| (key.id.clone().unwrap(), key.algorithm));
        let (hs, ed) = (Algorithm::HS256, Algorithm::EdDSA);
        assert_eq!(found(hs, Some("a")), Some(("a".to_owned(), hs)));
        assert_eq!(found(ed, Some("a")), Some(("a".to_owned(), ed)));
        assert_eq!(found(ed, None), Some(("a".to_owned(), ed)));
        for (alg, kid) in [
            (hs, None),
            (hs, Some("c")),
            (ed, Some("b")),
            (Algorithm::RS256, Some("a")),
            (Algorithm::HS512, None),
        ] {
            assert_eq!(found(alg, kid), None, "{alg:?} {kid:?}");
        }
    }

    #[test]
    fn what_is_published_is_no_secret() {
        let secret = format!(r#"{{"kty":"oct","k":"{SECRET}","kid":"s"}}"#);
        let point = format!(r#"{{"kty":"EC","crv":"P-256","x":"{POINT}","y":"{POINT}","kid":"e"}}"#);
        // What Keycloak publishes besides: a key to encrypt with.
        let other = r#"{"kty":"RSA","e":"AQAB","n":"AQAB","use":"enc","alg":"RSA-OAEP","kid":"o"}"#;
        let set = |keys: &[&str]| format!(r#"{{"keys":[{}]}}"#, keys.join(","));
        let keys = Keys::of_issuer(set(&[&secret, &point, other]).as_bytes()).unwrap();
        assert_eq!((keys.count(), keys.unused.len(), keys.have_secrets()), (1, 2, false));
        assert!(keys.know("e") && !keys.know("s"));
        assert!(keys.find(&header(Algorithm::ES256, Some("e"))).is_ok());
        let refused = |kid| keys.find(&header(Algorithm::HS256, kid)).err().unwrap();
        assert!(refused(Some("s")).starts_with("the token's kid \"s\" is none of the broker's keys"));
        assert!(refused(Some("e")).contains("\"e\" (the token's kid) is not for HS256"));
        assert!(matches!(Keys::of_issuer(set(&[&secret]).as_bytes()), Err(KeysError::NoKey { .. })));
        let many = set(&vec![&*point; PUBLISHED_MAX + 1]);
        assert!(matches!(Keys::of_issuer(many.as_bytes()), Err(KeysError::TooMany { count: 101 })));
        assert!(Keys::of_file(many.as_bytes()).is_ok());
    }
}
