//! Connections to NATS, with what they are secured by.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ReconnectToServer, Server, ServerAddr};

/// Where the servers are, and how one is let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Addresses with commas between: `nats://a:4222,nats://b:4222`, `tls://..`. Name and password of the first that has them count for all.
    pub servers: String,
    /// File of credentials (`.creds`), if any.
    pub credentials: Option<PathBuf>,
    /// File of certificates (PEM) that servers may be signed by, besides those that this machine trusts.
    pub ca: Option<PathBuf>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// An address, or a file, is not what it should be.
    #[error("{0}")]
    Setting(String),
    /// The servers do not let the user in.
    #[error("NATS does not let the broker in: {0}")]
    Refused(String),
    /// No server answers. It may later.
    #[error("no NATS server can be reached: {0}")]
    Away(String),
}

/// How long after a failure the next server is tried.
const RECONNECT: Duration = Duration::from_millis(100);
/// How often a silent server is asked whether it is there; the third time without an answer, another one is tried. An owner has to reach
/// another server before its time to live is over.
const PING: Duration = Duration::from_secs(1);
/// No place of a server yet.
const NONE: usize = usize::MAX;
/// How long a server may take to let a client in.
const CONNECT: Duration = Duration::from_secs(2);

impl Access {
    /// The addresses, checked.
    ///
    /// # Errors
    /// [`AccessError::Setting`], with the address without its password.
    pub fn addresses(&self) -> Result<Vec<ServerAddr>, AccessError> {
        let texts = self.servers.split(',').map(str::trim).filter(|text| !text.is_empty());
        let addresses: Result<Vec<ServerAddr>, _> = texts
            .enumerate()
            .map(|(at, text)| {
                // Not shown: there may be a password in it.
                text.parse().map_err(|error| {
                    AccessError::Setting(format!(
                        "address {} of the NATS servers is not one such as nats://10.0.0.1:4222: {error}",
                        at + 1
                    ))
                })
            })
            .collect();
        match addresses? {
            none if none.is_empty() => Err(AccessError::Setting("no NATS server is named".to_owned())),
            addresses => Ok(addresses),
        }
    }

    /// Connects. The connection is made again by itself when it is lost, to the next server that is there.
    ///
    /// # Errors
    /// Any [`AccessError`].
    pub async fn connect(&self, name: &str) -> Result<Client, AccessError> {
        let addresses = self.addresses()?;
        let mut options = ConnectOptions::new().name(name).reconnect_delay_callback(|_| RECONNECT);
        options = options.ping_interval(PING).connection_timeout(CONNECT);
        let last = AtomicUsize::new(NONE);
        options = options
            .reconnect_to_server_callback(move |servers, _| std::future::ready(next_server(&servers, &last)));
        // The servers that others tell of come without.
        let user = addresses.iter().find_map(|address| Some((address.username()?, address.password()?)));
        if let Some((user, password)) = user {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }
        if let Some(file) = &self.credentials {
            let read = options.credentials_file(file).await;
            options = read
                .map_err(|error| AccessError::Setting(format!("credentials {}: {error}", file.display())))?;
        }
        if let Some(file) = &self.ca {
            options = options.add_root_certificates(file.clone());
        }
        options.connect(addresses).await.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                AccessError::Refused(error.to_string())
            }
            ConnectErrorKind::ServerParse
            | ConnectErrorKind::Dns
            | ConnectErrorKind::TimedOut
            | ConnectErrorKind::Tls
            | ConnectErrorKind::Io
            | ConnectErrorKind::MaxReconnects => AccessError::Away(error.to_string()),
        })
    }
}

/// Servers in turn, beginning behind that of the first connection. The client's own choice is the server that failed least often, and
/// one that is cut off from the others fails no connection. `last` is the place of the last one that was chosen.
fn next_server(servers: &[Server], last: &AtomicUsize) -> Option<ReconnectToServer> {
    let at = match last.load(Ordering::Relaxed) {
        // The first connection tries all.
        NONE => servers.iter().position(|server| server.did_connect)?,
        at => at,
    };
    let at = (at + 1) % servers.len();
    last.store(at, Ordering::Relaxed);
    Some(ReconnectToServer { addr: servers[at].addr.clone(), delay: Some(RECONNECT) })
}
