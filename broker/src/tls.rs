//! TLS 1.3 around connections, with a certificate that is read again when its files change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::TLS13;
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::metrics::Metrics;

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The certificate and key that connections are secured with.
pub struct Tls {
    files: Files,
    /// Contents of the files when they were last looked at, whether they could be used or not.
    seen: Result<Pem, TlsError>,
    current: watch::Sender<Arc<ServerConfig>>,
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{setting} {}: {why}", path.display())]
    File {
        /// Which one.
        setting: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// The system's message, or a description of what is not in the file.
        why: String,
    },
    /// Each can be read, and together they are of no use.
    #[error("tls.cert {} and tls.key {}: {why}", cert.display(), key.display())]
    Pair {
        /// The certificates' file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Description of the fault.
        why: String,
    },
}

#[derive(Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// The files' bytes. They are compared, not their times: two writes can have the same time.
#[derive(Clone, PartialEq, Eq)]
struct Pem {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads what the settings name; `None` where they name nothing. Blocks.
    ///
    /// # Errors
    /// Files that cannot be read, hold no certificate or no private key, or two that do not belong together.
    pub fn read(settings: &config::Tls) -> Result<Option<Self>, TlsError> {
        if settings.cert.is_empty() {
            return Ok(None);
        }
        let files = Files { cert: settings.cert.clone().into(), key: settings.key.clone().into() };
        let pem = files.read()?;
        let current = watch::Sender::new(files.config(&pem)?);
        files.warn_of_readers();
        Ok(Some(Self { files, seen: Ok(pem), current }))
    }

    /// Returns the acceptor for new connections: always with the last pair that could be used.
    pub(crate) fn acceptor(&self) -> Acceptor {
        Acceptor(self.current.subscribe())
    }

    /// Takes what the files hold whenever that changes. What cannot be used is told, and leaves everything as it was:
    /// among them a certificate whose key is still about to come.
    pub(crate) async fn follow(mut self, metrics: Arc<Metrics>, ended: CancellationToken) {
        let show_expiry = |pem: &Pem| metrics.show_certificate_expiry(pem.expiry_s());
        self.seen.iter().for_each(show_expiry);
        while ended.run_until_cancelled(tokio::time::sleep(LOOK_INTERVAL)).await.is_some() {
            let files = self.files.clone();
            let Ok(found) = tokio::task::spawn_blocking(move || files.read()).await else { continue };
            if found == self.seen {
                continue;
            }
            match found.as_ref().map_err(Clone::clone).and_then(|pem| self.files.config(pem)) {
                Ok(config) => {
                    found.iter().for_each(show_expiry);
                    self.current.send_replace(config);
                    tracing::info!(cert = %self.files.cert.display(), "took a new certificate");
                }
                Err(error) => {
                    metrics.tls_failures.add(1);
                    tracing::warn!(%error, "a new certificate cannot be used; the one before stays");
                }
            }
            self.seen = found;
        }
    }
}

/// Makes connections secure.
#[derive(Clone)]
pub(crate) struct Acceptor(watch::Receiver<Arc<ServerConfig>>);

impl Acceptor {
    /// Returns the acceptor with the pair that is current now.
    pub(crate) fn current(&self) -> TlsAcceptor {
        Arc::clone(&self.0.borrow()).into()
    }
}

impl Files {
    fn read(&self) -> Result<Pem, TlsError> {
        let read = |setting, path: &PathBuf| {
            std::fs::read(path).map_err(|error| file_error(setting, path, error.to_string()))
        };
        Ok(Pem { cert: read("tls.cert", &self.cert)?, key: read("tls.key", &self.key)? })
    }

    /// Sessions are resumed with the configuration that began them, so that a key which was replaced for a reason is used
    /// no more.
    fn config(&self, pem: &Pem) -> Result<Arc<ServerConfig>, TlsError> {
        let cert_error = |why: String| file_error("tls.cert", &self.cert, why);
        let chain = CertificateDer::pem_slice_iter(&pem.cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| cert_error(error.to_string()))?;
        if chain.is_empty() {
            return Err(cert_error("there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&pem.key)
            .map_err(|error| file_error("tls.key", &self.key, error.to_string()))?;
        let pair_error = |error: rustls::Error| TlsError::Pair {
            cert: self.cert.clone(),
            key: self.key.clone(),
            why: error.to_string(),
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(pair_error)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    #[cfg(unix)]
    fn warn_of_readers(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&self.key).map_or(0, |file| file.permissions().mode());
        if mode & 0o004 != 0 {
            tracing::warn!(key = %self.key.display(), "everybody on this machine can read tls.key");
        }
    }

    #[cfg(not(unix))]
    fn warn_of_readers(&self) {}
}

impl Pem {
    /// When the first certificate of the chain ends, in Unix seconds.
    fn expiry_s(&self) -> Option<u64> {
        CertificateDer::pem_slice_iter(&self.cert).filter_map(|cert| expiry_s(&cert.ok()?)).min()
    }
}

/// When a certificate ends. What checks certificates says so of one that has ended, so it is asked for a time when all have; it
/// looks at that before it asks who has signed.
fn expiry_s(cert: &CertificateDer<'_>) -> Option<u64> {
    let cert = ParsedCertificate::try_from(cert).ok()?;
    let at_last = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    match verify_server_cert_signed_by_trust_anchor(&cert, &RootCertStore::empty(), &[], at_last, &[]) {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(not_after.as_secs())
        }
        _ => None,
    }
}

fn file_error(setting: &'static str, path: &std::path::Path, why: String) -> TlsError {
    TlsError::File { setting, path: path.to_owned(), why }
}
