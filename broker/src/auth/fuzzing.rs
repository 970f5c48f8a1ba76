//! Doors for fuzzing: tokens and the keys that they are checked with.

use std::sync::LazyLock;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::Value;

use super::keys::{Keys, KeysError};
use super::{Authenticator, Token};
use crate::config::{AuthMode, Config};
use crate::fuzzing::check_refusal;
use crate::model::error::ApiError;

const SECRET: &[u8] = b"a secret of more than thirty-two bytes";
/// From RFC 8037; nobody has what belongs to it.
const POINT: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

static AUTHENTICATOR: LazyLock<Authenticator> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("nearcast-fuzzing-{}.json", std::process::id()));
    let secret = URL_SAFE_NO_PAD.encode(SECRET);
    let keys = format!(
        r#"{{"keys":[{{"kty":"oct","kid":"k1","k":"{secret}"}},{{"kty":"OKP","crv":"Ed25519","kid":"k2","x":"{POINT}"}}]}}"#
    );
    std::fs::write(&path, keys).expect("a place for a file");
    let mut config = Config::default();
    config.auth.mode = AuthMode::Jwt;
    config.auth.jwks = path.display().to_string();
    let authenticator = Authenticator::open(&config).expect("the keys are in order");
    std::fs::remove_file(path).expect("it is there");
    authenticator
});

/// A token as it was sent; or, after a `{`, a line that is its header, and its claims, which are then signed.
pub fn token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sign = |message: &str| {
        crypto::sign(message.as_bytes(), &EncodingKey::from_secret(SECRET), Algorithm::HS256)
            .expect("a signature")
    };
    let sent = match text.split_once('\n') {
        Some((header, claims)) if header.starts_with('{') => {
            let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
            format!("{message}.{}", sign(&message))
        }
        _ => text.to_owned(),
    };
    let checked = AUTHENTICATOR.authenticate(Some(Token::told(sent.clone()))).now_or_never();
    match checked.expect("keys of a file are there") {
        Ok(principal) => {
            let (message, signature) = sent.rsplit_once('.').expect("three parts");
            assert_eq!(signature, sign(message), "somebody else signed it");
            let header = message.split_once('.').and_then(|(header, _)| URL_SAFE_NO_PAD.decode(header).ok());
            let header: Value = serde_json::from_slice(&header.expect("base 64")).expect("JSON");
            assert!(header["alg"] == "HS256" && header.get("crit").is_none_or(Value::is_null), "{header}");
            assert!(principal.expires.is_some_and(|expires| expires >= Instant::now()));
            let named = [&principal.tenant, &principal.client].into_iter().flatten();
            assert!(named.clone().all(|name| name.len() <= 128 && !name.chars().any(char::is_control)));
            assert!(
                principal.tenant.is_some()
                    && principal.client.as_ref().is_none_or(|client| !client.is_empty())
            );
        }
        Err(refusal) => {
            assert!(matches!(
                refusal,
                ApiError::Unauthenticated { has_token: true, .. } | ApiError::TokenExpired
            ));
            check_refusal("", &refusal);
        }
    }
}

/// A set of keys, as of a file and as of an issuer.
pub fn jwks(data: &[u8]) {
    check_keys(data, Keys::of_file(data));
    let published = Keys::of_issuer(data);
    assert!(published.as_ref().is_ok_and(|keys| !keys.have_secrets()) || published.is_err());
    check_keys(data, published);
}

fn check_keys(data: &[u8], read: Result<Keys, KeysError>) {
    match read {
        Ok(keys) => {
            assert!(keys.count() > 0);
            // What is told of a key says which one.
            assert!(keys.unused.iter().all(|why| why.starts_with("/keys/")));
        }
        Err(KeysError::NoKey { unused }) => assert!(unused.iter().all(|why| why.starts_with("/keys/"))),
        Err(KeysError::NotKeys { line, .. }) => {
            assert!(line <= data.iter().filter(|byte| **byte == b'\n').count() + 1);
        }
        Err(KeysError::TooMany { count }) => assert!(count > 100),
        Err(KeysError::Unreadable(error)) => panic!("nothing was opened: {error}"),
    }
}
