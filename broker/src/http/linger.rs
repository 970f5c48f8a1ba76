//! Requests that are answered before all of their body has come, and WebSockets that are closed before the other side has read why.
//!
//! An early refusal leaves bytes of the request on their way. A connection that is closed on such bytes is reset: the answer
//! may be lost with it, and a client that has the answer finds the connection broken at its next request. So the rest is read
//! for a moment and thrown away.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::EXPECT;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::slow_reads::SlowReads;
use crate::shutdown::Ending;

/// Bytes that are thrown away: twice the largest document by default, since less is read of a connection at once than such a document has.
const BYTES_MAX: usize = 1 << 21;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a connection that are read at a time.
const READ_BYTES: usize = 4_096;

/// A body whose rest is read when nobody wants it any more.
struct Lingering {
    body: Body,
    linger: LingeringClose,
}

/// Returns the request with a body whose rest is read when the body is dropped. A client that asks whether the body is
/// welcome (`Expect`) has not sent it: such a request, and one without a body, come back as they are.
pub(super) fn to_its_end(request: Request) -> Request {
    let Some(linger) = request.extensions().get::<LingeringClose>().cloned() else { return request };
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return request;
    }
    request.map(|body| Body::new(Lingering { body, linger }))
}

impl HttpBody for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(ctx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let mut body = std::mem::take(&mut self.body);
        if !body.is_end_stream() {
            self.linger.read_on(async move {
                let mut bytes = 0;
                while bytes < BYTES_MAX
                    && let Some(Ok(frame)) = poll_fn(|ctx| Pin::new(&mut body).poll_frame(ctx)).await
                {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                }
            });
        }
    }
}

/// Asks that the rest of a connection is read when nobody wants it any more; a clone asks for the same.
#[derive(Clone)]
pub(crate) struct LingeringClose {
    is_asked: Arc<AtomicBool>,
    ending: Ending,
}

impl LingeringClose {
    pub(crate) fn new(ending: &Ending) -> Self {
        Self { is_asked: Arc::default(), ending: ending.clone() }
    }

    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Reads for a moment. A stop waits for that.
    fn read_on(&self, reading: impl Future<Output = ()> + Send + 'static) {
        let reading = tokio::time::timeout(PATIENCE, reading);
        let reading = self.ending.ended.clone().run_until_cancelled_owned(reading);
        // Outside of a runtime nothing comes any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.ending.tasks.spawn_on(reading, &runtime);
        }
    }
}

/// How many bytes have come over a connection; a clone says the same.
#[derive(Clone, Default)]
pub(crate) struct Came(Arc<AtomicU64>);

impl Came {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A connection whose rest is read when it is dropped, if that was asked for, and whose slow_reads are read seldom.
pub(crate) struct Connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    /// Taken when it is dropped.
    inner: Option<S>,
    linger: LingeringClose,
    came: Came,
    slow_reads: SlowReads,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    pub(crate) fn new(inner: S, linger: LingeringClose, came: Came) -> Self {
        Self { inner: Some(inner), linger, came, slow_reads: SlowReads::default() }
    }

    /// Notes what was written.
    fn note(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.slow_reads.went(*bytes);
        }
    }

    fn inner(&mut self) -> Pin<&mut S> {
        Pin::new(self.inner.as_mut().expect("it is not dropped yet"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Drop for Connection<S> {
    fn drop(&mut self) {
        if self.linger.is_asked.load(Ordering::Relaxed)
            && let Some(mut inner) = self.inner.take()
        {
            self.linger.read_on(async move {
                // A client that reads learns that nothing more comes, and then closes.
                if inner.shutdown().await.is_err() {
                    return;
                }
                let (mut bytes, mut part) = (0, vec![0; READ_BYTES]);
                while bytes < BYTES_MAX
                    && let Ok(count @ 1..) = inner.read(&mut part).await
                {
                    bytes += count;
                }
            });
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.slow_reads.poll_pause(ctx));
        let before = buf.filled().len();
        ready!(self.inner().poll_read(ctx, buf))?;
        let bytes = buf.filled().len() - before;
        self.came.add(bytes);
        self.slow_reads.came(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.inner().poll_write(ctx, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.inner().poll_write_vectored(ctx, bytes);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(ctx)
    }
}
