//! One document over HTTPS: from an address that may be asked, without redirects, bounded in time and bytes.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::body::Body;
use axum::http::header::{ACCEPT, HOST, USER_AGENT};
use axum::http::{Request, Response, StatusCode, Uri};
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::freshness;
use super::public::is_public;
use crate::config;

/// Time for a document, from looking its host up to its last byte.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a connection to one address. A host may have several, of which some do not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes of a document. Those of issuers have some thousand.
const BODY_BYTES_MAX: usize = 1 << 18;
/// The most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 1 << 16;

/// Fetches documents.
pub(super) struct Fetcher {
    tls: TlsConnector,
    /// Whether addresses may be asked that are not public.
    is_private_allowed: bool,
}

/// A document, and for how long it is fresh.
pub(super) struct Fetched {
    pub(super) body: Vec<u8>,
    pub(super) lifetime: Duration,
}

/// Why a document cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The system does not know the host.
    #[error("the host is not found: {0}")]
    Unknown(String),
    /// The host has no address that may be asked.
    #[error("its address {0} is not public, and auth.private_addresses is false")]
    NotPublic(IpAddr),
    /// None of its addresses answers, or what answers is not it.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, String),
    /// It did not come in time.
    #[error("it did not come within {} s", FETCH_TIMEOUT.as_secs())]
    TimedOut,
    /// The connection broke off, or something else than HTTP is spoken.
    #[error("the exchange failed: {0}")]
    Broken(String),
    /// It is somewhere else, where nobody looks.
    #[error("the answer is {0}, a redirect, which is not followed")]
    Redirect(StatusCode),
    /// There is none.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// It is too large.
    #[error("it has more than {BODY_BYTES_MAX} bytes")]
    TooLarge,
}

impl Fetcher {
    /// Reads whom to trust. Blocks.
    ///
    /// # Errors
    /// A file of certificates that cannot be read or has none, and a machine that trusts nobody.
    pub(super) fn new(settings: &config::Auth) -> anyhow::Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_root_certificates(roots(&settings.ca)?).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self { tls, is_private_allowed: settings.private_addresses })
    }

    /// Fetches the document at an address, which is one of HTTPS.
    pub(super) async fn fetch(&self, uri: &Uri) -> Result<Fetched, FetchError> {
        timeout(FETCH_TIMEOUT, self.exchange(uri)).await.unwrap_or(Err(FetchError::TimedOut))
    }

    async fn exchange(&self, uri: &Uri) -> Result<Fetched, FetchError> {
        let stream = self.connect(uri).await?;
        let broken = |error: hyper::Error| FetchError::Broken(error.to_string());
        let mut http = http1::Builder::new();
        let handshake = http.max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(broken)?;
        let request = request(uri).map_err(|error| FetchError::Broken(error.to_string()))?;
        let exchange = async move { read(sender.send_request(request).await.map_err(broken)?).await };
        let mut exchange = pin!(exchange);
        tokio::select! {
            biased;
            fetched = &mut exchange => fetched,
            // What came before the end is still to be read.
            _ = connection => exchange.await,
        }
    }

    /// Connects to an address of the host that may be asked. The addresses are looked up once and are those that are connected
    /// to: a second look could find others.
    async fn connect(&self, uri: &Uri) -> Result<TlsStream<TcpStream>, FetchError> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let unknown = |why: &dyn std::fmt::Display| FetchError::Unknown(why.to_string());
        let name = ServerName::try_from(host.to_owned()).map_err(|error| unknown(&error))?;
        let found =
            lookup_host((host, uri.port_u16().unwrap_or(443))).await.map_err(|error| unknown(&error))?;
        let mut refusal = unknown(&"it has no address");
        for address in found {
            if !self.is_private_allowed && !is_public(address.ip()) {
                refusal = FetchError::NotPublic(address.ip());
                continue;
            }
            let connected = async {
                let stream = TcpStream::connect(address).await?;
                self.tls.connect(name.clone(), stream).await
            };
            let why = match timeout(CONNECT_TIMEOUT, connected).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
            };
            refusal = FetchError::Unreachable(address, why);
        }
        Err(refusal)
    }
}

/// The certificates of a PEM file, or those that this machine trusts.
fn roots(path: &str) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if path.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        anyhow::ensure!(
            !roots.is_empty(),
            "this machine has no certificates of authorities to know an issuer by: install them (ca-certificates), or set \
             auth.ca"
        );
        return Ok(roots);
    }
    let context = || format!("auth.ca {path}");
    for certificate in CertificateDer::pem_file_iter(path).with_context(context)? {
        roots.add(certificate.with_context(context)?).with_context(context)?;
    }
    anyhow::ensure!(!roots.is_empty(), "auth.ca {path}: there is no certificate in it");
    Ok(roots)
}

fn request(uri: &Uri) -> Result<Request<Body>, axum::http::Error> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::get(path)
        .header(HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("nearcast/", env!("CARGO_PKG_VERSION")))
        .body(Body::empty())
}

async fn read(response: Response<Incoming>) -> Result<Fetched, FetchError> {
    let status = response.status();
    if status.is_redirection() {
        return Err(FetchError::Redirect(status));
    }
    if status != StatusCode::OK {
        return Err(FetchError::Status(status));
    }
    let lifetime = freshness::lifetime(response.headers());
    let mut chunks = Body::new(response.into_body()).into_data_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| FetchError::Broken(error.to_string()))?;
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(FetchError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Fetched { body, lifetime })
}
