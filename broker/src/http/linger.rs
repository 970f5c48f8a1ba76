//! Requests that are answered before all of their body has come.
//!
//! Who refuses a request early leaves bytes of it on their way, and a connection that is closed on such bytes is reset: the answer may be
//! lost with it, and a client that has the answer finds the connection broken at its next request. So the rest is read for a moment and
//! thrown away.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::EXPECT;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Bytes of a body that are thrown away.
const BYTES_MAX: usize = 1 << 20;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A body whose rest is read when nobody wants it any more.
struct Lingering {
    body: Body,
}

/// The same request; the rest of its body is read when that is dropped. Who asks whether the body is welcome has not sent it.
pub(super) fn to_its_end(request: Request) -> Request {
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return request;
    }
    request.map(|body| Body::new(Lingering { body }))
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
        // Outside of a runtime nothing comes any more.
        if !body.is_end_stream()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(PATIENCE, async move {
                let mut bytes = 0;
                while bytes < BYTES_MAX
                    && let Some(Ok(frame)) = poll_fn(|ctx| Pin::new(&mut body).poll_frame(ctx)).await
                {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                }
            }));
        }
    }
}
