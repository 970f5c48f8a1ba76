//! The broker's calls over HTTP, of which the upgrade to a WebSocket is one.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Method, Response,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Bytes,
        handshake::{client::generate_key, derive_accept_key},
        protocol::Role,
    },
};

use crate::{
    Checkpoint, Error,
    addresses::{Addresses, HOPS_MAX, has_tls},
    problem,
    token::Tokens,
};

/// A WebSocket to the broker.
pub(crate) type Socket = WebSocketStream<reqwest::Upgraded>;

/// Bytes of an answer, at most. The longest that a broker has are a thousand clients, or subscriptions, and their figures.
const ANSWER_MAX: usize = 64 << 20;
/// Bytes of an answer that is a refusal, at most.
const PROBLEM_MAX: usize = 1 << 20;

pub(crate) struct Http {
    client: reqwest::Client,
    /// For a broker with TLS that one without names, where no address has TLS: `client` does not trust the machine's authorities then.
    client_with_tls: OnceLock<reqwest::Client>,
    roots_pem: Vec<Vec<u8>>,
    pub(crate) addresses: Addresses,
    pub(crate) tokens: Tokens,
    timeout: Duration,
}

/// Leaves out the tokens.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Http").field(&self.addresses).finish()
    }
}

impl Http {
    pub(crate) fn new(
        urls: &[String],
        roots_pem: &[Vec<u8>],
        tokens: Tokens,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let addresses = Addresses::new(urls)?;
        // Whom the machine trusts is asked only where somebody has to be trusted: that reads many files.
        let client = client(addresses.all.iter().any(|address| has_tls(address)), roots_pem)?;
        let roots_pem = roots_pem.to_owned();
        Ok(Self { client, client_with_tls: OnceLock::new(), roots_pem, addresses, tokens, timeout })
    }

    fn client(&self, address: &str) -> Result<&reqwest::Client, Error> {
        if !has_tls(address) || self.addresses.all.iter().any(|address| has_tls(address)) {
            return Ok(&self.client);
        }
        if let Some(client) = self.client_with_tls.get() {
            return Ok(client);
        }
        let client = client(true, &self.roots_pem)?;
        Ok(self.client_with_tls.get_or_init(|| client))
    }

    /// Opens a WebSocket for a client, that goes on behind a place: at an address, or where the broker there says that the client is
    /// served, which is written into `address`.
    pub(crate) async fn socket(
        &self,
        address: &mut String,
        client: &str,
        resume: Option<&Checkpoint>,
        token: Option<&str>,
    ) -> Result<Socket, Error> {
        let query = resume.map(|resume| format!("?resume={}", encoded(&resume.to_string())));
        let path = format!("{}/ws{}", client_path(client), query.unwrap_or_default());
        let mut hops = 0;
        loop {
            let error = match self.upgrade(address, &path, token).await {
                Err(error) if hops < HOPS_MAX => error,
                done => return done,
            };
            *address = self.addresses.learn(address, &path, &error).ok_or(error)?;
            hops += 1;
        }
    }

    async fn upgrade(&self, address: &str, path: &str, token: Option<&str>) -> Result<Socket, Error> {
        let key = generate_key();
        let mut request = self
            .client(address)?
            .get(format!("{address}{path}"))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(token)?);
        }
        let response = request.send().await.map_err(unreachable)?;
        if response.status().as_u16() != 101 {
            return Err(refusal(response).await);
        }
        if response.headers().get(SEC_WEBSOCKET_ACCEPT).map(|accept| accept.as_bytes())
            != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            return Err(Error::broken("what answers there does not speak WebSocket"));
        }
        let upgraded = response.upgrade().await.map_err(unreachable)?;
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await)
    }

    /// Carries out a call and returns what it answers. A token that has just ended is asked for again, once. A broker that
    /// is away, or a standby, is left for the next address, and one that names another for that.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> Result<Vec<u8>, Error> {
        let mut token = self.tokens.current().await?;
        let mut is_renewed = false;
        let mut others = self.addresses.all.len() - 1 + usize::from(self.addresses.home(path).is_some());
        let mut asked = self.addresses.of(path);
        let mut address = asked.clone();
        let mut hops = 0;
        loop {
            let error = match self.once(method.clone(), &address, path, body.clone(), token.clone()).await {
                Err(error) => error,
                done => return done,
            };
            if hops < HOPS_MAX
                && let Some(home) = self.addresses.learn(&address, path, &error)
            {
                hops += 1;
                address = home;
                continue;
            }
            let is_refused = matches!(error.code(), Some("recovering" | "stopping" | "elsewhere"));
            let is_away = matches!(error, Error::Connection { .. });
            if !is_renewed && error.code() == Some("token-expired") && self.tokens.renewable() {
                is_renewed = true;
                token = self.tokens.fresh().await?;
                continue;
            }
            if is_refused || is_away || matches!(error, Error::Timeout { .. }) {
                self.addresses.leave(&asked);
                self.addresses.leave(&address);
            }
            // What may have been carried out is repeated where that changes nothing.
            if others == 0 || !(is_refused || is_away && method != Method::POST) {
                return Err(error);
            }
            others -= 1;
            asked = self.addresses.of(path);
            address = asked.clone();
        }
    }

    async fn once(
        &self,
        method: Method,
        address: &str,
        path: &str,
        body: Option<Body>,
        token: Option<String>,
    ) -> Result<Vec<u8>, Error> {
        let mut request = self.client(address)?.request(method, format!("{address}{path}"));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(&token)?);
        }
        if let Some(Body { media_type, text }) = body {
            request = request.header(CONTENT_TYPE, media_type).body(text);
        }
        let answer = async {
            let response = request.send().await.map_err(unreachable)?;
            if !response.status().is_success() {
                return Err(refusal(response).await);
            }
            bounded(response, ANSWER_MAX).await
        };
        let timeout = Error::Timeout { what: "an answer of the broker", limit: self.timeout, source: None };
        tokio::time::timeout(self.timeout, answer).await.map_err(|_| timeout)?
    }
}

/// Body of a request. It is copied when a request is made again.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) media_type: &'static str,
    pub(crate) text: Bytes,
}

impl Body {
    pub(crate) fn json(document: &impl serde::Serialize) -> Result<Self, Error> {
        let text = serde_json::to_vec(document).map_err(|fault| Error::Invalid(fault.to_string()))?;
        Ok(Self { media_type: "application/json", text: text.into() })
    }
}

/// The path of a client; its name may have any characters but control characters.
pub(crate) fn client_path(client: &str) -> String {
    format!("/v1/clients/{}", encoded(client))
}

/// Percent-encoded, so that it is one part of a path, or one value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn bearer(token: &str) -> Result<reqwest::header::HeaderValue, Error> {
    let mut value = reqwest::header::HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| Error::Invalid("a token has characters that no header has".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unreachable(fault: reqwest::Error) -> Error {
    Error::connection("the broker cannot be reached", fault.without_url())
}

/// The body of an answer, unless it is longer than it may be: what answers need not be a broker.
async fn bounded(mut response: Response, max: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        if body.len() + part.len() > max {
            return Err(Error::broken(format!("the answer is longer than {max} bytes: none of a broker's")));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

async fn refusal(response: Response) -> Error {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = bounded(response, PROBLEM_MAX).await.unwrap_or_default();
    problem::of_answer(status, |name| Some(headers.get(name)?.to_str().ok()?.to_owned()), &body)
}

fn client(of_machine: bool, roots_pem: &[Vec<u8>]) -> Result<reqwest::Client, Error> {
    let builder = reqwest::Client::builder().http1_only().no_proxy().tcp_nodelay(true);
    // The library would follow without the token.
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    let client = builder.use_preconfigured_tls(tls(of_machine, roots_pem)?).build();
    client.map_err(|fault| Error::Invalid(format!("no client for HTTP: {fault}")))
}

/// TLS as the broker speaks it (1.3), with those trusted whom this machine trusts, and more.
fn tls(of_machine: bool, roots_pem: &[Vec<u8>]) -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore::empty();
    if of_machine {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in roots_pem {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|fault| Error::Invalid(format!("no certificate: {fault}")))?;
            roots.add(certificate).map_err(|fault| Error::Invalid(format!("no certificate: {fault}")))?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|fault| Error::Invalid(fault.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
