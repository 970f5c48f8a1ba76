//! Keys that an issuer publishes: found, fetched, changed, and not to be had.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::publisher::{DOCUMENT, KEYS, Page, Publisher};
use super::tokens::{FORGER, ISSUER, bad, claims, now_s};
use crate::harness::{Answer, Door, Program, Serve, eventually, run_to_end};

/// A broker that asks an issuer by Discovery.
fn asking(publisher: &Publisher) -> Serve {
    Serve::new()
        .args(&["--auth", "oidc", &publisher.name(), "--audience", "nearcast"])
        .config(&settings(publisher))
}

/// Settings by which an issuer on this machine is known and may be asked.
fn settings(publisher: &Publisher) -> String {
    format!("[auth]\nca = {:?}\nprivate_addresses = true\n", publisher.ca())
}

/// Claims as the issuer makes them.
fn issued(publisher: &Publisher, scope: &str) -> Value {
    let mut claims = claims(Some("ann"), scope);
    claims["iss"] = json!(publisher.name());
    claims["aud"] = json!(["nearcast", publisher.url("/userinfo")]);
    claims
}

/// Makes what an issuer shows, which may be about itself.
type MakePage = Box<dyn Fn(&Publisher) -> Page>;

/// Asks for what is ann's.
async fn ask(door: &Door, token: &str) -> Answer {
    ask_for(door, "/v1/clients/ann/subscriptions", token).await
}

async fn ask_for(door: &Door, path: &str, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    door.http().send_with("GET", path, None, &[("authorization", &bearer)], "").await
}

async fn metrics(door: &Door, publisher: &Publisher, id: &str) -> String {
    let operator = ISSUER.sign_by(id, &issued(publisher, "admin"));
    ask_for(door, "/metrics", &operator).await.expect(200).text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_an_issuer_count_by_the_keys_that_it_publishes() {
    let publisher = Publisher::start().await;
    let mut set = ISSUER.jwks();
    // As Keycloak does: one to encrypt with. And two of kinds that nobody knows here.
    let keys = set["keys"].as_array_mut().expect("keys");
    let mut other = keys[1].clone();
    (other["use"], other["alg"], other["kid"]) = (json!("enc"), json!("RSA-OAEP"), json!("o"));
    keys.push(other);
    keys.push(json!({"kty": "AKP", "alg": "ML-DSA-44", "kid": "q", "pub": "AA"}));
    keys.push(json!({"kty": "EC", "crv": "secp256k1", "kid": "k", "x": "AA", "y": "AA"}));
    publisher.publish(set);
    let program = asking(&publisher).start().await;
    for id in ["r", "e", "p"] {
        ask(&program, &ISSUER.sign_by(id, &issued(&publisher, "subscribe"))).await.expect(200);
        ask(&program, &FORGER.sign_by(id, &issued(&publisher, "subscribe"))).await.problem(401);
    }
    // What everybody can read is no secret to sign with.
    ask(&program, &ISSUER.sign_by("h", &issued(&publisher, "subscribe"))).await.problem(401);
    for (name, token, _) in bad(&issued(&publisher, "subscribe")) {
        let status = ask(&program, &token).await.status;
        assert_eq!(status, 401, "{name}");
    }
    for (claim, value) in [
        ("iss", json!(format!("{}/", publisher.name()))),
        ("iss", json!("https://id.example")),
        ("iss", json!(null)),
        ("aud", json!("other")),
        ("aud", json!(null)),
        ("exp", json!(now_s() - 60)),
    ] {
        let mut claims = issued(&publisher, "subscribe");
        claims[claim] = value.clone();
        assert_eq!(ask(&program, &ISSUER.sign_by("p", &claims)).await.status, 401, "{claim} {value}");
    }
    let figures = metrics(&program, &publisher, "p").await;
    for line in ["nearcast_auth_keys 3", "nearcast_auth_keys_unused 4", "nearcast_auth_keys_failures_total 0"]
    {
        assert!(figures.contains(&format!("{line}\n")), "{line}: {figures}");
    }
    for told in ["kid \"o\"): its use is not sig", "kid \"h\"): it is a secret", "kid \"q\")"] {
        program.says(told).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_and_tenants_are_where_issuers_put_them() {
    let publisher = Publisher::start().await;
    publisher.publish(ISSUER.jwks());
    let settings = format!("{}tenant_claim = \"https://app.example/org\"\n", settings(&publisher));
    let program = asking(&publisher).config(&settings).start().await;
    let token = |changes: Value| {
        let mut claims = issued(&publisher, "openid");
        for (name, value) in changes.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        ISSUER.sign_by("r", &claims)
    };
    for (changes, status) in [
        (json!({}), 403),
        (json!({"scp": ["openid", "subscribe"]}), 200),
        (json!({"scp": "openid subscribe"}), 200),
        (json!({"scp": ["openid"], "scope": "subscribe"}), 200),
        (json!({"scp": ["subscriber"]}), 403),
        (json!({"scp": []}), 403),
        (json!({"scp": {"subscribe": true}}), 401),
    ] {
        assert_eq!(ask(&program, &token(changes.clone())).await.status, status, "{changes}");
    }
    // Who is of a tenant does not see what is about all of them.
    for (changes, status) in [
        (json!({"scp": ["admin"]}), 200),
        (json!({"scp": ["admin"], "tenant": "acme"}), 200),
        (json!({"scp": ["admin"], "https://app.example/org": "acme"}), 403),
        (json!({"scp": ["admin"], "https://app.example/org": 5}), 401),
    ] {
        assert_eq!(ask_for(&program, "/v1/stats", &token(changes.clone())).await.status, status, "{changes}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_fetched_when_a_token_names_it_and_not_all_the_time() {
    let publisher = Publisher::start().await;
    let keys_of = |ids: &[&str], set: Value| {
        let all = set["keys"].as_array().expect("keys").clone();
        json!({"keys": all.into_iter().filter(|key| ids.iter().any(|id| key["kid"] == *id)).collect::<Vec<_>>()})
    };
    publisher.publish(keys_of(&["r"], ISSUER.jwks()));
    let url = publisher.url(KEYS);
    let program = Serve::new()
        .args(&["--auth", "jwt", "--jwks", &url, "--audience", "nearcast"])
        .config(&settings(&publisher));
    let program = program.start().await;
    let (old, new) = (
        ISSUER.sign_by("r", &issued(&publisher, "subscribe")),
        FORGER.sign_by("p", &issued(&publisher, "subscribe")),
    );
    ask(&program, &old).await.expect(200);
    assert_eq!((publisher.asked(DOCUMENT), publisher.asked(KEYS)), (0, 1), "the keys' own address is set");
    // Many come with the new key at once, and all of them wait for one fetch.
    publisher.publish(keys_of(&["p"], FORGER.jwks()));
    let door: &Door = &program;
    let answers = futures_util::future::join_all((0..20).map(|_| ask(door, &new))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(publisher.asked(KEYS), 2);
    // The one that is gone does not count, and to ask for it again is too early.
    let started = Instant::now();
    for _ in 0..5 {
        ask(&program, &old).await.problem(401);
    }
    assert!(started.elapsed() < Duration::from_secs(9), "nobody waits for what is not fetched");
    assert_eq!(publisher.asked(KEYS), 2);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_keys_count_while_the_issuer_is_away() {
    let publisher = Publisher::start().await;
    publisher.publish(ISSUER.jwks());
    let program = asking(&publisher).start().await;
    let token = ISSUER.sign_by("p", &issued(&publisher, "subscribe"));
    ask(&program, &token).await.expect(200);
    assert_eq!(program.http().get("/readyz").await.expect(200).text(), "ready\n");
    for page in [Page::Status(503), Page::Document(json!({"keys": []}), "")] {
        publisher.show(KEYS, page);
    }
    let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    header.kid = Some("new".to_owned());
    let unknown = jsonwebtoken::encode(&header, &json!({}), &jsonwebtoken::EncodingKey::from_secret(b"x"));
    ask(&program, &unknown.expect("a token")).await.problem(401);
    ask(&program, &token).await.expect(200);
    assert!(
        program.http().get("/readyz").await.expect(200).text().starts_with("ready, with the keys of before")
    );
    program.says("the keys that").await;
    // It is tried again, and each failure is logged once.
    eventually("two failures", async || {
        let figures = metrics(&program, &publisher, "p").await;
        let line = figures.lines().find_map(|line| line.strip_prefix("nearcast_auth_keys_failures_total "));
        line.is_some_and(|count| count.parse::<u32>().expect("a number") >= 2).then_some(())
    })
    .await;
    assert_eq!(program.log().matches("the keys that").count(), 1, "{}", program.log());
    let figures = metrics(&program, &publisher, "p").await;
    let age = figures.lines().find_map(|line| line.strip_prefix("nearcast_auth_keys_age_seconds "));
    assert!(age.is_some_and(|age| age.parse::<f64>().expect("a number") > 0.5), "{age:?}");
    publisher.publish(ISSUER.jwks());
    program.says("can be fetched again").await;
    assert_eq!(program.http().get("/readyz").await.expect(200).text(), "ready\n");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_its_issuer_starts_and_is_not_ready() {
    let mut publisher = Publisher::absent().await;
    publisher.publish(ISSUER.jwks());
    let program = asking(&publisher).listening().await;
    program.says("Connection refused").await;
    let http = program.http();
    http.get("/healthz").await.expect(200);
    let problem = http.get("/readyz").await.problem(503);
    assert_eq!(problem["phase"], "keys of the issuer", "{problem}");
    let token = ISSUER.sign_by("p", &issued(&publisher, "subscribe"));
    let answer = ask(&program, &token).await;
    assert_eq!(answer.headers["retry-after"], "1");
    let problem = answer.problem(503);
    assert_eq!(problem["type"], "urn:nearcast:problem:recovering", "{problem}");
    http.get("/v1/clients/ann/subscriptions").await.problem(401);
    publisher.appear().await;
    eventually("it is ready", async || (http.get("/readyz").await.status == 200).then_some(())).await;
    ask(&program, &token).await.expect(200);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuer_is_known_by_its_certificate() {
    let publisher = Publisher::start().await;
    publisher.publish(ISSUER.jwks());
    let other = Publisher::absent().await;
    let program = asking(&publisher).config(&settings(&other)).listening().await;
    program.says("invalid peer certificate").await;
    program.http().get("/readyz").await.problem(503);
    assert_eq!(publisher.asked(DOCUMENT), 0);
    program.finish().await;
    let folder = tempfile::TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("empty.pem"), "").expect("written");
    for name in ["missing.pem", "empty.pem"] {
        let env = [("BROKER__AUTH__CA", name)];
        let args = ["serve", "--listen", "127.0.0.1:0", "--auth", "oidc", "https://id.example"];
        let output = run_to_end(&args, &env, folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(&format!("auth.ca {name}")), "{name}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_issuer_must_not_answer_is_told_and_lets_nobody_in() {
    let one = |key: &Value| json!({"keys": [key]});
    let jwks = ISSUER.jwks();
    let (secret, good) = (one(&jwks["keys"][0]), one(&jwks["keys"][3]));
    let many = json!({"keys": vec![&jwks["keys"][3]; 101]});
    let document = |issuer: &str, jwks_uri: &str| {
        Page::Document(json!({"issuer": issuer, "jwks_uri": jwks_uri}), "max-age=3600")
    };
    let cases: Vec<(&str, MakePage, &str)> = vec![
        (KEYS, Box::new(|publisher| Page::Elsewhere(publisher.url("/elsewhere"))), "a redirect"),
        (DOCUMENT, Box::new(|publisher| Page::Elsewhere(publisher.url("/elsewhere"))), "a redirect"),
        (KEYS, Box::new(|_| Page::Endless), "more than 262144 bytes"),
        (DOCUMENT, Box::new(|_| Page::Endless), "more than 262144 bytes"),
        (KEYS, Box::new(|_| Page::Stuck), "within 10 s"),
        (KEYS, Box::new(|_| Page::Status(404)), "404"),
        (KEYS, Box::new(|_| Page::Text("<html>".to_owned())), "not a JWK Set"),
        (DOCUMENT, Box::new(|_| Page::Text("<html>".to_owned())), "not that of an issuer"),
        (KEYS, Box::new(move |_| Page::Document(secret.clone(), "")), "it is a secret"),
        (KEYS, Box::new(|_| Page::Document(json!({"keys": []}), "")), "no key that can be used"),
        (KEYS, Box::new(move |_| Page::Document(many.clone(), "")), "101 keys"),
        (
            DOCUMENT,
            Box::new(move |publisher| document("https://id.example", &publisher.url(KEYS))),
            "of the issuer \"https://id.example\"",
        ),
        (
            DOCUMENT,
            Box::new(move |publisher| document(&format!("{}/", publisher.name()), &publisher.url(KEYS))),
            "letter by letter",
        ),
        (
            DOCUMENT,
            Box::new(move |publisher| {
                document(&publisher.name(), &publisher.url(KEYS).replace("https://", "http://"))
            }),
            "jwks_uri is not an https address",
        ),
    ];
    for (path, page, told) in cases {
        let publisher = Publisher::start().await;
        publisher.publish(good.clone());
        publisher.show("/elsewhere", Page::Document(good.clone(), ""));
        publisher.show(path, page(&publisher));
        let program = asking(&publisher).listening().await;
        program.says(told).await;
        program.http().get("/readyz").await.problem(503);
        let token = ISSUER.sign_by("p", &issued(&publisher, "subscribe"));
        ask(&program, &token).await.problem(503);
        assert_eq!(publisher.asked("/elsewhere"), 0, "{told}");
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_are_not_public_are_asked_only_if_a_setting_says_so() {
    let publisher = Publisher::start().await;
    publisher.publish(ISSUER.jwks());
    let ca = format!("[auth]\nca = {:?}\n", publisher.ca());
    let port = publisher.url("").rsplit_once(':').expect("a port").1.to_owned();
    for host in ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"] {
        let url = format!("https://{host}:{port}{KEYS}");
        let program: Program =
            Serve::new().args(&["--auth", "jwt", "--jwks", &url]).config(&ca).listening().await;
        program.says("is not public, and auth.private_addresses is false").await;
        program.http().get("/readyz").await.problem(503);
        program.finish().await;
    }
    assert_eq!(publisher.asked(KEYS), 0);
}
