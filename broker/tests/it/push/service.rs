//! A push service with its browsers: it takes messages over HTTPS, reads them as a browser does (RFC 8291), checks their sender
//! (RFC 8292), and answers as it is told.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::stream;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::harness::{Secured, certified, eventually, listener};

/// The contact that brokers in these tests have.
pub(super) const CONTACT: &str = "mailto:ops@nearcast.example";

/// How a message is answered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Status(u16),
    /// With `Retry-After` of a second.
    Later(u16),
    /// A redirect to another path.
    Elsewhere,
    /// A body without an end.
    Endless,
    /// Nothing.
    Stuck,
}

/// A message as a browser got it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) path: String,
    pub(super) text: Value,
    pub(super) headers: HeaderMap,
}

/// A browser that has subscribed.
struct Browser {
    key: PrivateKey,
    point: Vec<u8>,
    secret: [u8; 16],
}

#[derive(Default)]
struct Shared {
    origin: String,
    browsers: Mutex<HashMap<String, Browser>>,
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    messages: Mutex<Vec<Message>>,
}

/// A push service.
pub(super) struct Service {
    folder: TempDir,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Service {
    pub(super) async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let tls = TlsAcceptor::from(Arc::new(certified(&folder.path().join("ca.pem"))));
        let tcp = listener(0).await;
        let origin = format!("https://localhost:{}", tcp.local_addr().expect("an address").port());
        let shared = Arc::new(Shared { origin, ..Shared::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let secured = Secured { tcp, tls };
        let task = tokio::spawn(async move { axum::serve(secured, router).await.expect("it serves") });
        Self { folder, shared, task }
    }

    /// Settings of a broker that may send to it.
    pub(super) fn settings(&self, more: &str) -> String {
        let ca = self.folder.path().join("ca.pem");
        format!("[push]\nca = {ca:?}\nprivate_addresses = true\ncontact = \"{CONTACT}\"\n{more}\n")
    }

    /// The file of the certificate by which it is known, as text.
    pub(super) fn ca(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("ca.pem")).expect("it is there")
    }

    pub(super) fn origin(&self) -> &str {
        &self.shared.origin
    }

    /// Has a browser subscribe; returns its push subscription.
    pub(super) fn subscribe(&self, path: &str) -> Value {
        let key = PrivateKey::generate(&ECDH_P256).expect("a key");
        let point = key.compute_public_key().expect("a point").as_ref().to_vec();
        let mut secret = [0; 16];
        aws_lc_rs::rand::fill(&mut secret).expect("random bytes");
        let said = json!({
            "endpoint": format!("{}{path}", self.origin()),
            "expirationTime": null,
            "keys": {"p256dh": URL_SAFE_NO_PAD.encode(&point), "auth": URL_SAFE_NO_PAD.encode(secret)},
        });
        let browser = Browser { key, point, secret };
        self.shared.browsers.lock().expect("no panic").insert(path.to_owned(), browser);
        said
    }

    /// Answers the next messages to a browser so, and those behind them 201.
    pub(super) fn reply(&self, path: &str, replies: &[Reply]) {
        let mut all = self.shared.replies.lock().expect("no panic");
        all.entry(path.to_owned()).or_default().extend(replies);
    }

    /// The messages to a browser, once there are so many.
    pub(super) async fn messages(&self, path: &str, count: usize) -> Vec<Message> {
        eventually(&format!("{count} messages for {path}"), async || {
            let found = self.so_far(path);
            (found.len() >= count).then_some(found)
        })
        .await
    }

    /// The messages to a browser by now.
    pub(super) fn so_far(&self, path: &str) -> Vec<Message> {
        let all = self.shared.messages.lock().expect("no panic");
        all.iter().filter(|message| message.path == path).cloned().collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = to_bytes(body, 4_096).await.expect("a push service takes 4096 bytes");
    check_sender(&shared.origin, &head.headers);
    {
        let browsers = shared.browsers.lock().expect("no panic");
        let browser = browsers.get(&path).expect("a browser has subscribed there");
        assert_eq!(head.headers["content-encoding"], "aes128gcm");
        let text = serde_json::from_slice(&open(browser, &body)).expect("a JSON text");
        let message = Message { path: path.clone(), text, headers: head.headers };
        shared.messages.lock().expect("no panic").push(message);
    }
    let reply = shared.replies.lock().expect("no panic").get_mut(&path).and_then(VecDeque::pop_front);
    let builder = Response::builder();
    let response = match reply.unwrap_or(Reply::Status(201)) {
        Reply::Status(status) => builder.status(status).body(Body::empty()),
        Reply::Later(status) => builder.status(status).header("retry-after", 1).body(Body::empty()),
        Reply::Elsewhere => builder.status(307).header("location", "/elsewhere").body(Body::empty()),
        Reply::Endless => {
            let chunk = Bytes::from_static(&[b' '; 4_096]);
            let body = Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone())));
            builder.status(201).body(body)
        }
        Reply::Stuck => std::future::pending().await,
    };
    response.expect("a response")
}

/// Demands that the broker identifies itself, to this push service and for no more than a day.
fn check_sender(origin: &str, headers: &HeaderMap) {
    let header = headers["authorization"].to_str().expect("ASCII");
    let (token, key) =
        header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k=")).expect("a token and a key");
    let point = URL_SAFE_NO_PAD.decode(key).expect("base64url");
    assert_eq!((point.len(), point[0]), (65, 4));
    let [x, y] = [&point[1..33], &point[33..]].map(|half| URL_SAFE_NO_PAD.encode(half));
    let mut validation = Validation::new(Algorithm::ES256);
    validation.set_audience(&[origin]);
    let key = DecodingKey::from_ec_components(&x, &y).expect("a key");
    let claims = jsonwebtoken::decode::<Value>(token, &key, &validation).expect("a token that counts").claims;
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    assert!(claims["exp"].as_u64().is_some_and(|exp| exp <= now_s + 86_400), "{claims}");
    assert_eq!(claims["sub"], CONTACT);
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(key: &Prk, info: &[&[u8]]) -> [u8; N] {
    let mut derived = [0; N];
    key.expand(info, Length(N)).expect("short").fill(&mut derived).expect("of this length");
    derived
}

/// Opens a message of one record by the browser's keys.
fn open(browser: &Browser, message: &[u8]) -> Vec<u8> {
    let (salt, rest) = message.split_at(16);
    let (size, rest) = rest.split_at(4);
    assert!(u32::from_be_bytes(size.try_into().expect("four")) as usize >= rest.len());
    let (theirs, record) = rest[1..].split_at(rest[0].into());
    let secret = agree(&browser.key, UnparsedPublicKey::new(&ECDH_P256, theirs), (), |shared| {
        let both = Salt::new(HKDF_SHA256, &browser.secret).extract(shared);
        Ok(derive::<32>(&both, &[b"WebPush: info\0", &browser.point, theirs]))
    });
    let key = Salt::new(HKDF_SHA256, salt).extract(&secret.expect("a point"));
    let nonce = derive::<12>(&key, &[b"Content-Encoding: nonce\0"]);
    let key = derive::<16>(&key, &[b"Content-Encoding: aes128gcm\0"]);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).expect("of this length"));
    let mut record = record.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    let text = key.open_in_place(nonce, Aad::empty(), &mut record).expect("sealed for this browser");
    let end = text.iter().rposition(|byte| *byte != 0).expect("a delimiter");
    assert_eq!(text[end], 2, "the last record");
    text[..end].to_vec()
}
