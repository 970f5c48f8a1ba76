//! Connections: accepted, secured, and served by what there is when a request comes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::heads::{HeadTimer, Hearing, Unheard};
use crate::admission;
use crate::config::Config;
use crate::http::{self, Came, Connection, Heard, LingeringClose, Stream};
use crate::metrics::Metrics;
use crate::open_files;
use crate::shutdown::Ending;
use crate::tls::Acceptor;

/// How long the accept loop rests when the system is out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections beyond `limits.connections` that are told so at once.
const REFUSALS_MAX: usize = 64;

/// Connections, from the first that is accepted, and what answers their requests.
pub(super) struct Front {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    ending: Ending,
    tls: Option<Acceptor>,
    /// Answers requests until there is something to serve.
    meanwhile: Router,
    router: OnceLock<Router>,
    unheard: Arc<Unheard>,
}

impl Front {
    pub(super) fn new(
        config: &Arc<Config>,
        metrics: &Arc<Metrics>,
        ending: &Ending,
        tls: Option<Acceptor>,
        meanwhile: Router,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: Arc::clone(config),
            metrics: Arc::clone(metrics),
            ending: ending.clone(),
            tls,
            meanwhile,
            router: OnceLock::new(),
            unheard: Unheard::new(config.limits.unheard_per_address),
        })
    }

    /// Serves requests from now on, over connections that were there before as well. Once.
    pub(super) fn open(&self, router: Router) {
        let _ = self.router.set(router);
    }

    /// Accepts connections for as long as it is polled.
    pub(super) async fn accept(self: &Arc<Self>, listener: &TcpListener) -> Infallible {
        let room = Arc::new(Semaphore::new(self.config.limits.connections));
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        let mut near = open_files::near(self.config.limits.connections);
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(hearing) = self.unheard.enter(peer.ip()) else {
                // Not told why: that would hold it for longer.
                self.metrics.connections_refused.add(1);
                continue;
            };
            let tls = self.tls.as_ref().map(Acceptor::current);
            match Arc::clone(&room).try_acquire_owned() {
                Ok(permit) => {
                    tracing::trace!(%peer, "connected");
                    let connections = self.config.limits.connections - room.available_permits();
                    if near.take_if(|near| connections >= *near).is_some() {
                        tracing::warn!(
                            connections,
                            "open files run out before limits.connections: raise the hard limit (ulimit -H -n) or lower the setting"
                        );
                    }
                    let stream = Stream::new(stream, &self.config.connection, permit, &self.metrics);
                    self.ending.tasks.spawn(Arc::clone(self).secure_and_serve(stream, tls, hearing));
                }
                Err(_) => {
                    self.metrics.connections_refused.add(1);
                    let limit = self.config.limits.connections;
                    if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                        self.ending.tasks.spawn(async move {
                            http::refuse_connection(stream, tls, limit).await;
                            drop(permit);
                        });
                    }
                }
            }
        }
    }

    /// Serves a connection, which may take as long for its handshake as for the head of a request.
    async fn secure_and_serve(
        self: Arc<Self>,
        stream: Stream<TcpStream>,
        tls: Option<TlsAcceptor>,
        hearing: Hearing,
    ) {
        let Some(tls) = tls else { return self.serve(stream, Some(hearing)).await };
        let limit = Duration::from_millis(self.config.connection.head_timeout_ms);
        let handshake = tokio::time::timeout(limit, stream.secured(tls));
        let error = match self.ending.stopping.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => return self.serve(stream, Some(hearing)).await,
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(_)) => "it took too long (connection.head_timeout_ms)".to_owned(),
            None => return,
        };
        self.metrics.handshakes_failed.add(1);
        tracing::debug!(error, "a connection did not come to speak TLS");
    }

    /// Serves the requests of one connection. It is heard with the first of them, or where tokens are wanted, with the first that has one
    /// that counts.
    pub(super) async fn serve<S>(self: Arc<Self>, stream: S, hearing: Option<Hearing>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let flow = admission::flow_of_connection(&self.config);
        let (linger, came) = (LingeringClose::new(&self.ending), Came::default());
        let heads = HeadTimer::new(&self.config.connection, came.clone());
        // A std mutex: held to take it out.
        let hearing = Mutex::new(hearing);
        let heard = Heard::new(move || drop(hearing.lock().unwrap_or_else(PoisonError::into_inner).take()));
        let service = hyper::service::service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
            // As long as what is on disk is taken up, nobody's token is looked at.
            let is_asked = self.config.wants_tokens() && self.router.get().is_some();
            if is_asked {
                request.extensions_mut().insert(heard.clone());
            } else {
                heard.tell();
            }
            request.extensions_mut().insert(Arc::clone(&flow));
            request.extensions_mut().insert(linger.clone());
            let router = self.router.get().unwrap_or(&self.meanwhile).clone();
            hyper::service::Service::call(&TowerToHyperService::new(router), request)
        });
        let connection = http1::Builder::new()
            .header_read_timeout(heads.limit())
            .timer(heads)
            .max_buf_size(self.config.connection.head_bytes)
            .serve_connection(TokioIo::new(Connection::new(stream, linger.clone(), came)), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = self.ending.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    served = connection.as_mut() => served,
                    () = self.ending.ended.cancelled() => Ok(()),
                }
            }
        };
        if let Err(error) = served {
            if error.is_parse() {
                // What came was no request, or its head was too large. The rest of it is on its way: without that being read, the
                // answer may not come, and the next connection would at once.
                linger.ask();
            }
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::config::AuthMode;

    /// Whether a connection still counts as one on which nobody was heard, after each of these requests.
    async fn counted_after<const N: usize>(auth: AuthMode, requests: [&str; N]) -> [bool; N] {
        let mut config = Config::default();
        config.auth.mode = auth;
        let ending = Ending::default();
        let front = Front::new(&Arc::new(config), &Arc::new(Metrics::new(1)), &ending, None, Router::new());
        let let_in = async |heard: Option<Extension<Heard>>| heard.iter().for_each(|heard| heard.tell());
        front.open(Router::new().route("/let-in", get(let_in)));
        let unheard = Unheard::new(1);
        let address = "192.0.2.1".parse().unwrap();
        let hearing = unheard.enter(address);
        let (mut ours, theirs) = tokio::io::duplex(4_096);
        let served = tokio::spawn(front.serve(theirs, hearing));
        let mut counted = [false; N];
        for (counted, path) in counted.iter_mut().zip(requests) {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
            ours.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(ours.read_u8().await.unwrap());
            }
            *counted = unheard.enter(address).is_none();
        }
        drop(ours);
        served.await.unwrap();
        assert!(unheard.enter(address).is_some(), "it is over");
        counted
    }

    #[tokio::test]
    async fn where_tokens_are_wanted_a_request_without_one_is_nobodys() {
        let requests = ["/refused", "/refused", "/let-in", "/refused"];
        assert_eq!(counted_after(AuthMode::Jwt, requests).await, [true, true, false, false]);
        assert_eq!(counted_after(AuthMode::None, requests).await, [false; 4]);
    }
}
