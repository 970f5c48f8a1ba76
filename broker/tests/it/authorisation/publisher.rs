//! An issuer that publishes its keys: a server of its own over TLS, by a certificate that an authority of the test has signed.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::harness::{Secured, certified, listener};

/// Where the issuer tells of itself.
pub(super) const DOCUMENT: &str = "/fleet/.well-known/openid-configuration";
/// Where it has its keys.
pub(super) const KEYS: &str = "/fleet/keys";

/// What it answers at a path.
#[derive(Clone)]
pub(super) enum Page {
    /// A document, with this `Cache-Control`.
    Document(Value, &'static str),
    /// A text that is none.
    Text(String),
    /// Only a status.
    Status(u16),
    /// A redirect.
    Elsewhere(String),
    /// A body without an end.
    Endless,
    /// A body of which nothing comes.
    Stuck,
}

/// It, until it is dropped.
pub(super) struct Publisher {
    port: u16,
    folder: TempDir,
    tls: TlsAcceptor,
    pages: Arc<Pages>,
    task: Option<tokio::task::JoinHandle<()>>,
}

/// What there is to see, and how often each was asked for.
#[derive(Default)]
struct Pages {
    shown: Mutex<HashMap<String, Page>>,
    asked: Mutex<HashMap<String, usize>>,
}

impl Publisher {
    /// One that has a port and a certificate, and does not answer yet.
    pub(super) async fn absent() -> Self {
        let port = listener(0).await.local_addr().expect("an address").port();
        let folder = TempDir::new().expect("a folder");
        let tls = TlsAcceptor::from(Arc::new(certified(&folder.path().join("ca.pem"))));
        Self { port, folder, tls, pages: Arc::default(), task: None }
    }

    /// One that answers.
    pub(super) async fn start() -> Self {
        let mut publisher = Self::absent().await;
        publisher.appear().await;
        publisher
    }

    /// Begins to answer.
    pub(super) async fn appear(&mut self) {
        let listener = Secured { tcp: listener(self.port).await, tls: self.tls.clone() };
        let router = Router::new().fallback(answer).with_state(Arc::clone(&self.pages));
        self.task =
            Some(tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") }));
    }

    /// Its name as an issuer.
    pub(super) fn name(&self) -> String {
        self.url("/fleet")
    }

    /// The address of a page.
    pub(super) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// The file of the certificate by which it is known.
    pub(super) fn ca(&self) -> String {
        self.folder.path().join("ca.pem").to_str().expect("UTF-8").to_owned()
    }

    /// Shows something at a path from now on.
    pub(super) fn show(&self, path: &str, page: Page) {
        self.pages.shown.lock().expect("no handler panicked").insert(path.to_owned(), page);
    }

    /// Shows what an issuer shows: where its keys are, and these.
    pub(super) fn publish(&self, keys: Value) {
        let document =
            json!({"issuer": self.name(), "jwks_uri": self.url(KEYS), "subject_types_supported": []});
        self.show(DOCUMENT, Page::Document(document, "max-age=3600"));
        self.show(KEYS, Page::Document(keys, "max-age=3600"));
    }

    /// How often a path was asked for.
    pub(super) fn asked(&self, path: &str) -> usize {
        self.pages.asked.lock().expect("no handler panicked").get(path).copied().unwrap_or_default()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.task.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn answer(State(pages): State<Arc<Pages>>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    *pages.asked.lock().expect("no handler panicked").entry(path.clone()).or_default() += 1;
    let page = pages.shown.lock().expect("no handler panicked").get(&path).cloned();
    let builder = Response::builder();
    let answer = match page.unwrap_or(Page::Status(404)) {
        Page::Document(document, control) => {
            builder.header("cache-control", control).body(Body::from(document.to_string()))
        }
        Page::Text(text) => builder.body(Body::from(text)),
        Page::Status(status) => builder.status(status).body(Body::empty()),
        Page::Elsewhere(url) => builder.status(StatusCode::FOUND).header("location", url).body(Body::empty()),
        Page::Endless => {
            let chunk = Bytes::from_static(&[b' '; 4_096]);
            builder.body(Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone()))))
        }
        Page::Stuck => {
            let beginning = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"{"))]);
            builder.body(Body::from_stream(beginning.chain(stream::pending())))
        }
    };
    answer.expect("an answer")
}
