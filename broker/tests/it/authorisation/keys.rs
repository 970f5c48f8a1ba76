//! The file of keys: what is wrong with it at the start, and what becomes of it later.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tempfile::TempDir;

use super::frames::open;
use super::tokens::{FORGER, ISSUER, claims};
use super::{guarded, tokens};
use crate::harness::{eventually, run_to_end};

#[test]
fn a_broker_without_keys_does_not_start() {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("none.json", r#"{"keys": []}"#);
    write("other.json", r#"{"keys": [{"kty": "EC", "kid": "e1", "crv": "P-256", "x": "AA", "y": "AA"}]}"#);
    write("broken.json", r#"{"keys": hidden"#);
    write("weak.json", r#"{"keys": [{"kty": "oct", "k": "aGlkZGVu"}]}"#);
    for (args, word) in [
        (&["--auth", "jwt"][..], "auth.jwks"),
        (&["--jwks", "none.json"], "auth.mode"),
        (&["--auth", "jwt", "--jwks", "missing.json"], "missing.json"),
        (&["--auth", "jwt", "--jwks", "."], "cannot be read"),
        (&["--auth", "jwt", "--jwks", "none.json"], "no key"),
        (&["--auth", "jwt", "--jwks", "other.json"], "kid \"e1\""),
        (&["--auth", "jwt", "--jwks", "broken.json"], "line 1"),
        (&["--auth", "jwt", "--jwks", "weak.json"], "32 bytes"),
    ] {
        let output = run_to_end(&[&["serve", "--listen", "127.0.0.1:0"], args].concat(), &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(word), "{args:?}: {told}");
        assert!(!told.contains("hidden") && !told.contains("aGlkZGVu"), "{args:?} tells a secret: {told}");
    }
}

/// A pipe in the place of a file of its data holds it up there. Nobody is let in meanwhile, and keys count before.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_read_before_the_data_and_tokens_asked_for_after_it() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let with_data = || {
        let (serve, jwks) = guarded(&ISSUER, "");
        (serve.args(&["--data", data.to_str().expect("UTF-8")]), jwks)
    };
    with_data().0.start().await.finish().await;
    let made = std::process::Command::new("mkfifo").arg(data.join("tail")).status();
    assert!(made.expect("it runs").success());

    let mut program = with_data().0.listening().await;
    let http = program.http();
    http.get("/healthz").await.expect(200);
    for token in [String::new(), ISSUER.token("ann", "admin"), FORGER.token("ann", "admin")] {
        let problem = http.get(&format!("/v1/clients/ann/events?access_token={token}")).await.problem(503);
        assert_eq!(problem["type"], "urn:nearcast:problem:recovering", "{problem}");
    }
    program.signal("TERM");
    assert_eq!(program.exit_status().await.code(), Some(0), "{}", program.log());

    let (serve, jwks) = with_data();
    std::fs::write(&jwks, r#"{"keys": []}"#).expect("written");
    let (status, told) = serve.try_start().await.err().expect("it has no keys");
    assert!(!status.success() && told.contains("no key"), "{status}: {told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_read_again_when_they_change() {
    let (serve, jwks) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let (old, new) = (ISSUER.token("ann", "subscribe"), FORGER.token("ann", "subscribe"));
    assert_eq!(open(&program, "ann", &new).await.err(), Some(401));
    let mut before = open(&program, "ann", &old).await.expect("it may");
    FORGER.write(&jwks);
    eventually("the new key counts", async || open(&program, "ann", &new).await.ok()).await;
    assert_eq!(open(&program, "ann", &old).await.err(), Some(401));
    // Who is in stays in until its token ends.
    before.assert_quiet().await;
    std::fs::write(&jwks, "{\"keys\": [").expect("written");
    program.says("of before").await;
    open(&program, "ann", &new).await.expect("the keys of before count");
    std::fs::remove_file(&jwks).expect("removed");
    program.says("cannot be read").await;
    open(&program, "ann", &new).await.expect("the keys of before count");
    ISSUER.write(&jwks);
    eventually("the old key counts again", async || open(&program, "ann", &old).await.ok()).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_anybody_can_read_are_told() {
    for (mode, is_told) in [(0o644, true), (0o640, false), (0o600, false)] {
        let (serve, jwks) = guarded(&ISSUER, "");
        std::fs::set_permissions(&jwks, std::fs::Permissions::from_mode(mode)).expect("its owner may");
        let program = serve.start().await;
        let told = "everybody on this machine can read it";
        if is_told {
            program.says(told).await;
        }
        assert_eq!(program.log().contains(told), is_told, "{mode:o}: {}", program.log());
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn issuer_and_audience_count_where_they_are_set() {
    let program =
        guarded(&ISSUER, "issuer = \"https://id.example\"\naudience = \"nearcast\"\n").0.start().await;
    let token = |iss: serde_json::Value, aud: serde_json::Value| {
        let mut claims = claims(Some("ann"), "subscribe");
        claims["iss"] = iss;
        claims["aud"] = aud;
        ISSUER.sign(&claims)
    };
    let (iss, aud) = (json!("https://id.example"), json!("nearcast"));
    open(&program, "ann", &token(iss.clone(), aud.clone())).await.expect("it may");
    open(&program, "ann", &token(iss.clone(), json!(["other", "nearcast"]))).await.expect("it may");
    for (iss, aud) in [
        (json!("https://evil.example"), aud.clone()),
        (json!(null), aud.clone()),
        (iss.clone(), json!("other")),
        (iss.clone(), json!(null)),
        (iss, json!([])),
    ] {
        assert_eq!(
            open(&program, "ann", &token(iss.clone(), aud.clone())).await.err(),
            Some(401),
            "{iss} {aud}"
        );
    }
    assert_eq!(open(&program, "ann", &ISSUER.token("ann", "subscribe")).await.err(), Some(401));
    program.finish().await;
}

/// Beyond loopback it needs no `--insecure`, but is told what a proxy is for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_may_listen_beyond_loopback() {
    let program = guarded(&tokens::ISSUER, "").0.listen("0.0.0.0:0").start().await;
    program.says("without TLS").await;
    program.http().get("/v1/stats").await.problem(401);
    program.finish().await;
}
