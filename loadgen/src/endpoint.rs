//! Where a broker is, and how bytes get there: in the clear, or over TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::interrupt;

/// The most that is read of a document.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;

/// How long an address of a name that has several is tried.
const LOOK: Duration = Duration::from_secs(1);

/// How often somebody who waits looks whether they still should.
const GLANCE: Duration = Duration::from_millis(200);

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

    /// One that is spoken to over TLS, and trusted for a certificate.
    ///
    /// # Errors
    /// When it is none.
    pub fn secure(address: SocketAddr, trusted: CertificateDer<'static>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted)?;
        let tls = Tls { config: config(roots)?, name: address.ip().into() };
        Ok(Self { tls: Some(tls), ..Self::plain(address) })
    }

    /// Reads `HOST:PORT`, `http://HOST:PORT` or, over TLS, `https://HOST:PORT`; then a PEM file may say whom to trust besides those whom this machine does.
    ///
    /// # Errors
    /// When it is none of these, there is no such host, or the file holds no certificates.
    pub fn parse(text: &str, trusted: Option<&Path>) -> anyhow::Result<Self> {
        let (is_secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => {
                anyhow::bail!("{text}: http:// or https:// may be before it, not {scheme}://")
            }
        };
        ensure!(is_secure || trusted.is_none(), "{text}: who is trusted matters with https:// alone");
        let authority = rest.trim_end_matches('/');
        let wanted = || format!("{text} has to be HOST:PORT or https://HOST:PORT");
        let found: Vec<SocketAddr> = match authority.to_socket_addrs() {
            Ok(found) => found.collect(),
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error).with_context(wanted),
            Err(error) => return Err(error).with_context(|| format!("{text}: no such host")),
        };
        // A name may have addresses where nobody listens.
        let is_there = |address: &&SocketAddr| TcpStream::connect_timeout(address, LOOK).is_ok();
        let address = match &found[..] {
            [] => anyhow::bail!("{text}: no such host"),
            [only] => *only,
            [first, ..] => *found.iter().find(is_there).unwrap_or(first),
        };
        let tls = if is_secure {
            let (host, _) = authority.rsplit_once(':').with_context(wanted)?;
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).with_context(wanted)?;
            Some(Tls { config: config(roots(trusted)?)?, name })
        } else {
            None
        };
        Ok(Self { address, authority: authority.into(), tls })
    }

    /// Whether it is spoken to over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// As a target is named.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.is_secure() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// A new session over TLS; none in the clear.
    pub(crate) fn session(&self) -> Result<Option<ClientConnection>, rustls::Error> {
        let session = |tls: &Tls| ClientConnection::new(Arc::clone(&tls.config), tls.name.clone());
        self.tls.as_ref().map(session).transpose()
    }

    /// Connects, and waits for it.
    pub(crate) fn dial(&self, patience: Patience) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect_timeout(&self.address, patience.left())?;
        stream.set_nodelay(true)?;
        let mut sock = Timed { stream, patience };
        let session = self.session().map_err(io::Error::other)?;
        let Some(mut session) = session else { return Ok(Box::new(sock)) };
        while session.is_handshaking() {
            session.complete_io(&mut sock).map_err(explained)?;
        }
        Ok(Box::new(StreamOwned::new(session, sock)))
    }

    /// Asks for a document, over HTTP 1.0, whose answers end with their connection.
    pub(crate) fn get(&self, path: &str, token: Option<&str>, patience: Duration) -> io::Result<Vec<u8>> {
        let mut stream = self.dial(Patience::Until(Instant::now() + patience))?;
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
            if answer.len() > DOCUMENT_BYTES_MAX {
                return Err(io::Error::other(format!("{path} is too long")));
            }
        }
    }
}

/// How long somebody waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// For each thing that is read or written.
    Each(Duration),
    /// For all together.
    Until(Instant),
}

impl Patience {
    /// What is left of it; never nothing, which would be for ever.
    fn left(self) -> Duration {
        let left = match self {
            Self::Each(patience) => patience,
            Self::Until(until) => until.saturating_duration_since(Instant::now()),
        };
        left.max(Duration::from_millis(1))
    }
}

/// A connection that is waited for, and not for ever.
struct Timed {
    stream: TcpStream,
    patience: Patience,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let all = Patience::Until(Instant::now() + self.patience.left());
        loop {
            let left = all.left();
            self.stream.set_read_timeout(Some(left.min(GLANCE)))?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && left > GLANCE => {}
                read => return read.map_err(late),
            }
            if interrupt::is_asked() {
                return Err(io::Error::other("interrupted"));
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.patience.left()))?;
        self.stream.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A time that is over, in words.
fn late(error: io::Error) -> io::Error {
    let is_late = error.kind() == ErrorKind::WouldBlock;
    if is_late { io::Error::new(ErrorKind::TimedOut, "nothing came in time") } else { error }
}

/// What to do where the reason is who the broker is, or what it speaks.
pub(crate) fn explained(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidMessage(_)) => {
            io::Error::other("it does not speak TLS: name it HOST:PORT, without https://")
        }
        Some(rustls::Error::InvalidCertificate(why)) => {
            io::Error::other(format!("its certificate is not taken: {}", advice(why)))
        }
        _ => error,
    }
}

/// What to do about a certificate.
fn advice(why: &CertificateError) -> String {
    let text = why.to_string();
    if text.contains("CaUsedAsEndEntity") {
        return "it is that of an authority; make one with basicConstraints=critical,CA:FALSE".to_owned();
    }
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
    };
    if matches!(why, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }) {
        let over =
            if matches!(why, Expired | ExpiredContext { .. }) { "has expired" } else { "is not valid yet" };
        format!("it {over}, or the clock of this machine is wrong")
    } else if matches!(why, NotValidForName | NotValidForNameContext { .. }) {
        format!("{text}; --target has to name the host that it is made out to")
    } else {
        format!("{text}; --ca says whom to trust besides those whom this machine does")
    }
}

/// What can be read and written.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// TLS 1.3, as the broker has it. No session is resumed: clients are as many devices, of which each comes for the first time.
fn config(roots: RootCertStore) -> anyhow::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Whom this machine trusts, and those of a PEM file.
fn roots(trusted: Option<&Path>) -> anyhow::Result<RootCertStore> {
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
    Ok(roots)
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
    fn who_says_nothing_is_not_waited_for_for_ever() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::plain(silent.local_addr().unwrap());
        let patience = GLANCE + Duration::from_millis(100);
        for patience in [Patience::Each(patience), Patience::Until(Instant::now() + patience)] {
            let error = endpoint.dial(patience).unwrap().read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_told_with_what_to_do() {
        let told = |why| explained(io::Error::other(rustls::Error::InvalidCertificate(why))).to_string();
        assert!(told(CertificateError::Expired).contains("has expired"));
        assert!(told(CertificateError::NotValidForName).contains("--target"));
        assert!(told(CertificateError::UnknownIssuer).contains("--ca"));
    }

    #[test]
    fn places_are_read_as_people_write_them() {
        let url = |text: &str| Endpoint::parse(text, None).map(|endpoint| endpoint.url());
        assert_eq!(url("127.0.0.1:7700").unwrap(), "http://127.0.0.1:7700");
        assert_eq!(url("http://127.0.0.1:7700/").unwrap(), "http://127.0.0.1:7700");
        assert_eq!(url("https://localhost:7700").unwrap(), "https://localhost:7700");
        assert_eq!(url("https://[::1]:7700").unwrap(), "https://[::1]:7700");
        for (wrong, told) in [
            ("127.0.0.1", "has to be HOST:PORT"),
            ("https://127.0.0.1", "has to be HOST:PORT"),
            ("https://127.0.0.1:x", "has to be HOST:PORT"),
            ("mqtt://127.0.0.1:1883", "not mqtt://"),
            ("", "has to be HOST:PORT"),
        ] {
            let error = url(wrong).unwrap_err().to_string();
            assert!(error.contains(told), "{wrong}: {error}");
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
