//! Requests over HTTPS to addresses that others choose: only to addresses that may be asked, without redirects, bounded in time
//! and bytes.

mod public;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::body::Body;
use axum::http::header::{HOST, HeaderValue, USER_AGENT};
use axum::http::{Request, Response, Uri};
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use public::is_public;

/// Time for an exchange, from looking its host up to the last byte of the answer.
pub(crate) const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a connection to one address. A host may have several, of which some do not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Lookups of hosts at once, for exchanges and for checks. Each takes a thread for as long as the system wants, even if nobody waits
/// for it any more.
const LOOKUPS: usize = 64;
const CHECKS: usize = 16;
/// The most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 1 << 16;

/// A client that makes one connection for each request.
pub(crate) struct HttpsClient {
    tls: TlsConnector,
    /// Whether addresses may be asked that are not public.
    is_private_allowed: bool,
    /// The setting that says so.
    setting: &'static str,
    lookups: Arc<Semaphore>,
    checks: Arc<Semaphore>,
}

/// The settings of a client, and the section that they are in.
#[derive(Clone, Copy)]
pub(crate) struct Trust<'a> {
    /// The file of certificates to know servers by; empty for those that this machine trusts.
    pub(crate) ca: &'a str,
    pub(crate) ca_setting: &'static str,
    pub(crate) is_private_allowed: bool,
    pub(crate) private_setting: &'static str,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpsError {
    /// The system does not know the host.
    #[error("the host is not found: {0}")]
    Unknown(String),
    /// The system did not say in time whether it knows the host.
    #[error("the host is not found within {} s", CONNECT_TIMEOUT.as_secs())]
    NotFoundInTime,
    /// The host has no address that may be asked.
    #[error("its address {0} is not public, and {1} is false")]
    NotPublic(IpAddr, &'static str),
    /// None of its addresses answers, or what answers is not it.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, String),
    /// It did not come in time.
    #[error("it did not come within {} s", EXCHANGE_TIMEOUT.as_secs())]
    TimedOut,
    /// The connection broke off, or something else than HTTP is spoken.
    #[error("the exchange failed: {0}")]
    Broken(String),
    /// It is too large.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
}

impl HttpsClient {
    /// Reads the certificates to trust. Blocks.
    ///
    /// # Errors
    /// A file of certificates that cannot be read or has none, and a machine that trusts nobody.
    pub(crate) fn new(trust: Trust<'_>) -> anyhow::Result<Self> {
        let mut config = config_of(roots(trust)?)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self {
            tls,
            is_private_allowed: trust.is_private_allowed,
            setting: trust.private_setting,
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            checks: Arc::new(Semaphore::new(CHECKS)),
        })
    }

    /// Sends a request to an address, which is one of HTTPS, and reads the answer, whatever its status is. The body of a success may have
    /// `body_bytes_max` bytes; where that is 0, it is not read.
    pub(crate) async fn send(
        &self,
        uri: &Uri,
        request: Request<Body>,
        body_bytes_max: usize,
    ) -> Result<Response<Vec<u8>>, HttpsError> {
        let exchange = self.exchange(uri, request, body_bytes_max);
        timeout(EXCHANGE_TIMEOUT, exchange).await.unwrap_or(Err(HttpsError::TimedOut))
    }

    /// Looks up whether an address has a host that may be asked now.
    pub(crate) async fn check(&self, uri: &Uri) -> Result<(), HttpsError> {
        let found = timeout(CONNECT_TIMEOUT, self.look_up(uri, &self.checks)).await;
        let found = found.unwrap_or(Err(HttpsError::NotFoundInTime))?;
        if found.permitted.is_empty() { Err(found.refusal()) } else { Ok(()) }
    }

    async fn exchange(
        &self,
        uri: &Uri,
        mut request: Request<Body>,
        body_bytes_max: usize,
    ) -> Result<Response<Vec<u8>>, HttpsError> {
        let stream = self.connect(uri).await?;
        let broken = |error: hyper::Error| HttpsError::Broken(error.to_string());
        let mut http = http1::Builder::new();
        let handshake = http.max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(broken)?;
        prepare(uri, &mut request).map_err(|error| HttpsError::Broken(error.to_string()))?;
        let exchange =
            async move { read(sender.send_request(request).await.map_err(broken)?, body_bytes_max).await };
        let mut exchange = pin!(exchange);
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            // What came before the end is still to be read.
            _ = connection => exchange.await,
        }
    }

    async fn look_up(&self, uri: &Uri, lookups: &Arc<Semaphore>) -> Result<Found, HttpsError> {
        let unknown = |why: &dyn std::fmt::Display| HttpsError::Unknown(why.to_string());
        let permit = Arc::clone(lookups).acquire_owned().await.map_err(|error| unknown(&error))?;
        let (host, port) = (host(uri).to_owned(), uri.port_u16().unwrap_or(443));
        let looking = spawn_blocking(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            drop(permit);
            found
        });
        let found = looking.await.map_err(|error| unknown(&error))?.map_err(|error| unknown(&error))?;
        let is_permitted = |address: &SocketAddr| self.is_private_allowed || is_public(address.ip());
        let (permitted, refused): (Vec<_>, Vec<_>) = found.partition(is_permitted);
        Ok(Found { permitted, refused: refused.last().map(SocketAddr::ip), setting: self.setting })
    }

    /// Connects to an address of the host that may be asked. The addresses are looked up once and are those that are connected
    /// to: a second look could find others.
    async fn connect(&self, uri: &Uri) -> Result<TlsStream<TcpStream>, HttpsError> {
        let name = ServerName::try_from(host(uri).to_owned());
        let name = name.map_err(|error| HttpsError::Unknown(error.to_string()))?;
        let found = self.look_up(uri, &self.lookups).await?;
        let mut refusal = found.refusal();
        for address in found.permitted {
            let connected = async {
                let stream = TcpStream::connect(address).await?;
                self.tls.connect(name.clone(), stream).await
            };
            let why = match timeout(CONNECT_TIMEOUT, connected).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
            };
            refusal = HttpsError::Unreachable(address, why);
        }
        Err(refusal)
    }
}

/// The addresses of a host.
struct Found {
    permitted: Vec<SocketAddr>,
    /// One that may not be asked, if there is one.
    refused: Option<IpAddr>,
    setting: &'static str,
}

impl Found {
    /// Why nothing is asked, where no address may be.
    fn refusal(&self) -> HttpsError {
        match self.refused {
            Some(address) => HttpsError::NotPublic(address, self.setting),
            None => HttpsError::Unknown("it has no address".to_owned()),
        }
    }
}

fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// TLS with servers that are known by the certificates of a PEM file, if there is one, and by those that this machine trusts. Blocks.
///
/// # Errors
/// A file that cannot be read or has no certificates.
pub(crate) fn config_besides(path: &str, setting: &'static str) -> anyhow::Result<ClientConfig> {
    let mut roots = if path.is_empty() { RootCertStore::empty() } else { of_file(path, setting)? };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    config_of(roots)
}

fn config_of(roots: RootCertStore) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The certificates of a PEM file, or those that this machine trusts.
fn roots(trust: Trust<'_>) -> anyhow::Result<RootCertStore> {
    let Trust { ca: path, ca_setting: setting, .. } = trust;
    if path.is_empty() {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        anyhow::ensure!(
            !roots.is_empty(),
            "this machine has no certificates of authorities to know a server by: install them (ca-certificates), or set \
             {setting}"
        );
        return Ok(roots);
    }
    of_file(path, setting)
}

fn of_file(path: &str, setting: &str) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let context = || format!("{setting} {path}");
    for certificate in CertificateDer::pem_file_iter(path).with_context(context)? {
        roots.add(certificate.with_context(context)?).with_context(context)?;
    }
    anyhow::ensure!(!roots.is_empty(), "{setting} {path}: there is no certificate in it");
    Ok(roots)
}

/// Gives a request the target and the headers that each has.
fn prepare(uri: &Uri, request: &mut Request<Body>) -> Result<(), axum::http::Error> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse()?;
    let host = uri.authority().map_or("", |authority| authority.as_str());
    request.headers_mut().insert(HOST, HeaderValue::from_str(host)?);
    let agent = HeaderValue::from_static(concat!("nearcast/", env!("CARGO_PKG_VERSION")));
    request.headers_mut().insert(USER_AGENT, agent);
    Ok(())
}

async fn read(response: Response<Incoming>, body_bytes_max: usize) -> Result<Response<Vec<u8>>, HttpsError> {
    let (head, incoming) = response.into_parts();
    let mut body = Vec::new();
    if head.status.is_success() && body_bytes_max > 0 {
        let mut chunks = Body::new(incoming).into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| HttpsError::Broken(error.to_string()))?;
            if body.len() + chunk.len() > body_bytes_max {
                return Err(HttpsError::TooLarge(body_bytes_max));
            }
            body.extend_from_slice(&chunk);
        }
    }
    Ok(Response::from_parts(head, body))
}
