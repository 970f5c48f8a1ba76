//! Certificates, and clients that trust them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate for this machine and its key.
pub(crate) struct Pair(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Pair {
    /// A new one, which nobody has signed but itself.
    pub(crate) fn new() -> Self {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        Self(rcgen::generate_simple_self_signed(names).expect("a certificate"))
    }

    /// The same with an end of its own.
    pub(crate) fn until(year: i32) -> Self {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let signing_key = rcgen::KeyPair::generate().expect("a key");
        let cert = params.self_signed(&signing_key).expect("a certificate");
        Self(rcgen::CertifiedKey { cert, signing_key })
    }

    /// The certificate, as PEM.
    pub(crate) fn cert(&self) -> String {
        self.0.cert.pem()
    }

    /// Puts it into `cert.pem` and `key.pem`.
    pub(crate) fn write(&self, folder: &Path) {
        std::fs::write(folder.join("cert.pem"), self.cert()).expect("written");
        std::fs::write(folder.join("key.pem"), self.0.signing_key.serialize_pem()).expect("written");
    }

    /// Settings of a client that trusts it and nothing else.
    pub(crate) fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.cert.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
        builder.expect("versions").with_root_certificates(roots).with_no_client_auth()
    }

    /// A connection by the newest version.
    pub(crate) async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        connect(self.client(rustls::DEFAULT_VERSIONS), address).await
    }
}

/// A connection with these settings.
pub(crate) async fn connect(
    config: ClientConfig,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::IpAddress(address.ip().into());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
