//! `nearcast token`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Serve, run_to_end};

/// What a call ends with: its code, standard output and standard error.
fn token(args: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let output = run_to_end(&[&["token"], args].concat(), &[], folder);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    (output.status.code(), out, err)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_takes_the_tokens_of_a_file_that_is_made_for_the_first() {
    let folder = TempDir::new().expect("a folder");
    let keys = folder.path().join("keys.json");
    let (code, ann, told) = token(&["ann"], folder.path());
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(&format!("made {} with", keys.display())), "{told}");
    assert_eq!(ann.lines().count(), 1, "{ann}");
    assert_eq!(std::fs::metadata(&keys).expect("it is there").permissions().mode() & 0o777, 0o600);
    // The next one finds it, changes nothing and says nothing.
    let before = std::fs::read(&keys).expect("read");
    let path = keys.to_str().expect("UTF-8");
    let (code, root, told) =
        token(&["root", "--scope", "admin", "--keys", path, "--ttl", "5m"], folder.path());
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let (_, other, _) = token(&["ann", "--tenant", "other", "--scope", "subscribe,publish"], folder.path());
    assert_eq!(std::fs::read(&keys).expect("read"), before);

    let program = Serve::new().args(&["--auth", "jwt", "--jwks", path]).start().await;
    let http = program.http();
    let ask = async |token: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {}", token.trim());
        let headers = [("authorization", bearer.as_str())];
        http.send_with(method, path, Some("application/json"), &headers, body.to_owned()).await
    };
    for (token, path, status) in [
        (&ann, "/v1/clients/ann/subscriptions", 200),
        (&ann, "/v1/clients/bob/subscriptions", 403),
        (&ann, "/v1/stats", 403),
        (&root, "/v1/stats", 200),
        (&ann.replacen('.', ".x", 1), "/v1/clients/ann/subscriptions", 401),
    ] {
        assert_eq!(ask(token, "GET", path, "").await.status, status, "{path}");
    }
    // The same name of another tenant is somebody else.
    let wish = json!({"filters": [{}]}).to_string();
    ask(&ann, "PUT", "/v1/clients/ann/subscriptions/s", &wish).await.expect(201);
    let listed = ask(&other, "GET", "/v1/clients/ann/subscriptions", "").await;
    assert_eq!(listed.json(), json!([]));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_with_the_public_half_takes_what_a_private_key_signs() {
    let folder = TempDir::new().expect("a folder");
    let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let ed25519 = Ed25519KeyPair::generate().expect("a key");
    for (name, der) in [
        ("p256.pem", p256.to_pkcs8v1().expect("its encoding")),
        ("ed25519.pem", ed25519.to_pkcs8v1().expect("its encoding")),
    ] {
        let base64 = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{base64}\n-----END PRIVATE KEY-----\n");
        std::fs::write(folder.path().join(name), pem).expect("written");
        let (code, set, told) = token(&["--keys", name, "--public"], folder.path());
        assert_eq!((code, told.as_str()), (Some(0), ""));
        assert!(!set.contains("\"d\""), "no private half: {set}");
        let keys = folder.path().join("keys.json");
        std::fs::write(&keys, set).expect("written");
        let (code, ann, told) = token(&["ann", "--keys", name], folder.path());
        assert_eq!((code, told.as_str()), (Some(0), ""), "{name}");

        let program =
            Serve::new().args(&["--auth", "jwt", "--jwks", keys.to_str().expect("UTF-8")]).start().await;
        let http = program.http();
        for (token, path, status) in [
            (&ann, "/v1/clients/ann/subscriptions", 200),
            (&ann, "/v1/clients/bob/subscriptions", 403),
            (&ann.replacen('.', ".x", 1), "/v1/clients/ann/subscriptions", 401),
        ] {
            let bearer = format!("Bearer {}", token.trim());
            let headers = [("authorization", bearer.as_str())];
            let answer = http.send_with("GET", path, None, &headers, String::new()).await;
            assert_eq!(answer.status, status, "{name} {path}");
        }
        program.finish().await;
    }
    let other =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode([48; 40]));
    for (text, told) in [
        (other.as_str(), "neither one of P-256 (ES256) nor of Ed25519 (EdDSA)"),
        ("-----BEGIN PUBLIC KEY-----\naGlkZGVu\n-----END PUBLIC KEY-----\n", "it is no private key"),
        (
            r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"}]}"#,
            "has no public half",
        ),
    ] {
        std::fs::write(folder.path().join("bad"), text).expect("written");
        let (code, out, err) = token(&["--keys", "bad", "--public"], folder.path());
        assert!(code == Some(1) && out.is_empty() && err.contains(told), "{text}: {err}");
        assert!(!err.contains("aGlkZGVu"), "{err}");
    }
}

#[test]
fn what_no_broker_would_take_is_told_and_no_secret_with_it() {
    let folder = TempDir::new().expect("a folder");
    let keys = folder.path().join("keys.json");
    for (args, told) in [
        (&["ann", "--scope", "subscribe everything"][..], "there is no scope \"everything\""),
        (&["", "--scope", "publish"], "a client's name"),
        (&["ann", "--ttl", "0s"], "above 0"),
        (&["ann", "--tenant", ""], "a tenant's name"),
        (&["ann", "--keys", "nowhere/keys.json"], "cannot make nowhere/keys.json"),
    ] {
        let (code, out, err) = token(args, folder.path());
        assert!(code != Some(0) && out.is_empty() && err.contains(told), "{args:?}: {err}");
    }
    assert!(!keys.exists());
    for (text, told) in [
        ("hidden", "it is not a JWK Set"),
        (r#"{"keys": [{"kty": "oct", "k": "hidden"}]}"#, "it has no secret"),
        (r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "hidden"}]}"#, "it has no secret"),
    ] {
        std::fs::write(&keys, text).expect("written");
        let (code, out, err) = token(&["ann"], folder.path());
        assert!(code == Some(1) && out.is_empty() && err.contains(told), "{text}: {err}");
        assert!(!err.contains("hidden"), "{err}");
    }
}
