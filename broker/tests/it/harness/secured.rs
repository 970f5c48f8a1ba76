//! Servers that speak TLS, for what the broker asks.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Makes an authority, writes its certificate into a file, and has it sign the server's.
pub(crate) fn certified(ca_file: &Path) -> ServerConfig {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let ca = authority.self_signed(&key).expect("a certificate");
    std::fs::write(ca_file, ca.pem()).expect("written");
    let authority = rcgen::Issuer::new(authority, key);
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("names");
    let chain = vec![params.signed_by(&own, &authority).expect("a certificate").der().clone()];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    builder.with_no_client_auth().with_single_cert(chain, key).expect("they belong together")
}

pub(crate) async fn listener(port: u16) -> TcpListener {
    TcpListener::bind(("127.0.0.1", port)).await.expect("a port")
}

/// A listener whose connections speak TLS.
pub(crate) struct Secured {
    pub(crate) tcp: TcpListener,
    pub(crate) tls: TlsAcceptor,
}

impl axum::serve::Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.tcp.accept().await else { continue };
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
