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

use super::Ending;
use super::heads::{HeadTimer, Hearing, Unheard};
use crate::admission;
use crate::config::Config;
use crate::http::{self, Came, Connection, Linger, Stream};
use crate::metrics::Metrics;
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

    /// Serves the requests of one connection, which is heard with the first of them.
    pub(super) async fn serve<S>(self: Arc<Self>, stream: S, hearing: Option<Hearing>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let flow = admission::flow_of_connection(&self.config);
        let (linger, came) = (Linger::default(), Came::default());
        let heads = HeadTimer::new(&self.config.connection, came.clone());
        // A std mutex: held to take it out, with the first request.
        let hearing = Mutex::new(hearing);
        let service = hyper::service::service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
            drop(hearing.lock().unwrap_or_else(PoisonError::into_inner).take());
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
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
