//! A started broker: the real program, on a port of loopback, with a folder of its own.

use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, SystemTime},
};

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nearcast_client::Connect;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::within;

const SECRET: [u8; 48] = [7; 48];

pub(crate) struct Broker {
    folder: TempDir,
    arguments: Vec<String>,
    address: String,
    scheme: &'static str,
    child: Option<Child>,
}

/// The program: `$NEARCAST`, or what `make` builds.
pub(crate) fn program() -> PathBuf {
    let built = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/debug/nearcast"));
    let program = std::env::var_os("NEARCAST").map_or_else(built, PathBuf::from);
    assert!(
        program.exists(),
        "there is no {}: cargo build --package broker --bin nearcast, or set NEARCAST",
        program.display()
    );
    program
}

impl Broker {
    /// In memory.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// What is acknowledged outlives it.
    pub(crate) async fn durable() -> Self {
        Self::with(&["--data", "{folder}/data"]).await
    }

    /// With settings of a file.
    pub(crate) async fn configured(settings: &str) -> Self {
        let mut broker = Self::prepared(&["--config", "{folder}/settings.toml"]);
        std::fs::write(broker.folder.path().join("settings.toml"), settings).expect("written");
        broker.run().await;
        broker
    }

    /// Tokens are wanted; [`token`] makes them.
    pub(crate) async fn with_tokens() -> Self {
        Self::with(&["--auth", "jwt", "--jwks", "{folder}/keys.json"]).await
    }

    /// With TLS; what is returned is whom to trust.
    pub(crate) async fn with_tls() -> (Self, Vec<u8>) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let mut broker = Self::prepared(&[]);
        for (name, pem) in [("cert", &certificate), ("key", &key)] {
            let path = broker.folder.path().join(format!("{name}.pem"));
            std::fs::write(&path, pem).expect("written");
            broker.arguments.extend([format!("--tls-{name}"), path.display().to_string()]);
        }
        broker.scheme = "https";
        broker.run().await;
        (broker, certificate.into_bytes())
    }

    async fn with(arguments: &[&str]) -> Self {
        let mut broker = Self::prepared(arguments);
        broker.run().await;
        broker
    }

    fn prepared(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = json!({"kty": "oct", "kid": "k1", "k": URL_SAFE_NO_PAD.encode(SECRET)});
        std::fs::write(folder.path().join("keys.json"), json!({"keys": [key]}).to_string()).expect("written");
        let path = folder.path().display().to_string();
        let arguments = arguments.iter().map(|argument| argument.replace("{folder}", &path)).collect();
        Self { folder, arguments, address: "127.0.0.1:0".to_owned(), scheme: "http", child: None }
    }

    /// Starts it, where it was before if it was started before.
    pub(crate) async fn run(&mut self) {
        let mut child = Command::new(program())
            .args(["serve", "--listen", &self.address])
            .args(&self.arguments)
            .current_dir(self.folder.path())
            // A machine that is busy with other tests is not to make the broker refuse events.
            .env("BROKER__ADMISSION__DELAY_MS", "60000")
            .env("BROKER__AUTH__LEEWAY_S", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the broker starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        self.address = loop {
            let line = within("the broker to listen", lines.next_line()).await.expect("its output");
            let line = line.expect("the broker has ended before it listened");
            if let Some((_, address)) = line.split_once("nearcast listens on ") {
                break address.split_once("://").expect("a URL").1.trim().to_owned();
            }
        };
        // Who does not take its output would stop it one day.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.child = Some(child);
    }

    /// Ends it as a power cut would, as far as the program is concerned.
    pub(crate) async fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().await.expect("it ends");
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// A session that tries again quickly.
    pub(crate) fn connect(&self, client: &str) -> Connect {
        nearcast_client::connect(self.url(), client)
            .backoff(Duration::from_millis(20), Duration::from_millis(200))
    }
}

/// A token for a client, that ends in so many seconds.
pub(crate) fn token(sub: &str, scope: &str, lasts_s: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let claims = json!({"sub": sub, "scope": scope, "exp": now + lasts_s});
    let head = json!({"alg": "HS256", "kid": "k1"});
    let text = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &SECRET);
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes())))
}
