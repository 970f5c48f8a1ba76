//! Where a broker is, and how bytes get there: in the clear, or over TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The most that is read of a document.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;

/// Where a broker is.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Address and port.
    pub address: SocketAddr,
    /// Host and port, as requests name them.
    pub authority: Arc<str>,
    /// None: in the clear.
    tls: Option<Tls>,
}

/// How a broker is known to be the one that is meant.
#[derive(Clone, Debug)]
struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Endpoint {
    /// One that is spoken to in the clear.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, authority: address.to_string().into(), tls: None }
    }

    /// One that is spoken to over TLS, and trusted for certificates in a PEM file.
    ///
    /// # Errors
    /// When there are none in it.
    pub fn secure(address: SocketAddr, trusted: &Path) -> anyhow::Result<Self> {
        let tls = Tls { config: config(Some(trusted))?, name: address.ip().into() };
        Ok(Self { tls: Some(tls), ..Self::plain(address) })
    }

    /// Reads `HOST:PORT`, `http://HOST:PORT` or, over TLS, `https://HOST:PORT`; then a PEM file may say whom to trust besides those whom this machine does.
    ///
    /// # Errors
    /// When it is none of these, there is no such host, or the file holds no certificates.
    pub fn parse(text: &str, trusted: Option<&Path>) -> anyhow::Result<Self> {
        let (is_secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http" | "ws", rest)) => (false, rest),
            Some(("https" | "wss", rest)) => (true, rest),
            Some((scheme, _)) => {
                anyhow::bail!("{text}: http:// or https:// may be before it, not {scheme}://")
            }
        };
        ensure!(is_secure || trusted.is_none(), "{text}: who is trusted matters with https:// alone");
        let authority = rest.trim_end_matches('/');
        let wanted = || format!("{text} has to be HOST:PORT or https://HOST:PORT");
        let found = authority.to_socket_addrs().with_context(wanted)?.next();
        let address = found.with_context(|| format!("{text}: no such host"))?;
        let tls = if is_secure {
            let (host, _) = authority.rsplit_once(':').with_context(wanted)?;
            let name = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                Ok(ip) => ip.into(),
                Err(_) => ServerName::try_from(host.to_owned()).with_context(wanted)?,
            };
            Some(Tls { config: config(trusted)?, name })
        } else {
            None
        };
        Ok(Self { address, authority: authority.into(), tls })
    }

    /// As a target is named.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// A new session over TLS; none in the clear.
    pub(crate) fn session(&self) -> Result<Option<ClientConnection>, rustls::Error> {
        let session = |tls: &Tls| ClientConnection::new(Arc::clone(&tls.config), tls.name.clone());
        self.tls.as_ref().map(session).transpose()
    }

    /// Connects, and waits for it.
    pub(crate) fn dial(&self, patience: Duration) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect_timeout(&self.address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(match self.session().map_err(io::Error::other)? {
            None => Box::new(stream),
            Some(session) => {
                let mut stream = StreamOwned::new(session, stream);
                stream.conn.complete_io(&mut stream.sock).map_err(explained)?;
                Box::new(stream)
            }
        })
    }

    /// Asks for a document, over HTTP 1.0, whose answers end with their connection.
    pub(crate) fn get(&self, path: &str, token: Option<&str>, patience: Duration) -> io::Result<Vec<u8>> {
        let until = Instant::now() + patience;
        let mut stream = self.dial(patience)?;
        let token = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n{token}\r\n", self.authority)?;
        stream.flush()?;
        let mut answer = Vec::new();
        let mut part = [0; 16 << 10];
        loop {
            match stream.read(&mut part) {
                Ok(0) => return body(path, &answer).map_err(io::Error::other),
                Ok(count) => answer.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answer.len() > DOCUMENT_BYTES_MAX || Instant::now() > until {
                return Err(io::Error::other(format!("{path} is too long, or takes too long")));
            }
        }
    }
}

/// What to do where a certificate is the reason.
pub(crate) fn explained(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => io::Error::other(format!(
            "its certificate is not taken ({why}): --ca says whom to trust besides those whom this machine does, and it has to be made out to the host that --target names"
        )),
        _ => error,
    }
}

/// What can be read and written.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// TLS 1.3, as the broker has it. No session is resumed: clients are as many devices, of which each comes for the first time.
fn config(trusted: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = trusted {
        let place = || format!("reading certificates from {}", path.display());
        let mut count = 0;
        for certificate in CertificateDer::pem_file_iter(path).with_context(place)? {
            roots.add(certificate.with_context(place)?).with_context(place)?;
            count += 1;
        }
        ensure!(count > 0, "{} holds no certificates", path.display());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn body(path: &str, answer: &[u8]) -> Result<Vec<u8>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    match head.parse(answer) {
        Ok(httparse::Status::Complete(length)) if head.code == Some(200) => Ok(answer[length..].to_vec()),
        Ok(httparse::Status::Complete(_)) => {
            Err(format!("{path} was answered with {}", head.code.unwrap_or_default()))
        }
        Ok(httparse::Status::Partial) => Err(format!("{path} was not answered to the end")),
        Err(error) => Err(format!("{path} was not answered by HTTP: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_write_them() {
        let url = |text: &str| Endpoint::parse(text, None).map(|endpoint| endpoint.url());
        assert_eq!(url("127.0.0.1:7700").unwrap(), "http://127.0.0.1:7700");
        assert_eq!(url("http://127.0.0.1:7700/").unwrap(), "http://127.0.0.1:7700");
        assert_eq!(url("https://localhost:7700").unwrap(), "https://localhost:7700");
        assert_eq!(url("https://[::1]:7700").unwrap(), "https://[::1]:7700");
        for wrong in ["127.0.0.1", "https://127.0.0.1", "mqtt://127.0.0.1:1883", "https://a_b c:1", ""] {
            let error = url(wrong).unwrap_err().to_string();
            assert!(error.starts_with(wrong), "{wrong}: {error}");
        }
        let none = std::env::current_exe().unwrap();
        let error = Endpoint::parse("127.0.0.1:7700", Some(&none)).unwrap_err();
        assert!(error.to_string().contains("https:// alone"), "{error}");
        let error = Endpoint::parse("https://127.0.0.1:7700", Some(Path::new("/none"))).unwrap_err();
        assert!(error.to_string().contains("/none"), "{error:#}");
    }

    #[test]
    fn answers_that_are_none_are_told() {
        assert_eq!(body("/stats", b"HTTP/1.0 200 OK\r\nx: y\r\n\r\na 1\n"), Ok(b"a 1\n".to_vec()));
        for (answer, why) in [
            (&b"HTTP/1.1 403 Forbidden\r\n\r\n"[..], "403"),
            (b"HTTP/1.1 200 OK\r\nx: ", "end"),
            (b"INFO {\"server_id\"", "HTTP"),
        ] {
            let found = body("/stats", answer).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }
}
