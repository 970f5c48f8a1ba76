//! TCP connections: counted, bounded, and cut off when a write is stuck.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config;
use crate::metrics::{Metrics, Raised};
use crate::model::error::ApiError;

/// A stream that holds its place among the connections, and whose writes fail when they are stuck for too long.
pub(crate) struct Stream<S> {
    inner: S,
    write_timeout: Duration,
    /// Runs while a write is stuck. Boxed, so that a connection that is well does not carry it.
    stuck: Option<Pin<Box<Sleep>>>,
    cut_off: bool,
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
    _counted: Raised,
}

impl Stream<TcpStream> {
    pub(crate) fn new(
        inner: TcpStream,
        settings: &config::Connection,
        permit: OwnedSemaphorePermit,
        metrics: &Arc<Metrics>,
    ) -> Self {
        // Deliveries are small and wanted now.
        if let Err(error) = inner.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        // Data that nobody acknowledges: the other side is gone without a word.
        #[cfg(target_os = "linux")]
        {
            let silence = Duration::from_millis(settings.silence_timeout_ms);
            if let Err(error) = socket2::SockRef::from(&inner).set_tcp_user_timeout(Some(silence)) {
                tracing::debug!(%error, "TCP_USER_TIMEOUT");
            }
        }
        Self {
            inner,
            write_timeout: Duration::from_millis(settings.write_timeout_ms),
            stuck: None,
            cut_off: false,
            metrics: Arc::clone(metrics),
            _permit: permit,
            _counted: Raised::new(metrics, |metrics| &metrics.connections),
        }
    }

    /// Secures the connection with TLS. The time-out of stuck writes then stands around TLS.
    ///
    /// # Errors
    /// When the other side does not speak TLS 1.3, or not with us.
    pub(crate) async fn secured(self, tls: TlsAcceptor) -> io::Result<Stream<TlsStream<TcpStream>>> {
        let Self { inner, write_timeout, stuck, cut_off, metrics, _permit, _counted } = self;
        let inner = tls.accept(inner).await?;
        Ok(Stream { inner, write_timeout, stuck, cut_off, metrics, _permit, _counted })
    }
}

impl<S> Stream<S> {
    /// Turns a write that has been stuck for too long into an error.
    fn watch<T>(&mut self, ctx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let timeout = self.write_timeout;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if stuck.as_mut().poll(ctx).is_pending() {
            return Poll::Pending;
        }
        // Goodbyes are tried after the error, too; the connection counts once.
        self.metrics.stuck.add(u64::from(!std::mem::replace(&mut self.cut_off, true)));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "a write was stuck")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(ctx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(ctx, bytes);
        self.watch(ctx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(ctx, bytes);
        self.watch(ctx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(ctx);
        self.watch(ctx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(ctx)
    }
}

/// Tells a connection too many why it is closed. Whoever does not take it within a second goes without.
pub(crate) async fn refuse_connection(stream: TcpStream, tls: Option<TlsAcceptor>, limit: usize) {
    let told = async {
        match tls {
            None => tell_limit(stream, limit).await,
            Some(tls) => tell_limit(tls.accept(stream).await?, limit).await,
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
}

async fn tell_limit(mut stream: impl AsyncWrite + Unpin, limit: usize) -> io::Result<()> {
    let refusal = ApiError::Limit { what: "connections", limit: limit as u64, setting: "limits.connections" };
    let mut problem = refusal.problem();
    problem.status = 503;
    let body = serde_json::to_string(&problem).unwrap_or_default() + "\n";
    let response = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 5\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

/// WebSockets that can be cut off.
#[derive(Default)]
pub(crate) struct Sockets {
    /// A std mutex: held for one insertion or removal.
    handles: Mutex<HashMap<u64, AbortHandle>>,
}

impl Sockets {
    pub(crate) fn insert(&self, connection: u64, handle: AbortHandle) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).insert(connection, handle);
    }

    pub(crate) fn remove(&self, connection: u64) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).remove(&connection);
    }

    /// Cuts all of them off.
    pub(crate) fn abort_all(&self) {
        for handle in self.handles.lock().unwrap_or_else(PoisonError::into_inner).values() {
            handle.abort();
        }
    }
}
